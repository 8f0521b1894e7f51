#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "parsimon/kernel/check.hpp"
#include "parsimon/kernel/distance.hpp"
#include "parsimon/kernel/kernel.hpp"

namespace parsimon {

// The length by which distances are measured: one for all features or one for each.
class Bandwidth {
 public:
  Bandwidth(double length) : lengths_(RowVector::Constant(1, length)), per_feature_(false) {
    check();
  }

  Bandwidth(RowVector lengths) : lengths_(std::move(lengths)), per_feature_(true) {
    require(lengths_.size() > 0,
            "A bandwidth for each feature was announced, but the list is empty; give one positive "
            "number for each feature, or one for all.");
    check();
  }

  void check_features(Index features) const {
    if (!per_feature_ || lengths_.size() == features) return;
    throw Error("The kernel has " + std::to_string(lengths_.size()) +
                " bandwidths, one for each feature, but the data have " + std::to_string(features) +
                " features; give as many bandwidths as features.");
  }

  // Calls take(x / h), feature by feature. Dividing, rather than multiplying by 1 / h, is right for
  // the smallest h as well.
  template <class Row, class Take>
  void divide(const Eigen::MatrixBase<Row>& x, const Take& take) const {
    if (per_feature_) {
      take(x.array() / lengths_.array());
    } else {
      take(x.array() / lengths_(0));
    }
  }

  std::string describe() const {
    if (!per_feature_) return format_number(lengths_(0));
    std::string text = "[";
    for (Index f = 0; f < lengths_.size(); ++f) {
      if (f > 0) text += ',';
      text += format_number(lengths_(f));
    }
    return text + ']';
  }

 private:
  void check() const {
    for (double length : lengths_) detail::require_positive(length, "A kernel's bandwidth");
  }

  RowVector lengths_;
  bool per_feature_;
};

// A kernel of the difference of two points with k(x, x) = 1.
//
// Its view holds (x - origin) / h: dividing before anything is squared, data of size 1e-150 or
// 1e150 neither underflow nor overflow, and moving the origin to the data keeps the digits that
// distinguish points far from 0.
class Stationary : public Kernel {
 public:
  explicit Stationary(Bandwidth bandwidth) : bandwidth_(std::move(bandwidth)) {}

  Index view_count() const override { return 1; }

  void check_features(Index features) const override { bandwidth_.check_features(features); }

  void make_views(const ConstRows& points, const RowVector& origin, View* views) const override {
    views->reset(points.rows(), points.cols());
    const double flops = linalg::copy_flops(points.size());
    linalg::share(points.rows(), 8, flops, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        auto row = views->point(i);
        bandwidth_.divide(points.row(i) - origin, [&](const auto& scaled) {
          row = scaled.min(detail::largest_coordinate).max(-detail::largest_coordinate);
        });
        views->squared_norms()(i) = detail::squared_norm(row.data(), row.size());
      }
    });
  }

  void diagonal(const View*, Eigen::Ref<Vector> values) const override { values.setOnes(); }

 protected:
  const Bandwidth& bandwidth() const { return bandwidth_; }

 private:
  Bandwidth bandwidth_;
};

// k(x, y) = g(d), d = |(x - y) / h|^2.
class Radial : public Stationary {
 public:
  using Stationary::Stationary;

  void block(const View* a, const View* b, Rows values) const override {
    detail::squared_distances(*a, *b, values, [this](Rows piece) {
      detail::transform_values(piece, [this](detail::Strip& strip) { profile(strip); });
    });
  }

  // d/dx g = 2 g'(d) (x - a) / h^2. The differences are summed one by one: written as a product
  // of matrices, near points would cancel.
  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    RowMatrix slopes(a->rows(), b->rows());
    detail::squared_distances(*a, *b, slopes, [this](Rows piece) {
      detail::transform_values(piece, [this](detail::Strip& strip) { slope(strip); });
    });
    RowMatrix sum = RowMatrix::Zero(b->rows(), b->features());
    for (Index i = 0; i < slopes.rows(); ++i) {
      for (Index j = 0; j < slopes.cols(); ++j) {
        const double factor = 2.0 * weights(i, j) * slopes(i, j);
        if (factor != 0) sum.row(j) += factor * (b->point(j) - a->point(i));
      }
    }
    for (Index j = 0; j < sum.rows(); ++j) {
      bandwidth().divide(sum.row(j),
                         [&](const auto& scaled) { gradient.row(j).array() += scaled; });
    }
  }

 private:
  // strip <- g(strip), and strip <- g'(strip), 0 where g has no derivative. Both must take 0 and
  // infinity.
  virtual void profile(detail::Strip& strip) const = 0;
  virtual void slope(detail::Strip& strip) const = 0;
};

