"""
The value of a policy
=====================

A walk on a line, with a reward that depends on where one is. ``PolicyEvaluator`` learns from
transitions alone what each place is worth; the truth is computed on a grid from the law of the
walk, which the model does not know.
"""

import matplotlib.pyplot as plt
import numpy as np

from parsimon import PolicyEvaluator

random = np.random.default_rng(0)
DISCOUNT = 0.9


def reward(x):
    return np.sin(2 * np.pi * x)


# The truth, on a grid: V = r + discount P V, with the chances P of going from place to place.
at = (np.arange(400) + 0.5) / 400
chances = sum(
    np.exp(-0.5 * ((place - at[:, None] - 0.03) / 0.1) ** 2) for place in (at, -at, 2 - at)
)
chances /= chances.sum(axis=1, keepdims=True)
truth = np.linalg.solve(np.eye(400) - DISCOUNT * chances, reward(at))

# What one sees: places, rewards, and the places that follow; the walk is reflected at both ends.
x = random.uniform(size=(5000, 1))
after = np.abs(x + 0.03 + 0.1 * random.normal(size=x.shape))
after = np.where(after > 1, 2 - after, after)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(at, truth, color="0.7", lw=4, label="truth")
for method in ("lstd", "td"):
    model = PolicyEvaluator(discount=DISCOUNT, method=method, random_state=0)
    model.fit(x, reward(x[:, 0]), after)
    value = model.predict(at[:, None])
    error = np.sqrt(np.mean((value - truth) ** 2))
    label = f'"{method}", {model.model_order_} points, {error:.2f} off'
    ax.plot(at, value, "--" if method == "td" else "-", label=label)
ax.set(xlabel="place", ylabel="value")
ax.legend()
plt.show()
