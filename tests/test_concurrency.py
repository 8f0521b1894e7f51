"""Ctrl-C, several models in several threads, one model in several threads."""

import os
import pickle
import sys
import threading
import time

import numpy as np
import pytest
from control_c import FOREVER, interrupted
from polk_common import GIVEN, gaussian, state, task

from parsimon import POLKClassifier, POLKRegressor, kernels
from parsimon.datasets import make_multidist

# -- Ctrl-C --------------------------------------------------------------------------------------

INTERRUPTED = """
    import time
    import numpy as np
    from parsimon import POLKClassifier, POLKRegressor, _stream, kernels
    from parsimon.datasets import make_multidist

    X, y = make_multidist(20_000, random_state=0)
    many = np.arange(10**6) % len(X)

    def kernel(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1))

    announced, run = [], _stream.run

    def announcing_run(estimator, *arguments, **more):
        if estimator.epochs == 10**6 and not announced:
            announced.append(True)
            print("learning", flush=True)
        run(estimator, *arguments, **more)

    _stream.run = announcing_run

    class Refitting(POLKRegressor):
        __init__ = POLKRegressor.__init__

        def _finish_fit(self, model, samples):
            print("learning", flush=True)
            rows = np.arange(2 * 10**6) % len(samples)
            samples = _stream.Samples(samples.X[rows], samples.targets[rows])
            super()._finish_fit(model, samples)

    model = {model}
    {prepare}
    model.epochs = 10**6
    try:
        {learn}
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
        model.predict(X[:100])
        assert np.isfinite(model.weights_).all()
        trace = model.trace_
        assert len({{len(column) for column in trace.values()}}) == 1
        assert model.t_ == trace["samples"][-1] > 0
        assert trace["model_order"][-1] == model.model_order_ > 0
        assert (trace["compression_error"] <= trace["budget"]).all()
        model.partial_fit(X[:100], y[:100])
        assert model.t_ == trace["samples"][-1] + 100
        print("usable", flush=True)
"""

