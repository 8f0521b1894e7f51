#include <Eigen/Cholesky>
#include <algorithm>
#include <numeric>
#include <parsimon/io/polk_file.hpp>
#include <set>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::KernelPair;
using reference::Random;

namespace {

const auto forever = [] { return true; };

std::vector<Index> all_of(Index count) {
  std::vector<Index> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), Index{0});
  return all;
}

// A function on random points with random weights.
SparseFunction random_function(const KernelPair& kernel, Index points, Random& random) {
  SparseFunction function(kernel.core, 2, 3, 3);
  const RowMatrix samples = random.uniform_points(points, 2);
  Batch batch;
  function.compare(samples, batch);
  function.add({samples, batch, all_of(points), random.normal_points(points, 3), 1, 0.0});
  return function;
}

// One more point than the function has, and no more than it had.
CompressionReport add_one(SparseFunction& function, Way way, Random& random, RowMatrix& points,
                          RowMatrix& weights) {
  const RowMatrix sample = random.uniform_points(1, 2), weight = random.normal_points(1, 3);
  points.resize(function.model_order() + 1, 2);
  weights.resize(function.model_order() + 1, 3);
  points << function.dictionary().points(), sample;
  weights << 0.9 * function.weights(), weight;
  Batch batch;
  function.compare(sample, batch);
  return function.add({sample, batch, {0}, weight, 0.9, Limit(0, points.rows() - 1, way)});
}

double distance(const KernelPair& kernel, const RowMatrix& points, const RowMatrix& weights,
                const SparseFunction& function) {
  return reference::distance(kernel.exact, points, weights, function.dictionary().points(),
                             function.weights());
}

Polk model(const std::string& loss, Way way, Index cap, Index outputs, double rate = 0,
           bool average = true) {
  return Polk(std::make_shared<Gaussian>(0.3),
              {parse_loss(loss), StepSchedule::constant(0.5), Compression(way, cap, rate, 7), 1e-3,
               average},
              2, outputs);
}

struct Samples {
  RowMatrix x, y;
};

Samples three_classes(Index count, Random& random) {
  Samples samples{random.uniform_points(count, 2), RowMatrix(count, 1)};
  for (Index i = 0; i < count; ++i) {
    samples.y(i, 0) = samples.x(i, 0) + samples.x(i, 1) > 1 ? 2 : samples.x(i, 0) > 0.4 ? 1 : 0;
  }
  return samples;
}

double accuracy(const Polk& polk, const Samples& samples) {
  RowMatrix values(samples.x.rows(), 3);
  polk.predict(samples.x, values);
  double right = 0;
  for (Index i = 0; i < values.rows(); ++i) {
    Index best = 0;
    values.row(i).maxCoeff(&best);
    right += static_cast<double>(best) == samples.y(i, 0) ? 1 : 0;
  }
  return right / static_cast<double>(values.rows());
}

}  // namespace

TEST(the_merged_point_is_the_best_of_a_fine_grid) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const double kappa = round % 50 == 0 ? 0.0 : std::pow(random.uniform(), 3);
    const RowMatrix a = random.normal_points(1, 3),
                    b = random.magnitude(-2, 2) * random.normal_points(1, 3);
    const double aa = a.squaredNorm(), ab = a.row(0).dot(b.row(0)), bb = b.squaredNorm();
    const Merge found = Merge::best(kappa, aa, ab, bb);
    double best = 0;
    for (int i = 0; i <= 4000; ++i) {
      const double h = i / 4000.0;
      const double k_a = std::pow(kappa, (1 - h) * (1 - h)), k_b = std::pow(kappa, h * h);
      best = std::max(best, (k_a * a + k_b * b).squaredNorm());
    }
    CHECK(found.h >= 0 && found.h <= 1);
    CHECK(found.value >= best - 1e-6 * (aa + bb));
    CHECK_NEAR(found.value, (found.at_a * a + found.at_b * b).squaredNorm(), 1e-13 * (aa + bb));
  }
}

