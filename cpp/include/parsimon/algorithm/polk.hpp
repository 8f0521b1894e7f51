#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "parsimon/algorithm/newton.hpp"
#include "parsimon/algorithm/online.hpp"
#include "parsimon/loss/loss.hpp"
#include "parsimon/rkhs/least_squares.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

struct PolkSettings : OnlineSettings {
  LossPtr loss;

  PolkSettings(LossPtr judge, StepSchedule step_size, Compression how, double lambda = 1e-6,
               bool averaged = false)
      : PolkSettings(std::move(judge), {std::move(step_size), std::move(how), lambda, averaged}) {}
  PolkSettings(LossPtr judge, OnlineSettings others)
      : OnlineSettings(std::move(others)), loss(std::move(judge)) {}
};

// Parsimonious online learning with kernels (Algorithm 2, POLK). Each mini-batch does
//
//   f <- KOMP((1 - eta lambda) f - (eta / B) sum_i l'(f(x_i), y_i) k(x_i, .), eps)
//
// With the second-order solver, f finds the points, and the weights that predict are solved on them
// (newton.hpp).
class Polk : public Online {
 public:
  Polk(KernelPtr kernel, const PolkSettings& settings, Index features, Index outputs)
      : Online(std::move(kernel), settings, features, outputs, settings.loss->regularizer_scale()),
        loss_(settings.loss) {
    loss_->check_targets(RowMatrix(0, loss_->target_columns(outputs)), outputs);
    if (settings_.newton) newton_.emplace(*settings_.newton, loss_);
  }

  PolkSettings settings() const { return {loss_, Online::settings()}; }

  // One mini-batch. targets: as the loss wants them; sample_weights: empty, or one non-negative
  // number for each sample.
  StepRecord step(const ConstRows& samples, const ConstRows& targets,
                  const Eigen::Ref<const Vector>& sample_weights) {
    check(samples, targets, sample_weights);
    return advance(samples, targets, sample_weights, 1);
  }

  // Mini-batch by mini-batch through a block of samples, in double or single precision, as long as
  // keep_going() says so. Returns how many samples were taken.
  template <typename Samples>
  Index run(const Samples& samples, const ConstRows& targets,
            const Eigen::Ref<const Vector>& sample_weights, Index batch_size,
            const KeepGoing& keep_going) {
    check(samples, targets, sample_weights);
    MiniBatches part(samples.rows(), batch_size, keep_going);
    while (part.next()) {
      advance(widened_.rows(samples, part.start(), part.count()),
              targets.middleRows(part.start(), part.count()), part_of(sample_weights, part),
              part.share());
    }
    return part.taken();
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
    require(loss_->is_squared(),
            "Only a model of the squared loss can be refitted, not one of the loss " +
                loss_->describe() + ".");
    // Without compression there is no factor yet.
    if (function_.basis_size() == 0) function_.refactor();
    return {LeastSquares(function_, outputs()), batches()};
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
    function_.predictor_weights() = weights;
    if (!newton_) return;
    assume(refit.problem.normal(), refit.problem.right(),
           refit.problem.coordinates(settings_.regularization), refit.problem.count());
  }

  // -- weights that are solved
  // ---------------------------------------------------------------------

  bool is_solved() const { return newton_.has_value(); }

  // From the beginning on, only the points are found; then either assume() says what the samples
  // have said about their weights, or learning goes on from the weights that were stepped.
  void scout() {
    require(is_solved() && samples() == 0, "Only a model that has learned nothing yet can scout.");
    scouts_ = true;
    function_.forget_statistics();
  }
  void stop_scouting() {
    if (!scouts_) return;
    scouts_ = false;
    function_.keep_statistics();
    function_.statistics().grow(function_.basis_size());
    function_.predictor_weights() = function_.function_weights().eval();
  }
  // The weight of ||f||^2 / 2 beside the mean loss of the samples that are remembered.
  double regularization() const {
    if (!newton_ || newton_->remembered() == 0) {
      return settings_.regularization * loss_->regularizer_scale();
    }
    return newton_->ridge() / newton_->remembered();
  }
  // Of the first mini-batch.
  double learning_rate() const { return settings_.step.at(0); }
  double budget() const { return settings_.compression.budget().at(learning_rate()); }
  const Newton& newton() const { return *newton_; }
  Index target_columns() const { return loss_->target_columns(outputs()); }
  void restore_newton(const Statistics::State& statistics, const Newton::State& state) {
    require(function_.basis_size() == statistics.normal.rows() && function_.has_restored_factor(),
            "The statistics in the model file are not those of its dictionary.");
    newton_->restore(state, dictionary(), outputs());
    function_.statistics().restore(statistics);
  }

