#include <algorithm>
#include <numeric>
#include <parsimon/rkhs/sparse_function.hpp>
#include <set>

#include "check.hpp"
#include "failing_kernel.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::KernelPair;
using reference::Random;

namespace {

std::vector<Index> first(Index count) {
  std::vector<Index> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), Index{0});
  return all;
}

CompressionReport add(SparseFunction& function, const RowMatrix& samples, const RowMatrix& weights,
                      double budget) {
  Batch batch;
  function.compare(samples, batch);
  return function.add({samples, batch, first(samples.rows()), weights, 1.0, budget});
}

void insert(SparseFunction& function, const RowMatrix& points, const RowMatrix& weights) {
  function.insert(points, weights, std::vector<bool>(static_cast<std::size_t>(points.rows())));
}

RowMatrix basis_gram(const SparseFunction& function) {
  if (function.basis_size() == 0) return RowMatrix(0, 0);
  const RowMatrix points = function.dictionary().points().topRows(function.basis_size());
  return reference::core_gram(function.dictionary().kernel(), points);
}

double defect(const SparseFunction& function) {
  return reference::defect(function.factor().root(), basis_gram(function));
}

RowMatrix stack(const RowMatrix& top, const RowMatrix& bottom) {
  RowMatrix result(top.rows() + bottom.rows(), top.cols());
  result << top, bottom;
  return result;
}

std::set<std::pair<double, double>> points_of(const SparseFunction& function) {
  std::set<std::pair<double, double>> all;
  const RowMatrix points = function.dictionary().points();
  for (Index i = 0; i < points.rows(); ++i) all.emplace(points(i, 0), points(i, 1));
  return all;
}

// Everything that a caller can see.
struct Snapshot {
  RowMatrix points, weights, root, diagonal;
  std::vector<Index> ids;

  explicit Snapshot(const SparseFunction& f)
      : points(f.dictionary().points()),
        weights(f.weights()),
        root(f.factor().root()),
        diagonal(f.factor().inverse_diagonal()),
        ids(f.dictionary().ids()) {}

  bool operator==(const Snapshot& other) const {
    return same(points, other.points) && same(weights, other.weights) && same(root, other.root) &&
           same(diagonal, other.diagonal) && ids == other.ids;
  }

 private:
  static bool same(const RowMatrix& a, const RowMatrix& b) {
    return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
  }
};

// How far the blocked compression of one step is from inserting everything and compressing.
struct Disagreement {
  double squared_error = 0, distance = 0;
  Index order = 0;
  bool same_points = true;
};

Disagreement step_both_ways(const KernelPair& kernel, SparseFunction& blocked,
                            const RowMatrix& samples, const RowMatrix& weights, double budget) {
  SparseFunction naive(kernel.core, samples.cols(), weights.cols(), weights.cols());
  insert(naive, stack(blocked.dictionary().points(), samples), stack(blocked.weights(), weights));
  const CompressionReport expected = naive.compress(budget);
  const CompressionReport actual = add(blocked, samples, weights, budget);
  CHECK(actual.error <= budget);
  return {std::abs(actual.error * actual.error - expected.error * expected.error),
          reference::distance(kernel.exact, blocked.dictionary().points(), blocked.weights(),
                              naive.dictionary().points(), naive.weights()),
          std::abs(actual.model_order - expected.model_order),
          points_of(blocked) == points_of(naive)};
}

}  // namespace

