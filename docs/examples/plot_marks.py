"""
Points of several kinds
=======================

One intensity for each mark, on a dictionary that all marks share, and so the probability of each
mark at any place.
"""

import matplotlib.pyplot as plt
import numpy as np

from parsimon import MarkedIntensity, SPPPOTIntensity

random = np.random.default_rng(0)
oaks = random.normal((0.35, 0.5), 0.12, (400, 2))
birches = random.normal((0.65, 0.5), (0.08, 0.2), (400, 2))
X = np.concatenate([oaks, birches])
marks = np.repeat(["oak", "birch"], 400)
inside = ((X > 0) & (X < 1)).all(axis=1)
X, marks = X[inside], marks[inside]

model = MarkedIntensity(SPPPOTIntensity(domain=[(0, 1), (0, 1)], random_state=0)).fit(X, marks)
axis = np.linspace(0.01, 0.99, 60)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
share = model.predict_proba(grid)[:, list(model.classes_).index("oak")].reshape(60, 60)

figure, ax = plt.subplots(figsize=(5.4, 4.4))
mesh = ax.pcolormesh(axis, axis, share, cmap="PRGn", vmin=0, vmax=1)
for mark, color in (("oak", "darkgreen"), ("birch", "indigo")):
    ax.scatter(*X[marks == mark].T, s=5, color=color, label=mark)
figure.colorbar(mesh, label="probability that a tree here is an oak")
ax.legend()
plt.show()
