#include <numeric>
#include <parsimon/rkhs/span.hpp>
#include <parsimon/rkhs/sparse_function.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::KernelPair;
using reference::Random;

namespace {

// The paper's grid: 100 nodes and a Gaussian of variance 0.0065, a Gram matrix of rank 38.
const KernelPair kernel = reference::gaussian(std::sqrt(0.0065));

RowMatrix grid(Index count) {
  RowMatrix points(count, 1);
  for (Index i = 0; i < count; ++i) points(i, 0) = (static_cast<double>(i) + 0.5) / 100;
  return points;
}

Vector distances(const Span& span, const RowMatrix& points) {
  Vector result(points.rows());
  span.distance(points, result);
  return result;
}

}  // namespace

TEST(points_that_others_explain_are_in_the_span_without_being_in_the_basis) {
  Dictionary dictionary(kernel.core, 1);
  dictionary.append(grid(100), true);
  const Span span = Span::of(dictionary);
  CHECK(span.size() < 60);
  CHECK(distances(span, grid(100)).maxCoeff() < 1e-6);
}

TEST(the_factor_of_a_function_spans_what_a_fresh_one_does) {
  Random random(0);
  SparseFunction function(kernel.core, 1, 1, 1);
  function.insert(8 * grid(20), RowMatrix::Ones(20, 1), std::vector<bool>(20, false));
  const RowMatrix places = random.normal_points(600, 1);  // more than one block
  const Vector fresh = distances(Span::of(function.dictionary()), places);
  const Vector followed = distances({function.dictionary(), function.factor()}, places);
  CHECK((fresh - followed).cwiseAbs().maxCoeff() < 1e-7);
  CHECK(fresh.minCoeff() >= 0);
  CHECK(fresh.maxCoeff() <= 1);
}

TEST(single_precision_is_widened_block_by_block) {
  Random random(0);
  Dictionary dictionary(kernel.core, 1);
  dictionary.append(grid(20), false);
  const Span span = Span::of(dictionary);
  const SingleRowMatrix single = random.normal_points(600, 1).cast<float>();
  Vector result(600);
  span.distance(ConstSingleRows(single), result);
  CHECK(result == distances(span, single.cast<double>()));
}

TEST(without_points_everything_lies_outside) {
  const Span span = Span::of(Dictionary(kernel.core, 1));
  CHECK(distances(span, grid(3)) == Vector::Ones(3));
  CHECK_THROWS(distances(span, RowMatrix::Ones(3, 2)), Error);
}
