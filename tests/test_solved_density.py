"""Densities whose weights are solved: exact, normalised on nodes of their own, chosen by data."""

import numpy as np
import pytest
from intensity_common import INTENSITIES, toy
from numpy.testing import assert_allclose
from scipy import integrate
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from parsimon import SPPPOTIntensity, _core, kernels, load
from parsimon.datasets import make_poisson_gaussian
from parsimon.spppot import _choose, _place
from parsimon.spppot._solve import (
    Likelihood,
    Together,
    Uncertainty,
    log_integral,
    log_integrals,
)
from parsimon.spppot._span import PointSpan, ProductSpan, scattered

SQUARE = np.array([[0.0, 1.0], [-2.0, 3.0]])


def clusters(count, seed=0):
    """Three tight clusters in the unit square."""
    random = np.random.RandomState(seed)
    middles = np.array([[0.2, 0.3], [0.7, 0.2], [0.6, 0.8]])
    return middles[random.randint(3, size=count)] + 0.01 * random.randn(count, 2)


def finely(model, cells):
    """Integrate over a grid of the domain, cell by cell."""
    axes = [low + (np.arange(cells) + 0.5) / cells * (high - low) for low, high in model.domain_]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    volume = np.prod(model.domain_[:, 1] - model.domain_[:, 0])
    return volume * np.exp(model.score_samples(nodes)).mean()


def spans():
    grid = _core.ProductGrid([0.0, -2.0], [0.25, 1.0], [5, 6])
    lengths = [0.3, 0.9]
    yield ProductSpan(grid, lengths, SQUARE, [9, 11])
    rule = _core.Quadrature.grid([9, 11])
    yield PointSpan(kernels.Gaussian(lengths), grid.points, SQUARE, rule)


def cloud(count=40):
    random = np.random.RandomState(1)
    return np.column_stack([random.beta(2, 4, count), -2 + 5 * random.beta(4, 3, count)])


# -- spans -----------------------------------------------------------------------------------------


def test_a_grid_and_its_points_span_the_same():
    product, points = spans()
    X = cloud()
    assert product.size == points.size == 30
    for span in (product, points):
        rows, gram = span.rows(X), kernels.Gaussian([0.3, 0.9])(X)
        # Coordinates are orthonormal: products are those of the kernels' projections.
        values = kernels.Gaussian([0.3, 0.9])(X, points.points)
        held = values @ np.linalg.solve(kernels.Gaussian([0.3, 0.9])(points.points), values.T)
        assert_allclose(rows @ rows.T, held, atol=1e-9)
        assert (np.diag(held) <= np.diag(gram) + 1e-9).all()
        assert_allclose(span.moments(X, np.arange(40.0)), np.arange(40.0) @ rows, atol=1e-10)
        vector = np.random.RandomState(0).randn(30)
        at_nodes = span.dense @ vector
        assert_allclose(span.to_nodes(vector), at_nodes, atol=1e-10)
        assert_allclose(span.from_nodes(at_nodes), at_nodes @ span.dense, atol=1e-9)
        assert_allclose(span.coordinates(span.weights(vector)), vector, atol=1e-8)
    nodes = product.quadrature.nodes(_core.Box([0.0, -2.0], [1.0, 3.0]))
    assert_allclose(product.dense @ product.dense.T, product.rows(nodes) @ product.rows(nodes).T)


