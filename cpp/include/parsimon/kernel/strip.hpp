#pragma once

// Kernel values between one sample and many points straight from a kernel's expression, without
// Eigen and without allocating: what a program needs that only predicts.

#include <algorithm>
#include <limits>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/kernel/expression.hpp"
#include "parsimon/kernel/profile.hpp"
#include "parsimon/linalg/exponential.hpp"

namespace parsimon {

// A few points, one row of numbers per feature: loops go over the points, where compilers turn them
// into vector instructions without changing the order of any sum.
struct Strip {
  static constexpr Index largest_width = 64;

  const double* numbers;
  Index width;
  Index features;
};

inline void evaluate(const KernelExpression& kernel, const Strip& strip, const double* x,
                     double* values);

namespace detail {

// What differences are multiplied by, which is done before they are squared: data of size 1e-150 or
// 1e150 neither underflow nor overflow. The inverse of the smallest lengths is beyond the finite
// numbers.
inline double inverse_length(const KernelExpression& kernel, Index f) {
  const double length = kernel.bandwidth[kernel.per_feature ? static_cast<std::size_t>(f) : 0];
  return std::min(1 / length, std::numeric_limits<double>::max());
}

// values[j] = sum_f term(p_jf, x_f, scale(f)), four features at a time, so that the sums are loaded
// and stored less often.
template <class Scale, class Term>
void sum_over_features(const Strip& strip, const double* x, double* values, const Scale& scale,
                       const Term& term) {
  const Index width = strip.width;
  double sums[Strip::largest_width] = {};
  Index f = 0;
  for (; f + 4 <= strip.features; f += 4) {
    const double x0 = x[f], x1 = x[f + 1], x2 = x[f + 2], x3 = x[f + 3];
    const double s0 = scale(f), s1 = scale(f + 1), s2 = scale(f + 2), s3 = scale(f + 3);
    const double* p0 = strip.numbers + f * width;
    const double *p1 = p0 + width, *p2 = p1 + width, *p3 = p2 + width;
    for (Index j = 0; j < width; ++j) {
      sums[j] +=
          (term(p0[j], x0, s0) + term(p1[j], x1, s1)) + (term(p2[j], x2, s2) + term(p3[j], x3, s3));
    }
  }
  for (; f < strip.features; ++f) {
    const double xf = x[f], sf = scale(f);
    const double* p = strip.numbers + f * width;
    for (Index j = 0; j < width; ++j) sums[j] += term(p[j], xf, sf);
  }
  std::copy_n(sums, width, values);
}

inline void squared_distances(const KernelExpression& kernel, const Strip& strip, const double* x,
                              double* values) {
  // A single length of an ordinary size is divided by at the end, which saves a fourth of the work.
  const double length = kernel.bandwidth[0];
  if (!kernel.per_feature && length > 1e-100 && length < 1e100) {
    const auto none = [](Index) { return 1.0; };
    sum_over_features(strip, x, values, none, [](double point, double sample, double) {
      const double difference = point - sample;
      return difference * difference;
    });
    const double factor = 1 / (length * length);
    for (Index j = 0; j < strip.width; ++j) values[j] *= factor;
    return;
  }
  const auto scale = [&kernel](Index f) { return inverse_length(kernel, f); };
  sum_over_features(strip, x, values, scale, [](double point, double sample, double inverse) {
    const double difference = (point - sample) * inverse;
    return difference * difference;
  });
}

inline void absolute_distances(const KernelExpression& kernel, const Strip& strip, const double* x,
                               double* values) {
  const auto scale = [&kernel](Index f) { return inverse_length(kernel, f); };
  sum_over_features(strip, x, values, scale, [](double point, double sample, double inverse) {
    const double difference = (point - sample) * inverse;
    return difference < 0 ? -difference : difference;
  });
}

inline void products(const Strip& strip, const double* x, double factor, double* values) {
  const auto none = [](Index) { return 1.0; };
  sum_over_features(strip, x, values, none,
                    [](double point, double sample, double) { return point * sample; });
  for (Index j = 0; j < strip.width; ++j) values[j] *= factor;
}

template <class Operation>
void combine_parts(const KernelExpression& kernel, const Strip& strip, const double* x,
                   double* values, const Operation& operation) {
  evaluate(kernel.parts[0], strip, x, values);
  double others[Strip::largest_width];
  for (std::size_t i = 1; i < kernel.parts.size(); ++i) {
    evaluate(kernel.parts[i], strip, x, others);
    for (Index j = 0; j < strip.width; ++j) values[j] = operation(values[j], others[j]);
  }
}

}  // namespace detail

// values[j] = k(p_j, x)
inline void evaluate(const KernelExpression& kernel, const Strip& strip, const double* x,
                     double* values) {
  using linalg::native::exponential;
  const std::vector<double>& numbers = kernel.parameters;
  const Index width = strip.width;
  switch (kernel.kind) {
    case KernelKind::gaussian:
      detail::squared_distances(kernel, strip, x, values);
      return exponential(-0.5, values, width);
    case KernelKind::laplacian:
      detail::absolute_distances(kernel, strip, x, values);
      return exponential(-1.0, values, width);
    case KernelKind::matern:
      detail::squared_distances(kernel, strip, x, values);
      return detail::matern_profile(numbers[0], values, width, exponential);
    case KernelKind::student_t:
      detail::squared_distances(kernel, strip, x, values);
      return detail::student_t_profile(numbers[0], values, width, exponential);
    case KernelKind::polynomial:
      detail::products(strip, x, numbers[1], values);
      return detail::polynomial_profile(static_cast<int>(numbers[0]), numbers[2], values, width);
    case KernelKind::linear:
      return detail::products(strip, x, 1, values);
    case KernelKind::constant:
      std::fill_n(values, width, 1.0);
      return;
    case KernelKind::sum:
      return detail::combine_parts(kernel, strip, x, values,
                                   [](double a, double b) { return a + b; });
    case KernelKind::product:
      return detail::combine_parts(kernel, strip, x, values,
                                   [](double a, double b) { return a * b; });
    case KernelKind::scale:
      evaluate(kernel.parts[0], strip, x, values);
      for (Index j = 0; j < width; ++j) values[j] *= numbers[0];
      return;
    case KernelKind::single:
      // Single precision saves time where many samples are compared with many points.
      return evaluate(kernel.parts[0], strip, x, values);
  }
}

}  // namespace parsimon
