"""How near PolicyEvaluator comes to true value functions, or to returns that were observed.

By default on a chain on a line: from x it goes to x + 0.03 + 0.1 noise, reflected at 0 and 1; the
reward is sin 2 pi x and the discount 0.9. Errors are root mean squares on a fine grid, of the
average of the iterates and of the last; those of prototypes in NumPy stand in [brackets]. A tracker
of one number is run as a warning. The exit code is 1 if the averages are too far off.

In an environment of Gymnasium (--task), a fixed policy that solves the task plays some episodes, to
learn from; in others, the discounted sums of rewards from each state on are what V should predict.
The best constant stands beside it: where all goes well all the time, it is hard to beat.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter
from sklearn.preprocessing import StandardScaler

from bench import figures, machine, report
from bench.baselines.intensity import midpoints
from bench.baselines.policy import BellmanDescent, ConstantValue
from bench.cli import MissingDataError, positive_int
from bench.figures import Panel
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
LEARNERS = ("lstd", "td", "gtd")
# The largest error of an average that is allowed; of "lstd" what 60 draws other than these five
# have at most, .078.
BOUNDS = {"gtd": 0.25, "td": 0.08, "lstd": 0.08}
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
    add("--task", choices=("chain", *WORLDS), default="chain")
    in_gym = parser.add_argument_group("in an environment of Gymnasium").add_argument
    in_gym("--episodes", type=positive_int, default=1000, help="to learn from")
    in_gym("--epochs", type=positive_int, default=5, help="over their transitions")
    add("--plot", type=Path, metavar="FILE", help="draw V beside what it should be")


def run(options: argparse.Namespace) -> int:
    on_chain = options.task == "chain"
    experiment = chain(options.samples or TRANSITIONS) if on_chain else world(options)
    task, rows = experiment.load(0, **experiment.data), experiment.rows(options)
    title = f"{experiment.title}: {len(task.X):,} transitions, {times(len(rows[0].results))}; V at "
    title += f"{len(task.X_test):,} states, standard deviation {task.y_test.std():.2f}"
    Table.of_rows(title, rows, COLUMNS).show()
    if options.plot:
        model = fitted(Run(experiment.methods[0], task, 0, experiment.offered))
        curves = {"V": (task.y_test, model.predict(task.X_test)), "exact": 2 * [task.y_test]}
        figures.draw_panels(options.plot, [Panel(task.name, curves, "return", points=("V",))])
    return report.conclude(options, {task.name: rows}, judge(rows) if on_chain else ())


def world(options: argparse.Namespace) -> Experiment:
    """Return an environment of Gymnasium; all methods learn from the same episodes."""
    of = WORLDS[options.task]
    task = load_world(of, options.episodes, 0)
    given = {"gamma": 1.0, "epochs": options.epochs, **of.settings}
    return Experiment(
        options.task,
        of.environment,
        [
            *(Method(f'"{each}"', EVALUATOR, {"method": each, **given}) for each in LEARNERS),
            Method("a constant", ConstantValue, {}),
        ],
        load=lambda seed: task,
        train=evaluate,
        offered={"discount": GYM_DISCOUNT},
    )


def evaluate(run: Run) -> Figures:
    """Train and test; V is the average of the iterates."""
    watch, truth = machine.Stopwatch(), run.task.y_test
    model = fitted(run, watch)
    predicted, trace = model.predict(run.task.X_test), getattr(model, "trace_", None)
    varies = np.ptp(predicted) > 0
    return {
        "rmse": float(np.sqrt(np.mean((predicted - truth) ** 2))),
        "correlation": float(np.corrcoef(predicted, truth)[0, 1]) if varies else 0.0,
        "model_order": model.model_order_,
        "largest_model_order": int(trace["model_order"].max()) if trace else model.model_order_,
        "tracker_order": getattr(model, "tracker_order_", 0),
        **watch.figures,
    }


def fitted(run: Run, watch: Any = None, **more: Any) -> Any:
    task, model = run.task, run.make(**more)
    last = task.extra.get("terminal" if run.method.kind == EVALUATOR else "again")
    with watch or nullcontext():
        return model.fit(task.X, task.y, task.extra["next_states"], last)


ONE_BY_ONE: dict[str, Any] = {"batch_size": 1, "tracking_rate": 0.1}
GTD = {"method": "gtd", **ONE_BY_ONE, "learning_rate": 0.1}
TD = {"method": "td", **ONE_BY_ONE, "learning_rate": 0.02}
BIASED = ("3.2 to 3.6", None)
# Errors that prototypes reached, of the last iterate and of the average.
METHODS = tuple(
    Method(
        name, estimator, settings, printed=dict(zip(("rmse_last", "rmse"), reached, strict=True))
    )
    for name, estimator, reached, settings in (
        ('"lstd"', EVALUATOR, (None, None), {"method": "lstd"}),
        ('"gtd"', EVALUATOR, (None, None), {"method": "gtd"}),
        ('"td"', EVALUATOR, (None, None), {"method": "td"}),
        ('"gtd", one by one, alpha = beta = .1', EVALUATOR, (".39", ".22"), GTD),
        ('"td", one by one, alpha = .02', EVALUATOR, (".24", ".064"), TD),
        ("double sampling, alpha = .1", BellmanDescent, (".52", ".22"), {"alpha": 0.1}),
        ("one number, beta = .1: biased", BellmanDescent, BIASED, {"alpha": 0.1, "beta": 0.1}),
        ("one number, beta = .01: biased", BellmanDescent, BIASED, {"alpha": 0.1, "beta": 0.01}),
    )
)


def chain(transitions: int) -> Experiment:
    return Experiment(
        "chain",
        "A chain on a line",
        METHODS,
        load=draw_chain,
        train=evaluate_both,
        runs=DRAWS,
        data={"transitions": transitions},
        offered={"discount": DISCOUNT, "kernel": kernels.Gaussian(BANDWIDTH), "shuffle": False},
    )


def draw_chain(seed: int, *, transitions: int) -> Task:
    """Draw transitions from states that are spread evenly, and other successors of them.

    To test with are the true values on a grid.
    """
    random = np.random.default_rng(seed)
    x = random.uniform(size=(transitions, 1))
    walks = [np.abs(x + DRIFT + NOISE * random.normal(size=x.shape)) % 2 for _ in range(2)]
    y, again = (np.where(walk > 1, 2 - walk, walk) for walk in walks)
    rewards = np.sin(2 * np.pi * x[:, 0])
    return Task("chain", x, rewards, *true_values(), {"next_states": y, "again": again})


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
    error = fitted(run, average=False).predict(run.task.X_test) - run.task.y_test
    return {**evaluate(run), "rmse_last": float(np.sqrt(np.mean(error**2)))}


def judge(rows: Sequence[Row]) -> Iterator[Promise]:
    """The average is near the true values in every draw."""
    for row in rows:
        kind = row.method.settings.get("method")
        if kind in BOUNDS:
            worst = max(row.values("rmse"))
            yield at_most(f"{row.method.name}, worst error of an average", worst, BOUNDS[kind])


GYM_DISCOUNT = 0.95
# Rewards after this many steps count for less than 1 % of the return.
HORIZON = 100
TEST_EPISODES = 50


class World(NamedTuple):
    """An environment, the policy in it, and how long its episodes are at most."""

    environment: str
    policy: Callable[[Array, np.random.Generator], float | int]
    steps: tuple[int, int]  # of an episode to learn from, and of one to test with
    settings: Mapping[str, Any]  # of the evaluator


def swing_up(state: Array, random: np.random.Generator) -> float:
    """Pump energy into the pendulum until it is nearly upright, then hold it there."""
    cosine, sine, velocity = state
    if cosine > 0.85 and abs(velocity) < 3.5:
        torque = -10 * np.arctan2(sine, cosine) - 3 * velocity
    else:
        energy = velocity**2 / 2 + 15 * (cosine - 1)  # 0 upright and at rest
        torque = -2.0 if velocity * energy > 0 else 2.0
    return float(np.clip(torque + 0.3 * random.normal(), -2, 2))


def rock(state: Array, random: np.random.Generator) -> float:
    """Push the car the way it is going."""
    return float(np.clip((1.0 if state[1] >= 0 else -1.0) + 0.1 * random.normal(), -1, 1))


def balance(state: Array, random: np.random.Generator) -> int:
    """Push the cart under the pole, with a hand that is not steady."""
    position, velocity, angle, turning = state
    lean = 0.1 * position + 0.3 * velocity + 2 * angle + 0.6 * turning
    return int(lean + 0.5 * random.normal() > 0)


WORLDS = {
    "cart_pole": World("CartPole-v1", balance, (500, 500), {}),
    # Reset after 80 steps, by when the pendulum stands: then there is little left to learn.
    "pendulum": World("Pendulum-v1", swing_up, (80, 200), {}),
    # One reward of 100 at the goal: a budget in proportion to the rewards' standard deviation would
    # be far above what most steps add.
    "mountain_car": World("MountainCarContinuous-v0", rock, (999, 999), {"budget": 0.01}),
}


def load_world(world: World, episodes: int, seed: int) -> Task:
    """Return transitions to learn from, and states of other episodes with their returns.

    States are standardised.
    """
    training = play(world, episodes, world.steps[0], seed)
    held_out = play(world, TEST_EPISODES, world.steps[1], seed + 1)
    states, rewards, following, terminal = map(np.concatenate, zip(*training, strict=True))
    test_states, observed = map(np.concatenate, zip(*map(returns, held_out), strict=True))
    scale = StandardScaler().fit(states).transform
    extra = {"next_states": scale(following), "terminal": terminal}
    return Task(world.environment, scale(states), rewards, scale(test_states), observed, extra)


def play(world: World, count: int, steps: int, seed: int) -> list[tuple[Array, ...]]:
    """Let the policy play; an episode that is cut off did not end in a terminal state."""
    try:
        import gymnasium
    except ImportError as error:
        raise MissingDataError(
            "This task needs gymnasium, which is not installed; install it with: "
            "pip install 'parsimon[gym]'."
        ) from error
    environment = gymnasium.make(world.environment, max_episode_steps=steps)
    random = np.random.default_rng(seed)
    episodes = []
    for number in range(count):
        state, _ = environment.reset(seed=seed if number == 0 else None)
        moves, over = [], False
        while not over:
            action: Any = world.policy(state, random)
            if isinstance(action, float):
                action = np.array([action], dtype=np.float32)
            following, reward, terminated, truncated, _ = environment.step(action)
            moves.append((state, float(reward), following, terminated))
            state, over = following, terminated or truncated
        columns, types = zip(*moves, strict=True), (float, float, float, bool)
        episodes.append(tuple(map(np.array, columns, types)))
    environment.close()
    return episodes


def returns(episode: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return the states from which a discounted return is known, and these returns."""
    states, rewards, _, terminal = episode
    totals = lfilter([1], [1, -GYM_DISCOUNT], rewards[::-1])[::-1]
    # What would come after the episode was cut off is not known.
    known = len(totals) if terminal[-1] else max(0, len(totals) - HORIZON)
    return states[:known], totals[:known]
