#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "parsimon/algorithm/averaging.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The variance s^2 of the noise of targets, for each output, from how far they were from what was
// predicted before they were learned from. With the prior of posterior.hpp, where the span holds
// what can be known, the squared difference at a sample of weight c is on average
//
//   s^2 / c + s^2 / ridge |outside|^2
//
// The differences are a mean over the latest quarter of the samples, of so many at most as a window
// has; what lies outside is one over every kApart-th of them.
class Noise {
 public:
  static constexpr Index kApart = 32;

  // half_life: of what the model remembers, in samples.
  explicit Noise(double half_life) : window_(std::min(kWindow, half_life / std::log(2.0))) {}

  // sample_weights: empty, or one for each sample.
  void observe(const ConstRows& predictions, const ConstRows& targets,
               const Eigen::Ref<const Vector>& sample_weights) {
    if (differences_.size() == 0) differences_ = Vector::Zero(targets.cols());
    for (Index i = 0; i < targets.rows(); ++i) {
      const double weight = sample_weights.size() == 0 ? 1 : sample_weights(i);
      if (weight == 0) continue;
      samples_ += 1;
      const double share = recent_share(samples_, window_);
      for (Index c = 0; c < differences_.size(); ++c) {
        const double difference = targets(i, c) - predictions(i, c);
        differences_(c) += share * (weight * difference * difference - differences_(c));
      }
    }
  }

  // Of one sample: its weight times the squared norm of what lies outside the span.
  void observe_outside(double squared) {
    measured_ += 1;
    outside_ += recent_share(measured_, window_ / kApart) * (squared - outside_);
  }

  // Both means have been found by other means, from so many samples.
  void assume(const Vector& differences, double outside, double samples) {
    differences_ = differences;
    outside_ = outside;
    samples_ = samples;
    measured_ = samples / kApart;
  }

  // Empty as long as nothing is known.
  Vector variance(double ridge) const {
    const double least = std::numeric_limits<double>::min();
    return differences_ / (1 + outside_ / std::max(ridge, least));
  }

  // What a file keeps, and its inverse.
  Vector state() const {
    Vector numbers(3 + differences_.size());
    numbers << samples_, measured_, outside_, differences_;
    return numbers;
  }
  void restore(const Vector& state, Index outputs) {
    require((state.size() == 3 || state.size() == 3 + outputs) && state.allFinite() &&
                state.minCoeff() >= 0,
            "The noise in the model file makes no sense.");
    samples_ = state(0);
    measured_ = state(1);
    outside_ = state(2);
    differences_ = state.tail(state.size() - 3);
  }

 private:
  static constexpr double kRecency = 3;
  static constexpr double kWindow = 10000;

  static double recent_share(double count, double window) {
    return std::min(1.0, std::max(average_share(count, kRecency), 1 / window));
  }

  double window_;
  double samples_ = 0;
  double measured_ = 0;
  double outside_ = 0;
  Vector differences_;
};

}  // namespace parsimon
