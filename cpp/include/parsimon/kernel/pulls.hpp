#pragma once

#include <algorithm>

#include "parsimon/kernel/distance.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/linalg/products.hpp"

// What gradients by many points have in common, whatever the kernel.
namespace parsimon::detail {

// profile(values, slopes, count) on all rows of both.
template <class Profile>
void profile_rows(const Rows& values, RowMatrix& slopes, const Profile& profile) {
  constexpr double flops = 16;
  linalg::share(values.rows(), 8, flops * static_cast<double>(values.size()),
                [&](Index begin, Index end) {
                  for (Index i = begin; i < end; ++i) {
                    profile(row_of(values, i), slopes.data() + i * slopes.cols(), values.cols());
                  }
                });
}

struct SumsOfPoints;
struct RoundedWeights;
struct RoundedPoints;
struct RoundedSums;

// The same in single precision.
inline void add_up_rounded(const RowMatrix& weights, const View& b, double* sums) {
  const Index rows = weights.rows(), depth = b.rows(), features = b.features();
  const Index lanes = linalg::loops().single_lanes;
  const Index width = (features + lanes - 1) / lanes * lanes;
  float* points = scratch<RoundedPoints, float>(depth * width);
  const auto from = b.rounded();
  for (Index j = 0; j < depth; ++j) {
    std::copy_n(from.at(j, 0), features, points + j * width);
    std::fill(points + j * width + features, points + (j + 1) * width, 0.0F);
  }
  const linalg::Narrow<float> right{points, width, linalg::loops().single_panel};
  const double flops = 2.0 * static_cast<double>(rows * width) * static_cast<double>(depth);
  linalg::share(rows, linalg::grain(rows), flops, [&](Index begin, Index end) {
    float* left = scratch<RoundedWeights, float>((end - begin) * depth);
    for (Index i = begin; i < end; ++i) {
      for (Index j = 0; j < depth; ++j) {
        left[(i - begin) * depth + j] = static_cast<float>(weights(i, j));
      }
    }
    float* products = scratch<RoundedSums, float>((end - begin) * width);
    linalg::loops().multiply_single(end - begin, width, depth, {left, depth}, right, products,
                                    width);
    for (Index i = begin; i < end; ++i) {
      const float* product = products + (i - begin) * width;
      for (Index f = 0; f < features; ++f) sums[i * features + f] = double{product[f]};
    }
  });
}

// Row i is sum_j weights(i, j) b_j, in scratch memory.
inline const double* sums_of_points(const RowMatrix& weights, const View& b) {
  const Index features = b.features();
  double* sums = scratch<SumsOfPoints>(weights.rows() * features);
  if (b.rows() == 0) {
    std::fill_n(sums, weights.rows() * features, 0.0);
  } else if (b.is_rounded()) {
    add_up_rounded(weights, b, sums);
  } else {
    using Points = Eigen::Map<const RowMatrix>;
    linalg::multiply(weights, Points(b.point(0), b.rows(), features),
                     Eigen::Map<RowMatrix>(sums, weights.rows(), features));
  }
  return sums;
}

}  // namespace parsimon::detail
