#include <parsimon/rkhs/newcomers.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::Random;
using reference::Real;
using reference::Table;

namespace {

// A basis and a block of points, with all that is known of them.
struct Scene {
  RowMatrix basis_points, block_points;
  reference::KernelPair kernel;
  GramFactor basis;
  Newcomers newcomers;

  Scene(reference::KernelPair pair, RowMatrix basis_rows, RowMatrix block_rows)
      : basis_points(std::move(basis_rows)),
        block_points(std::move(block_rows)),
        kernel(std::move(pair)) {
    const Index known = basis_points.rows(), count = block_points.rows();
    RowMatrix all(known + count, basis_points.cols());
    all << basis_points, block_points;
    const RowMatrix gram = reference::core_gram(*kernel.core, all);
    const Table lower = reference::cholesky(gram.topLeftCorner(known, known));
    RowMatrix rounded(known, known);
    for (Index i = 0; i < known; ++i) {
      for (Index j = 0; j < known; ++j) rounded(i, j) = static_cast<double>(lower(i, j));
    }
    basis.assign_inverse_of(rounded);
    RowMatrix cross = gram.topRightCorner(known, count);
    RowMatrix block = gram.bottomRightCorner(count, count);
    newcomers.factorise(basis, cross, block);
  }

  RowMatrix independent_points() const { return ordered(0, newcomers.independent()); }
  RowMatrix ordered(Index first, Index count) const {
    RowMatrix points(count, block_points.cols());
    for (Index i = 0; i < count; ++i) points.row(i) = block_points.row(newcomers.order(first + i));
    return points;
  }
};

Scene well_conditioned(Index known, Index count, unsigned seed) {
  Random random(seed);
  return {reference::laplacian(0.3), random.uniform_points(known, 3),
          random.uniform_points(count, 3)};
}

double fold(Newcomers& newcomers, RowMatrix& basis_weights, RowMatrix& block_weights, Index scored,
            double squared_budget) {
  const double squared_error = newcomers.choose_folded(block_weights, scored, squared_budget);
  newcomers.move_folded(basis_weights, block_weights);
  return squared_error;
}

// The squared norm of what fold() has done to the function, in long double.
double squared_change(const Scene& scene, const RowMatrix& basis_before,
                      const RowMatrix& block_before, const RowMatrix& basis_after,
                      RowMatrix block_after) {
  for (const Index z : scene.newcomers.folded()) {
    block_after.row(scene.newcomers.order(scene.newcomers.independent() + z)).setZero();
  }
  RowMatrix points(scene.basis_points.rows() + scene.block_points.rows(),
                   scene.basis_points.cols());
  RowMatrix change(points.rows(), block_before.cols());
  points << scene.basis_points, scene.block_points;
  change << basis_after - basis_before, block_after - block_before;
  const Real norm = reference::norm(reference::gram(scene.kernel.exact, points, points), change);
  return static_cast<double>(norm * norm);
}

struct Folded {
  double reported, exact, noise;
};

// fold() with random weights. The kernel is known to a few eps, so the squared norm of a change is
// known to that times the square of all weights that took part.
Folded fold(Scene& scene, const RowMatrix& block_weights, double squared_budget) {
  Random random(9);
  const RowMatrix before = random.normal_points(scene.basis_points.rows(), block_weights.cols());
  RowMatrix basis = before, block = block_weights;
  const double reported = fold(scene.newcomers, basis, block, block_weights.cols(), squared_budget);
  const double size = (basis - before).rowwise().norm().sum() + block.rowwise().norm().sum() +
                      block_weights.rowwise().norm().sum();
  return {reported, squared_change(scene, before, block_weights, basis, block),
          8 * kEps * size * size};
}

// Coefficients, Schur complement and factor, against long double, for the basis and the newcomers
// that are left.
void check_invariant(const Scene& scene, const RowMatrix& basis_points, const RowMatrix& points) {
  const Index known = basis_points.rows(), count = points.rows();
  const auto& kernel = scene.kernel.exact;
  const Table inverse =
      known > 0 ? reference::inverse(reference::gram(kernel, basis_points, basis_points))
                : Table(0, 0);
  const Table cross = reference::gram(kernel, basis_points, points);
  const Table gram = reference::gram(kernel, points, points);
  RowMatrix schur(count, count);
  CHECK(scene.newcomers.size() == count);
  for (Index j = 0; j < count; ++j) {
    std::vector<Real> column(static_cast<std::size_t>(known));
    for (Index i = 0; i < known; ++i) {
      for (Index k = 0; k < known; ++k) {
        column[static_cast<std::size_t>(i)] += inverse(i, k) * cross(k, j);
      }
      CHECK_NEAR(scene.newcomers.coefficients()[static_cast<std::size_t>(j)][i],
                 static_cast<double>(column[static_cast<std::size_t>(i)]), 1e-12);
    }
    for (Index i = 0; i < count; ++i) {
      Real value = gram(i, j);
      for (Index k = 0; k < known; ++k) value -= cross(k, i) * column[static_cast<std::size_t>(k)];
      schur(i, j) = static_cast<double>(value);
      CHECK_NEAR(scene.newcomers.schur(i, j), schur(i, j), 1e-12);
    }
  }
  CHECK(reference::defect(scene.newcomers.factor().root(), schur) < 1e-11);
}

RowMatrix without(const RowMatrix& points, Index i) {
  RowMatrix rest(points.rows() - 1, points.cols());
  rest << points.topRows(i), points.bottomRows(points.rows() - 1 - i);
  return rest;
}

}  // namespace

