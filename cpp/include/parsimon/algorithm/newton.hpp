#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "parsimon/algorithm/drift.hpp"
#include "parsimon/algorithm/parabolas.hpp"
#include "parsimon/loss/loss.hpp"
#include "parsimon/rkhs/kept_samples.hpp"
#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The weights that predict minimise
//
//   sum_i 2^(-age_i / half_life) c_i l(f(x_i), y_i) + (ridge + n ridge_per_sample) / 2 ||f||^2
//
// over the span of the basis, n the samples that are remembered.
struct NewtonSettings {
  double ridge = 1;
  double ridge_per_sample = 0;
  // In samples; infinite: nothing is forgotten.
  double half_life = std::numeric_limits<double>::infinity();
  // Whether memory is shortened while the losses are larger than the model expects, and bounded by
  // so many samples per point that it does not matter otherwise.
  bool adapts = false;

  void check() const {
    require(std::isfinite(ridge) && ridge >= 0 && std::isfinite(ridge_per_sample) &&
                ridge_per_sample >= 0,
            "A ridge must be finite and not negative.");
    require(half_life > 0,
            "The half-life is " + format_number(half_life) + " samples: give a positive number.");
  }
};

// What is known of a stream beside the statistics and the samples that are kept as they are.
class NewtonMemory {
 protected:
  struct Pending {
    double time;
    double weight;
  };

  DriftDetector drift_;
  double seen_ = 0;
  double unsolved_ = 0;
  double fresh_weight_ = 0;
  double remembered_ = 0;
  Index quiet_ = 0;
  Index solutions_ = 0;
  std::vector<Pending> pending_;
  std::vector<double> targets_;
};

// Weights that are solved from statistics rather than stepped (online Newton). Every sample is
// replaced by a parabola above its loss, and sums of parabolas are all that is kept of the past.
// For the squared loss this is exact recursive least squares.
//
// The latest samples that say something are kept for a while as they are: their parabolas are moved
// to where the function is with every solution, and points that join later still see them.
//
// Each mini-batch: prepare() before the function moves, which may throw and then has changed
// nothing that counts; learn() after, which asks no kernel. In between nothing is done for a sample
// but to keep it: all work is done in blocks, when there is a solution.
class Newton : private NewtonMemory {
 public:
  Newton(NewtonSettings settings, LossPtr loss) : settings_(settings), loss_(std::move(loss)) {
    settings_.check();
    require(loss_->has_curvature(),
            "The loss " + loss_->describe() + " has no second-order solver: use the solver sgd.");
  }

  const NewtonSettings& settings() const { return settings_; }
  const DriftDetector& drift() const { return drift_; }
  DriftDetector& drift() { return drift_; }
  // How much the samples that are remembered count in all.
  double remembered() const { return remembered_; }
  bool has_solved() const { return solutions_ > 0; }
  Index solutions() const { return solutions_; }
  // Samples that are kept as they are.
  Index pending() const { return static_cast<Index>(pending_.size()); }
  // Samples since the last solution.
  double unsolved() const { return unsolved_; }
  double ridge() const { return settings_.ridge + remembered_ * settings_.ridge_per_sample; }
  // What was predicted for the samples of prepare().
  ConstRows judged() const { return predictions_.all(); }
  // How much each of the samples that are kept counts by now.
  Vector pending_weights() const {
    Vector weights(pending());
    for (Index i = 0; i < weights.size(); ++i) {
      const Pending& sample = pending_[static_cast<std::size_t>(i)];
      weights(i) = sample.weight * std::exp2((sample.time + 1 - seen_) / settings_.half_life);
    }
    return weights;
  }

  // newcomers: which of the samples may join the dictionary, in this order. Returns the mean loss
  // of the weights that predict, before they learn from the samples.
  double prepare(const SparseFunction& function, const ConstRows& samples, const Batch& batch,
                 const ConstRows& targets, const std::vector<Index>& newcomers) {
    // A step that failed has left some.
    kept_.truncate(pending());
    judge(function, batch, targets);
    ensure_capacity(pending_, pending_.size() + chosen_.size());
    ensure_capacity(targets_,
                    targets_.size() + chosen_.size() * static_cast<std::size_t>(targets.cols()));
    kept_.append(function.dictionary(), samples, batch.views.data(), chosen_,
                 batch.kernel_values.all());
    due_ = is_due(function.basis_size(), targets.rows());
    if (due_) kept_.compare(function.dictionary(), batch.views.data(), newcomers);
    double mean = 0;
    for (const double loss : losses_) mean += loss / static_cast<double>(targets.rows());
    return mean;
  }

