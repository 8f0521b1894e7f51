"""The value function of a policy in a Gymnasium environment, beside returns that were observed.

A fixed policy that solves the task plays some episodes, from which PolicyEvaluator learns. In
other episodes, the discounted sums of rewards from each state on are what V should predict. Needs
gymnasium (pip install 'parsimon[gym]').
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import figures, machine, report
from bench.cli import MissingDataError, positive_int
from parsimon import PolicyEvaluator

Array = NDArray[np.float64]

DISCOUNT = 0.95
# Rewards after so many steps count for less than 1 % of the return.
HORIZON = 100
TEST_EPISODES = 50


@dataclass(frozen=True)
class Task:
    """An environment, the policy in it, and how long its episodes are.

    `plane` makes two coordinates of a state for the picture, and `back` a state of two coordinates.
    """

    environment: str
    policy: Callable[[Array, np.random.Generator], float]
    train_steps: int
    test_steps: int
    labels: tuple[str, str]
    plane: Callable[[Array], Array]
    back: Callable[[Array], Array]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Episode:
    states: Array
    rewards: Array
    next_states: Array
    terminal: NDArray[np.bool_]


@dataclass(frozen=True)
class Result:
    """Of one method: how V and the returns of held-out episodes agree."""

    method: str
    correlation: float
    rmse: float
    model_order: int
    tracker_order: int
    seconds: float


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


def angle_and_velocity(states: Array) -> Array:
    return np.column_stack([np.arctan2(states[:, 1], states[:, 0]), states[:, 2]])


def pendulum_state(plane: Array) -> Array:
    return np.column_stack([np.cos(plane[:, 0]), np.sin(plane[:, 0]), plane[:, 1]])


TASKS = {
    # Reset after 80 steps, by when the pendulum stands: then there is little left to learn.
    "pendulum": Task(
        "Pendulum-v1",
        swing_up,
        train_steps=80,
        test_steps=200,
        labels=("angle", "angular velocity"),
        plane=angle_and_velocity,
        back=pendulum_state,
    ),
    # One reward of 100 at the goal: a budget in proportion to the rewards' standard deviation would
    # be far above what most steps add.
    "mountain_car": Task(
        "MountainCarContinuous-v0",
        rock,
        train_steps=999,
        test_steps=999,
        labels=("position", "velocity"),
        plane=np.asarray,
        back=np.asarray,
        settings={"budget": 0.01},
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", choices=TASKS, default="pendulum")
    parser.add_argument("--method", choices=("td", "gtd"), nargs="+", default=["td", "gtd"])
    parser.add_argument("--episodes", type=positive_int, default=1000, help="to learn from")
    parser.add_argument("--epochs", type=positive_int, default=5, help="over their transitions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw V, and it against returns")


def run(options: argparse.Namespace) -> int:
    task = TASKS[options.task]
    training = play(task, options.episodes, task.train_steps, options.seed)
    held_out = play(task, TEST_EPISODES, task.test_steps, options.seed + 1)
    joined = Episode(*join(map(parts_of, training)))
    states, observed = join(map(returns, held_out))
    print(
        f"{task.environment}: {len(joined.rewards):,} transitions of {options.episodes} episodes, "
        f"discount {DISCOUNT:g}.\n{len(observed):,} returns of {TEST_EPISODES} other episodes, "
        f"standard deviation {observed.std():.2f}."
    )
    mean, sd = joined.states.mean(axis=0), joined.states.std(axis=0)
    models, results = {}, []
    with machine.one_thread():
        for method in options.method:
            model, result = learn(method, task, joined, (mean, sd), options, (states, observed))
            models[method] = model
            results.append(result)
    show(results)
    if options.plot:
        method = options.method[0]
        draw(task, models[method], (mean, sd), (states, observed), options.plot)
    if options.json:
        content = {
            "command": "gym_policy",
            "environment": task.environment,
            "transitions": len(joined.rewards),
            "sd_of_returns": float(observed.std()),
            "results": [asdict(result) for result in results],
        }
        report.write_json(options.json, {**content, **machine.environment()})
    return 0


def play(task: Task, count: int, steps: int, seed: int) -> list[Episode]:
    """Let the policy play; an episode that is cut off did not end in a terminal state."""
    try:
        import gymnasium
    except ImportError as error:
        raise MissingDataError(
            "gym_policy needs gymnasium, which is not installed; install it with: "
            "pip install 'parsimon[gym]'."
        ) from error
    environment = gymnasium.make(task.environment, max_episode_steps=steps)
    random = np.random.default_rng(seed)
    episodes = []
    for number in range(count):
        state, _ = environment.reset(seed=seed if number == 0 else None)
        moves, over = [], False
        while not over:
            action = np.array([task.policy(state, random)], dtype=np.float32)
            following, reward, terminated, truncated, _ = environment.step(action)
            moves.append((state, float(reward), following, terminated))
            state, over = following, terminated or truncated
        before, rewards, after, terminal = zip(*moves, strict=True)
        episodes.append(
            Episode(
                np.array(before, dtype=float),
                np.array(rewards),
                np.array(after, dtype=float),
                np.array(terminal, dtype=bool),
            )
        )
    environment.close()
    return episodes


def join(parts: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return, of each kind of array, those of all episodes one after the other."""
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def parts_of(episode: Episode) -> tuple[Array, ...]:
    return episode.states, episode.rewards, episode.next_states, episode.terminal


