#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "parsimon/loss/loss.hpp"
#include "parsimon/text.hpp"

namespace parsimon {

// A loss of one number, applied to every output; the loss of a sample is the sum over its outputs.
//
// Derived::judge(prediction, target, slope) returns the value and sets slope to its derivative by
// the prediction. At a kink the slope is a subgradient, 0 where 0 is one, so that a sample that is
// predicted well enough adds nothing to the model.
//
// Derived::bound(prediction, target, slope, curvature) is the same of the smooth loss that takes
// its place where curvature is used, with that of a parabola that touches it at the prediction and
// lies above it elsewhere. A loss that has none has no second-order solver.
template <class Derived>
class ElementwiseLoss : public Loss {
 public:
  Index target_columns(Index outputs) const final { return outputs; }

  void check_targets(const ConstRows& targets, Index outputs) const final {
    if (targets.cols() != outputs) {
      throw Error("The targets have " + std::to_string(targets.cols()) +
                  " columns, but the model has " + std::to_string(outputs) +
                  " outputs: give one target column for each output.");
    }
    for (Index i = 0; i < targets.rows(); ++i) {
      if (targets.row(i).allFinite()) continue;
      throw Error("The target of sample " + std::to_string(i) +
                  " is NaN or infinite: remove the sample or give it a finite target.");
    }
  }

  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const final {
    const Derived& loss = static_cast<const Derived&>(*this);
    for (Index i = 0; i < predictions.rows(); ++i) {
      double total = 0.0;
      for (Index c = 0; c < predictions.cols(); ++c) {
        double slope = 0.0;
        total += loss.judge(predictions(i, c), targets(i, c), slope);
        gradient(i, c) = slope;
      }
      values(i) = total;
    }
  }

  void majorise(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient, Eigen::Ref<Vector> curvature) const final {
    if constexpr (HasBound<Derived>::value) {
      const Derived& loss = static_cast<const Derived&>(*this);
      for (Index i = 0; i < predictions.rows(); ++i) {
        values(i) = curvature(i) = 0;
        for (Index c = 0; c < predictions.cols(); ++c) {
          double slope = 0, bend = 0;
          values(i) += loss.bound(predictions(i, c), targets(i, c), slope, bend);
          gradient(i, c) = slope;
          curvature(i) = std::max(curvature(i), bend);
        }
      }
    } else {
      Loss::majorise(predictions, targets, values, gradient, curvature);
    }
  }
  bool has_curvature() const final { return HasBound<Derived>::value; }

  bool is_classification() const final { return false; }

 private:
  template <class Any, class = void>
  struct HasBound : std::false_type {};
  template <class Any>
  struct HasBound<Any, std::void_t<decltype(&Any::bound)>> : std::true_type {};

 protected:
  // Kinks are rounded off over this width, for targets of about unit spread.
  static constexpr double kSmoothing = 0.05;

  // |r| with a parabola around 0, and the curvature of parabolas that touch it.
  static double smooth_absolute(double r, double& slope, double& curvature) {
    const double size = std::abs(r);
    curvature = 1 / std::max(size, kSmoothing);
    slope = curvature * r;
    return size < kSmoothing ? 0.5 * slope * r : size - 0.5 * kSmoothing;
  }
};

// scale (f - y)^2 / 2. The COLK paper has no 1/2: its loss is that of scale 2.
class SquaredLoss final : public ElementwiseLoss<SquaredLoss> {
 public:
  explicit SquaredLoss(double scale = 1) : scale_(scale) {
    if (std::isfinite(scale) && scale > 0) return;
    throw Error("The scale of the squared loss is " + format_number(scale) +
                ": give a positive, finite number.");
  }

  double judge(double prediction, double target, double& slope) const {
    const double difference = prediction - target;
    slope = scale_ * difference;
    return 0.5 * slope * difference;
  }

  double bound(double prediction, double target, double& slope, double& curvature) const {
    curvature = scale_;
    return judge(prediction, target, slope);
  }