TEST(the_invariant_holds_while_newcomers_and_points_of_the_basis_leave) {
  Random random(11);
  Scene scene = well_conditioned(20, 9, 5);
  RowMatrix basis_points = scene.basis_points, points = scene.independent_points();
  Vector pivot_row(20);
  while (scene.newcomers.size() > 0) {
    if (basis_points.rows() > 0 && random.integer(0, 1) == 0) {
      const Index j = random.integer(0, basis_points.rows() - 1), count = scene.newcomers.size();
      Vector of_removed(count);
      for (Index k = 0; k < count; ++k) {
        of_removed(k) = scene.newcomers.coefficients()[static_cast<std::size_t>(k)][j];
      }
      auto row = pivot_row.head(basis_points.rows());
      scene.basis.remove(j, row);
      scene.newcomers.lose_basis_point(j, row, of_removed);
      basis_points = without(basis_points, j);
    } else {
      const Index k = random.integer(0, scene.newcomers.size() - 1);
      scene.newcomers.remove(k, pivot_row.head(scene.newcomers.size()));
      points = without(points, k);
    }
    check_invariant(scene, basis_points, points);
  }
}

TEST(coefficients_schur_complement_and_factor_of_independent_points) {
  for (const auto& [known, count] : {std::pair<Index, Index>{20, 12}, {1, 1}, {0, 9}, {30, 0}}) {
    const Scene scene = well_conditioned(known, count, 1);
    CHECK(scene.newcomers.independent() == count);
    check_invariant(scene, scene.basis_points, scene.independent_points());
  }
}

TEST(copies_of_the_basis_and_of_each_other_are_dependent_and_cost_nothing) {
  Random random(2);
  const RowMatrix basis = random.uniform_points(10, 2);
  const RowMatrix fresh = random.uniform_points(3, 2);
  RowMatrix block(50, 2);
  for (Index i = 0; i < 50; ++i) block.row(i) = i % 2 ? basis.row(i % 10) : fresh.row(i % 3);
  Scene scene(reference::laplacian(0.3), basis, block);
  CHECK(scene.newcomers.independent() == 3);
  RowMatrix basis_weights = RowMatrix::Zero(10, 1), weights = random.normal_points(50, 1);
  const RowMatrix given = weights;
  const double error = fold(scene.newcomers, basis_weights, weights, 1, 1e-20 + 1e-13);
  CHECK(error >= 0 && error < 1e-13);
  CHECK(scene.newcomers.folded().size() == 47 && scene.newcomers.unfolded().empty());
  for (Index j = 0; j < 10; ++j) {
    double expected = 0;
    for (Index i = 1; i < 50; i += 2) expected += i % 10 == j ? given(i, 0) : 0.0;
    CHECK_NEAR(basis_weights(j, 0), expected, 1e-12);
  }
}