// A step of 1 to 40 samples, some of them copies of each other or of the dictionary, compressed as
// a block and naively. Weights are of size 1 and cond(K) < 1e4: both must agree to 1e-10.
TEST(the_blocked_compression_does_what_the_naive_one_does) {
  Random random(1);
  for (const KernelPair& kernel : {reference::laplacian(0.5), reference::matern(0.3, 1.5)}) {
    SparseFunction function(kernel.core, 2, 3, 3);
    for (int step = 0; step < 150; ++step) {
      RowMatrix samples = random.uniform_points(random.integer(1, 40), 2);
      for (Index i = 0; i < samples.rows(); ++i) {
        if (function.model_order() > 0 && random.uniform() < 0.1) {
          const Index twin = random.integer(0, function.model_order() - 1);
          samples.row(i) = function.dictionary().points().row(twin);
        }
        if (random.uniform() < 0.1) samples.row(i) = samples.row(random.integer(0, i));
      }
      const RowMatrix weights = random.normal_points(samples.rows(), 3);
      const Disagreement d =
          step_both_ways(kernel, function, samples, weights, random.uniform(0.5, 4));
      CHECK(d.same_points);
      CHECK(d.squared_error < 1e-11);  // what is left of a copy is 0 only to rounding
      CHECK(d.distance < 1e-10);
    }
    CHECK(function.model_order() > 5);
  }
}

// Where points are nearly dependent rounding decides ties, but not what comes out.
TEST(the_blocked_compression_of_clusters_is_as_good_as_the_naive_one) {
  Random random(2);
  for (const KernelPair& kernel : {reference::gaussian(0.4), reference::matern(1, 2.5)}) {
    SparseFunction function(kernel.core, 2, 2, 2);
    int others = 0;
    for (int step = 0; step < 150; ++step) {
      const RowMatrix samples =
          random.clustered_points(random.integer(1, 32), 2, 5, random.magnitude(-4, -1));
      const RowMatrix weights = random.normal_points(samples.rows(), 2);
      const double budget = random.magnitude(-3, 0);
      const Disagreement d = step_both_ways(kernel, function, samples, weights, budget);
      CHECK(d.order <= 1);
      CHECK(d.distance <= 2 * budget);
      others += d.same_points ? 0 : 1;
    }
    std::printf("       %s: other points in %d of 150 steps\n", kernel.name.c_str(), others);
  }
}

// The other way round: the weights decide who goes, so sizes swing as they are told to.
TEST(one_hundred_thousand_changes_through_the_whole_engine) {
  Random random(3);
  const RowMatrix pool = random.clustered_points(300, 2, 20, 0.02);
  const auto make_kernel = [](double h) { return std::make_shared<Gaussian>(h); };
  const auto kernel = make_kernel(reference::bandwidth_of_condition(pool, 1e8, make_kernel));
  const double condition = reference::condition_number(reference::core_gram(*kernel, pool));
  SparseFunction function(kernel, 2, 1, 1);
  std::vector<Index> absent = first(300);
  Index changes = 0, largest = 0, target = 300;
  double worst = 0;
  for (int step = 0; changes < 100000; ++step) {
    const Index count = std::min(random.integer(1, 32), static_cast<Index>(absent.size()));
    RowMatrix samples(count, 2);
    for (Index i = 0; i < count; ++i) {
      std::swap(absent.back(), absent[static_cast<std::size_t>(
                                   random.integer(0, static_cast<Index>(absent.size()) - 1))]);
      samples.row(i) = pool.row(absent.back());
      absent.pop_back();
    }
    function.weights().setConstant(1.0);
    const Index surplus = function.model_order() + count - target;
    for (Index i = 0; i < surplus; ++i) {
      function.weights()(random.integer(0, function.model_order() - 1), 0) = 1e-12;
    }
    const CompressionReport report = add(function, samples, RowMatrix::Ones(count, 1), 1e-9);
    const auto present = points_of(function);
    absent.clear();
    for (Index i = 0; i < 300; ++i) {
      if (present.count({pool(i, 0), pool(i, 1)}) == 0) absent.push_back(i);
    }
    changes += count + static_cast<Index>(report.removed.size());
    largest = std::max(largest, function.model_order());
    if (step % 200 == 0) target = random.integer(40, 300);
    if (step % 400 == 399) worst = std::max(worst, defect(function));
  }
  std::printf("       cond %.1e, M <= %d, max |TKT'-I| %.1e\n", condition,
              static_cast<int>(largest), worst);
  CHECK(largest > 280);
  CHECK(condition > 2e7 && condition < 1.1e8);
  CHECK(worst < 1e-6);
}

