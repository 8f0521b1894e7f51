#pragma once

#include <cmath>
#include <utility>

#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The inverse of A = delta I + sum_t g_t g_t', as the g_t come.
//
// Invariant:  A^-1 == base() - V' V,  V = pending().
// Sherman and Morrison's rank-one corrections are collected in V and taken up by the base as one
// product of matrices. A only grows, so that A^-1 never does: there is no pivot to lose.
class InverseOuterSum {
 public:
  InverseOuterSum(Index size, double delta) {
    require(std::isfinite(delta) && delta > 0,
            "The damping is " + format_number(delta) + ": give a positive, finite number.");
    base_ = RowMatrix::Identity(size, size) / delta;
    pending_.resize(kPending, size);
    projected_.resize(kPending);
  }

  // What base() and pending() were.
  InverseOuterSum(RowMatrix base, const ConstRows& pending) : base_(std::move(base)) {
    require(base_.rows() == base_.cols() && pending.cols() == base_.cols() &&
                pending.rows() < kPending && base_.allFinite() && pending.allFinite() &&
                (base_.diagonal().array() > 0).all(),
            "The inverse of a quasi-Newton model must be square, finite and positive.");
    pending_.resize(kPending, size());
    projected_.resize(kPending);
    count_ = pending.rows();
    pending_.topRows(count_) = pending;
  }

  Index size() const { return base_.rows(); }
  const RowMatrix& base() const { return base_; }
  auto pending() const { return pending_.topRows(count_); }

  // A <- A + g g';  product = A^-1 g with the new A.
  void add(const Eigen::Ref<const Vector>& g, Vector& product) {
    product.noalias() = base_ * g;
    if (count_ > 0) {
      auto projected = projected_.head(count_);
      projected.noalias() = pending() * g;
      product.noalias() -= pending().transpose() * projected;
    }
    // g' A^-1 g is positive; rounding must not make it less.
    const double growth = 1 + std::max(0.0, g.dot(product));
    pending_.row(count_++) = product.transpose() / std::sqrt(growth);
    product /= growth;
    if (count_ == kPending) take_up();
  }

 private:
  static constexpr Index kPending = 16;

  void take_up() {
    base_.noalias() -= pending().transpose() * pending();
    count_ = 0;
  }

  RowMatrix base_;
  RowMatrix pending_;
  Vector projected_;
  Index count_ = 0;
};

}  // namespace parsimon
