#include <numeric>
#include <parsimon/rkhs/sparse_function.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::KernelPair;
using reference::Random;

namespace {

// The paper's grid: 100 nodes and a Gaussian of variance 0.0065, a Gram matrix of rank 38.
const KernelPair kernel = reference::gaussian(std::sqrt(0.0065));

RowMatrix grid() {
  RowMatrix points(100, 1);
  for (Index i = 0; i < 100; ++i) points(i, 0) = (static_cast<double>(i) + 0.5) / 100;
  return points;
}

SparseFunction on_grid(Index columns, Index scored, const RowMatrix& weights) {
  SparseFunction function(kernel.core, 1, columns, scored);
  function.insert(grid(), weights, std::vector<bool>(100, true));
  return function;
}

CompressionReport add(SparseFunction& function, const RowMatrix& samples, const RowMatrix& weights,
                      double shrink, double budget, const RowMatrix& increments = RowMatrix(0, 0)) {
  std::vector<Index> all(static_cast<std::size_t>(samples.rows()));
  std::iota(all.begin(), all.end(), Index{0});
  Batch batch;
  function.compare(samples, batch);
  return function.add({samples, batch, all, weights, shrink, budget, increments});
}

RowMatrix outside(const SparseFunction& function) {
  return function.weights().bottomRows(function.model_order() - function.basis_size());
}

// ||f - g||, and how well it can be known: the kernel to a few eps, times all weights squared.
struct Distance {
  double squared, noise;

  Distance(const RowMatrix& f_points, const RowMatrix& f, const RowMatrix& g_points,
           const RowMatrix& g) {
    const double length = reference::distance(kernel.exact, f_points, f, g_points, g);
    const double size = f.rowwise().norm().sum() + g.rowwise().norm().sum();
    squared = length * length;
    noise = (16 + static_cast<double>(f_points.rows())) * kEps * size * size;
  }
};

// A grid with random weights, and what its dependent points are folded into.
struct Scene {
  SparseFunction function;
  Dependents dependents;
  RowMatrix points, weights;

  Scene(Index columns, double size, unsigned seed)
      : function(on_grid(columns, 1, size * Random(seed).normal_points(100, columns))),
        points(function.dictionary().points()),
        weights(function.weights()) {
    dependents.refresh(function.dictionary(), function.factor());
  }

  Index basis() const { return function.basis_size(); }
};

}  // namespace

TEST(increments_are_added_to_the_shrunken_function_before_it_is_compressed) {
  Random random(1);
  const KernelPair laplacian = reference::laplacian(0.5);
  for (const double budget : {0.0, 0.3}) {
    SparseFunction together(laplacian.core, 2, 3, 2);
    together.insert(random.uniform_points(12, 2), random.normal_points(12, 3),
                    std::vector<bool>(12, true));
    SparseFunction apart = together;
    for (int step = 0; step < 40; ++step) {
      const RowMatrix samples = random.uniform_points(5, 2), weights = random.normal_points(5, 2);
      const Index order = together.model_order();
      RowMatrix increments = random.normal_points(order, 2);
      if (step % 3 == 0) increments.bottomRows(order - 1).setZero();
      apart.function_weights() *= 0.9;
      apart.function_weights() += increments;
      const CompressionReport a = add(together, samples, weights, 0.9, budget, increments);
      const CompressionReport b = add(apart, samples, weights, 1, budget);
      CHECK(a.error == b.error && a.removed == b.removed);
      CHECK(together.dictionary().ids() == apart.dictionary().ids());
      CHECK(together.weights() == apart.weights());
    }
    CHECK(together.model_order() > 14);
  }
}

TEST(increments_do_not_move_the_passengers) {
  Random random(2);
  SparseFunction function(reference::laplacian(0.5).core, 2, 2, 1);
  function.insert(random.uniform_points(12, 2), random.normal_points(12, 2),
                  std::vector<bool>(12, true));
  const RowMatrix before = function.weights(), increments = random.normal_points(12, 1);
  add(function, RowMatrix(0, 2), RowMatrix(0, 1), 0.5, 0.1, increments);
  CHECK(function.weights().col(1) == before.col(1));
  CHECK(function.weights().col(0) == 0.5 * before.col(0) + increments.col(0));
}

TEST(folding_all_moves_the_function_by_what_it_says) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    Scene scene(1, 1, seed);
    RowMatrix weights = scene.weights;
    const double error = scene.dependents.fold(weights, 1, 1e3);
    CHECK(weights.bottomRows(100 - scene.basis()).isZero(0));
    const Distance truth(scene.points, scene.weights, scene.points, weights);
    CHECK_NEAR(error * error, truth.squared, truth.noise + 1e-6 * truth.squared);
    CHECK(error > 1e-5 && error < 1e-2);  // sqrt(1e-8) for each point, some of which cancel
  }
}

TEST(folding_goes_as_far_as_it_may_and_no_further) {
  for (const double share : {0.9, 0.5, 1e-3, 1e-6}) {
    Scene scene(1, 1, 3);
    RowMatrix weights = scene.weights;
    const double all = scene.dependents.fold(weights, 1, 1e3);
    weights = scene.weights;
    const double error = scene.dependents.fold(weights, 1, share * all);
    CHECK_NEAR(error, share * all, 1e-12 * all);
    const Index left = 100 - scene.basis();
    const RowMatrix expected = (1 - share) * scene.weights.bottomRows(left);
    CHECK((weights.bottomRows(left) - expected).cwiseAbs().maxCoeff() < 1e-12);
    const Distance truth(scene.points, scene.weights, scene.points, weights);
    CHECK_NEAR(error * error, truth.squared, truth.noise + 1e-6 * truth.squared);
  }
}

