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

struct CompositionalSettings {
  StepSchedule step = StepSchedule::constant(0.1);      // alpha
  StepSchedule tracking = StepSchedule::constant(0.1);  // beta
  BudgetSchedule budget = BudgetSchedule::fixed(0);
  double regularization = 0;
  // Whether predictions come from an average of the iterates, weighted towards the latest.
  bool average = false;
};

// What a mini-batch did to the two parts of the objective, beside StepRecord.
struct RiskRecord {
  double tracked = 0;     // the first inner expectation, after the step
  double mean = 0;        // the part of the objective that is an ordinary expectation
  double dispersion = 0;  // the other part, before its weight
  double clipped = 0;     // samples at which a bound on the outer derivative acted
};

// How a mini-batch whose samples have these weights moves what is tracked: towards their weighted
// mean, the further the more they weigh, and never beyond.
struct TrackingStep {
  Vector shares;  // of the samples in the mean
  double rate;

  TrackingStep(const Eigen::Ref<const Vector>& weights, double beta) {
    const double total = weights.sum(), count = static_cast<double>(weights.size());
    shares =
        total > 0 ? Vector(weights / total) : Vector(Vector::Constant(weights.size(), 1 / count));
    rate = std::min(1.0, beta * total / count);
  }
};

// Compositional online learning with kernels (Algorithm 2, COLK): minimises
//
//   E_theta[ l_theta(f(theta), E_xi[h_xi(f(xi))]) ] + lambda/2 ||f||^2
//
// by a stochastic quasi-gradient on two time scales. Of each mini-batch the first half are theta,
// the others xi, independent of them (a single sample is both). One of fewer than batch_size
// samples takes their share of alpha, beta and eps:
//
//   g <- (1 - beta) g + beta mean_xi h(f(xi))
//   f <- KOMP((1 - alpha lambda) f - alpha {mean_theta dl/df k(theta, .)
//                                           + dl/dg' mean_xi h'(f(xi)) k(xi, .)}, eps)
//
// A Problem says what l and h are:
//
//   Index tracked() const                       the size m of h, 0 if there is no inner expectation
//   bool needs_pairs() const                    whether h must be seen at samples other than theta
//   Index target_columns(Index outputs) const,  void check_targets(targets, outputs) const
//   void track(RowVector& g, predictions, targets, weights, double beta, bool first)   at xi, or at
//                                               theta if there are no xi
//   void outer(predictions, targets, weights, g, by_f, by_g, losses, RiskRecord&)   at theta:
//                                               by_f.row(i) = dl/df, by_g = weighted mean of dl/dg
//   void inner(predictions, targets, by_g, by_f)                             at xi: by_f.row(i)
//                                               = by_g' h'
//
// The weights of samples are relative to their mean over the block that is learned: a sample with
// weight 2 counts like two in every expectation.
//
// If a step throws, the model is as it was before that step. Not thread safe.
template <class Problem>
class Compositional {
 public:
  Compositional(KernelPtr kernel, Problem problem, CompositionalSettings settings, Index features,
                Index outputs)
      : problem_(std::move(problem)),
        settings_(std::move(settings)),
        outputs_(outputs),
        function_(std::move(kernel), features, settings_.average ? 2 * outputs : outputs, outputs),
        tracked_(RowVector::Zero(problem_.tracked())) {
    const double shrinkage =
        settings_.step.largest() * settings_.regularization * problem_.regularizer_scale();
    require(settings_.regularization >= 0 && shrinkage < 1,
            "The learning rate " + format_number(settings_.step.largest()) +
                " times the regularization " + format_number(settings_.regularization) +
                " must be at least 0 and below " + format_number(1 / problem_.regularizer_scale()) +
                ": choose a smaller learning rate or regularization.");
    require(settings_.tracking.largest() <= 1, "The tracking rate is " +
                                                   format_number(settings_.tracking.largest()) +
                                                   ": give a number above 0 and at most 1.");
    problem_.check_targets(RowMatrix(0, problem_.target_columns(outputs)), outputs);
  }

