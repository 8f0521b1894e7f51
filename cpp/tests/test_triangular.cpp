#include <cmath>
#include <parsimon/linalg/triangular.hpp>
#include <vector>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::Random;

namespace {

using Exact = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

// Around the edges of what is done by loops over rows, and of the blocks.
const std::vector<Index> kSizes{1, 2, 7, 47, 48, 49, 95, 96, 97, 150, 211};

RowMatrix positive(Random& random, Index size, double ridge) {
  const RowMatrix a = random.normal_points(size, size + 2);
  return a * a.transpose() / static_cast<double>(size) + ridge * RowMatrix::Identity(size, size);
}

long double largest(const Exact& matrix) { return matrix.cwiseAbs().maxCoeff(); }

Exact exact(const RowMatrix& matrix) { return matrix.cast<long double>(); }

}  // namespace

TEST(a_cholesky_factor_multiplies_back_to_its_matrix) {
  Random random(1);
  for (const Index size : kSizes) {
    const RowMatrix matrix = positive(random, size, 1e-3);
    RowMatrix lower = matrix;
    lower.triangularView<Eigen::StrictlyUpper>().setConstant(std::nan(""));  // is not looked at
    CHECK(linalg::cholesky(lower));
    CHECK(lower.isLowerTriangular(0) && (lower.diagonal().array() > 0).all());
    const Exact error = exact(lower) * exact(lower).transpose() - exact(matrix);
    CHECK(largest(error) < 4 * kEps * static_cast<double>(largest(exact(matrix))) * 10);

    RowMatrix solution = random.normal_points(size, 3);
    const RowMatrix right = solution;
    linalg::solve_cholesky(lower, solution);
    CHECK(largest(exact(matrix) * exact(solution) - exact(right)) <
          100 * kEps * static_cast<double>(largest(exact(solution))));
  }
}

TEST(what_is_not_positive_definite_has_no_cholesky_factor) {
  Random random(2);
  for (const Index size : kSizes) {
    for (const double wrong : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
      RowMatrix matrix = positive(random, size, 1);
      matrix(size - 1, size - 1) = wrong;
      CHECK(!linalg::cholesky(matrix));
    }
  }
}

TEST(triangles_and_positive_matrices_are_inverted) {
  Random random(3);
  for (const Index size : kSizes) {
    const RowMatrix matrix = positive(random, size, 0.1);
    RowMatrix lower = matrix;
    CHECK(linalg::cholesky(lower));
    RowMatrix root = lower;
    linalg::invert_lower(root);
    const RowMatrix identity = RowMatrix::Identity(size, size);
    CHECK(root.isLowerTriangular(0));
    CHECK(largest(exact(root) * exact(lower) - exact(identity)) < 1e-13L);
    RowMatrix inverse = matrix;
    CHECK(linalg::invert_positive(inverse));
    CHECK(largest(exact(inverse) * exact(matrix) - exact(identity)) < 1e-12L);
    CHECK((inverse - inverse.transpose()).cwiseAbs().maxCoeff() <
          1e-13 * inverse.cwiseAbs().maxCoeff());
  }
}

TEST(products_with_triangles_of_all_shapes) {
  Random random(4);
  for (const Index size : kSizes) {
    const RowMatrix root = random.normal_points(size, size).triangularView<Eigen::Lower>();
    for (const Index columns : {1, 3, 8, 17, 40}) {
      const RowMatrix values = random.normal_points(size, columns);
      RowMatrix result(size, columns);
      linalg::multiply_lower(root, values, result);
      CHECK(largest(exact(result) - exact(root) * exact(values)) < 1e-12L);
      linalg::multiply_lower_transpose(root, values, result);
      CHECK(largest(exact(result) - exact(root).transpose() * exact(values)) < 1e-12L);
    }
  }
}

