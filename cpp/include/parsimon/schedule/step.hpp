#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/text.hpp"

namespace parsimon {

// The step size eta_t, t = mini-batches done before this one (0 at the first).
//
//   constant:   eta_t = initial
//   power_law:  eta_t = initial * (1 + t / delay)^-power,  0 < power <= 1
//
// A plain value; name() and parameters() are what a model file keeps, restore() their inverse.
class StepSchedule {
 public:
  static StepSchedule constant(double step) {
    require_positive("learning rate", step);
    return StepSchedule(Kind::constant, step, 1.0, 1.0);
  }

  static StepSchedule power_law(double initial, double power, double delay) {
    require_positive("initial learning rate", initial);
    if (!(power > 0.0 && power <= 1.0)) {
      throw Error("The power of the power-law schedule is " + format_number(power) +
                  ": give a number above 0 and at most 1.");
    }
    require_positive("delay of the power-law schedule", delay);
    return StepSchedule(Kind::power_law, initial, power, delay);
  }

  double at(Index batches_done) const {
    if (kind_ == Kind::constant) return initial_;
    return initial_ * std::pow(1.0 + static_cast<double>(batches_done) / delay_, -power_);
  }

  // The largest step there will ever be; what eta * lambda < 1 is checked with.
  double largest() const { return initial_; }

  bool is_constant() const { return kind_ == Kind::constant; }

  std::string name() const { return is_constant() ? "constant" : "power_law"; }

  std::vector<double> parameters() const {
    if (is_constant()) return {initial_};
    return {initial_, power_, delay_};
  }

  static StepSchedule restore(const std::string& name, const std::vector<double>& parameters) {
    if (name == "constant" && parameters.size() == 1) return constant(parameters[0]);
    if (name == "power_law" && parameters.size() == 3) {
      return power_law(parameters[0], parameters[1], parameters[2]);
    }
    throw Error("There is no step schedule \"" + name + "\" with " +
                std::to_string(parameters.size()) +
                " parameters: use constant (step) or power_law (initial, power, delay).");
  }

 private:
  enum class Kind { constant, power_law };

  StepSchedule(Kind kind, double initial, double power, double delay)
      : kind_(kind), initial_(initial), power_(power), delay_(delay) {}

  static void require_positive(const std::string& what, double value) {
    if (std::isfinite(value) && value > 0.0) return;
    throw Error("The " + what + " is " + format_number(value) +
                ": give a positive, finite number.");
  }

  Kind kind_;
  double initial_;
  double power_;
  double delay_;
};

}  // namespace parsimon
