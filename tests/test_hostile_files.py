"""Files that were made to do harm: no write out of bounds, no memory without end, no raw errors."""

import json
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from intensity_common import LINE, toy
from persistence_common import load
from polk_common import GIVEN, SGD, task
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC, SVR, OneClassSVM

import parsimon
from parsimon import _core, kernels

FEW = {"kernel": kernels.Gaussian(0.7), "random_state": 0}


def entries_of(model):
    return dict(model._to_archive())


# -- a file that writes out of bounds -------------------------------------------------------------


@pytest.mark.parametrize("size", [1e100, 1e154, 1e200, np.inf, np.nan])
@pytest.mark.parametrize("maintenance", ["merge", "remove", "project"])
def test_a_file_that_writes_out_of_bounds(maintenance, size):
    X, y = task()
    model = parsimon.BSGDClassifier(**FEW, max_points=8, maintenance=maintenance)
    entries = entries_of(model.fit(X[:100], y[:100]))
    with pytest.raises(ValueError, match="1e100 or more"):
        load({**entries, "weights": np.full_like(entries["weights"], size)})
    # What is just accepted can be trained with, or refuses a step; no index is without a guard.
    accepted = load({**entries, "weights": np.full_like(entries["weights"], 0.9e100)})
    before = accepted._model.to_archive().to_bytes()
    try:
        accepted.partial_fit(X[:64], y[:64])
    except (ValueError, parsimon.DivergenceError):
        assert accepted._model.to_archive().to_bytes() == before
    assert accepted.model_order_ <= 8


# -- a small file that takes all memory -----------------------------------------------------------


def test_a_linear_model_of_many_features_that_has_none_of_them():
    X, y = task()
    many = np.zeros((40, 2500))
    many[:, : X.shape[1]] = X[:40]
    entries = entries_of(parsimon.POLKClassifier(random_state=0).partial_fit(many, y[:40]))
    assert "primal.squares" in entries
    dictionary = np.empty((0, 100_000_000))
    with pytest.raises(ValueError, match=r"."):
        load({**entries, "features": 100_000_000, "dictionary": dictionary})


LIMITED = """
    import resource, sys, warnings
    from pathlib import Path
    import parsimon

    warnings.simplefilter("ignore")
    for path in sorted(Path(sys.argv[1]).glob("good*")):  # what loading needs in any case
        parsimon.load(path)
    used = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
    for path in sorted(Path(sys.argv[1]).glob("bad*")):
        most = used + (48 << 20) + 64 * path.stat().st_size
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        try:
            parsimon.load(path)
            print(path.name, "loaded")
        except ValueError as error:
            print(path.name, "refused:", error)
        except MemoryError:
            print(path.name, "MEMORY")
"""


