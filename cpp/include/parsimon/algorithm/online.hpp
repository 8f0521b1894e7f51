#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/averaging.hpp"
#include "parsimon/algorithm/learner.hpp"
#include "parsimon/algorithm/newton.hpp"
#include "parsimon/loss/classification.hpp"
#include "parsimon/rkhs/compression.hpp"
#include "parsimon/rkhs/output_change.hpp"
#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/schedule/step.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

struct OnlineSettings {
  StepSchedule step = StepSchedule::constant(0.1);
  Compression compression = BudgetSchedule::fixed(0);
  double regularization = 0;
  // Whether predictions come from an average of the iterates, weighted towards the latest.
  bool average = false;
  // Whether they come from weights that are solved, and how; then there is no average.
  std::optional<NewtonSettings> newton = std::nullopt;
  // Of the average, if there is one.
  Memory memory = {};

  // Whether there are weights that predict beside those that are stepped.
  bool has_predictor() const { return average || newton; }
};

// The samples of a mini-batch that a step adds to a function: those that have a weight.
struct NewPoints {
  std::vector<Index> active;
  RowBuffer weights;  // one row for each of them

  // all: one row of weights for each sample of the mini-batch.
  RowBuffer::Map take(const ConstRows& all) {
    active.clear();
    for (Index i = 0; i < all.rows(); ++i) {
      Index c = 0;
      while (c < all.cols() && all(i, c) == 0) ++c;
      if (c < all.cols()) active.push_back(i);
    }
    auto taken = weights.resize(static_cast<Index>(active.size()), all.cols());
    for (Index k = 0; k < taken.rows(); ++k) taken.row(k) = all.row(sample(k));
    return taken;
  }

  // Which sample of the mini-batch the k-th of them is.
  Index sample(Index k) const { return active[static_cast<std::size_t>(k)]; }
};

// The driver of every algorithm that learns one function f in a reproducing kernel Hilbert space,
// mini-batch by mini-batch:
//
//   f <- compress((1 - eta lambda) f + sum_i w_i k(x_i, .), eps)
//
// An algorithm says where the weights w_i come from. One mini-batch of it reads
//
//   Step step = begin(samples.rows(), share);               the step size eta and the budget eps
//   auto predictions = evaluate(samples);                   f(x_i)
//   ... the gradient of the objective, step.record.loss ...
//   auto weights = new_points_.take(gradient);              of the samples that have one
//   weights *= -step.eta / samples.rows();
//   require_bounded(...);                                   nothing has changed so far
//   return finish(step, function_.add(plan(step, samples)));
//
// A mini-batch in which every gradient is zero adds nothing and is not compressed. One of fewer
// than batch_size samples takes their share of eta and eps. If a step throws, the model is as it
// was before that step. Not thread safe.
class Online : public Learner {
 public:
  const OnlineSettings& settings() const { return settings_; }
  const SparseFunction& function() const { return function_; }
  const Dictionary& dictionary() const { return function_.dictionary(); }
  Index features() const { return dictionary().features(); }
  Index outputs() const { return outputs_; }
  Index model_order() const { return function_.model_order(); }
  // 1 if the target of an adaptive budget asks for too many points, -1 if for too few, else 0.
  int target_out_of_reach() const {
    const BudgetSchedule& budget = settings_.compression.budget();
    return budget.at_floor() - budget.at_ceiling();
  }

  // What was left to the caller's judgement, as it was at the first mini-batch.
  double learning_rate() const { return settings_.step.at(0); }
  double budget() const { return settings_.compression.budget().at(learning_rate()); }
  double regularization() const { return settings_.regularization; }

  // From now on, what the average remembers is this.
  void set_memory(const Memory& memory) {
    memory.check();
    settings_.memory = memory;
  }
  const Averaging& averaging() const { return averaging_; }

  // From now on, it is told when the stream has changed, between two mini-batches, and does not
  // find out itself. Only what adapts its memory forgets then.
  void listen() { drift_detector().listen(); }
  void raise_alarm() {
    drift_detector().raise_alarm();
    note_change();
  }

  // values = f at the points: the average of the iterates if there is one, else the last.
  template <typename Points>
  void predict(const Points& points, Rows values) const {
    require_features(points.cols(), "points");
    const RowMatrix weights = prediction_weights();
    parsimon::evaluate(dictionary(), weights, points, values);
  }

  RowMatrix prediction_weights() const {
    RowMatrix weights = function_.predictor_weights();
    if (!settings_.has_predictor()) weights *= scale();
    return weights;
  }

