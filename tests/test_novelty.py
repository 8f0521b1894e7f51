"""POLKOneClass: the function it learns, the threshold in fit and in a stream, and its file."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from persistence_common import WAYS, load
from scipy import linalg, sparse
from sklearn.metrics import roc_auc_score

import parsimon
from parsimon import POLKClassifier, POLKOneClass, POLKRegressor, _core, kernels
from parsimon.novelty import weighted_quantile
from parsimon.stream import in_blocks


def ring(count=1000, seed=0):
    """Samples on a circle."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 2 * np.pi, count)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + random.normal(0, 0.1, (count, 2))


def streamed(X, rows=10, **options):
    model = POLKOneClass(**options)
    for block, _ in in_blocks(X, rows=rows):
        model.partial_fit(block)
    return model


@pytest.mark.parametrize("regularization", [1.0, 0.01, 1e-4])
def test_scores_are_those_of_regularized_least_squares(regularization):
    X, others = ring(200), ring(50, seed=1) * 1.3
    kernel = kernels.Gaussian(0.4)
    gram = kernel(X)
    weights = linalg.solve(gram + len(X) * regularization * np.eye(len(X)), np.ones(len(X)))
    expected = kernel(others, X) @ weights
    options = {"kernel": kernel, "regularization": regularization, "budget": 1e-6}
    model = POLKOneClass(**options, max_points=None, random_state=0).fit(X)
    assert_allclose(model.score_samples(others), expected, atol=1e-5)
    # What a small dictionary takes away.
    small = POLKOneClass(**{**options, "budget": None}, max_points=40, random_state=0).fit(X)
    assert small.model_order_ <= 40
    assert_allclose(small.score_samples(others), expected, atol=0.1)


@pytest.mark.parametrize("learn", ["fit", "stream"])
def test_what_is_far_from_all_samples_is_found(learn):
    X, random = ring(), np.random.default_rng(2)
    model = POLKOneClass(gamma=10.0, random_state=0)
    model = model.fit(X) if learn == "fit" else streamed(X, gamma=10.0)
    normal, strange = ring(500, seed=1), random.uniform(-2, 2, (500, 2))
    strange = strange[np.abs(np.linalg.norm(strange, axis=1) - 1) > 0.5]
    truth = np.repeat([1, 0], [len(normal), len(strange)])
    X = np.concatenate([normal, strange])
    assert roc_auc_score(truth, model.score_samples(X)) > 0.99
    assert (model.predict([[0.0, 0.0], [3.0, 0.0]]) == -1).all()
    assert_array_equal(model.predict(X) == 1, model.decision_function(X) >= 0)
    assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_)


@pytest.mark.parametrize("contamination", [0.02, 0.1, 0.5])
def test_the_share_of_outliers_is_what_was_asked_for(contamination):
    X = ring()
    model = POLKOneClass(contamination, random_state=0)
    assert (model.fit_predict(X) == -1).sum() == round(1000 * contamination)
    assert_array_equal(model.fit_predict(X), model.predict(X))
    fresh = ring(4000, seed=1)
    stream = streamed(ring(3000), contamination=contamination)
    # The latest 1000 scores: within four standard deviations.
    error = 4 * np.sqrt(contamination * (1 - contamination) / 1000)
    assert abs((stream.predict(fresh) == -1).mean() - contamination) < error


