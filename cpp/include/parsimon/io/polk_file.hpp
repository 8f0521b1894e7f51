#pragma once

#include <utility>

#include "parsimon/algorithm/polk.hpp"
#include "parsimon/io/archive.hpp"
#include "parsimon/io/function_file.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

namespace detail {

template <class File>
void fields(File& file, PolkSettings& settings) {
  fields(file, static_cast<OnlineSettings&>(settings));
  described(file, "loss", settings.loss, parse_loss);
}

// What has been said about the weights of a model, and what its solver remembers.
struct SolvedState {
  Statistics::State statistics;
  Newton::State newton;
};

template <class File>
void fields(File& file, SolvedState& state, Index size, Index outputs, Index target_columns,
            Index features) {
  Statistics::State& statistics = state.statistics;
  file("newton.numbers", state.newton.numbers, Newton::kNumbers);
  file("newton.pending", state.newton.pending, Archive::any_size, 2 + target_columns);
  file("newton.points", state.newton.points, state.newton.pending.rows(), features);
  lower_triangle(file, "statistics.normal", statistics.normal, size);
  file("statistics.right", statistics.right, size, outputs);
  file("statistics.solution", statistics.solution, size, outputs);
  if constexpr (File::reads) {
    require(statistics.normal.allFinite() && statistics.right.allFinite() &&
                is_bounded(statistics.solution),
            "The statistics in the model file are not finite.");
  }
}

}  // namespace detail

// Everything that a POLK model is, so that training can go on as if it had not stopped.
inline Archive to_archive(const Polk& polk) {
  Archive archive = detail::write("polk", detail::OnlineState<PolkSettings>::of(polk));
  if (!polk.is_solved()) return archive;
  detail::SolvedState state{polk.function().statistics().state(),
                            polk.newton().state(polk.target_columns(), polk.features())};
  detail::Writer file{archive};
  fields(file, state, polk.function().basis_size(), polk.outputs(), polk.target_columns(),
         polk.features());
  if (polk.noise()) file("noise", polk.noise()->state());
  if (polk.has_scout()) {
    detail::Writer of_scout{archive, "scout."};
    auto scout = detail::FunctionState::of(polk.scout_function());
    fields(of_scout, scout, polk.features(), polk.outputs());
  }
  return archive;
}

// The inverse. `kernel` stands in for one that cannot be written down (a user's function).
inline Polk polk_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "polk");
  const auto state = detail::read(
      archive, detail::OnlineState<PolkSettings>{std::move(kernel), {nullptr, OnlineSettings()}});
  const detail::Progress& progress = state.progress;
  Polk polk(state.kernel, state.settings, progress.features, progress.outputs);
  polk.restore(state.function(), progress.samples, progress.batches, progress.trace);
  state.finish(polk);
  if (polk.is_solved()) {
    detail::SolvedState solved;
    detail::Reader file{archive};
    const Index size = archive.get_integer("factor.size");
    fields(file, solved, size, polk.outputs(), polk.target_columns(), polk.features());
    if (polk.has_scout()) {
      detail::Reader of_scout{archive, "scout."};
      detail::FunctionState scout;
      fields(of_scout, scout, polk.features(), polk.outputs());
      polk.restore_scout(scout.function(state.kernel, polk.outputs()));
    }
    polk.restore_newton(solved.statistics, solved.newton);
    if (polk.noise()) polk.restore_noise(archive.get_vector("noise"));
  }
  return polk;
}

}  // namespace parsimon
