"""
What each feature contributes
=============================

Shapley values of a kernel machine whose kernel is a product over the features are exact and
quick: no sampling, no surrogate model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from parsimon import POLKRegressor
from parsimon.explain import shapley_values

data = load_diabetes()
X = StandardScaler().fit_transform(data.data)
model = POLKRegressor(random_state=0).fit(X, data.target)
shares = shapley_values(model, X[:200])

order = np.argsort(np.abs(shares.values).mean(axis=0))
figure, ax = plt.subplots(figsize=(6.5, 4.2))
for row, feature in enumerate(order):
    jitter = np.random.default_rng(0).uniform(-0.25, 0.25, 200)
    dots = ax.scatter(
        shares.values[:, feature],
        row + jitter,
        c=X[:200, feature],
        s=8,
        cmap="coolwarm",
        vmin=-2,
        vmax=2,
    )
ax.set_yticks(range(len(order)), labels=[data.feature_names[i] for i in order])
ax.set_xlabel("share of the feature in the prediction")
figure.colorbar(dots, label="value of the feature, standardised")
plt.show()