def returns(episode: Episode) -> tuple[Array, Array]:
    """Return the states from which a discounted return is known, and these returns."""
    total, totals = 0.0, np.empty(len(episode.rewards))
    for t in reversed(range(len(totals))):
        total = episode.rewards[t] + DISCOUNT * total
        totals[t] = total
    # What would come after the episode was cut off is not known.
    known = len(totals) if episode.terminal[-1] else max(0, len(totals) - HORIZON)
    return episode.states[:known], totals[:known]


def learn(
    method: str,
    task: Task,
    training: Episode,
    scale: tuple[Array, Array],
    options: argparse.Namespace,
    test: tuple[Array, Array],
) -> tuple[PolicyEvaluator, Result]:
    mean, sd = scale
    model = PolicyEvaluator(
        method,
        discount=DISCOUNT,
        gamma=1.0,
        epochs=options.epochs,
        random_state=options.seed,
        **task.settings,
    )
    with machine.Stopwatch() as watch:
        model.fit(
            (training.states - mean) / sd,
            training.rewards,
            (training.next_states - mean) / sd,
            training.terminal,
        )
    states, observed = test
    predicted = model.predict((states - mean) / sd)
    return model, Result(
        method,
        correlation=float(np.corrcoef(predicted, observed)[0, 1]),
        rmse=float(np.sqrt(np.square(predicted - observed).mean())),
        model_order=model.model_order_,
        tracker_order=model.tracker_order_,
        seconds=watch.elapsed.wall,
    )


def show(results: Sequence[Result]) -> None:
    rows = [
        [
            f'"{result.method}"',
            f"{result.correlation:.3f}",
            f"{result.rmse:.2f}",
            f"{result.model_order}",
            f"{result.tracker_order}",
            f"{result.seconds:.1f}",
        ]
        for result in results
    ]
    report.print_table(["", "correlation", "RMSE", "points", "tracker", "s"], rows)


def draw(
    task: Task,
    model: PolicyEvaluator,
    scale: tuple[Array, Array],
    test: tuple[Array, Array],
    path: Path,
) -> None:
    """Draw V over the plane of the states, and beside the returns that were observed."""
    sheet = figures.new_sheet(path, 2, width=4.5, height=3.9)
    if sheet is None:
        return
    mean, sd = scale
    states, observed = test
    visited = task.plane(states)
    axes_values = [np.linspace(*np.quantile(each, (0, 1)), 150) for each in visited.T]
    mesh = np.stack(np.meshgrid(*axes_values), axis=-1)
    plane = mesh.reshape(-1, 2)
    values = model.predict((task.back(plane) - mean) / sd).reshape(mesh.shape[:2])
    left, right = sheet.subplots(1, 2)
    shown = left.pcolormesh(*axes_values, values, shading="auto", rasterized=True)
    sheet.colorbar(shown, ax=left, label="V")
    left.plot(*visited.T, ",", color="white", alpha=0.5)
    left.set(xlabel=task.labels[0], ylabel=task.labels[1], title=task.environment)
    predicted = model.predict((states - mean) / sd)
    right.plot(observed, predicted, ".", markersize=2)
    right.axline((observed.mean(), observed.mean()), slope=1, color="black", linewidth=1)
    right.set(xlabel="return", ylabel="V", title="held-out episodes")
    figures.save(sheet, path)
