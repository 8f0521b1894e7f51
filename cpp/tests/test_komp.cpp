#include <parsimon/rkhs/sparse_function.hpp>

#include "brute_force_komp.hpp"
#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::BruteForceKomp;
using reference::kEps;
using reference::KernelPair;
using reference::Random;
using reference::Table;

namespace {

using Mask = std::vector<bool>;

struct Outcome {
  CompressionReport report;
  RowMatrix points, weights;  // in the order in which they were given
};

Outcome compress(const KernelPair& kernel, const RowMatrix& points, const RowMatrix& weights,
                 double budget, Mask is_protected = {}) {
  is_protected.resize(static_cast<std::size_t>(points.rows()), false);
  SparseFunction function(kernel.core, points.cols(), weights.cols(), weights.cols());
  function.insert(points, weights, is_protected);
  Outcome outcome{function.compress(budget), {}, {}};
  const KernelExpansion left = function.expansion_by_age();
  outcome.points = left.dictionary().points();
  outcome.weights = left.weights();
  return outcome;
}

double norm(const KernelPair& kernel, const RowMatrix& points, const RowMatrix& weights) {
  return static_cast<double>(
      reference::norm(reference::gram(kernel.exact, points, points), weights));
}

// sum_m ||w_m|| sqrt(k(d_m, d_m)): the norm that the function would have without cancellation.
double size(const KernelPair& kernel, const RowMatrix& points, const RowMatrix& weights) {
  double sum = 0;
  for (Index i = 0; i < points.rows(); ++i) {
    const auto k = reference::gram(kernel.exact, points.row(i), points.row(i))(0, 0);
    sum += weights.row(i).norm() * std::sqrt(static_cast<double>(k));
  }
  return sum;
}

// The error is at most the budget, to the last bit, and it is the true distance. The core knows
// the kernel to a few eps, and the cost of each of n points that may go to an eps, so a squared
// distance is known to (16 + n) eps times size()^2. The cost of a point whose pivot is 1e-13, the
// smallest that is accepted, is right to eps / 1e-13, a thousandth.
void check_certificate(const KernelPair& kernel, const RowMatrix& points, const RowMatrix& weights,
                       double budget, const Outcome& ours) {
  const double error = ours.report.error;
  const double truth =
      reference::distance(kernel.exact, points, weights, ours.points, ours.weights);
  const double all = size(kernel, points, weights) + size(kernel, ours.points, ours.weights);
  CHECK(error <= budget);
  const double noise = (16 + static_cast<double>(points.rows())) * kEps * all * all;
  CHECK_NEAR(error * error, truth * truth, noise + 1e-3 * truth * truth);
  CHECK(ours.weights.allFinite());
  CHECK(ours.report.model_order == ours.points.rows());
  CHECK(ours.report.model_order + static_cast<Index>(ours.report.removed.size()) == points.rows());
}

RowMatrix rows(const RowMatrix& all, const std::vector<Index>& chosen) {
  RowMatrix result(static_cast<Index>(chosen.size()), all.cols());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    result.row(static_cast<Index>(i)) = all.row(chosen[i]);
  }
  return result;
}

Mask random_mask(Index count, double share, Random& random) {
  Mask mask;
  for (Index i = 0; i < count; ++i) mask.push_back(random.uniform() < share);
  return mask;
}

std::vector<KernelPair> well_conditioned_kernels() {
  return {reference::gaussian(0.12),   reference::laplacian(0.5),    reference::matern(0.2, 0.5),
          reference::matern(0.2, 1.5), reference::matern(0.15, 2.5), reference::cauchy(0.08)};
}

// Clusters of every tightness, exact copies, or neither.
RowMatrix awkward_points(Index count, Random& random) {
  const Index features = random.integer(1, 3);
  if (random.uniform() < 0.3) {
    RowMatrix points = random.uniform_points(count, features);
    for (Index i = 0; i < count; ++i) {
      if (random.uniform() < 0.6) points.row(i) = points.row(random.integer(0, count - 1));
    }
    return points;
  }
  return random.clustered_points(count, features, 4, random.magnitude(-8, 0));
}

}  // namespace

