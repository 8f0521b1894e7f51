#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/text.hpp"

namespace parsimon {

// A product of intervals with a positive, finite volume: where points are looked for. Its bounds,
// and the points that it is asked about, are of any type whose numbers are point[0], point[1], ...
class Box {
 public:
  template <class Lower, class Upper>
  Box(const Lower& lower, const Upper& upper)
      : lower_(lower.begin(), lower.end()), upper_(upper.begin(), upper.end()) {
    require(!lower_.empty() && lower_.size() == upper_.size(),
            "A domain needs a lower and an upper bound for each feature; got " +
                std::to_string(lower_.size()) + " and " + std::to_string(upper_.size()) + ".");
    for (std::size_t j = 0; j < lower_.size(); ++j) {
      require(std::isfinite(lower_[j]) && std::isfinite(upper_[j]) && lower_[j] < upper_[j],
              "The domain reaches from " + format_number(lower_[j]) + " to " +
                  format_number(upper_[j]) + " along feature " + std::to_string(j) +
                  ": it needs finite bounds, the lower below the upper.");
    }
    require(std::isfinite(log_volume()),
            "The domain's volume is beyond the range of finite numbers; scale the features.");
  }

  static Box unit(Index features) {
    const auto size = static_cast<std::size_t>(features);
    return {std::vector<double>(size, 0), std::vector<double>(size, 1)};
  }

  Index features() const { return static_cast<Index>(lower_.size()); }
  const std::vector<double>& lower() const { return lower_; }
  const std::vector<double>& upper() const { return upper_; }

  double log_volume() const {
    double sum = 0;
    for (std::size_t j = 0; j < lower_.size(); ++j) sum += std::log(upper_[j] - lower_[j]);
    return sum;
  }

  // The faces belong to the box.
  template <class Row>
  bool contains(const Row& point) const {
    for (Index j = 0; j < features(); ++j) {
      const auto k = static_cast<std::size_t>(j);
      if (!(point[j] >= lower_[k] && point[j] <= upper_[k])) return false;
    }
    return true;
  }

  // Throws unless all points, the rows of a matrix, are finite and in the box.
  template <class Points>
  void check(const Points& points) const {
    if (points.cols() != features()) {
      throw Error("The points have " + std::to_string(points.cols()) +
                  " features, but the domain has " + std::to_string(features()) + ".");
    }
    for (Index i = 0; i < points.rows(); ++i) {
      if (contains(points.row(i))) continue;
      throw Error("Point " + std::to_string(i) +
                  " is not in the domain: a density can be learned from finite points within it.");
    }
  }

 private:
  std::vector<double> lower_;
  std::vector<double> upper_;
};

}  // namespace parsimon
