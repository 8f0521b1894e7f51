#pragma once

#include <string>
#include <utility>

#include "parsimon/algorithm/online.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The step is alpha.
struct PolicyEvaluationSettings : OnlineSettings {
  // Whether the Bellman error is descended with a tracker (gradient temporal differences), or V
  // moved towards its own prediction (TD(0)).
  bool gradient = true;
  // Of the problem, for whoever reads the model: each transition brings its own.
  double discount = 0.9;
  StepSchedule tracking = StepSchedule::constant(0.1);  // beta
  Compression tracker_compression = BudgetSchedule::fixed(0);

  PolicyEvaluationSettings() { average = true; }
};

// Transitions of a Markov chain: one row per transition. `discounts` are those of what follows: the
// problem's, 0 where the next state ends an episode. `ratios` are how much likelier the policy
// takes the action than whoever took it: 1 on transitions of the policy itself.
struct Transitions {
  ConstRows states;
  Eigen::Ref<const Vector> rewards;
  ConstRows next_states;
  Eigen::Ref<const Vector> discounts;
  Eigen::Ref<const Vector> ratios;

  Index size() const { return states.rows(); }
  Transitions part(Index start, Index count) const {
    return {states.middleRows(start, count), rewards.segment(start, count),
            next_states.middleRows(start, count), discounts.segment(start, count),
            ratios.segment(start, count)};
  }
};

// The value function V of a policy, V(x) = E[r + gamma V(y) | x], from transitions x -> y with
// reward r, discount gamma and ratio rho. With the temporal difference d = r + gamma V(y) - V(x),
// each mini-batch does
//
//   td:   V <- KOMP((1 - alpha lambda) V + alpha rho d k(x, .))
//   gtd:  V <- KOMP((1 - alpha lambda) V - alpha rho z(x) (gamma k(y, .) - k(x, .)))
//         z <- KOMP(z + beta rho (d - z(x)) k(x, .))
//
// z estimates E[d | x], the inner expectation of the Bellman error. It depends on the state, so it
// is a function like V, and is read before it is updated. One number in its place would only make
// the mean of d vanish, not d at every state.
class PolicyEvaluation : public Online {
 public:
  PolicyEvaluation(KernelPtr kernel, const PolicyEvaluationSettings& settings, Index features)
      : Online(kernel, settings, features, 1),
        gradient_(settings.gradient),
        discount_(settings.discount),
        tracking_(settings.tracking),
        tracker_compression_(settings.tracker_compression),
        tracker_(kernel, features, 1, 1) {
    require(discount_ >= 0 && discount_ < 1, "The discount is " + format_number(discount_) +
                                                 ": give a number of at least 0 and below 1.");
    tracker_compression_.check(*kernel);
  }

  PolicyEvaluationSettings settings() const {
    PolicyEvaluationSettings all;
    static_cast<OnlineSettings&>(all) = Online::settings();
    all.gradient = gradient_;
    all.discount = discount_;
    all.tracking = tracking_;
    all.tracker_compression = tracker_compression_;
    return all;
  }
  const SparseFunction& tracker() const { return tracker_; }

  // Mini-batch by mini-batch, as long as keep_going() says so. Returns how many transitions were
  // taken.
  Index run(const Transitions& all, Index batch_size, const KeepGoing& keep_going) {
    check(all);
    MiniBatches part(all.size(), batch_size, keep_going);
    while (part.next()) advance(all.part(part.start(), part.count()), part.share());
    return part.taken();
  }

  // Where a model that is read back had got to.
  void restore(SparseFunction value, SparseFunction tracker, Index samples, Index batches,
               Trace trace) {
    Online::restore(std::move(value), samples, batches, std::move(trace));
    tracker_ = std::move(tracker);
  }

