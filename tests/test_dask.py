"""Estimators that learn on a cluster of Dask."""

import functools
import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask
import dask.array as da
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import parsimon
from parsimon import distributed, load
from parsimon.dask import COLKRegressor, POLKClassifier, POLKRegressor, SPPPOTIntensity
from parsimon.datasets import make_multidist
from parsimon.export import dumps

# Through the loopback: what needs no sockets at all asks for the address of this machine.
QUIET = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}
QUIET["threads_per_worker"] = 1


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(n_workers=2, processes=False, **QUIET)
    with cluster, Client(cluster) as client, warnings.catch_warnings():
        yield client


@pytest.fixture(scope="module")
def data():
    """Targets, whose weights are solved in a round or two."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(1500, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.fixture(scope="module")
def labelled():
    X, y = make_multidist(1000, random_state=0)
    return X[:500], y[:500], X[500:], y[500:]


@pytest.fixture(scope="module")
def fitted(client, data):
    return make(client).fit(*chunked(*data[:2]))


@pytest.fixture(scope="module")
def classifier(client, labelled):
    model = POLKClassifier("logistic", client=client, random_state=0)
    return model.fit(*chunked(*labelled[:2]))


@pytest.fixture(scope="module")
def at_risk(client, data):
    return COLKRegressor("cvar", client=client, random_state=0).fit(*chunked(*data[:2]))


@pytest.fixture(scope="module")
def points():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 1))
    X[:1000] = 0.3 * X[:1000] + 1
    return X


@pytest.fixture(scope="module")
def density(client, points):
    return SPPPOTIntensity(client=client).fit(da.from_array(points[:2000], chunks=(500, -1)))


def make(client, **given):
    return POLKRegressor(client=client, random_state=0, **given)


def chunked(X, y, rows=250):
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


# -- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fitted", "classifier", "at_risk"])
def test_it_is_the_model_of_a_plain_map_and_reduce(kind, request):
    X, y, *_ = request.getfixturevalue("labelled" if kind == "classifier" else "data")
    found = request.getfixturevalue(kind).to_local()
    parts = [(X[i : i + 250], y[i : i + 250]) for i in range(0, len(X), 250)]

    def map_reduce(step, combine):
        found = [step(i, *part) for i, part in enumerate(parts)]
        # Functions are merged two by two, sums are added one after the other.
        if step.name == "scout" and len(found) == 4:
            found = [combine(*found[:2]), combine(*found[2:])]
        return functools.reduce(combine, found)

    plain = distributed.fit(clone(found), map_reduce)
    np.testing.assert_array_equal(plain.dictionary_, found.dictionary_)
    if kind != "at_risk":
        assert dumps(plain) == dumps(found)
    # A risk's many rounds round otherwise now and then: by 1e-10 in one fit out of four.
    largest = np.abs(plain.weights_).max()
    np.testing.assert_allclose(found.weights_, plain.weights_, rtol=0, atol=1e-9 * largest)


def test_it_does_not_depend_on_the_number_of_workers(fitted, data):
    with LocalCluster(n_workers=3, processes=False, **QUIET) as cluster, Client(cluster) as client:
        other = make(client).fit(*chunked(*data[:2]))
    np.testing.assert_allclose(other.weights_, fitted.weights_, rtol=1e-9)
    np.testing.assert_array_equal(other.dictionary_, fitted.dictionary_)


def test_it_is_as_good_as_on_one_machine(classifier, labelled):
    X, y, X_test, y_test = labelled
    one = parsimon.POLKClassifier("logistic", random_state=0).fit(X, y)
    assert classifier.score(X_test, y_test) > one.score(X_test, y_test) - 0.02


def test_weights_of_regression_are_those_of_one_machine(fitted, data):
    X, y, *_ = data
    model = fitted.to_local()
    again = distributed.solve(model, distributed.statistics(model, X, y))
    scale = np.abs(again.weights_).max()
    np.testing.assert_allclose(model.weights_, again.weights_, rtol=0, atol=1e-9 * scale)


def test_a_risk_of_all_losses(at_risk, data):
    X_test, y_test = data[2:]
    assert at_risk.score(X_test, y_test) > 0.99
    assert 0 < at_risk.value_at_risk_ <= at_risk.cvar_
    lazy = at_risk.predict(da.from_array(X_test, chunks=(250, -1)))
    np.testing.assert_array_equal(lazy.compute(), at_risk.to_local().predict(X_test))
    at_risk.to_local().partial_fit(X_test, y_test)


def test_a_density_is_that_of_one_machine(density, points):
    one = parsimon.SPPPOTIntensity().fit(points[:2000])
    grid = np.linspace(*one.domain_[0], 100)[:, None]
    np.testing.assert_array_equal(density.domain_, one.domain_)
    np.testing.assert_allclose(density.kernel_.bandwidth, one.kernel_.bandwidth)
    found = density.to_local().score_samples(grid)
    np.testing.assert_allclose(found, one.score_samples(grid), rtol=0, atol=1e-9)
    assert [entry["phase"] for entry in density.history_] == ["look", "settings", "weights"]
    lazy = density.score_samples(da.from_array(grid, chunks=(30, -1)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), found)
    lazy = density.intensity([dask.delayed(grid)])
    np.testing.assert_array_equal(lazy[0].compute(), density.intensity(grid))
    with pytest.raises(ValueError, match="to_local"):
        density.intensity([dask.delayed(grid)], return_std=True)
    np.testing.assert_allclose(density.intensity(grid, return_std=True)[1] > 0, True)


READ = []


def read_points(X, number):
    READ.append(number)
    return X


def test_points_are_read_once_where_there_is_room(client, points, density):
    READ.clear()
    parts = [dask.delayed(read_points)(points[i : i + 500], i) for i in range(0, 2000, 500)]
    model = SPPPOTIntensity(client=client).fit(parts)
    np.testing.assert_array_equal(model.weights_, density.weights_)
    # To look at them, and then to keep them.
    assert sorted(READ) == sorted(2 * [0, 500, 1000, 1500])


def test_the_next_day_of_a_density(client, points, tmp_path):
    inside = {"domain": (-5, 6), "half_life": 1500.0}
    days = points[:2000], points[2000:]
    model = SPPPOTIntensity(client=client, **inside)
    one = parsimon.SPPPOTIntensity(**inside).fit(days[0], exposure=2.0)
    model.partial_fit(da.from_array(days[0], chunks=(500, -1)), exposure=2.0)
    one.partial_fit(days[1], exposure=1.0)
    model.partial_fit(da.from_array(days[1], chunks=(300, -1)), exposure=1.0)
    grid = np.linspace(-5, 6, 100)[:, None]
    np.testing.assert_allclose(model.intensity(grid), one.intensity(grid), rtol=1e-9)
    assert model.n_points_ == one.n_points_ == 3000
    model.save(tmp_path / "model.parsimon")
    np.testing.assert_array_equal(
        load(tmp_path / "model.parsimon").score_samples(grid), model.score_samples(grid)
    )


# Of how many parts a late one waits for, and whether they are all there.
OTHERS, OTHERS_ARE_THERE = set(), threading.Event()


def late(block, block_info=None):
    number = block_info[0]["chunk-location"][0]
    if number == 0:
        assert OTHERS_ARE_THERE.wait(timeout=120)
    else:
        OTHERS.add(number)
        if len(OTHERS) == 3:
            OTHERS_ARE_THERE.set()
    return block


def test_a_part_that_comes_last_does_not_change_the_model(fitted, data):
    X, y = chunked(*data[:2])
    OTHERS.clear(), OTHERS_ARE_THERE.clear()
    side_by_side = {**QUIET, "n_workers": 1, "threads_per_worker": 4, "processes": False}
    with LocalCluster(**side_by_side) as cluster, Client(cluster, set_as_default=False) as client:
        other = make(client).fit(X.map_blocks(late, dtype=float), y)
    assert OTHERS_ARE_THERE.is_set()
    np.testing.assert_array_equal(other.dictionary_, fitted.dictionary_)
    np.testing.assert_array_equal(other.weights_, fitted.weights_)


def test_the_next_day_in_a_new_process(client, data, tmp_path):
    X, y, *_ = data
    model = make(client).fit(*chunked(X[:500], y[:500]))
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    np.savez(tmp_path / "day.npz", X=X[500:], y=y[500:])
    python(f"""
        import pickle
        import numpy as np
        import dask.array as da
        from distributed import Client, LocalCluster
        if __name__ == "__main__":
            folder = {str(tmp_path)!r}
            with open(folder + "/model.pickle", "rb") as file:
                model = pickle.load(file)
            day = np.load(folder + "/day.npz")
            X, y = da.from_array(day["X"], chunks=(250, -1)), da.from_array(day["y"], chunks=250)
            with LocalCluster(n_workers=1, processes=False, **{QUIET!r}) as cluster:
                with Client(cluster):
                    model.partial_fit(X, y)
            np.save(folder + "/weights.npy", model.weights_)
    """)
    model.partial_fit(*chunked(X[500:], y[500:]))
    found = np.load(tmp_path / "weights.npy")
    scale = np.abs(model.weights_).max()
    np.testing.assert_allclose(found, model.weights_, rtol=0, atol=1e-9 * scale)


@pytest.mark.slow
def test_thirty_daily_files_are_as_good_as_one_pass(client, tmp_path):
    X, y = make_multidist(4000, random_state=0)
    model, one = POLKClassifier(client=client, random_state=0), parsimon.POLKClassifier()
    one.set_params(random_state=0)
    for day in range(30):
        rows = slice(100 * day, 100 * (day + 1))
        np.savez(tmp_path / f"{day}.npz", X=X[rows], y=y[rows])
        halves = [slice(0, 50), slice(50, 100)]
        model.partial_fit(
            [dask.delayed(read)(tmp_path / f"{day}.npz", "X", half) for half in halves],
            [dask.delayed(read)(tmp_path / f"{day}.npz", "y", half) for half in halves],
        )
        one.partial_fit(X[rows], y[rows])
    assert model.score(X[3000:], y[3000:]) > one.score(X[3000:], y[3000:]) - 0.01
    assert model.model_order_ <= 1.5 * one.model_order_


def read(path, name, rows):
    return np.load(path)[name][rows]


def test_a_first_day_of_one_class(client, labelled):
    X, y, X_test, y_test = labelled
    first, names = y == 0, np.array(["a", "b", "c", "d", "e"])
    model = POLKClassifier(client=client, random_state=0)
    with pytest.raises(ValueError, match=r"only one class, 'a'\. If others come later"):
        model.partial_fit(X[first], names[y[first]])
    with pytest.raises(ValueError, match=r"only one class, 0\."):
        model.fit(X[first], y[first])
    model.partial_fit(X[first], names[y[first]], classes=names)
    assert model.classes_.tolist() == names.tolist()
    assert set(model.predict(X[first])) == {"a"}
    model.partial_fit(X, names[y])
    assert model.score(X_test, names[y_test]) > 0.9


def test_the_next_day(client, data):
    X, y, X_test, y_test = data
    model = make(client).partial_fit(*chunked(X[:500], y[:500]))
    model.partial_fit(*chunked(X[500:], y[500:]))
    assert model.score(X_test, y_test) > 0.99


def test_the_example_of_the_page(client, labelled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = chunked(*labelled[:2])
    page = (Path(__file__).resolve().parents[1] / "docs" / "scale.md").read_text(encoding="utf-8")
    names = {"X": X[:250], "y": y[:250], "tomorrow": (X[250:], y[250:])}
    exec(re.search(r"```python dask\n(.*?)```", page, re.DOTALL)[1], names)
    assert names["labels"].shape == (250,)
    assert load("model.parsimon").score(*labelled[2:]) > 0.9


# -- collections ----------------------------------------------------------------------------------


def test_collections_of_all_kinds_give_the_same_model(client, fitted, data):
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    X, y, *_ = data
    rows = [slice(i, i + 250) for i in range(0, 1000, 250)]
    as_delayed = [dask.delayed(X[part]) for part in rows], [dask.delayed(y[part]) for part in rows]
    as_futures = (
        [client.scatter(X[part]) for part in rows],
        [client.scatter(y[part]) for part in rows],
    )
    as_polars = (
        [dask.delayed(pl.DataFrame)(X[part], schema=["a", "b"]) for part in rows],
        [dask.delayed(pl.Series)(y[part]) for part in rows],
    )
    as_pandas = (
        [dask.delayed(pd.DataFrame)(X[part], columns=["a", "b"]) for part in rows],
        [dask.delayed(pd.Series)(y[part]) for part in rows],
    )
    for name, (samples, labels) in {
        "delayed": as_delayed,
        "futures": as_futures,
        "polars": as_polars,
        "pandas": as_pandas,
        "columns apart": (da.from_array(X, chunks=(250, 1)), da.from_array(y, chunks=250)),
    }.items():
        model = make(client).fit(samples, labels)
        np.testing.assert_array_equal(model.weights_, fitted.weights_, err_msg=name)


def test_dataframes_of_dask(client, fitted, data):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, X_test, _ = data
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=4, sort=False)
    labels = dd.from_pandas(pd.Series(y), npartitions=4, sort=False)
    model = make(client).fit(frame, labels)
    np.testing.assert_array_equal(model.weights_, fitted.weights_)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    tested = pd.DataFrame(X_test, columns=["a", "b"], index=range(7, 7 + len(X_test)))
    lazy = dd.from_pandas(tested, npartitions=2, sort=False)
    expected = model.to_local().predict(tested)
    found = model.predict(lazy)
    assert isinstance(found, dd.Series)
    pd.testing.assert_series_equal(
        found.compute(), pd.Series(expected, index=tested.index), check_names=False
    )


def test_predictions_are_lazy(client, classifier, labelled):
    X_test = labelled[2]
    samples = da.from_array(X_test, chunks=(200, -1))
    local = classifier.to_local()
    for method in ("predict", "decision_function", "predict_proba"):
        lazy = getattr(classifier, method)(samples)
        expected = getattr(local, method)(X_test)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        assert lazy.chunks[0] == samples.chunks[0]
        np.testing.assert_array_equal(lazy.compute(), expected)
        parts = getattr(classifier, method)([dask.delayed(X_test[:9]), client.scatter(X_test[9:])])
        np.testing.assert_array_equal(np.concatenate(dask.compute(*parts)), expected)
        np.testing.assert_array_equal(getattr(classifier, method)(X_test), expected)


def test_probabilities_need_the_logistic_loss():
    with pytest.raises(AttributeError, match="predict_proba"):
        POLKClassifier().predict_proba  # noqa: B018


def test_unknown_lengths_and_weights(client, fitted, data):
    X, y, X_test, _ = data
    samples, labels = chunked(X, y)
    known = samples[:, 0] < np.inf
    model = make(client).fit(samples[known], labels[known], da.ones(1000, chunks=250))
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=0, atol=1e-6)
    lazy = model.predict(da.from_array(X_test, chunks=(250, -1)))
    np.testing.assert_array_equal(lazy.compute(), model.predict(X_test))


def test_arrays_beside_collections(client, fitted, data):
    X, y, *_ = data
    samples = chunked(X, y)[0]
    model = make(client).fit(samples, y, np.ones(len(X)))
    np.testing.assert_array_equal(model.weights_, fitted.weights_)
    model = make(client).fit(samples, y.tolist())
    np.testing.assert_array_equal(model.weights_, fitted.weights_)
    with pytest.raises(ValueError, match=r"X has 1000 samples and y has the shape \(999,\)"):
        make(client).fit(samples, y[:-1])


def test_samples_in_memory(client, data):
    X, y, X_test, y_test = data
    assert make(client).fit(X, y).score(X_test, y_test) > 0.99


# -- conventions ----------------------------------------------------------------------------------


def test_the_plain_estimator(fitted, data, tmp_path):
    X, y, X_test, _ = data
    local = fitted.to_local()
    assert type(local) is parsimon.POLKRegressor
    assert "client" not in local.get_params()
    expected = local.predict(X_test)
    fitted.save(tmp_path / "model.parsimon")
    np.testing.assert_array_equal(load(tmp_path / "model.parsimon").predict(X_test), expected)
    assert dumps(fitted) == dumps(local)
    local.partial_fit(X[:100], y[:100])
    np.testing.assert_array_equal(fitted.predict(X_test), expected)


def test_clones_have_the_client_and_pickles_do_not(client, fitted, data):
    assert clone(fitted).client is client
    again = pickle.loads(pickle.dumps(fitted))
    assert again.client is None
    np.testing.assert_array_equal(again.predict(data[2]), fitted.predict(data[2]))
    again.partial_fit(*chunked(*data[:2]))  # with the client that there is


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("POLKClassifier", ["logistic"]),
        ("POLKRegressor", ["huber"]),
        ("COLKRegressor", ["cvar"]),
        ("SPPPOTIntensity", []),
    ],
)
def test_parameters_are_those_of_the_plain_estimator(name, first):
    plain, mine = getattr(parsimon, name), getattr(parsimon.dask, name)
    assert mine().get_params() == {**plain().get_params(), "client": None}
    assert mine(*first).get_params() == {**plain(*first).get_params(), "client": None}
    with pytest.raises(ValueError, match="learning_rate must be"):
        mine(learning_rate=-1).fit(np.zeros((3, 1)), [0, 1, 0])


def test_callbacks_are_told_of_the_whole_of_fit(client, data):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has them from 1.9 on.")
    said = []

    class Listener(callback.FitCallback):
        def setup(self, estimator, context):
            said.append("setup")

        def on_fit_task_begin(self, estimator, context):
            said.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context):
            said.append(f"end {context.task_name}, {estimator.model_order_ > 0}")

        def teardown(self, estimator, context):
            said.append("teardown")

    make(client).set_callbacks(Listener()).fit(*chunked(*data[:2]))
    assert said == ["setup", "begin fit", "end fit, True", "teardown"]


def test_what_is_told(client, fitted, classifier):
    phases = [entry["phase"] for entry in fitted.history_]
    assert phases[:3] == ["look", "points", "weights"]
    assert {"seconds", "rounds", "loss", "points"} <= set(fitted.history_[-1])
    assert any(event["phase"] == "weights" for _, event in client.get_events("parsimon"))
    names = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    wanted = ("look", "draw", "scout", "scout-merge", "coordinates", "round", "round-add")
    assert {f"parsimon-{name}" for name in wanted} <= names


def test_progress_is_shown(client, data, capsys):
    pytest.importorskip("tqdm")
    make(client, verbose=1).fit(*chunked(*data[:2]))
    assert "points=" in capsys.readouterr().err


# Steps find the points: a weighted sample is not a repeated one, as for the plain estimators. A
# density has no such steps.
NOT_EQUIVALENT = "points are found by steps of stochastic gradient descent"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": NOT_EQUIVALENT,
    "check_sample_weight_equivalence_on_sparse_data": NOT_EQUIVALENT,
}


@pytest.mark.slow
@pytest.mark.usefixtures("client")
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [POLKClassifier(), POLKRegressor(), SPPPOTIntensity()],
    expected_failed_checks=lambda estimator: (
        {} if isinstance(estimator, SPPPOTIntensity) else EXPECTED_FAILURES
    ),
)
def test_checks_of_scikit_learn_in_memory(estimator, check):
    check(estimator)


# -- sentences ------------------------------------------------------------------------------------


def test_bad_partitions_are_named_and_the_cluster_goes_on(client, fitted, data):
    X, y, *_ = data
    model = make(client).fit(*chunked(X, y))
    bad = X.copy()
    bad[600, 0] = np.nan
    with pytest.raises(ValueError, match=r"Partition 2: Input X contains NaN"):
        model.fit(*chunked(bad, y))
    np.testing.assert_array_equal(model.weights_, fitted.weights_)  # as it was
    model.fit(*chunked(X, y))


def test_chunks_that_do_not_fit(client, data):
    X, y, *_ = data
    with pytest.raises(ValueError, match="4 partitions and y has 2"):
        make(client).fit(chunked(X, y)[0], da.from_array(y, chunks=500))
    with pytest.raises(ValueError, match="Partition 0: X has 250 samples there and y has 400"):
        make(client).fit(chunked(X, y)[0], da.from_array(y, chunks=(400, 100, 250, 250)))


def test_clients_that_are_none(data):
    with pytest.raises(TypeError, match=r"distributed\.Client or None; got str"):
        make("localhost").fit(*chunked(*data[:2]))


def test_no_cluster():
    code = """
        import numpy as np
        from parsimon.dask import POLKClassifier
        try:
            POLKClassifier().fit(np.zeros((3, 1)), [0, 1, 0])
        except ValueError as error:
            print(error)
    """
    assert "There is no Dask cluster" in python(code)


def test_without_dask():
    code = """
        import sys
        sys.modules["distributed"] = None
        import parsimon
        try:
            import parsimon.dask
        except ImportError as error:
            print(error)
    """
    assert "pip install 'parsimon[dask]'" in python(code)


def python(code):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True
    ).stdout


# -- faults ---------------------------------------------------------------------------------------


def test_waiting_that_ends_early_leaves_the_cluster_usable(client, data, monkeypatch):
    X, y, *_ = data
    slow = chunked(X, y)[0].map_blocks(lambda block: time.sleep(0.3) or block, dtype=float)
    timer = threading.Timer(0.15, interrupt)
    timer.start()
    model = make(client)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(slow, chunked(X, y)[1])
    finally:
        timer.join()
    assert not hasattr(model, "weights_")
    assert client.submit(lambda: 3).result(timeout=20) == 3
    make(client).fit(*chunked(X, y))


def interrupt():
    import _thread

    _thread.interrupt_main()


def test_data_that_are_made_again_are_not_kept(client, fitted, data, monkeypatch):
    X, y, *_ = data
    monkeypatch.setattr("parsimon.dask._cluster._ROOM", 0.0)
    model = make(client).fit(*chunked(X, y))
    np.testing.assert_array_equal(model.weights_, fitted.weights_)


@pytest.mark.slow
def test_workers_that_die_do_not_change_the_model():
    X, y = make_multidist(8000, random_state=0)
    random = np.random.default_rng(0)
    with LocalCluster(n_workers=4, **QUIET) as cluster, Client(cluster) as client:
        model = POLKClassifier(client=client, random_state=0)
        expected = model.fit(*chunked(X, y, 500)).weights_
        begun = time.perf_counter()
        model.fit(*chunked(X, y, 500))
        usual = time.perf_counter() - begun
        for _ in range(3):
            nannies = list(cluster.workers.values())  # one that starts again may be missing
            nanny = nannies[random.integers(len(nannies))]
            moment = random.uniform(0, usual)
            timer = threading.Timer(moment, lambda pid=nanny.pid: os.kill(pid, 9))
            timer.start()
            try:
                found = model.fit(*chunked(X, y, 500)).weights_
            finally:
                timer.join()
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            client.wait_for_workers(4, timeout=60)