@pytest.mark.parametrize("features", [1, 2, 3])
def test_the_core_sums_over_a_grid_as_over_its_points(features):
    random = np.random.RandomState(0)
    grid = _core.ProductGrid([0.0] * features, [0.1] * features, [12, 9, 7][:features])
    lengths = [0.11, 0.02, 0.3][:features]
    box = _core.Box([0.0] * features, [1.0] * features)
    rule = _core.Quadrature.grid([4] * features)
    kernel = kernels.Gaussian(lengths).core
    models = [
        _core.SolvedDensity.on_grid(kernel, grid, box, rule),
        _core.SolvedDensity(kernel, grid.points, box, rule),
    ]
    X, amounts = random.rand(50, features), random.rand(50)
    for model in models:
        model.observe(X, amounts, 1.0)
        model.observe(X[:9], np.empty(0), 0.5)
        model.assume(np.random.RandomState(1).randn(len(grid.points)), 0.3, 1.0, 0.0)
    assert_allclose(models[0].moments, models[1].moments, atol=1e-12)
    assert models[0].mass == pytest.approx(0.5 * amounts.sum() + 9)
    probes = random.rand(30, features) * 1.1
    assert_allclose(models[0].log_density(probes), models[1].log_density(probes), atol=1e-10)


def test_scattered_nodes_integrate_what_even_ones_miss():
    points = 0.02 * np.random.RandomState(0).randn(300, 5)
    domain = np.array([[-1.0, 1.0]] * 5)
    nodes, measure = scattered(1 << 13, points, domain)
    density = np.exp(-0.5 * (nodes / 0.02) ** 2).prod(axis=1) / (np.sqrt(2 * np.pi) * 0.02) ** 5
    assert measure @ density * 2**5 == pytest.approx(1, abs=0.03)
    assert measure.sum() == pytest.approx(1, abs=0.05)  # the volume of the box


# -- the solution ----------------------------------------------------------------------------------


@pytest.mark.parametrize("span", [*spans()], ids=["grid", "points"])
def test_the_solution_is_that_of_a_general_minimiser(span):
    moments, mass, ridge = span.moments(cloud(), np.ones(40)), 40.0, 0.7

    def objective(a):
        return -moments @ a + mass * np.log(np.exp(span.dense @ a).mean()) + ridge / 2 * a @ a

    solution = Likelihood(span, moments, mass).solve(ridge)
    found = minimize(objective, np.zeros(30), method="BFGS", options={"gtol": 1e-7})
    assert_allclose(solution.coordinates, found.x, atol=1e-4)
    assert solution.objective <= found.fun + 1e-9
    step = 1e-6 * np.random.RandomState(0).randn(30)
    flat = objective(solution.coordinates + step) - objective(solution.coordinates - step)
    assert abs(flat) < 1e-9


def test_the_deviation_is_that_of_the_inverse_hessian():
    span = next(spans())
    likelihood = Likelihood(span, span.moments(cloud(), np.ones(40)), 40.0)
    solution = likelihood.solve(0.7)
    shares = likelihood.shares(solution)
    phi = span.rows(cloud()) - shares @ span.dense
    centred = span.dense - shares @ span.dense
    hessian = 0.7 * np.eye(span.size) + 40 * (centred.T * shares) @ centred
    assert_allclose(likelihood.matrix(shares, 0.7), hessian, atol=1e-9)
    times = likelihood.hessian(shares, 0.7)
    assert_allclose(np.column_stack([times(row) for row in np.eye(30)]), hessian, atol=1e-9)
    expected = np.sqrt(1 / 40 + np.einsum("ij,ij->i", phi, np.linalg.solve(hessian, phi.T).T))
    found = Uncertainty(likelihood, solution, 0.7).log_std(cloud())
    assert_allclose(found, expected, rtol=1e-9)


def test_draws_tell_the_deviation_of_large_models(monkeypatch):
    span = next(spans())
    likelihood = Likelihood(span, span.moments(cloud(), np.ones(40)), 40.0)
    solution = likelihood.solve(0.7)
    exact = Uncertainty(likelihood, solution, 0.7).log_std(cloud())
    monkeypatch.setattr("parsimon.spppot._solve._MOST_FACTORED", 0)
    drawn = Uncertainty(likelihood, solution, 0.7).log_std(cloud())
    assert np.sqrt(np.mean((drawn / exact - 1) ** 2)) < 0.1


# -- estimators ------------------------------------------------------------------------------------


