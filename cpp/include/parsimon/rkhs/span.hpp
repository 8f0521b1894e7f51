#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/rkhs/fresh_factor.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The span of some points in the kernel's Hilbert space, and where k(x, .) lies relative to it:
// with phi = T k(D, x), its orthonormal coordinates there,
//
//   k(x, x) = |phi|^2 + |what lies outside|^2
//
// Immutable.
class Span {
 public:
  // factor: of the first points of the dictionary; the others are not needed.
  Span(const Dictionary& dictionary, GramFactor factor)
      : basis_(dictionary), factor_(std::move(factor)) {
    std::vector<Index> first(static_cast<std::size_t>(factor_.size()));
    std::iota(first.begin(), first.end(), Index{0});
    basis_.select(first);
  }

  // Of all points of a dictionary, by a factor of its own. Points that the others explain but for
  // rounding are left out.
  static Span of(Dictionary dictionary) {
    FreshFactor fresh(dictionary, Newcomers::kFinest);
    dictionary.select(fresh.order);
    return {dictionary, std::move(fresh.factor)};
  }

  Index size() const { return factor_.size(); }

  // distances(i) = the norm of what lies outside of k(x_i, .). Below about 1e-7 sqrt(k(x, x)) it is
  // rounding: its square is a difference.
  template <typename Points>
  void distance(const Points& points, Eigen::Ref<Vector> distances) const {
    for_each_block(points, [&](Index start, const ConstRows&, const Vector& outside) {
      distances.segment(start, outside.size()) = outside.cwiseSqrt();
    });
  }

  // Calls use(start, coordinates, outside) for a block of points after the other: their coordinates
  // in the span, one column each, and the squared norms of what lies outside, none below 0.
  template <typename Points, typename Use>
  void for_each_block(const Points& points, const Use& use) const {
    require(points.cols() == basis_.features(), "The points have " + std::to_string(points.cols()) +
                                                    " features, but the dictionary's have " +
                                                    std::to_string(basis_.features()) + ".");
    std::vector<View> views;
    RowBuffer values, coordinates;
    Widened widened;
    for (Index start = 0; start < points.rows(); start += kEvaluationBlock) {
      const Index count = std::min(kEvaluationBlock, points.rows() - start);
      basis_.make_views(widened.rows(points, start, count), views);
      Vector outside(count);
      basis_.kernel().diagonal(views.data(), outside);
      auto block = values.resize(size(), count);
      auto phi = coordinates.resize(size(), count);
      if (size() > 0) {
        basis_.kernel().block(basis_.views(), views.data(), block);
        factor_.whiten(block, phi);
      }
      for (Index i = 0; i < size(); ++i) {
        const double* row = phi.data() + i * count;
        for (Index k = 0; k < count; ++k) outside(k) -= row[k] * row[k];
      }
      require(outside.allFinite(),
              "The kernel is not finite at these points; scale the features or choose another "
              "kernel.");
      outside = outside.cwiseMax(0.0);
      use(start, phi, outside);
    }
  }

 private:
  Dictionary basis_;
  GramFactor factor_;
};

}  // namespace parsimon