// Whatever is projected away from the function is projected away from its passengers: nested
// projections are one, so passengers end up as their own best fit on the survivors.
TEST(passengers_are_projected_along) {
  Random random(4);
  const KernelPair kernel = reference::laplacian(0.5);
  const RowMatrix points = random.uniform_points(25, 2), weights = random.normal_points(25, 3);
  SparseFunction function(kernel.core, 2, 3, 1);
  insert(function, points, weights);
  const double budget =
      0.5 * static_cast<double>(reference::norm(reference::gram(kernel.exact, points, points),
                                                weights.leftCols(1)));
  const CompressionReport report = function.compress(budget);
  CHECK(report.removed.size() >= 5 && report.model_order >= 2);
  const RowMatrix kept = function.dictionary().points();
  const RowMatrix before = KernelExpansion(kernel.core, points, weights)(kept);
  const RowMatrix after = function.expansion(0, 3)(kept);
  // The best fit takes the same values at the survivors: <f - g, k(d, .)> = 0.
  CHECK((before - after).cwiseAbs().maxCoeff() < 1e-12);
  const double error = reference::distance(kernel.exact, points, weights.leftCols(1), kept,
                                           function.weights().leftCols(1));
  CHECK_NEAR(report.error, error, 1e-12);
}

TEST(spppots_grid_stays_with_its_dependent_points_and_bounded_weights) {
  // A Gaussian of variance 0.0065 on 100 midpoints of [0, 1]: K has the numerical rank 38, and 30
  // pivots above the tolerance.
  RowMatrix grid(100, 1);
  for (Index i = 0; i < 100; ++i) grid(i, 0) = (static_cast<double>(i) + 0.5) / 100;
  const KernelPair kernel = reference::gaussian(std::sqrt(0.0065));
  SparseFunction function(kernel.core, 1, 1, 1);
  function.insert(grid, RowMatrix::Zero(100, 1), std::vector<bool>(100, true));
  CHECK(function.basis_size() >= 28 && function.basis_size() <= 38);
  Random random(5);
  double total = 0;
  for (int step = 0; step < 400; ++step) {
    function.weights() *= 0.9;
    for (Index i = 0; i < function.model_order(); ++i) {
      if (function.dictionary().is_protected(i)) function.weights()(i, 0) -= 0.01;
    }
    const RowMatrix samples = random.uniform_points(16, 1);
    const CompressionReport report = add(function, samples, RowMatrix::Constant(16, 1, 0.1), 1e-2);
    CHECK(report.error <= 1e-2);
    total += report.error;
  }
  std::set<Index> ids(function.dictionary().ids().begin(), function.dictionary().ids().end());
  for (Index i = 0; i < 100; ++i) CHECK(ids.count(i) == 1);
  CHECK(function.weights().allFinite() && total > 0);
  // Each step adds at most 1.6 + 1 in sum |w| and a tenth goes: 26 without compression. A fit on
  // points of cond(K) < 1e8 can be larger, but not by much.
  CHECK(function.weights().cwiseAbs().maxCoeff() < 100);
  CHECK(defect(function) < 1e-6);
  CHECK(function.model_order() < 160);
}

TEST(fifty_copies_are_one_point) {
  const KernelPair kernel = reference::gaussian(1.0);
  for (const double budget : {0.0, 1e-12, 1e-3}) {
    SparseFunction function(kernel.core, 2, 1, 1);
    const RowMatrix copies = RowMatrix::Constant(50, 2, 0.3);
    add(function, copies, RowMatrix::Ones(50, 1), budget);
    CHECK(function.model_order() == 1);
    CHECK_NEAR(function.weights()(0, 0), 50.0, 1e-12);
    add(function, copies.topRows(7), RowMatrix::Ones(7, 1), budget);
    CHECK(function.model_order() == 1);
    CHECK_NEAR(function.weights()(0, 0), 57.0, 1e-12);
  }
}

