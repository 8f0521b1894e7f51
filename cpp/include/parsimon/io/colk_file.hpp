#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/policy_evaluation.hpp"
#include "parsimon/algorithm/risk.hpp"
#include "parsimon/io/archive.hpp"
#include "parsimon/io/function_file.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

namespace detail {

template <class File>
void fields(File& file, CompositionalSettings& settings) {
  fields(file, static_cast<OnlineSettings&>(settings));
  named(file, "tracking", settings.tracking);
}

struct CompositionalState {
  OnlineState<CompositionalSettings> online;
  Vector tracked = {};
  TraceOf<RiskRecord> trace = {};
  LatestSample latest = {};
};

// Only where single samples are paired with the one before, and not in older files.
template <class File>
void fields(File& file, LatestSample& latest) {
  Vector sample = latest.sample.transpose(), target = latest.target.transpose();
  std::vector<double> weights = {latest.weight, latest.relative_weight};
  bool is_there = latest.is_there();
  if constexpr (File::reads) is_there = file.archive.has("latest.sample");
  if (!is_there) return;
  file("latest.sample", sample);
  file("latest.target", target);
  file("latest.weights", weights, 2);
  require(
      std::isfinite(weights[0]) && weights[0] >= 0 && std::isfinite(weights[1]) && weights[1] >= 0,
      "The model file has impossible weights of its latest sample.");
  latest = {sample.transpose(), target.transpose(), weights[0], weights[1]};
}

template <class File>
void fields(File& file, CompositionalState& state) {
  fields(file, state.online);
  file("tracked", state.tracked);
  fields(file, "trace.risk", state.trace);
  fields(file, state.latest);
  require(state.trace.size() == state.online.progress.trace.size(),
          "The two traces in the model file are of different lengths.");
}

struct RiskState {
  LossPtr loss = nullptr;
  Risk risk = {};
};

// Infinity is no number in a file: no clip is 0.
template <class File>
void fields(File& file, RiskState& state) {
  described(file, "loss", state.loss, parse_loss);
  std::string name = state.risk.name();
  const double clip = std::isfinite(state.risk.clip) ? state.risk.clip : 0;
  std::vector<double> numbers = {state.risk.weight, state.risk.parameter, clip};
  file("risk", name);
  file("risk.parameters", numbers, 3);
  const double none = std::numeric_limits<double>::infinity();
  state.risk = {Risk::parse(name), numbers[0], numbers[1], numbers[2] == 0 ? none : numbers[2]};
}

template <class File>
void fields(File& file, PolicyEvaluationSettings& settings) {
  fields(file, static_cast<OnlineSettings&>(settings));
  file("gradient", settings.gradient);
  file("discount", settings.discount);
  named(file, "tracking", settings.tracking);
  File tracker{file.archive, "tracker."};
  fields(tracker, settings.tracker_compression);
}

struct PolicyEvaluationState {
  OnlineState<PolicyEvaluationSettings> online;
  FunctionState tracker = {};
};

template <class File>
void fields(File& file, PolicyEvaluationState& state) {
  fields(file, state.online);
  require(state.online.progress.outputs == 1, "The model file has impossible sizes.");
  File tracker{file.archive, "tracker."};
  fields(tracker, state.tracker, state.online.progress.features, 1);
}

}  // namespace detail

// Everything that a compositional model is, except its problem.
template <class Problem>
Archive to_archive(const Compositional<Problem>& model) {
  return detail::write("compositional",
                       detail::CompositionalState{
                           detail::OnlineState<CompositionalSettings>::of(model),
                           model.tracked().transpose(), model.risk_trace(), model.latest_sample()});
}

// The inverse, for a problem that the caller knows. `kernel` stands in for one that cannot be
// written down (a user's function).
template <class Problem>
Compositional<Problem> compositional_from_archive(const Archive& archive, Problem problem,
                                                  KernelPtr kernel = nullptr) {
  const auto state = detail::read(archive, detail::CompositionalState{{std::move(kernel), {}}});
  const auto& [known, settings, progress, learned, averaging] = state.online;
  Compositional<Problem> model(known, std::move(problem), settings, progress.features,
                               progress.outputs);
  model.restore(state.online.function(), state.tracked.transpose(), progress.samples,
                progress.batches, progress.trace, state.trace, state.latest);
  state.online.finish(model);
  return model;
}

inline Archive to_archive(const Colk& model) {
  return detail::write("colk", detail::RiskState{model.problem().loss(), model.problem().risk()},
                       to_archive<RiskProblem>(model));
}

inline Colk colk_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "colk");
  const auto [loss, risk] = detail::read(archive, detail::RiskState());
  return compositional_from_archive(archive, RiskProblem(loss, risk), std::move(kernel));
}

inline Archive to_archive(const PolicyEvaluation& model) {
  return detail::write(
      "policy_evaluation",
      detail::PolicyEvaluationState{detail::OnlineState<PolicyEvaluationSettings>::of(model),
                                    detail::FunctionState::of(model.tracker())});
}

inline PolicyEvaluation policy_evaluation_from_archive(const Archive& archive,
                                                       KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "policy_evaluation");
  const auto state = detail::read(archive, detail::PolicyEvaluationState{{std::move(kernel), {}}});
  const auto& [known, settings, progress, learned, averaging] = state.online;
  PolicyEvaluation model(known, settings, progress.features);
  model.restore(state.online.function(), state.tracker.function(known, 1), progress.samples,
                progress.batches, progress.trace);
  state.online.finish(model);
  return model;
}

}  // namespace parsimon
