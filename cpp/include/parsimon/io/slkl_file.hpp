#pragma once

#include <string>
#include <utility>
#include <vector>

#include "parsimon/io/archive.hpp"
#include "parsimon/io/function_file.hpp"
#include "parsimon/kernel/parse.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// A function that SLKL has learned.
inline Archive to_archive(const KernelExpansion& function) {
  const Dictionary& dictionary = function.dictionary();
  Archive archive;
  archive.set("algorithm", std::string("slkl"));
  archive.set("kernel", dictionary.kernel().describe());
  archive.set("features", dictionary.features());
  archive.set("outputs", function.outputs());
  archive.set("dictionary", dictionary.points());
  archive.set("dictionary.origin", dictionary.size() > 0 ? dictionary.origin() : RowVector());
  archive.set("weights", function.weights());
  return archive;
}

// The inverse. `kernel` stands in for one that cannot be written down (a user's function).
inline KernelExpansion slkl_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "slkl");
  if (!kernel) kernel = parse_kernel(archive.get_text("kernel"));
  const Index features = archive.get_integer("features");
  const Index outputs = archive.get_integer("outputs");
  detail::require_sizes(features, outputs);
  const RowMatrix points = archive.get_matrix("dictionary", Archive::any_size, features);
  const RowMatrix weights = archive.get_matrix("weights", points.rows(), outputs);
  const Vector origin =
      archive.get_vector("dictionary.origin", points.rows() > 0 ? features : Index{0});
  require(points.allFinite() && weights.allFinite() && origin.allFinite(),
          "The model file holds numbers that are not finite.");
  Dictionary dictionary = Dictionary::about(std::move(kernel), features, origin.transpose(), 0);
  std::vector<View> views;
  std::as_const(dictionary).make_views(points, views);
  for (Index i = 0; i < points.rows(); ++i) {
    dictionary.append(points.row(i), views.data(), i, false, i);
  }
  return {std::move(dictionary), weights};
}

}  // namespace parsimon