  KernelExpansion expansion() const { return {dictionary(), prediction_weights()}; }
  // What is stepped, whether it predicts or not.
  KernelExpansion iterate() const { return stepped().expansion(0, outputs_); }
  bool has_scout() const { return scout_.has_value(); }

  // The function becomes another one, from which learning goes on.
  void replace(const ConstRows& points, const ConstRows& weights) {
    require_features(points.cols(), "points");
    require(points.rows() == weights.rows() && weights.cols() == outputs_,
            "The weights must have one row for each point and " + std::to_string(outputs_) +
                " columns, one for each output.");
    require(points.allFinite() && is_bounded(weights), "The points and weights must be finite.");
    for (Index i = 0; i < model_order(); ++i) {
      require(!dictionary().is_protected(i),
              "The nodes of a grid are always points of the model, so its function cannot be "
              "replaced by another.");
    }
    function_.replace(points, weights / (settings_.has_predictor() ? 1.0 : scale()));
  }

  // Where a model that is read back had got to.
  void restore(SparseFunction function, Index samples, Index batches, Trace trace) {
    function_ = std::move(function);
    if (settings_.newton) function_.keep_statistics();
    follow(samples, batches, std::move(trace));
    averaging_.restore(batches);
  }
  void restore_averaging(const Vector& state) { averaging_.restore(state); }
  void restore_scout(SparseFunction scout) { scout_ = std::move(scout); }
  const SparseFunction& scout_function() const { return *scout_; }

 protected:
  // regularizer_scale: the regularizer is (this * lambda / 2) ||f||^2.
  Online(KernelPtr kernel, OnlineSettings settings, Index features, Index outputs,
         double regularizer_scale = 1)
      : settings_(std::move(settings)),
        outputs_(outputs),
        function_(std::move(kernel), features, settings_.has_predictor() ? 2 * outputs : outputs,
                  outputs),
        regularizer_scale_(regularizer_scale) {
    require_stable(regularizer_scale);
    settings_.compression.check(dictionary().kernel());
    settings_.memory.check();
    if (!settings_.newton) return;
    require(!settings_.average, "Weights that are solved are not averaged.");
    const Compression& how = settings_.compression;
    require(how.budget().at(1) > 0 || how.max_points() < kUnlimited,
            "Weights can only be solved where points go: give a budget, or a cap on the points.");
    function_.keep_statistics();
    if (!is_komp(how.way())) {
      scout_.emplace(dictionary().kernel_pointer(), features, outputs, outputs);
    }
  }
  Online(const Online&) = default;
  Online(Online&&) = default;
  Online& operator=(const Online&) = default;
  Online& operator=(Online&&) = default;
  ~Online() = default;

  // Class i becomes class places[i] of so many, judged by this loss; the others are new. Their
  // outputs begin where samples that are predicted well still are: one margin below the output of
  // the right class, or as unlikely as what has never been seen.
  void change_classes(const std::vector<Index>& places, Index classes, const Loss& loss) {
    require_stable(loss.regularizer_scale());
    OutputChange change = OutputChange::of_classes(outputs_, places, classes,
                                                   detail::outputs_of_classes(loss, classes));
    const auto known = static_cast<double>(places.size());
    const bool is_probable = dynamic_cast<const ProbabilisticLoss*>(&loss) != nullptr;
    change.fresh_value = is_probable ? -std::log1p(static_cast<double>(samples())) : -1 / known;
    function_.change_outputs(change);
    if (scout_) scout_->change_outputs(change);
    outputs_ = change.map.cols();
    regularizer_scale_ = loss.regularizer_scale();
  }

  // What is learned is this multiple of the function that is kept.
  virtual double scale() const { return 1; }

  // -- before a mini-batch -----------------------------------------------------------------------

  void require_features(Index features, const char* what) const {
    if (features == this->features()) return;
    throw Error("The " + std::string(what) + " have " + std::to_string(features) +
                " features, but the model was made for " + std::to_string(this->features()) + ".");
  }

  // Of a whole block: samples in double or single precision.
  template <typename Samples>
  void check_block(const Samples& samples, const ConstRows& targets,
                   const Eigen::Ref<const Vector>& sample_weights) const {
    require_features(samples.cols(), "samples");
    require(targets.rows() == samples.rows() &&
                (sample_weights.size() == 0 || sample_weights.size() == samples.rows()),
            "There must be as many targets and sample weights as samples.");
    require(samples.allFinite() && sample_weights.allFinite() && targets.allFinite(),
            "The samples, targets and sample weights must be finite.");
  }