// exp(-d / 2)
class Gaussian final : public Radial {
 public:
  explicit Gaussian(Bandwidth bandwidth) : Radial(std::move(bandwidth)) {}

  std::string describe() const override { return "gaussian(" + bandwidth().describe() + ")"; }

 private:
  void profile(detail::Strip& strip) const override { detail::set_exp(strip, -0.5 * strip); }

  void slope(detail::Strip& strip) const override {
    profile(strip);
    strip *= -0.5;
  }
};

// A polynomial times exp(-s), s = sqrt(2 nu d), for nu = 1/2, 3/2, 5/2: functions that are nu - 1/2
// times differentiable.
class Matern final : public Radial {
 public:
  Matern(Bandwidth bandwidth, double nu) : Radial(std::move(bandwidth)), nu_(nu) {
    require(
        nu == 0.5 || nu == 1.5 || nu == 2.5,
        "A Matern kernel's nu must be 0.5, 1.5 or 2.5, but " + format_number(nu) + " was given.");
  }

  std::string describe() const override {
    return "matern(" + bandwidth().describe() + "," + format_number(nu_) + ")";
  }

 private:
  // Beyond this exp(-s) is 0, and a finite s keeps 0 times the polynomial from being NaN.
  static constexpr double largest_s = 1e4;

  void profile(detail::Strip& strip) const override {
    const detail::Strip s = (2.0 * nu_ * strip).sqrt().min(largest_s);
    detail::set_exp(strip, -s);
    if (nu_ == 1.5) strip *= 1.0 + s;
    if (nu_ == 2.5) strip *= 1.0 + s * (1.0 + s * (1.0 / 3.0));
  }

  void slope(detail::Strip& strip) const override {
    const detail::Strip s = (2.0 * nu_ * strip).sqrt().min(largest_s);
    detail::set_exp(strip, -s);
    if (nu_ == 0.5) strip = (s > 0.0).select(-0.5 * strip / s, 0.0);
    if (nu_ == 1.5) strip *= -1.5;
    if (nu_ == 2.5) strip *= (-5.0 / 6.0) * (1.0 + s);
  }

  double nu_;
};

// (1 + d / n)^(-(n + 1) / 2) with n > 0 degrees of freedom: the density of Student's t. With one
// degree it is the Cauchy kernel 1 / (1 + d), the default; with many it approaches the Gaussian.
class StudentT final : public Radial {
 public:
  explicit StudentT(Bandwidth bandwidth, double degrees = 1.0)
      : Radial(std::move(bandwidth)), degrees_(degrees) {
    detail::require_positive(degrees, "The degrees of freedom of a Student-t kernel");
  }

  std::string describe() const override {
    if (degrees_ == 1.0) return "cauchy(" + bandwidth().describe() + ")";
    return "student_t(" + bandwidth().describe() + "," + format_number(degrees_) + ")";
  }

 private:
  void profile(detail::Strip& strip) const override {
    if (degrees_ == 1.0) {
      strip = (1.0 + strip).inverse();
    } else {
      power(strip, 0.5 * (degrees_ + 1.0));
    }
  }

  void slope(detail::Strip& strip) const override {
    const double exponent = 0.5 * (degrees_ + 1.0);
    power(strip, exponent + 1.0);
    strip *= -exponent / degrees_;
  }

  // strip <- (1 + strip / n)^-exponent
  void power(detail::Strip& strip, double exponent) const {
    detail::set_exp(strip, -exponent * (strip / degrees_).log1p());
  }

  double degrees_;
};

// k(x, y) = exp(-|(x - y) / h|_1), a product over the features.
class Laplacian final : public Stationary {
 public:
  explicit Laplacian(Bandwidth bandwidth) : Stationary(std::move(bandwidth)) {}

  void block(const View* a, const View* b, Rows values) const override {
    detail::direct_distances<detail::Absolute>(*a, *b, values, [](Rows piece) {
      detail::transform_values(piece, [](detail::Strip& strip) { detail::set_exp(strip, -strip); });
    });
  }

  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    RowMatrix values(a->rows(), b->rows());
    block(a, b, values);
    RowMatrix sum = RowMatrix::Zero(b->rows(), b->features());
    for (Index i = 0; i < values.rows(); ++i) {
      for (Index j = 0; j < values.cols(); ++j) {
        const double factor = -weights(i, j) * values(i, j);
        if (factor == 0) continue;
        sum.row(j).array() += factor * (b->point(j) - a->point(i)).array().sign();
      }
    }
    for (Index j = 0; j < sum.rows(); ++j) {
      bandwidth().divide(sum.row(j),
                         [&](const auto& scaled) { gradient.row(j).array() += scaled; });
    }
  }

  std::string describe() const override { return "laplacian(" + bandwidth().describe() + ")"; }
};

}  // namespace parsimon
