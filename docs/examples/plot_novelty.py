"""
Novelties
=========

What lies inside the lines is like the samples of the stream; the stars are not, and
``POLKOneClass`` says so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from parsimon import POLKOneClass

X, _ = make_moons(1500, noise=0.08, random_state=0)
strange = np.random.default_rng(1).uniform((-1.8, -1.2), (2.8, 1.8), (25, 2))
model = POLKOneClass(contamination=0.02, random_state=0).fit(X)

axis_x, axis_y = np.linspace(-2, 3, 200), np.linspace(-1.5, 2, 160)
grid = np.stack(np.meshgrid(axis_x, axis_y), axis=-1).reshape(-1, 2)
value = model.decision_function(grid).reshape(160, 200)
told = model.predict(strange) == -1

figure, ax = plt.subplots(figsize=(6.5, 4.4))
ax.contourf(axis_x, axis_y, value, levels=12, cmap="Blues")
ax.contour(axis_x, axis_y, value, levels=[0], colors="darkred")
ax.scatter(*X.T, s=4, color="0.3")
ax.scatter(*strange[told].T, marker="*", s=80, color="orange", edgecolors="black", label="novel")
ax.scatter(
    *strange[~told].T, marker="o", s=30, color="white", edgecolors="black", label="not novel"
)
ax.set_title(f"{model.model_order_} points")
ax.legend()
plt.show()
