"""prototypes and shapley_values: sums that are predictions, shares that are exact."""

import itertools
import math

import numpy as np
import pytest
from export_common import of_kernel
from numpy.testing import assert_allclose
from polk_common import GIVEN, task
from sklearn.datasets import load_digits, make_friedman1
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import parsimon
from parsimon import KernelExpansion, kernels
from parsimon.explain import prototypes, shapley_values
from parsimon.plotting import PrototypesDisplay, ShapleyDisplay


def brute_force(f, x, background):
    """Return Shapley values by their definition, over all subsets of the features."""
    count, points = len(x), f.dictionary

    def factor(j, value):
        row = np.array(x)
        row[j] = value
        away = np.zeros(count)
        away[j] = 1
        # A sample that fits the points everywhere but in feature j.
        return np.array([f.kernel(np.where(away, row, p)[None], p[None])[0, 0] for p in points])

    known = np.stack([factor(j, x[j]) for j in range(count)])
    unknown = np.ones_like(known)
    if background is not None:
        means = [[factor(j, row[j]) for row in background] for j in range(count)]
        unknown = np.array(means).mean(axis=1)

    def value(subset):
        product = np.prod([(known if j in subset else unknown)[j] for j in range(count)], axis=0)
        return product @ f.weights

    shares = np.zeros((count, f.weights.shape[1]))
    for j in range(count):
        others = [i for i in range(count) if i != j]
        for size in range(count):
            weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            for subset in itertools.combinations(others, size):
                shares[j] += weight * (value({*subset, j}) - value(set(subset)))
    return shares


@pytest.mark.parametrize("with_background", [False, True])
@pytest.mark.parametrize("features", [1, 2, 5])
@pytest.mark.parametrize("kind", [kernels.Gaussian, kernels.Laplacian])
def test_shares_are_those_of_the_definition(kind, features, with_background):
    random = np.random.default_rng(0)
    kernel = kind(random.uniform(0.5, 2, features))
    f = KernelExpansion(kernel, random.normal(size=(6, features)), random.normal(size=(6, 2)))
    X = random.normal(size=(3, features))
    background = random.normal(size=(4, features)) if with_background else None
    found = shapley_values(f, X, background=background)
    expected = [brute_force(f, x, background) for x in X]
    assert_allclose(found.values, expected, rtol=0, atol=1e-14)
    assert_allclose(found.base + found.values.sum(axis=1), f(X), atol=1e-13)


def test_sums_products_and_multiples_of_kernels():
    random = np.random.default_rng(0)
    a, b = kernels.Gaussian(0.8), kernels.Laplacian([1.0, 2.0, 3.0])
    D, W, X = (random.normal(size=(5, n)) for n in (3, 1, 3))
    f, g, h = (KernelExpansion(kernel, D, W) for kernel in (a, b, a * b))
    mixed = KernelExpansion(2.0 * a + b * (a + 0.5 * b) + 3.0 * kernels.Constant(), D, W)
    squared = KernelExpansion(b * b, D, W)
    expected = 2 * shapley_values(f, X).values + shapley_values(h, X).values
    expected = expected + 0.5 * shapley_values(squared, X).values
    found = shapley_values(mixed, X)
    assert_allclose(found.values, expected, atol=1e-14)
    assert_allclose(found.base + found.values.sum(axis=1), mixed(X)[:, 0], atol=1e-13)
    assert_allclose(shapley_values(g, X).values, shapley_values(1.0 * g, X).values)


def test_far_from_all_points_nothing_is_divided_by_zero():
    f = KernelExpansion(kernels.Gaussian(0.01), np.zeros((2, 3)), [1.0, 2.0])
    found = shapley_values(f, [[9.0, 9.0, 9.0]])
    assert_allclose(found.values, np.full((1, 3), -1.0), atol=1e-12)
    assert found.base == 3.0


