"""Environments of Gymnasium, a policy that solves each, and the returns that it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bench.cli import MissingDataError
from bench.tasks import Array, Task

DISCOUNT = 0.95
# Rewards after this many steps count for less than 1 % of the return.
HORIZON = 100
TEST_EPISODES = 50


@dataclass(frozen=True)
class World:
    """An environment, the policy in it, and how long its episodes are at most.

    `plane` makes two coordinates of a state for the picture, and `back` a state of two coordinates.
    """

    environment: str
    policy: Callable[[Array, np.random.Generator], float]
    steps: tuple[int, int]  # of an episode to learn from, and of one to test with
    labels: tuple[str, str]
    plane: Callable[[Array], Array] = np.asarray
    back: Callable[[Array], Array] = np.asarray
    settings: Mapping[str, Any] = field(default_factory=dict)


class Episode(NamedTuple):
    states: Array
    rewards: Array
    next_states: Array
    terminal: Array


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


ANGLES, POSITIONS = ("angle", "angular velocity"), ("position", "velocity")
WORLDS = {
    # Reset after 80 steps, by when the pendulum stands: then there is little left to learn.
    "pendulum": World(
        "Pendulum-v1", swing_up, (80, 200), ANGLES, angle_and_velocity, pendulum_state
    ),
    # One reward of 100 at the goal: a budget in proportion to the rewards' standard deviation would
    # be far above what most steps add.
    "mountain_car": World(
        "MountainCarContinuous-v0", rock, (999, 999), POSITIONS, settings={"budget": 0.01}
    ),
}


def load(world: World, episodes: int, seed: int) -> Task:
    """Return transitions to learn from, and states of other episodes with their returns.

    States are standardised; `extra` has what it takes to do that to others, too.
    """
    training = play(world, episodes, world.steps[0], seed)
    held_out = play(world, TEST_EPISODES, world.steps[1], seed + 1)
    states, rewards, following, terminal = map(np.concatenate, zip(*training, strict=True))
    test_states, observed = map(np.concatenate, zip(*map(returns, held_out), strict=True))
    mean, sd = states.mean(axis=0), states.std(axis=0)

    def scaled(states: Array) -> Array:
        return (states - mean) / sd

    extra = {"next_states": scaled(following), "terminal": terminal, "scaled": scaled}
    extra["visited"] = world.plane(test_states)
    return Task(world.environment, scaled(states), rewards, scaled(test_states), observed, extra)


def play(world: World, count: int, steps: int, seed: int) -> list[Episode]:
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
            action = np.array([world.policy(state, random)], dtype=np.float32)
            following, reward, terminated, truncated, _ = environment.step(action)
            moves.append((state, float(reward), following, terminated))
            state, over = following, terminated or truncated
        columns, types = zip(*moves, strict=True), (float, float, float, bool)
        episodes.append(Episode(*map(np.array, columns, types)))
    environment.close()
    return episodes


def returns(episode: Episode) -> tuple[Array, Array]:
    """Return the states from which a discounted return is known, and these returns."""
    total, totals = 0.0, np.empty(len(episode.rewards))
    for t in reversed(range(len(totals))):
        total = episode.rewards[t] + DISCOUNT * total
        totals[t] = total
    # What would come after the episode was cut off is not known.
    known = len(totals) if episode.terminal[-1] else max(0, len(totals) - HORIZON)
    return episode.states[:known], totals[:known]


def draw(world: World, task: Task, model: Any, both: Sequence[Any]) -> None:
    """Draw V over the plane of the states, and beside the returns that were observed."""
    left, right = both
    visited, observed = task.extra["visited"], task.y_test
    axes_values = [np.linspace(*np.quantile(each, (0, 1)), 150) for each in visited.T]
    mesh = np.stack(np.meshgrid(*axes_values), axis=-1)
    states = task.extra["scaled"](world.back(mesh.reshape(-1, 2)))
    values = model.predict(states).reshape(mesh.shape[:2])
    shown = left.pcolormesh(*axes_values, values, shading="auto", rasterized=True)
    left.figure.colorbar(shown, ax=left, label="V")
    left.plot(*visited.T, ",", color="white", alpha=0.5)
    left.set(xlabel=world.labels[0], ylabel=world.labels[1], title=world.environment)
    right.plot(observed, model.predict(task.X_test), ".", markersize=2)
    right.axline((observed.mean(), observed.mean()), slope=1, color="black", linewidth=1)
    right.set(xlabel="return", ylabel="V", title="held-out episodes")
