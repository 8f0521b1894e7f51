#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/interrupt.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/linalg/products.hpp"
#include "parsimon/loss/loss.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

struct MovingSettings {
  double ridge;             // of (ridge / 2) ||f||^2, beside the mean loss
  RowVector units;          // in which the points are moved, one for each feature
  double point_rate;        // of a step, in these units
  double weight_rate;       // relative to the size of the weights
  double stretch_rate = 0;  // of the logarithms of factors of the features; 0: they stay 1
};

// A function whose points and weights are improved together, on the objective
//
//   mean_i c_i l(f(x_i), y_i) + (ridge / 2) ||f||^2,   f(x) = sum_m w_m k(s d_m, s x),
//
// by steps of Adam over mini-batches. s has a factor for each feature, so that widths of the kernel
// can be improved with the points. The loss is the smooth one that second-order solvers minimise.
//
// Points have one second moment each, of all their features, so that their steps have the direction
// of the gradient. Weights are stepped in coordinates R^-1 W, with R given by precondition(), in
// which the curvature of the objective is about one.
class MovingPoints {
 public:
  MovingPoints(KernelPtr kernel, LossPtr loss, RowMatrix points, RowMatrix weights,
               MovingSettings settings)
      : kernel_(std::move(kernel)),
        loss_(std::move(loss)),
        settings_(std::move(settings)),
        points_(std::move(points)),
        weights_(std::move(weights)),
        stretches_(RowVector::Ones(points_.cols())) {
    kernel_->check_features(points_.cols());
    require(points_.rows() > 0 && points_.rows() == weights_.rows() && weights_.cols() > 0,
            "There must be as many rows of weights as points, and at least one.");
    require(points_.allFinite() && is_bounded(weights_), "Points and weights must be finite.");
    require(settings_.units.size() == points_.cols() && settings_.units.allFinite() &&
                settings_.units.minCoeff() > 0,
            "There must be a positive unit for each feature.");
    for (const double rate :
         {settings_.ridge, settings_.point_rate, settings_.weight_rate, settings_.stretch_rate}) {
      require(rate >= 0 && std::isfinite(rate), "Ridge and rates must be finite, not negative.");
    }
    require(settings_.stretch_rate == 0 || kernel_->can_stretch(),
            "The widths of " + kernel_->describe() + " cannot be refined.");
    loss_->check_targets(RowMatrix(0, loss_->target_columns(weights_.cols())), weights_.cols());
    origin_ = points_.colwise().mean();
    point_moment_.setZero(points_.rows(), points_.cols());
    weight_moment_.setZero(weights_.rows(), weights_.cols());
    weight_square_.setZero(weights_.rows(), weights_.cols());
    point_square_.setZero(points_.rows());
    stretch_moment_.setZero(points_.cols());
    stretch_square_.setZero(points_.cols());
  }

  const RowMatrix& points() const { return points_; }
  const RowMatrix& weights() const { return weights_; }
  const RowVector& stretches() const { return stretches_; }

  // The objective, and its gradient by points, weights and logarithms of stretches.
  struct Slope {
    double value = 0;
    RowMatrix points, weights;
    RowVector stretches;
  };

  Slope slope(const ConstRows& samples, const ConstRows& targets,
              const Eigen::Ref<const Vector>& sample_weights) {
    check(samples, targets, sample_weights);
    Slope slope = of_norm();
    add_loss(samples, targets, sample_weights, slope);
    return slope;
  }

  // Weights are stepped in coordinates R^-1 W from now on, R upper triangular. R R' should be the
  // inverse of the mean curvature.
  void precondition(RowMatrix root) {
    require(root.rows() == weights_.rows() && root.cols() == root.rows() && root.allFinite(),
            "The preconditioner must be a square of finite numbers, one row for each point.");
    root_ = std::move(root);
  }

