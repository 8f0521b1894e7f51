#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/density/box.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Where a function is evaluated to integrate it over a box: the integral is the volume of the box
// times the mean over the nodes.
//
//   grid:       the midpoints of the cells of a regular grid, counts[j] of them along feature j.
//               Midpoints, so that the cells fill the box exactly.
//   scattered:  `count` points of an additive recurrence x_i = frac(1/2 + i a), a_j = phi^-j with
//               phi^(p+1) = phi + 1, which fills a box of many features as evenly as can be.
//
// A plain value; kind() and counts() are what a model file keeps, restore() their inverse.
class Quadrature {
 public:
  static Quadrature grid(std::vector<Index> counts) {
    require(!counts.empty(), "A grid needs a number of cells for each feature.");
    Quadrature quadrature(false, std::move(counts));
    quadrature.size();
    return quadrature;
  }

  static Quadrature scattered(Index count) {
    require(count > 0 && count <= kMost, "An integral needs at least one node and at most 2^31.");
    return Quadrature(true, {count});
  }

  Index size() const {
    Index total = 1;
    for (const Index count : counts_) {
      require(count > 0, "A grid needs at least one cell along each feature; got " +
                             std::to_string(count) + ".");
      require(total <= kMost / count, "A grid of so many cells cannot be stored.");
      total *= count;
    }
    return total;
  }

  RowMatrix nodes(const Box& box) const {
    RowMatrix nodes(size(), box.features());
    const Eigen::Map<const RowVector> lower(box.lower().data(), box.features());
    const Eigen::Map<const RowVector> upper(box.upper().data(), box.features());
    const RowVector extent = upper - lower;
    if (scattered_) {
      scatter(nodes);
    } else {
      check_features(box.features());
      Index repeat = 1;  // the last feature runs fastest
      for (Index j = box.features() - 1; j >= 0; --j) {
        const Index count = counts_[static_cast<std::size_t>(j)];
        for (Index i = 0; i < nodes.rows(); ++i) {
          nodes(i, j) =
              (static_cast<double>(i / repeat % count) + 0.5) / static_cast<double>(count);
        }
        repeat *= count;
      }
    }
    for (Index i = 0; i < nodes.rows(); ++i) {
      nodes.row(i) = lower + nodes.row(i).cwiseProduct(extent);
    }
    return nodes;
  }

  // Refuses a grid for another number of features.
  void check_features(Index features) const {
    require(scattered_ || static_cast<Index>(counts_.size()) == features,
            "A grid in a domain of " + std::to_string(features) +
                " features needs as many numbers of cells; got " + std::to_string(counts_.size()) +
                ".");
  }

  // The same kind with at least this many nodes, in the same proportions.
  Quadrature finer(Index at_least) const {
    if (scattered_) return scattered(std::max(at_least, size()));
    const double ratio = static_cast<double>(at_least) / static_cast<double>(size());
    const double factor = std::pow(std::max(1.0, ratio), 1.0 / static_cast<double>(counts_.size()));
    std::vector<Index> counts = counts_;
    for (Index& count : counts) {
      count = static_cast<Index>(std::ceil(static_cast<double>(count) * factor));
    }
    return grid(std::move(counts));
  }

  std::string kind() const { return scattered_ ? "scattered" : "grid"; }
  const std::vector<Index>& counts() const { return counts_; }

  static Quadrature restore(const std::string& kind, std::vector<Index> counts) {
    if (kind == "grid") return grid(std::move(counts));
    if (kind == "scattered" && counts.size() == 1) return scattered(counts[0]);
    throw Error("There is no quadrature \"" + kind + "\" with " + std::to_string(counts.size()) +
                " numbers: use grid, with one per feature, or scattered, with one.");
  }

 private:
  static constexpr Index kMost = Index{1} << 31;

  Quadrature(bool scattered, std::vector<Index> counts)
      : scattered_(scattered), counts_(std::move(counts)) {}

  static void scatter(RowMatrix& nodes) {
    double phi = 2;
    for (int i = 0; i < 64; ++i) {
      phi = std::pow(1 + phi, 1.0 / static_cast<double>(nodes.cols() + 1));
    }
    double shift = 1;
    for (Index j = 0; j < nodes.cols(); ++j) {
      shift /= phi;
      for (Index i = 0; i < nodes.rows(); ++i) {
        const double position = 0.5 + static_cast<double>(i) * shift;
        nodes(i, j) = position - std::floor(position);
      }
    }
  }

  bool scattered_;
  std::vector<Index> counts_;
};

}  // namespace parsimon
