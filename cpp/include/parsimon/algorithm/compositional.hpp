#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "parsimon/algorithm/online.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The step is alpha.
struct CompositionalSettings : OnlineSettings {
  StepSchedule tracking = StepSchedule::constant(0.1);  // beta
};

// The latest sample of a stream, with what it weighs: absolutely, and relative to its block.
struct LatestSample {
  RowVector sample = {}, target = {};
  double weight = 1, relative_weight = 1;

  bool is_there() const { return sample.size() > 0; }
};

// What a mini-batch did to the two parts of the objective, beside StepRecord.
struct RiskRecord {
  double tracked = 0;     // the first inner expectation, after the step
  double mean = 0;        // the part of the objective that is an ordinary expectation
  double dispersion = 0;  // the other part, before its weight
  double clipped = 0;     // samples at which a bound on the outer derivative acted

  auto numbers() { return std::tie(tracked, mean, dispersion, clipped); }

  void take_in(const RiskRecord& next, double share) {
    tracked = next.tracked;
    mean += share * (next.mean - mean);
    dispersion += share * (next.dispersion - dispersion);
    clipped += next.clipped;
  }
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
// the others xi, independent of them; for a single sample, xi is the one before it. One of fewer
// than batch_size samples takes their share of alpha, beta and eps:
//
//   g <- (1 - beta) g + beta mean_xi h(f(xi))
//   f <- KOMP((1 - alpha lambda) f - alpha {mean_theta dl/df k(theta, .)
//                                           + dl/dg' mean_xi h'(f(xi)) k(xi, .)}, eps)
//
// A Problem says what l and h are:
//
//   Index tracked() const                       the size m of h, 0 if there is no inner expectation
//   bool needs_pairs() const                    whether h must be seen at samples other than theta
//   bool outer_sees_samples() const             if not, l is the same for all theta, and all of a
//                                               mini-batch is xi
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
template <class Problem>
class Compositional : public Online {
 public:
  Compositional(KernelPtr kernel, Problem problem, const CompositionalSettings& settings,
                Index features, Index outputs)
      : Online(std::move(kernel), settings, features, outputs, problem.regularizer_scale()),
        problem_(std::move(problem)),
        tracking_(settings.tracking),
        tracked_(RowVector::Zero(problem_.tracked())) {
    require(tracking_.largest() <= 1, "The tracking rate is " + format_number(tracking_.largest()) +
                                          ": give a number above 0 and at most 1.");
    problem_.check_targets(RowMatrix(0, problem_.target_columns(outputs)), outputs);
  }

  CompositionalSettings settings() const { return {Online::settings(), tracking_}; }
  const Problem& problem() const { return problem_; }
  const RowVector& tracked() const { return tracked_; }
  const TraceOf<RiskRecord>& risk_trace() const { return risk_trace_; }
  // What the next mini-batch has as xi if it is a single sample; nothing if it needs none.
  const LatestSample& latest_sample() const { return latest_; }

  // Mini-batch by mini-batch through a block of samples, as long as keep_going() says so.
  // sample_weights: empty, or one non-negative number for each sample. Returns how many were taken.
  Index run(const ConstRows& samples, const ConstRows& targets,
            const Eigen::Ref<const Vector>& sample_weights, Index batch_size,
            const KeepGoing& keep_going) {
    check_block(samples, targets, sample_weights);
    problem_.check_targets(targets, outputs());
    const Vector relative = relative_weights(sample_weights, samples.rows());
    MiniBatches part(samples.rows(), batch_size, keep_going);
    while (part.next()) {
      advance(samples.middleRows(part.start(), part.count()),
              targets.middleRows(part.start(), part.count()), part_of(sample_weights, part),
              part_of(relative, part), part.share());
    }
    return part.taken();
  }

  // Class i becomes class places[i] of so many, judged by this loss; the others are new.
  void add_classes(const std::vector<Index>& places, Index classes, LossPtr loss) {
    change_classes(places, classes, *loss);
    problem_.set_loss(std::move(loss));
    if (!latest_.is_there()) return;
    const auto label = static_cast<std::size_t>(latest_.target(0));
    latest_.target(0) = static_cast<double>(places[label]);
  }

  // Where a model that is read back had got to.
  void restore(SparseFunction function, const RowVector& tracked, Index samples, Index batches,
               Trace trace, TraceOf<RiskRecord> risk_trace, LatestSample latest = {}) {
    require(tracked.size() == tracked_.size() && tracked.allFinite(),
            "The model file holds " + std::to_string(tracked.size()) +
                " tracked expectations, where " + std::to_string(tracked_.size()) +
                " were expected.");
    if (latest.is_there()) {
      require_features(latest.sample.size(), "samples");
      require(latest.sample.allFinite() && latest.target.allFinite(),
              "The latest sample in the model file is not finite.");
      problem_.check_targets(latest.target, outputs());
    }
    Online::restore(std::move(function), samples, batches, std::move(trace));
    tracked_ = tracked;
    risk_trace_ = std::move(risk_trace);
    latest_ = std::move(latest);
  }

