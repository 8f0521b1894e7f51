#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Which points of a block are numerically independent, by Cholesky factorisation with pivoting of
// the block's Schur complement S: always the point whose remaining pivot is largest relative to
// k(x, x) comes next, until every remaining one is below the tolerance. No small pivot is ever
// divided by.
//
// After run():  order() permutes the block; with the first rank() of it as N and the rest as Z,
//   L L' = S(N, N)  for the lower triangular L = root_factor(), and
//   remainder() = S(Z, Z) - S(Z, N) S(N, N)^-1 S(N, Z),  the inner products of what is left of Z.
class PivotedRoot {
 public:
  // The points may have to be done without, at a cost of weight * sqrt(pivot) each. Where that may
  // be more than is affordable in all, pivots down to `finest` are accepted as well.
  struct Stakes {
    Vector weights;
    double affordable = std::numeric_limits<double>::infinity();
    double finest = 0;
  };

  void run(const ConstRows& schur, const Eigen::Ref<const Vector>& self_kernel, double tolerance) {
    run(schur, self_kernel, tolerance, Stakes());
  }

  void run(const ConstRows& schur, const Eigen::Ref<const Vector>& self_kernel, double tolerance,
           const Stakes& stakes) {
    const Index size = schur.rows();
    order_.resize(static_cast<std::size_t>(size));
    std::iota(order_.begin(), order_.end(), Index{0});
    factor_storage_.resize(size, size);
    auto factor = factor_storage_.all();
    ensure_size(pivots_, size);
    pivots_.head(size) = schur.diagonal();
    for (rank_ = 0; rank_ < size; ++rank_) {
      const bool affordable = can_afford_the_rest(stakes);
      const Index best = largest_pivot(self_kernel, affordable ? tolerance : stakes.finest);
      if (best < 0) break;
      std::swap(order_[static_cast<std::size_t>(rank_)], order_[static_cast<std::size_t>(best)]);
      factor.row(rank_).head(rank_).swap(factor.row(best).head(rank_));
      eliminate(schur);
    }
    finish_remainder(schur);
  }

  Index rank() const { return rank_; }
  const std::vector<Index>& order() const { return order_; }
  Index order(Index i) const { return order_[static_cast<std::size_t>(i)]; }
  auto root_factor() const { return factor().topLeftCorner(rank_, rank_); }
  auto remainder() const { return remainder_.all(); }

  // result = S(N, N)^-1 S(N, Z), a column for each dependent point.
  void dependent_coefficients(RowBuffer& result) const {
    const Index dependent = factor().rows() - rank_;
    auto values = result.resize(rank_, dependent);
    values = factor().bottomLeftCorner(dependent, rank_).transpose();
    if (values.size() > 0) {
      root_factor().transpose().template triangularView<Eigen::Upper>().solveInPlace(values);
    }
  }

 private:
  bool can_afford_the_rest(const Stakes& stakes) const {
    if (stakes.affordable == std::numeric_limits<double>::infinity()) return true;
    double cost = 0;
    for (Index i = rank_; i < factor().rows(); ++i) {
      cost += stakes.weights(order(i)) * std::sqrt(std::max(0.0, pivots_(order(i))));
    }
    return cost <= stakes.affordable;
  }

  Index largest_pivot(const Eigen::Ref<const Vector>& self_kernel, double tolerance) const {
    Index best = -1;
    double best_ratio = tolerance;
    for (Index i = rank_; i < factor().rows(); ++i) {
      const double self = self_kernel(order(i));
      const double pivot = pivots_(order(i));
      if (self > 0 && pivot > best_ratio * self) {
        best_ratio = pivot / self;
        best = i;
      }
    }
    return best;
  }

  // Column rank_ of L, for the pivot that has just been moved there, and the pivots it leaves.
  void eliminate(const ConstRows& schur) {
    const Index pivot_point = order(rank_);
    const double root = std::sqrt(pivots_(pivot_point));
    auto factor = factor_storage_.all();
    factor(rank_, rank_) = root;
    const auto pivot_row = factor.row(rank_).head(rank_);
    for (Index i = rank_ + 1; i < factor.rows(); ++i) {
      const double value =
          (schur(order(i), pivot_point) - factor.row(i).head(rank_).dot(pivot_row)) / root;
      factor(i, rank_) = value;
      pivots_(order(i)) -= value * value;
    }
  }

  void finish_remainder(const ConstRows& schur) {
    const Index left = factor().rows() - rank_;
    auto remainder = remainder_.resize(left, left);
    const auto below = factor().bottomLeftCorner(left, rank_);
    for (Index i = 0; i < left; ++i) {
      for (Index j = 0; j <= i; ++j) {
        const double value =
            schur(order(rank_ + i), order(rank_ + j)) - below.row(i).dot(below.row(j));
        remainder(i, j) = remainder(j, i) = value;
      }
    }
  }

  RowBuffer::ConstMap factor() const { return factor_storage_.all(); }

  std::vector<Index> order_;
  RowBuffer factor_storage_;
  RowBuffer remainder_;
  Vector pivots_;
  Index rank_ = 0;
};

}  // namespace parsimon