  const Problem& problem() const { return problem_; }
  const CompositionalSettings& settings() const { return settings_; }
  const SparseFunction& function() const { return function_; }
  const Dictionary& dictionary() const { return function_.dictionary(); }
  const RowVector& tracked() const { return tracked_; }
  Index outputs() const { return outputs_; }
  Index features() const { return dictionary().features(); }
  Index model_order() const { return function_.model_order(); }
  Index samples() const { return samples_; }
  Index batches() const { return batches_; }
  const Trace& trace() const { return trace_; }
  const TraceOf<RiskRecord>& risk_trace() const { return risk_trace_; }
  int target_out_of_reach() const {
    return settings_.budget.at_floor() - settings_.budget.at_ceiling();
  }

  // Mini-batch by mini-batch through a block of samples, as long as keep_going() says so.
  // sample_weights: empty, or one non-negative number a sample. Returns how many were taken.
  template <typename KeepGoing>
  Index run(const ConstRows& samples, const ConstRows& targets,
            const Eigen::Ref<const Vector>& sample_weights, Index batch_size,
            KeepGoing&& keep_going) {
    check(samples, targets, sample_weights);
    const Vector relative = relative_weights(sample_weights, samples.rows());
    return for_each_mini_batch(
        samples.rows(), batch_size, keep_going, [&](Index start, Index count, double share) {
          const Index weighted = sample_weights.size() > 0 ? count : 0;
          advance(samples.middleRows(start, count), targets.middleRows(start, count),
                  sample_weights.segment(weighted > 0 ? start : 0, weighted),
                  relative.segment(start, count), share);
        });
  }

  // values = f at the points: the average of the iterates if there is one, else the last.
  void predict(const ConstRows& points, Rows values) const {
    const RowMatrix weights = prediction_weights();
    evaluate(function_.dictionary(), weights, points, values);
  }

  RowMatrix prediction_weights() const { return function_.weights().rightCols(outputs_); }
  KernelExpansion expansion() const {
    return function_.expansion(settings_.average ? outputs_ : 0, outputs_);
  }

  // Where a model that is read back had got to.
  void restore(SparseFunction function, const RowVector& tracked, Index samples, Index batches,
               Trace trace, TraceOf<RiskRecord> risk_trace) {
    require(tracked.size() == tracked_.size() && tracked.allFinite(),
            "The model file holds " + std::to_string(tracked.size()) +
                " tracked expectations, where " + std::to_string(tracked_.size()) +
                " were expected.");
    function_ = std::move(function);
    tracked_ = tracked;
    samples_ = samples;
    batches_ = batches;
    trace_ = std::move(trace);
    risk_trace_ = std::move(risk_trace);
  }

 private:
  static constexpr double kRecency = 3;

  static Vector relative_weights(const Eigen::Ref<const Vector>& sample_weights, Index samples) {
    if (sample_weights.size() == 0) return Vector::Ones(samples);
    const double mean = sample_weights.mean();
    return mean > 0 ? Vector(sample_weights / mean) : Vector(sample_weights);
  }

  void advance(const ConstRows& samples, const ConstRows& targets,
               const Eigen::Ref<const Vector>& sample_weights,
               const Eigen::Ref<const Vector>& relative_weights, double share) {
    const double alpha = share * settings_.step.at(batches_);
    const double beta = share * settings_.tracking.at(batches_);
    const Index xi = problem_.needs_pairs() ? samples.rows() / 2 : 0;
    const Index theta = samples.rows() - xi;
    StepRecord record;
    RiskRecord risk;
    record.budget = share * settings_.budget.at(settings_.step.at(batches_));

    function_.compare(samples, batch_);
    auto predictions = predictions_.resize(samples.rows(), outputs_);
    function_.evaluate(batch_, predictions);
    auto gradient = gradient_.resize(samples.rows(), outputs_);
    losses_.resize(theta);

    // Tracked on trial: a step that fails must leave no trace.
    RowVector tracked = tracked_;
    if (xi > 0) {
      problem_.track(tracked, predictions.bottomRows(xi), targets.bottomRows(xi),
                     relative_weights.tail(xi), beta, is_first());
    } else {
      problem_.track(tracked, predictions, targets, relative_weights, beta, is_first());
    }
    by_tracked_.setZero(problem_.tracked());
    problem_.outer(predictions.topRows(theta), targets.topRows(theta), relative_weights.head(theta),
                   tracked, gradient.topRows(theta), by_tracked_, losses_, risk);
    if (xi > 0) {
      problem_.inner(predictions.bottomRows(xi), targets.bottomRows(xi), by_tracked_,
                     gradient.bottomRows(xi));
    } else if (problem_.needs_pairs()) {
      // A single sample has to be both.
      auto through = through_.resize(samples.rows(), outputs_);
      problem_.inner(predictions, targets, by_tracked_, through);
      gradient += through;
    }
    if (sample_weights.size() > 0) gradient.array().colwise() *= sample_weights.array();
    record.loss = losses_.mean();

    auto new_weights = active_part_of(gradient, theta, alpha);
    require_bounded(predictions, new_weights, tracked, record.loss);
    record.active = new_weights.rows();
    const double shrink = 1 - alpha * settings_.regularization * problem_.regularizer_scale();
    if (record.active > 0) {
      record.compression_error =
          function_.add(samples, batch_, active_, new_weights, shrink, record.budget).error;
    } else {
      function_.function_weights() *= shrink;
    }
    tracked_ = tracked;
    risk.tracked = tracked_.size() > 0 ? tracked_(0) : record.loss;
    finish(samples.rows(), record, risk);
  }

