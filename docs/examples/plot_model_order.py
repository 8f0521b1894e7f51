"""
The size of a model along a stream
==================================

Kernel machines that keep all they need grow with the data. With a budget, the number of points
follows the function: it rises, and then stays.
"""

import matplotlib.pyplot as plt
import numpy as np

from parsimon import POLKClassifier
from parsimon.datasets import make_multidist

X, y = make_multidist(30_000, random_state=0)
figure, ax = plt.subplots(figsize=(6.5, 4))
for parsimony in (0.16, 0.04, 0.01, 0.0025):
    model = POLKClassifier(
        solver="sgd", learning_rate=6.0, parsimony=parsimony, regularization=1e-6, gamma=1 / 1.2
    )
    for start in range(0, len(X), 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000])
    trace = model.trace_
    ax.semilogx(
        np.asarray(trace["samples"]),
        trace["model_order"],
        label=f"parsimony={parsimony:g}",
    )
ax.set(xlabel="samples", ylabel="points")
ax.legend()
plt.show()
