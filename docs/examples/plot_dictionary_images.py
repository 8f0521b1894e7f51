"""
The dictionary of handwritten digits
====================================

A kernel machine on images is made of images. These are the points that a model with at most 60 of
them keeps of 1,200 digits: mostly those that are hard to tell apart.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from parsimon import POLKClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
model = POLKClassifier(max_points=60, random_state=0).fit(X[:1200], y[:1200])
accuracy = model.score(X[1200:], y[1200:])

figure, axes = plt.subplots(5, 12, figsize=(8, 3.8))
for ax, image in zip(axes.flat, model.dictionary_):
    ax.imshow(image.reshape(8, 8), cmap="gray_r")
for ax in axes.flat:
    ax.set_axis_off()
figure.suptitle(f"{model.model_order_} points, {100 * accuracy:.1f} % of other digits are right")
plt.show()