def test_tight_clusters_integrate_to_one():
    # With the dictionary's nodes as those of the integral it was 6e6, with a finer grid 143.
    model = SPPPOTIntensity(domain=[(0, 1), (0, 1)]).fit(clusters(400))
    assert model.integral_ == pytest.approx(1, abs=0.01)
    assert finely(model, 200) == pytest.approx(1, abs=0.01)
    truth = np.log(1 / 3) - np.log(2 * np.pi * 0.01**2) - 1
    assert model.score_samples(clusters(2000, seed=1)).mean() > truth - 0.1


@pytest.mark.parametrize("seed", range(3))
def test_uniform_points_stay_uniform(seed):
    X = np.random.RandomState(seed).rand(500, 2)
    model = SPPPOTIntensity(domain=[(0, 1), (0, 1)]).fit(X)
    corners = np.array([[i, j] for i in np.linspace(0, 1, 30) for j in np.linspace(0, 1, 30)])
    assert np.exp(model.score_samples(corners)).max() < 1.5


@pytest.mark.parametrize("cls", INTENSITIES)
def test_all_three_solve_the_same_problem(cls):
    given = {"domain": (0, 1), "bandwidth": 0.1, "regularization": 1e-3}
    expected = SPPPOTIntensity(**given).fit(toy())
    assert_allclose(cls(**given).fit(toy()).weights_, expected.weights_)


def test_epochs_make_no_difference():
    few, many = (SPPPOTIntensity(domain=(0, 1), epochs=n).fit(toy()) for n in (1, 4))
    assert_allclose(few.weights_, many.weights_)


def test_a_domain_that_is_left_to_us_ends_at_an_edge_and_leaves_room_for_a_tail():
    random = np.random.RandomState(0)
    edge = SPPPOTIntensity().fit(random.rand(1000, 1))
    low, high = edge.domain_[0]
    assert -0.05 < low < 0
    assert 1 < high < 1.05
    # It does not fall at the ends.
    left, middle, right = edge.score_samples([[0.02], [0.5], [0.98]])
    assert_allclose([left, right], middle, atol=0.3)
    tail = SPPPOTIntensity().fit(random.randn(1000, 1))
    assert np.isfinite(tail.score_samples(random.randn(1000, 1))).mean() > 0.998


def test_weights_count_points():
    X, weight = toy()[:300], np.tile([1.0, 2.0, 0.0], 100)
    given = {"domain": (0, 1), "bandwidth": 0.1, "regularization": 1e-3}
    weighted = SPPPOTIntensity(**given).fit(X, sample_weight=weight)
    repeated = SPPPOTIntensity(**given).fit(np.repeat(X, weight.astype(int), axis=0))
    assert_allclose(weighted.intensity(X), repeated.intensity(X), rtol=1e-4)
    with pytest.raises(ValueError, match="needs solver='newton'"):
        SPPPOTIntensity(**given, solver="sgd").fit(X, sample_weight=weight)
    with pytest.raises(ValueError, match="at least one non-zero"):
        SPPPOTIntensity(**given).fit(X, sample_weight=np.zeros(300))


def test_exposures_make_rates():
    X = toy()
    counts = SPPPOTIntensity(domain=(0, 1)).fit(X)
    rates = SPPPOTIntensity(domain=(0, 1)).fit(X, exposure=12.5)
    assert_allclose(rates.intensity(X), counts.intensity(X) / 12.5)
    assert rates.expected_count((0, 1)) == pytest.approx(len(X) / 12.5, rel=1e-4)
    stream = SPPPOTIntensity(domain=(0, 1), half_life=100)
    for rate in (10, 40):  # points per unit of time
        for start in range(0, 800, rate):
            stream.partial_fit(X[start : start + rate], exposure=1.0)
    # Those of the past are forgotten with their time.
    assert stream.expected_count((0, 1)) == pytest.approx(40, rel=0.1)
    with pytest.raises(ValueError, match="with all blocks of a stream, or with none"):
        stream.partial_fit(X[:5])
    with pytest.raises(ValueError, match="exposure must be a positive"):
        SPPPOTIntensity(domain=(0, 1)).fit(X, exposure=0)