# What is learned with, what happened before, what is interrupted.
CASES = {
    "fit": ("POLKClassifier(random_state=0)", "pass", "model.fit(X, y)"),
    "progress bar": ("POLKRegressor(verbose=1, refit=False)", "pass", "model.fit(X, y)"),
    "refit": (
        "Refitting(kernel=kernels.Gaussian(0.1), learning_rate=1.0, budget=1e-3)",
        "pass",
        "model.set_params(epochs=1, regularization=1e-6).fit(X[:2000], y[:2000])",
    ),
    "partial_fit": (
        "POLKClassifier(batch_size=1)",
        "model.partial_fit(X[:100], y[:100], classes=range(5))",
        "model.partial_fit(X[many], y[many])",
    ),
    "kernel in Python": (
        "POLKClassifier(kernel=kernels.Function(kernel), learning_rate=1.0, regularization=1e-6)",
        "pass",
        "model.fit(X, y)",
    ),
    "another model before": (
        "POLKClassifier(epochs=1)",
        "model.fit(X[:100, :1], y[:100] > 2)",
        "model.fit(X, y)",
    ),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("case", CASES)
def test_control_c_ends_learning_within_a_second(case):
    model, prepare, learn = CASES[case]
    program = INTERRUPTED.format(model=model, prepare=prepare, learn=learn)
    assert interrupted(program, after=0.3) == "usable"  # some mini-batches later


def test_an_interrupt_before_anything_was_learned_changes_nothing():
    X, y = task()
    model = POLKClassifier(**GIVEN).fit(X, y)
    before = state(model)

    def interrupting(A, B):
        raise KeyboardInterrupt

    for name in ("fit", "partial_fit"):
        for fitted in (model, POLKClassifier(**GIVEN)):
            attributes = dict(vars(fitted))
            fitted.set_params(kernel=kernels.Function(interrupting), learning_rate="auto")
            extra = {"classes": range(2)} if name == "partial_fit" and fitted is not model else {}
            if name == "fit" or fitted is not model:
                with pytest.raises(KeyboardInterrupt):
                    getattr(fitted, name)(X[:, :1], y > 2, **extra)
            fitted.set_params(kernel=GIVEN["kernel"], learning_rate=GIVEN["learning_rate"])
            assert vars(fitted) == attributes
    assert state(model) == before


def test_an_interrupt_within_a_kernel_leaves_a_usable_model():
    X, y = task()
    for calls in range(1, 60, 7):
        left = [calls]

        def kernel(A, B, left=left):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return gaussian(A, B)

        model = POLKClassifier(**{**GIVEN, "kernel": kernels.Function(kernel)})
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.t_ == (model.trace_["samples"][-1] if model.t_ else 0)
        assert np.isfinite(model.decision_function(X)).all()
        plain = POLKClassifier(**GIVEN).partial_fit(X, y, classes=range(5))
        before = model.t_
        model.partial_fit(X, y)
        assert model.t_ == before + len(X)
        assert model.score(X, y) > plain.score(X, y) - 0.1


# -- two models in two threads -------------------------------------------------------------------


def run_together(*targets):
    """Run in threads; raise what they raise."""
    errors = []

    def guarded(target):
        try:
            target()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(FOREVER)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_two_models_learn_at_the_same_time():
    """Both are in the middle of one call of the core, and get on, while Python goes on as well."""
    X, y = make_multidist(200_000, random_state=0)
    models = [POLKClassifier(**GIVEN).partial_fit(X[:32], y[:32], classes=range(5)) for _ in "ab"]
    cores = [model._model for model in models]
    targets, no_weights = y[:, None].astype(float), np.empty(0)
    running = threading.Event()
    seen = threading.Event()

    def learn(core):
        while not seen.is_set():
            core.run(X, targets, no_weights, 16)

    def watch():
        running.wait(FOREVER)
        deadline = time.monotonic() + FOREVER
        while not seen.is_set() and time.monotonic() < deadline:
            # The same call of run in all three: no block boundary between them.
            first, second, third = ([core.samples for core in cores] for _ in range(3))
            blocks = [
                {(n - 32) // len(X) for n in counts}
                for counts in zip(first, second, third, strict=True)
            ]
            grows = [a < b < c for a, b, c in zip(first, second, third, strict=True)]
            if all(grows) and all(len(block) == 1 for block in blocks):
                seen.set()
        overlapped = seen.is_set()
        seen.set()
        assert overlapped

    interval = sys.getswitchinterval()
    # No thread is made to give up the interpreter: what runs beside another does so without it.
    sys.setswitchinterval(1000)
    try:
        run_together(watch, *[lambda core=core: (running.set(), learn(core)) for core in cores])
    finally:
        sys.setswitchinterval(interval)


def test_kernels_of_two_models_meet():
    """Each model waits, in the middle of a mini-batch, for the other one to be there too."""
    X, y = task()
    meeting = threading.Barrier(2)
    met = threading.local()

    def kernel(A, B):
        if getattr(met, "times", 0) < 20:
            meeting.wait(FOREVER)
            met.times = getattr(met, "times", 0) + 1
        return gaussian(A, B)

    models = [POLKClassifier(**{**GIVEN, "kernel": kernels.Function(kernel)}) for _ in "ab"]
    run_together(*[lambda m=model: m.fit(X, y) for model in models])
    assert state(models[0]) == state(models[1])


def test_threads_do_not_disturb_each_other():
    X, y = make_multidist(2000, random_state=1)
    alone = [state(POLKClassifier(**{**GIVEN, "random_state": i}).fit(X, y)) for i in range(4)]
    models = [POLKClassifier(**{**GIVEN, "random_state": i}) for i in range(4)]
    run_together(*[lambda m=model: m.fit(X, y) for model in models])
    assert [state(model) for model in models] == alone


# -- one model in several threads ----------------------------------------------------------------


def assert_consistent(model, X):
    trace = model.trace_
    assert len({len(column) for column in trace.values()}) == 1
    assert trace["samples"][-1] == model.t_
    assert (np.diff(trace["samples"]) > 0).all()
    assert trace["model_order"][-1] == model.model_order_ == len(model.dictionary_)
    assert model.weights_.shape[0] == model.model_order_
    assert (trace["compression_error"] <= trace["budget"]).all()
    assert np.isfinite(
        model.predict(X) if isinstance(model, POLKRegressor) else model.weights_
    ).all()
    # The factor still belongs to the dictionary: learning goes on alike with a new one.
    again = pickle.loads(pickle.dumps(model))
    assert state(again) == state(model)


@pytest.mark.parametrize(
    "kernel", [GIVEN["kernel"], kernels.Function(gaussian)], ids=["core", "Python"]
)
def test_two_threads_learn_with_one_model(kernel):
    X, y = make_multidist(1500, random_state=2)
    model = POLKClassifier(**{**GIVEN, "kernel": kernel})
    model.partial_fit(X[:100], y[:100], classes=range(5))

    def learn(start):
        for at in range(start, start + 700, 70):
            model.partial_fit(X[at : at + 70], y[at : at + 70])

    run_together(lambda: learn(100), lambda: learn(800))
    assert model.t_ == 1500
    assert_consistent(model, X)
    assert model.score(X, y) > 0.7


def test_readers_see_a_whole_model_while_another_thread_learns(tmp_path):
    X, _ = make_multidist(4000, random_state=3)
    model = POLKRegressor(**GIVEN).partial_fit(X[:100], X[:100, 0])
    done = threading.Event()

    def learn():
        try:
            for at in range(100, 4000, 100):
                model.partial_fit(X[at : at + 100], X[at : at + 100, 0])
        finally:
            done.set()

    def read():
        while not done.is_set():
            assert np.isfinite(model.predict(X[:50])).all()
            trace = model.trace_
            assert len({len(column) for column in trace.values()}) == 1
            assert (np.diff(trace["samples"]) > 0).all()
            expansion = model.expansion_
            assert len(expansion.dictionary) == len(expansion.weights)
            copy = pickle.loads(pickle.dumps(model))
            assert copy.t_ == copy.trace_["samples"][-1]
            model.save(tmp_path / f"model{threading.get_ident()}")

    run_together(learn, read, read)
    assert model.t_ == 4000
    assert_consistent(model, X)


def test_bad_input_in_one_thread_does_not_hurt_another():
    X, y = make_multidist(3000, random_state=4)
    model = POLKClassifier(**GIVEN).partial_fit(X[:100], y[:100], classes=range(5))
    done = threading.Event()

    def learn():
        try:
            for at in range(100, 3000, 100):
                model.partial_fit(X[at : at + 100], y[at : at + 100])
        finally:
            done.set()

    def fail():
        bad = X[:100].copy()
        bad[5] = np.nan
        while not done.is_set():
            with pytest.raises(ValueError, match="NaN"):
                model.partial_fit(bad, y[:100])
            with pytest.raises(ValueError, match="one type"):
                model.partial_fit(X[:100], y[:100].astype(str))
            with pytest.raises(ValueError, match="features"):
                model.predict(X[:, :1])

    run_together(learn, fail, fail)
    assert model.t_ == 3000
    assert_consistent(model, X)


def test_two_threads_fit_one_model():
    """One of the two wins, all of it."""
    X, y = make_multidist(300, random_state=5)
    for _ in range(10):
        model = POLKClassifier(epochs=1, random_state=0)
        run_together(lambda m=model: m.fit(X, y), lambda m=model: m.fit(1e3 * X, y))
        expected = [POLKClassifier(epochs=1, random_state=0).fit(s * X, y) for s in (1, 1e3)]
        assert state(model) in [state(other) for other in expected]
        assert any(model.expansion_.kernel == other.expansion_.kernel for other in expected)
