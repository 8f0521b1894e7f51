"""
How sure, and how far from anything known
=========================================

Regression knows its standard deviation, as a Gaussian process does; and every model knows how far
a sample is from all it has seen: ``distance`` is 0 among the points of the model and 1 where none
is near.
"""

import matplotlib.pyplot as plt
import numpy as np

from parsimon import POLKRegressor

random = np.random.default_rng(0)
x = np.concatenate([random.uniform(0, 4, 150), random.uniform(7, 10, 150)])
y = np.sin(x) + 0.2 * random.normal(size=x.size)
model = POLKRegressor(random_state=0).fit(x[:, None], y)

at = np.linspace(-3, 13, 400)[:, None]
mean, deviation = model.predict(at, return_std=True)
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), height_ratios=(3, 1))
top.scatter(x, y, s=8, color="0.6")
top.plot(at, mean)
top.fill_between(at[:, 0], mean - 2 * deviation, mean + 2 * deviation, alpha=0.3)
top.set_ylabel("prediction")
bottom.plot(at, model.distance(at))
bottom.set_ylabel("distance")
plt.show()
