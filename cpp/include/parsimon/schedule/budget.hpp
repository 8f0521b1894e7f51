#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "parsimon/schedule/step.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// How a budget follows the model order M. After each mini-batch
//
//   alpha <- alpha [1 + clip(gain (M - target) + damping (M - previous M), -max_change,
//   max_change)]
//
// within [lowest, highest]. alpha is not lowered while M is still on its way up from 0: before M
// has come within a tenth of the target or has set no new maximum for `patience` mini-batches.
struct ModelOrderControl {
  double target;
  double gain;
  double damping;
  double max_change;
  double patience;
  double lowest;
  double highest;

  // As SPPPOT prints it, with the bounds that it leaves open.
  static ModelOrderControl printed(double target, double alpha) {
    return {target, 0.001, 0.0, 0.1, 0.0, 1e-6 * alpha, 1e6 * alpha};
  }

  // For targets of any size. M follows alpha with a lag, and steeply (as alpha^-4.5 on MNIST):
  // the damping keeps it from swinging.
  static ModelOrderControl relative(double target, double alpha) {
    return {target, 0.1 / target, 0.5 / target, 0.1, 20.0, 1e-6 * alpha, 1e6 * alpha};
  }
};

// The compression budget eps of a step of size eta.
//
//   parsimony:     eps = K eta^{3/2}
//   step_squared:  eps = c eta^2
//   proportional:  eps = alpha eta
//   fixed:         eps
//   adaptive:      eps = alpha eta, alpha driven by ModelOrderControl
//
// A plain value; name() and parameters() are what a model file keeps (for `adaptive` they include
// its state), restore() their inverse.
class BudgetSchedule {
 public:
  static BudgetSchedule parsimony(double constant) { return simple(Kind::parsimony, constant); }
  static BudgetSchedule step_squared(double factor = 1.0) {
    return simple(Kind::step_squared, factor);
  }
  static BudgetSchedule proportional(double alpha) { return simple(Kind::proportional, alpha); }
  static BudgetSchedule fixed(double budget) { return simple(Kind::fixed, budget); }

  static BudgetSchedule adaptive(double alpha, const ModelOrderControl& control) {
    check(alpha, control);
    return BudgetSchedule(Kind::adaptive, alpha, control);
  }

  // The rule for a user's AdaptiveBudget.
  static BudgetSchedule hold_model_order(double target, double alpha) {
    return adaptive(alpha, ModelOrderControl::relative(target, alpha));
  }

  static BudgetSchedule hold_model_order_as_printed(double target, double alpha) {
    return adaptive(alpha, ModelOrderControl::printed(target, alpha));
  }

  double at(double eta) const {
    switch (kind_) {
      case Kind::parsimony:
        return value_ * eta * std::sqrt(eta);
      case Kind::step_squared:
        return value_ * eta * eta;
      case Kind::fixed:
        return value_;
      default:
        return value_ * eta;
    }
  }

  // To be told the model order after each mini-batch.
  void observe(Index model_order) {
    if (kind_ != Kind::adaptive) return;
    const double order = static_cast<double>(model_order);
    const bool may_lower = has_settled(order);
    double change = control_.gain * (order - control_.target);
    if (may_lower) change += control_.damping * (order - previous_);
    change = std::clamp(change, may_lower ? -control_.max_change : 0.0, control_.max_change);
    value_ = std::clamp(value_ * (1.0 + change), control_.lowest, control_.highest);
    previous_ = order;
  }

  bool is_adaptive() const { return kind_ == Kind::adaptive; }

  // The target cannot be held: even the smallest budget leaves too few points, or even the largest
  // too many.
  bool at_floor() const {
    return is_adaptive() && value_ <= control_.lowest && previous_ < control_.target;
  }
  bool at_ceiling() const {
    return is_adaptive() && value_ >= control_.highest && previous_ > control_.target;
  }

  double target() const { return control_.target; }

  // K, c, alpha or eps, as the kind has it.
  double value() const { return value_; }