  // Steps over the samples in this order. Their rates begin small, and fall to 0 at the end of
  // `total` steps. Returns how many samples were taken.
  Index run(const ConstRows& samples, const ConstRows& targets,
            const Eigen::Ref<const Vector>& sample_weights, Index batch_size, Index total,
            const Interruptible::KeepGoing& keep_going) {
    check(samples, targets, sample_weights);
    require(batch_size > 0 && total > 0, "Batches and steps must be at least 1.");
    Index taken = 0;
    double sum = 0;
    while (taken < samples.rows()) {
      const Index count = std::min(batch_size, samples.rows() - taken);
      const bool weighted = sample_weights.size() > 0;
      step(samples.middleRows(taken, count), targets.middleRows(taken, count),
           weighted ? Vector(sample_weights.segment(taken, count)) : Vector(),
           rate(static_cast<double>(steps_) / static_cast<double>(total)));
      taken += count;
      sum += slope_.value * static_cast<double>(count);
      if (!keep_going()) break;
    }
    latest_loss_ = taken > 0 ? sum / static_cast<double>(taken) : 0;
    return taken;
  }

  // The mean of the objective without the norm, over the steps of the latest run().
  double latest_loss() const { return latest_loss_; }

 private:
  static constexpr double kMean = 0.9;
  static constexpr double kSquare = 0.999;
  static constexpr double kWarm = 0.05;
  // The norm changes slowly. Its gradient costs as much as one of as many samples as there are
  // points, and is computed once for so many samples for each of them.
  static constexpr double kSamplesPerPoint = 8;

  static double rate(double way) {
    constexpr double pi = 3.14159265358979323846;
    return std::min(1.0, way / kWarm) * 0.5 * (1 + std::cos(pi * std::min(way, 1.0)));
  }

  void check(const ConstRows& samples, const ConstRows& targets,
             const Eigen::Ref<const Vector>& sample_weights) const {
    require(samples.cols() == points_.cols(), "The samples have " + std::to_string(samples.cols()) +
                                                  " features, but the points have " +
                                                  std::to_string(points_.cols()) + ".");
    require(samples.allFinite(), "The samples must be finite.");
    require(samples.rows() == targets.rows() &&
                (sample_weights.size() == 0 || sample_weights.size() == samples.rows()),
            "There must be one target, and one weight if any, for each sample.");
    loss_->check_targets(targets, weights_.cols());
  }

  void start(Slope& slope) const {
    slope.value = 0;
    reshape(slope.points, points_.rows(), points_.cols());
    reshape(slope.weights, weights_.rows(), weights_.cols());
    slope.points.setZero();
    slope.weights.setZero();
    slope.stretches.setZero(points_.cols());
  }

  void fill(std::vector<View>& views, const ConstRows& points) const {
    views.resize(static_cast<std::size_t>(kernel_->view_count()));
    if (settings_.stretch_rate == 0) {
      kernel_->make_views(points, origin_, views.data());
    } else {
      const RowMatrix stretched = points * stretches_.asDiagonal();
      kernel_->make_views(stretched, origin_.cwiseProduct(stretches_), views.data());
    }
  }

  // values_ = k(d, x), and what gradients are made of.
  void compare(const ConstRows& samples) {
    fill(sample_views_, samples);
    reshape(values_, points_.rows(), samples.rows());
    slopes_.resize(static_cast<std::size_t>(kernel_->view_count()));
    if (!kernel_->has_slopes()) {
      kernel_->block(views_.data(), sample_views_.data(), values_);
      return;
    }
    for (RowMatrix& slopes : slopes_) reshape(slopes, points_.rows(), samples.rows());
    kernel_->block_and_slopes(views_.data(), sample_views_.data(), values_, slopes_.data());
  }

