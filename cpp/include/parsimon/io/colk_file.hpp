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
#include "parsimon/kernel/parse.hpp"
#include "parsimon/loss/parse.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

namespace detail {

inline RowMatrix risk_trace_matrix(const TraceOf<RiskRecord>& trace) {
  const std::vector<RiskRecord> records = trace.records();
  RowMatrix matrix(static_cast<Index>(records.size()), 4);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const RiskRecord& r = records[i];
    matrix.row(static_cast<Index>(i)) << r.tracked, r.mean, r.dispersion, r.clipped;
  }
  return matrix;
}

inline TraceOf<RiskRecord> risk_trace_from(const RowMatrix& matrix) {
  require(matrix.allFinite(), "The trace in the model file is not finite.");
  TraceOf<RiskRecord> trace;
  for (Index i = 0; i < matrix.rows(); ++i) {
    trace.add({matrix(i, 0), matrix(i, 1), matrix(i, 2), matrix(i, 3)});
  }
  return trace;
}

}  // namespace detail

// Everything that a compositional model is, except its problem.
template <class Problem>
Archive to_archive(const Compositional<Problem>& model) {
  const CompositionalSettings settings = model.settings();
  Archive archive;
  archive.set("algorithm", std::string("compositional"));
  archive.set("kernel", model.dictionary().kernel().describe());
  detail::save_settings(settings, archive);
  detail::save_step(settings.tracking, archive, "tracking");
  detail::save_progress(model, archive);
  archive.set("tracked", model.tracked());
  archive.set("trace.risk", detail::risk_trace_matrix(model.risk_trace()));
  detail::save_function(model.function(), archive);
  return archive;
}

// The inverse, for a problem that the caller knows. `kernel` stands in for one that cannot be
// written down (a user's function).
template <class Problem>
Compositional<Problem> compositional_from_archive(const Archive& archive, Problem problem,
                                                  KernelPtr kernel = nullptr) {
  if (!kernel) kernel = parse_kernel(archive.get_text("kernel"));
  const detail::Sizes sizes(archive);
  const CompositionalSettings settings{detail::load_settings(archive),
                                       detail::load_step(archive, "tracking")};
  auto function =
      detail::load_function(archive, kernel, sizes.features, sizes.outputs, settings.average);
  Compositional<Problem> model(kernel, std::move(problem), settings, sizes.features, sizes.outputs);
  const RowMatrix trace = archive.get_matrix("trace", Archive::any_size, 6);
  model.restore(std::move(function), archive.get_vector("tracked").transpose(), sizes.samples,
                sizes.batches, detail::trace_from(trace),
                detail::risk_trace_from(archive.get_matrix("trace.risk", trace.rows(), 4)));
  return model;
}

inline Archive to_archive(const Colk& model) {
  Archive archive = to_archive<RiskProblem>(model);
  const Risk& risk = model.problem().risk();
  archive.set("algorithm", std::string("colk"));
  archive.set("loss", model.problem().loss()->describe());
  archive.set("risk", risk.name());
  // Infinity is no number in a file.
  archive.set("risk.parameters", std::vector<double>{risk.weight, risk.parameter,
                                                     std::isfinite(risk.clip) ? risk.clip : 0.0});
  return archive;
}

inline Colk colk_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "colk");
  const Vector parameters = archive.get_vector("risk.parameters", 3);
  Risk risk{Risk::parse(archive.get_text("risk")), parameters(0), parameters(1), parameters(2)};
  if (risk.clip == 0) risk.clip = std::numeric_limits<double>::infinity();
  return compositional_from_archive(
      archive, RiskProblem(parse_loss(archive.get_text("loss")), risk), std::move(kernel));
}

inline Archive to_archive(const PolicyEvaluation& model) {
  const PolicyEvaluationSettings settings = model.settings();
  Archive archive;
  archive.set("algorithm", std::string("policy_evaluation"));
  archive.set("kernel", model.dictionary().kernel().describe());
  archive.set("gradient", settings.gradient ? 1 : 0);
  archive.set("discount", settings.discount);
  detail::save_settings(settings, archive);
  detail::save_step(settings.tracking, archive, "tracking");
  detail::save_compression(settings.tracker_compression, archive, "tracker.");
  detail::save_progress(model, archive);
  detail::save_function(model.function(), archive);
  detail::save_function(model.tracker(), archive, "tracker.");
  return archive;
}

inline PolicyEvaluation policy_evaluation_from_archive(const Archive& archive,
                                                       KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "policy_evaluation");
  if (!kernel) kernel = parse_kernel(archive.get_text("kernel"));
  const detail::Sizes sizes(archive);
  PolicyEvaluationSettings settings;
  static_cast<OnlineSettings&>(settings) = detail::load_settings(archive);
  settings.gradient = archive.get_integer("gradient") != 0;
  settings.discount = archive.get_number("discount");
  settings.tracking = detail::load_step(archive, "tracking");
  settings.tracker_compression = detail::load_compression(archive, "tracker.");
  auto value = detail::load_function(archive, kernel, sizes.features, 1, settings.average);
  auto tracker = detail::load_function(archive, kernel, sizes.features, 1, false, "tracker.");
  PolicyEvaluation model(kernel, settings, sizes.features);
  model.restore(std::move(value), std::move(tracker), sizes.samples, sizes.batches,
                detail::load_trace(archive));
  return model;
}

}  // namespace parsimon
