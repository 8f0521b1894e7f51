"""
Learning to balance a pole
==========================

A cart on a track has a pole on it, and is pushed left or right fifty times a second. ``QLearner``
plays, and learns after each episode, which ends when the pole falls, when the cart leaves the
track, or after 200 steps. Three runs of each method, and their medians: SARSA, which learns what
its own policy is worth, balances the pole after some 25 episodes, Q-learning after some 40. Both
explore less and less, and no more after half of the episodes; with 50 episodes in all that is too
early for Q-learning, and most of its runs stay near 150 steps.
"""

import matplotlib.pyplot as plt
import numpy as np

from parsimon import QLearner, kernels

EPISODES, STEPS, HOLD = 60, 200, 8
SCALE = np.array([2.4, 2.0, 0.2, 2.0])  # of position, speed, angle and its rate


def push(state, right):
    """Return the state a fiftieth of a second later, and whether that is the end."""
    _, speed, angle, turning = state
    drive = ((10.0 if right else -10.0) + 0.05 * turning**2 * np.sin(angle)) / 1.1
    fall = 9.8 * np.sin(angle) - np.cos(angle) * drive
    fall /= 0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1)
    slide = drive - 0.05 * fall * np.cos(angle) / 1.1
    after = state + 0.02 * np.array([speed, slide, turning, fall])
    return after, abs(after[0]) > 2.4 or abs(after[2]) > 0.2095


def play(choose, random, explore):
    """Play an episode; now and then an action is drawn, and held for some steps."""
    state, moves = random.uniform(-0.05, 0.05, 4), []
    action, over, drawn, held = choose(state), False, 0, 0
    while not over and len(moves) < STEPS:
        after, over = push(state, action)
        if held:
            following, held = drawn, held - 1
        elif random.random() < explore:
            drawn, held = random.integers(2), random.integers(HOLD)
            following = drawn
        else:
            following = choose(after)
        moves.append((state / SCALE, action, 1.0, after / SCALE, over, following))
        state, action = after, following
    return [np.array(each) for each in zip(*moves)]


def learn(method, seed):
    random, lengths = np.random.default_rng(seed), []
    kernel = kernels.Gaussian(0.5) + kernels.Constant()
    model = QLearner(n_actions=2, method=method, kernel=kernel, random_state=seed)

    def choose(state):
        return model.act(state[None] / SCALE)[0] if lengths else random.integers(2)

    for episode in range(EPISODES):
        explore = 0.02 * max(0, 1 - 2 * episode / EPISODES)
        *transitions, following = play(choose, random, explore)
        model.partial_fit(*transitions, following if method == "sarsa" else None)
        lengths.append(len(following))
    return lengths, model.model_order_


figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for method, color in (("sarsa", "tab:blue"), ("q", "tab:orange")):
    runs, points = zip(*(learn(method, seed) for seed in range(3)))
    ax.plot(np.transpose(runs), color=color, lw=0.7, alpha=0.6)
    label = f'method="{method}", {min(points)} to {max(points)} points'
    ax.plot(np.median(runs, axis=0), color=color, lw=2, label=label)
ax.set(xlabel="episodes", ylabel="steps until the end")
ax.legend(loc="lower right")
plt.show()