TEST(passengers_are_folded_along_and_cost_nothing) {
  Scene scene(3, 1, 4);
  RowMatrix weights = scene.weights, alone = scene.weights.leftCols(1);
  const double all = scene.dependents.fold(alone, 1, 1e3);
  for (const double affordable : {1e3, 0.25 * all}) {
    weights = scene.weights;
    alone = scene.weights.leftCols(1);
    const double error = scene.dependents.fold(weights, 1, affordable);
    CHECK(error == scene.dependents.fold(alone, 1, affordable));
    CHECK((weights.col(0) - alone.col(0)).cwiseAbs().maxCoeff() < 1e-12);
    const double kept = affordable > all ? 0.0 : 0.75;
    const Index left = 100 - scene.basis();
    CHECK((weights.bottomRows(left) - kept * scene.weights.bottomRows(left)).cwiseAbs().maxCoeff() <
          1e-12);
    // Values at the points of the basis are kept: each is replaced by its projection.
    const RowMatrix at = scene.points.topRows(scene.basis());
    const RowMatrix change = KernelExpansion(kernel.core, scene.points, weights)(at) -
                             KernelExpansion(kernel.core, scene.points, scene.weights)(at);
    CHECK(change.cwiseAbs().maxCoeff() < 1e-6);
  }
}

TEST(nothing_is_folded_where_nothing_may_be_or_is_known) {
  Scene scene(1, 1, 5);
  RowMatrix weights = scene.weights;
  for (const double affordable : {0.0, -1.0, std::nan("")}) {
    CHECK(scene.dependents.fold(weights, 1, affordable) == 0);
  }
  scene.dependents.invalidate();
  CHECK(scene.dependents.fold(weights, 1, 1e3) == 0);
  Dependents fresh;
  CHECK(fresh.fold(weights, 1, 1e3) == 0);
  CHECK(weights == scene.weights);
}

TEST(points_that_may_be_removed_are_left_to_the_compression) {
  RowMatrix points(3, 1);
  points << 0, 5e-6, 1e-5;
  SparseFunction function(reference::gaussian(1.0).core, 1, 1, 1);
  function.insert(points, RowMatrix::Ones(3, 1), {true, true, false});
  CHECK(function.basis_size() == 1);
  Dependents dependents;
  dependents.refresh(function.dictionary(), function.factor());
  RowMatrix weights = function.weights();
  CHECK(dependents.fold(weights, 1, 1) > 0);
  for (Index i = 0; i < 3; ++i) {
    const bool folded = i >= 1 && function.dictionary().is_protected(i);
    CHECK_NEAR(weights(i, 0), folded ? 0.0 : i == 0 ? 2.0 : 1.0, 1e-10);
  }
}

// Steps with any budget, on weights that it may or may not be able to fold.
TEST(a_step_folds_within_its_budget_and_says_how_far_it_went) {
  Random random(6);
  int partly = 0;
  for (int round = 0; round < 150; ++round) {
    SparseFunction function = on_grid(1, 1, random.magnitude(-2, 2) * random.normal_points(100, 1));
    const double budget = random.magnitude(-6, -2);
    const RowMatrix points = function.dictionary().points(), before = function.weights();
    const RowMatrix increments = random.normal_points(100, 1);
    const CompressionReport report =
        add(function, RowMatrix(0, 1), RowMatrix(0, 1), 0.9, budget, increments);
    CHECK(report.error <= budget);
    const bool folded = outside(function).isZero(0);
    partly += folded ? 0 : 1;
    if (!folded) CHECK(report.error > 0.999999 * budget);
    const Distance truth(points, 0.9 * before + increments, function.dictionary().points(),
                         function.weights());
    CHECK(truth.squared <= report.error * report.error * (1 + 1e-6) + truth.noise);
  }
  CHECK(partly > 20 && partly < 130);
}

TEST(the_error_of_a_step_that_removes_and_folds_is_a_bound) {
  Random random(7);
  SparseFunction function = on_grid(1, 1, random.normal_points(100, 1));
  int removed = 0;
  for (int step = 0; step < 60; ++step) {
    const double budget = random.magnitude(-4, -1);
    const RowMatrix samples = random.uniform_points(6, 1), weights = random.normal_points(6, 1);
    RowMatrix points(function.model_order() + 6, 1), all(function.model_order() + 6, 1);
    points << function.dictionary().points(), samples;
    all << function.weights(), weights;
    const CompressionReport report = add(function, samples, weights, 1, budget);
    CHECK(report.error <= budget);
    removed += static_cast<int>(report.removed.size());
    const Distance truth(points, all, function.dictionary().points(), function.weights());
    CHECK(truth.squared <= report.error * report.error * (1 + 1e-3) + truth.noise);
  }
  CHECK(removed > 200);
}

TEST(a_step_without_a_budget_folds_nothing) {
  Random random(8);
  SparseFunction function = on_grid(1, 1, random.normal_points(100, 1));
  const RowMatrix before = function.weights(), increments = random.normal_points(100, 1);
  add(function, RowMatrix(0, 1), RowMatrix(0, 1), 1, 0, increments);
  CHECK(function.weights() == before + increments);
}