TEST(what_folding_costs_is_what_it_changes) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const double spread = random.magnitude(-9, -4);
    const RowMatrix points = random.clustered_points(40, 2, 6, spread);
    const RowMatrix centres = points.topRows(6) + 0.3 * random.normal_points(6, 2);
    Scene scene(reference::gaussian(0.5), centres, points);
    const RowMatrix weights = random.magnitude(-3, 3) * random.normal_points(40, 2);
    const Folded all = fold(scene, weights, 1e300);
    CHECK(scene.newcomers.unfolded().empty());
    CHECK_NEAR(all.reported, all.exact, all.noise + 1e-6 * all.exact);
    const Folded some = fold(scene, weights, 0.25 * all.reported);
    CHECK(some.reported <= 0.25 * all.reported);
    CHECK_NEAR(some.reported, some.exact, some.noise + 1e-6 * some.exact);
    CHECK(scene.newcomers.folded().size() + scene.newcomers.unfolded().size() ==
          static_cast<std::size_t>(40 - scene.newcomers.independent()));
  }
}

// Where a budget does not pay for them, points that double precision can tell apart stay, and
// explain the others; what that changes is what it says, and no more than the budget or rounding.
TEST(points_outside_explain_each_other) {
  Random random(8);
  for (int round = 0; round < 60; ++round) {
    const double spread = random.magnitude(-6, -4), budget = random.magnitude(-12, -3);
    RowMatrix centres = RowMatrix::Zero(3, 2);
    centres(1, 0) = centres(2, 1) = 1;
    RowMatrix points = spread * random.normal_points(40, 2);
    for (Index i = 0; i < 40; ++i) points.row(i) += centres.row(i % 3);
    Scene scene(reference::gaussian(0.5), centres, points);
    const Index dependent = 40 - scene.newcomers.independent();
    const RowMatrix weights = random.normal_points(40, 2), before = random.normal_points(3, 2);
    RowMatrix basis = before, block = weights;
    const double floor = scene.newcomers.rounding(block, 2);
    CHECK(floor > 0 && floor < 1e-6 * weights.rowwise().norm().sum() * (1 + 1e-12));
    const double squared_error = scene.newcomers.choose_outside(block, 2, budget);
    scene.newcomers.move_folded(basis, block);
    const auto left = static_cast<Index>(scene.newcomers.unfolded().size());
    CHECK(left + static_cast<Index>(scene.newcomers.folded().size()) == dependent);
    CHECK(std::sqrt(squared_error) <= std::max(budget, floor));
    const double truth = squared_change(scene, before, weights, basis, block);
    CHECK(std::sqrt(truth) <= std::max(budget, floor));
    CHECK_NEAR(truth, squared_error, 1e-13 * weights.squaredNorm());
    // In two dimensions, a cluster and its centre differ in two directions at first order, in three
    // more at second.
    CHECK(left <= (spread < 1e-5 ? 3 * 2 : 3 * 5));
    if (floor > spread * weights.rowwise().norm().sum()) CHECK(left == 0);
  }
}

TEST(a_fold_that_is_too_expensive_changes_nothing) {
  RowMatrix basis(1, 1), block(1, 1);
  basis << 0;
  block << 5e-5;  // what is left of it has the norm 5e-5
  Scene scene(reference::gaussian(1.0), basis, block);
  CHECK(scene.newcomers.independent() == 0);
  RowMatrix basis_weights = RowMatrix::Constant(1, 2, 3.0), weights(1, 2);
  weights << 1, 7;
  CHECK(fold(scene.newcomers, basis_weights, weights, 1, 1e-12) == 0);
  CHECK(scene.newcomers.folded().empty() && scene.newcomers.unfolded().size() == 1);
  CHECK(basis_weights == RowMatrix::Constant(1, 2, 3.0));
  // Only the first column is scored, but both move.
  CHECK_NEAR(fold(scene.newcomers, basis_weights, weights, 1, 1e-8), 2.5e-9, 1e-15);
  CHECK_NEAR(basis_weights(0, 0), 4.0, 1e-8);
  CHECK_NEAR(basis_weights(0, 1), 10.0, 1e-7);
}