def test_a_pipeline_is_explained_in_its_own_units():
    X, y = task()
    model = make_pipeline(StandardScaler(), parsimon.POLKRegressor(random_state=0))
    model.fit(X * 50 + 3, y)
    found = shapley_values(model, X[:5] * 50 + 3, background=X * 50 + 3)
    assert_allclose(found.base + found.values.sum(axis=1), model.predict(X[:5] * 50 + 3))


def test_other_kernels_are_refused():
    with pytest.raises(ValueError, match="products over the features, which Cauchy"):
        shapley_values(of_kernel(kernels.Cauchy(1.0)), [[0.0, 0.0]])


def test_contributions_add_up_to_the_prediction():
    X, y = task()
    for model in (
        parsimon.POLKClassifier(**GIVEN).fit(X, y),
        parsimon.POLKRegressor(random_state=0).fit(X, y),
        parsimon.POLKOneClass().fit(X),
    ):
        found = prototypes(model, X[:20], n_prototypes=3)
        total = found.contributions.sum(axis=1) + found.rest + found.intercept
        assert_allclose(total, found.values)
        sizes = np.abs(found.contributions)
        assert (np.diff(sizes, axis=1) <= 0).all()
        if isinstance(model, parsimon.POLKClassifier):
            assert_allclose(found.values, model.decision_function(X[:20]).max(axis=1))
        elif isinstance(model, parsimon.POLKRegressor):
            assert_allclose(found.values, model.predict(X[:20]))


def test_few_points_are_all_prototypes():
    f = KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], [2.0, -1.0])
    found = prototypes(f, [[0.9]], n_prototypes=9)
    assert found.points.tolist() == [[0, 1]]
    assert found.rest == pytest.approx(0)


def test_points_speak_for_the_class_that_wins_the_votes():
    X, y = task()
    small, _ = parsimon.compress(SVC(gamma=1.0).fit(X[:200], y[:200]), max_points=30)
    found = prototypes(small, X[:20], n_prototypes=3)
    pairs = small._values(X[:20])
    first, second = np.triu_indices(5, 1)
    for row, label in enumerate(small.predict(X[:20])):
        expected = pairs[row, first == label].sum() - pairs[row, second == label].sum()
        assert found.values[row] == pytest.approx(expected)
    total = found.contributions.sum(axis=1) + found.rest + found.intercept
    assert_allclose(total, found.values, rtol=1e-9)
    assert (found.values > 0).all()


def test_what_cannot_be_explained_is_refused():
    X, y = task()
    model = parsimon.POLKClassifier(**GIVEN).fit(X, y)
    with pytest.raises(ValueError, match="X has 1 features, but the model has 2"):
        prototypes(model, [[1.0]])
    with pytest.raises(ValueError, match="output must be an integer from 0 to 4; got 5"):
        prototypes(model, X, output=5)
    with pytest.raises(ValueError, match="n_prototypes must be an integer of at least 1"):
        prototypes(model, X, n_prototypes=0)


# -- which samples points were --------------------------------------------------------------------


@pytest.mark.parametrize("scaled", [False, True])
def test_points_are_found_among_the_samples_of_training(scaled):
    X, y = task()
    X = X * [3.0, 0.5] + 3.0
    model = parsimon.POLKClassifier(random_state=0, epochs=1)
    model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(X, y)
    found = prototypes(model, X[:20], n_prototypes=4, samples=X, labels=y)
    assert_allclose(found.rows, X[found.samples], rtol=1e-12)
    assert (found.labels == y[found.samples]).all()
    others = prototypes(model, X[:20], n_prototypes=4, samples=X + 1e-3)
    assert (others.samples == -1).all()
    assert others.labels is None
    assert prototypes(model, X[:20]).samples is None


def test_merged_points_are_no_samples():
    X, y = task()
    model = parsimon.BSGDClassifier(kernel=kernels.Gaussian(0.7), max_points=10, random_state=0)
    model.fit(X, y)
    found = prototypes(model, X[:20], n_prototypes=10, samples=X)
    assert (found.samples == -1).any()
    matched = found.samples >= 0
    assert (found.rows[matched] == X[found.samples[matched]]).all()