  bool is_squared() const override { return scale_ == 1; }

  std::string describe() const override {
    return is_squared() ? "squared" : "squared(" + format_number(scale_) + ")";
  }

 private:
  double scale_;
};

// With r = f - y: r^2 / 2 for |r| <= threshold, threshold (|r| - threshold / 2) beyond.
class HuberLoss final : public ElementwiseLoss<HuberLoss> {
 public:
  explicit HuberLoss(double threshold) : threshold_(threshold) {
    if (!(std::isfinite(threshold) && threshold > 0.0)) {
      throw Error("The threshold of the Huber loss is " + format_number(threshold) +
                  ": give a positive, finite number.");
    }
  }

  double judge(double prediction, double target, double& slope) const {
    const double residual = prediction - target;
    const double size = std::abs(residual);
    if (size <= threshold_) {
      slope = residual;
      return 0.5 * residual * residual;
    }
    slope = std::copysign(threshold_, residual);
    return threshold_ * (size - 0.5 * threshold_);
  }

  double bound(double prediction, double target, double& slope, double& curvature) const {
    const double size = std::abs(prediction - target);
    curvature = size <= threshold_ ? 1 : threshold_ / size;
    return judge(prediction, target, slope);
  }

  double threshold() const { return threshold_; }
  std::string describe() const override { return "huber(" + format_number(threshold_) + ")"; }

 private:
  double threshold_;
};

// max(0, |f - y| - tolerance)
class EpsilonInsensitiveLoss final : public ElementwiseLoss<EpsilonInsensitiveLoss> {
 public:
  explicit EpsilonInsensitiveLoss(double tolerance) : tolerance_(tolerance) {
    if (!(std::isfinite(tolerance) && tolerance >= 0.0)) {
      throw Error("The tolerance of the epsilon-insensitive loss is " + format_number(tolerance) +
                  ": give a finite number that is not negative.");
    }
  }

  double judge(double prediction, double target, double& slope) const {
    const double residual = prediction - target;
    const double excess = std::abs(residual) - tolerance_;
    slope = excess > 0.0 ? std::copysign(1.0, residual) : 0.0;
    return excess > 0.0 ? excess : 0.0;
  }

  double bound(double prediction, double target, double& slope, double& curvature) const {
    const double residual = prediction - target, excess = std::abs(residual) - tolerance_;
    if (excess <= 0) return 0;
    const double value = smooth_absolute(excess, slope, curvature);
    slope = std::copysign(slope, residual);
    return value;
  }

  double tolerance() const { return tolerance_; }
  std::string describe() const override {
    return "epsilon_insensitive(" + format_number(tolerance_) + ")";
  }

 private:
  double tolerance_;
};

// With r = y - f: quantile * r for r >= 0, (quantile - 1) * r below. Its minimiser is that
// quantile.
class PinballLoss final : public ElementwiseLoss<PinballLoss> {
 public:
  explicit PinballLoss(double quantile) : quantile_(quantile) {
    if (!(quantile > 0.0 && quantile < 1.0)) {
      throw Error("The quantile of the pinball loss is " + format_number(quantile) +
                  ": give a number between 0 and 1, both excluded.");
    }
  }

  double judge(double prediction, double target, double& slope) const {
    const double residual = target - prediction;
    slope = residual > 0.0 ? -quantile_ : residual < 0.0 ? 1.0 - quantile_ : 0.0;
    return -slope * residual;
  }

  double bound(double prediction, double target, double& slope, double& curvature) const {
    const double residual = prediction - target, tilt = 0.5 - quantile_;
    const double value = 0.5 * smooth_absolute(residual, slope, curvature) + tilt * residual;
    slope = 0.5 * slope + tilt;
    curvature *= 0.5;
    return value;
  }

  double quantile() const { return quantile_; }
  std::string describe() const override { return "pinball(" + format_number(quantile_) + ")"; }

 private:
  double quantile_;
};

}  // namespace parsimon