  // What the gradient by predictions at the samples that were compared means for the function.
  void add_pulls(const RowMatrix& by_predictions, Slope& slope) {
    reshape(product_, weights_.rows(), weights_.cols());
    linalg::multiply(values_, by_predictions, product_);
    slope.weights += product_;
    reshape(pulls_, values_.rows(), values_.cols());
    linalg::multiply_by_transpose(weights_, by_predictions, pulls_);
    if (!kernel_->has_slopes()) {
      const RowMatrix turned = pulls_.transpose();
      kernel_->add_gradient(sample_views_.data(), views_.data(), turned, slope.points);
      return;
    }
    for (RowMatrix& slopes : slopes_) {
      linalg::share(slopes.rows(), 8, linalg::copy_flops(slopes.size()), [&](Index i, Index end) {
        const Index columns = slopes.cols();
        double* to = slopes.data();
        for (Index at = i * columns; at < end * columns; ++at) to[at] *= pulls_.data()[at];
      });
    }
    double* stretch = settings_.stretch_rate > 0 ? slope.stretches.data() : nullptr;
    kernel_->add_pulls(views_.data(), sample_views_.data(), slopes_.data(), slope.points, stretch);
  }

  void add_loss(const ConstRows& samples, const ConstRows& targets,
                const Eigen::Ref<const Vector>& sample_weights, Slope& slope) {
    fill(views_, points_);
    compare(samples);
    const Index count = samples.rows();
    reshape(predictions_, count, weights_.cols());
    reshape(by_predictions_, count, weights_.cols());
    linalg::multiply_transpose_by(values_, weights_, predictions_);
    ensure_size(losses_, count);
    ensure_size(curvature_, count);
    if (loss_->has_curvature()) {
      loss_->majorise(predictions_, targets, losses_.head(count), by_predictions_,
                      curvature_.head(count));
    } else {
      loss_->evaluate(predictions_, targets, losses_.head(count), by_predictions_);
    }
    double sum = 0;
    for (Index i = 0; i < count; ++i) {
      const double share =
          (sample_weights.size() == 0 ? 1 : sample_weights(i)) / static_cast<double>(count);
      sum += share * losses_(i);
      by_predictions_.row(i) *= share;
    }
    slope.value += sum;
    if (settings_.stretch_rate == 0) return add_pulls(by_predictions_, slope);
    // In the stretched space first.
    RowMatrix points = RowMatrix::Zero(points_.rows(), points_.cols());
    points.swap(slope.points);
    add_pulls(by_predictions_, slope);
    slope.points *= stretches_.asDiagonal();
    slope.points += points;
  }

  // (ridge / 2) ||f||^2: the points take the place of the samples, and ridge w that of the gradient
  // by predictions.
  Slope of_norm() {
    Slope slope;
    start(slope);
    if (settings_.ridge == 0) return slope;
    fill(views_, points_);
    constexpr Index block = 256;
    for (Index first = 0; first < points_.rows(); first += block) {
      const Index count = std::min(block, points_.rows() - first);
      compare(points_.middleRows(first, count));
      const RowMatrix pull = settings_.ridge * weights_.middleRows(first, count);
      add_pulls(pull, slope);
    }
    slope.value = 0.5 * (weights_.array() * slope.weights.array()).sum();
    slope.stretches *= 0.5;
    if (settings_.stretch_rate > 0) slope.points *= stretches_.asDiagonal();
    return slope;
  }

  void step(const ConstRows& samples, const ConstRows& targets,
            const Eigen::Ref<const Vector>& sample_weights, double rate) {
    const double between = kSamplesPerPoint * static_cast<double>(points_.rows());
    if (steps_ == 0 || since_norm_ >= between) {
      norm_ = of_norm();
      since_norm_ = 0;
    }
    since_norm_ += static_cast<double>(samples.rows());
    slope_ = norm_;
    slope_.value = 0;
    add_loss(samples, targets, sample_weights, slope_);
    if (!std::isfinite(slope_.value) || !slope_.weights.allFinite()) {
      throw DivergenceError("The function is no longer finite while its points are moved.");
    }
    ++steps_;
    const auto steps = static_cast<double>(steps_);
    const double mean = 1 - std::pow(kMean, steps), square = 1 - std::pow(kSquare, steps);
    move_points(rate * settings_.point_rate / mean, square);
    move_weights(rate * settings_.weight_rate / mean, square);
    if (settings_.stretch_rate > 0) stretch(rate * settings_.stretch_rate / mean, square);
  }

