#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "parsimon/linalg/triangular.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Ridge regression on a few columns c_i of a matrix C with a penalty for each,
//
//   minimise over w:   ||y - C w||^2 + sum_i w_i^2 / mu_i,     mu_i > 0,
//
// as columns come and go and their mu_i change. It knows C only by B = C'C and r = C'y.
//
// Invariant, with D = diag(mu):   G == (D^-1 + B)^-1   ((23), SLKL, with lambda = 1)
//                                 solution() == G r == argmin w,   diagonal() == diag(G)
//
// G itself is base_ + sum_k sign_k v_k v_k': the rank-one corrections (25) to (27) are collected
// and taken up as one product of matrices. Every max(500, size()) updates G is computed afresh from
// I + D^1/2 B D^1/2, whose eigenvalues are at least 1. Order is free: the last column takes the
// place of one that goes. O(size()^2) per update, O(1) for alignment() and stiffness().
class WeightedRidge {
 public:
  Index size() const { return size_; }
  Index updates() const { return updates_; }
  auto weights() const { return mu_.head(size_); }
  auto solution() const { return solution_.head(size_); }
  auto correlations() const { return correlations_.head(size_); }
  auto diagonal() const { return diagonal_.head(size_); }
  auto gram() const { return gram_.topLeftCorner(size_, size_); }

  RowMatrix inverse() const {
    RowMatrix g = base_.topLeftCorner(size_, size_);
    for (Index k = 0; k < pending_; ++k) {
      for (Index i = 0; i < size_; ++i) {
        const double factor = signs_(k) * corrections_(k, i);
        for (Index j = 0; j < size_; ++j) g(i, j) += factor * corrections_(k, j);
      }
    }
    return g;
  }

  // a = c_i' K^-1 y with K = I + C D C'; K^-1 y is the residual y - C w, so that a = w_i / mu_i.
  double alignment(Index i) const { return solution_(i) / mu_(i); }

  // b = c_i' K^-1 c_i = (1 - G_ii / mu_i) / mu_i
  double stiffness(Index i) const { return (1 - diagonal_(i) / mu_(i)) / mu_(i); }

  // B v, for a vector with one number per column.
  Vector gram_times(const Eigen::Ref<const Vector>& v) const {
    Vector product(size_);
    linalg::multiply_vector({gram_.data(), capacity()}, size_, size_, v.data(), product.data());
    return product;
  }

  // G b, for a column that is not in the set: b = C'c.
  void solve(const Eigen::Ref<const Vector>& b, Vector& product) {
    product.resize(size_);
    if (size_ == 0) return;
    linalg::multiply_vector({base_.data(), capacity()}, size_, size_, b.data(), product.data());
    linalg::multiply_vector({corrections_.data(), capacity()}, pending_, size_, b.data(),
                            projected_.data());
    add_corrections(product);
  }

  // Case 2, (25): mu_i becomes mu > 0.
  void change(Index i, double mu) {
    column_of_inverse(i);
    const double delta = 1 / mu - 1 / mu_(i);
    const double g = std::min(diagonal_(i), mu_(i));
    mu_(i) = mu;
    correct(-delta / (1 + delta * g), i);
    count_update();
  }

  // Case 3, (26): column i goes, and the last one takes its place.
  void remove(Index i) {
    column_of_inverse(i);
    correct(-1 / diagonal_(i), i);
    const Index last = --size_;
    if (i != last) move(last, i);
    count_update();
  }

  // Case 4, (27): a column c with b = C'c, c'c, c'y and product = G b comes last, with mu > 0.
  // stiffness = c'K^-1 c = c'c - b'G b, which the caller knows better where the difference cancels.
  void append(const Eigen::Ref<const Vector>& b, const Eigen::Ref<const Vector>& product,
              double square, double correlation, double mu, double stiffness) {
    if (size_ == capacity()) grow();
    double a = correlation;
    for (Index i = 0; i < size_; ++i) a -= b(i) * solution_(i);
    const double s = mu / (1 + mu * stiffness);
    const Index last = size_++;
    column_.resize(size_);
    for (Index i = 0; i < last; ++i) {
      gram_(i, last) = gram_(last, i) = b(i);
      base_(i, last) = base_(last, i) = 0;
      column_(i) = product(i);
    }
    gram_(last, last) = square;
    base_(last, last) = 0;
    column_(last) = -1;
    for (Index k = 0; k < kPending; ++k) corrections_(k, last) = 0;
    correlations_(last) = correlation;
    mu_(last) = mu;
    diagonal_(last) = 0;
    solution_(last) = 0;
    add_correction(s);
    for (Index i = 0; i < size_; ++i) solution_(i) -= s * a * column_(i);
    count_update();
  }

