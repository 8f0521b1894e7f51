#include <algorithm>
#include <cmath>
#include <limits>
#include <parsimon/schedule/budget.hpp>
#include <parsimon/schedule/step.hpp>
#include <random>
#include <type_traits>
#include <vector>

#include "check.hpp"

using namespace parsimon;

static_assert(std::is_trivially_copyable_v<StepSchedule>);
static_assert(std::is_trivially_copyable_v<BudgetSchedule>);

namespace {

const double nan_value = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

// A learner whose model order would settle at target * alpha^-steepness: it gets there with a lag,
// adds a bounded number of points per mini-batch, and is noisy.
struct ToyLearner {
  double target;
  double steepness;
  double lag;
  double order = 0.0;
  std::mt19937 random{7};

  Index step(double alpha) {
    const double settled = target * std::pow(alpha, -steepness);
    order += std::min((settled - order) / lag, std::max(1.0, target / 10.0));
    std::normal_distribution<double> noise(1.0, 0.01);
    return static_cast<Index>(std::lround(std::max(0.0, order * noise(random))));
  }
};

struct Course {
  double peak = 0.0;   // the largest order, in targets
  double worst = 0.0;  // the largest relative error after 300 mini-batches
};

Course follow(BudgetSchedule budget, ToyLearner learner) {
  Course course;
  for (int batch = 0; batch < 1000; ++batch) {
    const Index order = learner.step(budget.at(1.0));
    budget.observe(order);
    const double ratio = static_cast<double>(order) / learner.target;
    course.peak = std::max(course.peak, ratio);
    if (batch >= 300) course.worst = std::max(course.worst, std::abs(ratio - 1.0));
  }
  return course;
}

}  // namespace

TEST(steps_follow_their_formulas) {
  CHECK(StepSchedule::constant(0.3).at(0) == 0.3);
  CHECK(StepSchedule::constant(0.3).at(1000000) == 0.3);
  const StepSchedule power = StepSchedule::power_law(2.0, 0.75, 50.0);
  CHECK(power.at(0) == 2.0);
  CHECK_NEAR(power.at(150), 2.0 * std::pow(4.0, -0.75), 1e-15);
  CHECK(power.largest() == 2.0);
  for (Index t = 0; t < 1000; ++t) CHECK(power.at(t + 1) < power.at(t) && power.at(t) > 0.0);
}

TEST(steps_are_saved_and_restored) {
  for (const StepSchedule& schedule :
       {StepSchedule::constant(0.1), StepSchedule::power_law(6.0, 1.0, 1.0 / 3.0)}) {
    const StepSchedule again = StepSchedule::restore(schedule.name(), schedule.parameters());
    CHECK(again.name() == schedule.name() && again.parameters() == schedule.parameters());
    CHECK(again.at(12345) == schedule.at(12345));
  }
  CHECK_THROWS(StepSchedule::restore("constant", {}), Error);
  CHECK_THROWS(StepSchedule::restore("power_law", {1.0}), Error);
  CHECK_THROWS(StepSchedule::restore("power_law", {1.0, 2.0, 1.0}), Error);
  CHECK_THROWS(StepSchedule::restore("cosine", {1.0}), Error);
}

TEST(bad_steps_are_refused) {
  for (const double bad : {0.0, -1.0, nan_value, infinity}) {
    CHECK_THROWS(StepSchedule::constant(bad), Error);
    CHECK_THROWS(StepSchedule::power_law(bad, 0.5, 1.0), Error);
    CHECK_THROWS(StepSchedule::power_law(1.0, bad, 1.0), Error);
    CHECK_THROWS(StepSchedule::power_law(1.0, 0.5, bad), Error);
  }
  CHECK_THROWS(StepSchedule::power_law(1.0, 1.01, 1.0), Error);
}

TEST(budgets_follow_their_formulas) {
  CHECK_NEAR(BudgetSchedule::parsimony(0.04).at(6.0), 0.04 * std::pow(6.0, 1.5), 1e-15);
  CHECK_NEAR(BudgetSchedule::step_squared().at(0.3), 0.09, 1e-16);
  CHECK_NEAR(BudgetSchedule::step_squared(5.0).at(0.3), 0.45, 1e-16);
  CHECK_NEAR(BudgetSchedule::proportional(0.2).at(0.3), 0.06, 1e-16);
  CHECK(BudgetSchedule::fixed(0.7).at(123.0) == 0.7);
  CHECK(BudgetSchedule::fixed(0.0).at(1.0) == 0.0);
  BudgetSchedule fixed = BudgetSchedule::parsimony(0.1);
  fixed.observe(1000000);
  CHECK(fixed.value() == 0.1 && !fixed.at_floor() && !fixed.at_ceiling() && !fixed.is_adaptive());
}

