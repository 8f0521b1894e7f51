#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/averaging.hpp"
#include "parsimon/algorithm/mini_batches.hpp"
#include "parsimon/algorithm/trace.hpp"
#include "parsimon/loss/loss.hpp"
#include "parsimon/rkhs/least_squares.hpp"
#include "parsimon/rkhs/maintenance.hpp"
#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/schedule/budget.hpp"
#include "parsimon/schedule/step.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

struct PolkSettings {
  LossPtr loss;
  StepSchedule step;
  BudgetSchedule budget;
  double regularization = 1e-6;
  // Whether predictions come from an average of the iterates, weighted towards the latest.
  bool average = false;
  // If there is one, the number of points is bounded instead of the error (BSGD).
  std::optional<Maintenance> maintenance = std::nullopt;
};

// Parsimonious online learning with kernels (Algorithm 2, POLK). Each mini-batch does
//
//   f <- KOMP((1 - eta lambda) f - (eta / B) sum_i l'(f(x_i), y_i) k(x_i, .), eps)
//
// A mini-batch in which every gradient is zero adds nothing and is not compressed. One of fewer
// than B samples takes their share of eta and eps. If a step throws, the model is as it was before
// that step. Not thread safe.
class Polk {
 public:
  Polk(KernelPtr kernel, PolkSettings settings, Index features, Index outputs)
      : settings_(std::move(settings)),
        outputs_(outputs),
        function_(std::move(kernel), features, settings_.average ? 2 * outputs : outputs, outputs) {
    const double shrinkage =
        settings_.step.largest() * settings_.regularization * settings_.loss->regularizer_scale();
    require(settings_.regularization >= 0 && shrinkage < 1,
            "The learning rate " + format_number(settings_.step.largest()) +
                " times the regularization " + format_number(settings_.regularization) +
                " must be at least 0 and below " +
                format_number(1 / settings_.loss->regularizer_scale()) +
                ": choose a smaller learning rate or regularization.");
    settings_.loss->check_targets(RowMatrix(0, settings_.loss->target_columns(outputs)), outputs);
    if (settings_.maintenance) settings_.maintenance->check(function_.dictionary().kernel());
  }

  const PolkSettings& settings() const { return settings_; }
  const SparseFunction& function() const { return function_; }
  Index outputs() const { return outputs_; }
  Index features() const { return function_.dictionary().features(); }
  Index model_order() const { return function_.model_order(); }
  Index samples() const { return samples_; }
  Index batches() const { return batches_; }
  const Trace& trace() const { return trace_; }
  // 1 if the target of an adaptive budget asks for too many points, -1 if for too few, else 0.
  int target_out_of_reach() const {
    return settings_.budget.at_floor() - settings_.budget.at_ceiling();
  }

  // One mini-batch. targets: as the loss wants them; sample_weights: empty, or one non-negative
  // number a sample.
  StepRecord step(const ConstRows& samples, const ConstRows& targets,
                  const Eigen::Ref<const Vector>& sample_weights) {
    check(samples, targets, sample_weights);
    return advance(samples, targets, sample_weights, 1);
  }

  // Mini-batch by mini-batch through a block of samples, in double or single precision, as long as
  // keep_going() says so. Returns how many samples were taken.
  template <typename Samples, typename KeepGoing>
  Index run(const Samples& samples, const ConstRows& targets,
            const Eigen::Ref<const Vector>& sample_weights, Index batch_size,
            KeepGoing&& keep_going) {
    check(samples, targets, sample_weights);
    return for_each_mini_batch(
        samples.rows(), batch_size, keep_going, [&](Index start, Index count, double share) {
          const Index weighted = sample_weights.size() > 0 ? count : 0;
          advance(widened_.rows(samples, start, count), targets.middleRows(start, count),
                  sample_weights.segment(weighted > 0 ? start : 0, weighted), share);
        });
  }

  // For the squared loss: the exact minimiser of (1/n) sum_i c_i l(f(x_i), y_i) + lambda/2 ||f||^2
  // on the span of the dictionary, where stochastic steps only come near it.
  void refit(const ConstRows& samples, const ConstRows& targets,
             const Eigen::Ref<const Vector>& sample_weights) {
    Refit refit = begin_refit();
    add_to_refit(refit, samples, targets, sample_weights);
    finish_refit(refit);
  }

  // The same for samples that come in blocks; nothing may be learned in between.
  struct Refit {
    LeastSquares problem;
    Index batches;
  };

  Refit begin_refit() {
    require(settings_.loss->describe() == "squared",
            "Only a model of the squared loss can be refitted, not one of the loss " +
                settings_.loss->describe() + ".");
    // Without compression there is no factor yet.
    if (function_.basis_size() == 0) function_.refactor();
    return {LeastSquares(function_, outputs_), batches_};
  }

  void add_to_refit(Refit& refit, const ConstRows& samples, const ConstRows& targets,
                    const Eigen::Ref<const Vector>& sample_weights) const {
    check(samples, targets, sample_weights);
    require_unchanged_since(refit);
    const bool weighted = sample_weights.size() > 0;
    refit.problem.add(function_, samples, targets,
                      weighted ? Vector(sample_weights) : Vector(Vector::Ones(samples.rows())));
  }

