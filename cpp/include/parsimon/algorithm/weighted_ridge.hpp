#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
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
// place of one that goes. O(size()^2) an update, O(1) for alignment() and stiffness().
class WeightedRidge {
 public:
  Index size() const { return size_; }
  Index updates() const { return updates_; }
  auto weights() const { return mu_.head(size_); }
  auto solution() const { return solution_.head(size_); }
  auto correlations() const { return correlations_.head(size_); }
  auto diagonal() const { return diagonal_.head(size_); }
  auto gram() const { return gram_.topLeftCorner(size_, size_); }

  Eigen::MatrixXd inverse() const {
    Eigen::MatrixXd g = base_.topLeftCorner(size_, size_);
    for (Index k = 0; k < pending_; ++k) {
      g +=
          signs_(k) * corrections_.col(k).head(size_) * corrections_.col(k).head(size_).transpose();
    }
    return g;
  }

  // a = c_i' K^-1 y with K = I + C D C'; K^-1 y is the residual y - C w, so that a = w_i / mu_i.
  double alignment(Index i) const { return solution_(i) / mu_(i); }

  // b = c_i' K^-1 c_i = (1 - G_ii / mu_i) / mu_i
  double stiffness(Index i) const { return (1 - diagonal_(i) / mu_(i)) / mu_(i); }

  // G b, for a column that is not in the set: b = C'c.
  void solve(const Eigen::Ref<const Vector>& b, Vector& product) {
    product.noalias() = base_.topLeftCorner(size_, size_) * b;
    if (pending_ == 0) return;
    const auto corrections = corrections_.topLeftCorner(size_, pending_);
    auto projected = projected_.head(pending_);
    projected.noalias() = corrections.transpose() * b;
    projected.array() *= signs_.head(pending_).array();
    product.noalias() += corrections * projected;
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
    const double a = correlation - b.dot(solution());
    const double s = mu / (1 + mu * stiffness);
    const Index last = size_++;
    gram_.col(last).head(last) = b;
    gram_.row(last).head(last) = b.transpose();
    gram_(last, last) = square;
    correlations_(last) = correlation;
    mu_(last) = mu;
    base_.col(last).head(size_).setZero();
    base_.row(last).head(size_).setZero();
    corrections_.row(last).setZero();
    diagonal_(last) = 0;
    solution_(last) = 0;
    column_.resize(size_);
    column_.head(last) = product;
    column_(last) = -1;
    add_correction(s);
    solution_.head(size_) -= s * a * column_;
    count_update();
  }

  // G, its diagonal and the solution afresh.
  void refresh() {
    pending_ = 0;
    updates_since_refresh_ = 0;
    if (size_ == 0) return;
    const Vector root = weights().cwiseSqrt();
    RowMatrix g(size_, size_);
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k < size_; ++k) g(i, k) = root(i) * gram_(i, k) * root(k);
      g(i, i) += 1;
    }
    if (!linalg::invert_positive(g)) {
      throw DivergenceError(
          "The weights of the kernels have left the range of finite numbers; scale features and "
          "targets, or choose a larger sparsity.");
    }
    for (Index i = 0; i < size_; ++i) {
      double sum = 0;
      for (Index k = 0; k < size_; ++k) {
        base_(k, i) = root(i) * g(i, k) * root(k);
        sum += base_(k, i) * correlations_(k);
      }
      solution_(i) = sum;
      diagonal_(i) = base_(i, i);
    }
  }

  // Keeps these columns, in this order, with these mu.
  void select(const std::vector<Index>& kept, const Vector& mu) {
    const auto count = static_cast<Index>(kept.size());
    const Eigen::MatrixXd gram = gram_(kept, kept);
    const Vector correlations = correlations_(kept);
    size_ = count;
    gram_.topLeftCorner(count, count) = gram;
    correlations_.head(count) = correlations;
    mu_.head(count) = mu;
    refresh();
  }

 private:
  static constexpr Index kPending = 32;
  static constexpr Index kRefresh = 500;

  Index capacity() const { return mu_.size(); }

  void grow() {
    const Index wanted = std::max<Index>(32, 2 * capacity());
    gram_.conservativeResize(wanted, wanted);
    base_.conservativeResize(wanted, wanted);
    corrections_.conservativeResize(wanted, kPending);
    for (Vector* vector : {&correlations_, &mu_, &solution_, &diagonal_}) {
      vector->conservativeResize(wanted);
    }
    signs_.resize(kPending);
    projected_.resize(kPending);
    scaled_.resize(wanted, kPending);
  }

  // column_ = G e_i
  void column_of_inverse(Index i) {
    if (!(diagonal_(i) > 0)) refresh();
    column_ = base_.col(i).head(size_);
    if (pending_ == 0) return;
    auto projected = projected_.head(pending_);
    projected = corrections_.row(i).head(pending_).transpose();
    projected.array() *= signs_.head(pending_).array();
    column_.noalias() += corrections_.topLeftCorner(size_, pending_) * projected;
  }

  // G <- G + factor g g' with g = column_ = G e_i, for which g'r = w_i.
  void correct(double factor, Index i) {
    const double w = solution_(i);
    add_correction(factor);
    solution_.head(size_) += factor * w * column_;
  }

  void add_correction(double factor) {
    diagonal_.head(size_).array() += factor * column_.array().square();
    signs_(pending_) = factor;
    corrections_.col(pending_).head(size_) = column_;
    if (++pending_ == kPending) take_up();
  }

  void take_up() {
    auto corrections = corrections_.topRows(size_);
    scaled_.topRows(size_).noalias() = corrections * signs_.asDiagonal();
    base_.topLeftCorner(size_, size_).noalias() += scaled_.topRows(size_) * corrections.transpose();
    pending_ = 0;
  }

  void move(Index from, Index to) {
    for (Eigen::MatrixXd* matrix : {&gram_, &base_}) {
      matrix->col(to).head(size_) = matrix->col(from).head(size_);
      matrix->row(to).head(size_) = matrix->row(from).head(size_);
      (*matrix)(to, to) = (*matrix)(from, from);
    }
    corrections_.row(to) = corrections_.row(from);
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
  Eigen::MatrixXd gram_;  // B
  Vector correlations_;   // r
  Vector mu_;
  Vector solution_;
  Vector diagonal_;
  Eigen::MatrixXd base_;
  Eigen::MatrixXd corrections_;  // v_k, a column each
  Vector signs_;
  Index pending_ = 0;

  Vector column_;
  Vector projected_;
  Eigen::MatrixXd scaled_;
};

}  // namespace parsimon
