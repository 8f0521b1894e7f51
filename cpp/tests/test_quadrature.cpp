#include <algorithm>
#include <cmath>
#include <limits>
#include <parsimon/density/box.hpp>
#include <parsimon/density/quadrature.hpp>

#include "check.hpp"

using namespace parsimon;

namespace {

const double pi = std::acos(-1.0);

Box cube(Index features, double lower, double upper) {
  return {RowVector::Constant(features, lower), RowVector::Constant(features, upper)};
}

std::vector<Index> same(Index features, Index count) {
  return std::vector<Index>(static_cast<std::size_t>(features), count);
}

bool all_inside(const Box& box, const RowMatrix& nodes) {
  for (Index i = 0; i < nodes.rows(); ++i) {
    if (!box.contains(nodes.row(i))) return false;
  }
  return true;
}

bool all_distinct(const RowMatrix& nodes) {
  std::vector<std::vector<double>> rows;
  for (Index i = 0; i < nodes.rows(); ++i) {
    rows.emplace_back(nodes.data() + i * nodes.cols(), nodes.data() + (i + 1) * nodes.cols());
  }
  std::sort(rows.begin(), rows.end());
  return std::adjacent_find(rows.begin(), rows.end()) == rows.end();
}

// A function on the unit cube with the integral 1, and the standard deviation it has there.
struct Integrand {
  double (*factor)(double);  // one for each feature
  double mean_square;        // of one factor
};

const std::vector<Integrand> integrands = {
    {[](double x) { return pi / 2 * std::sin(pi * x); }, pi * pi / 8},
    {[](double x) { return 1 + (x - 0.5) / 2; }, 1 + 1.0 / 48},
    {[](double x) { return std::exp(x) / (std::exp(1.0) - 1); },
     (std::exp(2.0) - 1) / 2 / std::pow(std::exp(1.0) - 1, 2)}};

double mean(const Integrand& integrand, const RowMatrix& nodes) {
  double sum = 0;
  for (Index i = 0; i < nodes.rows(); ++i) {
    double product = 1;
    for (Index j = 0; j < nodes.cols(); ++j) product *= integrand.factor(nodes(i, j));
    sum += product;
  }
  return sum / static_cast<double>(nodes.rows());
}

}  // namespace

TEST(a_box_contains_its_faces_and_nothing_beyond) {
  RowVector lower(2), upper(2), point(2);
  lower << -1, 2;
  upper << 3, 2.5;
  const Box box(lower, upper);
  CHECK(box.features() == 2 && box.lower() == std::vector<double>{-1, 2} &&
        box.upper() == std::vector<double>{3, 2.5});
  CHECK_NEAR(box.log_volume(), std::log(2.0), 1e-15);
  CHECK(box.contains(lower) && box.contains(upper));
  for (const auto& [x, y] : {std::pair<double, double>{std::nextafter(3, 4), 2.2},
                             {-1.1, 2.2},
                             {0, 2.6},
                             {0, 1.9},
                             {std::nan(""), 2.2},
                             {0, std::numeric_limits<double>::infinity()}}) {
    point << x, y;
    CHECK(!box.contains(point));
    CHECK_THROWS(box.check(point), Error);
  }
  RowMatrix points(2, 2);
  points << lower, upper;
  box.check(points);
  box.check(points.topRows(0));
  CHECK_THROWS(box.check(points.leftCols(1)), Error);
  CHECK(Box::unit(7).log_volume() == 0);
}

TEST(boxes_without_a_volume_are_refused) {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS(Box(RowVector(), RowVector()), Error);
  CHECK_THROWS(Box(RowVector::Zero(2), RowVector::Ones(3)), Error);
  CHECK_THROWS(cube(2, 1, 1), Error);
  CHECK_THROWS(cube(2, 1, 0), Error);
  CHECK_THROWS(cube(1, std::nan(""), 0), Error);
  CHECK_THROWS(cube(1, 0, std::nan("")), Error);
  CHECK_THROWS(cube(1, 0, infinity), Error);
  CHECK_THROWS(cube(1, -infinity, 0), Error);
  CHECK_THROWS(cube(1, -1e308, 1e308), Error);  // the width overflows
  RowVector upper(2);
  upper << 1, 0;
  CHECK_THROWS(Box(RowVector::Zero(2), upper), Error);
}

