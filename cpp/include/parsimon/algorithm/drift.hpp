#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "parsimon/types.hpp"

namespace parsimon {

// Watches the losses of a stream: whether those of late are what the ones before let expect.
//
// Two averages, of about the last kShort and the last kLong losses. A change is found when the
// first is above the second by more than chance lets it be. From then on the second stands still,
// as what is to be expected, until the first has come down to it, or until so little has been
// remembered for so long that it is the stream that has become harder.
//
// One that listens finds nothing itself: somebody else raises the alarm, and it says how much is
// forgotten then, and when it is over.
class DriftDetector {
 public:
  bool is_drifting() const { return drifting_; }
  // Changes found so far.
  Index changes() const { return changes_; }

  void listen() { listens_ = true; }
  void raise_alarm() {
    drifting_ = true;
    alarmed_ = 0;
    changes_ += 1;
  }

  void observe(double loss) {
    if (!(loss < kLargestWeight)) loss = kLargestWeight;  // NaN, too
    count_ += 1;
    const double slow = std::max(1 / count_, 1 / kLong);
    if (!drifting_) {
      // One loss at most doubles the variance once there is one. Losses that are cut off further
      // would make it ever smaller where most are 0.
      const double largest = std::sqrt(variance_ / slow), difference = loss - expected_;
      const double seen = variance_ > 0 ? std::min(difference, largest) : difference;
      variance_ += slow * ((1 - slow) * seen * seen - variance_);
    }
    // One outlier is no change.
    if (count_ > kShort) loss = std::min(loss, expected_ + kOutlier * std::sqrt(variance_));
    recent_ += std::max(1 / count_, 1 / kShort) * (loss - recent_);
    if (!drifting_) {
      expected_ += slow * (loss - expected_);
      const bool finds = !listens_ && count_ > kWarmUp;
      if (finds && excess() > kAlarm && recent_ > kWorse * expected_) raise_alarm();
    } else if (excess() < kCalm && (!listens_ || alarmed_ >= kShort)) {
      // An alarm that was raised elsewhere is believed until the latest losses are those since.
      drifting_ = false;
    } else {
      alarmed_ += 1;
    }
  }

  // What share of the past is to be kept after `fresh` more samples, when `remembered` count and
  // the model has so many points.
  double memory_to_keep(double remembered, double fresh, Index points) {
    if (!drifting_) return 1;
    const double least = std::max(2 * kShort, 2 * static_cast<double>(points));
    if (alarmed_ > kPatience * least) {
      // Nothing older is left to forget: this is what is to be expected now.
      drifting_ = false;
      expected_ = recent_;
      count_ = kShort;
      return 1;
    }
    return std::max(std::exp2(-fresh / kForget), std::min(1.0, least / remembered));
  }

  // What a file keeps, and its inverse.
  static constexpr Index kNumbers = 7;
  std::vector<double> state() const {
    return {count_,
            recent_,
            expected_,
            variance_,
            (drifting_ ? 1.0 : 0.0) + (listens_ ? 2.0 : 0.0),
            static_cast<double>(changes_),
            alarmed_};
  }
  void restore(const std::vector<double>& state) {
    require(state.size() == kNumbers, "A drift detector has 7 numbers.");
    for (const double number : state) {
      require(number >= 0 && number < 1e300,
              "A drift detector's numbers are finite, none below 0.");
    }
    count_ = state[0];
    recent_ = state[1];
    expected_ = state[2];
    variance_ = state[3];
    listens_ = state[4] >= 2;
    drifting_ = state[4] != 0 && state[4] != 2;
    changes_ = static_cast<Index>(std::min(state[5], 0x1p53));
    alarmed_ = state[6];
  }

 private:
  static constexpr double kShort = 100;
  static constexpr double kLong = 10000;
  static constexpr double kWarmUp = 300;
  // In standard deviations of one loss; of the average of the latest.
  static constexpr double kOutlier = 4;
  static constexpr double kAlarm = 6;
  static constexpr double kCalm = 2;
  // A change that matters.
  static constexpr double kWorse = 1.3;
  // Half of the past goes with so many samples.
  static constexpr double kForget = 50;
  // An alarm lasts for so many times the shortest memory.
  static constexpr double kPatience = 4;

  // Standard deviations by which the latest losses are above what was to be expected.
  double excess() const {
    const double deviation = std::sqrt(variance_ / (2 * kShort - 1));
    return deviation > 0 ? (recent_ - expected_) / deviation : 0;
  }

  double count_ = 0;
  double recent_ = 0;
  double expected_ = 0;
  double variance_ = 0;
  bool listens_ = false;
  bool drifting_ = false;
  Index changes_ = 0;
  double alarmed_ = 0;  // losses since the latest change was found, as long as it lasts
};

}  // namespace parsimon
