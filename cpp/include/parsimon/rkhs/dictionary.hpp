#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "parsimon/kernel/kernel.hpp"
#include "parsimon/memory/placed_rows.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The points that carry a function, with the kernel's views of them.
//
// Invariant: views() are the kernel's views of points() about origin(); ids are unique and stay
// with their points, whatever the order. The origin is the median of the points that were compared
// with the empty dictionary, so that data far from zero lose no digits; it does not change as long
// as there are points.
class Dictionary {
 public:
  Dictionary(KernelPtr kernel, Index features)
      : kernel_(std::move(kernel)),
        points_(features),
        views_(static_cast<std::size_t>(kernel_->view_count())) {
    kernel_->check_features(features);
    for (View& view : views_) view.reset(0, features);
  }

  const Kernel& kernel() const { return *kernel_; }
  const KernelPtr& kernel_pointer() const { return kernel_; }
  Index size() const { return points_.rows(); }
  Index features() const { return points_.columns(); }
  auto point(Index i) const { return points_.row(i); }
  RowMatrix points() const { return points_.in_order(); }
  const View* views() const { return views_.data(); }
  const RowVector& origin() const { return origin_; }
  const std::vector<Index>& ids() const { return ids_; }
  bool is_protected(Index i) const { return protected_[static_cast<std::size_t>(i)]; }
  Index id(Index i) const { return ids_[static_cast<std::size_t>(i)]; }
  Index next_id() const { return next_id_; }

  // Views of other points that may be compared with views(). As long as the dictionary is empty,
  // they choose the origin.
  void make_views(const ConstRows& points, std::vector<View>& views) {
    if (size() == 0 && points.rows() > 0) origin_ = median(points);
    views.resize(views_.size());
    kernel_->make_views(points, origin_, views.data());
  }

  // The same without fixing the origin: an empty dictionary compares with nothing.
  void make_views(const ConstRows& points, std::vector<View>& views) const {
    views.resize(views_.size());
    const bool unset = origin_.size() == 0;
    kernel_->make_views(points, unset ? RowVector(RowVector::Zero(features())) : origin_,
                        views.data());
  }

  std::vector<View> views_of(const std::vector<Index>& points) const {
    std::vector<View> views(views_.size());
    for (std::size_t v = 0; v < views_.size(); ++v) {
      views[v].reset(0, features());
      for (const Index i : points) views[v].append(views_[v], i);
    }
    return views;
  }

  void append(const ConstRows& points, bool is_protected) {
    std::vector<View> views;
    make_views(points, views);
    for (Index i = 0; i < points.rows(); ++i) {
      append(points.row(i), views.data(), i, is_protected, next_id_);
    }
  }

  // Appends one point whose view is row `source` of the given views, or nothing if that throws.
  void append(const Eigen::Ref<const RowVector>& point, const View* views, Index source,
              bool is_protected, Index id) {
    const Index before = static_cast<Index>(ids_.size());
    try {
      points_.append(point.data());
      for (std::size_t v = 0; v < views_.size(); ++v) views_[v].append(views[v], source);
      protected_.push_back(is_protected);
      ids_.push_back(id);
    } catch (...) {
      points_.truncate(before);
      for (View& view : views_) view.truncate(before);
      protected_.resize(static_cast<std::size_t>(before));
      throw;
    }
    next_id_ = std::max(next_id_, id + 1);
  }

  // Point i goes, and the last one takes its place.
  void drop(Index i) {
    const auto k = static_cast<std::size_t>(i);
    points_.replace_by_last(i);
    for (View& view : views_) view.replace_by_last(i);
    protected_[k] = protected_.back();
    protected_.pop_back();
    ids_[k] = ids_.back();
    ids_.pop_back();
  }

  // Point i becomes what point order[i] was; points that are not named go.
  void select(const std::vector<Index>& order) {
    points_.select(order);
    for (View& view : views_) view.select(order);
    ensure_capacity(old_protected_, protected_.size());
    ensure_capacity(old_ids_, ids_.size());
    old_protected_ = protected_;
    old_ids_ = ids_;
    protected_.resize(order.size());
    ids_.resize(order.size());
    for (std::size_t i = unmoved(order); i < order.size(); ++i) {
      protected_[i] = old_protected_[static_cast<std::size_t>(order[i])];
      ids_[i] = old_ids_[static_cast<std::size_t>(order[i])];
    }
  }

  // From now on, and until the next time, undo() brings all points back as they are.
  void remember() {
    points_.remember();
    for (View& view : views_) view.remember();
    kept_protected_ = protected_;
    ensure_capacity(kept_ids_, ids_.size());
    kept_ids_ = ids_;
    kept_next_id_ = next_id_;
  }
  void undo() noexcept {
    points_.undo();
    for (View& view : views_) view.undo();
    protected_.swap(kept_protected_);
    ids_.swap(kept_ids_);
    next_id_ = kept_next_id_;
  }
  // Nothing will be undone.
  void settle() noexcept {
    points_.settle();
    for (View& view : views_) view.settle();
  }

  // A dictionary that is read back: empty, about a given origin.
  static Dictionary about(KernelPtr kernel, Index features, RowVector origin, Index next_id) {
    Dictionary dictionary(std::move(kernel), features);
    dictionary.origin_ = std::move(origin);
    dictionary.next_id_ = next_id;
    return dictionary;
  }

 private:
  // Coordinate by coordinate, so that a few outliers do not carry the origin away.
  static RowVector median(const ConstRows& points) {
    RowVector result(points.cols());
    for (Index j = 0; j < points.cols(); ++j) {
      std::vector<double> column;
      for (Index i = 0; i < points.rows(); ++i) column.push_back(points(i, j));
      const auto middle = column.begin() + points.rows() / 2;
      std::nth_element(column.begin(), middle, column.end());
      result(j) = *middle;
    }
    return result;
  }

  KernelPtr kernel_;
  PlacedRows points_;
  std::vector<View> views_;
  RowVector origin_;
  std::vector<bool> protected_;
  std::vector<Index> ids_;
  Index next_id_ = 0;

  std::vector<bool> old_protected_;
  std::vector<Index> old_ids_;

  std::vector<bool> kept_protected_;
  std::vector<Index> kept_ids_;
  Index kept_next_id_ = 0;
};

}  // namespace parsimon
