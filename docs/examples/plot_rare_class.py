"""
A rare class
============

One sample in a hundred is of the second class. Counted alike, the rare ones are given up where
the classes overlap; ``class_weight="balanced"`` weighs them by how rare they are in the stream so
far.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import balanced_accuracy_score

from parsimon import POLKClassifier
from parsimon.plotting import DecisionSurfaceDisplay

random = np.random.default_rng(0)


def draw(count):
    y = (random.random(count) < 0.01).astype(int)
    X = random.normal(size=(count, 2))
    X[y == 1] = 0.5 * X[y == 1] + (1.7, 0)
    return X, y


X, y = draw(10_000)
X_test, y_test = draw(50_000)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, weight in zip(axes, (None, "balanced")):
    model = POLKClassifier(class_weight=weight, random_state=0)
    for start in range(0, len(X), 500):
        model.partial_fit(X[start : start + 500], y[start : start + 500])
    score = balanced_accuracy_score(y_test, model.predict(X_test))
    DecisionSurfaceDisplay.from_estimator(model, X[:3000], y[:3000], ax=ax)
    ax.set_title(f"class_weight={weight!r}\nbalanced accuracy {score:.2f}")
plt.show()
