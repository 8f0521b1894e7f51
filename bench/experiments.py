"""Experiments as data: runs that are seeded, kept by their configuration, and not repeated.

A run is a task, a method, the settings of both and a seed. What it found is written to a JSON file
whose name is a hash of all that and of parsimon's version, so that an experiment that was
interrupted goes on where it stopped, and one whose settings change runs only what has changed.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import parsimon
from bench import machine, report

Result = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """One training; everything that its result depends on."""

    task: str
    method: str
    seed: int
    data: Mapping[str, Any] = field(default_factory=dict)  # sizes and such
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def configuration(self) -> dict[str, Any]:
        return {**asdict(self), "parsimon": parsimon.__version__}

    @property
    def file_name(self) -> str:
        text = json.dumps(self.configuration, sort_keys=True, default=str)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.task} {self.method}".lower()).strip("-")
        return f"{words}-{self.seed}-{key}.json"


@dataclass
class Store:
    """Results of runs, one file each, in a folder."""

    folder: Path

    def find(self, run: Run) -> Result | None:
        path = self.folder / run.file_name
        if not path.is_file():
            return None
        result: Result = json.loads(path.read_text(encoding="utf-8"))["result"]
        return result

    def keep(self, run: Run, result: Result) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / run.file_name
        content = {"configuration": run.configuration, "result": result, **machine.environment()}
        # A file is there as a whole or not at all, whatever interrupts the writing.
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(content, default=report.plain), encoding="utf-8")
        unfinished.replace(path)

    def results(
        self, plan: Sequence[tuple[Run, T]], compute: Callable[[Run, T], Result], title: str
    ) -> list[Result]:
        """Return the result of every run of a plan, in its order.

        What is not in the folder is computed, from the run and what the plan has beside it.
        """
        results = []
        with progress_of_runs(len(plan), title) as advance, machine.one_thread():
            for run, given in plan:
                found = self.find(run)
                if found is None:
                    found = compute(run, given)
                    self.keep(run, found)
                results.append(found)
                advance(run)
        return results


@contextmanager
def progress_of_runs(total: int, title: str) -> Iterator[Callable[[Run], None]]:
    """Show a bar that counts runs, if tqdm is here."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield lambda _: None
        return
    with tqdm(total=total, desc=title, unit=" runs") as bar:

        def advance(run: Run) -> None:
            bar.set_postfix_str(run.method, refresh=False)
            bar.update(1)

        yield advance


@dataclass(frozen=True)
class Table:
    """A table of a paper, as we found it."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def publish(self, path: Path) -> None:
        """Print it, and write it as CSV to the path and as Markdown beside it."""
        print(f"\n{self.title}")
        report.print_table(self.header, self.rows)
        for note in self.notes:
            print(f"  {note}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([self.header, *self.rows])
        text = report.markdown(self.header, self.rows)
        path.with_suffix(".md").write_text(f"{text}\n", encoding="utf-8")


def mean_and_sd(values: Sequence[float], digits: int = 3) -> str:
    """Write a mean, and the standard deviation over the runs if there are several."""
    mean = significant(float(np.mean(values)), digits)
    return f"{mean} ({significant(float(np.std(values)), 2)})" if len(values) > 1 else mean


def significant(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, and all of those before the point."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{decimals}f}"


def span(values: Sequence[float]) -> str:
    """Write whole numbers as a range, or as one if they are all the same."""
    low, high = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return low if low == high else f"{low} to {high}"


def times(count: int, what: str = "run") -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