TEST(the_printed_rule_is_the_papers) {
  BudgetSchedule budget = BudgetSchedule::adaptive(2.0, ModelOrderControl::printed(100, 2.0));
  CHECK(budget.at(0.5) == 1.0);
  budget.observe(120);
  CHECK_NEAR(budget.value(), 2.0 * 1.02, 1e-15);
  budget.observe(70);
  CHECK_NEAR(budget.value(), 2.0 * 1.02 * 0.97, 1e-15);
  budget.observe(100000);
  CHECK_NEAR(budget.value(), 2.0 * 1.02 * 0.97 * 1.1, 1e-15);
  budget.observe(0);
  CHECK_NEAR(budget.value(), 2.0 * 1.02 * 0.97 * 1.1 * 0.9, 1e-15);
}

TEST(the_relative_rule_holds_targets_of_any_size) {
  for (const double target : {30.0, 300.0, 3000.0}) {
    for (const double steepness : {0.5, 1.0, 2.0}) {
      for (const double lag : {3.0, 10.0, 30.0}) {
        for (const double alpha : {0.1, 1.0, 10.0}) {
          const Course course = follow(BudgetSchedule::hold_model_order(target, alpha),
                                       ToyLearner{target, steepness, lag});
          CHECK(course.worst <= 0.1);
          CHECK(course.peak <= (alpha >= 1.0 ? 1.25 : 3.2));
        }
      }
    }
  }
}

TEST(the_budget_is_not_lowered_while_the_model_is_still_growing) {
  BudgetSchedule budget = BudgetSchedule::hold_model_order(1000, 1.0);
  for (Index order = 0; order < 900; order += 10) budget.observe(order);
  CHECK(budget.value() == 1.0);
  for (int i = 0; i < 10; ++i) budget.observe(890);
  CHECK(budget.value() == 1.0);
  for (int i = 0; i < 20; ++i) budget.observe(890);
  CHECK(budget.value() < 1.0);
}

TEST(targets_that_cannot_be_held_show_at_the_bounds) {
  BudgetSchedule budget = BudgetSchedule::hold_model_order(100, 1.0);
  for (int i = 0; i < 1000; ++i) budget.observe(5);
  CHECK(budget.at_floor() && !budget.at_ceiling());
  CHECK_NEAR(budget.value(), 1e-6, 1e-20);
  for (int i = 0; i < 1000; ++i) budget.observe(5000);
  CHECK(budget.at_ceiling() && !budget.at_floor());
  CHECK_NEAR(budget.value(), 1e6, 1e-6);
  budget.observe(90);
  CHECK(!budget.at_ceiling());
}

TEST(budgets_are_saved_with_their_state) {
  std::vector<BudgetSchedule> all = {
      BudgetSchedule::parsimony(0.04),
      BudgetSchedule::step_squared(2.0),
      BudgetSchedule::proportional(0.1),
      BudgetSchedule::fixed(0.0),
      BudgetSchedule::adaptive(0.3, ModelOrderControl::printed(50, 0.3)),
      BudgetSchedule::hold_model_order(50, 0.3)};
  for (BudgetSchedule& schedule : all) {
    for (Index order = 0; order < 40; order += 3) schedule.observe(order);
    BudgetSchedule again = BudgetSchedule::restore(schedule.name(), schedule.parameters());
    CHECK(again.name() == schedule.name());
    for (Index order = 30; order < 90; ++order) {
      schedule.observe(order % 60);
      again.observe(order % 60);
      CHECK(again.at(0.7) == schedule.at(0.7));
    }
    CHECK(again.parameters() == schedule.parameters());
  }
}

TEST(bad_budgets_are_refused) {
  for (const double bad : {-1e-300, nan_value, infinity}) {
    CHECK_THROWS(BudgetSchedule::parsimony(bad), Error);
    CHECK_THROWS(BudgetSchedule::step_squared(bad), Error);
    CHECK_THROWS(BudgetSchedule::proportional(bad), Error);
    CHECK_THROWS(BudgetSchedule::fixed(bad), Error);
    CHECK_THROWS(BudgetSchedule::hold_model_order(bad, 1.0), Error);
    CHECK_THROWS(BudgetSchedule::hold_model_order(10, bad), Error);
  }
  CHECK_THROWS(BudgetSchedule::hold_model_order(0.0, 1.0), Error);
  CHECK_THROWS(BudgetSchedule::hold_model_order(10, 0.0), Error);
  ModelOrderControl control = ModelOrderControl::printed(10, 1.0);
  control.max_change = 1.0;
  CHECK_THROWS(BudgetSchedule::adaptive(1.0, control), Error);
  CHECK_THROWS(BudgetSchedule::restore("fixed", {}), Error);
  CHECK_THROWS(BudgetSchedule::restore("adaptive", {1.0}), Error);
  CHECK_THROWS(BudgetSchedule::restore("nothing", {1.0}), Error);
  std::vector<double> parameters = BudgetSchedule::hold_model_order(10, 1.0).parameters();
  for (double& parameter : parameters) {
    const double good = parameter;
    parameter = nan_value;
    if (&parameter != &parameters.back()) {
      CHECK_THROWS(BudgetSchedule::restore("adaptive", parameters), Error);
    }
    parameter = good;
  }
}
