"""
A decision surface along a stream
=================================

The model sees each sample once. Its regions take shape within a few hundred samples, and then the
number of points (circles) stays where it is: it follows the shape of the classes, not the length
of the stream.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

from parsimon import POLKClassifier
from parsimon.datasets import make_multidist

X, y = make_multidist(4000, random_state=1)
x_axis = np.linspace(X[:, 0].min(), X[:, 0].max(), 120)
y_axis = np.linspace(X[:, 1].min(), X[:, 1].max(), 120)
grid = np.stack(np.meshgrid(x_axis, y_axis), axis=-1).reshape(-1, 2)

model = POLKClassifier(random_state=0)
frames, start = [], 0
for end in (25, 50, 100, 200, 400, 800, 1500, 2500, 4000):
    model.partial_fit(X[start:end], y[start:end])
    frames.append((end, model.predict(grid).reshape(120, 120), model.dictionary_.copy()))
    start = end

figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")


def draw(frame):
    seen, regions, points = frames[frame]
    ax.clear()
    ax.pcolormesh(x_axis, y_axis, regions, cmap="Pastel1", vmin=0, vmax=8)
    latest = slice(max(0, seen - 400), seen)
    ax.scatter(*X[latest].T, c=y[latest], s=6, cmap="Set1", vmin=0, vmax=8)
    ax.scatter(*points.T, s=45, facecolors="none", edgecolors="black")
    ax.set_title(f"{seen:,} samples seen, {len(points)} points kept")
    ax.set_axis_off()


animation = FuncAnimation(figure, draw, frames=len(frames), interval=900)
plt.show()
