#pragma once

#include <utility>

#include "parsimon/io/archive.hpp"
#include "parsimon/io/function_file.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

namespace detail {

struct SlklState {
  KernelPtr kernel;
  Index outputs = 0;
  Points points = {};
  RowMatrix weights = {};
};

template <class File>
void fields(File& file, SlklState& state) {
  Index features = state.points.rows.cols();
  described(file, "kernel", state.kernel, parse_kernel);
  file("features", features);
  file("outputs", state.outputs);
  require_sizes(features, state.outputs);
  fields(file, state.points, features, false);
  file("weights", state.weights, state.points.rows.rows(), state.outputs);
}

}  // namespace detail

// A function that SLKL has learned.
inline Archive to_archive(const KernelExpansion& function) {
  const Dictionary& dictionary = function.dictionary();
  return detail::write("slkl",
                       detail::SlklState{dictionary.kernel_pointer(), function.outputs(),
                                         detail::Points::of(dictionary), function.weights()});
}

// The inverse. `kernel` stands in for one that cannot be written down (a user's function).
inline KernelExpansion slkl_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  detail::require_algorithm(archive, "slkl");
  const auto state = detail::read(archive, detail::SlklState{std::move(kernel)});
  detail::require_weights(state.weights.data(), state.weights.size());
  return {state.points.dictionary(state.kernel), state.weights};
}

}  // namespace parsimon
