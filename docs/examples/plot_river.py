"""
Beside river, on its own stream
===============================

The images of river's ImageSegments, one after the other: each is predicted before it is learned.
Their features are counts and levels, which trees look at one at a time: river's Mondrian forest is
ahead of the default kernel. The Laplacian kernel looks at features one at a time too, and is as
good.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from river import datasets, forest, preprocessing

from parsimon import river

stream = list(datasets.ImageSegments())
models = {
    "parsimon": preprocessing.StandardScaler() | river.Classifier(),
    "parsimon, Laplacian": preprocessing.MinMaxScaler() | river.Classifier(kernel="laplacian"),
    "river, AMFClassifier": preprocessing.MinMaxScaler() | forest.AMFClassifier(seed=1),
    "river, ARFClassifier": preprocessing.StandardScaler() | forest.ARFClassifier(seed=1),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, model in models.items():
    right, start = [], time.process_time()
    for x, y in stream:
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    each = 1e6 * (time.process_time() - start) / len(stream)
    running = np.cumsum(right) / np.arange(1, len(right) + 1)
    ax.plot(100 * running, label=f"{name}: {100 * running[-1]:.1f} %, {each:.0f} us a sample")
ax.set(xlabel="samples", ylabel="accuracy so far, %", ylim=(60, 100))
ax.legend(loc="lower right")
plt.show()