// Alone each of the two would be affordable, together they point the same way and are not.
TEST(residuals_that_add_up_are_not_counted_as_if_they_were_orthogonal) {
  RowMatrix basis(1, 1), block(2, 1);
  basis << 0;
  block << 5e-5, 5.0001e-5;
  Scene scene(reference::gaussian(1.0), basis, block);
  CHECK(scene.newcomers.independent() == 0);
  const double alone = 2.5e-9;
  RowMatrix basis_weights = RowMatrix::Zero(1, 1), weights = RowMatrix::Ones(2, 1);
  const double error = fold(scene.newcomers, basis_weights, weights, 1, 3 * alone);
  CHECK(scene.newcomers.folded().size() == 1 && scene.newcomers.unfolded().size() == 1);
  CHECK_NEAR(error, alone, 1e-12);
  basis_weights.setZero();
  weights = RowMatrix::Ones(2, 1);
  CHECK_NEAR(fold(scene.newcomers, basis_weights, weights, 1, 5 * alone), 4 * alone, 1e-12);
}

TEST(points_of_norm_zero_are_dependent_on_nothing_at_all) {
  RowMatrix basis(0, 2), block = RowMatrix::Zero(3, 2);
  block(1, 0) = 2;
  Scene scene(reference::linear(), basis, block);
  CHECK(scene.newcomers.independent() == 1 && scene.newcomers.order(0) == 1);
  RowMatrix basis_weights(0, 1), weights = RowMatrix::Constant(3, 1, 5.0);
  CHECK(fold(scene.newcomers, basis_weights, weights, 1, 1e-30) == 0);
  CHECK(weights(1, 0) == 5 && scene.newcomers.folded().size() == 2);
}

// Some onto the basis, some onto newcomers, and most onto both: each column as if it were alone.
TEST(every_column_of_the_weights_is_moved_the_same_way) {
  Random random(4);
  const RowMatrix points = random.clustered_points(40, 2, 6, 1e-5);
  const RowMatrix centres = points.topRows(3) + 0.3 * random.normal_points(3, 2);
  Scene scene(reference::gaussian(0.5), centres, points);
  const Index independent = scene.newcomers.independent();
  CHECK(independent > 2 && independent < 20);
  const RowMatrix basis = random.normal_points(3, 3), block = random.normal_points(40, 3);
  RowMatrix basis_after = basis, block_after = block;
  fold(scene.newcomers, basis_after, block_after, 1, 1e9);
  CHECK(scene.newcomers.unfolded().empty());
  for (Index c = 0; c < 3; ++c) {
    RowMatrix basis_alone = basis.col(c), block_alone = block.col(c);
    fold(scene.newcomers, basis_alone, block_alone, 1, 1e9);
    CHECK((basis_after.col(c) - basis_alone).cwiseAbs().maxCoeff() < 1e-12);
    CHECK((block_after.col(c) - block_alone).cwiseAbs().maxCoeff() < 1e-12);
    CHECK((basis_after.col(c) - basis.col(c)).norm() > 0);
    CHECK(squared_change(scene, basis.col(c), block.col(c), basis_after.col(c),
                         block_after.col(c)) < 1e-5);
  }
}

// Squares of such weights are infinite, and what is left of a copy is 0: NaN. In an order, it would
// let a sort run out of its bounds; as a cost, it must not be taken for none.
TEST(dependent_points_whose_cost_is_not_a_number_stay_what_they_are) {
  Random random(4);
  const RowMatrix points = random.uniform_points(1, 2);
  Scene scene(reference::gaussian(0.3), points, points.replicate(40, 1));
  CHECK(scene.newcomers.independent() == 0);
  RowMatrix basis = RowMatrix::Ones(1, 1), block = random.normal_points(40, 1);
  for (Index i = 0; i < 40; i += 2) block(i, 0) = 1e200;
  fold(scene.newcomers, basis, block, 1, std::numeric_limits<double>::infinity());
  CHECK(scene.newcomers.folded().size() == 20 && scene.newcomers.unfolded().size() == 20);
  for (const Index z : scene.newcomers.unfolded())
    CHECK(block(scene.newcomers.order(z), 0) == 1e200);
  CHECK(std::abs(basis(0, 0)) < 100);
}