  // Whether learn() will solve.
  bool is_due() const { return due_; }

  // After prepare(), if the function will have other points by the time of learn().
  void expect(const Dictionary& points) { kept_.compare(points); }

  // From now on, the first samples wait for points, and each solution is judged by the samples that
  // are kept: the sum of their losses.
  void follow_scout() { follows_scout_ = true; }
  double kept_loss() const { return kept_loss_; }

  // Once the step is over. sample_weights: empty, or one for each sample. If it does not solve, it
  // throws nothing; if it does and throws, this and the function are to be undone or thrown away.
  void learn(SparseFunction& function, const ConstRows& targets,
             const Eigen::Ref<const Vector>& sample_weights) {
    const auto weight = [&](Index i) { return sample_weights.size() == 0 ? 1 : sample_weights(i); };
    quiet_ = quiet_then_;
    const bool counts = function.basis_size() > 0 || (follows_scout_ && seen_ == 0);
    if (!counts) chosen_.clear();
    for (const Index i : chosen_) {
      pending_.push_back({seen_ + static_cast<double>(i), weight(i)});
      const double* target = targets.data() + i * targets.outerStride();
      targets_.insert(targets_.end(), target, target + targets.cols());
    }
    const double fade = std::exp2(-1 / settings_.half_life);
    for (Index i = 0; i < targets.rows(); ++i) {
      fresh_weight_ = fade * fresh_weight_ + weight(i);
      if (settings_.adapts && has_solved()) drift_.observe(losses_[static_cast<std::size_t>(i)]);
    }
    seen_ += static_cast<double>(targets.rows());
    unsolved_ += static_cast<double>(targets.rows());
    if (due_ && function.basis_size() > 0) solve(function);
  }

  // After prepare(): from now on, and until settle(), undo() brings back what there is.
  void remember() {
    kept_.remember();
    before_ = *this;
  }
  void undo() noexcept {
    std::swap(static_cast<NewtonMemory&>(*this), before_);
    kept_.undo();
  }
  void settle() noexcept { kept_.settle(); }

  // Ahead of solve() where there is no step: all that it needs of the kernel.
  void compare(const SparseFunction& function) {
    kept_.truncate(pending());
    kept_.compare(function.dictionary());
  }

  // The weights that predict become those of the minimiser.
  void solve(SparseFunction& function) {
    Statistics& statistics = function.statistics();
    forget(statistics);
    RowMatrix solution = statistics.solution();
    Parabolas parabolas = choose_who_leaves(function, solution);
    const Index count = pending();
    Vector& curvature = parabolas.curvature;
    auto features = features_.resize(statistics.size(), count);
    if (count > 0) function.factor().whiten(kept_.found(), features);
    statistics.add_curvature(features, leaving_, at(curvature, leaving_));

    bool solvable = factorise(statistics, features, curvature);
    RowMatrix right = statistics.right();
    if (solvable) parabolas.add_asked(features, right);
    for (int round = 0; solvable; ++round) {
      linalg::solve_cholesky(lower_.all(), right);
      const double moved = (right - solution).squaredNorm();
      solution.swap(right);
      if (count == 0 || loss_->is_squared()) break;
      const bool is_last = round + 1 == kRounds || moved < kStill * solution.squaredNorm();
      parabolas.move(*loss_, targets_, features, solution, is_last ? nullptr : &right);
      if (is_last) break;
      right += statistics.right();
      // One factor serves all rounds, as long as the parabolas still lie above the losses: those of
      // samples that were far off are too wide once they are not.
      const Vector grown =
          (parabolas.weights.cwiseProduct(parabolas.bend) - curvature).cwiseMax(0.0);
      if (grown.sum() <= kRevise * curvature.sum()) continue;
      curvature += grown;
      statistics.add_curvature(features, leaving_, at(grown, leaving_));
      solvable = factorise(statistics, features, curvature);
      if (!solvable) break;
      right = statistics.right();
      parabolas.add_asked(features, right);
    }
    if (solvable && is_bounded(solution)) {
      statistics.solution() = solution;
      function.set_predictor(solution);
      solutions_ += 1;
    }
    parabolas.ask();
    statistics.add_right(features, leaving_, parabolas.wanted);
    if (follows_scout_) {
      parabolas.move(*loss_, targets_, features, statistics.solution());
      kept_loss_ = parabolas.weights.dot(parabolas.values);
    }
    keep_only(staying_);
    fresh_weight_ = unsolved_ = 0;
  }