// The pair is the smallest point and the partner with which least is lost, and the error the
// distance that the function has moved.
TEST(merging_is_that_of_brute_force) {
  Random random(2);
  const KernelPair kernel = reference::gaussian(0.4);
  for (int round = 0; round < 60; ++round) {
    SparseFunction function = random_function(kernel, 9, random);
    RowMatrix points, weights;
    const CompressionReport report = add_one(function, Way::merge, random, points, weights);
    CHECK(function.model_order() == 9 && report.removed.size() == 2);
    CHECK_NEAR(report.error, distance(kernel, points, weights, function), 1e-7);
    Index a = 0;
    weights.rowwise().squaredNorm().minCoeff(&a);
    double least = std::numeric_limits<double>::infinity();
    for (Index b = 0; b < 10; ++b) {
      if (b == a) continue;
      for (int i = 0; i <= 1000; ++i) {
        const double h = i / 1000.0;
        RowMatrix pair(2, 2), both(2, 3), one(1, 2);
        pair << points.row(a), points.row(b);
        both << weights.row(a), weights.row(b);
        one = h * pair.row(0) + (1 - h) * pair.row(1);
        const RowMatrix merged = KernelExpansion(kernel.core, pair, both)(one);
        least = std::min(least, reference::distance(kernel.exact, pair, both, one, merged));
      }
    }
    CHECK(report.error <= least + 1e-6);
  }
}

TEST(where_no_pair_can_be_judged_a_point_is_removed) {
  Random random(9);
  SparseFunction function = random_function(reference::gaussian(0.4), 9, random);
  function.weights() *= 1e200;  // squares to infinity
  RowMatrix points, weights;
  const CompressionReport report = add_one(function, Way::merge, random, points, weights);
  CHECK(report.removed.size() == 1);
  CHECK(function.model_order() == 9 && function.weights().allFinite());
}

TEST(removing_takes_the_smallest_point) {
  Random random(3);
  const KernelPair kernel = reference::laplacian(0.4);
  for (int round = 0; round < 60; ++round) {
    SparseFunction function = random_function(kernel, 9, random);
    RowMatrix points, weights;
    const CompressionReport report = add_one(function, Way::remove, random, points, weights);
    Index smallest = 0;
    const double size = std::sqrt(weights.rowwise().squaredNorm().minCoeff(&smallest));
    CHECK(report.removed == std::vector<Index>{smallest});
    CHECK_NEAR(report.error, size, 1e-14);
    CHECK_NEAR(distance(kernel, points, weights, function), size, 1e-7);
  }
}

TEST(projecting_is_the_best_of_all_single_removals) {
  Random random(4);
  const KernelPair kernel = reference::laplacian(0.4);
  for (int round = 0; round < 60; ++round) {
    SparseFunction function = random_function(kernel, 9, random);
    RowMatrix points, weights;
    const CompressionReport report = add_one(function, Way::project, random, points, weights);
    CHECK(function.model_order() == 9 && report.removed.size() == 1);
    CHECK_NEAR(report.error, distance(kernel, points, weights, function), 1e-7);
    const reference::Table exact = reference::gram(kernel.exact, points, points);
    RowMatrix gram(10, 10);
    for (Index i = 0; i < 10; ++i) {
      for (Index j = 0; j < 10; ++j) gram(i, j) = static_cast<double>(exact(i, j));
    }
    const RowMatrix inverse = gram.llt().solve(RowMatrix(RowMatrix::Identity(10, 10)));
    const double least =
        (weights.rowwise().squaredNorm().array() / inverse.diagonal().array()).minCoeff();
    CHECK_NEAR(report.error, std::sqrt(least), 1e-9);
  }
}