  // The orthonormal coordinates of samples in the span of the basis, one row per sample.
  template <typename Samples>
  RowMatrix coordinates(const Samples& samples) {
    require_features(samples.cols(), "samples");
    if (function_.basis_size() == 0 && model_order() > 0) function_.refactor();
    Batch batch;
    function_.compare(RowMatrix(0, features()), batch);  // if the factor is built anew, then now
    RowMatrix result(samples.rows(), function_.basis_size());
    for (Index start = 0; start < samples.rows(); start += kEvaluationBlock) {
      const Index count = std::min(kEvaluationBlock, samples.rows() - start);
      function_.compare(widened_.rows(samples, start, count), batch);
      const auto columns = function_.coordinates(batch);
      linalg::transpose(columns, result.data() + start * result.cols(), result.cols());
    }
    return result;
  }

  // Weights that have been solved from all samples at once, with what they said (statistics.hpp):
  // learning goes on from there. normal: its lower triangle counts.
  void assume(const ConstRows& normal, const ConstRows& right, const ConstRows& solution,
              double samples, std::optional<double> ridge = std::nullopt) {
    const Index size = function_.basis_size();
    require(normal.rows() == size && normal.cols() == size && right.rows() == size &&
                solution.rows() == size && right.cols() == outputs() &&
                solution.cols() == outputs(),
            "The statistics are not those of this dictionary.");
    require(normal.allFinite() && right.allFinite() && is_bounded(solution),
            "The solved weights are not finite.");
    stop_scouting();
    function_.set_predictor(solution);
    function_.function_weights() = function_.predictor_weights().eval();
    if (!newton_) return;
    function_.statistics().restore({normal, right, solution});
    newton_->assume(samples, ridge);
    settings_.newton = newton_->settings();
  }

  // KOMP on the function that predicts, once more; then weights are solved for those that are left,
  // from what all samples have said.
  CompressionReport compress(const Limit& limit) {
    require(is_solved(), "Only a model whose weights are solved can be compressed and go on.");
    newton_->compare(function_);
    function_.function_weights() = function_.predictor_weights().eval();
    const CompressionReport report = function_.compress(limit);
    newton_->solve(function_);
    return report;
  }

  // The coordinates of the function that predicts.
  RowMatrix solution() const {
    require(is_solved(), "The weights of this model are not solved.");
    if (scouts_) return RowMatrix::Zero(function_.basis_size(), outputs());
    return function_.statistics().solution();
  }

 private:
  StepRecord advance(const ConstRows& samples, const ConstRows& targets,
                     const Eigen::Ref<const Vector>& sample_weights, double share) {
    Step step = begin(samples.rows(), share);
    const auto predictions = evaluate(samples);
    auto gradient = gradient_.resize(samples.rows(), outputs());
    losses_.resize(samples.rows());
    loss_->evaluate(predictions, targets, losses_, gradient);
    weigh(gradient, sample_weights);
    step.record.loss = losses_.mean();

    auto weights = new_points_.take(gradient);
    weights *= -step.eta / static_cast<double>(samples.rows());
    require_bounded(is_within_bounds(step), "The predictions have", step.record.loss, "mini-batch",
                    "Choose a smaller learning rate, or scale the targets.");
    const Move move = plan(step, samples);
    function_.prepare(move);
    const bool solves = newton_ && !scouts_;
    if (solves) {
      step.record.loss = newton_->prepare(function_, samples, batch_, targets, move.active);
    }
    const StepRecord record = finish(step, function_.apply(move));
    if (solves) newton_->learn(function_, targets, sample_weights);
    return record;
  }

  template <typename Samples>
  void check(const Samples& samples, const ConstRows& targets,
             const Eigen::Ref<const Vector>& sample_weights) const {
    check_block(samples, targets, sample_weights);
    loss_->check_targets(targets, outputs());
    require(!newton_ || sample_weights.size() == 0 || sample_weights.minCoeff() >= 0,
            "A sample weight is negative: give numbers of at least 0.");
  }

  void require_unchanged_since(const Refit& refit) const {
    require(refit.batches == batches(), "The model has learned since the refit was begun.");
  }

  LossPtr loss_;
  std::optional<Newton> newton_;
  bool scouts_ = false;

  Widened widened_;
  RowBuffer gradient_;
  Vector losses_;
};

}  // namespace parsimon