def small_models():
    X, y = task()
    X, y = X[:40], y[:40]
    yield parsimon.POLKClassifier(**GIVEN).fit(X, y)
    yield parsimon.POLKRegressor(**GIVEN).fit(X, y)
    yield parsimon.POLKClassifier(**SGD).fit(X, y)
    yield parsimon.BSGDClassifier(**FEW, max_points=5).fit(X, y)
    yield parsimon.COLKRegressor("cvar", **FEW, learning_rate=0.1).fit(X, y)
    yield parsimon.PolicyEvaluator(kernel=FEW["kernel"]).partial_fit(X, y, np.roll(X, 1, axis=0))
    yield parsimon.SLKLRegressor(**FEW, n_columns=10).fit(X, y)
    yield parsimon.POLKOneClass(kernel=FEW["kernel"]).fit(X)
    for density in (
        parsimon.SPPPOTIntensity(**LINE),
        parsimon.MirrorNewtonIntensity(**LINE),
        parsimon.HybridIntensity(**LINE, patience=5),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of one pass not being enough
            yield density.partial_fit(toy()[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solved = parsimon.SPPPOTIntensity(**{**LINE, "solver": "newton"})
        yield solved.partial_fit(toy()[:100])
    pipeline = parsimon.stream.StreamingPipeline(parsimon.POLKRegressor(**GIVEN))
    yield pipeline.partial_fit(X, 1.0 * y)
    yield parsimon.KernelExpansion(FEW["kernel"], X, X)
    yield parsimon.compress(SVC(gamma=1.0).fit(X, y), max_points=8)[0]
    yield parsimon.compress(SVR(gamma=1.0).fit(X, y), max_points=8)[0]
    yield parsimon.compress(OneClassSVM(gamma=1.0).fit(X), max_points=8)[0]
    yield parsimon.compress(KernelDensity().fit(X), max_points=8)[0]


def without_points(entries):
    """Return the entries of the same model before it had any points."""
    changed = dict(entries)
    for name, value in entries.items():
        if name.endswith("factor.size"):
            changed[name] = 0
        elif (
            (name.startswith(("statistics", "factor", "tracker.factor")) and np.ndim(value))
            or ("dictionary" in name and np.ndim(value))
            or name.endswith("weights")
        ):
            changed[name] = value[:0]
    return changed


def many_nodes(entries, count):
    """Return an untrained model with so many nodes, and no factor."""
    nodes = _core.Quadrature.grid([count]).nodes(_core.Box([0.0], [1.0]))
    lower, upper = entries["domain.lower"], entries["domain.upper"]
    return {
        **entries,
        "quadrature.counts": np.array([count]),
        "dictionary": lower + nodes * (upper - lower),
        "dictionary.ids": np.arange(count),
        "dictionary.next_id": count,
        "dictionary.protected": np.ones(count, dtype=np.int64),
        "dictionary.kernel_with_nodes": np.empty((0, count)),
        "weights": np.zeros((count, entries["weights"].shape[1])),
        "factor": np.empty(0),
        "factor.size": 0,
        "factor.diagonal": np.empty(0),
    }


def claims(entries):
    """Yield files that claim much more than they hold."""
    empty = without_points(entries)
    for features in (10**8, 2**39):
        huge = {**empty, "features": features}
        for name in ("dictionary", "tracker.dictionary", "newton.points"):
            if name in huge:
                huge[name] = np.empty((0, features))
        if "estimator.fitted" in huge:
            fitted = json.loads(huge["estimator.fitted"])
            huge["estimator.fitted"] = json.dumps({**fitted, "n_features_in_": features})
        yield huge
        yield {name: value for name, value in huge.items() if not name.startswith("estimator")}
    yield {**empty, "outputs": 2**20, "weights": np.empty((0, 2**21))}
    yield {**empty, "outputs": 2**39, "weights": np.empty((0, 2**40))}
    if "quadrature" in entries:
        for count in (4000, 65_536, 2**31):
            yield {**entries, "quadrature.counts": np.array([count])}
    if entries["algorithm"] == "spppot":  # as many nodes as it says, whose kernel values are more
        yield many_nodes(entries, 10_000)
    if "factor.size" in entries:  # many points, and a factor that says nothing of them
        size = 3000
        random = np.random.RandomState(0)
        width = entries["dictionary"].shape[1]
        columns = entries["weights"].shape[1]
        yield {
            **entries,
            "dictionary": 1e3 * random.standard_normal((size, width)),
            "dictionary.ids": np.arange(size),
            "dictionary.next_id": size,
            "dictionary.protected": np.zeros(size, dtype=np.int64),
            "weights": np.ones((size, columns)),
            "factor": np.ones(1),
            "factor.size": 1,
            "factor.diagonal": np.ones(1),
        }
    if "estimator.fitted" in entries:
        names = ["x" * 200_000] + ["y"] * 20_000
        for bomb in (
            {"array": names, "type": "text", "object": False, "shape": [len(names)]},
            {"array": [], "type": "<f8", "object": False, "shape": [2**40, 0]},
        ):
            fitted = json.loads(entries["estimator.fitted"]) | {"feature_names_in_": bomb}
            yield {**entries, "estimator.fitted": json.dumps(fitted)}


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_small_file_that_takes_all_memory(tmp_path):
    bad = 0
    for i, model in enumerate(small_models()):
        model.save(tmp_path / f"good{i}")
        for entries in claims(entries_of(model)):
            (tmp_path / f"bad{bad}").write_bytes(_core.Archive(entries).to_bytes())
            bad += 1
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = done.stdout.splitlines()
    assert len(said) == bad > 80
    assert not [line for line in said if "MEMORY" in line]


def test_a_kernel_of_a_thousand_parts_on_many_points(tmp_path):
    X = np.random.default_rng(0).normal(size=(4000, 30))
    parts = ",".join(f"gaussian({width})" for width in range(1, 1001))
    small = parsimon.KernelExpansion(kernels.Gaussian(1.0), X, np.ones(len(X)))
    small.save(tmp_path / "good")
    entries = dict(small._to_archive())
    with pytest.raises(ValueError, match="1000 parts, and so many points"):
        load({**entries, "kernel": f"sum({parts})"})
    (tmp_path / "bad").write_bytes(_core.Archive({**entries, "kernel": f"sum({parts})"}).to_bytes())
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "bad refused: The kernel in the model file has 1000 parts" in done.stdout
    few = {**entries, "dictionary": X[:20], "weights": np.ones((20, 1))}
    few["dictionary.origin"] = entries["dictionary.origin"]
    assert load({**few, "kernel": f"sum({parts})"}).model_order == 20


# -- types that NumPy would evaluate --------------------------------------------------------------


@pytest.mark.parametrize("name", [",i8", "i8,f8", "(9,9)i8", "O", "V8", "U9", "<f16", "", "m8", 3])
def test_comma_i8_as_an_array_type_in_a_file_gives_a_syntax_error(name):
    X, y = task()
    model = parsimon.POLKClassifier(**GIVEN).fit(X[:40], y[:40])
    entries = entries_of(model)
    if isinstance(name, str):
        with pytest.raises(ValueError, match="unknown type"):
            load({**entries, "labels.type": name})
    fitted = json.loads(entries["estimator.fitted"])
    fitted["feature_names_in_"] = {"array": [1, 2], "type": name, "object": False}
    with pytest.raises(ValueError, match="unknown type"):
        load({**entries, "estimator.fitted": json.dumps(fitted)})