  // G, its diagonal and the solution afresh.
  void refresh() {
    pending_ = 0;
    updates_since_refresh_ = 0;
    if (size_ == 0) return;
    RowMatrix g(size_, size_);
    std::vector<double> root;
    for (Index i = 0; i < size_; ++i) root.push_back(std::sqrt(mu_(i)));
    const auto scale = [&](Index i, Index k) {
      return root[static_cast<std::size_t>(i)] * root[static_cast<std::size_t>(k)];
    };
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k < size_; ++k) g(i, k) = scale(i, k) * gram_(i, k);
      g(i, i) += 1;
    }
    if (!linalg::invert_positive(g)) {
      throw DivergenceError(
          "The weights of the kernels have left the range of finite numbers; scale features and "
          "targets, or choose a larger sparsity.");
    }
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k < size_; ++k) base_(i, k) = scale(i, k) * g(i, k);
      diagonal_(i) = base_(i, i);
    }
    linalg::multiply_vector({base_.data(), capacity()}, size_, size_, correlations_.data(),
                            solution_.data());
  }

  // Keeps these columns, in this order, with these mu.
  void select(const std::vector<Index>& kept, const Vector& mu) {
    const auto count = static_cast<Index>(kept.size());
    const RowMatrix gram = gram_of(kept);
    const Vector old = correlations_;
    size_ = count;
    for (Index i = 0; i < count; ++i) {
      for (Index k = 0; k < count; ++k) gram_(i, k) = gram(i, k);
      correlations_(i) = old(kept[static_cast<std::size_t>(i)]);
      mu_(i) = mu(i);
    }
    refresh();
  }

  // B of some of the columns.
  RowMatrix gram_of(const std::vector<Index>& chosen) const {
    const auto count = static_cast<Index>(chosen.size());
    RowMatrix gram(count, count);
    for (Index i = 0; i < count; ++i) {
      for (Index k = 0; k < count; ++k) {
        gram(i, k) =
            gram_(chosen[static_cast<std::size_t>(i)], chosen[static_cast<std::size_t>(k)]);
      }
    }
    return gram;
  }

 private:
  static constexpr Index kPending = 32;
  static constexpr Index kRefresh = 500;

  Index capacity() const { return mu_.size(); }

  void grow() {
    const Index wanted = std::max<Index>(32, 2 * capacity());
    gram_.conservativeResize(wanted, wanted);
    base_.conservativeResize(wanted, wanted);
    corrections_.conservativeResize(kPending, wanted);
    for (Vector* vector : {&correlations_, &mu_, &solution_, &diagonal_}) {
      vector->conservativeResize(wanted);
    }
    signs_.resize(kPending);
    projected_.resize(kPending);
  }

  // column_ = G e_i
  void column_of_inverse(Index i) {
    if (!(diagonal_(i) > 0)) refresh();
    column_.resize(size_);
    std::copy_n(&base_(i, 0), size_, column_.data());
    for (Index k = 0; k < pending_; ++k) projected_(k) = corrections_(k, i);
    add_corrections(column_);
  }

  // sum += sum_k sign_k projected_k v_k
  void add_corrections(Vector& sum) const {
    for (Index k = 0; k < pending_; ++k) {
      const double factor = signs_(k) * projected_(k);
      for (Index i = 0; i < size_; ++i) sum(i) += factor * corrections_(k, i);
    }
  }

  // G <- G + factor g g' with g = column_ = G e_i, for which g'r = w_i.
  void correct(double factor, Index i) {
    const double w = solution_(i);
    add_correction(factor);
    for (Index k = 0; k < size_; ++k) solution_(k) += factor * w * column_(k);
  }

  void add_correction(double factor) {
    signs_(pending_) = factor;
    for (Index i = 0; i < size_; ++i) {
      diagonal_(i) += factor * column_(i) * column_(i);
      corrections_(pending_, i) = column_(i);
    }
    if (++pending_ == kPending) take_up();
  }

  void take_up() {
    RowMatrix scaled = corrections_.leftCols(size_), product(size_, size_);
    for (Index k = 0; k < kPending; ++k) {
      for (Index i = 0; i < size_; ++i) scaled(k, i) *= signs_(k);
    }
    linalg::multiply_transpose_by(scaled, corrections_.leftCols(size_), product);
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k < size_; ++k) base_(i, k) += product(i, k);
    }
    pending_ = 0;
  }

  void move(Index from, Index to) {
    for (RowMatrix* matrix : {&gram_, &base_}) {
      const double corner = (*matrix)(from, from);
      for (Index i = 0; i < size_; ++i) {
        (*matrix)(i, to) = (*matrix)(to, i) = (*matrix)(from, i);
      }
      (*matrix)(to, to) = corner;
    }
    for (Index k = 0; k < kPending; ++k) corrections_(k, to) = corrections_(k, from);
    for (Vector* vector : {&correlations_, &mu_, &solution_, &diagonal_}) {
      (*vector)(to) = (*vector)(from);
    }
  }

  void count_update() {
    updates_ += 1;
    updates_since_refresh_ += 1;
    if (updates_since_refresh_ >= std::max(kRefresh, size_)) refresh();
  }

  Index size_ = 0;
  Index updates_ = 0;
  Index updates_since_refresh_ = 0;
  RowMatrix gram_;       // B
  Vector correlations_;  // r
  Vector mu_;
  Vector solution_;
  Vector diagonal_;
  RowMatrix base_;
  RowMatrix corrections_;  // v_k, one row each
  Vector signs_;
  Index pending_ = 0;

  Vector column_;
  Vector projected_;
};

}  // namespace parsimon