def test_labels_belong_to_samples():
    X, y = task()
    model = parsimon.POLKClassifier(**GIVEN).fit(X, y)
    with pytest.raises(ValueError, match="labels were given without samples"):
        prototypes(model, X[:2], labels=y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        prototypes(model, X[:2], samples=X, labels=y[:3])


# -- displays -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plt")
class TestPrototypesDisplay:
    def test_images_beside_those_of_the_points(self):
        X, y = load_digits(return_X_y=True)
        model = parsimon.POLKClassifier(random_state=0, epochs=1).fit(X[:300], y[:300])
        given = {"samples": X[:300], "labels": y[:300], "image_shape": (8, 8), "n_prototypes": 3}
        display = PrototypesDisplay.from_estimator(model, X[300:302], **given)
        found = display.prototypes
        assert display.ax_.shape == (2, 4)
        for row, axes in enumerate(display.ax_):
            shown = [panel.images[0].get_array() for panel in axes]
            assert_allclose(shown, [X[300 + row].reshape(8, 8), *found.rows[row].reshape(3, 8, 8)])
            assert [panel.get_xlabel() for panel in axes[1:]] == [*map(str, found.labels[row])]
            titles = [float(panel.get_title()) for panel in axes[1:]]
            assert_allclose(titles, found.contributions[row], rtol=0.06)

    def test_bars_add_up_to_the_prediction(self):
        X, y = task()
        model = KernelExpansion(kernels.Gaussian(0.7), X[:20], y[:20] - 1.5)
        display = PrototypesDisplay.from_estimator(model, X[:3], n_prototypes=4)
        assert display.ax_.shape == (3, 1)
        for axes, value in zip(display.ax_[:, 0], model(X[:3]), strict=True):
            assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(value)
            names = [label.get_text() for label in axes.get_yticklabels()]
            assert names[-2:] == ["all others", "intercept"]
            assert all(name.startswith("point ") for name in names[:-2])

    def test_what_does_not_fit_is_refused(self, plt):
        X, y = task()
        model = parsimon.POLKClassifier(**GIVEN).fit(X, y)
        with pytest.raises(ValueError, match="as many pixels as X has features, 2; got"):
            PrototypesDisplay.from_estimator(model, X[:2], image_shape=(8, 8))
        with pytest.raises(ValueError, match="ax must be 2 x 1 Axes; got 3"):
            PrototypesDisplay.from_estimator(model, X[:2], ax=plt.subplots(3)[1])


@pytest.mark.usefixtures("plt")
class TestShapleyDisplay:
    def test_bars_of_one_sample_and_points_of_many(self):
        X, y = make_friedman1(200, random_state=0)
        model = parsimon.POLKRegressor(random_state=0, epochs=1).fit(X, y)
        names = [f"name {j}" for j in range(10)]
        one = ShapleyDisplay.from_estimator(model, X[:1], feature_names=names)
        expected = shapley_values(model, X[:1]).values[0]
        assert_allclose([bar.get_width() for bar in one.ax_.patches], expected[one.features_])
        assert [text.get_text() for text in one.ax_.get_yticklabels()] == [
            names[j] for j in one.features_
        ]
        many = ShapleyDisplay.from_estimator(model, X[:9], background=X[:20], max_features=4)
        sizes = np.abs(shapley_values(model, X[:9], background=X[:20]).values).mean(axis=0)
        assert many.features_.tolist() == np.argsort(-sizes)[:4].tolist()
        drawn = [line.get_xdata() for line in many.ax_.lines if len(line.get_xdata()) == 9]
        assert_allclose(drawn, many.shares[:, many.features_].T)

    def test_what_does_not_fit_is_refused(self):
        X, y = task()
        model = parsimon.POLKClassifier(**GIVEN).fit(X, y)
        with pytest.raises(ValueError, match="output must be an integer from 0 to 4; got 5"):
            ShapleyDisplay.from_estimator(model, X[:2], output=5)
        with pytest.raises(ValueError, match="feature_names must have 2 names; got 1"):
            ShapleyDisplay.from_estimator(model, X[:2], feature_names=["a"])