TEST(the_product_of_a_matrix_with_itself_is_added_below_the_diagonal) {
  Random random(5);
  for (const Index size : kSizes) {
    for (const Index depth : {1, 5, 64}) {
      const RowMatrix a = random.normal_points(depth, size);
      RowMatrix sum = RowMatrix::Constant(size, size, 2.0);
      linalg::add_self_product(a, sum);
      for (Index i = 0; i < size; ++i) {
        for (Index k = 0; k < size; ++k) {
          const long double product = exact(a).col(i).dot(exact(a).col(k));
          const double expected = k <= i ? static_cast<double>(2 + product) : 2.0;
          CHECK_NEAR(sum(i, k), expected, 1e-13);
        }
      }
    }
  }
}

// All sizes around one, two and three blocks, and one or many columns, as a part of a larger
// matrix.
TEST(triangular_systems_of_all_sizes_are_solved) {
  Random random(6);
  std::vector<Index> sizes{1, 2, 3, 5, 8, 30};
  for (const Index blocks : {48, 96, 144}) {
    for (const Index around : {-2, -1, 0, 1, 2}) sizes.push_back(blocks + around);
  }
  for (const Index size : sizes) {
    RowMatrix lower = random.normal_points(size, size) / static_cast<double>(size);
    for (Index i = 0; i < size; ++i) lower(i, i) = random.uniform(1, 2);
    RowMatrix triangle = lower.triangularView<Eigen::Lower>();
    for (const Index columns : {1, 2, 3, 8, 11, 50}) {
      const RowMatrix right = random.normal_points(size, columns);
      RowMatrix larger = RowMatrix::Constant(size + 2, columns + 3, 7.0);
      Rows solution = larger.block(1, 2, size, columns);
      solution = right;
      linalg::solve_lower(triangle, solution);
      CHECK(largest(exact(triangle) * exact(solution) - exact(right)) < 1e-14L * (size + 10));
      solution = right;
      linalg::solve_lower_transpose(triangle, solution);
      CHECK(largest(exact(triangle).transpose() * exact(solution) - exact(right)) <
            1e-14L * (size + 10));
      solution.setConstant(7.0);
      CHECK((larger.array() == 7.0).all());
    }
  }
}

TEST(nothing_above_the_diagonal_of_a_triangle_is_looked_at) {
  Random random(7);
  for (const Index size : kSizes) {
    RowMatrix lower = positive(random, size, 1);
    CHECK(linalg::cholesky(lower));
    RowMatrix dirty = lower;
    dirty.triangularView<Eigen::StrictlyUpper>().setConstant(std::nan(""));
    RowMatrix clean_solution = random.normal_points(size, 3), solution = clean_solution;
    linalg::solve_cholesky(lower, clean_solution);
    linalg::solve_cholesky(dirty, solution);
    CHECK(solution == clean_solution);
  }
}

TEST(empty_systems_are_solved_by_nothing) {
  RowMatrix none(0, 3), right(5, 0);
  linalg::solve_cholesky(RowMatrix(0, 0), none);
  linalg::solve_cholesky(RowMatrix::Identity(5, 5), right);
  CHECK(none.rows() == 0 && right.cols() == 0);
}

// a a' below the diagonal; what is above, and around, stays. `a` may be part of a wider matrix.
TEST(the_outer_product_of_a_matrix_is_added_below_the_diagonal) {
  Random random(8);
  for (const Index size : kSizes) {
    for (const Index depth : {0, 1, 5, 64, 300}) {
      const RowMatrix wide = random.normal_points(size, depth + 5);
      const auto a = wide.middleCols(2, depth);
      const Exact product = exact(a) * exact(a).transpose();
      RowMatrix larger = RowMatrix::Constant(size + 3, size + 4, 2.0);
      linalg::add_outer_product(a, larger.block(1, 2, size, size));
      for (Index i = 0; i < larger.rows(); ++i) {
        for (Index k = 0; k < larger.cols(); ++k) {
          const bool below = i >= 1 && i <= size && k >= 2 && k - 2 <= i - 1;
          const double expected = below ? static_cast<double>(2 + product(i - 1, k - 2)) : 2.0;
          CHECK_NEAR(larger(i, k), expected, 1e-15 * static_cast<double>(depth + 4) * 8);
        }
      }
    }
  }
}
