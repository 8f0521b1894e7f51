#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "parsimon/kernel/check.hpp"
#include "parsimon/kernel/distance.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/kernel/profile.hpp"
#include "parsimon/kernel/pulls.hpp"

namespace parsimon {

namespace detail {

// gradient.row(j) += sum_i weights(i, j) a_i
inline void add_sums_of_points(const View& a, const ConstRows& weights, Rows gradient) {
  for (Index i = 0; i < a.rows(); ++i) {
    const double* point = a.point(i);
    for (Index j = 0; j < weights.cols(); ++j) {
      double* sum = row_of(gradient, j);
      for (Index f = 0; f < a.features(); ++f) sum[f] += weights(i, j) * point[f];
    }
  }
}

}  // namespace detail

// A kernel of <sqrt(gamma) x, sqrt(gamma) y>. Its view holds sqrt(gamma) x; the origin is ignored,
// because these kernels depend on where 0 is.
class DotProduct : public Kernel {
 public:
  Index view_count() const override { return 1; }

  void check_features(Index) const override {}

  void make_views(const ConstRows& points, const RowVector&, View* views) const override {
    views->reset(points.rows(), points.cols());
    for (Index i = 0; i < points.rows(); ++i) {
      const double* from = points.data() + i * points.outerStride();
      double* to = views->point(i);
      for (Index f = 0; f < points.cols(); ++f) to[f] = root_gamma_ * from[f];
    }
    detail::set_squared_norms(*views);
  }

  bool has_slopes() const override { return true; }

  // In the direction of b_j.
  void add_pulls(const View* a, const View* b, const RowMatrix* weights, Rows gradient,
                 double* stretch) const override {
    require(stretch == nullptr, "The features of " + describe() + " cannot be stretched.");
    const double* sums = detail::sums_of_points(*weights, *b);
    for (Index i = 0; i < a->rows(); ++i) {
      double* pull = detail::row_of(gradient, i);
      for (Index f = 0; f < a->features(); ++f) pull[f] += sums[i * a->features() + f];
    }
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
    std::copy_n(a->squared_norms(), values.size(), values.data());
  }

  void add_gradient(const View* a, const View*, const ConstRows& weights,
                    Rows gradient) const override {
    detail::add_sums_of_points(*a, weights, gradient);
  }

  void block_and_slopes(const View* a, const View* b, Rows values,
                        RowMatrix* slopes) const override {
    block(a, b, values);
    slopes->setOnes();
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
  bool has_slopes() const override { return true; }
  bool can_stretch() const override { return true; }
  void block_and_slopes(const View*, const View*, Rows values, RowMatrix*) const override {
    values.setOnes();
  }
  void add_pulls(const View*, const View*, const RowMatrix*, Rows, double*) const override {}
  std::string describe() const override { return "constant()"; }
};

// k(x, y) = (gamma <x, y> + coef0)^degree
class Polynomial final : public DotProduct {
 public:
  Polynomial(int degree, double gamma, double coef0)
      : DotProduct(gamma), degree_(degree), gamma_(gamma), coef0_(coef0) {
    detail::require_polynomial(degree, gamma, coef0);
  }

  void block(const View* a, const View* b, Rows values) const override {
    detail::multiply_points(*a, *b, values, [&](Index begin, Index end) {
      raise(values.middleRows(begin, end - begin));
    });
  }

  void diagonal(const View* a, Eigen::Ref<Vector> values) const override {
    std::copy_n(a->squared_norms(), values.size(), values.data());
    raise(Eigen::Map<RowMatrix>(values.data(), 1, values.size()));
  }

  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    RowMatrix slopes(a->rows(), b->rows());
    detail::multiply_points(*a, *b, slopes, [](Index, Index) {});
    const double factor = root_gamma() * degree_;
    for (Index i = 0; i < slopes.rows(); ++i) {
      double* row = detail::row_of(slopes, i);
      detail::polynomial_profile(degree_ - 1, coef0_, row, slopes.cols());
      for (Index j = 0; j < slopes.cols(); ++j) row[j] *= weights(i, j) * factor;
    }
    detail::add_sums_of_points(*a, slopes, gradient);
  }

  void block_and_slopes(const View* a, const View* b, Rows values,
                        RowMatrix* slopes) const override {
    detail::multiply_points(*a, *b, values, [](Index, Index) {});
    const double factor = root_gamma() * degree_;
    detail::profile_rows(values, *slopes, [&](double* products, double* slope, Index count) {
      std::copy_n(products, count, slope);
      detail::polynomial_profile(degree_, coef0_, products, count);
      detail::polynomial_profile(degree_ - 1, coef0_, slope, count);
      for (Index j = 0; j < count; ++j) slope[j] *= factor;
    });
  }

  std::string describe() const override {
    return "polynomial(" + std::to_string(degree_) + "," + format_number(gamma_) + "," +
           format_number(coef0_) + ")";
  }

 private:
  void raise(const Rows& products) const {
    detail::transform_values(products, [this](double* values, Index count) {
      detail::polynomial_profile(degree_, coef0_, values, count);
    });
  }

  int degree_;
  double gamma_;
  double coef0_;
};

}  // namespace parsimon
