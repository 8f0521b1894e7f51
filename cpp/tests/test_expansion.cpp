#include <parsimon/rkhs/expansion.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::KernelPair;
using reference::Random;
using reference::Real;

namespace {

struct Function {
  RowMatrix points, weights;
  KernelExpansion core;

  Function(const KernelPair& kernel, RowMatrix given_points, RowMatrix given_weights)
      : points(std::move(given_points)),
        weights(std::move(given_weights)),
        core(kernel.core, points, weights) {}
};

Function random_function(const KernelPair& kernel, Index size, Index outputs, Random& random) {
  return {kernel, random.uniform_points(size, 3), random.normal_points(size, outputs)};
}

// sum |w| over everything that is added up, times the largest kernel value: what eps is relative
// to.
double magnitude(const KernelPair& kernel, const Function& f, const RowMatrix& at) {
  const reference::Table values = reference::gram(kernel.exact, f.points, at);
  Real largest = 0;
  for (Index i = 0; i < values.rows(); ++i) {
    for (Index j = 0; j < values.columns(); ++j)
      largest = std::max(largest, std::abs(values(i, j)));
  }
  return static_cast<double>(largest) * f.weights.cwiseAbs().sum();
}

double exact_inner(const KernelPair& kernel, const Function& f, const Function& g) {
  const reference::Table gram = reference::gram(kernel.exact, f.points, g.points);
  Real sum = 0;
  for (Index i = 0; i < gram.rows(); ++i) {
    for (Index j = 0; j < gram.columns(); ++j) {
      for (Index c = 0; c < f.weights.cols(); ++c) {
        sum += gram(i, j) * Real(f.weights(i, c)) * Real(g.weights(j, c));
      }
    }
  }
  return static_cast<double>(sum);
}

}  // namespace

// A kernel value is right to a few eps, a sum of n of them to n eps at worst.
TEST(values_are_sums_of_kernel_values) {
  Random random(1);
  for (const KernelPair& kernel : reference::all_kernels()) {
    for (const Index size : {1, 2, 40}) {
      const Function f = random_function(kernel, size, 3, random);
      // More points than are compared at a time.
      const RowMatrix at = random.uniform_points(size == 40 ? 300 : 7, 3);
      const RowMatrix values = f.core(at);
      const reference::Table gram = reference::gram(kernel.exact, at, f.points);
      const double tolerance = 40 * kEps * magnitude(kernel, f, at);
      for (Index i = 0; i < at.rows(); ++i) {
        for (Index c = 0; c < 3; ++c) {
          Real expected = 0;
          for (Index m = 0; m < size; ++m) expected += gram(i, m) * Real(f.weights(m, c));
          CHECK_NEAR(values(i, c), static_cast<double>(expected), tolerance);
        }
      }
    }
  }
}

TEST(inner_products_norms_and_distances) {
  Random random(2);
  for (const KernelPair& kernel : reference::all_kernels()) {
    const Function f = random_function(kernel, 12, 2, random);
    const Function g = random_function(kernel, 17, 2, random);
    const double tolerance =
        40 * kEps * magnitude(kernel, f, g.points) * g.weights.cwiseAbs().sum();
    const double inner = exact_inner(kernel, f, g);
    CHECK_NEAR(f.core.inner(g.core), inner, tolerance);
    CHECK_NEAR(g.core.inner(f.core), inner, tolerance);
    const double squared = exact_inner(kernel, f, f);
    CHECK_NEAR(f.core.norm(), std::sqrt(squared), 1e-12 * std::sqrt(squared));
    const double distance =
        reference::distance(kernel.exact, f.points, f.weights, g.points, g.weights);
    CHECK_NEAR(f.core.distance(g.core), distance, 1e-11 * distance);
    CHECK_NEAR(g.core.distance(f.core), distance, 1e-11 * distance);
    CHECK(f.core.distance(f.core) == 0);
  }
}

TEST(a_small_difference_between_large_functions_keeps_its_digits) {
  Random random(3);
  const KernelPair kernel = reference::gaussian(0.5);
  const Function f = random_function(kernel, 30, 1, random);
  RowMatrix moved = 1e6 * f.weights;
  const KernelExpansion large = f.core.scaled(1e6);
  moved(4, 0) += 1e-3;
  const KernelExpansion other(kernel.core, f.points, moved);
  // The weights themselves are rounded at 1e6 eps.
  CHECK_NEAR(large.distance(other), moved(4, 0) - 1e6 * f.weights(4, 0), 1e-12);
}

TEST(combinations_are_the_functions_they_say) {
  Random random(4);
  for (const KernelPair& kernel : reference::all_kernels()) {
    const Function f = random_function(kernel, 9, 2, random);
    RowMatrix points = random.uniform_points(8, 3);
    points.topRows(5) = f.points.topRows(5);
    const Function g(kernel, points, random.normal_points(8, 2));
    const KernelExpansion sum = f.core.combine(2, g.core, -3);
    CHECK(sum.model_order() == 12);  // five points are shared
    const RowMatrix at = random.uniform_points(20, 3);
    const RowMatrix expected = 2 * f.core(at) - 3 * g.core(at);
    const double tolerance = 100 * kEps * (magnitude(kernel, f, at) + magnitude(kernel, g, at));
    CHECK((sum(at) - expected).cwiseAbs().maxCoeff() < tolerance);
    CHECK(f.core.combine(1, f.core, -1).norm() == 0);
    CHECK((f.core.scaled(-2)(at) + 2 * f.core(at)).cwiseAbs().maxCoeff() < tolerance);
  }
}

