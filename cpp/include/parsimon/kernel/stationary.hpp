#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/kernel/check.hpp"
#include "parsimon/kernel/distance.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/kernel/profile.hpp"
#include "parsimon/kernel/pulls.hpp"

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
    if (per_feature_) detail::require_as_many_bandwidths(lengths_.size(), features);
  }

  // The length of feature f. Dividing by it, rather than multiplying by its inverse, is right for
  // the smallest as well.
  double operator()(Index f) const { return lengths_(per_feature_ ? f : 0); }

  // out = (x - origin) / h, within what detail::largest_coordinate allows.
  void divide(const double* x, const double* origin, double* out, Index features) const {
    constexpr double most = detail::largest_coordinate;
    const double* lengths = lengths_.data();
    if (per_feature_) {
      for (Index f = 0; f < features; ++f) out[f] = (x[f] - origin[f]) / lengths[f];
    } else {
      const double length = lengths[0];
      for (Index f = 0; f < features; ++f) out[f] = (x[f] - origin[f]) / length;
    }
    for (Index f = 0; f < features; ++f) {
      const double value = out[f] < most ? out[f] : most;
      out[f] = value > -most ? value : -most;
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
    for (const double length : lengths_) detail::require_bandwidth(length);
  }

  RowVector lengths_;
  bool per_feature_;
};

namespace detail {

// gradient.row(j) += sum_i weights(i, j) factors(i, j) term(b_j - a_i) / h. The differences are
// summed one by one: written as a product of matrices, near points would cancel.
template <class Term>
void add_differences(const View& a, const View& b, const ConstRows& weights,
                     const ConstRows& factors, Rows gradient, const Bandwidth& bandwidth,
                     const Term& term) {
  std::vector<double> sum(static_cast<std::size_t>(b.features()));
  for (Index j = 0; j < b.rows(); ++j) {
    const double* to = b.point(j);
    std::fill(sum.begin(), sum.end(), 0.0);
    for (Index i = 0; i < a.rows(); ++i) {
      const double factor = weights(i, j) * factors(i, j);
      if (factor == 0) continue;
      const double* from = a.point(i);
      for (Index f = 0; f < b.features(); ++f) {
        sum[static_cast<std::size_t>(f)] += factor * term(to[f] - from[f]);
      }
    }
    for (Index f = 0; f < b.features(); ++f) {
      gradient(j, f) += sum[static_cast<std::size_t>(f)] / bandwidth(f);
    }
  }
}

}  // namespace detail

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

  bool has_slopes() const override { return true; }
  bool can_stretch() const override { return true; }

  void make_views(const ConstRows& points, const RowVector& origin, View* views) const override {
    views->reset(points.rows(), points.cols());
    const double flops = linalg::copy_flops(points.size());
    linalg::share(points.rows(), 8, flops, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const double* from = points.data() + i * points.outerStride();
        double* to = views->point(i);
        bandwidth_.divide(from, origin.data(), to, points.cols());
        views->squared_norms()[i] = linalg::loops().squared_norm(to, points.cols());
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
    detail::squared_distances(*a, *b, values, [this](const Rows& piece) {
      detail::transform_values(piece, [this](double* d, Index count) { profile(d, count); });
    });
  }

  // d/dx g = 2 g'(d) (x - a) / h^2
  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    RowMatrix factors(a->rows(), b->rows());
    detail::squared_distances(*a, *b, factors, [this](const Rows& piece) {
      detail::transform_values(piece, [this](double* d, Index count) { slope(d, count); });
    });
    for (Index i = 0; i < factors.size(); ++i) factors.data()[i] *= 2;
    detail::add_differences(*a, *b, weights, factors, gradient, bandwidth(),
                            [](double difference) { return difference; });
  }

  void block_and_slopes(const View* a, const View* b, Rows values,
                        RowMatrix* slopes) const override {
    detail::squared_distances(*a, *b, values, [](const Rows&) {});
    detail::profile_rows(values, *slopes, [this](double* d, double* slope, Index count) {
      profile_and_slope(d, slope, count);
    });
  }

  // In the direction (a_i - b_j) / h. Written as a product of matrices: what cancels is small
  // beside the distances of all others.
  void add_pulls(const View* a, const View* b, const RowMatrix* weights, Rows gradient,
                 double* stretch) const override {
    const Index features = a->features();
    const double* sums = detail::sums_of_points(*weights, *b);
    for (Index i = 0; i < a->rows(); ++i) {
      const double total = weights->row(i).sum();
      const double *point = a->point(i), *sum = sums + i * features;
      double* pull = detail::row_of(gradient, i);
      for (Index f = 0; f < features; ++f) pull[f] += (total * point[f] - sum[f]) / bandwidth()(f);
      if (stretch == nullptr) continue;
      for (Index f = 0; f < features; ++f) stretch[f] += (total * point[f] - 2 * sum[f]) * point[f];
    }
    if (stretch == nullptr) return;
    for (Index j = 0; j < b->rows(); ++j) {
      const double total = weights->col(j).sum();
      const double* point = b->point(j);
      for (Index f = 0; f < features; ++f) stretch[f] += total * point[f] * point[f];
    }
  }

 private:
  // d <- g(d), and d <- g'(d), 0 where g has no derivative. Both must take 0 and infinity.
  virtual void profile(double* d, Index count) const = 0;
  virtual void slope(double* d, Index count) const = 0;
  // Both at once, the slope by (x - a) / h: 2 g'(d).
  virtual void profile_and_slope(double* d, double* slopes, Index count) const {
    std::copy_n(d, count, slopes);
    profile(d, count);
    slope(slopes, count);
    for (Index j = 0; j < count; ++j) slopes[j] *= 2;
  }
};

