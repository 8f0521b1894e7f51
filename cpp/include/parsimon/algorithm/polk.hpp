#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "parsimon/algorithm/newton.hpp"
#include "parsimon/algorithm/noise.hpp"
#include "parsimon/algorithm/online.hpp"
#include "parsimon/algorithm/posterior.hpp"
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
    if (!settings_.newton) return;
    newton_.emplace(*settings_.newton, loss_);
    if (scout_) newton_->follow_scout();
    if (loss_->is_squared()) noise_.emplace(settings_.newton->half_life);
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

  // Class i becomes class places[i] of so many, judged by this loss; the others are new. They may
  // come at any time: what has been learned about those there are stays as it is.
  void add_classes(const std::vector<Index>& places, Index classes, LossPtr loss) {
    require(!scouts_ && (!newton_ || loss->has_curvature()),
            "No classes can be added before the weights of a model are solved, or with a loss that "
            "has no second-order solver.");
    change_classes(places, classes, *loss);
    if (newton_) newton_->add_classes(places, loss);
    loss_ = std::move(loss);
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

  // The same for samples that others have seen, on a copy of this model.
  void add_to_refit(Refit& refit, const LeastSquares::Sums& sums) const {
    require_unchanged_since(refit);
    refit.problem.add(sums);
  }

  void finish_refit(const Refit& refit) {
    require_unchanged_since(refit);
    const LeastSquares& problem = refit.problem;
    const LeastSquares::Solution solution = problem.solve(settings_.regularization);
    const RowMatrix weights = problem.weights(function_, solution);
    if (!weights.allFinite()) throw DivergenceError("The least-squares fit is not finite.");
    function_.function_weights() = weights;
    function_.predictor_weights() = weights;
    if (!newton_) return;
    assume(problem.normal(), problem.right(), solution.coordinates, problem.count());
    noise_->assume(problem.differences(solution), problem.mean_outside(), problem.count());
  }

  // -- weights that are solved
  // ---------------------------------------------------------------------

  bool is_solved() const { return newton_.has_value(); }

  // From the beginning on, only the points are found; then either assume() says what the samples
  // have said about their weights, or learning goes on from the weights that were stepped.
  void scout() {
    require(is_solved() && !scout_ && samples() == 0,
            "Only a model that has learned nothing yet can scout.");
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
  // Of solved weights: relative to the samples that are remembered.
  double regularization() const {
    if (!newton_ || newton_->remembered() == 0) return settings_.regularization;
    return newton_->ridge() / (newton_->remembered() * loss_->regularizer_scale());
  }
  const Newton& newton() const { return *newton_; }
  Index target_columns() const { return loss_->target_columns(outputs()); }
  void restore_newton(const Statistics::State& statistics, const Newton::State& state) {
    require(function_.basis_size() == statistics.normal.rows() && function_.has_restored_factor(),
            "The statistics in the model file are not those of its dictionary.");
    // The samples that are kept lie about the origin of whatever has had points from the beginning.
    newton_->restore(state, stepped().dictionary(), outputs());
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
    restart_scout();
    if (!newton_) return;
    function_.statistics().restore({normal, right, solution});
    newton_->assume(samples, ridge);
    settings_.newton = newton_->settings();
  }

  // The function becomes another one; what is remembered of the samples is carried over to its
  // points, and says that this is the function they ask for. Samples that wait are forgotten.
  void replace(const ConstRows& points, const ConstRows& weights) {
    stop_scouting();
    Online::replace(points, weights);
    if (!newton_) return;
    const RowMatrix solution = function_.predictor_coordinates();
    RowMatrix normal = function_.statistics().normal();
    for (Index i = 0; i < normal.rows(); ++i) {
      for (Index k = 0; k < i; ++k) normal(k, i) = normal(i, k);
    }
    RowMatrix right(solution.rows(), solution.cols());
    linalg::multiply(normal, solution, right);
    right += newton_->ridge() * solution;
    assume(normal, right, solution, newton_->remembered());
  }

  // KOMP on the function that predicts, once more; then weights are solved for those that are left,
  // from what all samples have said.
  CompressionReport compress(const Limit& limit) {
    require(is_solved(), "Only a model whose weights are solved can be compressed and go on.");
    Before next{function_, scout_, *newton_};
    next.function.function_weights() = next.function.predictor_weights().eval();
    const CompressionReport report = next.function.compress(limit);
    next.newton.compare(next.function);
    next.newton.solve(next.function);
    if (next.scout) restart(*next.scout, next.function);
    // What was computed takes the place of what there was, or nothing does.
    exchange(next);
    return report;
  }

  // How well the function that predicts is known, and the noise of the targets, both for the
  // squared loss. The first is kept as long as nothing is learned.
  std::shared_ptr<Posterior> posterior() {
    require(noise_.has_value(),
            "The standard deviation of predictions is known for the squared loss and the solver "
            "newton, which keeps the statistics that tell it.");
    const std::pair<Index, Index> now{samples(), newton_->solutions()};
    if (posterior_ && posterior_at_ == now) return posterior_;
    RowBuffer lower;
    require(newton_->precision(function_, lower), "The statistics of the model are not finite.");
    posterior_ = std::make_shared<Posterior>(Span(dictionary(), function_.factor()), lower.all(),
                                             newton_->ridge());
    posterior_at_ = now;
    return posterior_;
  }
  // Empty if it is not known.
  Vector noise_variance() const { return noise_ ? noise_->variance(newton_->ridge()) : Vector(); }
  const std::optional<Noise>& noise() const { return noise_; }
  void restore_noise(const Vector& state) { noise_->restore(state, outputs()); }

  // The coordinates of the function that predicts.
  RowMatrix solution() const {
    require(is_solved(), "The weights of this model are not solved.");
    if (scouts_) return RowMatrix::Zero(function_.basis_size(), outputs());
    return function_.statistics().solution();
  }

 private:
  // All that is changed where weights are solved.
  struct Before {
    SparseFunction function;
    std::optional<SparseFunction> scout;
    Newton newton;
  };

  DriftDetector& drift_detector() override {
    return newton_ ? newton_->drift() : Online::drift_detector();
  }

  StepRecord advance(const ConstRows& samples, const ConstRows& targets,
                     const Eigen::Ref<const Vector>& sample_weights, double share) {
    Step step = begin(samples.rows(), share);
    const auto predictions = evaluate(samples);
    auto gradient = gradient_.resize(samples.rows(), outputs());
    reshape(losses_, samples.rows());
    loss_->evaluate(predictions, targets, losses_, gradient);
    weigh(gradient, sample_weights);
    step.record.loss = losses_.mean();

    auto weights = new_points_.take(gradient);
    weights *= -step.eta / static_cast<double>(samples.rows());
    require_bounded(is_within_bounds(step), "The predictions have", step.record.loss, "mini-batch",
                    "Choose a smaller learning rate, or scale the targets.");
    const Move move = plan(step, samples);
    stepped().prepare(move);
    const bool solves = newton_ && !scouts_;
    if (solves) step.record.loss = prepare_newton(samples, targets);
    const double outside = measures_outside(samples.rows()) ? first_outside(sample_weights) : -1;
    const StepRecord record = solves ? advance_solved(step, move, targets, sample_weights)
                                     : finish(step, stepped().apply(move));
    if (outside >= 0) noise_->observe_outside(outside);
    return record;
  }

  // The same of a model whose weights are solved, once all is prepared.
  StepRecord advance_solved(Step& step, const Move& move, const ConstRows& targets,
                            const Eigen::Ref<const Vector>& sample_weights) {
    std::optional<Noise> noise = noise_;
    if (noise) noise->observe(newton_->judged(), targets, sample_weights);
    // Most steps only keep their samples.
    std::optional<Before> before;
    const bool solves = newton_->is_due();
    if (solves && scout_) {
      before.emplace(Before{function_, scout_, *newton_});
    } else if (solves) {
      function_.statistics().remember();
      newton_->remember();
    }
    const Index changes = newton_->drift().changes();
    try {
      std::optional<Trial> trial;
      if (scout_ && newton_->is_due()) trial = try_points_of_scout();
      const CompressionReport& report = stepped().apply(move);
      // Points that merging has made are new to the samples that are kept.
      if (newton_->is_due() && move.limit.way == Way::unite) newton_->expect(dictionary());
      const Index order = model_order();
      newton_->learn(function_, targets, sample_weights);
      if (trial) judge(*trial, targets, sample_weights);
      noise_.swap(noise);
      const StepRecord record = finish(step, report, order);
      if (newton_->drift().changes() > changes) note_change();
      newton_->settle();
      return record;
    } catch (...) {
      if (before) {
        exchange(*before);
      } else {
        stepped().undo();
        if (solves) newton_->undo();
      }
      throw;
    }
  }

  void exchange(Before& other) noexcept {
    std::swap(function_, other.function);
    scout_.swap(other.scout);
    std::swap(*newton_, other.newton);
  }

  // The function that predicts on other points, as an offer.
  struct Trial {
    SparseFunction function;
    Newton newton;
  };

  // The points that the scout has found by now. Where all points have stayed and others have come,
  // nothing is lost, and the function moves to them at once; then there is nothing to try.
  std::optional<Trial> try_points_of_scout() {
    if (function_.has_points_of(*scout_)) return std::nullopt;
    if (scout_->has_points_of(function_)) {
      newton_->expect(scout_->dictionary());
      function_.move_to(scout_->dictionary());
      return std::nullopt;
    }
    Trial trial{function_, *newton_};
    trial.newton.expect(scout_->dictionary());
    trial.function.move_to(scout_->dictionary());
    return trial;
  }

  // What was said about points that have gone is lost, and of new ones the past knows little:
  // points are exchanged only where the samples that are kept gain by it. Otherwise the scout
  // starts again.
  void judge(Trial& trial, const ConstRows& targets,
             const Eigen::Ref<const Vector>& sample_weights) {
    trial.newton.learn(trial.function, targets, sample_weights);
    if (trial.newton.kept_loss() < newton_->kept_loss()) {
      std::swap(function_, trial.function);
      std::swap(*newton_, trial.newton);
      scout_->take_weights(function_);
    } else {
      restart_scout();
    }
  }

  // Whatever finds the points goes on from the function that predicts.
  void restart_scout() {
    if (scout_) restart(*scout_, function_);
  }
  static void restart(SparseFunction& scout, const SparseFunction& function) {
    scout.restore(function.dictionary(), function.predictor_weights(), FactorState());
  }

  double prepare_newton(const ConstRows& samples, const ConstRows& targets) {
    if (!scout_) return newton_->prepare(function_, samples, batch_, targets, new_points_.active);
    function_.compare(samples, predictor_batch_);
    // As long as there are no points to predict with, these views have an origin of their own.
    predictor_batch_.views = batch_.views;
    return newton_->prepare(function_, samples, predictor_batch_, targets, {});
  }

  // The samples compared with the points that predict.
  const Batch& predictor_batch() const { return scout_ ? predictor_batch_ : batch_; }

  bool measures_outside(Index count) const {
    return noise_ && (samples() + count) / Noise::kApart > samples() / Noise::kApart;
  }

  // Of the first sample of the mini-batch: its weight times the squared norm of what lies outside
  // the span of the basis.
  double first_outside(const Eigen::Ref<const Vector>& sample_weights) {
    const Index size = function_.basis_size();
    const Index count = predictor_batch().kernel_values.columns();
    ensure_size(self_kernel_, count);
    dictionary().kernel().diagonal(predictor_batch().views.data(), self_kernel_.head(count));
    auto column = first_column_.resize(size, 1), coordinates = first_coordinates_.resize(size, 1);
    for (Index i = 0; i < size; ++i) column(i, 0) = predictor_batch().kernel_values.row(i)(0);
    if (size > 0) function_.factor().whiten(column, coordinates);
    double outside = self_kernel_(0);
    for (Index i = 0; i < size; ++i) outside -= coordinates(i, 0) * coordinates(i, 0);
    return std::max(0.0, outside) * (sample_weights.size() == 0 ? 1 : sample_weights(0));
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
  std::optional<Noise> noise_;
  std::shared_ptr<Posterior> posterior_;
  std::pair<Index, Index> posterior_at_;

  Widened widened_;
  Batch predictor_batch_;  // if there is a scout
  RowBuffer gradient_;
  RowBuffer first_column_;  // of the kernel values of a mini-batch
  RowBuffer first_coordinates_;
  Vector self_kernel_;
};

}  // namespace parsimon
