#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "parsimon/interrupt.hpp"
#include "parsimon/linalg/loops.hpp"
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
  // Dependent points may have to be dropped, at a cost of weight * sqrt(pivot) each. Where that
  // could be more than `affordable` in all, pivots down to `finest` are accepted as well.
  struct Stakes {
    std::vector<double> weights;
    double affordable = std::numeric_limits<double>::infinity();
    double finest = 0;
  };

  // self_kernel[i] = k(x_i, x_i)
  void run(const ConstRows& schur, const double* self_kernel, double tolerance,
           const Stakes& stakes) {
    const Index size = schur.rows();
    order_.resize(static_cast<std::size_t>(size));
    std::iota(order_.begin(), order_.end(), Index{0});
    factor_storage_.resize(size, size);
    auto factor = factor_storage_.all();
    ensure_size(pivots_, size);
    ensure_size(products_, size);
    for (Index i = 0; i < size; ++i) pivots_(i) = schur(i, i);
    for (rank_ = 0; rank_ < size; ++rank_) {
      Interruptible::check();
      const bool affordable = can_afford_the_rest(stakes);
      const Index best = largest_pivot(self_kernel, affordable ? tolerance : stakes.finest);
      if (best < 0) break;
      std::swap(order_[static_cast<std::size_t>(rank_)], order_[static_cast<std::size_t>(best)]);
      std::swap_ranges(&factor(rank_, 0), &factor(rank_, 0) + rank_, &factor(best, 0));
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
    const auto lower = factor();
    for (Index z = 0; z < dependent; ++z) {
      Interruptible::check();
      for (Index i = rank_ - 1; i >= 0; --i) {
        double value = lower(rank_ + z, i);
        for (Index k = i + 1; k < rank_; ++k) value -= lower(k, i) * values(k, z);
        values(i, z) = value / lower(i, i);
      }
    }
  }

 private:
  bool can_afford_the_rest(const Stakes& stakes) const {
    if (stakes.affordable == std::numeric_limits<double>::infinity()) return true;
    double cost = 0;
    for (Index i = rank_; i < factor().rows(); ++i) {
      const double weight = stakes.weights[static_cast<std::size_t>(order(i))];
      cost += weight * std::sqrt(std::max(0.0, pivots_(order(i))));
    }
    return cost <= stakes.affordable;
  }

  Index largest_pivot(const double* self_kernel, double tolerance) const {
    Index best = -1;
    double best_ratio = tolerance;
    for (Index i = rank_; i < factor().rows(); ++i) {
      const double self = self_kernel[order(i)];
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
    multiply_by_row(rank_, rank_ + 1);
    for (Index i = rank_ + 1; i < factor.rows(); ++i) {
      const double value = (schur(order(i), pivot_point) - products_(i)) / root;
      factor(i, rank_) = value;
      pivots_(order(i)) -= value * value;
    }
  }

  void finish_remainder(const ConstRows& schur) {
    const Index left = factor().rows() - rank_;
    auto remainder = remainder_.resize(left, left);
    for (Index j = 0; j < left; ++j) {
      Interruptible::check();
      multiply_by_row(rank_ + j, rank_ + j);
      for (Index i = j; i < left; ++i) {
        const double value = schur(order(rank_ + i), order(rank_ + j)) - products_(rank_ + i);
        remainder(i, j) = remainder(j, i) = value;
      }
    }
  }

  // products_(i) = the product of row i with that row, over the first rank_ columns, from row
  // `first` on.
  void multiply_by_row(Index row, Index first) {
    const Index size = factor().rows();
    const double* numbers = factor_storage_.data();
    linalg::loops().multiply_vector(rank_, {numbers, size}, first, size, numbers + row * size,
                                    products_.data());
  }

  RowBuffer::ConstMap factor() const { return factor_storage_.all(); }

  std::vector<Index> order_;
  RowBuffer factor_storage_;
  RowBuffer remainder_;
  Vector pivots_;
  Vector products_;
  Index rank_ = 0;
};

}  // namespace parsimon
