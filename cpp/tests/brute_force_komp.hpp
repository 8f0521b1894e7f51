#pragma once

#include <limits>
#include <vector>

#include "reference.hpp"

namespace reference {

struct Compression {
  std::vector<Index> removed;
  std::vector<Index> kept;
  Table weights{0, 0};  // a row for each kept point
  double error = 0;
};

// Algorithm 1 (POLK) as printed: for every candidate of every round one least-squares problem.
class BruteForceKomp {
 public:
  BruteForceKomp(const Table& gram, const Table& weights)
      : features_(gram.rows(), gram.rows()), target_(weights.columns(), gram.rows()) {
    embed(gram);
    for (Index c = 0; c < weights.columns(); ++c) {
      for (Index i = 0; i < gram.rows(); ++i) {
        for (Index d = 0; d < gram.rows(); ++d) target_(c, d) += weights(i, c) * features_(i, d);
      }
    }
  }

  // Points are removed while the error is at most the budget.
  Compression run(double budget, const std::vector<bool>& is_protected = {}) const {
    Compression result;
    std::vector<Index> kept(static_cast<std::size_t>(features_.rows()));
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<Index>(i);
    while (true) {
      Real best = std::numeric_limits<Real>::infinity();
      std::size_t position = kept.size();
      for (std::size_t j = 0; j < kept.size(); ++j) {
        if (!is_protected.empty() && is_protected[static_cast<std::size_t>(kept[j])]) continue;
        const Real error = fit(without(kept, j)).error;
        if (error < best) {
          best = error;
          position = j;
        }
      }
      if (position == kept.size() || best > budget) break;
      result.removed.push_back(kept[position]);
      result.error = static_cast<double>(best);
      kept = without(kept, position);
    }
    result.kept = kept;
    result.weights = fit(kept).weights;
    return result;
  }

 private:
  struct Fit {
    Table weights;
    Real error;
  };

  static std::vector<Index> without(std::vector<Index> kept, std::size_t position) {
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(position));
    return kept;
  }

  // Rows of features_ whose inner products are the Gram matrix: Cholesky with full pivoting.
  void embed(const Table& gram) {
    const Index size = gram.rows();
    std::vector<Real> left(static_cast<std::size_t>(size));
    for (Index i = 0; i < size; ++i) left[static_cast<std::size_t>(i)] = gram(i, i);
    for (Index d = 0; d < size; ++d) {
      const auto pivot = std::max_element(left.begin(), left.end());
      if (!(*pivot > 0)) break;
      const Index p = pivot - left.begin();
      const Real root = std::sqrt(*pivot);
      for (Index i = 0; i < size; ++i) {
        if (left[static_cast<std::size_t>(i)] < 0) continue;  // a pivot already
        features_(i, d) = (gram(i, p) - dot(features_.row(i), features_.row(p), d)) / root;
        left[static_cast<std::size_t>(i)] -= features_(i, d) * features_(i, d);
      }
      features_(p, d) = root;
      *pivot = -1;
    }
  }

  // min ||target - sum_k w_k feature_k||, by Gram-Schmidt with reorthogonalisation.
  Fit fit(const std::vector<Index>& kept) const {
    const Index size = features_.columns(), count = static_cast<Index>(kept.size());
    Table basis(count, size), triangle(count, count);
    for (Index k = 0; k < count; ++k) {
      const Real* feature = features_.row(kept[static_cast<std::size_t>(k)]);
      std::copy(feature, feature + size, basis.row(k));
      for (int pass = 0; pass < 2; ++pass) {
        for (Index i = 0; i < k; ++i) subtract(basis.row(i), basis.row(k), size, triangle(i, k));
      }
      const Real length = std::sqrt(dot(basis.row(k), basis.row(k), size));
      const bool dependent = length <= kDependent * std::sqrt(dot(feature, feature, size));
      for (Index d = 0; d < size; ++d) basis(k, d) = dependent ? 0 : basis(k, d) / length;
      triangle(k, k) = dependent ? 0 : length;
    }
    return solve(basis, triangle);
  }

  Fit solve(const Table& basis, const Table& triangle) const {
    const Index count = basis.rows(), size = basis.columns();
    Table rest = target_, weights(count, target_.rows());
    Real squared_error = 0;
    for (Index c = 0; c < target_.rows(); ++c) {
      std::vector<Real> right(static_cast<std::size_t>(count));
      for (int pass = 0; pass < 2; ++pass) {
        for (Index k = 0; k < count; ++k) {
          subtract(basis.row(k), rest.row(c), size, right[static_cast<std::size_t>(k)]);
        }
      }
      for (Index k = count; k-- > 0;) {
        Real value = right[static_cast<std::size_t>(k)];
        for (Index i = k + 1; i < count; ++i) value -= triangle(k, i) * weights(i, c);
        weights(k, c) = triangle(k, k) > 0 ? value / triangle(k, k) : 0;
      }
      squared_error += dot(rest.row(c), rest.row(c), size);
    }
    return {std::move(weights), std::sqrt(squared_error)};
  }

  // Takes the part along `direction` out of `from`.
  static void subtract(const Real* direction, Real* from, Index size, Real& coefficient) {
    const Real along = dot(direction, from, size);
    for (Index d = 0; d < size; ++d) from[d] -= along * direction[d];
    coefficient += along;
  }

  // The square root of long double's resolution, in which exact duplicates drown.
  static constexpr Real kDependent = 1e-9L;

  Table features_;
  Table target_;
};

}  // namespace reference