  // For the squared loss: L with L L' = H + ridge I, with all samples that count by now. False if
  // there is none, because H is not finite.
  bool precision(const SparseFunction& function, RowBuffer& lower) const {
    Statistics statistics = function.statistics();
    statistics.forget(std::exp2(-unsolved_ / settings_.half_life));
    RowMatrix features(statistics.size(), pending());
    std::vector<Index> all(pending_.size());
    std::iota(all.begin(), all.end(), Index{0});
    if (pending() > 0) {
      KeptSamples kept = kept_;
      kept.truncate(pending());
      kept.compare(function.dictionary());
      function.factor().whiten(kept.values(function.dictionary(), statistics.size()), features);
    }
    return statistics.factorise(ridge(), features, all, pending_weights(), lower);
  }

  // Class i of the samples that are kept is class places[i] from now on, and judged by this loss.
  void add_classes(const std::vector<Index>& places, LossPtr loss) {
    loss_ = std::move(loss);
    for (double& target : targets_) {
      target = static_cast<double>(places[static_cast<std::size_t>(target)]);
    }
  }

  // The statistics have been found by other means, from so many samples; with another ridge, maybe.
  void assume(double samples, std::optional<double> ridge) {
    if (ridge) {
      settings_.ridge = *ridge;
      settings_.ridge_per_sample = 0;
      settings_.check();
    }
    seen_ = remembered_ = samples;
    fresh_weight_ = unsolved_ = 0;
    pending_.clear();
    targets_.clear();
    kept_.truncate(0);
    solutions_ += 1;
  }

  // What a file keeps beside the statistics, and its inverse.
  struct State {
    Vector numbers;
    RowMatrix pending;  // time, weight and targets of each
    RowMatrix points;   // the pending samples themselves
  };

  static constexpr Index kNumbers = 6 + DriftDetector::kNumbers;

  State state(Index target_columns, Index features) const {
    const auto count = static_cast<Index>(pending_.size());
    const std::vector<double> drift = drift_.state();
    State state{Vector(kNumbers), RowMatrix(count, 2 + target_columns), RowMatrix(0, features)};
    state.numbers << seen_, unsolved_, fresh_weight_, remembered_, static_cast<double>(quiet_),
        static_cast<double>(solutions_), Eigen::Map<const Vector>(drift.data(), drift.size());
    for (Index i = 0; i < count; ++i) {
      const Pending& sample = pending_[static_cast<std::size_t>(i)];
      state.pending(i, 0) = sample.time;
      state.pending(i, 1) = sample.weight;
      for (Index c = 0; c < target_columns; ++c) {
        state.pending(i, 2 + c) = targets_[static_cast<std::size_t>(i * target_columns + c)];
      }
    }
    if (count > 0) state.points = kept_.points().topRows(count);
    return state;
  }

  // dictionary: of the function that these samples belong to.
  void restore(const State& state, const Dictionary& dictionary, Index outputs) {
    const Index count = state.pending.rows();
    bool sensible = state.numbers.size() == kNumbers && state.numbers.allFinite() &&
                    (state.numbers.array() >= 0).all() && state.pending.allFinite() &&
                    state.points.allFinite() && state.points.rows() == count;
    for (Index i = 0; sensible && i < count; ++i) {
      sensible = state.pending(i, 0) < state.numbers(0) && state.pending(i, 1) >= 0;
    }
    require(sensible, "The numbers of the solver in the model file make no sense.");
    if (count > 0) loss_->check_targets(state.pending.rightCols(state.pending.cols() - 2), outputs);
    seen_ = state.numbers(0);
    unsolved_ = state.numbers(1);
    fresh_weight_ = state.numbers(2);
    remembered_ = state.numbers(3);
    quiet_ = static_cast<Index>(std::min(state.numbers(4), 0x1p53));
    solutions_ = static_cast<Index>(std::min(state.numbers(5), 0x1p53));
    drift_.restore({state.numbers.data() + 6, state.numbers.data() + kNumbers});
    pending_.clear();
    targets_.clear();
    for (Index i = 0; i < count; ++i) {
      const double* row = state.pending.data() + i * state.pending.cols();
      pending_.push_back({row[0], row[1]});
      targets_.insert(targets_.end(), row + 2, row + state.pending.cols());
    }
    kept_.truncate(0);
    if (count > 0) kept_.restore(dictionary, state.points);
  }

