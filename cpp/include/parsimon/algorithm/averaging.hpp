#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parsimon/algorithm/drift.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The share that iterate number t = 1, 2, ... takes in an average in which it counts like
// t^recency (polynomial-decay averaging): about the last 1 / (recency + 1) of the iterates matter,
// whatever the length of the stream.
inline double average_share(double t, double recency) { return (recency + 1) / (t + recency); }

// How long an average of iterates remembers, whatever the length of the stream.
struct Memory {
  // In samples; infinite: a share of all that there were.
  double half_life = std::numeric_limits<double>::infinity();
  // Whether losses that are larger than those before shorten it until they are not.
  bool adapts = false;

  bool is_bounded() const { return adapts || std::isfinite(half_life); }
  void check() const {
    require(half_life > 0,
            "The half-life is " + format_number(half_life) + " samples: give a positive number.");
  }
};

// The weights of the iterates of a stream in the average that predicts. As long as nothing bounds
// its memory, the latest quarter of them matters.
class Averaging {
 public:
  // After a mini-batch: the share of the iterate that it has led to. losses: of its samples before
  // the step, if they are known. points: of the model.
  double share(const Memory& memory, Index samples, const Eigen::Ref<const Vector>& losses,
               Index points) {
    age_ += 1;
    if (!memory.is_bounded()) return average_share(age_, kRecency);
    const auto count = static_cast<double>(samples);
    if (memory.adapts) {
      for (Index i = 0; i < losses.size(); ++i) drift_.observe(losses(i));
      const double remembered = count * age_ / (kRecency + 1);
      age_ = std::max(1.0, age_ * drift_.memory_to_keep(remembered, count, points));
    }
    return std::max(average_share(age_, kRecency), 1 - std::exp2(-count / memory.half_life));
  }

  const DriftDetector& drift() const { return drift_; }
  DriftDetector& drift() { return drift_; }

  // What a file keeps, and its inverse.
  static constexpr Index kNumbers = 1 + DriftDetector::kNumbers;
  Vector state() const {
    const std::vector<double> drift = drift_.state();
    Vector numbers(kNumbers);
    numbers << age_, Eigen::Map<const Vector>(drift.data(), DriftDetector::kNumbers);
    return numbers;
  }
  void restore(const Vector& state) {
    require(state.size() == kNumbers && state(0) >= 0 && state(0) < 0x1p53,
            "The age of the average in the model file makes no sense.");
    age_ = state(0);
    drift_.restore({state.data() + 1, state.data() + kNumbers});
  }
  // Nothing has ever shortened its memory.
  void restore(Index iterates) { age_ = static_cast<double>(iterates); }

 private:
  static constexpr double kRecency = 3;

  double age_ = 0;  // iterates in the average, as if it had begun so long ago
  DriftDetector drift_;
};

}  // namespace parsimon