def test_the_score_of_a_process_is_the_poisson_likelihood():
    X = toy()
    model = SPPPOTIntensity(domain=(0, 1)).fit(X[:600], exposure=3.0)
    expected = np.log(2 * model.intensity(X[600:])).sum() - 2 * model.expected_count((0, 1))
    assert model.process_score(X[600:], exposure=2.0) == pytest.approx(expected, rel=1e-5)
    assert model.process_score([[2.0]]) == -np.inf


@pytest.mark.filterwarnings("ignore:The latest points of the stream:UserWarning")
def test_a_moving_density_is_followed():
    random = np.random.RandomState(0)
    regrets = {50: [], 300: [], None: []}
    models = {h: SPPPOTIntensity(domain=(0, 1), half_life=h) for h in regrets}
    for mean in np.linspace(0.2, 0.8, 100):
        X = np.clip(mean + 0.05 * random.randn(100, 1), 0, 1)
        truth = -0.5 * ((X[:, 0] - mean) / 0.05) ** 2 - np.log(0.05 * np.sqrt(2 * np.pi))
        for half_life, model in models.items():
            if hasattr(model, "t_"):
                regrets[half_life].append((truth - model.score_samples(X)).mean())
            model.partial_fit(X)
    assert np.mean(regrets[300][50:]) < 0.5 * np.mean(regrets[None][50:])
    # The mean moves by an eighth of the width while a block is learned: .007 for whoever knows all
    # but that.
    assert np.mean(regrets[50]) < 0.04


def test_a_stream_comes_to_what_fit_finds():
    X = make_poisson_gaussian(8000, random_state=0)
    whole, stream = (SPPPOTIntensity(domain=(0, 1)) for _ in range(2))
    whole.fit(X)
    for start in range(0, len(X), 250):
        stream.partial_fit(X[start : start + 250])
    assert stream.n_points_ == whole.n_points_ == len(X)
    assert stream.score(X) == pytest.approx(whole.score(X), abs=8)  # nats, of 8,000 points
    assert len(stream._buffer_) == 0


def test_bands_cover_the_truth():
    inside = []
    grid = np.linspace(0.25, 0.75, 21)
    for seed in range(8):
        X, density = make_poisson_gaussian(1000, random_state=seed, return_density=True)
        model = SPPPOTIntensity(domain=(0, 1)).fit(X)
        found, std = model.intensity(grid[:, None], return_std=True)
        inside.append(np.abs(np.log(found / (1000 * density(grid)))) < 1.96 * std / found)
    assert 0.8 < np.mean(inside) <= 1
    with pytest.raises(ValueError, match="return_std needs"):
        SPPPOTIntensity(domain=(0, 1), solver="sgd", epochs=30).fit(X).intensity(X, return_std=True)


def test_a_diverged_model_cannot_win():
    X = toy()
    diverged = SPPPOTIntensity(
        domain=(0, 1), solver="sgd", grid_size=3, bandwidth=0.02, epochs=20, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="integrates to"):
        diverged.fit(X)

    def density(x):
        return float(np.exp(diverged.score_samples([[x]])[0]))

    assert integrate.quad(density, 0, 1, limit=500)[0] == pytest.approx(1, abs=0.01)
    assert diverged.score(X) < SPPPOTIntensity(domain=(0, 1)).fit(X).score(X)


def test_choices_about_steps_need_steps():
    for given in ({"mirror": "euclidean"}, {"method": "dual_averaging"}, {"gradient": "sign"}):
        with pytest.raises(ValueError, match="give it with solver='sgd'"):
            SPPPOTIntensity(domain=(0, 1), **given).fit(toy())


