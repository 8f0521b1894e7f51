"""
A support vector machine, compressed
====================================

``parsimon.compress`` takes a fitted model of scikit-learn and returns one with fewer points that
predicts almost the same, with a report that tells what is certified from what was measured.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import parsimon

X, y = load_digits(return_X_y=True)
X, y, X_test, y_test = X[:1200] / 16, y[:1200], X[1200:] / 16, y[1200:]
svc = SVC(gamma=0.1).fit(X, y)

sizes, accuracies, changed = [400, 200, 100, 50], [], []
for size in sizes:
    smaller, report = parsimon.compress(svc, max_points=size, X=X, y=y)
    accuracies.append(100 * smaller.score(X_test, y_test))
    changed.append(100 * (smaller.predict(X_test) != svc.predict(X_test)).mean())
print(report)

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.axhline(
    100 * svc.score(X_test, y_test), color="0.5", ls=":", label=f"SVC, {len(svc.support_)} vectors"
)
ax.plot(sizes, accuracies, "o-", label="compressed")
for size, accuracy, share in zip(sizes, accuracies, changed):
    ax.annotate(
        f"{share:.1f} % of labels\nchanged",
        (size, accuracy),
        xytext=(0, -28),
        textcoords="offset points",
        ha="center",
        fontsize=8,
    )
ax.set(xlabel="points", ylabel="accuracy on other digits, %", xlim=(0, 480), ylim=(85, 100))
ax.legend(loc="lower right")
plt.show()