 private:
  // Of the samples that say nothing, every so manieth is counted, with this curvature.
  static constexpr Index kQuiet = 10;
  static constexpr double kQuietCurvature = 1;
  // Samples that are kept as they are.
  static constexpr Index kKept = 1024;
  // How often the parabolas of the latest samples are moved to where the function is by then.
  static constexpr int kRounds = 8;
  // If memory adapts: samples that are remembered at most, per point. Points come and go, and what
  // the past says of late ones is not exact: it must not outweigh the present for ever. The weights
  // are as uncertain as one sample in so many makes them, which nobody will notice.
  static constexpr double kMemory = 1000;
  // Less than this, relative to its squared norm, and the function stands still.
  static constexpr double kStill = 1e-4;
  // The share by which their curvature may be too small in all.
  static constexpr double kRevise = 0.5;
  // A solution costs as much as learning from a few samples per point, or for each sample that is
  // kept: there is one for every kPerPoint or kPerKept of these. Where there are few points it
  // costs next to nothing, and there is one for every points / kSmall per point, but never for less
  // than kEnough. In the beginning there is one whenever the samples have grown by an eighth, or by
  // more where there are more than kMany points; and several within a half-life.
  static constexpr double kEnough = 64;
  static constexpr double kPerPoint = 4;
  static constexpr double kPerKept = 1.25;
  static constexpr double kSmall = 50;
  static constexpr double kMany = 1000;
  static constexpr double kGrowth = 8;

  // Chooses the samples that are worth keeping.
  void judge(const SparseFunction& function, const Batch& batch, const ConstRows& targets) {
    const Index count = targets.rows(), outputs = function.predictor_weights().cols();
    auto predictions = predictions_.resize(count, outputs);
    function.evaluate_predictor(batch, predictions);
    ensure_size(values_, count);
    ensure_size(curvature_, count);
    auto gradient = gradient_.resize(count, outputs);
    loss_->evaluate(predictions, targets, values_.head(count), gradient);
    losses_.assign(values_.data(), values_.data() + count);
    loss_->majorise(predictions, targets, values_.head(count), gradient, curvature_.head(count));
    chosen_.clear();
    quiet_then_ = quiet_;
    for (Index i = 0; i < count; ++i) {
      // Samples that say nothing hold the function where it is; a tenth of them will do.
      if (curvature_(i) > 0 || ++quiet_then_ % kQuiet == 0) chosen_.push_back(i);
    }
  }

  // With so many more samples.
  bool is_due(Index size, Index more) const {
    const auto points = static_cast<double>(size), fresh = static_cast<double>(more);
    double enough = std::max(kPerPoint * points, kPerKept * static_cast<double>(kKept));
    enough = std::min(enough, points * points / kSmall);
    enough = std::min(enough, settings_.half_life / kGrowth);
    if (drift_.is_drifting()) enough = std::min(enough, points / kGrowth);
    const double growth = std::max(1.0, points / kMany) / kGrowth;
    const double early = std::max(1.0, growth * (seen_ + fresh));
    return unsolved_ + fresh >= std::min(std::max(kEnough, enough), early);
  }

  // The past fades: by its half-life, and faster while the stream is changing.
  void forget(Statistics& statistics) {
    double by_age = std::exp2(-unsolved_ / settings_.half_life);
    double by_drift = 1;
    if (settings_.adapts) {
      const double most = kMemory * static_cast<double>(std::max<Index>(statistics.size(), 1));
      by_age *= std::min(1.0, most / (remembered_ + fresh_weight_));
      by_drift = drift_.memory_to_keep(remembered_, unsolved_, statistics.size());
      const double fresh = seen_ - unsolved_;
      for (Pending& sample : pending_) sample.weight *= sample.time < fresh ? by_drift : 1;
    }
    statistics.forget(by_age * by_drift);
    remembered_ = by_age * by_drift * remembered_ + fresh_weight_;
  }