// Where no two candidates cost nearly the same, every decision must be the same. cond(K) is a few
// hundred, so errors, of size 1, agree to 1e-10 with ease.
TEST(well_conditioned_dictionaries_lose_the_same_points_in_the_same_order) {
  Random random(1);
  for (const KernelPair& kernel : well_conditioned_kernels()) {
    for (const Index outputs : {1, 5}) {
      for (const double share : {0.0, 0.3}) {
        const RowMatrix points = random.uniform_points(22, 2);
        const RowMatrix weights = random.normal_points(22, outputs);
        const Mask is_protected = random_mask(22, share, random);
        const Table gram = reference::gram(kernel.exact, points, points);
        CHECK(reference::condition_number(reference::core_gram(*kernel.core, points)) < 1e4);
        const double budget =
            random.uniform(0.1, 1.1) * static_cast<double>(reference::norm(gram, weights));
        const auto exact = BruteForceKomp(gram, weights).run(budget, is_protected);
        const Outcome ours = compress(kernel, points, weights, budget, is_protected);
        CHECK(exact.removed.size() >= 2);
        CHECK(ours.report.removed == exact.removed);
        CHECK_NEAR(ours.report.error, exact.error, 1e-10);
        CHECK(ours.points == rows(points, exact.kept));
        for (Index i = 0; i < ours.weights.rows(); ++i) {
          for (Index c = 0; c < outputs; ++c) {
            CHECK_NEAR(ours.weights(i, c), static_cast<double>(exact.weights(i, c)), 1e-10);
          }
        }
        check_certificate(kernel, points, weights, budget, ours);
      }
    }
  }
}

// Down to budgets of 1e-6 of what the weights add up to; at 1e-8, the rounding of the kernel takes
// over. Where many points cost nothing, it is chance which of them go first, and a greedy algorithm
// may end up elsewhere: 3 of 3,000 cases differ by more than one point.
TEST(clustered_copied_and_nearly_dependent_points_give_the_same_model_order) {
  Random random(2);
  int others = 0;
  const auto kernels = reference::all_kernels();
  for (int round = 0; round < 150; ++round) {
    const KernelPair& kernel = kernels[static_cast<std::size_t>(round) % kernels.size()];
    const Index count = random.integer(2, 22);
    const RowMatrix points = awkward_points(count, random);
    const RowMatrix weights = random.normal_points(count, round % 2 ? 1 : 5);
    const Mask is_protected = random_mask(count, round % 3 ? 0.0 : 0.3, random);
    const Table gram = reference::gram(kernel.exact, points, points);
    const double budget = random.magnitude(-6, -0.5) * size(kernel, points, weights);
    const auto exact = BruteForceKomp(gram, weights).run(budget, is_protected);
    const Outcome ours = compress(kernel, points, weights, budget, is_protected);
    const Index difference = ours.report.model_order - static_cast<Index>(exact.kept.size());
    others += std::abs(difference) <= 1 ? 0 : 1;
    check_certificate(kernel, points, weights, budget, ours);
  }
  CHECK(others <= 1);
}

TEST(the_error_is_the_distance_and_within_the_budget_always) {
  Random random(3);
  const auto kernels = reference::all_kernels();
  for (int round = 0; round < 600; ++round) {
    const KernelPair& kernel = kernels[static_cast<std::size_t>(round) % kernels.size()];
    const Index count = random.integer(0, 30);
    const RowMatrix points = awkward_points(count, random);
    RowMatrix weights = random.magnitude(-6, 6) * random.normal_points(count, random.integer(1, 4));
    if (round % 4 == 0) {
      for (Index i = 0; i < count; ++i) weights.row(i) *= random.magnitude(-6, 0);
    }
    const Mask is_protected = random_mask(count, round % 3 ? 0.0 : 0.4, random);
    const double length = norm(kernel, points, weights);
    for (const double budget :
         {0.0, 1e-9, length * random.magnitude(-9, 0), random.magnitude(-9, 3), 2 * length}) {
      const Outcome ours = compress(kernel, points, weights, budget, is_protected);
      check_certificate(kernel, points, weights, budget, ours);
    }
  }
}

