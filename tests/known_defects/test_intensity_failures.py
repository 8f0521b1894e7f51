"""Densities that cannot be learned, interrupts and threads: nothing is lost, nothing is half done."""

import _thread
import threading
import time

import numpy as np
import pytest
from intensity_common import INTENSITIES, LINE, PROBES, cloud, mini_batch, toy
from numpy.testing import assert_array_equal
from polk_common import assert_refused, everything, state
from test_concurrency import run_together

import parsimon
from parsimon import (
    DivergenceError,
    HybridIntensity,
    MirrorNewtonIntensity,
    SPPPOTIntensity,
    _core,
    _io,
    kernels,
)

X = toy()[:300]
every = pytest.mark.parametrize("cls", INTENSITIES)


def in_every_state(cls, **settings):
    """Yield estimators that have learned nothing, all at once, and from a stream."""
    yield cls(**{**LINE, **settings})
    yield cls(**LINE).fit(X, validation=X[:9]).set_params(**settings)
    yield cls(**LINE).partial_fit(X[:30]).set_params(**settings)


def assert_refused_by_all(cls, bad, message, error=ValueError, **settings):
    for model in in_every_state(cls, **settings):
        assert_refused(model, lambda m: m.fit(bad), message, error)
        assert_refused(model, lambda m: m.partial_fit(bad), message, error)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.array([[0.5], [np.nan]]), "NaN"),
        (np.array([[0.5], [-np.inf]]), "infinity"),
        (np.empty((0, 1)), "0 sample"),
        (X[:, 0], "2D array"),
        (X[None], "dim 3|3"),
        (X + 1j, "Complex data"),
        ([["a"]], "could not convert"),
        ([[0.1], [0.1, 0.2]], "inhomogeneous|sequence"),
    ],
    ids=["NaN", "infinity", "empty", "1-D", "3-D", "complex", "text", "ragged"],
)
@every
def test_samples(cls, bad, message):
    assert_refused_by_all(cls, bad, message)


@every
def test_validation_is_named_as_the_culprit(cls):
    bad = [([[np.nan]], "NaN"), (np.ones((3, 2)), "2 features"), (np.empty((0, 1)), "0 sample")]
    for held_out, message in bad:
        message = f"validation data cannot be used(.|\n)*{message}"
        for model in in_every_state(cls):
            for name in ("fit", "partial_fit"):
                assert_refused(
                    model,
                    lambda m, call=name, v=held_out: getattr(m, call)(X, validation=v),
                    message,
                )


@pytest.mark.parametrize("width", [1e100, 1e-100])
@every
def test_domains_whose_volume_is_no_double(cls, width):
    message = "volume of (inf|0), .* scale the features"
    many = width * np.random.RandomState(0).rand(50, 5)
    for domain in ("auto", [(0, width)] * 5):
        assert_refused(cls(domain=domain), lambda m: m.fit(many), message)
        assert_refused(cls(domain=domain), lambda m: m.partial_fit(many), message)
        fitted = cls(**LINE).fit(X).set_params(domain=domain, bandwidth="silverman")
        assert_refused(fitted, lambda m: m.fit(many), message)


@every
def test_a_grid_too_large_says_how_large_and_what_to_do(cls):
    many = np.random.RandomState(0).rand(50, 5)
    message = (
        r"grid_size=20 makes a grid of 3.2e\+06 nodes in 5 dimensions, .* would take 2.29e\+05 GB; "
        r"choose at most (\d+) cells along each feature, or grid_size='auto'"
    )
    assert_refused(cls(grid_size=20), lambda m: m.fit(many), message)
    with pytest.raises(ValueError, match="at most") as error:
        cls(grid_size=(3, 4, 5000, 5000, 2)).fit(many)
    assert "6e+08 nodes" in str(error.value)


def test_boxes_are_called_so():
    model = SPPPOTIntensity(**LINE).fit(X)
    for box in ((1.0, 0.0), (0.5, 0.5), (0, np.nan), (0, np.inf), 3, [(0, 1)] * 2, "auto", "ab"):
        assert_refused(model, lambda m, b=box: m.expected_count(b), "^box must")


def test_files_whose_parts_contradict_each_other(tmp_path):
    model = SPPPOTIntensity(**LINE).fit(X)
    entries = _io.to_entries(model)
    for change in ({"samples": 5}, {"domain.upper": np.array([2.0])}):
        _core.write_archive(tmp_path / "model", entries | change)
        with pytest.raises(ValueError, match=r"contradict|nodes"):
            parsimon.load(tmp_path / "model")


# -- divergence ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (MirrorNewtonIntensity, {"learning_rate": 1e6}),
        (HybridIntensity, {"newton_learning_rate": 1e6, "first_phase": 3}),
        # So many samples at one place that one mini-batch raises the density beyond all bounds.
        (SPPPOTIntensity, {"learning_rate": 600.0, "batch_size": 300}),
    ],
)
def test_divergence_leaves_the_last_good_model(cls, settings):
    stream = np.full((900, 1), 0.5) if cls is SPPPOTIntensity else toy()[:900]
    message = "beyond all bounds(.|\n)*smaller learning rate"
    assert_refused_by_all(cls, stream, message, DivergenceError, **settings)
    model = cls(**{**LINE, **settings})
    model.partial_fit(stream[: mini_batch(model)])
    before = state(model)
    with pytest.raises(DivergenceError):
        for _ in range(100):
            before = state(model)
            model.partial_fit(stream)
    assert state(model) == before
    assert np.isfinite(model.score_samples(PROBES)).all()


