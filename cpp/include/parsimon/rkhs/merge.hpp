#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "parsimon/rkhs/remove.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The best single point z = h a + (1 - h) b in place of a and b, for a Gaussian kernel: k(a, z) =
// kappa^((1-h)^2) and k(b, z) = kappa^(h^2), kappa = k(a, b). With the weight that suits it, it
// explains value(h) = |k(a, z) w_a + k(b, z) w_b|^2 of the squared norm.
struct Merge {
  double h = 0;
  double at_a = 0;  // k(a, z)
  double at_b = 0;
  double value = -1;

  // From the products of the weights: w_a'w_a, w_a'w_b, w_b'w_b.
  static Merge best(double kappa, double aa, double ab, double bb) {
    const double log_kappa = std::log(std::max(kappa, std::numeric_limits<double>::min()));
    const auto at = [&](double h) {
      const double a = std::exp(log_kappa * (1 - h) * (1 - h));
      const double b = std::exp(log_kappa * h * h);
      return Merge{h, a, b, aa * a * a + 2 * ab * a * b + bb * b * b};
    };
    // Points that are far apart make two maxima: first see which one is higher.
    constexpr int steps = 8;
    Merge top = at(0);
    for (int i = 1; i <= steps; ++i) {
      const Merge next = at(static_cast<double>(i) / steps);
      if (next.value > top.value) top = next;
    }
    double low = std::max(0.0, top.h - 1.0 / steps), high = std::min(1.0, top.h + 1.0 / steps);
    const double golden = (std::sqrt(5.0) - 1) / 2;
    Merge left = at(high - golden * (high - low)), right = at(low + golden * (high - low));
    while (high - low > 1e-6) {
      if (left.value > right.value) {
        high = right.h;
        right = left;
        left = at(high - golden * (high - low));
      } else {
        low = left.h;
        left = right;
        right = at(low + golden * (high - low));
      }
    }
    for (const Merge& found : {left, right}) {
      if (found.value > top.value) top = found;
    }
    return top;
  }

  // The same to a few digits, enough to choose from many pairs: the highest of some places, or of
  // the parabola through it and its neighbours.
  static Merge roughly_best(double kappa, double aa, double ab, double bb) {
    const double log_kappa = std::log(std::max(kappa, std::numeric_limits<double>::min()));
    constexpr Index steps = 8;
    double powers[steps + 1], values[steps + 1];  // kappa^((i / steps)^2)
    for (Index i = 0; i <= steps; ++i) {
      const double h = static_cast<double>(i) / steps;
      powers[i] = std::exp(log_kappa * h * h);
    }
    for (Index i = 0; i <= steps; ++i) {
      const double a = powers[steps - i], b = powers[i];
      values[i] = aa * a * a + 2 * ab * a * b + bb * b * b;
    }
    const Index top = std::max_element(values, values + steps + 1) - values;
    Merge best{static_cast<double>(top) / steps, powers[steps - top], powers[top], values[top]};
    if (top == 0 || top == steps) return best;
    const double bend = values[top - 1] - 2 * values[top] + values[top + 1];
    if (!(bend < 0)) return best;
    const double h = best.h + 0.5 * (values[top - 1] - values[top + 1]) / bend / steps;
    const double a = std::exp(log_kappa * (1 - h) * (1 - h)), b = std::exp(log_kappa * h * h);
    const double value = aa * a * a + 2 * ab * a * b + bb * b * b;
    return value > best.value ? Merge{h, a, b, value} : best;
  }

  // The same place to the last digits. A maximum is flat: by its values alone it is found to half
  // of them, and the other half would be rounding. Its slope crosses zero steeply.
  Merge sharpened(double kappa, double aa, double ab, double bb) const {
    const double log_kappa = std::log(std::max(kappa, std::numeric_limits<double>::min()));
    const auto weights_at = [&](double at_h) {
      return std::pair(std::exp(log_kappa * (1 - at_h) * (1 - at_h)),
                       std::exp(log_kappa * at_h * at_h));
    };
    const auto slope = [&](double at_h) {
      const auto [a, b] = weights_at(at_h);
      return at_h * b * (ab * a + bb * b) - (1 - at_h) * a * (aa * a + ab * b);
    };
    double low = std::max(0.0, h - 1e-5), high = std::min(1.0, h + 1e-5);
    double at_low = slope(low), at_high = slope(high);
    // log kappa < 0 turns the signs round: the slope is that of -value.
    if (!(at_low < 0 && at_high > 0)) return *this;
    double middle = h;
    for (int i = 0; i < 4; ++i) {
      middle = low - at_low * (high - low) / (at_high - at_low);
      const double at_middle = slope(middle);
      (at_middle < 0 ? low : high) = middle;
      (at_middle < 0 ? at_low : at_high) = at_middle;
    }
    const auto [a, b] = weights_at(middle);
    return {middle, a, b, aa * a * a + 2 * ab * a * b + bb * b * b};
  }
};

// The point j, with the smallest weight, and the partner with which that costs least become one
// point between them, for a Gaussian kernel. Returns the error. Where no cost is finite, point j is
// removed instead.
inline double merge(LoosePoints& points, Index j) {
  const Dictionary& dictionary = points.dictionary;
  RowMatrix kappa(1, dictionary.size());  // k(d_j, d_i) for all i
  dictionary.kernel().block(dictionary.views_of({j}).data(), dictionary.views(), kappa);
  const auto weights = points.weights.all().leftCols(points.scored);
  const Vector products = weights * weights.row(j).transpose();
  Index partner = -1;
  Merge best;
  double least = std::numeric_limits<double>::infinity(), size = 0;
  for (Index i = 0; i < weights.rows(); ++i) {
    if (i == j || dictionary.is_protected(i)) continue;
    const double squared = weights.row(i).squaredNorm();
    const Merge found = Merge::best(kappa(0, i), products(j), products(i), squared);
    const double lost = products(j) + squared + 2 * products(i) * kappa(0, i) - found.value;
    if (lost < least) {
      least = lost;
      size = products(j) + squared + 2 * std::abs(products(i));
      partner = i;
      best = found;
    }
  }
  // Where the squares of the weights are infinite, no pair can be judged: a point goes instead.
  if (partner < 0) return remove(points, j);
  best = best.sharpened(kappa(0, partner), products(j), products(partner),
                        weights.row(partner).squaredNorm());
  const RowVector point = best.h * dictionary.point(j) + (1 - best.h) * dictionary.point(partner);
  const RowVector weight =
      best.at_a * points.weights.row(j) + best.at_b * points.weights.row(partner);
  points.drop(std::max(j, partner));
  points.drop(std::min(j, partner));
  points.dictionary.append(point, false);
  points.weights.append(weight.data());
  points.self_kernel.push_back(1);
  // The difference cancels where the two are nearly one; the bound must hold all the same.
  const double rounding = 8 * std::numeric_limits<double>::epsilon() * size;
  return std::sqrt(std::max(0.0, least) + rounding);
}

}  // namespace parsimon