// exp(-d / 2)
class Gaussian final : public Radial {
 public:
  explicit Gaussian(Bandwidth bandwidth) : Radial(std::move(bandwidth)) {}

  // Along a feature: the kernel is a product over them.
  double length(Index feature) const { return bandwidth()(feature); }

  bool merges_points() const override { return true; }

  std::string describe() const override { return "gaussian(" + bandwidth().describe() + ")"; }

 private:
  void profile(double* d, Index count) const override {
    linalg::loops().exponential(-0.5, d, count);
  }

  void slope(double* d, Index count) const override {
    profile(d, count);
    for (Index j = 0; j < count; ++j) d[j] *= -0.5;
  }

  void profile_and_slope(double* d, double* slopes, Index count) const override {
    profile(d, count);
    for (Index j = 0; j < count; ++j) slopes[j] = -d[j];
  }
};

// A polynomial times exp(-s), s = sqrt(2 nu d), for nu = 1/2, 3/2, 5/2: functions that are nu - 1/2
// times differentiable.
class Matern final : public Radial {
 public:
  Matern(Bandwidth bandwidth, double nu) : Radial(std::move(bandwidth)), nu_(nu) {
    detail::require_matern(nu);
  }

  std::string describe() const override {
    return "matern(" + bandwidth().describe() + "," + format_number(nu_) + ")";
  }

 private:
  void profile(double* d, Index count) const override {
    detail::matern_profile(nu_, d, count, linalg::loops().exponential);
  }

  void slope(double* d, Index count) const override {
    detail::times_exponential(nu_, d, count, linalg::loops().exponential, [this](double s) {
      if (nu_ == 0.5) return s > 0.0 ? -0.5 / s : 0.0;
      return nu_ == 1.5 ? -1.5 : (-5.0 / 6.0) * (1.0 + s);
    });
  }

  double nu_;
};

// (1 + d / n)^(-(n + 1) / 2) with n > 0 degrees of freedom: the density of Student's t. With one
// degree it is the Cauchy kernel 1 / (1 + d), the default; with many it approaches the Gaussian.
class StudentT final : public Radial {
 public:
  explicit StudentT(Bandwidth bandwidth, double degrees = 1.0)
      : Radial(std::move(bandwidth)), degrees_(degrees) {
    detail::require_student_t(degrees);
  }

  std::string describe() const override {
    if (degrees_ == 1.0) return "cauchy(" + bandwidth().describe() + ")";
    return "student_t(" + bandwidth().describe() + "," + format_number(degrees_) + ")";
  }

 private:
  void profile(double* d, Index count) const override {
    detail::student_t_profile(degrees_, d, count, linalg::loops().exponential);
  }

  void slope(double* d, Index count) const override {
    const double exponent = 0.5 * (degrees_ + 1.0);
    detail::student_t_power(degrees_, exponent + 1.0, d, count, linalg::loops().exponential);
    for (Index j = 0; j < count; ++j) d[j] *= -exponent / degrees_;
  }

  double degrees_;
};

// k(x, y) = exp(-|(x - y) / h|_1), a product over the features.
class Laplacian final : public Stationary {
 public:
  explicit Laplacian(Bandwidth bandwidth) : Stationary(std::move(bandwidth)) {}

  void block(const View* a, const View* b, Rows values) const override {
    detail::direct_distances(detail::Norm::absolute, *a, *b, values, [](const Rows& piece) {
      detail::transform_values(
          piece, [](double* d, Index count) { linalg::loops().exponential(-1.0, d, count); });
    });
  }

  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    RowMatrix factors(a->rows(), b->rows());
    block(a, b, factors);
    detail::add_differences(*a, *b, weights, factors, gradient, bandwidth(), [](double difference) {
      return difference > 0 ? -1.0 : difference < 0 ? 1.0 : 0.0;
    });
  }

  void block_and_slopes(const View* a, const View* b, Rows values,
                        RowMatrix* slopes) const override {
    block(a, b, values);
    for (Index i = 0; i < values.rows(); ++i) {
      for (Index j = 0; j < values.cols(); ++j) (*slopes)(i, j) = -values(i, j);
    }
  }

  // In the direction sign(a_i - b_j) / h.
  void add_pulls(const View* a, const View* b, const RowMatrix* weights, Rows gradient,
                 double* stretch) const override {
    for (Index i = 0; i < a->rows(); ++i) {
      const double* from = a->point(i);
      double* pull = detail::row_of(gradient, i);
      for (Index j = 0; j < b->rows(); ++j) {
        const double weight = (*weights)(i, j);
        if (weight == 0) continue;
        const double* to = b->point(j);
        for (Index f = 0; f < a->features(); ++f) {
          const double difference = from[f] - to[f];
          if (difference == 0) continue;
          pull[f] += (difference > 0 ? weight : -weight) / bandwidth()(f);
          if (stretch != nullptr) stretch[f] += weight * std::abs(difference);
        }
      }
    }
  }

  std::string describe() const override { return "laplacian(" + bandwidth().describe() + ")"; }
};

}  // namespace parsimon