// However small the budget, no more than so many points pile up outside the basis: then as many
// stay as explain the others up to a millionth, and what the step could spend is said.
TEST(points_do_not_pile_up_however_small_the_budget) {
  const KernelPair kernel = reference::gaussian(0.3);
  for (const double budget : {1e-4, 1e-6, 1e-8, 1e-300}) {
    Random random(11);
    SparseFunction function(kernel.core, 1, 2, 2);
    Index most = 0, least = 0, floors = 0;
    double worst = 0;
    for (int step = 0; step < 1200; ++step) {
      const RowMatrix points = function.dictionary().points(), before = function.weights();
      const RowMatrix samples = random.uniform_points(random.integer(1, 4), 1);
      const RowMatrix weights = 0.1 * random.normal_points(samples.rows(), 2);
      const CompressionReport report = add(function, samples, weights, budget);
      const double allowed = std::max(budget, report.floor);
      CHECK(report.error <= allowed);
      // Nothing but weights that moved counts: those of the samples, and of points outside.
      CHECK(report.floor <=
            1e-6 * (weights.rowwise().norm().sum() + before.rowwise().norm().sum()));
      if (report.floor > 0 || step % 50 == 49) {
        const double truth =
            reference::distance(kernel.exact, stack(points, samples), stack(before, weights),
                                function.dictionary().points(), function.weights());
        // The factor is known to 1e-7 of what it moves, if conditions are at their worst.
        const double size = weights.rowwise().norm().sum() + 1e6 * report.floor;
        worst = std::max(worst, truth - 1e-7 * size - allowed);
      }
      const Index outside = function.model_order() - function.basis_size();
      most = std::max(most, outside);
      if (report.floor > 0) {
        floors += 1;
        least = std::max(least, outside);
      }
    }
    CHECK(worst <= 0);
    CHECK(function.basis_size() >= 8 && function.basis_size() <= 20);
    if (budget > 1e-5) CHECK(most <= 8 && floors == 0);
    if (budget < 1e-7) {
      CHECK(most > 512 && most <= 512 + 256 + 3);
      CHECK(floors >= 2 && least <= 10);
      CHECK(defect(function) < 1e-5);
    }
  }
}

namespace {

// A stream whose numbers survive a shift by 1e8 and a power of two without rounding.
Snapshot stream(double offset, double scale, bool constant_feature, double budget) {
  Random random(6);
  SparseFunction function(std::make_shared<Gaussian>(0.25 * scale), 2, 2, 2);
  for (int step = 0; step < 60; ++step) {
    RowMatrix samples = random.uniform_points(8, 2);
    samples = samples.unaryExpr([&](double x) { return std::round(x * 4096) / 4096; });
    if (constant_feature) samples.col(1).setConstant(0.5);
    samples = (scale * (samples.array() + offset)).matrix();
    add(function, samples, random.normal_points(8, 2), budget);
  }
  return Snapshot(function);
}

}  // namespace

TEST(offsets_and_scales_change_nothing) {
  const Snapshot plain = stream(0, 1, false, 0.1);
  CHECK(plain.points.rows() > 5 && plain.weights.allFinite());
  for (const double offset : {1e8, -1e8}) {
    const Snapshot moved = stream(offset, 1, false, 0.1);
    CHECK(moved.ids == plain.ids && moved.weights == plain.weights && moved.root == plain.root);
  }
  for (const double scale : {std::ldexp(1.0, 498), std::ldexp(1.0, -498)}) {  // 8e149, 1e-150
    const Snapshot scaled = stream(0, scale, false, 0.1);
    CHECK(scaled.ids == plain.ids && scaled.weights == plain.weights && scaled.root == plain.root);
  }
  for (const double scale : {1e150, 1e-150}) {
    const Snapshot scaled = stream(0, scale, false, 0.1);
    CHECK(scaled.weights.allFinite() && scaled.root.allFinite());
    CHECK(std::abs(scaled.points.rows() - plain.points.rows()) <= 1);
  }
  const Snapshot flat = stream(0, 1, true, 0.1);
  CHECK(flat.points.rows() > 1 && flat.points.rows() < plain.points.rows());
  CHECK(flat.weights.allFinite());
}

