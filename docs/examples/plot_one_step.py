"""
One step and its compression
============================

A mini-batch adds a bump for each sample that has something to say (left). Then points leave,
always the one that is missed least, as long as the function stays within the budget (right).
Nothing else happens, a million times.
"""

import matplotlib.pyplot as plt
import numpy as np

import parsimon
from parsimon import KernelExpansion, kernels

random = np.random.default_rng(2)
kernel = kernels.Gaussian(0.7)
before = KernelExpansion(
    kernel, np.array([[1.0], [3.0], [5.0], [8.0]]), np.array([[1.0], [-0.8], [0.9], [-0.6]])
)
samples = np.sort(random.uniform(0, 10, 7))[:, None]
step = KernelExpansion(kernel, samples, 0.25 * random.choice([-1.0, 1.0], (7, 1)))
stepped = before + step
after, report = parsimon.komp(stepped, budget=0.25)

at = np.linspace(-1, 11, 400)[:, None]
figure, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(9, 3.6))
left.plot(at, before(at), color="0.6", label=f"before: {len(before.dictionary)} points")
left.plot(at, stepped(at), label=f"after the step: {len(stepped.dictionary)} points")
for sample, weight in zip(step.dictionary, step.weights):
    left.vlines(sample[0], 0, weight[0], color="tab:orange")
right.plot(at, stepped(at), color="tab:blue")
right.plot(at, after(at), "--", color="black", label=f"compressed: {report.model_order} points")
right.fill_between(
    at[:, 0],
    stepped(at).ravel() - report.error,
    stepped(at).ravel() + report.error,
    alpha=0.25,
    label="certified",
)
for ax, function in ((left, stepped), (right, after)):
    ax.plot(function.dictionary, function(function.dictionary), "k.")
    ax.legend(fontsize=8)
plt.show()