 private:
  void advance(const Transitions& transitions, double share) {
    const Index count = transitions.size();
    const double mean = 1 / static_cast<double>(count);
    Step step = begin(count, share);

    // V at the states, then at the next ones.
    auto points = points_.resize(2 * count, features());
    points.topRows(count) = transitions.states;
    points.bottomRows(count) = transitions.next_states;
    const auto values = evaluate(points);
    const auto& ahead = transitions.discounts;
    reshape(difference_, count);
    reshape(losses_, count);
    for (Index i = 0; i < count; ++i) {
      difference_(i) = transitions.rewards(i) + ahead(i) * values(count + i, 0) - values(i, 0);
    }
    losses_ = 0.5 * difference_.cwiseAbs2();
    step.record.loss = losses_.mean();
    require_bounded(is_bounded(difference_), "The value function has", step.record.loss,
                    "mini-batch", "Choose a smaller learning rate, or scale the rewards.");

    auto pull = pull_.resize(count, 1);  // z(x), or d in its place
    if (gradient_) {
      tracker_.compare(transitions.states, tracker_batch_);
      tracker_.evaluate(tracker_batch_, pull);
    } else {
      pull = difference_;
    }
    const double alpha = step.eta, beta = share * tracking_.at(batches());
    auto of_value = of_value_.resize(2 * count, 1), of_tracker = of_tracker_.resize(count, 1);
    for (Index i = 0; i < count; ++i) {
      const double z = pull(i, 0), share_of_mean = mean * transitions.ratios(i);
      of_value(i, 0) = alpha * share_of_mean * z;
      of_value(count + i, 0) = gradient_ ? -alpha * share_of_mean * (ahead(i) * z) : 0;
      of_tracker(i, 0) = gradient_ ? beta * share_of_mean * (difference_(i) - z) : 0;
    }
    new_points_.take(of_value);
    new_tracker_points_.take(of_tracker);
    require_bounded(is_bounded(of_value) && is_bounded(of_tracker), "The tracked differences have",
                    step.record.loss, "mini-batch",
                    "Choose a smaller learning or tracking rate, or scale the rewards.");

    const double budget = share * tracker_compression_.budget().at(tracking_.at(batches()));
    const Move tracker_move{transitions.states,
                            tracker_batch_,
                            new_tracker_points_.active,
                            new_tracker_points_.weights.all(),
                            1,
                            tracker_compression_.limit(budget, samples() + count)};
    const Move move = plan(step, points);
    // V and its tracker change together or not at all.
    function_.prepare(move);
    tracker_.prepare(tracker_move);
    const CompressionReport& report = function_.apply(move);
    try {
      tracker_.apply(tracker_move);
    } catch (...) {
      function_.undo();
      throw;
    }
    tracker_compression_.observe(tracker_.model_order());
    finish(step, report);
  }

  void check(const Transitions& all) const {
    require(all.states.cols() == features() && all.next_states.cols() == features(),
            "The states have " + std::to_string(all.states.cols()) + " and " +
                std::to_string(all.next_states.cols()) + " features, but the model was made for " +
                std::to_string(features()) + ".");
    require(all.rewards.size() == all.size() && all.next_states.rows() == all.size() &&
                all.discounts.size() == all.size() && all.ratios.size() == all.size(),
            "There must be as many rewards, next states, discounts and ratios as states.");
    require(all.states.allFinite() && all.rewards.allFinite() && all.next_states.allFinite() &&
                all.discounts.allFinite() && all.ratios.allFinite(),
            "The transitions must be finite.");
    require((all.discounts.array() >= 0).all() && (all.ratios.array() >= 0).all(),
            "Discounts and ratios must not be negative.");
  }

  bool gradient_;
  double discount_;
  StepSchedule tracking_;
  Compression tracker_compression_;
  SparseFunction tracker_;  // z

  Batch tracker_batch_;
  NewPoints new_tracker_points_;
  RowBuffer points_;
  RowBuffer pull_;
  RowBuffer of_value_;
  RowBuffer of_tracker_;
  Vector difference_;
};

}  // namespace parsimon
