"""What all experiments share: methods on tasks, seed by seed, every result kept.

A *task* is data to train on and to test with. A *method* is an estimator with its settings. A *run*
is one training of a method on the task of a seed, and gives a *result*: figures by name. A *row* is
a method with its results. An *experiment* says which methods run on which task, and what a run
does; `Experiment.rows` runs it.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import parsimon
from bench import machine, report
from bench.cli import positive_int

Figures = dict[str, Any]
Settings = Mapping[str, Any]

# At most this many in the quick version of an experiment.
QUICK = {"epochs": 2, "iterations": 50}
ONCE = argparse.Namespace(runs=None, quick=False, out=None)


@dataclass(frozen=True)
class Like:
    """A setting that is known once another method has run: a figure of it, times a number."""

    method: str
    figure: str
    times: int = 1


@dataclass(frozen=True)
class Method:
    """An estimator with its settings, and what is known of it before it runs."""

    name: str
    estimator: str | Callable[..., Any]  # a name in parsimon, or whatever makes an estimator
    settings: Settings = field(default_factory=dict)
    loss: str | None = None
    epochs: int = 1  # passes over the samples, where the run and not the estimator makes them
    printed: Mapping[str, Any] = field(default_factory=dict)  # in a paper, by figure
    runs: int | None = None  # at most this many, where more change nothing or take too long
    remark: str = ""

    @property
    def kind(self) -> str:
        return self.estimator if isinstance(self.estimator, str) else self.estimator.__name__

    @property
    def absent(self) -> str:
        """Why it cannot be run here; nothing if it can."""
        package = getattr(self.estimator, "package", None)
        return f"pip install {package}" if package and not machine.installed(package) else ""

    @property
    def shortened(self) -> Method:
        few = {name: min(QUICK[name], self.settings[name]) for name in QUICK & self.settings.keys()}
        epochs = min(self.epochs, QUICK["epochs"])
        return replace(self, settings={**self.settings, **few}, epochs=epochs)

    def make(self, offered: Settings) -> Any:
        """Return the estimator with its settings and, of what is offered, all that it can take."""
        named = isinstance(self.estimator, str)
        make = getattr(parsimon, self.estimator) if named else self.estimator
        taken = offered.keys() & inspect.signature(make).parameters.keys()
        return make(**{name: offered[name] for name in taken} | dict(self.settings))

    @property
    def configuration(self) -> dict[str, Any]:
        """All that its results depend on."""
        package = getattr(self.estimator, "package", "parsimon")
        return {
            "method": self.name,
            "estimator": self.kind,
            "settings": dict(self.settings),
            "loss": self.loss,
            "epochs": self.epochs,
            package: machine.installed(package),
        }


@dataclass(frozen=True)
class Result:
    """What one run gave; there are no figures if it diverged."""

    figures: Mapping[str, Any] = field(default_factory=dict)
    diverged: bool = False
    warnings: Sequence[str] = ()
    kept: bool = False  # from an earlier run

    def __getitem__(self, figure: str) -> Any:
        return self.figures[figure]


@dataclass(frozen=True)
class Row:
    """A method and its results, one per seed; `absent` says why there are none."""

    method: Method
    results: list[Result] = field(default_factory=list)
    absent: str = ""

    @property
    def sound(self) -> list[Result]:
        return [result for result in self.results if not result.diverged]

    @property
    def diverged(self) -> int:
        return len(self.results) - len(self.sound)

    def values(self, figure: str) -> list[Any]:
        """Return a figure of all runs that have it."""
        return [result[figure] for result in self.sound if figure in result.figures]

    def mean(self, figure: str) -> float:
        return float(np.mean(self.values(figure)))

    def plus(self, name: str, figure: Callable[[int, Result], Any]) -> Row:
        """Return the row with one more figure, a function of the seed and the result."""
        results = list(self.results)
        for seed, result in enumerate(results):
            if not result.diverged:
                figures = {**result.figures, name: figure(seed, result)}
                results[seed] = replace(result, figures=figures)
        return replace(self, results=results)

    def above(self, other: Row, figure: str) -> Row:
        """Return the row with the figure "above": how far one is above that of another row.

        They are compared seed by seed; a row with a single run is compared with as it is.
        """
        several = len(other.results) > 1
        printed = dict(self.method.printed)
        pair = printed.get(figure), other.method.printed.get(figure)
        if None not in pair:
            printed["above"] = round(pair[0] - pair[1], 2)
        compared = replace(self, method=replace(self.method, printed=printed))
        return compared.plus(
            "above", lambda seed, found: found[figure] - other.results[several * seed][figure]
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, for JSON; None where it diverged."""
        results = [None if each.diverged else dict(each.figures) for each in self.results]
        return {**self.method.configuration, "results": results}


@dataclass(frozen=True)
class Run:
    """One training of a method, on the task of a seed; all methods are offered some settings."""

    method: Method
    task: Any
    seed: int
    offered: Settings = field(default_factory=dict)

    def make(self, **more: Any) -> Any:
        """Return the estimator, not yet trained."""
        loss = {} if self.method.loss is None else {"loss": self.method.loss}
        return self.method.make({**self.offered, **loss, "random_state": self.seed, **more})


