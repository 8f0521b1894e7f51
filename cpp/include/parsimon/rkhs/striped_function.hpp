#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/kernel/strip.hpp"

namespace parsimon {

// A function f(x) = sum_m w_m k(d_m, x) that is evaluated at one sample at a time, without Eigen
// and without allocating: what a program needs that only predicts. Immutable.
class StripedFunction {
 public:
  // points and weights: row by row, one row per point; features and outputs are their columns.
  StripedFunction(KernelExpression kernel, const std::vector<double>& points, Index features,
                  const std::vector<double>& weights, Index outputs)
      : kernel_(std::move(kernel)),
        features_(features),
        outputs_(outputs),
        size_(static_cast<Index>(points.size()) / features),
        padded_((size_ + kLanes - 1) / kLanes * kLanes) {
    points_.resize(static_cast<std::size_t>(padded_ * features));
    weights_.resize(static_cast<std::size_t>(padded_ * outputs), 0.0);
    for (Index i = 0; i < padded_; ++i) {
      const Index first = i - i % Strip::largest_width, width = width_from(first);
      // Padded with copies of the last point: the kernel is finite there if it is elsewhere.
      const double* point = points.data() + std::min(i, size_ - 1) * features;
      double* to = points_.data() + first * features + (i - first);
      for (Index f = 0; f < features; ++f) to[f * width] = point[f];
      if (i >= size_) continue;
      to = weights_.data() + first * outputs + (i - first);
      for (Index c = 0; c < outputs; ++c) to[c * width] = weights.data()[i * outputs + c];
    }
  }

  Index features() const { return features_; }
  Index outputs() const { return outputs_; }
  Index size() const { return size_; }

  // out[c] = f_c(x)
  void evaluate(const double* x, double* out) const {
    std::fill_n(out, outputs_, 0.0);
    double values[Strip::largest_width];
    for (Index first = 0; first < padded_; first += Strip::largest_width) {
      const Index width = width_from(first);
      parsimon::evaluate(kernel_, {points_.data() + first * features_, width, features_}, x,
                         values);
      const double* weights = weights_.data() + first * outputs_;
      for (Index c = 0; c < outputs_; ++c) out[c] += dot(weights + c * width, values, width);
    }
  }

 private:
  // The width of every strip is a multiple of this.
  static constexpr Index kLanes = 8;

  Index width_from(Index first) const { return std::min(Strip::largest_width, padded_ - first); }

  // Several sums side by side, for vector instructions.
  static double dot(const double* a, const double* b, Index width) {
    double sums[kLanes] = {};
    for (Index j = 0; j < width; j += kLanes) {
      for (Index l = 0; l < kLanes; ++l) sums[l] += a[j + l] * b[j + l];
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }

  KernelExpression kernel_;
  Index features_;
  Index outputs_;
  Index size_;
  Index padded_;
  // Strip after strip: one row per feature, or per output.
  std::vector<double> points_;
  std::vector<double> weights_;
};

}  // namespace parsimon
