"""
Error against the number of points
==================================

A support vector machine decides by itself how many vectors it keeps. Here you say how many, and
the model is the best that ``fit`` finds of that size.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from parsimon import POLKClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.4, random_state=0)

sizes, errors = (15, 30, 60, 120, 240), []
for size in sizes:
    model = POLKClassifier(max_points=size, random_state=0).fit(X, y)
    errors.append(100 - 100 * model.score(X_test, y_test))
svc = SVC().fit(X, y)
svc_error = 100 - 100 * svc.score(X_test, y_test)

figure, ax = plt.subplots(figsize=(6, 4))
ax.semilogx(sizes, errors, "o-", label="POLKClassifier(max_points=...)")
ax.scatter([len(svc.support_)], [svc_error], color="black", marker="s", label="SVC()", zorder=3)
ax.set_xticks([*sizes, len(svc.support_)], labels=[*map(str, sizes), str(len(svc.support_))])
ax.minorticks_off()
ax.set(xlabel="points", ylabel="test error, %", ylim=(0, None))
ax.legend()
plt.show()
