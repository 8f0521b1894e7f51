#include <parsimon/rkhs/pivoted_root.hpp>
#include <set>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::Random;

namespace {

constexpr double kTolerance = 1e-8;

// B B' with B of `rank` columns, its points scaled by 10^-scale .. 10^scale.
RowMatrix gram_of_rank(Index size, Index rank, double scale, Random& random) {
  RowMatrix features = random.normal_points(size, rank);
  for (Index i = 0; i < size; ++i) features.row(i) *= random.magnitude(-scale, scale);
  return features * features.transpose();
}

// S(rows, columns), with both counted in the order of the split.
RowMatrix part(const RowMatrix& gram, const PivotedRoot& split, Index first_row, Index rows,
               Index first_column, Index columns) {
  RowMatrix result(rows, columns);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      result(i, j) = gram(split.order(first_row + i), split.order(first_column + j));
    }
  }
  return result;
}

// Both sides divided by sqrt(k(x, x)): what the tolerance is relative to.
RowMatrix normalised(RowMatrix values, const Vector& row_norms, const Vector& column_norms) {
  values.array().colwise() /= row_norms.array();
  values.array().rowwise() /= column_norms.transpose().array();
  return values;
}

Vector norms(const RowMatrix& gram, const PivotedRoot& split, Index first, Index count) {
  return part(gram, split, first, count, first, count).diagonal().cwiseSqrt();
}

// Everything that the class promises. Sums of at most 60 products: errors stay below 1e3 eps.
void check_promises(const RowMatrix& gram, const PivotedRoot& split) {
  const Index size = gram.rows(), rank = split.rank(), left = size - rank;
  std::set<Index> seen;
  for (Index i = 0; i < size; ++i) seen.insert(split.order(i));
  CHECK(static_cast<Index>(seen.size()) == size);

  const Vector kept = norms(gram, split, 0, rank), rest = norms(gram, split, rank, left);
  if (rank > 0) {
    const RowMatrix lower = split.root_factor().triangularView<Eigen::Lower>();
    const RowMatrix independent = part(gram, split, 0, rank, 0, rank);
    const RowMatrix off = normalised(lower * lower.transpose() - independent, kept, kept);
    CHECK(off.cwiseAbs().maxCoeff() < 1e3 * kEps);
    CHECK((lower.diagonal().array() > std::sqrt(kTolerance) * kept.array()).all());
  }
  if (left == 0) return;
  RowBuffer coefficients;
  split.dependent_coefficients(coefficients);
  const RowMatrix within = coefficients.all();
  CHECK(within.rows() == rank && within.cols() == left);
  const RowMatrix cross = part(gram, split, rank, left, 0, rank);
  const RowMatrix expected = part(gram, split, rank, left, rank, left) - cross * within;
  const RowMatrix remainder = split.remainder();
  // A coefficient is off by up to eps / (smallest pivot), and so is what it explains.
  CHECK(normalised(remainder - expected, rest, rest).cwiseAbs().maxCoeff() < 1e-7);
  CHECK((remainder.diagonal().array() <= 1.01 * kTolerance * rest.array().square()).all());
  CHECK(remainder == remainder.transpose());
}

PivotedRoot split_of(const RowMatrix& gram) {
  PivotedRoot split;
  const Vector self = gram.diagonal();
  split.run(gram, self.data(), kTolerance, {});
  return split;
}

}  // namespace

TEST(all_points_of_a_well_conditioned_block_are_independent) {
  Random random(1);
  for (const Index size : {1, 2, 3, 17, 60}) {
    const RowMatrix gram = reference::core_gram(Laplacian(0.3), random.uniform_points(size, 3));
    const PivotedRoot split = split_of(gram);
    CHECK(split.rank() == size);
    CHECK(split.remainder().size() == 0);
    check_promises(gram, split);
  }
}

TEST(the_rank_is_found_whatever_the_scales_of_the_points) {
  Random random(2);
  for (int round = 0; round < 50; ++round) {
    const Index size = random.integer(1, 40), rank = random.integer(1, 8);
    const RowMatrix gram = gram_of_rank(size, rank, random.uniform(0, 8), random);
    const PivotedRoot split = split_of(gram);
    CHECK(split.rank() == std::min(size, rank));
    check_promises(gram, split);
  }
}

TEST(clusters_of_every_tightness) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const double spread = random.magnitude(-12, 0);
    const RowMatrix points = random.clustered_points(40, random.integer(1, 3), 5, spread);
    const RowMatrix gram = reference::core_gram(Gaussian(0.5), points);
    check_promises(gram, split_of(gram));
  }
}

TEST(duplicates_are_dependent) {
  Random random(4);
  const RowMatrix distinct = random.uniform_points(6, 2);
  RowMatrix points(50, 2);
  for (Index i = 0; i < 50; ++i) points.row(i) = distinct.row(i % 6);
  const RowMatrix gram = reference::core_gram(Gaussian(0.2), points);
  const PivotedRoot split = split_of(gram);
  CHECK(split.rank() == 6);
  check_promises(gram, split);
  RowBuffer coefficients;
  split.dependent_coefficients(coefficients);
  const RowMatrix within = coefficients.all();
  for (Index z = 0; z < 44; ++z) {
    for (Index i = 0; i < 6; ++i) {
      const bool twins = split.order(6 + z) % 6 == split.order(i) % 6;
      CHECK_NEAR(within(i, z), twins ? 1.0 : 0.0, 1e-12);
    }
  }
}

TEST(the_largest_relative_pivot_comes_first) {
  // Relative to k(x, x) the second point is as good as the first, though its pivot is smaller.
  RowMatrix schur(3, 3);
  schur << 1e-3, 0, 0, 0, 1e-6, 0, 0, 0, 0.5;
  Vector self(3);
  self << 1, 1e-6, 1;
  PivotedRoot split;
  split.run(schur, self.data(), kTolerance, {});
  CHECK(split.order(0) == 1 && split.order(1) == 2 && split.order(2) == 0);
}

TEST(points_without_norm_and_noise_below_zero_are_dependent) {
  RowMatrix schur = RowMatrix::Zero(3, 3);
  schur(1, 1) = 0.25;
  schur(2, 2) = -1e-17;
  Vector self(3);
  self << 0, 1, 1;
  PivotedRoot split;
  split.run(schur, self.data(), kTolerance, {});
  CHECK(split.rank() == 1 && split.order(0) == 1);
  CHECK(split.root_factor()(0, 0) == 0.5);
  CHECK(split.remainder().allFinite());
}

TEST(an_empty_block_and_a_smaller_one_after_a_larger_one) {
  PivotedRoot split;
  split.run(RowMatrix(0, 0), nullptr, kTolerance, {});
  CHECK(split.rank() == 0 && split.remainder().size() == 0);
  Random random(5);
  for (const Index size : {30, 4, 0, 11}) {
    const RowMatrix gram = gram_of_rank(size, 5, 1, random);
    const Vector self = gram.diagonal();
    split.run(gram, self.data(), kTolerance, {});
    CHECK(split.rank() == std::min<Index>(size, 5));
    check_promises(gram, split);
  }
}
