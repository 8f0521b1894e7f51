#pragma once

#include <limits>
#include <vector>

#include "parsimon/types.hpp"

namespace parsimon {

// What a compression may spend: an error, and points. More points than allowed are removed whatever
// that costs; without either limit nothing is compressed.
struct Limit {
  double budget = 0;
  Index points = std::numeric_limits<Index>::max();

  Limit() = default;
  Limit(double error_budget) : budget(error_budget) {}  // NOLINT: a budget is a limit
  Limit(double error_budget, Index most_points) : budget(error_budget), points(most_points) {}

  bool caps_points() const { return points < std::numeric_limits<Index>::max(); }
};

// What a compression did: the ids of the points it removed, in order, and the exact distance in
// Hilbert norm between the function before and after. |f(x) - g(x)| <= error * sqrt(k(x, x)).
struct CompressionReport {
  std::vector<Index> removed;
  double error = 0;
  Index model_order = 0;
};

}  // namespace parsimon
