"""
What a prediction costs
=======================

The time of a prediction is proportional to the number of points. A support vector machine keeps
more of them the more it has seen, and its time grows with the data; here the number of points is
given, and the time stays.
"""

import time

import matplotlib.pyplot as plt
from sklearn.svm import SVC

from parsimon import POLKClassifier
from parsimon.datasets import make_multidist

X, y = make_multidist(10_000, random_state=0)
asked = X[8000:]


def microseconds(model):
    """Return the least processor time of five tries."""
    taken = []
    for _ in range(5):
        start = time.process_time()
        model.predict(asked)
        taken.append(time.process_time() - start)
    return 1e6 * min(taken) / len(asked)


sizes, times = (500, 1000, 2000, 4000, 8000), {"SVC()": [], "POLKClassifier(max_points=20)": []}
points = {name: [] for name in times}
for size in sizes:
    svc = SVC().fit(X[:size], y[:size])
    ours = POLKClassifier(max_points=20, random_state=0).fit(X[:size], y[:size])
    for name, model, kept in zip(times, (svc, ours), (len(svc.support_), ours.model_order_)):
        times[name].append(microseconds(model))
        points[name].append(kept)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, each in times.items():
    ax.loglog(sizes, each, "o-", label=name)
    for size, value, kept in zip(sizes, each, points[name]):
        where = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
        ax.annotate(f"{kept:,} points", (size, value), **where)
ax.set_xticks(sizes, labels=[f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.set(xlabel="samples learned from", ylabel="microseconds a prediction")
ax.margins(0.12, 0.15)
ax.legend(loc="center right")
plt.show()
