#pragma once

#include <algorithm>
#include <cmath>

#include "parsimon/error.hpp"

// The functions of one number that make kernels of distances and products: profile(values, count)
// replaces the values by those of the kernel. `exponential(factor, values, count)` is
// values <- exp(factor values); each caller has one for its instruction set.
namespace parsimon::detail {

// Strips of this length are worked on while they are in the first cache.
inline constexpr Index kProfileStrip = 64;

// d <- polynomial(s) exp(-s), s = sqrt(2 nu d).
template <class Polynomial, class Exponential>
void times_exponential(double nu, double* d, Index count, const Exponential& exponential,
                       const Polynomial& polynomial) {
  // Beyond this exp(-s) is 0, and a finite s keeps 0 times the polynomial from being NaN.
  constexpr double largest_s = 1e4;
  double roots[kProfileStrip];
  for (Index start = 0; start < count; start += kProfileStrip) {
    const Index size = std::min(kProfileStrip, count - start);
    double* values = d + start;
    for (Index j = 0; j < size; ++j) {
      roots[j] = std::min(std::sqrt(2.0 * nu * values[j]), largest_s);
      values[j] = roots[j];
    }
    exponential(-1.0, values, size);
    for (Index j = 0; j < size; ++j) values[j] *= polynomial(roots[j]);
  }
}

// A polynomial times exp(-s) for nu = 1/2, 3/2, 5/2.
template <class Exponential>
void matern_profile(double nu, double* d, Index count, const Exponential& exponential) {
  times_exponential(nu, d, count, exponential, [nu](double s) {
    return nu == 0.5 ? 1.0 : nu == 1.5 ? 1.0 + s : 1.0 + s * (1.0 + s * (1.0 / 3.0));
  });
}

// d <- (1 + d / degrees)^-exponent
template <class Exponential>
void student_t_power(double degrees, double exponent, double* d, Index count,
                     const Exponential& exponential) {
  for (Index j = 0; j < count; ++j) d[j] = std::log1p(d[j] / degrees);
  exponential(-exponent, d, count);
}

// (1 + d / degrees)^(-(degrees + 1) / 2)
template <class Exponential>
void student_t_profile(double degrees, double* d, Index count, const Exponential& exponential) {
  if (degrees == 1.0) {
    for (Index j = 0; j < count; ++j) d[j] = 1.0 / (1.0 + d[j]);
  } else {
    student_t_power(degrees, 0.5 * (degrees + 1.0), d, count, exponential);
  }
}

// values <- (values + coef0)^exponent, a few at a time: each squaring is a loop without branches.
inline void polynomial_profile(int exponent, double coef0, double* values, Index count) {
  double bases[kProfileStrip];
  for (Index start = 0; start < count; start += kProfileStrip) {
    const Index size = std::min(kProfileStrip, count - start);
    double* results = values + start;
    for (Index j = 0; j < size; ++j) bases[j] = results[j] + coef0;
    std::fill_n(results, size, 1.0);
    for (int left = exponent; left > 0; left /= 2) {
      if (left % 2 == 1) {
        for (Index j = 0; j < size; ++j) results[j] *= bases[j];
      }
      if (left > 1) {
        for (Index j = 0; j < size; ++j) bases[j] *= bases[j];
      }
    }
  }
}

}  // namespace parsimon::detail
