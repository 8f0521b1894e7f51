#pragma once

#include <algorithm>

#include "parsimon/interrupt.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/linalg/products.hpp"

// Distances between the points of two views, and the loops that turn them into kernel values.
//
// Every number here depends only on the numbers it is computed from, never on the address or the
// row at which they happen to lie: a point read back from a file gives the bits it gave before.
namespace parsimon::detail {

// Up to this many features, differences are as fast as a product of matrices, and exact.
constexpr Index direct_features = 16;

// |a|^2 + |b|^2 - 2ab loses the digits by which the distance is smaller than the norms. Pairs
// nearer than this fraction are computed again from the differences, which leaves a relative
// error of 1e-12 at worst.
constexpr double cancellation = 1e-3;
// The same where products are in single precision.
constexpr double single_cancellation = 0.03;
// This many products are summed in single precision; more would lose digits.
constexpr Index single_terms = 1024;

// Scaled coordinates stay below this, so that no difference of two of them overflows: equal
// points are at distance 0 and distant ones at infinity, but no pair at NaN.
constexpr double largest_coordinate = 1e300;

enum class Norm { squared, absolute };

inline double* row_of(const Rows& values, Index i) {
  return const_cast<double*>(values.data()) + i * values.outerStride();
}

inline void set_squared_norms(View& view) {
  double* norms = view.squared_norms();
  for (Index i = 0; i < view.rows(); ++i) {
    norms[i] = linalg::loops().squared_norm(view.point(i), view.features());
  }
}

// Calls transform(numbers, count) on all values. Rows that follow each other in memory are taken
// together: the loop is as fast for one column as for a thousand.
template <class Transform>
void transform_values(const Rows& values, const Transform& transform) {
  if (values.size() == 0) return;
  if (values.outerStride() == values.cols()) return transform(row_of(values, 0), values.size());
  for (Index i = 0; i < values.rows(); ++i) transform(row_of(values, i), values.cols());
}

// A block of one column, a single sample, is a block of one row if the two views change places,
// and along a row the loops below are fast.
inline bool is_column(const Rows& values) {
  return values.cols() == 1 && values.rows() > 1 && values.outerStride() == 1;
}

inline Eigen::Map<RowMatrix> as_row(Rows values) { return {values.data(), 1, values.rows()}; }

// Calls compute(begin, end) and then finish(Rows) for rows of about a thousand values at a time,
// while they are in the first cache.
template <class Compute, class Finish>
void compute_rows(Rows values, const Compute& compute, const Finish& finish) {
  if (values.size() == 0) return;
  const Index height = std::max<Index>(1, 1024 / values.cols());
  for (Index i = 0; i < values.rows(); i += height) {
    Interruptible::check();
    const Index end = std::min(i + height, values.rows());
    compute(i, end);
    finish(values.middleRows(i, end - i));
  }
}

// values(i, j) = sum_f |a_if - b_jf|, or of the squares, then finish(Rows) on parts of them.
template <class Finish>
void direct_distances(Norm norm, const View& a, const View& b, Rows values, const Finish& finish) {
  if (is_column(values)) return direct_distances(norm, b, a, as_row(values), finish);
  const linalg::Loops& loops = linalg::loops();
  const Index features = a.features();
  if (features > linalg::kTileFeatures) {
    const auto distance = norm == Norm::squared ? loops.squared_distance : loops.absolute_distance;
    const auto pairs = [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        double* row = row_of(values, i);
        for (Index j = 0; j < values.cols(); ++j) {
          row[j] = distance(a.point(i), b.point(j), features);
        }
      }
    };
    return compute_rows(values, pairs, finish);
  }
  // A few of the points, one feature per row.
  alignas(64) double tile[linalg::kTileFeatures * linalg::kTileWidth];
  const auto to_tile = norm == Norm::squared ? loops.squared_to_tile : loops.absolute_to_tile;
  const auto points = b.tall();
  for (Index j = 0; j < values.cols(); j += linalg::kTileWidth) {
    const Index columns = std::min(linalg::kTileWidth, values.cols() - j);
    for (Index f = 0; f < features; ++f) {
      double* row = tile + f * linalg::kTileWidth;
      for (Index k = 0; k < columns; ++k) row[k] = *points.at(j + k, f);
      std::fill(row + columns, row + linalg::kTileWidth, 0.0);
    }
    const auto rows = [&](Index begin, Index end) {
      to_tile(a.tall(), begin, end, tile, features, columns, row_of(values, begin) + j,
              values.outerStride());
    };
    compute_rows(values.middleCols(j, columns), rows, finish);
  }
}

