"""Any number of threads gives the same bits, and every way to ask for a number is honoured."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
import pytest

import parsimon
from parsimon import POLKClassifier, POLKRegressor, kernels

FEATURES = 60
# So tight a budget keeps nearly every sample, and is meant to.
pytestmark = pytest.mark.filterwarnings("ignore:The model has kept")


@pytest.fixture(autouse=True)
def same_threads_afterwards() -> Iterator[None]:
    before = parsimon.get_num_threads()
    yield
    parsimon.set_num_threads(before)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, FEATURES))
    return X, X[:, :3].argmax(axis=1)


def make(**settings: object) -> POLKClassifier:
    # So tight a budget that hundreds of points stay: large enough products to be shared.
    return POLKClassifier(
        kernel=kernels.Gaussian(6.0),
        learning_rate=4.0,
        parsimony=0.001,
        batch_size=32,
        epochs=1,
        random_state=0,
        **settings,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_model_is_the_same_with_any_number_of_threads(
    data: tuple[np.ndarray, np.ndarray], dtype: str
) -> None:
    X, y = data
    one = make(n_jobs=1, dtype=dtype).fit(X, y)
    assert one.model_order_ > 300
    for jobs in (2, 3, -1):
        more = make(n_jobs=jobs, dtype=dtype).fit(X, y)
        np.testing.assert_array_equal(more.dictionary_, one.dictionary_)
        np.testing.assert_array_equal(more.weights_, one.weights_)
        np.testing.assert_array_equal(more.decision_function(X), one.decision_function(X))


def test_the_number_of_threads_of_the_process(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    values = []
    for threads in (1, 2):
        parsimon.set_num_threads(threads)
        assert parsimon.get_num_threads() == threads
        values.append(make().fit(X, y).decision_function(X))
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", None, True, 10**9])
def test_a_number_of_threads_that_cannot_be(threads: object) -> None:
    before = parsimon.get_num_threads()
    with pytest.raises(ValueError, match="threads"):
        parsimon.set_num_threads(threads)  # type: ignore[arg-type]
    assert parsimon.get_num_threads() == before


@pytest.mark.parametrize("n_jobs", [0, -2, 1.0, "all", True])
def test_an_n_jobs_that_cannot_be(data: tuple[np.ndarray, np.ndarray], n_jobs: object) -> None:
    X, y = data
    with pytest.raises(ValueError, match="n_jobs"):
        make(n_jobs=n_jobs).fit(X, y)
    with pytest.raises(ValueError, match="n_jobs"):
        POLKRegressor(n_jobs=n_jobs).fit(X, y)  # type: ignore[arg-type]


def ask(code: str, **environment: str) -> str:
    """Return what a new process prints."""
    return subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    ).stdout.strip()


NUMBER = "import parsimon; print(parsimon.get_num_threads())"


def test_omp_num_threads_is_honoured() -> None:
    assert ask(NUMBER, OMP_NUM_THREADS="3") == "3"
    assert ask(NUMBER, OMP_NUM_THREADS="1") == "1"


@pytest.mark.parametrize("value", ["", "none", "0", "-4"])
def test_an_omp_num_threads_that_says_nothing(value: str) -> None:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    found = int(ask(NUMBER, OMP_NUM_THREADS=value))
    assert found == processors if processors else found >= 1


def threads_of_workers(tmp_path: Path, program: str) -> list[int]:
    """Return what a program prints that nobody has told how many threads to use."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    environment = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    out = subprocess.run(
        [sys.executable, path], check=True, capture_output=True, text=True, env=environment
    ).stdout
    return [int(threads) for threads in out.split()]


def test_workers_of_joblib_do_not_use_more_threads_than_there_are(tmp_path: Path) -> None:
    program = """
        import joblib
        from parsimon import get_num_threads

        calls = (joblib.delayed(get_num_threads)() for _ in range(4))
        print(*joblib.Parallel(n_jobs=2)(calls))
    """
    # loky gives each of n workers its share of the processors.
    share = max(1, joblib.cpu_count() // 2)
    assert threads_of_workers(tmp_path, program) == [share] * 4


def test_workers_of_dask_do_not_use_more_threads_than_there_are(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    program = """
        from distributed import Client, LocalCluster
        from parsimon import get_num_threads

        if __name__ == "__main__":
            workers = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
            with workers as cluster, Client(cluster) as client:
                print(*client.run(get_num_threads).values())
    """
    assert threads_of_workers(tmp_path, program) == [1, 1]


def test_threads_of_python_that_train_at_once(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    expected = make(n_jobs=1).fit(X, y).weights_
    found: dict[int, np.ndarray] = {}

    def train(number: int) -> None:
        found[number] = make(n_jobs=2).fit(X, y).weights_

    threads = [threading.Thread(target=train, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(3):
        np.testing.assert_array_equal(found[number], expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_goes_on(data: tuple[np.ndarray, np.ndarray]) -> None:
    code = """
import os, numpy as np, parsimon
from parsimon import POLKClassifier, kernels
X = np.random.default_rng(0).normal(size=(800, 60)); y = X[:, :3].argmax(axis=1)
parsimon.set_num_threads(2)
model = POLKClassifier(kernel=kernels.Gaussian(6.0), learning_rate=4.0, parsimony=0.001, epochs=1)
before = model.fit(X, y).decision_function(X)
child = os.fork()
if child == 0:
    os._exit(0 if (model.decision_function(X) == before).all() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert ask(code) == "0"
