#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/averaging.hpp"
#include "parsimon/algorithm/mini_batches.hpp"
#include "parsimon/algorithm/trace.hpp"
#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/schedule/budget.hpp"
#include "parsimon/schedule/step.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

struct PolicyEvaluationSettings {
  // Whether the Bellman error is descended with a tracker (gradient temporal differences), or V
  // moved towards its own prediction (TD(0)).
  bool gradient = true;
  double discount = 0.9;
  StepSchedule step = StepSchedule::constant(0.1);      // alpha
  StepSchedule tracking = StepSchedule::constant(0.1);  // beta
  BudgetSchedule budget = BudgetSchedule::fixed(0);
  BudgetSchedule tracker_budget = BudgetSchedule::fixed(0);
  double regularization = 0;
  bool average = true;
};

// Transitions of a Markov chain under a fixed policy: a row a transition. `stay` is 1, or 0 where
// the next state ends an episode.
struct Transitions {
  ConstRows states;
  Eigen::Ref<const Vector> rewards;
  ConstRows next_states;
  Eigen::Ref<const Vector> stay;

  Index size() const { return states.rows(); }
  Transitions part(Index start, Index count) const {
    return {states.middleRows(start, count), rewards.segment(start, count),
            next_states.middleRows(start, count), stay.segment(start, count)};
  }
};

// The value function V of a policy, V(x) = E[r + gamma V(y) | x], from transitions x -> y with
// reward r. With the temporal difference d = r + gamma V(y) - V(x), each mini-batch does
//
//   td:   V <- KOMP((1 - alpha lambda) V + alpha d k(x, .))
//   gtd:  V <- KOMP((1 - alpha lambda) V - alpha z(x) (gamma k(y, .) - k(x, .)))
//         z <- KOMP(z + beta (d - z(x)) k(x, .))
//
// z estimates E[d | x], the inner expectation of the Bellman error. It depends on the state, so it
// is a function like V, and is read before it is updated. One number in its place, as the frame of
// the paper has it, would only make the mean of d vanish, not d at every state.
// If a step throws, the model is as it was before that step. Not thread safe.
class PolicyEvaluation {
 public:
  PolicyEvaluation(KernelPtr kernel, PolicyEvaluationSettings settings, Index features)
      : settings_(std::move(settings)),
        value_(kernel, features, settings_.average ? 2 : 1, 1),
        tracker_(kernel, features, 1, 1) {
    require(settings_.discount >= 0 && settings_.discount < 1,
            "The discount is " + format_number(settings_.discount) +
                ": give a number of at least 0 and below 1.");
    require(
        settings_.regularization >= 0 && settings_.step.largest() * settings_.regularization < 1,
        "The learning rate times the regularization must be at least 0 and below 1: choose a "
        "smaller learning rate or regularization.");
  }

  const PolicyEvaluationSettings& settings() const { return settings_; }
  const SparseFunction& value() const { return value_; }
  const SparseFunction& tracker() const { return tracker_; }
  const Dictionary& dictionary() const { return value_.dictionary(); }
  Index features() const { return dictionary().features(); }
  Index outputs() const { return 1; }
  Index model_order() const { return value_.model_order(); }
  Index samples() const { return samples_; }
  Index batches() const { return batches_; }
  const Trace& trace() const { return trace_; }
  int target_out_of_reach() const {
    return settings_.budget.at_floor() - settings_.budget.at_ceiling();
  }

  template <typename KeepGoing>
  Index run(const Transitions& all, Index batch_size, KeepGoing&& keep_going) {
    check(all);
    return for_each_mini_batch(
        all.size(), batch_size, keep_going,
        [&](Index start, Index count, double share) { advance(all.part(start, count), share); });
  }

  void predict(const ConstRows& points, Rows values) const {
    const RowMatrix weights = prediction_weights();
    evaluate(value_.dictionary(), weights, points, values);
  }

  RowMatrix prediction_weights() const { return value_.weights().rightCols(1); }
  KernelExpansion expansion() const { return value_.expansion(settings_.average ? 1 : 0, 1); }

  // Where a model that is read back had got to.
  void restore(SparseFunction value, SparseFunction tracker, Index samples, Index batches,
               Trace trace) {
    value_ = std::move(value);
    tracker_ = std::move(tracker);
    samples_ = samples;
    batches_ = batches;
    trace_ = std::move(trace);
  }

 private:
  static constexpr double kRecency = 3;