def test_simulations_have_the_counts_of_a_poisson_process():
    X = toy()
    model = SPPPOTIntensity(domain=(0, 1), bandwidth=0.1, regularization=1e-3)
    model.fit(X, exposure=96.0)  # ten points per unit
    random = np.random.RandomState(0)
    drawn = [model.simulate(exposure=2.0, random_state=random) for _ in range(200)]
    counts = np.array([len(points) for points in drawn])
    assert counts.mean() == pytest.approx(20, abs=1)
    assert counts.var() == pytest.approx(20, rel=0.35)
    every = np.concatenate(drawn)
    assert every.mean() == pytest.approx(X.mean(), abs=0.01)
    assert model.simulate(random_state=0).shape[0] == pytest.approx(len(X), abs=150)
    assert model.simulate(exposure=1e-9, random_state=0).shape == (0, 1)
    with pytest.raises(ValueError, match="exposure must be a positive"):
        model.simulate(exposure=-1.0)


# -- what chooses kernel and ridge -----------------------------------------------------------------


@pytest.mark.parametrize("span", [*spans()], ids=["grid", "points"])
def test_folds_that_are_solved_together_are_as_if_alone(span):
    parts = np.split(cloud(), 4)
    moments = np.array([span.moments(part, np.ones(len(part))) for part in parts])
    masses = np.array([float(len(part)) for part in parts])
    found = Together(span, moments, masses).solve(0.7, None, 1e-10)
    for coordinates, moment, mass in zip(found, moments, masses, strict=True):
        alone = Likelihood(span, moment, mass).solve(0.7).coordinates
        assert_allclose(coordinates, alone, atol=1e-4)
    assert np.ptp(found, axis=0).max() > 0.1
    again = Together(span, moments, masses).solve(0.7, found, 1e-8)
    assert_allclose(again, found, atol=1e-12)
    log, shares = log_integrals(span.each_to_nodes(found), span.measure)
    assert_allclose(log[2], log_integral(span.to_nodes(found[2]), span.measure)[0], rtol=1e-13)
    assert_allclose(shares.sum(axis=1), 1, rtol=1e-13)


@pytest.mark.parametrize("span", [*spans()], ids=["grid", "points"])
def test_single_precision_is_the_same_but_for_its_rounding(span):
    a = np.random.RandomState(0).randn(span.size)
    assert_allclose(span.single.to_nodes(a.astype(np.float32)), span.to_nodes(a), atol=1e-4)
    values = span.measure.astype(np.float32)
    assert values.dtype == span.single.from_nodes(values).dtype == np.float32
    assert_allclose(span.single.from_nodes(values), span.from_nodes(span.measure), atol=1e-5)


def test_rough_steps_come_to_the_same_choice_with_and_without_short_cuts(monkeypatch):
    random = np.random.RandomState(0)
    X = np.vstack([0.3 + 0.02 * random.randn(300, 2), random.rand(300, 2)]).clip(0, 1)
    quick = SPPPOTIntensity(domain=[(0, 1)] * 2).fit(X)
    assert quick.model_order_ > 200  # conjugate gradients have something to do
    monkeypatch.setattr(_choose, "_HOPELESS", np.inf)  # all folds of all choices
    monkeypatch.setattr(_choose, "MOST_DIRECT", 0)  # one by one
    monkeypatch.setattr(ProductSpan, "single", property(lambda self: self))
    slow = SPPPOTIntensity(domain=[(0, 1)] * 2).fit(X)
    assert quick.kernel_.bandwidth == slow.kernel_.bandwidth
    assert quick.regularization_ == slow.regularization_
    assert_allclose(quick.score_samples(X), slow.score_samples(X), atol=1e-6)