def test_the_threshold_is_a_quantile_of_scores_before_learning():
    X, model = ring(400), POLKOneClass(0.2, batch_size=10).partial_fit(ring(100, seed=5))
    scores = [model.score_samples(ring(100, seed=5))]
    for block, _ in in_blocks(X, rows=30):
        scores.append(model.score_samples(block))
        model.partial_fit(block)
        latest = np.concatenate(scores)[-max(len(np.concatenate(scores)) // 2, 100) :]
        assert_allclose(model.offset_, np.quantile(latest, 0.2))


def test_a_stream_that_moves_takes_the_threshold_along():
    model = streamed(ring(2000))
    shifted = ring(3000, seed=3) + np.array([4.0, 0.0])
    assert (model.predict(shifted) == -1).mean() > 0.8
    for block, _ in in_blocks(shifted, rows=10):
        model.partial_fit(block)
    assert (model.predict(ring(500, seed=4) + np.array([4.0, 0.0])) == 1).mean() > 0.8


def test_single_samples_and_frames():
    X = ring(300)
    expected = streamed(X, rows=50, gamma=2.0).predict(X)
    for kind in ("pandas", "polars"):
        library = pytest.importorskip(kind)
        frame = library.DataFrame({"x": X[:, 0], "y": X[:, 1]})
        assert_array_equal(streamed(frame, rows=50, gamma=2.0).predict(frame), expected)
    one = streamed(X, rows=1, gamma=2.0)
    assert (one.predict(X) == expected).mean() > 0.9
    rows = sparse.csr_matrix(X)
    assert_array_equal(streamed(rows, rows=50, gamma=2.0).predict(rows), expected)


def test_it_says_what_was_chosen():
    X = ring(200)
    for model in (POLKOneClass().fit(X), streamed(X), POLKOneClass(learning_rate=0.5).fit(X)):
        assert model.regularization_ == 0.01
        assert model.learning_rate_ > 0
    assert model.learning_rate_ == 0.5


def test_samples_without_weight_count_for_nothing():
    X = np.concatenate([ring(200), ring(200) + 4.0])
    weight = np.repeat([1.0, 0.0], 200)
    model = POLKOneClass(random_state=0).fit(X, sample_weight=weight)
    assert model.score_samples(X[:200]).mean() > 10 * abs(model.score_samples(X[200:]).mean())


def test_a_weighted_quantile_is_that_of_repeated_values():
    random = np.random.default_rng(0)
    values, times = random.normal(size=30), random.integers(0, 4, 30)
    times[0] = 1
    for share in (0.01, 0.1, 0.37, 0.5):
        expected = np.quantile(np.repeat(values, times), share)
        assert_allclose(weighted_quantile(values, times.astype(float), share), expected)
        # Only how weights compare counts, and equal ones are as none.
        assert_allclose(weighted_quantile(values, 0.01 * times, share), expected)
        equal = weighted_quantile(values, np.full(30, 3.0), share)
        assert_allclose(equal, np.quantile(values, share))
        assert weighted_quantile(values, np.zeros(30), share) == np.quantile(values, share)


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_weights_count_in_the_threshold(learn, tmp_path):
    # What has no weight is not among the tenth that is to be called outliers.
    X = np.concatenate([ring(300), ring(300, seed=1) + 6.0])
    weight = np.repeat([1.0, 0.0], 300)
    order = np.random.default_rng(0).permutation(600)
    model = POLKOneClass(0.1, random_state=0)
    if learn == "fit":
        model.fit(X[order], sample_weight=weight[order])
    for block, weights in in_blocks(X[order], weight[order], rows=40):
        if learn == "partial_fit":
            model.partial_fit(block, sample_weight=weights)
    share = (model.predict(X[:300]) == -1).mean()
    assert 0.05 < share < 0.2
    assert (model.predict(X[300:]) == -1).all()
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    for each in (model, again):
        each.partial_fit(X[:50]).partial_fit(X[50:60], sample_weight=np.full(10, 2.0))
    assert again.offset_ == model.offset_


def test_compress_makes_it_smaller():
    X = ring(500)
    model = POLKOneClass(random_state=0).fit(X)
    before, order = model.score_samples(X), model.model_order_
    model.compress(max_points=order // 2)
    assert model.model_order_ == order // 2
    assert_allclose(model.score_samples(X), before, atol=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contamination": 0}, "contamination must be a number above 0, at most 0.5"),
        ({"contamination": 0.6}, "contamination must be a number above 0, at most 0.5"),
        ({"contamination": "auto"}, "contamination must be a number above 0, at most 0.5"),
        ({"regularization": "auto"}, "regularization must be a finite number, not negative"),
    ],
)
def test_bad_parameters(options, message):
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(POLKOneClass(**options), method)(ring(10))


def test_bad_samples_leave_everything_as_it_was():
    model = streamed(ring(100))
    before = pickle.dumps(model)
    for bad, methods in (
        ([[np.nan, 1.0]], (model.partial_fit, model.fit)),
        (np.empty((0, 2)), (model.partial_fit, model.fit)),
        ([[1.0]], (model.partial_fit,)),
    ):
        for method in methods:
            with pytest.raises(ValueError, match=r"NaN|features|0 sample"):
                method(bad)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("way", WAYS)
def test_learning_goes_on_from_a_file(way, tmp_path):
    model = streamed(ring(200))
    again = WAYS[way](model, tmp_path)
    for each in (model, again):
        each.partial_fit(ring(50, seed=1))
    assert again.offset_ == model.offset_
    assert_array_equal(again._scores_, model._scores_)
    assert_array_equal(again.score_samples(ring()), model.score_samples(ring()))


def test_a_file_that_is_made_up_is_refused(tmp_path):
    model = streamed(ring(200))
    model.save(tmp_path / "model")
    archive = _core.Archive.read(str(tmp_path / "model"))
    entries = {name: archive[name] for name in archive.keys()}  # noqa: SIM118
    assert load(entries).offset_ == model.offset_
    for change in (
        {"estimator": "POLKRegressor"},
        {"loss": "huber(1.35)"},
        {"threshold": "high"},
        {"threshold": np.inf},
    ):
        with pytest.raises(ValueError, match=r".{20}"):
            load({**entries, **change})
    del entries["threshold"]
    with pytest.raises(ValueError, match="offset_"):
        load(entries)
    other = POLKRegressor().fit(ring(50), np.ones(50))
    other.save(tmp_path / "model")
    archive = _core.Archive.read(str(tmp_path / "model"))
    entries = {name: archive[name] for name in archive.keys()}  # noqa: SIM118
    with pytest.raises(ValueError, match=r"not a complete model|does not hold a POLKOneClass"):
        load({**entries, "estimator": "POLKOneClass"})
    assert POLKClassifier._algorithms == POLKOneClass._algorithms