  void move_points(double rate, double square) {
    const Index features = points_.cols();
    const double* units = settings_.units.data();
    linalg::share(points_.rows(), 1, linalg::copy_flops(points_.size()), [&](Index i, Index end) {
      for (; i < end; ++i) {
        double* slope = slope_.points.data() + i * features;
        double* moment = point_moment_.data() + i * features;
        double* point = points_.data() + i * features;
        double sum = 0;
        for (Index f = 0; f < features; ++f) {
          slope[f] *= units[f];
          sum += slope[f] * slope[f];
        }
        double& second = point_square_(i);
        second += (1 - kSquare) * (sum / static_cast<double>(features) - second);
        const double size = std::sqrt(second / square);
        const double factor = size > 0 ? rate / size : 0;
        for (Index f = 0; f < features; ++f) {
          moment[f] += (1 - kMean) * (slope[f] - moment[f]);
          point[f] -= factor * units[f] * moment[f];
        }
      }
    });
  }

  void move_weights(double rate, double square) {
    RowMatrix& slope = slope_.weights;
    const bool turned = root_.size() > 0;
    if (turned) {
      reshape(product_, slope.rows(), slope.cols());
      linalg::multiply_transpose_by(root_, slope, product_);
      slope.swap(product_);
    }
    if (weight_unit_ == 0) weight_unit_ = size_of_weights();
    for (Index i = 0; i < slope.size(); ++i) {
      double &first = weight_moment_.data()[i], &second = weight_square_.data()[i];
      double& number = slope.data()[i];
      first += (1 - kMean) * (number - first);
      second += (1 - kSquare) * (number * number - second);
      const double size = std::sqrt(second / square);
      number = size > 0 ? rate * weight_unit_ * first / size : 0;
    }
    if (turned) {
      linalg::multiply(root_, slope, product_);
      slope.swap(product_);
    }
    weights_ -= slope;
  }

  // The root of the mean square in the coordinates that are stepped.
  double size_of_weights() const {
    RowMatrix coordinates = weights_;
    for (Index i = root_.rows() - 1; i >= 0; --i) {
      for (Index k = i + 1; k < root_.rows(); ++k) {
        coordinates.row(i) -= root_(i, k) * coordinates.row(k);
      }
      coordinates.row(i) /= root_(i, i);
    }
    const double size = std::sqrt(coordinates.squaredNorm() / static_cast<double>(weights_.size()));
    return size > 0 ? size : 1;
  }

  void stretch(double rate, double square) {
    for (Index f = 0; f < stretches_.size(); ++f) {
      const double slope = slope_.stretches(f);
      stretch_moment_(f) += (1 - kMean) * (slope - stretch_moment_(f));
      stretch_square_(f) += (1 - kSquare) * (slope * slope - stretch_square_(f));
      const double size = std::sqrt(stretch_square_(f) / square);
      if (size > 0) stretches_(f) *= std::exp(-rate * stretch_moment_(f) / size);
    }
  }

  KernelPtr kernel_;
  LossPtr loss_;
  MovingSettings settings_;
  RowMatrix points_, weights_;
  RowVector stretches_;
  RowVector origin_;
  RowMatrix root_;

  RowMatrix point_moment_, weight_moment_, weight_square_;
  Vector point_square_;
  RowVector stretch_moment_, stretch_square_;
  double weight_unit_ = 0;
  Index steps_ = 0;
  double since_norm_ = 0;
  double latest_loss_ = 0;

  Slope norm_, slope_;
  std::vector<View> views_, sample_views_;
  std::vector<RowMatrix> slopes_;
  RowMatrix values_, pulls_, product_, predictions_, by_predictions_;
  Vector losses_, curvature_;
};

}  // namespace parsimon
