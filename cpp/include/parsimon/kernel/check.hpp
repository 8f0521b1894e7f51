#pragma once

// What a kernel's parameters must be, whether they come from a program or from a file.

#include <cmath>
#include <string>

#include "parsimon/error.hpp"
#include "parsimon/text.hpp"

namespace parsimon::detail {

// Bounds the recursion of everything that walks a kernel's tree.
inline constexpr int kDeepestKernel = 64;

// Every leaf keeps its own copy of the points, so a short text must not ask for thousands.
inline constexpr Index kMostKernelParts = 1000;

inline void require_positive(double value, const std::string& what) {
  if (std::isfinite(value) && value > 0) return;
  throw Error(what + " must be a positive finite number, but " + format_number(value) +
              " was given.");
}

inline void require_bandwidth(double length) { require_positive(length, "A kernel's bandwidth"); }

// Of a kernel with one bandwidth for each feature.
inline void require_as_many_bandwidths(Index bandwidths, Index features) {
  if (bandwidths == features) return;
  throw Error("The kernel has " + std::to_string(bandwidths) +
              " bandwidths, one for each feature, but the data have " + std::to_string(features) +
              " features; give as many bandwidths as features.");
}

inline void require_matern(double nu) {
  require(nu == 0.5 || nu == 1.5 || nu == 2.5,
          "A Matern kernel's nu must be 0.5, 1.5 or 2.5, but " + format_number(nu) + " was given.");
}

inline void require_student_t(double degrees) {
  require_positive(degrees, "The degrees of freedom of a Student-t kernel");
}

inline void require_polynomial(int degree, double gamma, double coef0) {
  require(degree >= 1, "A polynomial kernel's degree must be an integer of at least 1, but " +
                           std::to_string(degree) + " was given.");
  require_positive(gamma, "A polynomial kernel's gamma");
  require(std::isfinite(coef0) && coef0 >= 0,
          "A polynomial kernel's coef0 must be finite and at least 0 (it is not positive "
          "definite otherwise), but " +
              format_number(coef0) + " was given.");
}

inline void require_scale(double factor) {
  require_positive(factor, "The factor of a scaled kernel");
}

inline void require_part_count(Index parts) {
  require(parts <= kMostKernelParts, "A kernel can have " + std::to_string(kMostKernelParts) +
                                         " parts at most, but " + std::to_string(parts) +
                                         " were given.");
}

}  // namespace parsimon::detail
