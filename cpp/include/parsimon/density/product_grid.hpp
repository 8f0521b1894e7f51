#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/types.hpp"

namespace parsimon {

// Points of a regular grid, lower[j] + i step[j] for i = 0 ... counts[j] - 1 along feature j, the
// last feature running fastest; and sums over them of a Gaussian kernel, which is a product over
// the features. A sum takes the points within reach of x only, so that its cost does not grow with
// the grid:
//
//   values(x) = sum_m w_m k(d_m, x),   gather: b_m += v k(d_m, x), its transpose
//
// A plain value.
class ProductGrid {
 public:
  ProductGrid() = default;
  ProductGrid(std::vector<double> lower, std::vector<double> step, std::vector<Index> counts)
      : lower_(std::move(lower)), step_(std::move(step)), counts_(std::move(counts)) {
    require(lower_.size() == step_.size() && lower_.size() == counts_.size(),
            "A grid of points needs a start, a step and a count for each feature.");
    for (std::size_t j = 0; j < counts_.size(); ++j) {
      require(counts_[j] > 0 && counts_[j] <= kMost && std::isfinite(lower_[j]) &&
                  std::isfinite(step_[j]) && step_[j] > 0,
              "A grid of points needs finite starts, positive steps and counts.");
      require(size() <= kMost, "A grid of so many points cannot be stored.");
    }
  }

  bool empty() const { return counts_.empty(); }
  Index features() const { return static_cast<Index>(counts_.size()); }
  const std::vector<double>& lower() const { return lower_; }
  const std::vector<double>& step() const { return step_; }
  const std::vector<Index>& counts() const { return counts_; }

  Index size() const {
    if (empty()) return 0;
    Index total = 1;
    for (const Index count : counts_) total = std::min(total * count, kMost + 1);
    return total;
  }

  RowMatrix points() const {
    RowMatrix points(size(), features());
    Index repeat = 1;
    for (Index j = features() - 1; j >= 0; --j) {
      const Index count = counts_[at(j)];
      for (Index i = 0; i < points.rows(); ++i) points(i, j) = coordinate(j, i / repeat % count);
      repeat *= count;
    }
    return points;
  }

  // Sums at the rows of a matrix, with the kernel's length along each feature.
  void evaluate(const ConstRows& points, const std::vector<double>& lengths,
                const Eigen::Ref<const Vector>& weights, Eigen::Ref<Vector> values) const {
    Reach reach(*this);
    for (Index i = 0; i < points.rows(); ++i) {
      reach.find(points.row(i).data(), lengths);
      values(i) = reach.sum(weights.data(), 0, 0);
    }
  }

  void gather(const ConstRows& points, const std::vector<double>& lengths,
              const Eigen::Ref<const Vector>& amounts, Eigen::Ref<Vector> moments) const {
    Reach reach(*this);
    for (Index i = 0; i < points.rows(); ++i) {
      reach.find(points.row(i).data(), lengths);
      reach.add(moments.data(), 0, 0, amounts(i));
    }
  }

 private:
  static constexpr Index kMost = Index{1} << 31;
  // exp(-36) is below what a double adds to 1.
  static constexpr double kReach = 8.5;

  static std::size_t at(Index j) { return static_cast<std::size_t>(j); }
  double coordinate(Index j, Index i) const {
    return lower_[at(j)] + static_cast<double>(i) * step_[at(j)];
  }

  // The points along each axis that one x sees, and the kernel's factors there.
  class Reach {
   public:
    explicit Reach(const ProductGrid& grid) : grid_(grid), axes_(grid.counts_.size()) {}

    void find(const double* x, const std::vector<double>& lengths) {
      for (Index j = 0; j < grid_.features(); ++j) {
        Axis& axis = axes_[at(j)];
        const double length = lengths[at(j)], step = grid_.step_[at(j)];
        const double last = static_cast<double>(grid_.counts_[at(j)] - 1);
        const double middle = (x[j] - grid_.lower_[at(j)]) / step, wide = kReach * length / step;
        axis.first = static_cast<Index>(std::clamp(std::ceil(middle - wide), 0.0, last + 1));
        const auto end = static_cast<Index>(std::clamp(std::floor(middle + wide), -1.0, last)) + 1;
        axis.factors.clear();
        for (Index i = axis.first; i < end; ++i) {
          const double distance = (x[j] - grid_.coordinate(j, i)) / length;
          axis.factors.push_back(std::exp(-0.5 * distance * distance));
        }
      }
    }

    double sum(const double* weights, Index j, Index row) const {
      const Axis& axis = axes_[at(j)];
      const Index start = row * grid_.counts_[at(j)] + axis.first;
      const auto count = static_cast<Index>(axis.factors.size());
      const bool is_last = j + 1 == grid_.features();
      double total = 0;
      for (Index i = 0; i < count; ++i) {
        const double inner = is_last ? weights[start + i] : sum(weights, j + 1, start + i);
        total += axis.factors[at(i)] * inner;
      }
      return total;
    }

    void add(double* moments, Index j, Index row, double amount) const {
      const Axis& axis = axes_[at(j)];
      const Index start = row * grid_.counts_[at(j)] + axis.first;
      const auto count = static_cast<Index>(axis.factors.size());
      const bool is_last = j + 1 == grid_.features();
      for (Index i = 0; i < count; ++i) {
        const double share = amount * axis.factors[at(i)];
        if (is_last) {
          moments[start + i] += share;
        } else {
          add(moments, j + 1, start + i, share);
        }
      }
    }

   private:
    struct Axis {
      Index first = 0;
      std::vector<double> factors;
    };
    const ProductGrid& grid_;
    std::vector<Axis> axes_;
  };

  std::vector<double> lower_;
  std::vector<double> step_;
  std::vector<Index> counts_;
};

}  // namespace parsimon