  // Those of a mini-batch, if there are any.
  static Eigen::Ref<const Vector> part_of(const Eigen::Ref<const Vector>& sample_weights,
                                          const MiniBatches& part) {
    const bool none = sample_weights.size() == 0;
    return sample_weights.segment(none ? 0 : part.start(), none ? 0 : part.count());
  }

  // -- the steps of a mini-batch -----------------------------------------------------------------

  struct Step {
    Index count;  // samples
    double eta;   // their share of the step size
    StepRecord record;
  };

  Step begin(Index count, double share) {
    make_room();
    const double eta = settings_.step.at(batches());
    Step step{count, share * eta, {}};
    // A budget that overflows allows everything; what is recorded stays a number.
    step.record.budget = std::min(share * settings_.compression.budget().at(eta),
                                  std::numeric_limits<double>::max());
    return step;
  }

  // f at the samples.
  RowBuffer::Map evaluate(const ConstRows& samples) {
    stepped().compare(samples, batch_);
    auto predictions = predictions_.resize(samples.rows(), outputs_);
    stepped().evaluate(batch_, predictions);
    return predictions;
  }

  // A sample that weighs twice as much pulls twice as hard; no weights if there are none.
  static void weigh(Rows gradient, const Eigen::Ref<const Vector>& sample_weights) {
    for (Index i = 0; i < sample_weights.size(); ++i) gradient.row(i) *= sample_weights(i);
  }

  // A hinge loss does not see that a prediction is NaN.
  bool is_within_bounds(const Step& step) const {
    return is_bounded(new_points_.weights.all()) && step.record.loss < kLargestWeight &&
           predictions_.all().allFinite();
  }

  // What the new points, and increments of the weights that there are, do to the function.
  Move plan(const Step& step, const ConstRows& samples,
            const ConstRows& increments = RowMatrix(0, 0)) {
    return {samples,
            batch_,
            new_points_.active,
            new_points_.weights.all(),
            1 - step.eta * settings_.regularization * regularizer_scale_,
            settings_.compression.limit(step.record.budget, this->samples() + step.count),
            increments};
  }

  // Once the function has moved, and nothing can fail any more.
  StepRecord finish(Step& step, const CompressionReport& report) {
    return finish(step, report, model_order());
  }
  StepRecord finish(Step& step, const CompressionReport& report, Index model_order) {
    StepRecord& record = step.record;
    record.active = static_cast<Index>(new_points_.active.size());
    record.compression_error = report.error;
    const double budget = std::max(record.budget, report.floor);
    record.budget = settings_.compression.allowed(budget, report.error);
    count_samples(step.count);
    count_batch();
    update_predictor(step.count);
    settings_.compression.observe(model_order);
    this->record(record, model_order);
    return record;
  }

  // What decides how much is forgotten.
  virtual DriftDetector& drift_detector() { return averaging_.drift(); }

  // The function that is stepped.
  SparseFunction& stepped() { return scout_ ? *scout_ : function_; }
  const SparseFunction& stepped() const { return scout_ ? *scout_ : function_; }

  OnlineSettings settings_;
  Index outputs_;
  SparseFunction function_;
  // Weights can only be solved where the points have a factor. Where points that are removed or
  // merged leave none, what is stepped is another function, which finds the points; the one that
  // predicts moves to them whenever it is solved.
  std::optional<SparseFunction> scout_;

  Batch batch_;  // the samples of evaluate()
  NewPoints new_points_;
  Vector losses_;  // of the samples of a mini-batch before the step, if they can show a change

 private:
  void require_stable(double regularizer_scale) const {
    const double rate = settings_.step.largest(), regularization = settings_.regularization;
    require(regularization >= 0 && rate * regularization * regularizer_scale < 1,
            "The learning rate " + format_number(rate) + " times the regularization " +
                format_number(regularization) + " must be at least 0 and below " +
                format_number(1 / regularizer_scale) +
                ": choose a smaller learning rate or regularization.");
  }

  // Where the average of the weights that are stepped is what predicts. Solved weights are set by
  // the solver (newton.hpp).
  void update_predictor(Index samples) {
    if (!settings_.average) return;
    const Index changes = averaging_.drift().changes();
    const double share = averaging_.share(settings_.memory, samples, losses_, model_order());
    if (averaging_.drift().changes() > changes) note_change();
    function_.average_in(share, scale());
  }

  double regularizer_scale_;
  Averaging averaging_;
  RowBuffer predictions_;
};

}  // namespace parsimon
