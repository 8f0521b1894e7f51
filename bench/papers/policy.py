"""How near PolicyEvaluator comes to true value functions, or to returns that were observed.

By default on a chain on a line: from x it goes to x + 0.03 + 0.1 noise, reflected at 0 and 1; the
reward is sin 2 pi x and the discount 0.9. Errors are root mean squares on a fine grid, of the
average of the iterates and of the last; those of prototypes in NumPy stand in [brackets]. A tracker
of one number is run as a warning. The exit code is 1 if the averages are too far off.

In an environment of Gymnasium (--task), a fixed policy that solves the task plays some episodes, to
learn from; in others, the discounted sums of rewards from each state on are what V should predict.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import figures, machine, report
from bench.baselines.intensity import midpoints
from bench.baselines.policy import BellmanDescent
from bench.cli import positive_int
from bench.papers import gym_worlds
from bench.report import Column, Promise, Table, at_most, significant, span, times, two_digits
from bench.runner import Experiment, Figures, Method, Row, Run, add_check_arguments
from bench.tasks import Array, Task
from parsimon import kernels

TRANSITIONS, DRAWS = 100_000, 5
DRIFT, NOISE = 0.03, 0.1
DISCOUNT = 0.9
BANDWIDTH = 0.1
GRID = 1000

EVALUATOR = "PolicyEvaluator"
# The largest error of an average that is allowed.
BOUNDS = {"gtd": 0.25, "td": 0.08}
COLUMNS = (
    Column("RMSE", "rmse"),
    Column("worst", "rmse", lambda values: significant(max(values))),
    Column("of the last iterate", "rmse_last"),
    Column("correlation", "correlation"),
    Column("points", "model_order", span),
    Column("largest", "largest_model_order", span),
    Column("tracker", "tracker_order", span),
    Column("s", "seconds", two_digits),
    Column("CPU s", "cpu_seconds", two_digits),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_check_arguments(parser)
    add = parser.add_argument
    add("--task", choices=("chain", *gym_worlds.WORLDS), default="chain")
    in_gym = parser.add_argument_group("in an environment of Gymnasium").add_argument
    in_gym("--method", choices=BOUNDS, nargs="+", default=["td", "gtd"])
    in_gym("--episodes", type=positive_int, default=1000, help="to learn from")
    in_gym("--epochs", type=positive_int, default=5, help="over their transitions")
    in_gym("--seed", type=int, default=0)
    in_gym("--plot", type=Path, metavar="FILE", help="draw V, and it against returns")


def run(options: argparse.Namespace) -> int:
    on_chain = options.task == "chain"
    experiment = chain(options.samples or TRANSITIONS) if on_chain else world(options)
    task, rows = experiment.load(0, **experiment.data), experiment.rows(options)
    title = f"{experiment.title}: {len(task.X):,} transitions, {times(len(rows[0].results))}; V at "
    title += f"{len(task.X_test):,} states, standard deviation {task.y_test.std():.2f}"
    Table.of_rows(title, rows, COLUMNS).show()
    if options.plot and not on_chain:
        model = fitted(Run(experiment.methods[0], task, 0, experiment.offered))
        draw = partial(gym_worlds.draw, gym_worlds.WORLDS[options.task], task, model)
        figures.write(options.plot, draw, 2, (4.5, 3.9))
    return report.conclude(options, {task.name: rows}, judge(rows) if on_chain else ())


def world(options: argparse.Namespace) -> Experiment:
    """Return an environment of Gymnasium; all methods learn from the same episodes."""
    of = gym_worlds.WORLDS[options.task]
    task = gym_worlds.load(of, options.episodes, options.seed)
    given = {"gamma": 1.0, "epochs": options.epochs, "random_state": options.seed, **of.settings}
    return Experiment(
        options.task,
        of.environment,
        [Method(f'"{each}"', EVALUATOR, {"method": each, **given}) for each in options.method],
        load=lambda seed: task,
        train=evaluate,
        offered={"discount": gym_worlds.DISCOUNT},
    )


def evaluate(run: Run) -> Figures:
    """Train and test; V is the average of the iterates."""
    watch, truth = machine.Stopwatch(), run.task.y_test
    model = fitted(run, watch)
    predicted, trace = model.predict(run.task.X_test), getattr(model, "trace_", None)
    return {
        "rmse": rmse(predicted, truth),
        "correlation": float(np.corrcoef(predicted, truth)[0, 1]),
        "model_order": model.model_order_,
        "largest_model_order": int(trace["model_order"].max()) if trace else model.model_order_,
        "tracker_order": getattr(model, "tracker_order_", 0),
        **watch.figures,
    }


def fitted(run: Run, watch: machine.Stopwatch | None = None, **more: Any) -> Any:
    task, model = run.task, run.make(**more)
    last = task.extra.get("terminal" if run.method.kind == EVALUATOR else "again")
    with watch or machine.Stopwatch():
        return model.fit(task.X, task.y, task.extra["next_states"], last)


def rmse(values: Array, truth: Array) -> float:
    return float(np.sqrt(np.square(values - truth).mean()))


def way(name: str, estimator: Any, reached: Sequence[str | None], **settings: Any) -> Method:
    """Return a method; prototypes reached errors of the last iterate and of the average."""
    printed = dict(zip(("rmse_last", "rmse"), reached, strict=True))
    return Method(name, estimator, settings, printed=printed)


ONE_BY_ONE: dict[str, Any] = {"batch_size": 1, "tracking_rate": 0.1}
GTD = {"method": "gtd", **ONE_BY_ONE, "learning_rate": 0.1}
TD = {"method": "td", **ONE_BY_ONE, "learning_rate": 0.02}
BIASED = ("3.2 to 3.6", None)
METHODS = (
    Method('"gtd"', EVALUATOR, {"method": "gtd"}),
    Method('"td"', EVALUATOR, {"method": "td"}),
    way('"gtd", one by one, alpha = beta = .1', EVALUATOR, (".39", ".22"), **GTD),
    way('"td", one by one, alpha = .02', EVALUATOR, (".24", ".064"), **TD),
    way("double sampling, alpha = .1", BellmanDescent, (".52", ".22"), alpha=0.1),
    way("one number, beta = .1: biased", BellmanDescent, BIASED, alpha=0.1, beta=0.1),
    way("one number, beta = .01: biased", BellmanDescent, BIASED, alpha=0.1, beta=0.01),
)


def chain(transitions: int) -> Experiment:
    kernel = kernels.Gaussian(BANDWIDTH)
    return Experiment(
        "chain",
        "A chain on a line",
        METHODS,
        load=draw_chain,
        train=evaluate_both,
        runs=DRAWS,
        data={"transitions": transitions},
        offered={"discount": DISCOUNT, "kernel": kernel, "shuffle": False},
    )


def draw_chain(seed: int, *, transitions: int) -> Task:
    """Draw transitions from states that are spread evenly, and other successors of them.

    To test with are the true values on a grid.
    """
    random = np.random.default_rng(seed)
    x = random.uniform(size=(transitions, 1))
    y, again = (reflect(x + DRIFT + NOISE * random.normal(size=x.shape)) for _ in range(2))
    rewards = np.sin(2 * np.pi * x[:, 0])
    return Task("chain", x, rewards, *true_values(), {"next_states": y, "again": again})


def reflect(x: Array) -> Array:
    x = np.abs(x) % 2
    return np.where(x > 1, 2 - x, x)


@cache
def true_values() -> tuple[Array, Array]:
    """Return the midpoints of a fine grid and V there: (I - discount P) V = r."""
    x = midpoints(GRID, [(0.0, 1.0)])
    # Reflection is a walk on the whole line, seen through all mirror images of the grid.
    images = np.concatenate([sign * x + 2 * k for k in (-1, 0, 1) for sign in (1, -1)])
    density = np.exp(-np.square((images.T - x - DRIFT) / NOISE) / 2)
    transition = density.reshape(len(x), -1, len(x)).sum(axis=1)
    transition /= transition.sum(axis=1, keepdims=True)
    rewards = np.sin(2 * np.pi * x[:, 0])
    return x, np.linalg.solve(np.eye(len(x)) - DISCOUNT * transition, rewards)


def evaluate_both(run: Run) -> Figures:
    """Return the figures of the average, and the error of the last iterate."""
    last = fitted(run, average=False).predict(run.task.X_test)
    return {**evaluate(run), "rmse_last": rmse(last, run.task.y_test)}


def judge(rows: Sequence[Row]) -> Iterator[Promise]:
    """The average is near the true values in every draw."""
    for row in rows:
        kind = row.method.settings.get("method")
        if kind in BOUNDS:
            worst = max(row.values("rmse"))
            yield at_most(f"{row.method.name}, worst error of an average", worst, BOUNDS[kind])
