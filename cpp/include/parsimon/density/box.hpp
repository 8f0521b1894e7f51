#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// A product of intervals with a positive, finite volume: where points are looked for.
class Box {
 public:
  Box(RowVector lower, RowVector upper) : lower_(std::move(lower)), upper_(std::move(upper)) {
    require(lower_.size() > 0 && lower_.size() == upper_.size(),
            "A domain needs a lower and an upper bound for each feature; got " +
                std::to_string(lower_.size()) + " and " + std::to_string(upper_.size()) + ".");
    for (Index j = 0; j < features(); ++j) {
      require(std::isfinite(lower_(j)) && std::isfinite(upper_(j)) && lower_(j) < upper_(j),
              "The domain reaches from " + format_number(lower_(j)) + " to " +
                  format_number(upper_(j)) + " along feature " + std::to_string(j) +
                  ": it needs finite bounds, the lower below the upper.");
    }
    require(std::isfinite(log_volume()),
            "The domain's volume is beyond the range of finite numbers; scale the features.");
  }

  static Box unit(Index features) { return {RowVector::Zero(features), RowVector::Ones(features)}; }

  Index features() const { return lower_.size(); }
  const RowVector& lower() const { return lower_; }
  const RowVector& upper() const { return upper_; }
  double log_volume() const { return (upper_ - lower_).array().log().sum(); }

  // The faces belong to the box.
  template <typename Row>
  bool contains(const Eigen::MatrixBase<Row>& point) const {
    return (point.array() >= lower_.array()).all() && (point.array() <= upper_.array()).all();
  }

  // Throws unless all points are finite and in the box.
  void check(const ConstRows& points) const {
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
  RowVector lower_;
  RowVector upper_;
};

}  // namespace parsimon