  void finish_refit(const Refit& refit) {
    require_unchanged_since(refit);
    const RowMatrix weights = refit.problem.solve(function_, settings_.regularization);
    if (!weights.allFinite()) throw DivergenceError("The least-squares fit is not finite.");
    function_.function_weights() = weights;
    function_.weights().rightCols(outputs_) = weights;
  }

  // values = f at the points: the average of the iterates if there is one, else the last.
  template <typename Points>
  void predict(const Points& points, Rows values) const {
    const RowMatrix weights = prediction_weights();
    evaluate(function_.dictionary(), weights, points, values);
  }

  RowMatrix prediction_weights() const { return function_.weights().rightCols(outputs_); }
  KernelExpansion expansion() const {
    return function_.expansion(settings_.average ? outputs_ : 0, outputs_);
  }

  // Where a model that is read back had got to.
  void restore(SparseFunction function, Index samples, Index batches, Trace trace) {
    function_ = std::move(function);
    samples_ = samples;
    batches_ = batches;
    trace_ = std::move(trace);
  }

 private:
  void require_unchanged_since(const Refit& refit) const {
    require(refit.batches == batches_, "The model has learned since the refit was begun.");
  }

  static constexpr double kRecency = 3;

  StepRecord advance(const ConstRows& samples, const ConstRows& targets,
                     const Eigen::Ref<const Vector>& sample_weights, double share) {
    const double eta = share * settings_.step.at(batches_);
    StepRecord record;
    record.budget = share * settings_.budget.at(settings_.step.at(batches_));

    function_.compare(samples, batch_);
    auto predictions = predictions_.resize(samples.rows(), outputs_);
    function_.evaluate(batch_, predictions);
    auto gradient = gradient_.resize(samples.rows(), outputs_);
    losses_.resize(samples.rows());
    settings_.loss->evaluate(predictions, targets, losses_, gradient);
    if (sample_weights.size() > 0) gradient.array().colwise() *= sample_weights.array();
    record.loss = losses_.mean();

    auto new_weights = active_part_of(gradient);
    new_weights *= -eta / static_cast<double>(samples.rows());
    require_bounded(predictions, new_weights, record.loss);
    record.active = new_weights.rows();

    const double shrink = 1 - eta * settings_.regularization * settings_.loss->regularizer_scale();
    if (record.active > 0) {
      record.compression_error = compress(samples, new_weights, shrink, record.budget);
    } else {
      function_.function_weights() *= shrink;
    }
    finish(samples.rows(), record);
    return record;
  }

  // Returns the error; a bound on the number of points spends what it takes.
  double compress(const ConstRows& samples, const ConstRows& new_weights, double shrink,
                  double& budget) {
    if (!settings_.maintenance) {
      return function_.add(samples, batch_, active_, new_weights, shrink, budget).error;
    }
    budget = settings_.maintenance
                 ->add(function_, samples, batch_, active_, new_weights, shrink,
                       samples_ + samples.rows())
                 .error;
    return budget;
  }

  RowBuffer::Map active_part_of(const ConstRows& gradient) {
    active_.clear();
    for (Index i = 0; i < gradient.rows(); ++i) {
      if ((gradient.row(i).array() != 0).any()) active_.push_back(i);
    }
    auto selected = new_weights_.resize(static_cast<Index>(active_.size()), outputs_);
    for (std::size_t k = 0; k < active_.size(); ++k) {
      selected.row(static_cast<Index>(k)) = gradient.row(active_[k]);
    }
    return selected;
  }

  // A hinge loss does not see that a prediction is NaN.
  static void require_bounded(const ConstRows& predictions, const ConstRows& new_weights,
                              double loss) {
    const bool bounded =
        new_weights.size() == 0 || (new_weights.array().abs() < kLargestWeight).all();
    if (bounded && loss < kLargestWeight && predictions.allFinite()) return;
    throw DivergenceError(
        "The predictions have grown beyond all bounds (mean loss " + format_number(loss) +
        "). The model is as it was before this mini-batch. Choose a smaller learning rate, or "
        "scale the targets.");
  }

  void finish(Index count, StepRecord& record) {
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
  }

  template <typename Samples>
  void check(const Samples& samples, const ConstRows& targets,
             const Eigen::Ref<const Vector>& sample_weights) const {
    require(samples.cols() == features(), "The samples have " + std::to_string(samples.cols()) +
                                              " features, but the model was made for " +
                                              std::to_string(features()) + ".");
    require(targets.rows() == samples.rows() &&
                (sample_weights.size() == 0 || sample_weights.size() == samples.rows()),
            "There must be as many targets and sample weights as samples.");
    require(samples.allFinite() && sample_weights.allFinite() && targets.allFinite(),
            "The samples, targets and sample weights must be finite.");
    settings_.loss->check_targets(targets, outputs_);
  }

  PolkSettings settings_;
  Index outputs_;
  SparseFunction function_;
  Index samples_ = 0;
  Index batches_ = 0;
  Trace trace_;

  Batch batch_;
  Widened widened_;
  RowBuffer predictions_;
  RowBuffer gradient_;
  RowBuffer new_weights_;
  Vector losses_;
  std::vector<Index> active_;
};

}  // namespace parsimon
