#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/weighted_ridge.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The columns c_m = k(., x_m) / sqrt(k(x_m, x_m)) at n samples, for M chosen points x_m, and what
// SLKL needs of them: norms c_m'c_m, correlations C'y with the targets of each output and, if they
// are stored, all products C'C. Without them it keeps the samples, from which columns are computed
// as they are needed. Never n x n, nor n x M.
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
    require(self.allFinite() && (self.array() >= 0).all(),
            "The kernel of a point with itself must be finite and not negative; scale the features "
            "or choose another kernel.");
    // A point with k(x, x) = 0 has a column of zeros.
    scale_ = (self.array() > 0).select(self.array().rsqrt(), 0.0);
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
  template <typename KeepGoing>
  Index prepare(const ConstRows& samples, const ConstRows& targets, KeepGoing&& keep_going) {
    require(samples.cols() == points_.features() && samples.rows() == targets.rows() &&
                samples.rows() > 0 && targets.cols() > 0,
            "There must be a row of targets for each sample, and as many features as the columns' "
            "points have.");
    require(samples.allFinite() && targets.allFinite(), "Samples and targets must be finite.");
    targets_ = targets;
    target_norms_ = targets.colwise().squaredNorm().transpose();
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
      for (Index i = 0; i < count; ++i) {
        for (Index m = 0; m < size(); ++m) norms_(m) += block(i, m) * block(i, m);
      }
      linalg::multiply_transpose_by(block, targets.middleRows(start, count), with_targets);
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
    columns *= scale_(which).asDiagonal();
  }

 private:
  // Samples at a time: enough for a product of matrices at full speed.
  static constexpr Index kBlock = 256;

  void columns_at(const std::vector<View>& views, Index count, RowMatrix& block) const {
    block.resize(count, size());
    points_.kernel().block(views.data(), points_.views(), block);
    block *= scale_.asDiagonal();
  }

  Dictionary points_;
  bool store_products_;
  Vector scale_;
  RowMatrix targets_;
  Vector target_norms_;
  Vector norms_;
  RowMatrix correlations_;  // a row a column, a column an output
  RowMatrix products_;      // C'C
  std::vector<View> sample_views_;
};

// How a solver asks for products of columns with those in its active set, when all are stored.
class StoredProducts {
 public:
  StoredProducts(const KernelColumns& columns, Index output)
      : columns_(columns), correlations_(columns.correlations().col(output)) {}

  double square(Index m) const { return columns_.norms()(m); }
  double correlation(Index m) const { return correlations_(m); }

  // result = C_A' c_m
  void with_active(Index m, const std::vector<Index>& active, Vector& result) const {
    result.resize(static_cast<Index>(active.size()));
    const double* row = columns_.products().data() + m * columns_.size();
    for (std::size_t i = 0; i < active.size(); ++i) result(static_cast<Index>(i)) = row[active[i]];
  }

  // c_m'(y - C_A w)
  double alignment(Index m, const std::vector<Index>& active, const WeightedRidge& ridge) {
    with_active(m, active, gathered_);
    return correlations_(m) - gathered_.dot(ridge.solution());
  }

  // result = C'(y - C_A w), all at once. Returns false if keep_going() did, before all was done.
  template <typename KeepGoing>
  bool alignments(const std::vector<Index>& active, const WeightedRidge& ridge,
                  const KeepGoing& keep_going, Vector& result) {
    result = correlations_;
    for (std::size_t i = 0; i < active.size(); ++i) {
      result.noalias() -=
          ridge.solution()(static_cast<Index>(i)) * columns_.products().row(active[i]).transpose();
    }
    return keep_going();
  }

  void appended(Index) {}
  void removed(Index) {}
  void selected(const std::vector<Index>&) {}

 private:
  const KernelColumns& columns_;
  Vector correlations_;
  Vector gathered_;
};

// The same from the samples: it keeps the active columns, n m0 numbers, and computes the others as
// they are asked for.
class ComputedProducts {
 public:
  ComputedProducts(const KernelColumns& columns, Index output)
      : columns_(columns), output_(output), active_(columns.samples(), 0) {}

  double square(Index m) const { return columns_.norms()(m); }
  double correlation(Index m) const { return columns_.correlations()(m, output_); }

  void with_active(Index m, const std::vector<Index>&, Vector& result) {
    compute(m);
    result.noalias() = active_.leftCols(size_).transpose() * column_.col(0);
  }

  double alignment(Index m, const std::vector<Index>&, const WeightedRidge& ridge) {
    compute(m);
    find_residual(ridge);
    return column_.col(0).dot(residual_);
  }

  template <typename KeepGoing>
  bool alignments(const std::vector<Index>&, const WeightedRidge& ridge,
                  const KeepGoing& keep_going, Vector& result) {
    find_residual(ridge);
    result.setZero(columns_.size());
    known_ = -1;
    std::vector<Index> block;
    for (Index start = 0; start < columns_.size(); start += kBlock) {
      if (!keep_going()) return false;
      const Index count = std::min(kBlock, columns_.size() - start);
      block.resize(static_cast<std::size_t>(count));
      for (Index k = 0; k < count; ++k) block[static_cast<std::size_t>(k)] = start + k;
      columns_.columns(block, column_);
      result.segment(start, count).noalias() = column_.transpose() * residual_;
    }
    return true;
  }

  // with_active() was asked for the column that comes.
  void appended(Index m) {
    compute(m);
    if (size_ == active_.cols()) {
      active_.conservativeResize(columns_.samples(), std::max<Index>(16, size_ + size_ / 2));
    }
    active_.col(size_++) = column_.col(0);
  }

  void removed(Index i) {
    --size_;
    if (i != size_) active_.col(i) = active_.col(size_);
  }

  void selected(const std::vector<Index>& kept) {
    for (std::size_t i = 0; i < kept.size(); ++i) {  // kept is in ascending order
      const auto to = static_cast<Index>(i);
      if (to != kept[i]) active_.col(to) = active_.col(kept[i]);
    }
    size_ = static_cast<Index>(kept.size());
  }

 private:
  // Columns at a time.
  static constexpr Index kBlock = 64;

  void compute(Index m) {
    if (known_ == m) return;
    columns_.columns({m}, column_);
    known_ = m;
  }

  void find_residual(const WeightedRidge& ridge) {
    residual_ = columns_.targets().col(output_);
    residual_.noalias() -= active_.leftCols(size_) * ridge.solution();
  }

  const KernelColumns& columns_;
  Index output_;
  Eigen::MatrixXd active_;
  Index size_ = 0;
  RowMatrix column_;
  Index known_ = -1;
  Vector residual_;
};

}  // namespace parsimon