// Each expansion has an origin of its own; the result must not depend on whose is used.
TEST(data_far_from_zero) {
  Random random(5);
  const KernelPair kernel = reference::gaussian(0.5);
  for (const double offset : {0.0, 1e8, -1e8}) {
    const Function f(kernel, (random.uniform_points(10, 2).array() + offset).matrix(),
                     random.normal_points(10, 1));
    const Function g(kernel, (random.uniform_points(10, 2).array() + offset).matrix(),
                     random.normal_points(10, 1));
    const double distance =
        reference::distance(kernel.exact, f.points, f.weights, g.points, g.weights);
    CHECK_NEAR(f.core.distance(g.core), distance, 1e-11 * distance);
    CHECK_NEAR(f.core.inner(g.core), exact_inner(kernel, f, g), 1e-12);
    CHECK_NEAR(g.core.inner(f.core), exact_inner(kernel, f, g), 1e-12);
  }
}

// Central differences of functions of size 1 with a step of 1e-5 are right to 1e-10 or so.
TEST(gradients_are_derivatives) {
  Random random(6);
  for (const KernelPair& kernel : reference::all_kernels()) {
    const Function f = random_function(kernel, 6, 2, random);
    const RowMatrix at = random.uniform_points(5, 3);
    for (Index output = 0; output < 2; ++output) {
      const RowMatrix gradient = f.core.gradient(at, output);
      for (Index feature = 0; feature < 3; ++feature) {
        RowMatrix ahead = at, behind = at;
        ahead.col(feature).array() += 1e-5;
        behind.col(feature).array() -= 1e-5;
        const RowMatrix difference = (f.core(ahead) - f.core(behind)) / 2e-5;
        for (Index i = 0; i < 5; ++i) {
          CHECK_NEAR(gradient(i, feature), difference(i, output), 1e-7);
        }
      }
    }
  }
}

TEST(gradients_of_many_points_do_not_depend_on_how_many_are_asked_for_at_once) {
  Random random(7);
  const KernelPair kernel = reference::gaussian(0.5);
  const Function f = random_function(kernel, 6, 1, random);
  const RowMatrix at = random.uniform_points(600, 3);
  const RowMatrix gradient = f.core.gradient(at, 0);
  for (const Index i : {0, 255, 256, 599}) {
    const RowMatrix alone = f.core.gradient(at.row(i), 0);
    CHECK((gradient.row(i) - alone).cwiseAbs().maxCoeff() < 1e-13);
  }
}

TEST(the_zero_function) {
  const KernelPair kernel = reference::gaussian(0.5);
  const Function zero(kernel, RowMatrix(0, 3), RowMatrix(0, 2));
  Random random(8);
  const RowMatrix at = random.uniform_points(4, 3);
  CHECK(zero.core(at) == RowMatrix::Zero(4, 2));
  CHECK(zero.core.gradient(at, 1) == RowMatrix::Zero(4, 3));
  CHECK(zero.core.norm() == 0 && zero.core.model_order() == 0);
  const Function f = random_function(kernel, 5, 2, random);
  CHECK(zero.core.inner(f.core) == 0 && f.core.inner(zero.core) == 0);
  CHECK_NEAR(zero.core.distance(f.core), f.core.norm(), 1e-14 * f.core.norm());
  CHECK(f.core.combine(1, zero.core, 1).model_order() == 5);
  CHECK(f.core(RowMatrix(0, 3)).rows() == 0);
}

TEST(functions_that_cannot_be_compared) {
  Random random(9);
  const KernelPair kernel = reference::gaussian(0.5);
  const Function f = random_function(kernel, 5, 2, random);
  const Function fewer_outputs = random_function(kernel, 5, 1, random);
  const Function other_kernel = random_function(reference::gaussian(0.6), 5, 2, random);
  const Function same_kernel = random_function(reference::gaussian(0.5), 5, 2, random);
  const Function narrow(kernel, random.uniform_points(5, 2), random.normal_points(5, 2));
  for (const Function* g : {&fewer_outputs, &other_kernel, &narrow}) {
    CHECK_THROWS(f.core.inner(g->core), Error);
    CHECK_THROWS(f.core.distance(g->core), Error);
    CHECK_THROWS(f.core.combine(1, g->core, 1), Error);
  }
  CHECK(std::isfinite(f.core.distance(same_kernel.core)));
  CHECK_THROWS(f.core(RowMatrix(1, 2)), Error);
  CHECK_THROWS(f.core.gradient(RowMatrix(1, 2), 0), Error);
  CHECK_THROWS(KernelExpansion(kernel.core, f.points, RowMatrix(4, 2)), Error);
  RowMatrix bad = f.weights;
  bad(1, 1) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS(KernelExpansion(kernel.core, f.points, bad), Error);
  bad = f.points;
  bad(0, 0) = std::numeric_limits<double>::infinity();
  CHECK_THROWS(KernelExpansion(kernel.core, bad, f.weights), Error);
  CHECK_THROWS(f.core.scaled(1e300).scaled(1e300), Error);
  CHECK_THROWS(f.core.combine(1e308, f.core, 1e308), Error);
}
