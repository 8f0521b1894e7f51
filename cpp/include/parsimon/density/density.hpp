#pragma once

#include <limits>

#include "parsimon/density/box.hpp"
#include "parsimon/density/mirror_map.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

namespace detail {

// Calls use(z, r) with z and the weights of the mirror map at the points.
template <typename Use>
void at_points(const KernelExpansion& z, const MirrorMap& mirror, const ConstRows& points,
               Use&& use) {
  const RowMatrix values = z(points);
  Vector weights(points.rows());
  mirror.weigh(points, weights);
  use(Vector(values.col(0)), weights);
}

inline void outside(const Box& domain, const ConstRows& points, double value,
                    Eigen::Ref<Vector> values) {
  for (Index i = 0; i < points.rows(); ++i) {
    if (!domain.contains(points.row(i))) values(i) = value;
  }
}

}  // namespace detail

// The density F(z(x)) / volume in the domain, 0 outside.
inline void density(const KernelExpansion& z, const MirrorMap& mirror, const Box& domain,
                    const ConstRows& points, Eigen::Ref<Vector> values) {
  detail::at_points(z, mirror, points, [&](const Vector& at, const Vector& weights) {
    Vector slopes(at.size());
    mirror.apply(at, weights, values, slopes);
  });
  values *= std::exp(-domain.log_volume());
  detail::outside(domain, points, 0, values);
  if (!values.allFinite()) {
    throw DivergenceError("The learned density is beyond the range of finite numbers.");
  }
}

// Its logarithm; minus infinity outside, and where the density is not positive.
inline void log_density(const KernelExpansion& z, const MirrorMap& mirror, const Box& domain,
                        const ConstRows& points, Eigen::Ref<Vector> values) {
  detail::at_points(z, mirror, points, [&](const Vector& at, const Vector& weights) {
    mirror.log(at, weights, values);
  });
  values.array() -= domain.log_volume();
  detail::outside(domain, points, -std::numeric_limits<double>::infinity(), values);
}

}  // namespace parsimon
