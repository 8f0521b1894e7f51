"""
A class that nobody has announced
=================================

After 2,300 samples a fourth kind of sample appears. No list of classes was given: a label that
was never seen adds an output, and the model knows it a few samples later.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from parsimon import POLKClassifier

X, y = make_blobs(8000, centers=[(-3, 0), (3, 0), (0, 3), (0, -2)], random_state=0)
names = np.array(["red", "green", "blue", "violet"])[y]
late = (y == 3) & (np.arange(8000) < 3000)
X, names = X[~late], names[~late]

model, right = POLKClassifier(random_state=0), []
for start in range(0, len(X), 50):
    block, labels = X[start : start + 50], names[start : start + 50]
    if start:
        right.append((model.predict(block) == labels).mean())
    model.partial_fit(block, labels)

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(50 * np.arange(1, len(right) + 1), 100 * np.array(right), lw=1)
ax.axvline(
    np.flatnonzero(names == "violet")[0], color="violet", ls="--", label="the first of a new class"
)
ax.set(xlabel="samples", ylabel="right in the next block, %")
ax.legend(loc="lower right")
plt.show()
