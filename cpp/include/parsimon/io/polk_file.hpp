#pragma once

#include <string>
#include <utility>

#include "parsimon/algorithm/polk.hpp"
#include "parsimon/io/archive.hpp"
#include "parsimon/io/function_file.hpp"
#include "parsimon/kernel/parse.hpp"
#include "parsimon/loss/parse.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Everything that a POLK model is, so that training can go on as if it had not stopped.
inline Archive to_archive(const Polk& polk) {
  const PolkSettings settings = polk.settings();
  Archive archive;
  archive.set("algorithm", std::string("polk"));
  archive.set("kernel", polk.dictionary().kernel().describe());
  archive.set("loss", settings.loss->describe());
  detail::save_settings(settings, archive);
  detail::save_progress(polk, archive);
  detail::save_function(polk.function(), archive);
  return archive;
}

// The inverse. `kernel` stands in for one that cannot be written down (a user's function).
inline Polk polk_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "polk");
  if (!kernel) kernel = parse_kernel(archive.get_text("kernel"));
  const detail::Sizes sizes(archive);
  const PolkSettings settings(parse_loss(archive.get_text("loss")), detail::load_settings(archive));
  auto function =
      detail::load_function(archive, kernel, sizes.features, sizes.outputs, settings.average);
  Polk polk(kernel, settings, sizes.features, sizes.outputs);
  polk.restore(std::move(function), sizes.samples, sizes.batches, detail::load_trace(archive));
  return polk;
}

}  // namespace parsimon
