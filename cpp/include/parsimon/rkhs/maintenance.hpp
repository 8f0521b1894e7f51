#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/text.hpp"
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

// How a model is held to a number of points rather than to an error (BSGD; Wang, Crammer, Vucetic
// 2012). Whenever there are more than `cap` points,
//
//   remove:         the one with the smallest |w_j|^2 k(d_j, d_j) goes
//   project:        the one that the others explain best goes, and they take over its weight (KOMP)
//   merge:          the one with the smallest weight and the partner with which that costs least
//                   become one point between them; Gaussian kernels only. As `remove`
//                   where no cost is finite
//   nonparametric:  with probability min(1, rate / t) as `remove`, otherwise the cap grows by one
//                   (NPBSGD; Le, Nguyen, Nguyen, Phung 2016)
//
// A plain value; name() and parameters() are what a model file keeps, restore() their inverse.
class Maintenance {
 public:
  enum class Rule { remove, project, merge, nonparametric };

  Maintenance(Rule rule, Index cap, double rate = 0, std::uint64_t seed = 0)
      : Maintenance(rule, cap, rate, seed & kMask, 0) {}

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> all = {"remove", "project", "merge", "nonparametric"};
    return all;
  }

  static Rule parse(const std::string& name) {
    const auto found = std::find(names().begin(), names().end(), name);
    require(found != names().end(), "There is no budget maintenance \"" + name +
                                        "\": use remove, project, merge or nonparametric.");
    return static_cast<Rule>(found - names().begin());
  }

  std::string name() const { return names()[static_cast<std::size_t>(rule_)]; }
  Index cap() const { return cap_; }

  std::vector<double> parameters() const {
    return {static_cast<double>(cap_), rate_, static_cast<double>(seed_),
            static_cast<double>(coins_)};
  }

  static Maintenance restore(const std::string& name, const std::vector<double>& parameters) {
    require(parameters.size() == 4, "A budget maintenance has 4 parameters; got " +
                                        std::to_string(parameters.size()) + ".");
    for (const double number : {parameters[0], parameters[2], parameters[3]}) {
      require(number >= 0 && number < 0x1p53 && number == std::floor(number),
              "A budget maintenance counts in whole numbers below 2^53; got " +
                  format_number(number) + ".");
    }
    return {parse(name), static_cast<Index>(parameters[0]), parameters[1],
            static_cast<std::uint64_t>(parameters[2]), static_cast<std::uint64_t>(parameters[3])};
  }

  // Refuses kernels whose points cannot be merged.
  void check(const Kernel& kernel) const {
    require(rule_ != Rule::merge || kernel.describe().rfind("gaussian(", 0) == 0,
            "Points can only be merged with a Gaussian kernel, not with " + kernel.describe() +
                ": use another budget maintenance.");
  }

  // f <- shrink f + sum_i new_weights(i) k(x_active(i), .), then at most cap points. `samples_seen`
  // decides how probable growth is. Throws, and changes nothing, if the kernel does or is not
  // finite at the samples.
  CompressionReport add(SparseFunction& function, const ConstRows& samples, const Batch& batch,
                        const std::vector<Index>& active, const ConstRows& new_weights,
                        double shrink, Index samples_seen) {
    if (rule_ == Rule::project) {
      return function.add(samples, batch, active, new_weights, shrink, {0, cap_});
    }
    const Index first_id = function.dictionary().next_id();
    Vector of_samples(samples.rows()), of_points(function.model_order());
    function.dictionary().kernel().diagonal(batch.views.data(), of_samples);
    function.dictionary().kernel().diagonal(function.dictionary().views(), of_points);
    CompressionReport report = function.add(samples, batch, active, new_weights, shrink, {});
    // Nothing throws from here on: merging asks a kernel that never does.
    diagonal_.assign(of_points.begin(), of_points.end());
    for (Index i = of_points.size(); i < function.model_order(); ++i) {
      const Index k = function.dictionary().id(i) - first_id;
      diagonal_.push_back(of_samples(active[static_cast<std::size_t>(k)]));
    }
    while (function.model_order() > cap_) {
      if (rule_ == Rule::nonparametric && grows(samples_seen)) {
        cap_ += 1;
      } else {
        report.error += rule_ == Rule::merge ? merge(function, report) : remove(function, report);
      }
    }
    report.model_order = function.model_order();
    return report;
  }

 private:
  // Whole numbers that a double, and so a model file, holds.
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 53) - 1;

  Maintenance(Rule rule, Index cap, double rate, std::uint64_t seed, std::uint64_t coins)
      : rule_(rule), cap_(cap), rate_(rate), seed_(seed), coins_(coins) {
    const Index least = rule == Rule::merge ? 2 : 1;
    require(cap >= least, "The budget is " + std::to_string(cap) + " points: give at least " +
                              std::to_string(least) + ".");
    require(std::isfinite(rate) && rate >= 0, "The maintenance rate is " + format_number(rate) +
                                                  ": give a finite number that is not negative.");
  }

  // A coin for each decision, from its number alone: a model that is read back throws the same.
  bool grows(Index samples_seen) {
    std::uint64_t bits = seed_ + 0x9e3779b97f4a7c15u * (++coins_);
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    const double uniform = static_cast<double>(bits >> 11) * 0x1p-53;
    return uniform * static_cast<double>(std::max<Index>(1, samples_seen)) >= rate_;
  }

  Index smallest(const SparseFunction& function) const {
    const auto weights = function.function_weights();
    Index best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (Index i = 0; i < weights.rows(); ++i) {
      const double size = weights.row(i).squaredNorm() * diagonal_[static_cast<std::size_t>(i)];
      if (size < least) {
        least = size;
        best = i;
      }
    }
    return best;
  }

  double remove(SparseFunction& function, CompressionReport& report) {
    const Index point = smallest(function);
    const double error = function.function_weights().row(point).norm() *
                         std::sqrt(diagonal_[static_cast<std::size_t>(point)]);
    drop(function, point, report);
    return error;
  }

  double merge(SparseFunction& function, CompressionReport& report) {
    const Index a = smallest(function);
    const Vector kappa = function.kernel_with(a);
    const auto weights = function.function_weights();
    const Vector products = weights * weights.row(a).transpose();
    Index partner = -1;
    Merge best;
    double least = std::numeric_limits<double>::infinity(), size = 0;
    for (Index b = 0; b < weights.rows(); ++b) {
      if (b == a) continue;
      const double squared = weights.row(b).squaredNorm();
      const Merge merge = Merge::best(kappa(b), products(a), products(b), squared);
      const double lost = products(a) + squared + 2 * products(b) * kappa(b) - merge.value;
      if (lost < least) {
        least = lost;
        size = products(a) + squared + 2 * std::abs(products(b));
        partner = b;
        best = merge;
      }
    }
    // Where the squares of the weights are infinite, no pair can be judged: a point goes instead.
    if (partner < 0) return remove(function, report);
    best = best.sharpened(kappa(partner), products(a), products(partner),
                          weights.row(partner).squaredNorm());
    const Dictionary& dictionary = function.dictionary();
    const RowVector point = best.h * dictionary.point(a) + (1 - best.h) * dictionary.point(partner);
    const RowVector weight =
        best.at_a * function.weights().row(a) + best.at_b * function.weights().row(partner);
    drop(function, std::max(a, partner), report);
    drop(function, std::min(a, partner), report);
    function.append(point, weight);
    diagonal_.push_back(1);
    // The difference cancels where the two are nearly one; the bound must hold all the same.
    const double rounding = 8 * std::numeric_limits<double>::epsilon() * size;
    return std::sqrt(std::max(0.0, least) + rounding);
  }

  void drop(SparseFunction& function, Index point, CompressionReport& report) {
    report.removed.push_back(function.dictionary().id(point));
    function.drop(point);
    diagonal_[static_cast<std::size_t>(point)] = diagonal_.back();
    diagonal_.pop_back();
  }

  Rule rule_;
  Index cap_;
  double rate_;
  std::uint64_t seed_;
  std::uint64_t coins_;
  std::vector<double> diagonal_;  // k(d, d)
};

}  // namespace parsimon