# -- kernels that fail -----------------------------------------------------------------------------


class Failing:
    """A Gaussian kernel that does something else at one call, wherever that is in the work."""

    def __init__(self, instead):
        self.instead = instead
        self.left = np.inf

    def __call__(self, A, B):
        self.left -= 1
        return self.instead() if self.left == 0 else np.exp(-80 * (A - B.T) ** 2)

    def __reduce__(self):
        return Failing, (None,)


def interrupt():
    raise KeyboardInterrupt


def with_kernel(cls, function, **settings):
    rates = {"learning_rate": 1.0}
    if cls is not SPPPOTIntensity:
        rates["damping"] = 1.0
    return cls(**{**LINE, "epochs": 3}, kernel=kernels.Function(function), **rates, **settings)


@pytest.mark.filterwarnings("ignore:The learned density integrates to")
@pytest.mark.parametrize(
    ("instead", "error", "message"),
    [
        (lambda: 1 / 0, ZeroDivisionError, "division"),
        (lambda: np.zeros(3), ValueError, "must return an array of shape"),
    ],
    ids=["exception", "shape"],
)
@every
def test_a_kernel_that_fails_changes_nothing(cls, instead, error, message):
    for first in (False, True):
        for call in range(1, 40):
            function = Failing(instead)
            model = with_kernel(cls, function)
            if not first:
                model.partial_fit(X[:60])
            function.left = call
            for name in ("fit", "partial_fit"):
                try:
                    assert_refused(model, lambda m, n=name: getattr(m, n)(X[:90]), message, error)
                except pytest.fail.Exception:
                    assert function.left > 0  # all the work took fewer calls
                    assert name == "partial_fit"
                    break
                function.left = call
            else:
                continue
            break
        else:
            pytest.fail("there was always one call more")


@every
def test_an_interrupt_within_a_kernel_leaves_what_was_learned(cls):
    seen = set()
    for call in range(1, 120, 6):
        function = Failing(interrupt)
        function.left = call
        model = with_kernel(cls, function)
        before = everything(model)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        if not hasattr(model, "t_"):
            assert everything(model) == before
            continue
        assert model.t_ == (model.trace_["samples"][-1] if model.t_ else 0)
        assert model.n_points_ == min(model.t_, len(X))
        seen.add(model.n_points_)
        assert np.isfinite(model.score_samples(PROBES)).all()
        samples = model.t_
        model.partial_fit(X)
        assert model.t_ == samples + len(X)
    assert len(seen) > 2


# -- Ctrl-C and threads ----------------------------------------------------------------------------


@every
def test_control_c_ends_learning_at_once(cls):
    model = cls(**{**LINE, "epochs": 10**6})
    sent = []

    def press():
        time.sleep(0.3)
        sent.append(time.monotonic())
        _thread.interrupt_main()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert time.monotonic() - sent[0] < 10  # within a second, on a machine that does nothing else
    thread.join()
    assert model.t_ == model.trace_["samples"][-1] > 0
    assert model.n_points_ == min(model.t_, len(X))
    assert np.isfinite(model.score_samples(PROBES)).all()
    assert model.partial_fit(X[:30]).t_ == model.trace_["samples"][-1]


@every
def test_two_threads_learn_with_one_model_while_others_read(cls):
    points = toy(1500)
    model = cls(**LINE).partial_fit(points[:60])
    done = threading.Event()

    def learn(start):
        for at in range(start, start + 600, 60):
            model.partial_fit(points[at : at + 60], validation=X[:5])

    def read():
        while not done.is_set():
            assert np.isfinite(model.score_samples(PROBES)).all()
            assert model.integral_ > 0
            trace = model.trace_
            assert len({len(column) for column in trace.values()}) == 1
            assert (np.diff(trace["samples"]) > 0).all()

    def both():
        try:
            run_together(lambda: learn(60), lambda: learn(660))
        finally:
            done.set()

    run_together(both, read)
    assert model.t_ == model.n_points_ == 1260
    assert model.trace_["samples"][-1] == 1260


@every
def test_models_in_two_threads_do_not_disturb_each_other(cls):
    seeds = range(3)
    alone = [state(cls(**{**LINE, "random_state": seed}).fit(X)) for seed in seeds]
    models = [cls(**{**LINE, "random_state": seed}) for seed in seeds]
    run_together(*[lambda m=model: m.fit(X) for model in models])
    assert [state(model) for model in models] == alone


@every
def test_the_samples_are_left_alone(cls):
    points = cloud()[:200].copy()
    points.setflags(write=False)
    settings = {"domain": [(0, 1), (-2, 3)], "grid_size": 6, "random_state": 0}
    model = cls(**settings).partial_fit(points)
    fortran = cls(**settings).partial_fit(np.asfortranarray(points))
    strided = cls(**settings).partial_fit(np.repeat(points, 2, axis=1)[:, ::2])
    assert state(model) == state(fortran) == state(strided)
    before = state(model)
    for array in (model.dictionary_, model.weights_, model.nodes_, *model.trace_.values()):
        array[...] = 0
    assert state(model) == before
    assert_array_equal(model.domain_, settings["domain"])
