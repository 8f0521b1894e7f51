#pragma once

#include <cmath>
#include <string>

#include "parsimon/error.hpp"

// What the numbers of a model file must be, whoever reads them.
namespace parsimon::detail {

inline void require_count(Index count, const std::string& name) {
  require(count >= 0 && count < (Index{1} << 53), "The model file has " + std::to_string(count) +
                                                      " as its " + name +
                                                      ", which counts nothing.");
}

inline void require_sizes(Index features, Index outputs) {
  // Some numbers are kept for each output, whether there are points or not.
  constexpr Index most = Index{1} << 40, most_outputs = Index{1} << 20;
  require(features > 0 && features < most && outputs > 0 && outputs <= most_outputs,
          "The model file has impossible sizes.");
}

inline void require_finite(const double* numbers, Index count) {
  require(all_finite(numbers, count), "The model file holds numbers that are not finite.");
}

// Training goes on from these weights, and squares them.
inline void require_weights(const double* weights, Index count) {
  for (Index i = 0; i < count; ++i) {
    require(std::abs(weights[i]) < kLargestStored,
            "The model file holds weights that are not finite, or of 1e100 or more; no model has "
            "such weights.");
  }
}

}  // namespace parsimon::detail
