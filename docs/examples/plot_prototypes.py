"""
Which points speak for a prediction
===================================

A prediction is a sum over the points of the model, so it can be taken apart: these are the points
that contribute most to the label of each digit on the left, with what they contribute.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from parsimon import POLKClassifier
from parsimon.explain import prototypes

X, y = load_digits(return_X_y=True)
X = X / 16
model = POLKClassifier(max_points=120, random_state=0).fit(X[:1200], y[:1200])
asked = X[1200:1204]
found = prototypes(model, asked, n_prototypes=5)

figure, axes = plt.subplots(4, 6, figsize=(7, 5))
for row, (image, label) in enumerate(zip(asked, model.predict(asked))):
    axes[row, 0].imshow(image.reshape(8, 8), cmap="gray_r")
    axes[row, 0].set_title(f"predicted {label}", fontsize=9)
    most = zip(axes[row, 1:], found.points[row], found.contributions[row])
    for ax, point, value in most:
        ax.imshow(model.dictionary_[point].reshape(8, 8), cmap="Blues" if value > 0 else "Reds")
        ax.set_title(f"{value:+.2f}", fontsize=9)
for ax in axes.flat:
    ax.set_axis_off()
figure.tight_layout()
plt.show()