  std::string name() const { return names()[static_cast<std::size_t>(kind_)]; }

  std::vector<double> parameters() const {
    if (!is_adaptive()) return {value_};
    const ModelOrderControl& c = control_;
    return {value_,   c.target,  c.gain,    c.damping, c.max_change,          c.patience,
            c.lowest, c.highest, previous_, maximum_,  batches_without_rise_, settled_ ? 1.0 : 0.0};
  }

  static BudgetSchedule restore(const std::string& name, const std::vector<double>& p) {
    for (const Kind kind : {Kind::parsimony, Kind::step_squared, Kind::proportional, Kind::fixed}) {
      if (name == names()[static_cast<std::size_t>(kind)] && p.size() == 1) {
        return simple(kind, p[0]);
      }
    }
    if (name != "adaptive" || p.size() != 12) {
      throw Error("There is no budget schedule \"" + name + "\" with " + std::to_string(p.size()) +
                  " parameters: use parsimony, step_squared, proportional or fixed with one, or "
                  "adaptive with twelve.");
    }
    BudgetSchedule schedule = adaptive(p[0], {p[1], p[2], p[3], p[4], p[5], p[6], p[7]});
    for (std::size_t i = 8; i < 11; ++i) require_not_negative("state of the adaptive budget", p[i]);
    schedule.previous_ = p[8];
    schedule.maximum_ = p[9];
    schedule.batches_without_rise_ = p[10];
    schedule.settled_ = p[11] != 0.0;
    return schedule;
  }

 private:
  enum class Kind { parsimony, step_squared, proportional, fixed, adaptive };

  BudgetSchedule(Kind kind, double value, const ModelOrderControl& control)
      : kind_(kind), value_(value), control_(control) {}

  static BudgetSchedule simple(Kind kind, double value) {
    require_not_negative(kind == Kind::fixed       ? "budget"
                         : kind == Kind::parsimony ? "parsimony constant"
                                                   : "factor of the budget schedule",
                         value);
    return BudgetSchedule(kind, value, ModelOrderControl{});
  }

  static const char* const* names() {
    static const char* const all[] = {"parsimony", "step_squared", "proportional", "fixed",
                                      "adaptive"};
    return all;
  }

  bool has_settled(double order) {
    batches_without_rise_ = order > maximum_ ? 0.0 : batches_without_rise_ + 1.0;
    maximum_ = std::max(maximum_, order);
    settled_ =
        settled_ || order >= 0.9 * control_.target || batches_without_rise_ >= control_.patience;
    return settled_;
  }

  static void require_not_negative(const std::string& what, double value) {
    if (std::isfinite(value) && value >= 0.0) return;
    throw Error("The " + what + " is " + format_number(value) +
                ": give a finite number that is not negative.");
  }

  static void check(double alpha, const ModelOrderControl& control) {
    if (!(std::isfinite(control.target) && control.target >= 1.0)) {
      throw Error("The target model order is " + format_number(control.target) +
                  ": give a number of points, at least 1.");
    }
    require_not_negative("gain of the adaptive budget", control.gain);
    require_not_negative("damping of the adaptive budget", control.damping);
    require_not_negative("patience of the adaptive budget", control.patience);
    if (!(control.max_change > 0.0 && control.max_change < 1.0)) {
      throw Error("The largest change of the adaptive budget is " +
                  format_number(control.max_change) +
                  ": give a number between 0 and 1, both excluded.");
    }
    if (!(control.lowest > 0.0 && control.lowest <= alpha && alpha <= control.highest &&
          std::isfinite(control.highest))) {
      throw Error("The factor of the adaptive budget is " + format_number(alpha) + " with bounds " +
                  format_number(control.lowest) + " and " + format_number(control.highest) +
                  ": give positive, finite numbers, the factor between its bounds.");
    }
  }

  Kind kind_;
  double value_;
  ModelOrderControl control_;
  double previous_ = 0.0;
  double maximum_ = 0.0;
  double batches_without_rise_ = 0.0;
  bool settled_ = false;
};

}  // namespace parsimon