 private:
  static Vector relative_weights(const Eigen::Ref<const Vector>& sample_weights, Index samples) {
    if (sample_weights.size() == 0) return Vector::Ones(samples);
    const double mean = sample_weights.mean();
    return mean > 0 ? Vector(sample_weights / mean) : Vector(sample_weights);
  }

  void advance(const ConstRows& samples, const ConstRows& targets,
               const Eigen::Ref<const Vector>& sample_weights,
               const Eigen::Ref<const Vector>& relative_weights, double share) {
    if (!is_paired()) {
      move(samples, targets, sample_weights, relative_weights, share, samples.rows());
      return;
    }
    // Made before anything moves: what follows the step throws nothing.
    const Index last = samples.rows() - 1;
    LatestSample latest{samples.row(last), targets.row(last),
                        sample_weights.size() > 0 ? sample_weights(last) : 1,
                        relative_weights(last)};
    const bool has_other = latest_.is_there() && latest_.target.size() == targets.cols();
    if (samples.rows() == 1 && has_other) {
      RowMatrix pair(2, samples.cols()), pair_targets(2, targets.cols());
      pair << samples, latest_.sample;
      pair_targets.row(0) = targets.row(0);
      pair_targets.row(1) = latest_.target;
      const bool weighed = sample_weights.size() > 0 || latest_.weight != 1;
      Vector weights(weighed ? 2 : 0);
      if (weighed) weights << (sample_weights.size() > 0 ? sample_weights(0) : 1), latest_.weight;
      const Vector relative =
          (Vector(2) << relative_weights(0), latest_.relative_weight).finished();
      move(pair, pair_targets, weights, relative, share, 1);
    } else {
      move(samples, targets, sample_weights, relative_weights, share, samples.rows());
    }
    std::swap(latest_, latest);
  }

  // Whether one half of a mini-batch is theta and the other xi.
  bool is_paired() const { return problem_.needs_pairs() && problem_.outer_sees_samples(); }

  // count: how many of the samples are new.
  void move(const ConstRows& samples, const ConstRows& targets,
            const Eigen::Ref<const Vector>& sample_weights,
            const Eigen::Ref<const Vector>& relative_weights, double share, Index count) {
    Step step = begin(count, share);
    risk_trace_.make_room();
    RiskRecord risk;
    const Index xi = is_paired() ? samples.rows() / 2 : 0;
    const Index theta = samples.rows() - xi;
    const auto predictions = evaluate(samples);

    // Tracked on trial: a step that fails must leave no trace.
    RowVector tracked = tracked_;
    const Index seen = xi > 0 ? xi : theta;
    problem_.track(tracked, predictions.bottomRows(seen), targets.bottomRows(seen),
                   relative_weights.tail(seen), share * tracking_.at(batches()), batches() == 0);

    auto gradient = gradient_.resize(samples.rows(), outputs());
    reshape(losses_, theta);
    by_tracked_.setZero(problem_.tracked());
    problem_.outer(predictions.topRows(theta), targets.topRows(theta), relative_weights.head(theta),
                   tracked, gradient.topRows(theta), by_tracked_, losses_, risk);
    if (xi > 0) {
      problem_.inner(predictions.bottomRows(xi), targets.bottomRows(xi), by_tracked_,
                     gradient.bottomRows(xi));
    } else if (problem_.needs_pairs()) {
      // All samples are both: where l does not see them, and the very first if it comes alone.
      auto through = through_.resize(samples.rows(), outputs());
      problem_.inner(predictions, targets, by_tracked_, through);
      gradient += through;
    }
    weigh(gradient, sample_weights);
    step.record.loss = losses_.mean();

    auto weights = new_points_.take(gradient);
    // Each half of the mini-batch is a mean of its own.
    for (Index k = 0; k < weights.rows(); ++k) {
      const Index half = new_points_.sample(k) < theta ? theta : xi;
      weights.row(k) *= -step.eta / static_cast<double>(half);
    }
    require_bounded(is_within_bounds(step) && tracked.allFinite(), "The predictions have",
                    step.record.loss, "mini-batch",
                    "Choose a smaller learning rate or risk weight, bound the outer derivative "
                    "(clip), or scale the targets.");
    finish(step, function_.add(plan(step, samples)));
    tracked_.swap(tracked);
    risk.tracked = tracked_.size() > 0 ? tracked_(0) : step.record.loss;
    risk_trace_.add(risk);
  }

  Problem problem_;
  StepSchedule tracking_;
  RowVector tracked_;
  TraceOf<RiskRecord> risk_trace_;
  LatestSample latest_;

  RowBuffer gradient_;
  RowBuffer through_;
  RowVector by_tracked_;
};

}  // namespace parsimon
