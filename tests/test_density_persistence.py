"""Files, pickles and copies of the intensity estimators: learning goes on bit for bit."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from persistence_common import assert_learning_goes_on, through_file
from sklearn.exceptions import ConvergenceWarning

import parsimon
from parsimon import HybridIntensity, MirrorNewtonIntensity, SPPPOTIntensity, kernels
from parsimon.datasets import make_poisson_gaussian
from parsimon.schedules import AdaptiveBudget

STEPS = {"solver": "sgd", "random_state": 0}
LINE = {"domain": (0.0, 1.0), **STEPS, "epochs": 2}
PLANE = {"domain": [(0, 1), (-2.0, 3.0)], "grid_size": (6, 8), **STEPS, "epochs": 1}

ESTIMATORS = {
    "first order": lambda: SPPPOTIntensity(**LINE),
    "samples in the dictionary": lambda: SPPPOTIntensity(
        **LINE, grid_size=8, bandwidth=0.02, parsimony=1e-3
    ),
    "dependent nodes": lambda: SPPPOTIntensity(**LINE, grid_size=100, bandwidth=0.08),
    "held order": lambda: SPPPOTIntensity(
        **LINE, grid_size=8, bandwidth=0.02, budget=AdaptiveBudget(25)
    ),
    "embedding": lambda: SPPPOTIntensity(**LINE, gradient="kernel_embedding"),
    "sign": lambda: SPPPOTIntensity(**LINE, gradient="sign"),
    "euclidean": lambda: SPPPOTIntensity(**LINE, mirror="euclidean"),
    "mahalanobis": lambda: SPPPOTIntensity(**PLANE, mirror="mahalanobis"),
    "dual averaging": lambda: SPPPOTIntensity(**LINE, method="dual_averaging", average=False),
    "plane": lambda: SPPPOTIntensity(**PLANE, kernel=kernels.Matern([0.2, 0.8], 2.5)),
    "second order": lambda: MirrorNewtonIntensity(**LINE),
    "scattered nodes": lambda: MirrorNewtonIntensity(
        domain=[(0, 1), (-2.0, 3.0)], bandwidth=(0.02, 0.1), **STEPS, epochs=1
    ),
    "before the switch": lambda: HybridIntensity(**LINE, patience=10**6, first_phase=10**6),
    "after the switch": lambda: HybridIntensity(**LINE, patience=5),
    "at the switch": lambda: HybridIntensity(**LINE, patience=10**6, first_phase=40),
    "solved": lambda: SPPPOTIntensity(domain=(0.0, 1.0)),
    "solved on a grid": lambda: HybridIntensity(
        domain=[(0, 1), (-2.0, 3.0)], grid_size=(6, 8), half_life=500
    ),
    "solved with any kernel": lambda: MirrorNewtonIntensity(domain=(0.0, 1.0), kernel="matern"),
}


def data(estimator):
    X = make_poisson_gaussian(600, random_state=1)
    if np.size(estimator.domain) == 2:
        return X
    return np.column_stack([X, 2.5 * make_poisson_gaussian(2000, random_state=2)[: len(X)]])


@pytest.mark.filterwarnings("ignore:The learned density integrates")
@pytest.mark.parametrize("way", ["file", "pickle", "deepcopy"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_learning_goes_on_as_if_it_had_not_stopped(name, way, tmp_path):
    model = ESTIMATORS[name]()
    X = data(model)
    with warnings.catch_warnings():
        # A short training of a coarse model need not be good.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    parts = [slice(start, start + 190) for start in range(0, 3 * 97, 97)]
    other = assert_learning_goes_on(model, way, tmp_path, (X,), parts, "score_samples")
    assert other.n_points_ == model.n_points_ == len(X) + 3 * 190


def test_what_was_measured_is_saved(tmp_path):
    X = make_poisson_gaussian(2000, random_state=0)
    model = SPPPOTIntensity(**LINE).fit(X[:1000], validation=X[1000:])
    other = through_file(model, tmp_path)
    measured = model.trace_["validation_nll"]
    assert np.isfinite(measured).sum() >= 4
    assert_array_equal(other.trace_["validation_nll"], measured)
    model.partial_fit(X[:100], validation=X[1000:])
    assert np.isfinite(model.trace_["validation_nll"]).sum() > np.isfinite(measured).sum()


def test_another_estimators_file_is_refused(tmp_path):
    X = make_poisson_gaussian(300, random_state=0)
    archive = SPPPOTIntensity(**{**LINE, "epochs": 30}).fit(X)._model.to_archive()
    for algorithm, message in (("mirror_newton", "newton.step"), ("oracle", "does not know")):
        archive["algorithm"] = algorithm
        with pytest.raises(ValueError, match=message):
            parsimon._core.read_model(archive)
    model = MirrorNewtonIntensity(**{**LINE, "epochs": 30}).fit(X)
    stolen = dict(parsimon._io.to_archive(model)) | {"estimator": "SPPPOTIntensity"}
    parsimon._core.Archive(stolen).write(str(tmp_path / "stolen"))
    with pytest.raises(ValueError, match="cannot hold a model of the algorithm 'mirror_newton'"):
        parsimon.load(tmp_path / "stolen")