  void advance(const Transitions& transitions, double share) {
    const Index count = transitions.size();
    const double mean = 1 / static_cast<double>(count);
    const double alpha = share * settings_.step.at(batches_);
    const double beta = share * settings_.tracking.at(batches_);
    StepRecord record;
    record.budget = share * settings_.budget.at(settings_.step.at(batches_));

    auto points = points_.resize(2 * count, features());
    points.topRows(count) = transitions.states;
    points.bottomRows(count) = transitions.next_states;
    value_.compare(points, batch_);
    auto values = values_.resize(2 * count, 1);
    value_.evaluate(batch_, values);
    const Vector ahead = settings_.discount * transitions.stay;
    const Vector difference = transitions.rewards + ahead.cwiseProduct(values.col(0).tail(count)) -
                              values.col(0).head(count);
    record.loss = 0.5 * difference.squaredNorm() * mean;
    require_bounded(difference);

    auto weights = new_weights_.resize(2 * count, 1);
    if (settings_.gradient) {
      tracker_.compare(transitions.states, tracker_batch_);
      auto expected = expected_.resize(count, 1);
      tracker_.evaluate(tracker_batch_, expected);
      weights.topRows(count) = alpha * mean * expected;
      weights.bottomRows(count) = -alpha * mean * ahead.cwiseProduct(expected.col(0));
    } else {
      weights.topRows(count) = alpha * mean * difference;
      weights.bottomRows(count).setZero();
    }
    // V and its tracker change together: both are worked out on copies' terms before either moves.
    SparseFunction tracker = tracker_;
    if (settings_.gradient) {
      const RowMatrix steps = beta * mean * (difference - expected_.all().col(0));
      const double budget = share * settings_.tracker_budget.at(settings_.tracking.at(batches_));
      add(tracker, transitions.states, tracker_batch_, steps, 1, budget);
    }
    record.active = add(value_, points, batch_, weights, 1 - alpha * settings_.regularization,
                        record.budget, &record.compression_error);
    std::swap(tracker_, tracker);
    finish(count, record);
  }

  // Adds the points that have a weight; returns how many.
  Index add(SparseFunction& function, const ConstRows& points, const Batch& batch,
            const ConstRows& weights, double shrink, double budget, double* error = nullptr) {
    active_.clear();
    for (Index i = 0; i < weights.rows(); ++i) {
      if (weights(i, 0) != 0) active_.push_back(i);
    }
    auto selected = selected_.resize(static_cast<Index>(active_.size()), 1);
    for (std::size_t k = 0; k < active_.size(); ++k) {
      selected(static_cast<Index>(k), 0) = weights(active_[k], 0);
    }
    if (active_.empty()) {
      function.function_weights() *= shrink;
      return 0;
    }
    const CompressionReport report = function.add(points, batch, active_, selected, shrink, budget);
    if (error) *error = report.error;
    return static_cast<Index>(active_.size());
  }

  static void require_bounded(const Vector& difference) {
    if (difference.allFinite() && difference.cwiseAbs().maxCoeff() < kLargestWeight) return;
    throw DivergenceError(
        "The value function has grown beyond all bounds. The model is as it was before this "
        "mini-batch. Choose a smaller learning rate, or scale the rewards.");
  }

  void finish(Index count, StepRecord& record) {
    batches_ += 1;
    samples_ += count;
    if (settings_.average) {
      auto weights = value_.weights();
      weights.col(1) += average_share(batches_, kRecency) * (weights.col(0) - weights.col(1));
    }
    record.samples = samples_;
    record.model_order = value_.model_order();
    settings_.budget.observe(record.model_order);
    settings_.tracker_budget.observe(tracker_.model_order());
    trace_.add(record);
  }

  void check(const Transitions& all) const {
    require(all.states.cols() == features() && all.next_states.cols() == features(),
            "The states have " + std::to_string(all.states.cols()) + " and " +
                std::to_string(all.next_states.cols()) + " features, but the model was made for " +
                std::to_string(features()) + ".");
    require(all.rewards.size() == all.size() && all.next_states.rows() == all.size() &&
                all.stay.size() == all.size(),
            "There must be as many rewards, next states and terminal flags as states.");
    require(all.states.allFinite() && all.rewards.allFinite() && all.next_states.allFinite() &&
                all.stay.allFinite(),
            "The transitions must be finite.");
  }

  PolicyEvaluationSettings settings_;
  SparseFunction value_;
  SparseFunction tracker_;
  Index samples_ = 0;
  Index batches_ = 0;
  Trace trace_;

  Batch batch_;
  Batch tracker_batch_;
  RowBuffer points_;
  RowBuffer values_;
  RowBuffer expected_;
  RowBuffer new_weights_;
  RowBuffer selected_;
  std::vector<Index> active_;
};

}  // namespace parsimon
