#pragma once

#include <algorithm>
#include <cmath>

#include "parsimon/linalg/triangular.hpp"
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

// Points that are nearly dependent magnify the rounding of the kernel beyond that: a factor may
// also be one of a matrix whose entries differ from those of the Gram matrix by this much,
// relatively.
constexpr double kRounding = 1e-10;

// Whether it is the state of a factor of this Gram matrix.
inline bool belongs_to(const FactorState& state, const RowMatrix& gram) {
  const RowMatrix& root = state.root;
  const Vector& diagonal = state.inverse_diagonal;
  const Index size = root.rows();
  for (Index i = 0; i < size; ++i) {
    if (!(all_finite(&root(i, 0), i + 1) && root(i, i) > 0)) return false;
  }
  // GramFactor::residual() along all directions at once: T K = T'^-1, the rows of which are the
  // columns of T^-1.
  RowMatrix lower = root, product(size, size), rounding(size, size);
  for (Index i = 0; i < size; ++i) std::fill(&lower(i, 0) + i + 1, &lower(i, 0) + size, 0.0);
  linalg::multiply_lower(lower, gram, product);
  linalg::multiply_lower(lower.cwiseAbs().eval(), gram.cwiseAbs().eval(), rounding);
  linalg::invert_lower(lower);
  for (Index j = 0; j < size; ++j) {
    double difference = 0, norm = 0, rounded = 0, square = 0;
    for (Index i = 0; i < size; ++i) {
      const double expected = j >= i ? lower(j, i) : 0.0;
      difference += (product(i, j) - expected) * (product(i, j) - expected);
      norm += expected * expected;
      rounded += rounding(i, j) * rounding(i, j);
      if (i >= j) square += root(i, j) * root(i, j);
    }
    const double tolerance = kForeign * kForeign * norm + kRounding * kRounding * rounded;
    if (!(difference < tolerance)) return false;
    if (!(std::abs(diagonal(j) - square) < kForeign * square)) return false;
  }
  return true;
}

}  // namespace parsimon
