"""
What the certificate promises
=============================

Compression returns a function with fewer points and a number: how far the two are apart in the
norm of the Hilbert space. Times the root of k(x, x) this bounds the difference at every x, seen
or not.
"""

import matplotlib.pyplot as plt
import numpy as np

import parsimon
from parsimon import KernelExpansion, kernels

random = np.random.default_rng(5)
points = np.sort(random.uniform(0, 10, 60))[:, None]
function = KernelExpansion(kernels.Gaussian(0.8), points, random.normal(size=(60, 1)) / 4)
smaller, report = parsimon.komp(function, budget=0.15)
print(report.model_order, report.error)

at = np.linspace(-1, 11, 500)[:, None]
before, after = function(at).ravel(), smaller(at).ravel()
figure, ax = plt.subplots(figsize=(7, 4))
band = report.error
ax.fill_between(at[:, 0], before - band, before + band, alpha=0.3, label=f"certified: ±{band:.2f}")
ax.plot(at, before, label="60 points")
ax.plot(
    at,
    after,
    "--",
    label=f"{report.model_order} points, at most {abs(before - after).max():.3f} off",
)
ax.plot(smaller.dictionary, smaller(smaller.dictionary), "k.")
ax.legend()
plt.show()