def test_a_grid_for_all_samples_is_no_finer_than_there_can_be(monkeypatch):
    """Bandwidths are chosen on a part of the samples, and all of them would have narrower ones."""
    monkeypatch.setattr(_choose, "_MOST_SAMPLES", 300)
    monkeypatch.setattr(_place, "_MOST_ON_GRID", 400)
    random = np.random.RandomState(0)
    X = random.rand(40, 2)[random.randint(40, size=4000)] + 0.005 * random.randn(4000, 2)
    model = SPPPOTIntensity(domain=[(-0.1, 1.1)] * 2).fit(X)
    assert 300 < model.model_order_ <= 400


def test_two_scales_are_a_sum_of_two_kernels():
    """The squared length is that of the norm of k + 10 k_4, on a grid far beyond both ends."""
    step, length = 0.05, 0.05
    grid, lengths = _core.ProductGrid([-2.0], [step], [101]), [length]
    one, two = (
        ProductSpan(grid, lengths, np.array([[0.0, 1.0]]), [40], scales=scales) for scales in (1, 2)
    )
    x = np.array([[0.4], [0.5], [0.7]])
    assert_allclose(one.rows(x) @ one.rows(x).T, np.exp(-200 * (x - x.T) ** 2), atol=0.01)
    expected = np.exp(-200 * (x - x.T) ** 2) + 10 * np.exp(-200 * (x - x.T) ** 2 / 16)
    assert_allclose(two.rows(x) @ two.rows(x).T, expected, atol=0.1)
    a = np.random.RandomState(0).randn(two.size)
    assert_allclose(two.weights(two.coordinates(two.weights(a))), two.weights(a), atol=1e-5)
    assert_allclose(two.each_to_nodes(a[None])[0], two.dense @ a, rtol=1e-9, atol=1e-9)
    assert_allclose(two.from_nodes(two.measure), two.measure @ two.dense, atol=1e-12)
    assert_allclose(two.single.to_nodes(a.astype(np.float32)), two.to_nodes(a), atol=1e-3)


@pytest.mark.slow
def test_hills_on_plains_have_two_scales():
    random = np.random.RandomState(0)
    hills = random.rand(60, 2) * [1.0, 0.3] + [0.0, 0.1]
    X = hills[random.randint(60, size=3000)] + 0.008 * random.randn(3000, 2)
    X = np.vstack([X, random.rand(600, 2) * [1.0, 0.5]])
    X = X[((X > 0) & (X < 1)).all(axis=1)]
    X = X[random.permutation(len(X))]
    model, plain = (
        SPPPOTIntensity(domain=[(0, 1)] * 2, scales=scales).fit(X[:2800]) for scales in ("auto", 1)
    )
    assert (model.scales_, plain.scales_) == (2, 1)
    assert model.score(X[2800:]) > plain.score(X[2800:]) + 10


def test_scales_are_kept_in_files(tmp_path):
    model = SPPPOTIntensity(domain=(0, 1), bandwidth=0.05, regularization=1e-3, scales=2).fit(toy())
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.scales_ == model.scales_ == 2
    _, std = model.intensity(toy()[:5], return_std=True)
    assert_allclose(again.intensity(toy()[:5], return_std=True)[1], std, rtol=1e-3)
    once = SPPPOTIntensity(domain=(0, 1), bandwidth=0.05, regularization=1e-3).fit(toy())
    assert np.abs(once.score_samples(toy()) - model.score_samples(toy())).max() > 1e-3


def test_scales_that_there_are_not():
    for scales in (0, 3, True, "two"):
        with pytest.raises(ValueError, match="scales must be 1, 2 or 'auto'"):
            SPPPOTIntensity(scales=scales).fit(toy())
    for given in ({"solver": "sgd"}, {"kernel": "laplacian"}, {"budget": 0.1}):
        with pytest.raises(ValueError, match="scales=2 needs solver='newton'"):
            SPPPOTIntensity(scales=2, **given).fit(toy())
    with pytest.raises(ValueError, match="at most 3 features"):
        SPPPOTIntensity(scales=2).fit(np.random.RandomState(0).rand(50, 4))
