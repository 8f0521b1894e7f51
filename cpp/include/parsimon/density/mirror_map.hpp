#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/types.hpp"

namespace parsimon {

// How a function f is written as an element z = grad psi(f) of the Hilbert space, and back. f is
// relative to the uniform density of the domain.
//
//   kl:           f = exp(z), positive whatever z is
//   euclidean:    f = z
//   mahalanobis:  f = r z, psi(f) = <f / r, f> / 2 with the weight function
//                 r(x) = 1/2 + height exp(-sum_j ((x_j - center_j) / width_j)^2 / 2)
//
// A plain value; name() and parameters() are what a model file keeps, restore() their inverse.
class MirrorMap {
 public:
  static MirrorMap kl() { return MirrorMap(Kind::kl); }
  static MirrorMap euclidean() { return MirrorMap(Kind::euclidean); }

  static MirrorMap mahalanobis(double height, RowVector center, RowVector width) {
    require(center.size() == width.size() && center.allFinite() && width.allFinite() &&
                (width.array() > 0).all() && std::isfinite(height) && height >= 0,
            "The weight function of the Mahalanobis map needs a height that is not negative, and "
            "for each feature a center and a positive width.");
    MirrorMap map(Kind::mahalanobis);
    map.height_ = height;
    map.center_ = std::move(center);
    map.width_ = std::move(width);
    return map;
  }

  bool is_positive() const { return kind_ == Kind::kl; }

  void check_features(Index features) const {
    require(kind_ != Kind::mahalanobis || center_.size() == features,
            "The weight function of the Mahalanobis map has " + std::to_string(center_.size()) +
                " features, but the domain has " + std::to_string(features) + ".");
  }

  // r at the points; 1 for the other maps.
  void weigh(const ConstRows& points, Eigen::Ref<Vector> weights) const {
    if (kind_ != Kind::mahalanobis) {
      weights.setOnes();
      return;
    }
    for (Index i = 0; i < points.rows(); ++i) {
      const auto scaled = (points.row(i) - center_).array() / width_.array();
      weights(i) = 0.5 + height_ * std::exp(-0.5 * scaled.square().sum());
    }
  }

  // f and its derivative by z, given z and r at the same points.
  void apply(const Eigen::Ref<const Vector>& z, const Eigen::Ref<const Vector>& weights,
             Eigen::Ref<Vector> values, Eigen::Ref<Vector> slopes) const {
    if (kind_ == Kind::kl) {
      values = z.array().exp();
      slopes = values;
    } else {
      values = weights.cwiseProduct(z);
      slopes = weights;
    }
  }

  // log f, given z and r; minus infinity where f is not positive.
  void log(const Eigen::Ref<const Vector>& z, const Eigen::Ref<const Vector>& weights,
           Eigen::Ref<Vector> values) const {
    if (kind_ == Kind::kl) {
      values = z;
    } else {
      values = weights.cwiseProduct(z).cwiseMax(0.0).array().log();
    }
  }

  std::string name() const {
    return kind_ == Kind::kl ? "kl" : kind_ == Kind::euclidean ? "euclidean" : "mahalanobis";
  }

  std::vector<double> parameters() const {
    std::vector<double> all;
    if (kind_ != Kind::mahalanobis) return all;
    all.push_back(height_);
    all.insert(all.end(), center_.begin(), center_.end());
    all.insert(all.end(), width_.begin(), width_.end());
    return all;
  }

  static MirrorMap restore(const std::string& name, const std::vector<double>& parameters) {
    if (name == "kl" && parameters.empty()) return kl();
    if (name == "euclidean" && parameters.empty()) return euclidean();
    if (name == "mahalanobis" && parameters.size() % 2 == 1 && parameters.size() > 1) {
      const auto features = static_cast<Index>(parameters.size() / 2);
      const Eigen::Map<const RowVector> all(parameters.data() + 1, 2 * features);
      return mahalanobis(parameters[0], all.head(features), all.tail(features));
    }
    throw Error("There is no mirror map \"" + name + "\" with " +
                std::to_string(parameters.size()) +
                " parameters: use kl, euclidean, or mahalanobis (height, centers, widths).");
  }

 private:
  enum class Kind { kl, euclidean, mahalanobis };

  explicit MirrorMap(Kind kind) : kind_(kind) {}

  Kind kind_;
  double height_ = 0;
  RowVector center_;
  RowVector width_;
};

}  // namespace parsimon
