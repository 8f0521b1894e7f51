#pragma once

#include <algorithm>
#include <utility>

#include "parsimon/rkhs/span.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// How well a function is known whose weights minimise 1/2 sum_i c_i (f(x_i) - y_i)^2 +
// ridge / 2 ||f||^2. With noise of variance s^2 / c_i, f is the mean of a Gaussian process with the
// covariance s^2 / ridge k that all samples have been seen through the span of its points, and
//
//   variance of f(x) = s^2 (phi' (H + ridge I)^-1 phi + |outside|^2 / ridge),   H = sum_i c_i phi_i
//   phi_i'
//
// with the coordinates phi and what lies outside as in span.hpp: what the samples say about the
// span, and the prior about the rest. If every sample is a point, this is the process itself; if
// not, samples count as if they lay in the span (the deterministic training conditional).
// Immutable.
class Posterior {
 public:
  // lower: L with L L' = H + ridge I in the coordinates of the span.
  Posterior(Span span, const ConstRows& lower, double ridge)
      : span_(std::move(span)), ridge_(std::max(ridge, kSmallestRidge * lower.squaredNorm())) {
    root_.assign_inverse_of(lower);
  }

  // variances(i): of f(x_i), in units of the variance of the noise.
  template <typename Points>
  void variance(const Points& points, Eigen::Ref<Vector> variances) const {
    RowBuffer whitened;
    span_.for_each_block(points, [&](Index start, const ConstRows& phi, const Vector& outside) {
      auto known = variances.segment(start, outside.size());
      known = outside / ridge_;
      auto rows = whitened.resize(phi.rows(), phi.cols());
      if (phi.rows() > 0) root_.whiten(phi, rows);
      for (Index i = 0; i < rows.rows(); ++i) {
        for (Index k = 0; k < rows.cols(); ++k) known(k) += rows(i, k) * rows(i, k);
      }
    });
  }

 private:
  // Relative to the sum of the squared coordinates: less is no ridge that a solution can have had.
  static constexpr double kSmallestRidge = 1e-13;

  Span span_;
  GramFactor root_;  // of (H + ridge I)^-1
  double ridge_;
};

}  // namespace parsimon
