#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/io/entries.hpp"

// What the outputs of a classifier mean that was made of another library's.
namespace parsimon::detail {

// The logit of each output: slope * output + offset.
struct Calibration {
  std::vector<double> slope;
  std::vector<double> offset;

  static std::optional<Calibration> read(const Entries& file, Index outputs) {
    if (!file.has("calibration.slope")) return std::nullopt;
    Calibration all{file.get_numbers("calibration.slope", outputs),
                    file.get_numbers("calibration.offset", outputs)};
    require(all_finite(all.slope.data(), outputs) && all_finite(all.offset.data(), outputs),
            "The calibration in the model file is not finite.");
    return all;
  }

  // The share of the second of two classes where the logit is its own.
  double share(double output, std::size_t k) const {
    const double logit = slope[k] * output + offset[k];
    if (logit >= 0) return 1 / (1 + std::exp(-logit));
    return std::exp(logit) / (1 + std::exp(logit));
  }
};

// One output for each pair of classes, (0, 1), (0, 2), ..., (1, 2), ...; positive: the first.
class Votes {
 public:
  // None if the file holds a classifier without pairs.
  static std::optional<Votes> read(const Entries& file, Index outputs) {
    if (!file.has("votes")) return std::nullopt;
    const auto flags = file.get_integers("votes", 3);
    if (flags[0] == 0) return std::nullopt;
    Votes votes;
    while (votes.classes_ * (votes.classes_ - 1) / 2 < outputs) ++votes.classes_;
    votes.per_class_ = flags[1] != 0;
    votes.by_score_ = flags[2] != 0;
    require(votes.classes_ * (votes.classes_ - 1) / 2 == outputs &&
                (votes.per_class_ || !votes.by_score_),
            "The votes in the model file are not those of pairs of classes.");
    return votes;
  }

  Index classes() const { return classes_; }
  // Numbers of the decision function.
  Index scores() const { return per_class_ ? classes_ : classes_ * (classes_ - 1) / 2; }

  std::vector<double> decision(const std::vector<double>& outputs) const {
    if (!per_class_) return outputs;
    std::vector<double> confidence(static_cast<std::size_t>(classes_));
    std::vector<double> scores = won(outputs);
    pairs([&](std::size_t k, std::size_t first, std::size_t second) {
      confidence[first] += outputs[k];
      confidence[second] -= outputs[k];
    });
    for (std::size_t c = 0; c < scores.size(); ++c) {
      scores[c] += confidence[c] / (3 * (std::abs(confidence[c]) + 1));
    }
    return scores;
  }

  Index winner(const std::vector<double>& outputs) const {
    const std::vector<double> table = by_score_ ? decision(outputs) : won(outputs);
    return std::max_element(table.begin(), table.end()) - table.begin();
  }

  // From those of all pairs (Wu, Lin, Weng 2004), by LIBSVM's iteration: the p that minimise the
  // sum over pairs of (r_ji p_i - r_ij p_j)^2.
  std::vector<double> probabilities(const std::vector<double>& outputs,
                                    const Calibration& calibration) const {
    const auto n = static_cast<std::size_t>(classes_);
    std::vector<double> quadratic(n * n);
    pairs([&](std::size_t k, std::size_t i, std::size_t j) {
      const double r = std::clamp(calibration.share(outputs[k], k), 1e-7, 1 - 1e-7);
      quadratic[i * n + j] = quadratic[j * n + i] = -r * (1 - r);
      quadratic[i * n + i] += (1 - r) * (1 - r);
      quadratic[j * n + j] += r * r;
    });
    std::vector<double> p(n, 1 / static_cast<double>(n)), product(n);
    for (std::size_t round = 0; round < std::max<std::size_t>(100, n); ++round) {
      double square = 0, farthest = 0;
      for (std::size_t i = 0; i < n; ++i) {
        product[i] = 0;
        for (std::size_t j = 0; j < n; ++j) product[i] += quadratic[i * n + j] * p[j];
        square += p[i] * product[i];
      }
      for (const double each : product) farthest = std::max(farthest, std::abs(each - square));
      if (!(farthest >= 0.005 / static_cast<double>(n))) break;
      for (std::size_t t = 0; t < n; ++t) {
        const double own = quadratic[t * n + t], step = (square - product[t]) / own;
        p[t] += step;
        square = (square + step * (step * own + 2 * product[t])) / (1 + step) / (1 + step);
        for (std::size_t j = 0; j < n; ++j) {
          product[j] = (product[j] + step * quadratic[t * n + j]) / (1 + step);
          p[j] /= 1 + step;
        }
      }
    }
    return p;
  }

 private:
  template <class Visit>
  void pairs(const Visit& visit) const {
    const auto n = static_cast<std::size_t>(classes_);
    std::size_t k = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) visit(k++, i, j);
    }
  }

  // How many pairs each class wins.
  std::vector<double> won(const std::vector<double>& outputs) const {
    std::vector<double> table(static_cast<std::size_t>(classes_));
    pairs([&](std::size_t k, std::size_t first, std::size_t second) {
      table[outputs[k] > 0 ? first : second] += 1;
    });
    return table;
  }

  Index classes_ = 2;
  bool per_class_ = true;
  bool by_score_ = false;
};

}  // namespace parsimon::detail
