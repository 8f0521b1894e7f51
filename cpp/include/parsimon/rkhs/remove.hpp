#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// A function whose points go one by one; it has no factor.
struct LoosePoints {
  Dictionary& dictionary;
  RowBuffer& weights;
  Index scored;                      // columns of the weights that count
  std::vector<double>& self_kernel;  // k(d, d) of each point
  std::vector<Index>& removed;       // ids of those that have gone

  // The point with the smallest |w_j|^2 k(d_j, d_j); -1 if all are protected.
  Index smallest() const {
    Index best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (Index i = 0; i < weights.rows(); ++i) {
      if (dictionary.is_protected(i)) continue;
      const double size =
          weights.row(i).head(scored).squaredNorm() * self_kernel[static_cast<std::size_t>(i)];
      if (best < 0) best = i;
      if (size < least) {
        least = size;
        best = i;
      }
    }
    return best;
  }

  // Point i goes with its weights, and the last one takes its place.
  void drop(Index i) {
    removed.push_back(dictionary.id(i));
    dictionary.drop(i);
    weights.replace_by_last(i);
    self_kernel[static_cast<std::size_t>(i)] = self_kernel.back();
    self_kernel.pop_back();
  }
};

// Point j goes, and its weight with it. Returns the error, ||w_j k(d_j, .)||.
inline double remove(LoosePoints& points, Index j) {
  const double error = points.weights.row(j).head(points.scored).norm() *
                       std::sqrt(points.self_kernel[static_cast<std::size_t>(j)]);
  points.drop(j);
  return error;
}

}  // namespace parsimon
