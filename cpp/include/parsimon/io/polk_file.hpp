#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/polk.hpp"
#include "parsimon/io/archive.hpp"
#include "parsimon/io/function_file.hpp"
#include "parsimon/kernel/parse.hpp"
#include "parsimon/loss/parse.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

namespace detail {

inline void save_maintenance(const std::optional<Maintenance>& maintenance, Archive& archive) {
  archive.set("maintenance", maintenance ? maintenance->name() : std::string("none"));
  archive.set("maintenance.parameters",
              maintenance ? maintenance->parameters() : std::vector<double>());
}

inline std::optional<Maintenance> load_maintenance(const Archive& archive) {
  // Files of the first version have none.
  if (!archive.has("maintenance") && !archive.has("maintenance.parameters")) return std::nullopt;
  const std::string name = archive.get_text("maintenance");
  const std::vector<double> parameters = to_std(archive.get_vector("maintenance.parameters"));
  if (name == "none" && parameters.empty()) return std::nullopt;
  return Maintenance::restore(name, parameters);
}

}  // namespace detail

// Everything that a POLK model is, so that training can go on as if it had not stopped.
inline Archive to_archive(const Polk& polk) {
  const PolkSettings& settings = polk.settings();
  Archive archive;
  archive.set("algorithm", std::string("polk"));
  archive.set("kernel", polk.function().dictionary().kernel().describe());
  archive.set("loss", settings.loss->describe());
  detail::save_schedules(settings.step, settings.budget, archive);
  archive.set("regularization", settings.regularization);
  archive.set("average", settings.average ? 1 : 0);
  detail::save_maintenance(settings.maintenance, archive);
  archive.set("features", polk.features());
  archive.set("outputs", polk.outputs());
  archive.set("samples", polk.samples());
  archive.set("batches", polk.batches());
  archive.set("trace", detail::trace_matrix(polk.trace()));
  detail::save_function(polk.function(), archive);
  return archive;
}

// The inverse. `kernel` stands in for one that cannot be written down (a user's function).
inline Polk polk_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "polk");
  if (!kernel) kernel = parse_kernel(archive.get_text("kernel"));
  const detail::Sizes sizes(archive);
  const bool average = archive.get_integer("average") != 0;
  const BudgetSchedule budget = detail::load_budget(archive);
  const StepSchedule step = detail::load_step(archive);
  auto function = detail::load_function(archive, kernel, sizes.features,
                                        (average ? 2 : 1) * sizes.outputs, sizes.outputs);
  Polk polk(kernel,
            {parse_loss(archive.get_text("loss")), step, budget,
             archive.get_number("regularization"), average, detail::load_maintenance(archive)},
            sizes.features, sizes.outputs);
  polk.restore(std::move(function), sizes.samples, sizes.batches, detail::load_trace(archive));
  return polk;
}

}  // namespace parsimon
