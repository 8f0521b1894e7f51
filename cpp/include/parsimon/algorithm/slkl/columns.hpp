#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The columns c_m = k(., x_m) / sqrt(k(x_m, x_m)) at n samples, for M chosen points x_m, and what
// SLKL needs of them: norms c_m'c_m, correlations C'y with the targets of each output and, if they
// are stored, all products C'C. Without them it keeps the samples, from which columns are computed
// as they are needed. Never n x n, nor n x M. Where samples have weights, the rows of C and y are
// multiplied by their roots: a sample of weight 2 is the same as two.
//
// Call prepare() once. Immutable afterwards.
class KernelColumns {
 public:
  KernelColumns(KernelPtr kernel, const ConstRows& points, bool store_products)
      : points_(std::move(kernel), points.cols()), store_products_(store_products) {
    require(points.rows() > 0, "There must be at least one column.");
    require(points.allFinite(), "The points of the columns must be finite.");
    points_.append(points, false);
    Vector self(size());
    points_.kernel().diagonal(points_.views(), self);
    scale_.resize(size());
    for (Index m = 0; m < size(); ++m) {
      require(std::isfinite(self(m)) && self(m) >= 0,
              "The kernel of a point with itself must be finite and not negative; scale the "
              "features or choose another kernel.");
      // A point with k(x, x) = 0 has a column of zeros.
      scale_(m) = self(m) > 0 ? 1 / std::sqrt(self(m)) : 0.0;
    }
  }

  Index size() const { return points_.size(); }
  Index samples() const { return targets_.rows(); }
  Index outputs() const { return targets_.cols(); }
  bool stores_products() const { return store_products_; }
  const Vector& scale() const { return scale_; }
  const Vector& norms() const { return norms_; }
  const RowMatrix& products() const { return products_; }
  const RowMatrix& correlations() const { return correlations_; }
  const RowMatrix& targets() const { return targets_; }
  const Vector& target_norms() const { return target_norms_; }

  // Takes the samples, a block at a time as long as keep_going() says so. Returns how many.
  // weights: empty, or one for each sample.
  Index prepare(const ConstRows& samples, const ConstRows& targets,
                const std::function<bool()>& keep_going, const Vector& weights = Vector()) {
    require(samples.cols() == points_.features() && samples.rows() == targets.rows() &&
                samples.rows() > 0 && targets.cols() > 0,
            "There must be a row of targets for each sample, and as many features as the columns' "
            "points have.");
    require(samples.allFinite() && targets.allFinite(), "Samples and targets must be finite.");
    require(weights.size() == 0 || weights.size() == samples.rows(),
            "There must be a weight for each sample.");
    roots_.resize(weights.size());
    for (Index i = 0; i < weights.size(); ++i) {
      require(std::isfinite(weights(i)) && weights(i) >= 0,
              "The weights of samples must be finite and not negative.");
      roots_(i) = std::sqrt(weights(i));
    }
    targets_ = targets;
    weigh(0, targets_);
    target_norms_ = Vector::Zero(targets.cols());
    for (Index i = 0; i < targets.rows(); ++i) {
      for (Index c = 0; c < targets.cols(); ++c) {
        target_norms_(c) += targets_(i, c) * targets_(i, c);
      }
    }
    norms_ = Vector::Zero(size());
    correlations_ = RowMatrix::Zero(size(), targets.cols());
    if (store_products_) products_ = RowMatrix::Zero(size(), size());
    std::vector<View> views;
    RowMatrix block, with_targets(size(), targets.cols());
    Index start = 0;
    while (start < samples.rows() && keep_going()) {
      const Index count = std::min(kBlock, samples.rows() - start);
      points_.make_views(samples.middleRows(start, count), views);
      columns_at(views, count, block);
      weigh(start, block);
      for (Index i = 0; i < count; ++i) {
        for (Index m = 0; m < size(); ++m) norms_(m) += block(i, m) * block(i, m);
      }
      linalg::multiply_transpose_by(block, targets_.middleRows(start, count), with_targets);
      correlations_ += with_targets;
      if (store_products_) linalg::add_self_product(block, products_);
      start += count;
    }
    for (Index i = 0; i < products_.rows(); ++i) {
      for (Index k = 0; k < i; ++k) products_(k, i) = products_(i, k);
    }
    require(std::isfinite(norms_.sum()) && std::isfinite(norms_.squaredNorm()) &&
                correlations_.allFinite() && target_norms_.allFinite(),
            "The kernel's values or the targets are beyond the range in which their squares are "
            "finite; scale features and targets, or choose another kernel.");
    if (!store_products_) points_.make_views(samples, sample_views_);
    return start;
  }

  // columns(:, k) = c_m for m = which[k]; needs the samples.
  void columns(const std::vector<Index>& which, RowMatrix& columns) const {
    const std::vector<View> views = points_.views_of(which);
    columns.resize(samples(), static_cast<Index>(which.size()));
    points_.kernel().block(sample_views_.data(), views.data(), columns);
    for (Index i = 0; i < columns.rows(); ++i) {
      for (std::size_t k = 0; k < which.size(); ++k) {
        columns(i, static_cast<Index>(k)) *= scale_(which[k]);
      }
    }
    weigh(0, columns);
  }

 private:
  // Samples at a time: enough for a product of matrices at full speed.
  static constexpr Index kBlock = 256;

  // Rows of samples from this one on.
  void weigh(Index start, RowMatrix& rows) const {
    if (roots_.size() == 0) return;
    for (Index i = 0; i < rows.rows(); ++i) {
      for (Index c = 0; c < rows.cols(); ++c) rows(i, c) *= roots_(start + i);
    }
  }

  void columns_at(const std::vector<View>& views, Index count, RowMatrix& block) const {
    block.resize(count, size());
    points_.kernel().block(views.data(), points_.views(), block);
    for (Index i = 0; i < count; ++i) {
      for (Index m = 0; m < size(); ++m) block(i, m) *= scale_(m);
    }
  }

  Dictionary points_;
  bool store_products_;
  Vector scale_;
  Vector roots_;  // of the weights of the samples, if they have any
  RowMatrix targets_;
  Vector target_norms_;
  Vector norms_;
  RowMatrix correlations_;  // one row per column, one column per output
  RowMatrix products_;      // C'C
  std::vector<View> sample_views_;
};

}  // namespace parsimon
