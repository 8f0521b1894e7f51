"""Every instruction set that this machine has gives the same results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import parsimon

# Everything that the core computes, on data that do not amplify the last bit.
PROGRAM = """
import sys
import numpy as np
import parsimon
from parsimon import _core, kernels

random = np.random.default_rng(0)
results = {}
for features in (2, 30):
    a, b = random.normal(size=(40, features)), random.normal(size=(70, features))
    for kernel in (kernels.Gaussian(2.0), kernels.Matern(2.0, 2.5), kernels.Laplacian(3.0),
                   kernels.Cauchy(2.0), kernels.Polynomial(3, 0.1, 1.0), kernels.Linear()):
        results[f"{kernel} {features}"] = kernel(a, b)
        expansion = parsimon.KernelExpansion(kernel, a, random.normal(size=(40, 2)))
        results[f"{kernel} {features} expansion"] = expansion(b)
X = random.uniform(-2, 2, size=(2000, 3))
labels = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
wave = np.sin(X[:, 0]) + X[:, 1]
kernel = kernels.Gaussian(0.7)
common = dict(kernel=kernel, learning_rate=0.5, parsimony=0.3, epochs=1, random_state=0)
for model, y in (
    # The fit at the end is iterative, in products that are not ours.
    (parsimon.POLKClassifier("hinge", refit=False, **common), labels),
    (parsimon.POLKClassifier("logistic", refit=False, **common), labels),
    (parsimon.SPPPOTClassifier(**common), labels),
):
    results[f"{type(model).__name__} {getattr(model, 'loss', '')}"] = (
        model.fit(X, y).decision_function(X))
for model in (
    parsimon.POLKRegressor(**common),
    parsimon.COLKRegressor(risk="cvar", **common),
    parsimon.BSGDRegressor(
        kernel=kernel, max_points=30, learning_rate=0.1, epochs=1, random_state=0),
    parsimon.SLKLRegressor(kernel=kernel, random_state=0),
):
    results[type(model).__name__] = model.fit(X, wave).predict(X)
for loss, y in (("squared", wave[:, None]), ("multiclass_squared_hinge", labels[:, None])):
    solved = _core.Polk(
        _core.parse_kernel("gaussian(1.5)"), _core.parse_loss(loss),
        _core.StepSchedule.constant(0.5), _core.Compression(_core.BudgetSchedule.fixed(0.05), 50),
        0.0, False, _core.NewtonSettings(1.0, 0.0, 1000.0, True), 3, 1 if loss == "squared" else 3)
    solved.run(X, y.astype(float), np.empty(0), 16)
    results[f"solved {loss}"] = solved.predict(X)
intensity = parsimon.SPPPOTIntensity(random_state=0).fit(random.beta(2, 3, size=(500, 1)))
results["intensity"] = intensity.intensity(np.linspace(0.1, 0.9, 50)[:, None])
np.savez(sys.argv[1], **results)
"""


@pytest.mark.skipif(
    len(parsimon.build_info()["simd_available"]) < 2, reason="only one instruction set here"
)
def test_all_levels_agree(tmp_path: Path) -> None:
    results = {}
    for level in parsimon.build_info()["simd_available"]:
        file = tmp_path / f"{level}.npz"
        environment = {**os.environ, "PARSIMON_SIMD": level}
        subprocess.run([sys.executable, "-c", PROGRAM, str(file)], check=True, env=environment)
        results[level] = dict(np.load(file))
    baseline = results.pop("baseline")
    for level, found in results.items():
        for name, values in baseline.items():
            size = np.abs(values).max()
            worst = np.abs(found[name] - values).max() / size
            assert worst <= 1e-12, f"{name}: {level} differs by {worst:.2g}"
