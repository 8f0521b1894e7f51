"""
Quantile bands
==============

The quantile loss learns what a share of the targets stays below. Three models, learned in one
pass, make a band that is wide where the noise is.
"""

import matplotlib.pyplot as plt
import numpy as np

from parsimon import POLKRegressor

random = np.random.default_rng(0)
x = random.uniform(0, 10, 3000)
y = np.sin(x) + 0.1 * (0.3 + x) ** 0.9 * random.normal(size=x.size)
at = np.linspace(0, 10, 300)[:, None]

quantiles = {}
for q in (0.05, 0.5, 0.95):
    model = POLKRegressor(loss=f"pinball({q})", random_state=0).fit(x[:, None], y)
    quantiles[q] = model.predict(at)

figure, ax = plt.subplots(figsize=(7, 4))
ax.scatter(x[::2], y[::2], s=4, color="0.7", label="half of the samples")
ax.fill_between(at[:, 0], quantiles[0.05], quantiles[0.95], alpha=0.35, label="5 % to 95 %")
ax.plot(at, quantiles[0.5], label=f"median ({model.model_order_} points)")
ax.legend()
plt.show()
