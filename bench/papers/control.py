"""How soon QLearner solves environments of Gymnasium, with the learning curve.

CartPole-v1 is solved if a hundred episodes in a row have a mean return of 475 or more,
MountainCar-v0 if it is -110 or more (Gymnasium's own thresholds); Acrobot-v1, on which nothing was
chosen, if it is -100 or more. An agent explores by actions that it holds for some steps, less and
less; then it takes the best ones. In the end the greedy policy, as it is and compressed, plays a
hundred other episodes. The exit code is 1 if a greedy policy of Q-learning does not solve the task.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import figures, machine, report
from bench.cli import MissingDataError, positive_int
from bench.figures import Panel
from bench.report import Column, Promise, Table, at_least, one, span, times
from bench.runner import Experiment, Figures, Method, Row, Run
from bench.tasks import Array
from parsimon import kernels

RUNS, TEST_EPISODES, IN_A_ROW = 3, 100, 20


class Game(NamedTuple):
    """An environment, what its states are divided by after a shift, and when it is solved."""

    environment: str
    shift: tuple[float, ...]
    scale: tuple[float, ...]
    solved: float
    episodes: int
    hold: int  # steps for which an exploring action is held, at most
    settings: Mapping[str, Any]  # of the learner


GAMES = {
    "cart_pole": Game(
        "CartPole-v1",
        (0.0, 0.0, 0.0, 0.0),
        (2.4, 2.0, 0.2, 2.0),
        475,
        150,
        8,
        {"kernel": kernels.Gaussian(0.5) + kernels.Constant()},
    ),
    "mountain_car": Game(
        "MountainCar-v0",
        (-0.3, 0.0),
        (0.9, 0.07),
        -110,
        150,
        1,
        {"kernel": kernels.Gaussian(0.2) + kernels.Constant()},
    ),
    "acrobot": Game(
        "Acrobot-v1",
        (0.0,) * 6,
        (1.0, 1.0, 1.0, 1.0, 6.0, 12.0),
        -100,
        150,
        1,
        {"kernel": kernels.Gaussian(0.5) + kernels.Constant()},
    ),
}
# Of the steps of an episode; it falls to 0 over the first half of all episodes.
EPSILON = 0.1
METHODS = ("q", "sarsa")
COLUMNS = (
    Column("episodes until 20 were good enough", "solved", span),
    Column("the last 20", "last", one(".1f")),
    Column("greedy", "greedy", one(".1f")),
    Column("worst run", "greedy", lambda values: f"{min(values):.1f}"),
    Column("points", "model_order", span),
    Column("compressed", "compressed", one(".1f")),
    Column("its points", "compressed_order", span),
    Column("transitions", "transitions", span),
    Column("CPU s", "cpu_seconds", one(".0f")),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--task", choices=tuple(GAMES), default="cart_pole")
    add("--runs", "--seeds", dest="runs", type=positive_int, help=f"{RUNS} by default")
    add("--episodes", dest="samples", type=positive_int, help="to learn from; no verdict")
    add("--plot", type=Path, metavar="FILE", help="draw the learning curves")
    report.add_json(parser)
    parser.set_defaults(out=None, quick=False)


def run(options: argparse.Namespace) -> int:
    game = GAMES[options.task]
    rows = experiment(options.task, options.samples or game.episodes).rows(options)
    title = f"{game.environment}, {times(len(rows[0].results))}: mean returns"
    Table.of_rows(title, rows, COLUMNS).show()
    if options.plot:
        figures.draw_panels(options.plot, [panel(game, row) for row in rows])
    return report.conclude(options, {game.environment: rows}, judge(rows, game))


def experiment(task: str, episodes: int) -> Experiment:
    game = GAMES[task]
    return Experiment(
        task,
        game.environment,
        [Method(f'"{each}"', "QLearner", {"method": each, **game.settings}) for each in METHODS],
        load=lambda seed, **_: game,
        train=learn,
        runs=RUNS,
        data={"episodes": episodes},
        offered={"episodes": episodes},
    )


class Player:
    """One environment, and an agent that plays in it."""

    def __init__(self, game: Game, seed: int) -> None:
        try:
            import gymnasium
        except ImportError as error:
            raise MissingDataError(
                "This task needs gymnasium, which is not installed; install it with: "
                "pip install 'parsimon[gym]'."
            ) from error
        self.game, self.random = game, np.random.default_rng(seed)
        self.world: Any = gymnasium.make(game.environment)
        self.world.reset(seed=seed)
        self.actions = int(self.world.action_space.n)

    def scaled(self, state: Array) -> Array:
        return (np.asarray(state, dtype=float) - self.game.shift) / self.game.scale

    def episode(self, best: Any, explore: float) -> tuple[list[tuple[Any, ...]], float]:
        """Play an episode; return its transitions, with the next actions, and its return."""
        moves, total, held, left = [], 0.0, 0, 0
        state, over = self.scaled(self.world.reset()[0]), False
        action = None
        while not over:
            if action is None:
                action = int(best(state[None])[0])
            following, reward, terminated, truncated, _ = self.world.step(action)
            following = self.scaled(following)
            if left > 0:
                left, ahead = left - 1, held
            elif self.random.random() < 2 * explore / (1 + self.game.hold):
                ahead = held = int(self.random.integers(self.actions))
                left = int(self.random.integers(self.game.hold))
            else:
                ahead = int(best(following[None])[0])
            moves.append((state, action, float(reward), following, terminated, ahead))
            total += float(reward)
            state, action, over = following, ahead, terminated or truncated
        return moves, total


def learn(run: Run) -> Figures:
    """Play and learn, an episode at a time; then let the greedy policy play."""
    game, episodes = run.task, run.offered["episodes"]
    player, returns, visited = Player(game, run.seed), [], []
    model = run.method.make({"n_actions": player.actions, "random_state": run.seed})
    with machine.Stopwatch() as watch:
        for number in range(episodes):
            explore = EPSILON * max(0.0, 1 - 2 * number / episodes)
            fitted = hasattr(model, "model_order_")
            draw = lambda states: player.random.integers(player.actions, size=len(states))  # noqa: E731
            moves, total = player.episode(model.act if fitted else draw, explore)
            *columns, after = map(np.array, zip(*moves, strict=True))
            model.partial_fit(*columns, after if model.method == "sarsa" else None)
            returns.append(total)
            visited.append(columns[0])
    rows = np.concatenate(visited[-TEST_EPISODES:])
    small = model.greedy_policy(rows[:: max(1, len(rows) // 5000)], agreement=0.98)
    return {
        "returns": returns,
        "solved": solved_after(returns, game.solved),
        "last": float(np.mean(returns[-IN_A_ROW:])),
        "greedy": tested(game, run.seed, model.act),
        "compressed": tested(game, run.seed, small.act),
        "compressed_order": small.model_order,
        "model_order": model.model_order_,
        "transitions": sum(map(len, visited)),
        **watch.figures,
    }


def solved_after(returns: Sequence[float], threshold: float) -> float:
    """Return after how many episodes the latest were good enough; infinite if never."""
    for end in range(IN_A_ROW, len(returns) + 1):
        if np.mean(returns[end - IN_A_ROW : end]) >= threshold:
            return end
    return float("inf")


def tested(game: Game, seed: int, act: Any) -> float:
    """Return the mean return of other episodes, without exploring."""
    player = Player(game, 1000 + seed)
    return float(np.mean([player.episode(act, 0.0)[1] for _ in range(TEST_EPISODES)]))


def panel(game: Game, row: Row) -> Panel:
    """Return the learning curves of all runs, and the threshold."""
    curves = {}
    for number, returns in enumerate(row.values("returns"), start=1):
        smooth = np.convolve(returns, np.ones(10) / 10, "valid")
        curves[f"run {number}"] = (np.arange(10, len(returns) + 1), smooth)
    ends = [10, len(row.values("returns")[0])]
    curves["solved"] = (ends, 2 * [game.solved])
    return Panel(f"{game.environment}, {row.method.name}: mean of 10", curves, "episode")


def judge(rows: Sequence[Row], game: Game) -> Iterator[Promise]:
    """In every run, the greedy policy of Q-learning solves the task."""
    for row in rows:
        if row.method.settings["method"] == "q":
            worst = min(row.values("greedy"))
            yield at_least("Q-learning, worst mean return of a greedy policy", worst, game.solved)
