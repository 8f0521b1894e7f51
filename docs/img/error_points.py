"""Error against the number of points, beside SVC and river: the picture of README.

From the root of the repository; load_usps says where the data may be:

    python docs/img/error_points.py docs/img/error_points.png

River's forests have no points: a line says what they reach, and how large they are.
"""

import pickle
import sys

import matplotlib.pyplot as plt
import numpy as np
from river import forest, neighbors
from sklearn.svm import SVC

from parsimon import POLKClassifier
from parsimon.datasets import load_usps


def stream(model, X, y, X_test, y_test):
    """Learn one sample after the other; return the error in percent and the size in megabytes."""
    for x, label in zip(X.tolist(), y.tolist()):
        model.learn_one(dict(enumerate(x)), label)
    found = [model.predict_one(dict(enumerate(x))) for x in X_test.tolist()]
    return 100 * np.mean(np.array(found) != y_test), len(pickle.dumps(model)) / 1e6


def draw(path, train, test, sizes=(25, 50, 100, 200, 400, 800)):
    order = np.random.default_rng(0).permutation(len(train[0]))
    X, y = train[0][order], train[1][order]
    svc, ours, nearest = SVC().fit(X, y), [], []
    for size in sizes:
        model = POLKClassifier(max_points=size, random_state=0)
        for start in range(0, len(X), 200):
            model.partial_fit(X[start : start + 200], y[start : start + 200])
        ours.append((model.model_order_, 100 - 100 * model.score(*test)))
        window = neighbors.LazySearch(window_size=size)
        nearest.append(stream(neighbors.KNNClassifier(engine=window), X, y, *test)[0])

    figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
    ax.semilogx(*zip(*ours), "o-", lw=2, label="parsimon, one pass")
    ax.semilogx(sizes, nearest, "v-", color="tab:green", label="river, KNNClassifier")
    for name, color in (("ARFClassifier", "tab:red"), ("AMFClassifier", "tab:orange")):
        error, size = stream(getattr(forest, name)(seed=1), X, y, *test)
        print(f"{name}: {error:.1f} %, {size:.0f} MB")
        label = f"river, {name}: no points, {size:.0f} MB"
        ax.axhline(error, ls="--", color=color, label=label)
    error = 100 - 100 * svc.score(*test)
    ax.plot(len(svc.support_), error, "ks", label="scikit-learn, SVC(), all data at once")
    print("points, error:", [*ours], (len(svc.support_), error), nearest)
    ticks = [*sizes, len(svc.support_)]
    ax.set_xticks(ticks, labels=[f"{each:,}" for each in ticks])
    ax.minorticks_off()
    ax.set(xlabel="points of the model", ylabel="test error, %", ylim=(0, None))
    ax.set_title(f"{len(X):,} handwritten digits (USPS)", loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(
        sys.argv[1],
        load_usps(return_X_y=True),
        load_usps(subset="test", return_X_y=True),
    )