TEST(a_grid_has_the_midpoints_of_its_cells_the_last_feature_fastest) {
  RowVector lower(2), upper(2);
  lower << -1, 10;
  upper << 1, 16;
  const RowMatrix nodes = Quadrature::grid({2, 3}).nodes({lower, upper});
  RowMatrix expected(6, 2);
  expected << -0.5, 11, -0.5, 13, -0.5, 15, 0.5, 11, 0.5, 13, 0.5, 15;
  CHECK(nodes == expected);
  CHECK(Quadrature::grid({2, 3}).size() == 6);

  const Quadrature grid = Quadrature::grid({4, 1, 7, 3});
  const RowMatrix many = grid.nodes(cube(4, 0.1, 0.7));
  CHECK(many.rows() == 84 && grid.size() == 84 && all_distinct(many));
  Index row = 0;
  for (Index a = 0; a < 4; ++a) {
    for (Index c = 0; c < 7; ++c) {
      for (Index d = 0; d < 3; ++d, ++row) {
        const double at[] = {(static_cast<double>(a) + 0.5) / 4, 0.5,
                             (static_cast<double>(c) + 0.5) / 7,
                             (static_cast<double>(d) + 0.5) / 3};
        for (Index j = 0; j < 4; ++j) CHECK_NEAR(many(row, j), 0.1 + 0.6 * at[j], 1e-15);
      }
    }
  }
}

// The error of the midpoint rule is at most the sum over the features of h^2 / 24 times the largest
// second derivative: with products, (largest second derivative) (largest value)^(features - 1).
TEST(a_grid_integrates_as_the_midpoint_rule_does) {
  const double e = std::exp(1.0);
  const double largest[] = {pi / 2, 1.25, e / (e - 1)};
  const double second[] = {pi * pi * pi / 2, 0, e / (e - 1)};
  for (Index features = 1; features <= 6; ++features) {
    for (const Index count : {3, 6}) {
      const RowMatrix nodes = Quadrature::grid(same(features, count)).nodes(Box::unit(features));
      for (std::size_t k = 0; k < integrands.size(); ++k) {
        const auto dimension = static_cast<double>(features);
        const double bound = dimension / static_cast<double>(24 * count * count) * second[k] *
                             std::pow(largest[k], dimension - 1);
        CHECK_NEAR(mean(integrands[k], nodes), 1.0, bound + 1e-13);
      }
    }
  }
}

TEST(scattered_nodes_are_distinct_and_in_the_box) {
  for (Index features = 1; features <= 6; ++features) {
    const Quadrature quadrature = Quadrature::scattered(20000);
    for (const Box& box :
         {Box::unit(features), cube(features, -3, 0.1), cube(features, 1e8, 1e8 + 1),
          cube(features, -1e40, 1e-40), cube(features, 1e-40, 2e-40)}) {
      const RowMatrix nodes = quadrature.nodes(box);
      CHECK(nodes.rows() == 20000 && nodes.cols() == features && nodes.allFinite());
      CHECK(all_inside(box, nodes));
      CHECK(all_distinct(nodes));
    }
  }
  CHECK(Quadrature::scattered(1).nodes(cube(3, 2, 4)) == RowMatrix::Constant(1, 3, 3.0));
}

// In one dimension the multiples of the golden section have a discrepancy of at most
// (3 + (1 / log phi + 1 / log 2) log n) / n (Kuipers and Niederreiter, theorem 2.3.4): a tenth of
// what random numbers have at n = 100,000.
TEST(scattered_nodes_on_a_line_are_as_even_as_the_golden_section) {
  for (const Index count : {10, 1000, 100000}) {
    const RowMatrix nodes = Quadrature::scattered(count).nodes(Box::unit(1));
    std::vector<double> sorted(nodes.data(), nodes.data() + count);
    std::sort(sorted.begin(), sorted.end());
    const auto n = static_cast<double>(count);
    double discrepancy = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const auto k = static_cast<double>(i);
      discrepancy = std::max({discrepancy, sorted[i] - k / n, (k + 1) / n - sorted[i]});
    }
    const double phi = (1 + std::sqrt(5.0)) / 2;
    CHECK(discrepancy <= (3 + (1 / std::log(phi) + 1 / std::log(2.0)) * std::log(n)) / n);
  }
}

// The error of random nodes is their standard error, in the root mean square over many cases. Half
// of that, in each dimension over 18 cases, is more than four standard deviations away from it.
TEST(scattered_nodes_integrate_better_than_random_ones) {
  for (Index features = 1; features <= 6; ++features) {
    double squares = 0;
    for (const Index count : {500, 1000, 2000, 4000, 8000, 16000}) {
      const RowMatrix nodes = Quadrature::scattered(count).nodes(Box::unit(features));
      for (const Integrand& integrand : integrands) {
        const double variance = std::pow(integrand.mean_square, static_cast<double>(features)) - 1;
        const double error = mean(integrand, nodes) - 1;
        squares += error * error / (variance / static_cast<double>(count));
      }
    }
    const double ratio = std::sqrt(squares / 18);
    CHECK(ratio < 0.5);
    std::printf("       %d features: %.3f of the standard error\n", static_cast<int>(features),
                ratio);
  }
}