  // With the curvature of those that stay; that of the others is part of H already.
  bool factorise(Statistics& statistics, const ConstRows& features, const Vector& curvature) {
    curved_.clear();
    for (const Index i : staying_) {
      if (curvature(i) > 0) curved_.push_back(i);
    }
    return statistics.factorise(ridge(), features, curved_, at(curvature, curved_), lower_);
  }

  static Vector at(const Vector& values, const std::vector<Index>& places) {
    Vector chosen(static_cast<Index>(places.size()));
    for (Index k = 0; k < chosen.size(); ++k)
      chosen(k) = values(places[static_cast<std::size_t>(k)]);
    return chosen;
  }

  // Which samples are kept no longer, and which of these count from now on. Those that say nothing
  // any more go first, then the oldest. The others of those that go are forgotten at once: they
  // have no part in the solution.
  Parabolas choose_who_leaves(const SparseFunction& function, const RowMatrix& solution) {
    const Index count = pending(), leaving = std::max<Index>(count - kKept, 0);
    Parabolas parabolas(count, solution.cols());
    if (count > 0) {
      RowMatrix lifted(solution.rows(), solution.cols());
      function.factor().unwhiten(solution, lifted);
      parabolas.move(*loss_, targets_, kept_.values(function.dictionary(), solution.rows()),
                     lifted);
    }
    parabolas.weights = pending_weights();
    Vector& curvature = parabolas.curvature;
    curvature = parabolas.weights.cwiseProduct(parabolas.bend);

    Index quiet = 0;
    for (Index i = 0; i < count; ++i) quiet += curvature(i) == 0 ? 1 : 0;
    Index quiet_leaving = std::min(quiet, leaving), others_leaving = leaving - quiet_leaving;
    staying_.clear();
    leaving_.clear();
    counting_.clear();
    for (Index i = 0; i < count; ++i) {
      const bool is_quiet = curvature(i) == 0;
      Index& left = is_quiet ? quiet_leaving : others_leaving;
      const bool stays = left == 0;
      if (!stays) {
        --left;
        if (is_quiet && ++quiet_ % kQuiet != 0) continue;
        if (is_quiet) curvature(i) = parabolas.weights(i) * kQuietCurvature;
        if (!(curvature(i) > 0)) continue;
      }
      (stays ? staying_ : leaving_).push_back(static_cast<Index>(counting_.size()));
      counting_.push_back(i);
    }
    if (static_cast<Index>(counting_.size()) < count) {
      parabolas.keep(counting_);
      keep_only(counting_);
    }
    return parabolas;
  }

  // Of the samples that are kept, and whose kernel values have been found.
  void keep_only(const std::vector<Index>& chosen) {
    const auto count = static_cast<std::size_t>(pending()), stay = chosen.size();
    if (stay == count) return;
    kept_.keep(chosen);
    const std::size_t columns = targets_.size() / count;
    for (std::size_t k = 0; k < stay; ++k) {
      const auto i = static_cast<std::size_t>(chosen[k]);
      pending_[k] = pending_[i];
      for (std::size_t c = 0; c < columns; ++c) {
        targets_[k * columns + c] = targets_[i * columns + c];
      }
    }
    pending_.resize(stay);
    targets_.resize(stay * columns);
  }

  NewtonSettings settings_;
  LossPtr loss_;
  KeptSamples kept_;  // those that are pending, and those of a step that is not over
  NewtonMemory before_;

  Index quiet_then_ = 0;           // once the samples that are judged have been learned from
  Workspace<RowBuffer> features_;  // the coordinates of the pending samples, one column each
  RowBuffer predictions_;
  RowBuffer gradient_;
  Vector values_;
  Vector curvature_;
  std::vector<double> losses_;
  std::vector<Index> chosen_;
  bool due_ = false;
  bool follows_scout_ = false;
  double kept_loss_ = 0;
  std::vector<Index> counting_;  // of the pending samples, those that have a part in a solution
  std::vector<Index> staying_;   // of these
  std::vector<Index> leaving_;
  std::vector<Index> curved_;
  Workspace<RowBuffer> lower_;  // the Cholesky factor of H
};

}  // namespace parsimon