@dataclass(frozen=True)
class Experiment:
    """Methods on the tasks of some seeds."""

    name: str  # of the task
    title: str
    methods: Sequence[Method]
    load: Callable[..., Any]  # (seed, **data) -> the task
    train: Callable[[Run], Figures]
    runs: int = 1
    data: Settings = field(default_factory=dict)  # sizes and such
    offered: Settings = field(default_factory=dict)  # to all methods, and to `train`
    quick: Settings = field(default_factory=dict)  # data of the quick version
    quick_runs: int = 1

    @property
    def shortened(self) -> Experiment:
        """The quick version: little data, few passes, few runs."""
        methods, data = [each.shortened for each in self.methods], {**self.data, **self.quick}
        return replace(self, methods=methods, data=data, runs=self.quick_runs)

    def rows(self, options: argparse.Namespace = ONCE) -> list[Row]:
        """Run every method with every seed, or those of the quick version.

        Results are kept in the folder `options.out`, if there is one, in files whose names are
        hashes of all that they depend on. What is there is not run again.
        """
        if options.quick:
            return self.shortened.rows(argparse.Namespace(**{**vars(options), "quick": False}))
        store = Store(options.out and options.out / "runs")
        rows = [Row(method, absent=method.absent) for method in self.methods]
        plan = [
            (seed, row)
            for seed in range(options.runs or self.runs)
            for row in rows
            if not row.absent and (row.method.runs is None or seed < row.method.runs)
        ]
        load = lru_cache(maxsize=1)(lambda seed: self.load(seed, **self.data))
        with machine.one_thread():
            for seed, row in shown(plan, self.title):
                method = resolved(row.method, rows)
                configuration = self.configuration(method, seed)
                result = store.find(configuration)
                if result is None:
                    result = self.result(Run(method, load(seed), seed, self.offered))
                    store.keep(configuration, result)
                row.results.append(result)
        return rows

    def configuration(self, method: Method, seed: int) -> dict[str, Any]:
        """Return all that a result depends on."""
        of_task = {"task": self.name, "data": dict(self.data), "offered": dict(self.offered)}
        return {**of_task, **method.configuration, "seed": seed}

    def result(self, run: Run) -> Result:
        """Train, and note what it warns of."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                figures, diverged = self.train(run), False
            except parsimon.DivergenceError:
                figures, diverged = {}, True
        notes = {f"{warning.category.__name__}: {warning.message}" for warning in caught}
        return Result(figures, diverged, sorted(notes))


def resolved(method: Method, rows: Sequence[Row]) -> Method:
    """Return the method with numbers in the place of what is `Like` another one's latest run."""
    latest = {row.method.name: row.results[-1] for row in rows if row.results}
    settings = dict(method.settings)
    for name, value in settings.items():
        if isinstance(value, Like):
            other = latest[value.method]
            # Where the other one diverged there is no number to multiply.
            settings[name] = value.times * (1 if other.diverged else round(other[value.figure]))
    return replace(method, settings=settings)


def shown(plan: Sequence[tuple[int, Row]], title: str) -> Iterable[tuple[int, Row]]:
    """Return a plan behind a bar that counts runs, if tqdm is here."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return plan
    return tqdm(plan, desc=title, unit=" runs")


@dataclass(frozen=True)
class Store:
    """Results by what they depend on, one file each in a folder; without a folder, none."""

    folder: Path | None

    def path(self, configuration: Mapping[str, Any]) -> Path:
        text = json.dumps(configuration, sort_keys=True, default=str)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        words = f"{configuration['task']} {configuration['method']} {configuration['seed']}"
        return self.folder / (re.sub(r"[^a-z0-9]+", "-", words.lower()) + f"-{key}.json")

    def find(self, configuration: Mapping[str, Any]) -> Result | None:
        if self.folder is None or not self.path(configuration).is_file():
            return None
        content = json.loads(self.path(configuration).read_text(encoding="utf-8"))
        return Result(**content["result"], kept=True)

    def keep(self, configuration: Mapping[str, Any], result: Result) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        found = {name: value for name, value in asdict(result).items() if name != "kept"}
        content = {"configuration": configuration, "result": found, **machine.environment()}
        # A file is there as a whole or not at all, whatever interrupts the writing.
        unfinished = self.path(configuration).with_suffix(".part")
        unfinished.write_text(json.dumps(content, default=report.plain), encoding="utf-8")
        unfinished.replace(self.path(configuration))


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that end with a verdict, and keep no results."""
    names = ("--runs", "--seeds", "--sets", "--draws")
    parser.add_argument(*names, dest="runs", type=positive_int, help="how many draws of the data")
    names = ("--samples", "--transitions")
    parser.add_argument(*names, type=positive_int, help="train on this many only; no verdict")
    report.add_json(parser)
    parser.set_defaults(out=None, quick=False)