struct RoundedProducts;

inline bool in_single_precision(const View& a, const View& b) {
  return a.is_rounded() && b.is_rounded();
}

// Rows begin .. end of values(i, j) = <a_i, b_j> in single precision, b packed in `right`.
inline void multiply_rounded(const View& a, const View& b, const linalg::Narrow<float>& right,
                             Rows values, Index begin, Index end) {
  const Index depth = a.features(), columns = values.cols();
  const Index lanes = linalg::loops().single_lanes, width = (columns + lanes - 1) / lanes * lanes;
  float* products = scratch<RoundedProducts, float>((end - begin) * width);
  for (Index start = 0; start < depth; start += single_terms) {
    const linalg::Narrow<float> part{right.data + start * right.row, right.row, right.panel};
    linalg::loops().multiply_single(end - begin, width, std::min(single_terms, depth - start),
                                    a.rounded().from(begin, start), part, products, width);
    for (Index i = begin; i < end; ++i) {
      const float* sums = products + (i - begin) * width;
      double* row = row_of(values, i);
      for (Index j = 0; j < columns; ++j) row[j] = (start == 0 ? 0.0 : row[j]) + double{sums[j]};
    }
  }
  for (Index i = begin; i < end; ++i) {
    // Beyond the range of single precision.
    if (all_finite(row_of(values, i), columns)) continue;
    linalg::loops().multiply_vector(depth, b.tall(), 0, columns, a.point(i), row_of(values, i));
  }
}

// values(i, j) = <a_i, b_j>, in single precision where both views are there in it, then
// finish(begin, end) on rows of them, on several threads if there are many.
template <class Finish>
void multiply_points(const View& a, const View& b, Rows values, const Finish& finish) {
  if (values.size() == 0) return;
  const Index depth = a.features(), rows = values.rows(), columns = values.cols();
  const double flops = 2.0 * static_cast<double>(depth) * static_cast<double>(values.size());
  if (in_single_precision(a, b)) {
    const auto right = linalg::narrow_transpose(b.rounded(), columns, depth);
    linalg::share(rows, linalg::grain(rows), flops, [&](Index begin, Index end) {
      multiply_rounded(a, b, right, values, begin, end);
      finish(begin, end);
    });
  } else if (rows == 1) {
    linalg::multiply_vector(b.tall(), columns, depth, a.point(0), row_of(values, 0));
    finish(0, 1);
  } else if (columns == 1 && values.outerStride() == 1) {
    linalg::multiply_vector(a.tall(), rows, depth, b.point(0), row_of(values, 0));
    finish(0, rows);
  } else {
    const auto right = linalg::narrow_transpose(b.tall(), columns, depth);
    linalg::share(rows, linalg::grain(rows), flops, [&](Index begin, Index end) {
      linalg::multiply_rows(a.tall().from(begin, 0), depth, right,
                            values.middleRows(begin, end - begin));
      finish(begin, end);
    });
  }
}

// From products <a_i, b_j> to squared distances, computed again where that cancels.
inline void complete_squared_distances(const View& a, Index i, const View& b, double near,
                                       double* row) {
  const double norm = a.squared_norms()[i];
  const double* norms = b.squared_norms();
  if (!linalg::loops().complete_distances(norm, norms, near, row, b.rows())) return;
  for (Index j = 0; j < b.rows(); ++j) {
    // True of NaN as well, which is what overflow of the norms leads to.
    if (row[j] > near * (norms[j] + norm)) continue;
    row[j] = linalg::loops().squared_distance(a.point(i), b.point(j), b.features());
  }
}

// values(i, j) = |a_i - b_j|^2, then finish(Rows) on parts of them.
template <class Finish>
void squared_distances(const View& a, const View& b, Rows values, const Finish& finish) {
  if (a.features() <= direct_features) {
    return direct_distances(Norm::squared, a, b, values, finish);
  }
  const bool single = in_single_precision(a, b);
  if (is_column(values) && !single) return squared_distances(b, a, as_row(values), finish);
  const double near = single ? single_cancellation : cancellation;
  multiply_points(a, b, values, [&](Index begin, Index end) {
    const auto complete = [&](Index first, Index last) {
      for (Index i = begin + first; i < begin + last; ++i) {
        complete_squared_distances(a, i, b, near, row_of(values, i));
      }
    };
    compute_rows(values.middleRows(begin, end - begin), complete, finish);
  });
}

}  // namespace parsimon::detail