// Many copies: they fold into one another, and the cap holds all the same.
TEST(the_cap_holds_whatever_comes) {
  Random random(5);
  for (const Way way : {Way::remove, Way::project, Way::merge}) {
    Polk polk = model("multiclass_hinge", way, 12, 3);
    for (int t = 0; t < 200; ++t) {
      Samples samples = three_classes(7, random);
      if (t % 3 == 0) samples.x.row(2) = samples.x.row(1);
      if (t % 5 == 0 && polk.model_order() > 3) {
        samples.x.row(3) = polk.function().dictionary().points().row(2);
      }
      const StepRecord record = polk.step(samples.x, samples.y, Vector());
      CHECK(record.model_order <= 12 && record.compression_error == record.budget);
      CHECK(polk.function().weights().allFinite());
    }
    CHECK(polk.model_order() == 12);
  }
}

// A cap that is out of reach changes nothing; one that is reached holds, and what it takes beyond
// the budget is told.
TEST(a_cap_holds_beside_a_budget) {
  Random random(10);
  const KernelPair kernel = reference::gaussian(0.3);
  const auto make = [&](const Compression& compression) {
    return Polk(
        kernel.core,
        {parse_loss("multiclass_hinge"), StepSchedule::constant(0.5), compression, 1e-3, true}, 2,
        3);
  };
  const double allowed = 0.02;
  const BudgetSchedule budget = BudgetSchedule::fixed(allowed);
  Polk free = make(budget), roomy = make({budget, 1000}), tight = make({budget, 15});
  int forced = 0;
  for (int t = 0; t < 200; ++t) {
    Samples samples = three_classes(5, random);
    if (t % 3 == 0) samples.x.row(2) = samples.x.row(1);
    free.step(samples.x, samples.y, Vector());
    roomy.step(samples.x, samples.y, Vector());
    const StepRecord record = tight.step(samples.x, samples.y, Vector());
    CHECK(record.model_order <= 15);
    CHECK(record.budget == std::max(allowed, record.compression_error));
    forced += record.compression_error > allowed ? 1 : 0;
    CHECK(record.compression_error <= allowed || record.model_order == 15);
  }
  CHECK(free.model_order() > 20 && forced > 10 && forced < 200);
  CHECK(roomy.function().weights() == free.function().weights());
  CHECK(roomy.dictionary().ids() == free.dictionary().ids());
}

// However little they weigh: they stay, and the others make room.
TEST(protected_points_are_never_removed) {
  Random random(11);
  for (const Way way : {Way::remove, Way::project, Way::merge}) {
    SparseFunction function(reference::gaussian(0.4).core, 2, 1, 1);
    const RowMatrix nodes = random.uniform_points(6, 2);
    function.insert(nodes, 1e-6 * RowMatrix::Ones(6, 1), std::vector<bool>(6, true));
    for (const Index cap : {9, 6, 3}) {
      const RowMatrix samples = random.uniform_points(5, 2);
      Batch batch;
      function.compare(samples, batch);
      function.add({samples, batch, all_of(5), random.normal_points(5, 1), 1, Limit(0, cap, way)});
      CHECK(function.model_order() == std::max<Index>(cap, 6));
      for (Index u = 0; u < 6; ++u) {
        const auto& ids = function.dictionary().ids();
        const auto found = std::find(ids.begin(), ids.end(), u);
        CHECK(found != ids.end() &&
              function.dictionary().point(found - ids.begin()) == nodes.row(u));
      }
    }
  }
}

// Who left and who joined: all that a follower of the dictionary needs.
TEST(the_report_accounts_for_every_point) {
  Random random(12);
  for (const Way way : {Way::remove, Way::project, Way::merge}) {
    SparseFunction function(reference::gaussian(0.4).core, 2, 1, 1);
    for (int t = 0; t < 60; ++t) {
      RowMatrix samples = random.uniform_points(4, 2);
      if (t % 2 == 1) samples.row(1) = function.dictionary().point(0);
      std::set<Index> expected(function.dictionary().ids().begin(),
                               function.dictionary().ids().end());
      Batch batch;
      function.compare(samples, batch);
      const CompressionReport report = function.add(
          {samples, batch, all_of(4), random.normal_points(4, 1), 0.9, Limit(0, 12, way)});
      const std::set<Index> ids(function.dictionary().ids().begin(),
                                function.dictionary().ids().end());
      for (const Index id : ids) {
        if (id >= report.first_new) expected.insert(id);
      }
      for (const Index id : report.removed) expected.erase(id);
      CHECK(ids == expected && report.model_order == static_cast<Index>(ids.size()));
    }
  }
}

