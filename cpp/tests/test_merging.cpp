#include <numeric>
#include <parsimon/io/polk_file.hpp>
#include <parsimon/kernel/function.hpp>
#include <set>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::KernelPair;
using reference::Random;
using reference::Real;
using reference::Table;

namespace {

using Mask = std::vector<bool>;

struct Outcome {
  CompressionReport report;
  RowMatrix points, weights;
};

Outcome compress(const KernelPair& kernel, const RowMatrix& points, const RowMatrix& weights,
                 const Limit& limit, Mask is_protected = {}) {
  is_protected.resize(static_cast<std::size_t>(points.rows()), false);
  SparseFunction function(kernel.core, points.cols(), weights.cols(), weights.cols());
  function.insert(points, weights, is_protected);
  Outcome outcome{function.compress(limit), {}, {}};
  const KernelExpansion left = function.expansion_by_age();
  outcome.points = left.dictionary().points();
  outcome.weights = left.weights();
  return outcome;
}

Limit unite(double budget, Index points = kUnlimited) { return {budget, points, Way::unite}; }

// sum_m ||w_m|| sqrt(k(d_m, d_m)): the norm that the function would have without cancellation.
double size(const KernelPair& kernel, const RowMatrix& points, const RowMatrix& weights) {
  double sum = 0;
  for (Index i = 0; i < points.rows(); ++i) {
    const auto k = reference::gram(kernel.exact, points.row(i), points.row(i))(0, 0);
    sum += weights.row(i).norm() * std::sqrt(static_cast<double>(k));
  }
  return sum;
}

// The error is the true distance, and within the budget. A squared distance is known to a few eps
// of size()^2 for each point. What a new point gives back, |r|^2 / left <= size()^2 with r known to
// an eps of size(), is known to 2 eps / sqrt(left) of size()^2, and left is at least 1e-6.
void check_certificate(const KernelPair& kernel, const RowMatrix& points, const RowMatrix& weights,
                       const RowMatrix& new_points, const RowMatrix& new_weights, double error,
                       double budget) {
  const double truth = reference::distance(kernel.exact, points, weights, new_points, new_weights);
  const double all = size(kernel, points, weights) + size(kernel, new_points, new_weights);
  CHECK(error <= budget);
  const double noise = (2000 + static_cast<double>(points.rows())) * kEps * all * all;
  CHECK_NEAR(error * error, truth * truth, noise + 1e-3 * truth * truth);
  CHECK(new_weights.allFinite());
}

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

TEST(two_near_points_become_one_between_them) {
  const KernelPair kernel = reference::gaussian(1.0);
  RowMatrix points(2, 1), weights(2, 1);
  points << 0, 0.1;
  weights << 1, 1;
  const Outcome ours = compress(kernel, points, weights, unite(0.01));
  CHECK(ours.report.model_order == 1);
  CHECK_NEAR(ours.points(0, 0), 0.05, 1e-6);
  CHECK(ours.report.removed.size() == 2);
  // Of two points with the same weight at distance d the middle leaves
  // 2 (1 + kappa) - 4 sqrt(kappa), kappa = exp(-d^2 / 2); the middle is found to 1e-6 d.
  const double kappa = std::exp(-0.005);
  CHECK_NEAR(ours.report.error * ours.report.error, 2 * (1 + kappa) - 4 * std::sqrt(kappa), 1e-12);
  // Without a point between them, one costs sqrt(1 - kappa^2).
  CHECK(compress(kernel, points, weights, {0.01}).report.model_order == 2);
  CHECK(compress(kernel, points, weights, unite(0.001)).report.model_order == 2);
}

TEST(the_error_is_the_distance_whatever_the_kernel_the_points_and_the_budget) {
  Random random(1);
  const auto kernels = reference::all_kernels();
  int merged = 0;
  for (int round = 0; round < 400; ++round) {
    const KernelPair& kernel = kernels[static_cast<std::size_t>(round) % kernels.size()];
    const Index count = random.integer(0, 30);
    const RowMatrix points = awkward_points(count, random);
    const RowMatrix weights =
        random.magnitude(-6, 6) * random.normal_points(count, random.integer(1, 4)).cwiseAbs();
    const double length = static_cast<double>(
        reference::norm(reference::gram(kernel.exact, points, points), weights));
    for (const double budget : {0.0, length * random.magnitude(-9, 0), 2 * length}) {
      const Outcome ours = compress(kernel, points, weights, unite(budget));
      check_certificate(kernel, points, weights, ours.points, ours.weights, ours.report.error,
                        budget);
      for (Index i = 0; i < ours.points.rows(); ++i) {
        bool is_new = true;
        for (Index k = 0; k < count; ++k) is_new &= ours.points.row(i) != points.row(k);
        merged += is_new ? 1 : 0;
      }
    }
  }
  CHECK(merged > 100);
}

TEST(clusters_become_single_points) {
  Random random(9);
  for (const KernelPair& kernel : {reference::gaussian(0.1), reference::matern(0.1, 2.5),
                                   reference::cauchy(0.1), reference::mixture()}) {
    const RowMatrix points = random.clustered_points(60, 2, 8, 0.02);
    const RowMatrix weights = random.normal_points(60, 2).cwiseAbs();
    const double budget = 0.03 * static_cast<double>(reference::norm(
                                     reference::gram(kernel.exact, points, points), weights));
    const Outcome ours = compress(kernel, points, weights, unite(budget));
    const Outcome plain = compress(kernel, points, weights, {budget});
    check_certificate(kernel, points, weights, ours.points, ours.weights, ours.report.error,
                      budget);
    CHECK(ours.report.model_order < plain.report.model_order);
  }
}

TEST(the_cap_holds_and_merging_costs_no_more_than_removing_where_it_begins) {
  Random random(2);
  for (const KernelPair& kernel : {reference::gaussian(0.4), reference::matern(0.5, 2.5)}) {
    for (int round = 0; round < 20; ++round) {
      const RowMatrix points = random.uniform_points(20, 2), weights = random.normal_points(20, 3);
      for (const Index cap : {19, 10, 1}) {
        const Outcome ours = compress(kernel, points, weights, unite(0, cap));
        const Outcome plain = compress(kernel, points, weights, {0, cap});
        CHECK(ours.report.model_order == cap);
        check_certificate(kernel, points, weights, ours.points, ours.weights, ours.report.error,
                          std::numeric_limits<double>::infinity());
        if (cap == 19) CHECK(ours.report.error <= plain.report.error * (1 + 1e-9));
      }
    }
  }
}

// What is left is the best that these points can do.
TEST(all_weights_are_projected) {
  Random random(3);
  for (const KernelPair& kernel : {reference::gaussian(0.3), reference::cauchy(0.3)}) {
    for (int round = 0; round < 20; ++round) {
      const RowMatrix points = random.uniform_points(25, 2), weights = random.normal_points(25, 2);
      const Outcome ours = compress(kernel, points, weights, unite(0.5));
      CHECK(ours.report.model_order < 25 && ours.report.model_order > 1);
      const Table inverse =
          reference::inverse(reference::gram(kernel.exact, ours.points, ours.points));
      const Table cross = reference::gram(kernel.exact, ours.points, points);
      for (Index c = 0; c < 2; ++c) {
        std::vector<Real> values;  // of the function that was given, at the points that are left
        for (Index i = 0; i < ours.points.rows(); ++i) {
          Real sum = 0;
          for (Index j = 0; j < points.rows(); ++j) sum += cross(i, j) * weights(j, c);
          values.push_back(sum);
        }
        for (Index i = 0; i < ours.points.rows(); ++i) {
          const Real best = reference::dot(inverse.row(i), values.data(), ours.points.rows());
          CHECK_NEAR(ours.weights(i, c), static_cast<double>(best), 1e-7);
        }
      }
    }
  }
}

TEST(protected_points_stay_and_are_no_partners) {
  Random random(4);
  const KernelPair kernel = reference::gaussian(0.3);
  for (int round = 0; round < 20; ++round) {
    const RowMatrix points = random.uniform_points(20, 2), weights = random.normal_points(20, 2);
    Mask is_protected;
    for (Index i = 0; i < 20; ++i) is_protected.push_back(random.uniform() < 0.4);
    const Outcome ours = compress(kernel, points, weights, unite(1), is_protected);
    for (Index i = 0; i < 20; ++i) {
      if (!is_protected[static_cast<std::size_t>(i)]) continue;
      bool found = false;
      for (Index k = 0; k < ours.points.rows(); ++k) found |= ours.points.row(k) == points.row(i);
      CHECK(found);
    }
    check_certificate(kernel, points, weights, ours.points, ours.weights, ours.report.error, 1);
  }
}

// With passengers, points outside the basis and mini-batches of any size.
TEST(in_a_stream_each_step_moves_the_function_by_its_error) {
  Random random(5);
  const auto kernels = reference::all_kernels();
  for (int round = 0; round < 40; ++round) {
    const KernelPair& kernel = kernels[static_cast<std::size_t>(round) % kernels.size()];
    const double spread = random.magnitude(-3, 0), budget = random.magnitude(-4, 0);
    SparseFunction function(kernel.core, 2, 4, 2);
    for (int t = 0; t < 12; ++t) {
      const Index count = random.integer(1, 12);
      const RowMatrix samples = random.clustered_points(count, 2, 3, spread);
      const RowMatrix increments = random.normal_points(count, 2);
      Batch batch;
      function.compare(samples, batch);
      RowMatrix points(function.model_order() + count, 2), weights(points.rows(), 2);
      points << function.dictionary().points(), samples;
      weights << 0.9 * function.function_weights(), increments;
      std::vector<Index> active(static_cast<std::size_t>(count));
      std::iota(active.begin(), active.end(), Index{0});
      const Index next = function.dictionary().next_id();
      const CompressionReport report =
          function.add({samples, batch, active, increments, 0.9, unite(budget)});
      check_certificate(kernel, points, weights, function.dictionary().points(),
                        function.function_weights(), report.error, budget);
      // Those that went and those that are left are the samples and what merging made of them.
      std::set<Index> ids(function.dictionary().ids().begin(), function.dictionary().ids().end());
      CHECK(ids.size() == static_cast<std::size_t>(function.model_order()));
      for (const Index id : report.removed) CHECK(ids.insert(id).second);
      for (Index i = 0; i < count; ++i) CHECK(ids.count(next + i) == 1);
      function.predictor_weights() =
          0.5 * (function.predictor_weights() + function.function_weights()).eval();
    }
  }
}

// A passenger that equals the function is projected as it is.
TEST(passengers_are_carried_along) {
  Random random(6);
  const KernelPair kernel = reference::gaussian(0.3);
  SparseFunction function(kernel.core, 2, 4, 2);
  for (int t = 0; t < 30; ++t) {
    const RowMatrix samples = random.uniform_points(8, 2);
    const RowMatrix increments = random.normal_points(8, 2);
    Batch batch;
    function.compare(samples, batch);
    function.add({samples, batch, {0, 1, 2, 3, 4, 5, 6, 7}, increments, 1, 0.0});
    function.predictor_weights() = function.function_weights().eval();
    function.compare(samples, batch);
    const RowMatrix none(0, 2);
    const CompressionReport report = function.compress(unite(0.3));
    CHECK(!report.removed.empty());
    CHECK((function.predictor_weights() - function.function_weights()).norm() < 1e-9);
  }
}

// They become those of the new basis as if all that was seen lay in the span of the old one.
TEST(statistics_follow_points_that_merge) {
  Random random(7);
  const KernelPair kernel = reference::gaussian(0.3);
  SparseFunction function(kernel.core, 2, 4, 2);
  function.keep_statistics();
  int merged = 0;
  for (int t = 0; t < 30; ++t) {
    const RowMatrix samples = random.uniform_points(6, 2);
    Batch batch;
    function.compare(samples, batch);
    const RowMatrix old = function.dictionary().points().topRows(function.basis_size());
    const RowMatrix root = function.factor().root();
    Statistics expected = function.statistics();
    const Index next = function.dictionary().next_id();
    function.add({samples, batch, {0, 1, 2, 3, 4, 5}, random.normal_points(6, 2), 0.9, unite(0.2)});
    const RowMatrix now = function.dictionary().points().topRows(function.basis_size());
    for (const Index id : function.dictionary().ids()) merged += id >= next + 6;
    if (old.rows() > 0) {
      const Table exact = reference::gram(kernel.exact, now, old);
      RowMatrix cross(now.rows(), old.rows());
      for (Index i = 0; i < cross.rows(); ++i) {
        for (Index j = 0; j < cross.cols(); ++j) cross(i, j) = static_cast<double>(exact(i, j));
      }
      expected.change_basis(function.factor().root() * cross * root.transpose());
      const Statistics& found = function.statistics();
      CHECK(found.size() == expected.size());
      const RowMatrix difference = found.normal() - expected.normal();
      double worst = 0;
      for (Index i = 0; i < found.size(); ++i) {
        for (Index k = 0; k <= i; ++k) worst = std::max(worst, std::abs(difference(i, k)));
      }
      CHECK(worst < 1e-7);
      CHECK((found.right() - expected.right()).norm() < 1e-7);
    }
    Statistics& statistics = function.statistics();
    function.compare(samples, batch);
    const RowMatrix phi = function.coordinates(batch);
    statistics.add_curvature(phi, {0, 1, 2, 3, 4, 5}, Vector::Ones(6));
    statistics.add_right(phi, {0, 1, 2, 3, 4, 5}, random.normal_points(6, 2));
  }
  CHECK(merged > 10);
}

TEST(a_model_that_merges_is_read_back_and_goes_on_bit_for_bit) {
  Random random(8);
  for (const bool solved : {false, true}) {
    OnlineSettings settings{
        StepSchedule::constant(0.5), {BudgetSchedule::fixed(0.2), 30, true}, 1e-3};
    if (solved) settings.newton = NewtonSettings();
    Polk polk(std::make_shared<Gaussian>(0.3), {parse_loss("squared"), settings}, 2, 1);
    const auto learn = [](Polk& model, const RowMatrix& x) {
      const RowMatrix y = (4 * x.col(0)).array().sin();
      model.step(x, y, Vector());
    };
    for (int t = 0; t < 60; ++t) learn(polk, random.uniform_points(8, 2));
    Polk other = polk_from_archive(to_archive(polk));
    CHECK(other.settings().compression.way() == Way::unite);
    for (int t = 0; t < 20; ++t) {
      const RowMatrix x = random.uniform_points(8, 2);
      learn(polk, x);
      learn(other, x);
    }
    CHECK(polk.prediction_weights() == other.prediction_weights());
    CHECK(polk.dictionary().points() == other.dictionary().points());
  }
}

TEST(what_compression_is_survives_its_name) {
  const BudgetSchedule budget = BudgetSchedule::fixed(0.1);
  const BudgetSchedule none = BudgetSchedule::fixed(0);
  for (const Compression& one :
       {Compression(budget), Compression(budget, kUnlimited, true), Compression(budget, 7),
        Compression(budget, 7, true), Compression::growing(budget, 7, 1.5),
        Compression::growing(budget, 7, 1.5, true), Compression(none, kUnlimited, true)}) {
    const Compression back = Compression::restore(one.budget(), one.name(), one.parameters());
    CHECK(back.way() == one.way() && back.max_points() == one.max_points());
    CHECK(back.name() == one.name());
  }
}

TEST(kernels_without_a_gradient_are_refused) {
  const auto block = [](const ConstRows& a, const ConstRows& b, Rows values) {
    for (Index i = 0; i < a.rows(); ++i) {
      for (Index j = 0; j < b.rows(); ++j) values(i, j) = a.row(i).dot(b.row(j));
    }
  };
  const KernelPtr kernel = std::make_shared<FunctionKernel>(block);
  const Compression merging(BudgetSchedule::fixed(0.1), kUnlimited, true);
  CHECK_THROWS(merging.check(*kernel), Error);
  CHECK_THROWS(merging.check(Scaled(2, kernel)), Error);
  merging.check(Gaussian(1.0));
  Compression(BudgetSchedule::fixed(0.1)).check(*kernel);
}
