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

}  // namespace detail

// Everything that a POLK model is, so that training can go on as if it had not stopped.
inline Archive to_archive(const Polk& polk) {
  return detail::write("polk", detail::OnlineState<PolkSettings>::of(polk));
}

// The inverse. `kernel` stands in for one that cannot be written down (a user's function).
inline Polk polk_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "polk");
  const auto state = detail::read(
      archive, detail::OnlineState<PolkSettings>{std::move(kernel), {nullptr, OnlineSettings()}});
  const detail::Progress& progress = state.progress;
  Polk polk(state.kernel, state.settings, progress.features, progress.outputs);
  polk.restore(state.function(), progress.samples, progress.batches, progress.trace);
  return polk;
}

}  // namespace parsimon
