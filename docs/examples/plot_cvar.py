"""
Keep the worst losses down
==========================

Noise that grows with x. Least squares spends its effort on the mean; the CVaR of the loss is the
mean of its worst tenth, and a model that minimises it pays with a little of the mean for a
shorter tail.
"""

import matplotlib.pyplot as plt
import numpy as np

from parsimon import COLKRegressor
from parsimon.metrics import cvar

random = np.random.default_rng(3)


def draw(count):
    x = random.uniform(-1, 1, count)
    noise = random.exponential(size=count) * (0.1 + (x > 0) * 0.9)
    return x[:, None], 2 * x + np.sin(6 * x) + noise


X, y = draw(4000)
X_test, y_test = draw(20_000)
losses = {}
for risk in (None, "cvar"):
    model = COLKRegressor(risk=risk, risk_weight=1.0, random_state=0).fit(X, y)
    losses[risk] = (model.predict(X_test) - y_test) ** 2

figure, ax = plt.subplots(figsize=(6.5, 4))
for risk, each in losses.items():
    label = f"risk={risk!r}: mean {each.mean():.2f}, CVaR {cvar(each, level=0.9):.2f}"
    ax.semilogy(np.linspace(0, 100, 500), np.quantile(each, np.linspace(0, 1, 500)), label=label)
ax.set(xlabel="percentile of the squared loss", xlim=(80, 100), ylim=(0.3, None))
ax.legend()
plt.show()
