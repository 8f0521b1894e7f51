#pragma once

#include <Eigen/Cholesky>

#include "parsimon/types.hpp"

namespace parsimon {

namespace detail {

using MatrixRef = Eigen::Ref<Eigen::MatrixXd, 0, Eigen::OuterStride<>>;

// Below this order, halving costs more than it saves.
inline constexpr Index kSmallMatrix = 48;

// The lower triangle becomes that of the inverse of the lower triangular matrix.
inline void invert_lower(MatrixRef l) {
  const Index n = l.rows(), half = n / 2, rest = n - half;
  if (n <= kSmallMatrix) {
    Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(n, n);
    l.triangularView<Eigen::Lower>().solveInPlace(inverse);
    l.triangularView<Eigen::Lower>() = inverse;
    return;
  }
  invert_lower(l.topLeftCorner(half, half));
  invert_lower(l.bottomRightCorner(rest, rest));
  const Eigen::MatrixXd below = l.bottomRightCorner(rest, rest).triangularView<Eigen::Lower>() *
                                l.bottomLeftCorner(rest, half);
  l.bottomLeftCorner(rest, half).noalias() =
      -below * l.topLeftCorner(half, half).triangularView<Eigen::Lower>();
}

// The lower triangle of a lower triangular matrix x becomes that of x'x.
inline void square_lower(MatrixRef x) {
  const Index n = x.rows(), half = n / 2, rest = n - half;
  if (n <= kSmallMatrix) {
    const Eigen::MatrixXd lower = x.triangularView<Eigen::Lower>();
    x.triangularView<Eigen::Lower>() = lower.transpose() * lower;
    return;
  }
  const Eigen::MatrixXd below = x.bottomLeftCorner(rest, half);
  square_lower(x.topLeftCorner(half, half));
  x.topLeftCorner(half, half).selfadjointView<Eigen::Lower>().rankUpdate(below.transpose());
  x.bottomLeftCorner(rest, half).noalias() =
      x.bottomRightCorner(rest, rest).transpose().triangularView<Eigen::Upper>() * below;
  square_lower(x.bottomRightCorner(rest, rest));
}

}  // namespace detail

// A symmetric positive definite matrix, of which the lower triangle is read, becomes its inverse:
// n^3 flops, nearly all in products of matrices. Returns false, and leaves the matrix undefined,
// if it is not positive definite.
inline bool invert_positive(detail::MatrixRef matrix) {
  const Eigen::LLT<detail::MatrixRef> factor(matrix);
  if (factor.info() != Eigen::Success) return false;
  detail::invert_lower(matrix);
  detail::square_lower(matrix);
  matrix.triangularView<Eigen::StrictlyUpper>() = matrix.transpose();
  return true;
}

}  // namespace parsimon
