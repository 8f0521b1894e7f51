#pragma once

// What every header may use, those without Eigen as well.

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

namespace parsimon {

using Index = std::ptrdiff_t;

// The caller gave something that cannot be used; the callee has changed nothing.
class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// The computation left the range of finite numbers; the model is as it was before the step.
class DivergenceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// No sensible model comes near weights or kernel values like these. A step that finds larger ones
// is refused; so are files with weights beyond kLargestStored, which leaves room for what
// compression does to those of a step that is just accepted. Squares of both are finite.
inline constexpr double kLargestWeight = 1e90;
inline constexpr double kLargestStored = 1e100;

// Texts that are literals are made into strings only if they are needed.
inline void require(bool condition, const char* message) {
  if (!condition) throw Error(message);
}

inline void require(bool condition, const std::string& message) {
  if (!condition) throw Error(message);
}

inline bool all_finite(const double* numbers, Index count) {
  constexpr double largest = std::numeric_limits<double>::max();
  bool finite = true;
  for (Index i = 0; i < count; ++i) finite &= numbers[i] <= largest && numbers[i] >= -largest;
  return finite;
}

}  // namespace parsimon
