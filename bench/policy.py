"""How near PolicyEvaluator comes to the true value function of a chain on a line.

From x the chain goes to x + 0.03 + 0.1 noise, reflected at 0 and 1; the reward is sin 2 pi x and
the discount 0.9. Errors are root mean squares on a fine grid, of the last iterate and of the
average; those of prototypes in NumPy stand in [brackets]. A tracker of one number is run as a
warning. The exit code is 1 if the averages are too far off.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import machine, report
from bench.baselines.intensity import midpoints
from bench.baselines.policy import Iterates, Span, double_sampling, scalar_tracker
from bench.cli import positive_int
from parsimon import PolicyEvaluator, kernels

Array = NDArray[np.float64]

TRANSITIONS = 100_000
DRIFT, NOISE = 0.03, 0.1
DISCOUNT = 0.9
BANDWIDTH = 0.1
GRID = 1000
NODES = 50


@dataclass(frozen=True)
class Chain:
    """Transitions from states that are spread evenly; `again` are other successors of them."""

    states: Array
    rewards: Array
    next_states: Array
    again: Array


@dataclass(frozen=True)
class Method:
    """A way to evaluate the policy, with prototypes' errors and the largest that is allowed."""

    name: str
    kind: str  # a method of PolicyEvaluator, or a baseline
    settings: Mapping[str, Any] = field(default_factory=dict)
    reference: str = ""
    bound: float = np.inf


@dataclass(frozen=True)
class Result:
    rmse_last: float
    rmse_average: float
    model_order: int
    largest_model_order: int
    tracker_order: int
    seconds: float
    cpu_seconds: float


SINGLE: Mapping[str, Any] = {"batch_size": 1, "learning_rate": 0.1, "tracking_rate": 0.1}
METHODS = (
    Method('"gtd"', "gtd", bound=0.25),
    Method('"td"', "td", bound=0.08),
    Method('"gtd", one by one, alpha = beta = .1', "gtd", SINGLE, ".39 / .22", bound=0.25),
    Method(
        '"td", one by one, alpha = .02',
        "td",
        {**SINGLE, "learning_rate": 0.02},
        ".24 / .064",
        bound=0.08,
    ),
    Method("double sampling, alpha = .1", "double", {"alpha": 0.1}, ".52 / .22"),
    Method("one number, beta = .1: biased", "scalar", {"alpha": 0.1, "beta": 0.1}, "3.2 to 3.6"),
    Method("one number, beta = .01: biased", "scalar", {"alpha": 0.1, "beta": 0.01}, "3.2 to 3.6"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--draws", type=positive_int, default=5, help="of the transitions")
    parser.add_argument("--transitions", type=positive_int, help="learn from so many; no verdict")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")


def run(options: argparse.Namespace) -> int:
    count = options.transitions or TRANSITIONS
    grid, truth = true_values()
    print(
        f"A chain on a line, {count:,} transitions, {options.draws} draws. Standard deviation of "
        f"the true V: {truth.std():.2f}."
    )
    results: dict[str, list[Result]] = {method.name: [] for method in METHODS}
    with machine.one_thread():
        for draw in range(options.draws):
            chain = draw_chain(count, draw)
            for method in METHODS:
                results[method.name].append(evaluate(method, chain, grid, truth))
    show(results)
    complaints = [] if options.transitions else judge(results)
    if not options.transitions:
        print("\n".join(complaints) or "PASSED: the averages are near the true values.")
    if options.json:
        content = {
            "command": "policy",
            "transitions": count,
            "results": {name: [asdict(each) for each in found] for name, found in results.items()},
        }
        report.write_json(options.json, {**content, **machine.environment()})
    return 1 if complaints else 0


def reflect(x: Array) -> Array:
    x = np.abs(x) % 2
    return np.where(x > 1, 2 - x, x)


def draw_chain(count: int, seed: int) -> Chain:
    random = np.random.default_rng(seed)
    x = random.uniform(size=(count, 1))
    y, again = (reflect(x + DRIFT + NOISE * random.normal(size=x.shape)) for _ in range(2))
    return Chain(x, np.sin(2 * np.pi * x[:, 0]), y, again)


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


def evaluate(method: Method, chain: Chain, grid: Array, truth: Array) -> Result:
    def rmse(values: Array) -> float:
        return float(np.sqrt(np.square(values - truth).mean()))

    if method.kind not in ("gtd", "td"):
        span = Span(midpoints(NODES, [(0.0, 1.0)]), BANDWIDTH)
        with machine.Stopwatch() as watch:
            found = run_baseline(method, chain, span)
        features = span.features(grid)
        order = features.shape[1]
        errors = rmse(features @ found.last), rmse(features @ found.average)
        return Result(*errors, order, order, 0, watch.elapsed.wall, watch.elapsed.cpu)
    errors = []
    for average in (False, True):
        model = PolicyEvaluator(
            method.kind,
            discount=DISCOUNT,
            kernel=kernels.Gaussian(BANDWIDTH),
            shuffle=False,
            average=average,
            **method.settings,
        )
        with machine.Stopwatch() as watch:
            model.fit(chain.states, chain.rewards, chain.next_states)
        errors.append(rmse(model.predict(grid)))
    return Result(
        *errors,
        model.model_order_,
        int(model.trace_["model_order"].max()),
        model.tracker_order_,
        watch.elapsed.wall,
        watch.elapsed.cpu,
    )


def run_baseline(method: Method, chain: Chain, span: Span) -> Iterates:
    now, following = span.features(chain.states), span.features(chain.next_states)
    given = {"discount": DISCOUNT, **method.settings}
    if method.kind == "scalar":
        return scalar_tracker(now, chain.rewards, following, **given)
    return double_sampling(now, chain.rewards, following, span.features(chain.again), **given)


def judge(results: Mapping[str, Sequence[Result]]) -> list[str]:
    """Return what does not hold: the average is near the true values in every draw."""
    complaints = []
    for method in METHODS:
        worst = max(result.rmse_average for result in results[method.name])
        if worst > method.bound:
            complaints.append(
                f"FAILED: {method.name} has an error of {worst:.3f}; at most {method.bound:g} is "
                f"allowed."
            )
    return complaints


def show(results: Mapping[str, Sequence[Result]]) -> None:
    header = ["", "last", "average", "worst average", "reference", "points", "at most"]
    header += ["tracker", "s", "CPU s"]
    rows = []
    for method in METHODS:
        found = results[method.name]
        average = [result.rmse_average for result in found]
        rows.append(
            [
                method.name,
                f"{np.mean([result.rmse_last for result in found]):.3f}",
                f"{np.mean(average):.3f}",
                f"{max(average):.3f}",
                f"[{method.reference}]" if method.reference else "",
                f"{np.mean([result.model_order for result in found]):.0f}",
                f"{max(result.largest_model_order for result in found)}",
                f"{np.mean([result.tracker_order for result in found]):.0f}",
                f"{np.mean([result.seconds for result in found]):.2f}",
                f"{np.mean([result.cpu_seconds for result in found]):.2f}",
            ]
        )
    report.print_table(header, rows)
    print()