  bool is_first() const { return batches_ == 0; }

  // Each half of the mini-batch is a mean of its own.
  RowBuffer::Map active_part_of(const ConstRows& gradient, Index theta, double alpha) {
    active_.clear();
    for (Index i = 0; i < gradient.rows(); ++i) {
      if ((gradient.row(i).array() != 0).any()) active_.push_back(i);
    }
    auto selected = new_weights_.resize(static_cast<Index>(active_.size()), outputs_);
    const double for_theta = -alpha / static_cast<double>(theta);
    const double for_xi = -alpha / static_cast<double>(gradient.rows() - theta);
    for (std::size_t k = 0; k < active_.size(); ++k) {
      selected.row(static_cast<Index>(k)) =
          gradient.row(active_[k]) * (active_[k] < theta ? for_theta : for_xi);
    }
    return selected;
  }

  static void require_bounded(const ConstRows& predictions, const ConstRows& new_weights,
                              const RowVector& tracked, double loss) {
    const bool bounded =
        new_weights.size() == 0 || (new_weights.array().abs() < kLargestWeight).all();
    if (bounded && loss < kLargestWeight && predictions.allFinite() && tracked.allFinite()) return;
    throw DivergenceError(
        "The predictions have grown beyond all bounds (mean loss " + format_number(loss) +
        "). The model is as it was before this mini-batch. Choose a smaller learning rate or risk "
        "weight, bound the outer derivative (clip), or scale the targets.");
  }

  void finish(Index count, StepRecord& record, const RiskRecord& risk) {
    batches_ += 1;
    samples_ += count;
    if (settings_.average) {
      const double share = average_share(batches_, kRecency);
      auto average = function_.weights().rightCols(outputs_);
      average += share * (function_.function_weights() - average);
    }
    record.samples = samples_;
    record.model_order = function_.model_order();
    settings_.budget.observe(record.model_order);
    trace_.add(record);
    risk_trace_.add(risk);
  }

  void check(const ConstRows& samples, const ConstRows& targets,
             const Eigen::Ref<const Vector>& sample_weights) const {
    require(samples.cols() == features(), "The samples have " + std::to_string(samples.cols()) +
                                              " features, but the model was made for " +
                                              std::to_string(features()) + ".");
    require(targets.rows() == samples.rows() &&
                (sample_weights.size() == 0 || sample_weights.size() == samples.rows()),
            "There must be as many targets and sample weights as samples.");
    require(samples.allFinite() && sample_weights.allFinite() && targets.allFinite(),
            "The samples, targets and sample weights must be finite.");
    problem_.check_targets(targets, outputs_);
  }

  Problem problem_;
  CompositionalSettings settings_;
  Index outputs_;
  SparseFunction function_;
  RowVector tracked_;
  Index samples_ = 0;
  Index batches_ = 0;
  Trace trace_;
  TraceOf<RiskRecord> risk_trace_;

  Batch batch_;
  RowBuffer predictions_;
  RowBuffer gradient_;
  RowBuffer new_weights_;
  RowBuffer through_;
  RowVector by_tracked_;
  Vector losses_;
  std::vector<Index> active_;
};

}  // namespace parsimon