// No two features move together: the 64 cells of each pair have at least half and at most twice the
// 100 nodes that are their share.
TEST(scattered_nodes_fill_every_pair_of_features) {
  for (Index features = 2; features <= 6; ++features) {
    const RowMatrix nodes = Quadrature::scattered(6400).nodes(Box::unit(features));
    for (Index a = 0; a < features; ++a) {
      for (Index b = 0; b < a; ++b) {
        std::vector<Index> cells(64);
        for (Index i = 0; i < nodes.rows(); ++i) {
          const double cell = 8 * std::floor(8 * nodes(i, a)) + std::floor(8 * nodes(i, b));
          cells[static_cast<std::size_t>(cell)] += 1;
        }
        const auto [least, most] = std::minmax_element(cells.begin(), cells.end());
        CHECK(*least >= 50 && *most <= 200);
      }
    }
  }
}

TEST(finer_keeps_the_kind_and_the_proportions) {
  for (const auto& counts :
       std::vector<std::vector<Index>>{{5}, {10, 20}, {3, 3, 3}, {1, 2, 4, 8}}) {
    const Quadrature grid = Quadrature::grid(counts);
    for (const Index at_least : {Index{0}, Index{1}, grid.size() - 1, grid.size()}) {
      CHECK(grid.finer(at_least).counts() == counts);
    }
    for (const Index at_least : {grid.size() + 1, 2 * grid.size(), 1000 * grid.size()}) {
      const Quadrature finer = grid.finer(at_least);
      CHECK(finer.kind() == "grid" && finer.size() >= at_least);
      const double ratio = static_cast<double>(at_least) / static_cast<double>(grid.size());
      const double factor = std::pow(ratio, 1 / static_cast<double>(counts.size()));
      for (std::size_t j = 0; j < counts.size(); ++j) {
        const double exact = factor * static_cast<double>(counts[j]);
        CHECK(static_cast<double>(finer.counts()[j]) > exact - 1e-9);
        CHECK(static_cast<double>(finer.counts()[j]) < exact + 1);
      }
    }
  }
  CHECK(Quadrature::grid({10, 20}).finer(800).counts() == (std::vector<Index>{20, 40}));
  CHECK_THROWS(Quadrature::grid({10, 20}).finer(Index{1} << 40), Error);

  const Quadrature scattered = Quadrature::scattered(50);
  CHECK(scattered.finer(49).size() == 50 && scattered.finer(51).size() == 51);
  CHECK(scattered.finer(120).kind() == "scattered");
  const Box box = cube(3, -1, 2);
  CHECK(scattered.finer(120).nodes(box).topRows(50) == scattered.nodes(box));
}

TEST(a_quadrature_is_restored_from_its_kind_and_counts) {
  for (const Quadrature& quadrature : {Quadrature::grid({3, 4}), Quadrature::scattered(17)}) {
    const Quadrature again = Quadrature::restore(quadrature.kind(), quadrature.counts());
    CHECK(again.kind() == quadrature.kind() && again.counts() == quadrature.counts());
    CHECK(again.nodes(cube(2, 0.3, 0.9)) == quadrature.nodes(cube(2, 0.3, 0.9)));
  }
  CHECK_THROWS(Quadrature::restore("sobol", {3}), Error);
  CHECK_THROWS(Quadrature::restore("", {}), Error);
  CHECK_THROWS(Quadrature::restore("scattered", {}), Error);
  CHECK_THROWS(Quadrature::restore("scattered", {3, 4}), Error);
}

TEST(numbers_of_nodes_that_cannot_be_are_refused) {
  const Index huge = std::numeric_limits<Index>::max();
  for (const std::vector<Index>& counts :
       std::vector<std::vector<Index>>{{},
                                       {0},
                                       {-1},
                                       {5, 0},
                                       {5, -5},
                                       {std::numeric_limits<Index>::min()},
                                       {huge},
                                       {huge, huge},
                                       {Index{1} << 32, Index{1} << 32},
                                       {70000, 70000},
                                       same(64, 2)}) {
    CHECK_THROWS(Quadrature::grid(counts), Error);
  }
  for (const Index count : {Index{0}, Index{-1}, huge, (Index{1} << 31) + 1}) {
    CHECK_THROWS(Quadrature::scattered(count), Error);
  }
  CHECK(Quadrature::grid(same(31, 2)).size() == Index{1} << 31);
  CHECK_THROWS(Quadrature::grid({5, 5}).nodes(Box::unit(1)), Error);
  CHECK_THROWS(Quadrature::grid({5, 5}).nodes(Box::unit(3)), Error);
}
