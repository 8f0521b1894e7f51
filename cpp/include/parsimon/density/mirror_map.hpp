#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "parsimon/error.hpp"

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

  // Rows are of any type that can be iterated over.
  template <class Center, class Width>
  static MirrorMap mahalanobis(double height, const Center& center, const Width& width) {
    MirrorMap map(Kind::mahalanobis);
    map.height_ = height;
    map.center_.assign(center.begin(), center.end());
    map.width_.assign(width.begin(), width.end());
    bool valid = map.center_.size() == map.width_.size() && std::isfinite(height) && height >= 0;
    for (const double at : map.center_) valid &= std::isfinite(at);
    for (const double length : map.width_) valid &= std::isfinite(length) && length > 0;
    require(valid,
            "The weight function of the Mahalanobis map needs a height that is not negative, and "
            "for each feature a center and a positive width.");
    return map;
  }

  bool is_positive() const { return kind_ == Kind::kl; }

  void check_features(Index features) const {
    require(kind_ != Kind::mahalanobis || static_cast<Index>(center_.size()) == features,
            "The weight function of the Mahalanobis map has " + std::to_string(center_.size()) +
                " features, but the domain has " + std::to_string(features) + ".");
  }

  // r at a point; 1 for the other maps.
  double weight(const double* point) const {
    if (kind_ != Kind::mahalanobis) return 1;
    double sum = 0;
    for (std::size_t j = 0; j < center_.size(); ++j) {
      const double scaled = (point[j] - center_[j]) / width_[j];
      sum += scaled * scaled;
    }
    return 0.5 + height_ * std::exp(-0.5 * sum);
  }

  // f at a point, given z there.
  double value(double z, const double* point) const {
    return kind_ == Kind::kl ? std::exp(z) : weight(point) * z;
  }

  // The rest is for many points at once, in matrices and vectors of Eigen: templates, so that who
  // needs one point at a time needs no Eigen.

  // r at the points.
  template <class Points, class Weights>
  void weigh(const Points& points, Weights&& weights) const {
    static_assert(Points::IsRowMajor, "the numbers of a point must follow each other");
    for (Index i = 0; i < points.rows(); ++i) weights(i) = weight(points.row(i).data());
  }

  // f and its derivative by z, given z and r at the same points.
  template <class Z, class Weights, class Values, class Slopes>
  void apply(const Z& z, const Weights& weights, Values&& values, Slopes&& slopes) const {
    if (kind_ == Kind::kl) {
      values = z.array().exp();
      slopes = values;
    } else {
      values = weights.cwiseProduct(z);
      slopes = weights;
    }
  }

  // log f, given z and r; minus infinity where f is not positive.
  template <class Z, class Weights, class Values>
  void log(const Z& z, const Weights& weights, Values&& values) const {
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
      const auto middle = parameters.begin() + 1 + static_cast<Index>(parameters.size() / 2);
      return mahalanobis(parameters[0], std::vector<double>(parameters.begin() + 1, middle),
                         std::vector<double>(middle, parameters.end()));
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
  std::vector<double> center_;
  std::vector<double> width_;
};

}  // namespace parsimon