TEST(no_point_and_one_point) {
  const KernelPair kernel = reference::gaussian(1.0);
  SparseFunction function(kernel.core, 2, 1, 1);
  CHECK(function.compress(1.0).removed.empty());
  CHECK(add(function, RowMatrix(0, 2), RowMatrix(0, 1), 1.0).error == 0);
  function.refactor();
  const CompressionReport gone = add(function, RowMatrix::Ones(1, 2), RowMatrix::Ones(1, 1), 1.0);
  CHECK(gone.error == 1 && gone.removed.size() == 1 && function.model_order() == 0);
  CHECK(add(function, RowMatrix::Ones(1, 2), RowMatrix::Ones(1, 1), 0.5).error == 0);
  CHECK(function.model_order() == 1 && function.basis_size() == 1);
  CHECK(function.compress(2.0).error == 1 && function.model_order() == 0);
}

TEST(points_added_without_a_budget_are_compressed_when_there_is_one) {
  Random random(7);
  const KernelPair kernel = reference::gaussian(0.3);
  SparseFunction function(kernel.core, 2, 1, 1);
  const RowMatrix points = random.uniform_points(60, 2), weights = random.normal_points(60, 1);
  add(function, points, weights, 0);
  CHECK(function.model_order() == 60 && function.basis_size() == 0);
  const RowMatrix extra = random.uniform_points(4, 2);
  const CompressionReport report = add(function, extra, RowMatrix::Zero(4, 1), 0.1);
  CHECK(report.model_order < 55);
  const double truth = reference::distance(kernel.exact, points, weights,
                                           function.dictionary().points(), function.weights());
  CHECK_NEAR(report.error, truth, 1e-9);
}

// A kernel written in Python may fail at any moment. A step that fails has not happened.
TEST(a_kernel_that_fails_leaves_the_function_as_it_was) {
  int calls_left = 1 << 30;
  Random random(8);
  SparseFunction function(reference::failing_kernel(2, calls_left), 2, 1, 1);
  insert(function, random.uniform_points(10, 2), random.normal_points(10, 1));
  add(function, random.uniform_points(3, 2), 1e3 * random.normal_points(3, 1), 0);
  int failures = 0;
  for (int step = 0; step < 60; ++step) {
    const RowMatrix samples = random.uniform_points(6, 2), weights = random.normal_points(6, 1);
    const Snapshot before(function);
    for (int calls = 0;; ++calls) {
      calls_left = calls;
      bool failed = false;
      try {
        add(function, samples, weights, 0.05);
      } catch (const std::runtime_error&) {
        failed = true;
      }
      if (!failed) break;
      ++failures;
      CHECK(Snapshot(function) == before);
    }
  }
  CHECK(failures > 60);
}

TEST(kernel_values_that_are_not_finite_change_nothing) {
  Random random(9);
  SparseFunction function(std::make_shared<Polynomial>(3, 1.0, 1.0), 2, 1, 1);
  add(function, random.uniform_points(6, 2), random.normal_points(6, 1), 1e-3);
  const Snapshot before(function);
  for (const double budget : {0.0, 1e-3}) {
    // The last are finite, but not their products.
    for (const double far : {1e200, 1e33}) {
      CHECK_THROWS(add(function, RowMatrix::Constant(2, 2, far), RowMatrix::Ones(2, 1), budget),
                   Error);
      CHECK(Snapshot(function) == before);
    }
  }
}

TEST(ages_give_back_the_order_of_arrival) {
  Random random(10);
  SparseFunction function(std::make_shared<Gaussian>(0.2), 1, 1, 1);
  const RowMatrix points = random.uniform_points(30, 1);
  std::vector<bool> is_protected(30, false);
  is_protected[20] = is_protected[7] = true;
  function.insert(points, random.normal_points(30, 1), is_protected);
  CHECK(function.expansion_by_age().dictionary().points() == points);
}
