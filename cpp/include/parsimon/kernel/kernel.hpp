#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/memory/placed_rows.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Points as one leaf kernel wants to see them: prepared once (moved to a common origin, divided by
// the bandwidth, with their squared norms), so that a block of kernel values costs one product of
// matrices. Two views can be compared only if the same kernel made both from the same origin.
//
// The buffers only ever grow, so a view that is filled again and again stops allocating.
class View {
 public:
  Index rows() const { return points_.rows(); }
  Index features() const { return points_.columns(); }

  // The first of the numbers of point i.
  double* point(Index i) { return points_.at(i); }
  const double* point(Index i) const { return points_.at(i); }
  // All of them, in order: a copy.
  RowMatrix points() const { return points_.in_order(); }
  linalg::Tall<double> tall() const { return points_.tall(); }
  double* squared_norms() { return squared_norms_.data(); }
  const double* squared_norms() const { return squared_norms_.data(); }

  // Starts again, with points that are uninitialised.
  void reset(Index rows, Index features) {
    points_.reset(rows, features);
    squared_norms_.resize(rows);
    rounded_.reset(0, features);
  }

  // A copy in single precision, if there is one: products of two views that both have it are
  // computed with it.
  bool is_rounded() const { return rounded_.rows() == rows(); }
  linalg::Tall<float> rounded() const { return rounded_.tall(); }
  void round() {
    rounded_.reset(rows(), features());
    for (Index i = 0; i < rows(); ++i) {
      const double* from = point(i);
      float* to = rounded_.at(i);
      for (Index f = 0; f < features(); ++f) to[f] = static_cast<float>(from[f]);
    }
  }

  void append(const View& other, Index row) {
    points_.append(other.points_.at(row));
    squared_norms_.append(other.squared_norms() + row);
    if (other.is_rounded()) rounded_.append(other.rounded_.at(row));
  }

  // The first points stay, whatever an append() that has thrown has left behind them.
  void truncate(Index rows) noexcept {
    points_.truncate(rows);
    rounded_.truncate(rows);
    if (squared_norms_.rows() > rows) squared_norms_.resize(rows);
  }

  void replace_by_last(Index i) {
    if (is_rounded()) rounded_.replace_by_last(i);
    points_.replace_by_last(i);
    squared_norms_.replace_by_last(i);
  }

  // Row i becomes what row order[i] was; rows that are not named go.
  void select(const std::vector<Index>& order) {
    if (is_rounded()) rounded_.select(order);
    points_.select(order);
    squared_norms_.select(order);
  }

  // From now on, and until the next time, undo() brings all points back as they are.
  void remember() {
    rounded_.remember();
    points_.remember();
    kept_norms_.copy_from(squared_norms_);
  }
  void undo() noexcept {
    rounded_.undo();
    points_.undo();
    std::swap(squared_norms_, kept_norms_);
  }
  void settle() noexcept {
    rounded_.settle();
    points_.settle();
  }

 private:
  PlacedRows points_;
  RowBuffer squared_norms_{1};
  RowBuffer kept_norms_{1};
  PlacedRowsOf<float> rounded_;
};

// A positive definite function of two points. Immutable, so one kernel may serve many threads.
//
// `const View*` parameters point at view_count() consecutive views, one per leaf of the kernel's
// tree; a composite hands each child its share.
class Kernel {
 public:
  virtual ~Kernel() = default;

  virtual Index view_count() const = 0;

  // Throws Error if the kernel cannot take points of this many features.
  virtual void check_features(Index features) const = 0;

  // Overwrites views[0 .. view_count()).
  virtual void make_views(const ConstRows& points, const RowVector& origin, View* views) const = 0;

  // values(i, j) = k(a_i, b_j)
  virtual void block(const View* a, const View* b, Rows values) const = 0;

  // values(i) = k(a_i, a_i)
  virtual void diagonal(const View* a, Eigen::Ref<Vector> values) const = 0;

  // gradient.row(j) += sum_i weights(i, j) * (d/dx) k(a_i, x) at x = b_j
  virtual void add_gradient(const View* a, const View* b, const ConstRows& weights,
                            Rows gradient) const = 0;

  // Whether it has one.
  virtual bool has_gradient() const { return true; }

  // Gradients by many points at once. block_and_slopes() finds values as block() does, and for each
  // view v what slopes[v](i, j) is in
  //
  //   (d/dx) k(x, b_j) at x = a_i  =  sum_v slopes[v](i, j) direction_v(a_i, b_j);
  //
  // add_pulls() knows the directions: gradient.row(i) += sum_jv weights[v](i, j) direction_v. Where
  // features can be stretched, stretch[f] is added what the derivative by log s makes of the same
  // weights, if feature f of all points is multiplied by s.
  virtual bool has_slopes() const { return false; }
  virtual bool can_stretch() const { return false; }
  virtual void block_and_slopes(const View* a, const View* b, Rows values,
                                RowMatrix* slopes) const {
    (void)a, (void)b, (void)values, (void)slopes;
    throw Error("The kernel " + describe() + " has no slopes.");
  }
  virtual void add_pulls(const View* a, const View* b, const RowMatrix* weights, Rows gradient,
                         double* stretch) const {
    (void)a, (void)b, (void)weights, (void)gradient, (void)stretch;
    throw Error("The kernel " + describe() + " has no slopes.");
  }

  // How far values may be off relative to k(x, x), if by more than double precision has it.
  virtual double resolution() const { return 0; }

  // Whether k(a, z) along the line from a to b is k(a, b)^(h^2), h the way to z: that of merge.hpp.
  virtual bool merges_points() const { return false; }

  // An expression that parse_kernel() turns back into the same kernel.
  virtual std::string describe() const = 0;
};

using KernelPtr = std::shared_ptr<const Kernel>;

}  // namespace parsimon
