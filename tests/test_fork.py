"""fork while other threads are at work: no child waits for a lock that nobody releases."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import parsimon

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

# Enough for any machine; reached only if something hangs.
FOREVER = 120

START = """
    import os, sys, threading, time, warnings
    import numpy as np
    import parsimon
    from parsimon import POLKClassifier, POLKRegressor, kernels
    from parsimon.datasets import make_multidist

    warnings.simplefilter("ignore")  # of forks while there are threads
    X, y = make_multidist(3000, random_state=0)

    def fork(use):
        child = os.fork()
        if child == 0:
            try:
                use()
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                assert status == 0, "the child failed"
                return
            time.sleep(0.01)
        os.kill(child, 9)
        raise AssertionError("the child hangs")
"""


def run(program, first=""):
    parts = map(textwrap.dedent, (first, START, program))
    done = subprocess.run(
        [sys.executable, "-c", "".join(parts)],
        capture_output=True,
        text=True,
        timeout=FOREVER,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr


def test_a_child_chooses_settings_while_a_thread_of_its_parent_did_so():
    run("""
        entered, go_on = threading.Event(), threading.Event()

        # A thread that is stopped in the middle of computing what is computed once.
        class Waiting:
            from parsimon._lazy import lazy

            @lazy
            def value(self):
                entered.set()
                go_on.wait()
                return 1

        waiting = Waiting()
        threading.Thread(target=lambda: waiting.value, daemon=True).start()
        entered.wait()
        fork(lambda: [go_on.set(), Waiting().value])
        go_on.set()

        # One thread only: OpenBLAS has locks of its own, and cannot be forked while two use it.
        def choose():
            while not stopped.is_set():
                POLKClassifier(epochs=1, random_state=0).fit(X[:100], y[:100])

        stopped = threading.Event()
        thread = threading.Thread(target=choose, daemon=True)
        thread.start()
        for _ in range(3):
            fork(lambda: POLKClassifier(epochs=1, random_state=0).fit(X[:100], y[:100]))
            time.sleep(0.02)
        stopped.set()
        thread.join()
    """)


@pytest.mark.parametrize("kernel", ["kernels.Gaussian(0.7)", "kernels.Function(slow)"])
def test_a_child_uses_a_model_that_another_thread_was_training(kernel):
    run(f"""
        def slow(A, B):
            time.sleep(0.002)
            return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1))

        model = POLKClassifier(kernel={kernel}, random_state=0)
        model.partial_fit(X[:200], y[:200], classes=range(5))
        expected = model.predict(X[:50])
        stopped = threading.Event()

        def train():
            while not stopped.is_set():
                model.partial_fit(X[:300], y[:300])

        thread = threading.Thread(target=train, daemon=True)
        thread.start()
        for _ in range(10):
            def use():
                model.predict(X[:50])
                model.partial_fit(X[:64], y[:64])
                assert np.isfinite(model.weights_).all()
                assert model.t_ == model.trace_["samples"][-1]

            fork(use)
            time.sleep(0.01)
        before = model.t_
        time.sleep(0.5)
        assert model.t_ > before  # the parent goes on
        stopped.set()
        thread.join()
    """)


def test_what_is_begun_while_a_fork_is_near_does_not_hold_up_the_process():
    # A handler that was there first runs last: between ours and the fork others have their turn.
    first = """
        import os, time
        os.register_at_fork(before=lambda: time.sleep(0.1))
    """
    run(
        """
        from parsimon import HybridIntensity, SLKLRegressor

        slkl = SLKLRegressor(n_columns=10, random_state=0).fit(X[:50], X[:50, 0])
        polk = POLKClassifier(random_state=0).partial_fit(X[:100], y[:100])
        given = dict(domain=(0, 1), kernel=kernels.Gaussian(0.2), solver="sgd")
        asked = [
            lambda: POLKClassifier(epochs=1, random_state=0).fit(X[:60], y[:60]),
            lambda: slkl.expansion_,
            polk._model.listen,
            polk._model.raise_alarm,
            lambda: HybridIntensity(**given).partial_fit(np.full((40, 1), 0.5)),
        ]

        def ask(call):
            while not stopped.is_set():
                call()

        for call in asked:
            stopped = threading.Event()
            thread = threading.Thread(target=ask, args=(call,), daemon=True)
            thread.start()
            for _ in range(2):
                fork(lambda: None)
            stopped.set()
            thread.join()
        """,
        first,
    )


def test_a_kernel_may_fork():
    run("""
        forked = []

        def kernel(A, B):
            if not forked:
                forked.append(True)
                fork(lambda: None)
            return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1))

        model = POLKRegressor(kernel=kernels.Function(kernel), learning_rate=0.1, budget=0.01)
        model.partial_fit(X[:64], X[:64, 0])
        assert forked
        model.predict(X[:10])
    """)


def test_a_linear_model_of_many_features_is_whole_in_the_child():
    run("""
        from scipy import sparse
        X = sparse.random(3000, 5000, 0.01, format="csr", random_state=0)
        y = np.asarray(X[:, :100].sum(axis=1)).ravel() > 0.5
        model = POLKClassifier(random_state=0).partial_fit(X[:200], y[:200])
        done = False

        def learn():
            while not done:
                model.partial_fit(X, y)

        thread = threading.Thread(target=learn)
        thread.start()
        for _ in range(5):
            time.sleep(0.05)
            fork(lambda: model.partial_fit(X[:100], y[:100]).predict(X))
        done = True
        thread.join()
    """)


def test_no_property_is_cached_under_a_lock():
    folder = Path(parsimon.__file__).parent
    users = [path for path in folder.rglob("*.py") if "cached_property" in path.read_text("utf-8")]
    assert users == []
