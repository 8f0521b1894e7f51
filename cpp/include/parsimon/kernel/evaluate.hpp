#pragma once

#include <string>
#include <vector>

#include "parsimon/kernel/kernel.hpp"
#include "parsimon/types.hpp"

// A kernel at points that belong to no dictionary.

namespace parsimon {

namespace detail {

inline std::vector<View> views_of(const Kernel& kernel, const ConstRows& points,
                                  const RowVector& origin) {
  std::vector<View> views(static_cast<std::size_t>(kernel.view_count()));
  kernel.make_views(points, origin, views.data());
  return views;
}

inline RowVector origin_of(const ConstRows& points) {
  if (points.rows() == 0) return RowVector::Zero(points.cols());
  return points.row(0);
}

inline void require_same_features(const Kernel& kernel, const ConstRows& a, const ConstRows& b) {
  kernel.check_features(a.cols());
  if (a.cols() == b.cols()) return;
  throw Error("The two sets of points have " + std::to_string(a.cols()) + " and " +
              std::to_string(b.cols()) + " features: give points of the same space.");
}

}  // namespace detail

// k(a_i, b_j)
inline RowMatrix kernel_block(const Kernel& kernel, const ConstRows& a, const ConstRows& b) {
  detail::require_same_features(kernel, a, b);
  const RowVector origin = detail::origin_of(a);
  const auto views_a = detail::views_of(kernel, a, origin),
             views_b = detail::views_of(kernel, b, origin);
  RowMatrix values(a.rows(), b.rows());
  kernel.block(views_a.data(), views_b.data(), values);
  return values;
}

// k(x_i, x_i)
inline Vector kernel_diagonal(const Kernel& kernel, const ConstRows& points) {
  kernel.check_features(points.cols());
  const auto views = detail::views_of(kernel, points, detail::origin_of(points));
  Vector values(points.rows());
  kernel.diagonal(views.data(), values);
  return values;
}

// Row j is sum_i weights(i, j) (d/dx) k(a_i, x) at x = b_j.
inline RowMatrix kernel_gradient(const Kernel& kernel, const ConstRows& a, const ConstRows& b,
                                 const ConstRows& weights) {
  detail::require_same_features(kernel, a, b);
  if (weights.rows() != a.rows() || weights.cols() != b.rows()) {
    throw Error("The weights must have one row for each of the " + std::to_string(a.rows()) +
                " centres and one column for each of the " + std::to_string(b.rows()) + " points.");
  }
  const RowVector origin = detail::origin_of(a);
  const auto views_a = detail::views_of(kernel, a, origin),
             views_b = detail::views_of(kernel, b, origin);
  RowMatrix sum = RowMatrix::Zero(b.rows(), b.cols());
  kernel.add_gradient(views_a.data(), views_b.data(), weights, sum);
  return sum;
}

}  // namespace parsimon