TEST(it_learns) {
  Random random(6);
  const Samples train = three_classes(4000, random), test = three_classes(2000, random);
  for (const Way way : {Way::remove, Way::project, Way::merge, Way::nonparametric}) {
    Polk polk = model("multiclass_hinge", way, 40, 3, 4000);
    polk.run(train.x, train.y, Vector(), 1, forever);
    // Points that are removed take along what was learned; half of the samples are of one class.
    const bool removes = way == Way::remove || way == Way::nonparametric;
    CHECK(accuracy(polk, test) > (removes ? 0.6 : 0.9));
  }
}

TEST(a_nonparametric_budget_grows_ever_more_often) {
  Random random(7);
  Polk polk = model("multiclass_hinge", Way::nonparametric, 10, 3, 200);
  Index after_200 = 0;
  for (int t = 1; t <= 3000; ++t) {
    const Samples samples = three_classes(1, random);
    polk.step(samples.x, samples.y, Vector());
    if (t == 200) after_200 = polk.model_order();
  }
  CHECK(after_200 == 10);  // until then it is maintained every time
  CHECK(polk.model_order() > 20);
  CHECK(polk.model_order() == polk.settings().compression.max_points());
}

TEST(training_goes_on_with_the_same_bits_after_a_file) {
  Random random(8);
  for (const Way way : {Way::remove, Way::project, Way::merge, Way::nonparametric}) {
    Polk straight = model("multiclass_logistic", way, 10, 3, 50);
    Polk stopped = straight;
    for (int t = 0; t < 30; ++t) {
      const Samples samples = three_classes(5, random);
      straight.step(samples.x, samples.y, Vector());
      stopped.step(samples.x, samples.y, Vector());
      CHECK(to_archive(straight).to_bytes() == to_archive(stopped).to_bytes());
      stopped = polk_from_archive(Archive::from_bytes(to_archive(stopped).to_bytes()));
    }
  }
}

TEST(what_makes_no_sense_is_refused) {
  const BudgetSchedule none = BudgetSchedule::fixed(0), some = BudgetSchedule::fixed(0.1);
  CHECK_THROWS(Compression(some, 0), Error);
  CHECK_THROWS(Compression(Way::remove, 0), Error);
  CHECK_THROWS(Compression(Way::merge, 1), Error);
  CHECK_THROWS(Compression(Way::nonparametric, 5, -1), Error);
  CHECK_THROWS(Compression(Way::nonparametric, 5, std::nan("")), Error);
  CHECK_THROWS(Compression::restore(none, "forget", {5, 0, 0, 0}), Error);
  CHECK_THROWS(Compression::restore(none, "none", {5, 0, 0, 0}), Error);
  CHECK_THROWS(Compression::restore(none, "remove", {5, 0, 0}), Error);
  CHECK_THROWS(Compression::restore(none, "remove", {5.5, 0, 0, 0}), Error);
  CHECK_THROWS(Compression::restore(none, "remove", {5, 0, -1, 0}), Error);
  CHECK_THROWS(Compression::restore(some, "remove", {5, 0, 0, 0}), Error);
  CHECK(Compression::restore(some, "project", {5, 0, 0, 0}).max_points() == 5);
  const auto made = [](const KernelPtr& kernel) {
    return Polk(kernel,
                {parse_loss("squared"), StepSchedule::constant(0.5), Compression(Way::merge, 5), 0},
                2, 1);
  };
  CHECK(made(std::make_shared<Gaussian>(0.3)).model_order() == 0);
  CHECK_THROWS(made(std::make_shared<Laplacian>(0.3)), Error);
}