TEST(protected_points_stay_and_the_others_go_when_everything_may) {
  Random random(4);
  for (const KernelPair& kernel : reference::all_kernels()) {
    const RowMatrix points = awkward_points(25, random), weights = random.normal_points(25, 3);
    const Mask is_protected = random_mask(25, 0.4, random);
    const Outcome ours = compress(kernel, points, weights, 1e9, is_protected);
    std::vector<Index> kept;
    for (Index i = 0; i < 25; ++i) {
      if (is_protected[static_cast<std::size_t>(i)]) kept.push_back(i);
    }
    CHECK(ours.points == rows(points, kept));
    check_certificate(kernel, points, weights, 1e9, ours);
    // Protected points that are nearly dependent stay outside the factor and explain nothing: what
    // Algorithm 1 would make of them, with huge weights of opposite signs, is an error here.
    const auto exact = BruteForceKomp(reference::gram(kernel.exact, points, points), weights)
                           .run(1e9, is_protected);
    CHECK(ours.report.error >= exact.error * (1 - 1e-6) - 1e-7 * size(kernel, points, weights));
  }
}

TEST(no_point_one_point_two_points) {
  const KernelPair kernel = reference::gaussian(1.0);
  CHECK(compress(kernel, RowMatrix(0, 2), RowMatrix(0, 1), 1.0).report.error == 0);
  RowMatrix one(1, 1), weight(1, 1);
  one << 0.3;
  weight << -2.0;
  CHECK(compress(kernel, one, weight, 1.999).report.removed.empty());
  const Outcome gone = compress(kernel, one, weight, 2.0);
  CHECK(gone.report.removed == std::vector<Index>{0} && gone.report.error == 2.0);
  CHECK(compress(kernel, one, weight, 2.0, {true}).report.removed.empty());

  RowMatrix two(2, 1), weights(2, 1);
  two << 0, 1;
  weights << 1, 0.5;
  // k = exp(-1/2); doing without the second costs 0.5 sqrt(1 - k^2), its weight moves to the first.
  const double k = std::exp(-0.5), cost = 0.5 * std::sqrt(1 - k * k);
  CHECK(compress(kernel, two, weights, 0.999 * cost).report.removed.empty());
  const Outcome left = compress(kernel, two, weights, 1.001 * cost);
  CHECK(left.report.removed == std::vector<Index>{1});
  CHECK_NEAR(left.report.error, cost, 4 * kEps);
  CHECK_NEAR(left.weights(0, 0), 1 + 0.5 * k, 4 * kEps);
  const Outcome nothing = compress(kernel, two, weights, 10);
  CHECK(nothing.report.model_order == 0);
  CHECK_NEAR(nothing.report.error, std::sqrt(1 + 0.25 + k), 8 * kEps);
}

// A jitter of 1e-9 on the diagonal would keep nearly all of these points.
TEST(small_budgets_still_compress) {
  RowMatrix points(400, 1), weights(400, 1);
  for (Index i = 0; i < 400; ++i) {
    points(i, 0) = static_cast<double>(i) / 399;
    weights(i, 0) = std::sin(6 * points(i, 0)) / 400;
  }
  const KernelPair narrow = reference::gaussian(0.1), wide = reference::gaussian(0.3);
  for (const double scale : {1.0, 400.0}) {
    for (const double budget : {1e-6, 1e-5, 1e-4}) {
      const Outcome many = compress(narrow, points, scale * weights, scale * budget);
      check_certificate(narrow, points, scale * weights, scale * budget, many);
      CHECK(many.report.model_order <= 25);
      const Outcome few = compress(wide, points, scale * weights, scale * budget);
      check_certificate(wide, points, scale * weights, scale * budget, few);
      CHECK(few.report.model_order <= 13);
    }
  }
}

// Points that cost nothing must not be paid for before those that cost little: a nearly dependent
// point with a large weight is expensive, and Algorithm 1 would remove all the cheap ones instead.
TEST(an_expensive_dependent_point_does_not_use_up_the_budget_of_the_cheap_ones) {
  Random random(5);
  RowMatrix points(21, 1), weights(21, 1);
  for (Index i = 0; i < 19; ++i) points(i, 0) = 10 + static_cast<double>(i);
  points(19, 0) = 0;
  points(20, 0) = 5e-5;
  weights.setConstant(0.2);
  weights(19, 0) = 1e4;
  weights(20, 0) = 1e4;  // 0.5 of error
  const KernelPair kernel = reference::gaussian(0.3);
  const auto exact =
      BruteForceKomp(reference::gram(kernel.exact, points, points), weights).run(0.6);
  const Outcome ours = compress(kernel, points, weights, 0.6);
  CHECK(std::abs(ours.report.model_order - static_cast<Index>(exact.kept.size())) <= 1);
  check_certificate(kernel, points, weights, 0.6, ours);
}
