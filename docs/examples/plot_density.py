"""
A density, beside a kernel density estimate
===========================================

Both choose their width by cross-validation. One keeps 400 points and has one width for sharp and
for broad peaks; the other is the exponential of a function on a small dictionary.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from parsimon import SPPPOTIntensity


def truth(x):
    def bump(mean, sd):
        return np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))

    return 0.5 * bump(0.3, 0.1) + 0.5 * bump(0.7, 0.05)


random = np.random.default_rng(0)
broad = random.random(400) < 0.5
x = np.where(broad, random.normal(0.3, 0.1, 400), random.normal(0.7, 0.05, 400))[:, None]
x = x[(x > 0) & (x < 1)][:, None]

kde = GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.01, 0.2, 20)}).fit(x)
ours = SPPPOTIntensity(domain=(0, 1), random_state=0).fit(x)

at = np.linspace(0, 1, 400)[:, None]
figure, ax = plt.subplots(figsize=(7, 4))
ax.plot(at, truth(at), color="0.6", lw=3, label="truth")
ax.plot(at, np.exp(kde.best_estimator_.score_samples(at)), label=f"KernelDensity, {len(x)} points")
ax.plot(at, np.exp(ours.score_samples(at)), label=f"SPPPOTIntensity, {ours.model_order_} points")
ax.legend()
plt.show()
