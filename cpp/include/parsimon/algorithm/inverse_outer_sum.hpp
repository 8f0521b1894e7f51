#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The inverse of A = delta I + sum_t g_t g_t', as the g_t come.
//
// It is kept as a square root, so that it stays positive whatever the g_t are: with v = R' g,
//
//   (R R')^-1 + g g' = (R (I - s u u') (I - s u u')' R')^-1,   u = v / |v|,  s = 1 - 1 / sqrt(1 +
//   v'v)
//
// Invariant:  A^-1 == R R',  R = root() (I - U' S U),  U = pending(), S = mixing() upper
// triangular. The factors (I - s u u') are collected in U and S, and taken up by the root as one
// product of matrices.
class InverseOuterSum {
 public:
  InverseOuterSum(Index size, double delta) {
    require(std::isfinite(delta) && delta > 0,
            "The damping is " + format_number(delta) + ": give a positive, finite number.");
    root_ = RowMatrix::Identity(size, size) / std::sqrt(delta);
    allocate();
  }

  // What root(), pending() and mixing() were.
  InverseOuterSum(RowMatrix root, const ConstRows& pending, const ConstRows& mixing)
      : root_(std::move(root)) {
    require(root_.rows() == root_.cols() && pending.cols() == size() && pending.rows() < kPending &&
                mixing.rows() == pending.rows() && mixing.cols() == pending.rows(),
            "The inverse of a quasi-Newton model must be square, with fewer than " +
                std::to_string(kPending) + " pending updates of its size.");
    require(root_.allFinite() && pending.allFinite() && mixing.allFinite(),
            "The inverse of a quasi-Newton model must be finite.");
    allocate();
    count_ = pending.rows();
    pending_.topRows(count_) = pending;
    mixing_.topLeftCorner(count_, count_) = mixing;
  }

  Index size() const { return root_.rows(); }
  const RowMatrix& root() const { return root_; }
  auto pending() const { return pending_.topRows(count_); }
  auto mixing() const { return mixing_.topLeftCorner(count_, count_); }

  // A <- A + g g';  product = A^-1 g with the new A.
  void add(const Eigen::Ref<const Vector>& g, Vector& product) {
    image_.noalias() = root_.transpose() * g;
    auto along = along_.head(count_);
    auto mixed = mixed_.head(count_);
    if (count_ > 0) {
      along.noalias() = pending() * image_;
      mixed.noalias() = mixing().transpose() * along;
      image_.noalias() -= pending().transpose() * mixed;
    }
    const double length = image_.norm();
    const double growth = 1 + length * length;
    if (length > 0) image_ /= length;

    rotated_ = image_;
    if (count_ > 0) {
      along.noalias() = pending() * image_;
      mixed.noalias() = mixing() * along;
      rotated_.noalias() -= pending().transpose() * mixed;
    }
    product.noalias() = (length / growth) * (root_ * rotated_);
    collect(1 - 1 / std::sqrt(growth));
  }

 private:
  static constexpr Index kPending = 16;

  void allocate() {
    image_.resize(size());
    rotated_.resize(size());
    along_.resize(kPending);
    mixed_.resize(kPending);
    pending_.resize(kPending, size());
    mixing_ = RowMatrix::Zero(kPending, kPending);
    spread_.resize(size(), kPending);
    taken_.resize(size(), kPending);
  }

  // R <- R (I - share u u'), u = image_, for which mixed_ == S U u.
  void collect(double share) {
    pending_.row(count_) = image_.transpose();
    mixing_.col(count_).head(count_) = -share * mixed_.head(count_);
    mixing_(count_, count_) = share;
    if (++count_ < kPending) return;
    spread_.noalias() = root_ * pending_.transpose();
    taken_.noalias() = spread_ * mixing_;
    root_.noalias() -= taken_ * pending_;
    count_ = 0;
  }

  RowMatrix root_;
  RowMatrix pending_;
  RowMatrix mixing_;
  Index count_ = 0;

  Vector image_;
  Vector rotated_;
  Vector along_;
  Vector mixed_;
  RowMatrix spread_;
  RowMatrix taken_;
};

}  // namespace parsimon
