#pragma once

#include "parsimon/types.hpp"

namespace parsimon {

// What a model file keeps beside the dictionary and the weights.
struct FactorState {
  RowMatrix root;
  Vector inverse_diagonal;
  Index changes = 0;
  Index probes = 0;
};

// Residual along any direction, or relative error of an entry of the diagonal, above which a
// factor is not this dictionary's. Well above what a factor in use drifts to.
constexpr double kForeign = 1e-6;

// Whether it is the state of a factor of this Gram matrix.
inline bool belongs_to(const FactorState& state, const RowMatrix& gram) {
  const RowMatrix& root = state.root;
  const Vector& diagonal = state.inverse_diagonal;
  const Index size = root.rows();
  if (!root.allFinite() || !(root.diagonal().array() > 0).all()) return false;
  // GramFactor::residual() along all directions at once: T K = T'^-1.
  const auto lower = root.triangularView<Eigen::Lower>();
  RowMatrix expected = RowMatrix::Identity(size, size);
  lower.transpose().solveInPlace(expected);
  const RowMatrix difference = lower * gram - expected;
  const auto residuals = difference.colwise().norm().array() / expected.colwise().norm().array();
  const Vector squares = root.colwise().squaredNorm();
  return (residuals < kForeign).all() &&
         ((diagonal - squares).array().abs() < kForeign * squares.array()).all();
}

}  // namespace parsimon
