#pragma once

#include <cmath>
#include <string>

#include "parsimon/kernel/check.hpp"
#include "parsimon/kernel/distance.hpp"
#include "parsimon/kernel/kernel.hpp"

namespace parsimon {

// A kernel of <sqrt(gamma) x, sqrt(gamma) y>. Its view holds sqrt(gamma) x; the origin is ignored,
// because these kernels depend on where 0 is.
class DotProduct : public Kernel {
 public:
  Index view_count() const override { return 1; }

  void check_features(Index) const override {}

  void make_views(const ConstRows& points, const RowVector&, View* views) const override {
    views->reset(points.rows(), points.cols());
    for (Index i = 0; i < points.rows(); ++i) views->point(i) = root_gamma_ * points.row(i);
    detail::set_squared_norms(*views);
  }

 protected:
  explicit DotProduct(double gamma) : root_gamma_(std::sqrt(gamma)) {}

  double root_gamma() const { return root_gamma_; }

 private:
  double root_gamma_;
};

// k(x, y) = <x, y>
class Linear final : public DotProduct {
 public:
  Linear() : DotProduct(1.0) {}

  void block(const View* a, const View* b, Rows values) const override {
    detail::multiply_points(*a, *b, values, [](Index, Index) {});
  }

  void diagonal(const View* a, Eigen::Ref<Vector> values) const override {
    values = a->squared_norms();
  }

  void add_gradient(const View* a, const View*, const ConstRows& weights,
                    Rows gradient) const override {
    gradient.noalias() += weights.transpose() * a->points();
  }

  std::string describe() const override { return "linear()"; }
};

// k(x, y) = 1: added to another kernel it makes room for an intercept. It looks at no point.
class Constant final : public Kernel {
 public:
  Index view_count() const override { return 0; }
  void check_features(Index) const override {}
  void make_views(const ConstRows&, const RowVector&, View*) const override {}
  void block(const View*, const View*, Rows values) const override { values.setOnes(); }
  void diagonal(const View*, Eigen::Ref<Vector> values) const override { values.setOnes(); }
  void add_gradient(const View*, const View*, const ConstRows&, Rows) const override {}
  std::string describe() const override { return "constant()"; }
};

// k(x, y) = (gamma <x, y> + coef0)^degree
class Polynomial final : public DotProduct {
 public:
  Polynomial(int degree, double gamma, double coef0)
      : DotProduct(gamma), degree_(degree), gamma_(gamma), coef0_(coef0) {
    require(degree >= 1, "A polynomial kernel's degree must be an integer of at least 1, but " +
                             std::to_string(degree) + " was given.");
    detail::require_positive(gamma, "A polynomial kernel's gamma");
    require(std::isfinite(coef0) && coef0 >= 0,
            "A polynomial kernel's coef0 must be finite and at least 0 (it is not positive "
            "definite otherwise), but " +
                format_number(coef0) + " was given.");
  }

  void block(const View* a, const View* b, Rows values) const override {
    detail::multiply_points(*a, *b, values, [&](Index begin, Index end) {
      raise(values.middleRows(begin, end - begin));
    });
  }

  void diagonal(const View* a, Eigen::Ref<Vector> values) const override {
    values = a->squared_norms();
    raise(Eigen::Map<RowMatrix>(values.data(), 1, values.size()));
  }

  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    const RowMatrix points = a->points();
    RowMatrix slopes = points * b->points().transpose();
    detail::transform_values(slopes, [this](detail::Strip& strip) {
      strip += coef0_;
      strip = (root_gamma() * degree_) * power(strip, degree_ - 1);
    });
    slopes.array() *= weights.array();
    gradient.noalias() += slopes.transpose() * points;
  }

  std::string describe() const override {
    return "polynomial(" + std::to_string(degree_) + "," + format_number(gamma_) + "," +
           format_number(coef0_) + ")";
  }

 private:
  void raise(Rows products) const {
    detail::transform_values(products, [this](detail::Strip& strip) {
      strip += coef0_;
      strip = power(strip, degree_);
    });
  }

  static detail::Strip power(detail::Strip base, int exponent) {
    detail::Strip result = detail::Strip::Ones();
    for (;;) {
      if (exponent % 2 == 1) result *= base;
      exponent /= 2;
      if (exponent == 0) return result;
      base *= base;
    }
  }

  int degree_;
  double gamma_;
  double coef0_;
};

}  // namespace parsimon
