#pragma once

#include <algorithm>
#include <cmath>

#include "parsimon/kernel/exponential.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/linalg/products.hpp"

// Distances between the points of two views, and the loops that turn them into kernel values.
//
// Every number here depends only on the numbers it is computed from, never on the address or the
// row at which they happen to lie: a point read back from a file gives the bits it gave before.
// So sums run over fixed lanes, and no loop peels its head to reach an aligned address.
namespace parsimon::detail {

// Up to this many features, differences are as fast as a product of matrices, and exact.
constexpr Index direct_features = 16;

// |a|^2 + |b|^2 - 2ab loses the digits by which the distance is smaller than the norms. Pairs
// nearer than this fraction are computed again from the differences, which leaves a relative
// error of 1e-12 at worst.
constexpr double cancellation = 1e-3;
// The same where products are in single precision.
constexpr double single_cancellation = 0.03;
// So many products are summed in single precision; more would lose digits.
constexpr Index single_terms = 1024;

// Scaled coordinates stay below this, so that no difference of two of them overflows: equal
// points are at distance 0 and distant ones at infinity, but no pair at NaN.
constexpr double largest_coordinate = 1e300;

constexpr Index lane_count = 16;
using Lanes = Eigen::Array<double, lane_count, 1>;
using ConstLanes = Eigen::Map<const Lanes>;

struct Square {
  template <class T>
  static auto of(const Eigen::ArrayBase<T>& x) {
    return x.square();
  }
  static double of(double x) { return x * x; }
};

struct Absolute {
  template <class T>
  static auto of(const Eigen::ArrayBase<T>& x) {
    return x.abs();
  }
  static double of(double x) { return std::abs(x); }
};

// sum_f Term(a_f - b_f)
template <class Term>
double distance(const double* a, const double* b, Index features) {
  const Index whole = features - features % lane_count;
  Lanes sum = Lanes::Zero();
  for (Index f = 0; f < whole; f += lane_count) {
    sum += Term::of(ConstLanes(a + f) - ConstLanes(b + f));
  }
  double total = sum.sum();
  for (Index f = whole; f < features; ++f) total += Term::of(a[f] - b[f]);
  return total;
}

inline double squared_norm(const double* a, Index features) {
  const Index whole = features - features % lane_count;
  Lanes sum = Lanes::Zero();
  for (Index f = 0; f < whole; f += lane_count) sum += ConstLanes(a + f).square();
  double total = sum.sum();
  for (Index f = whole; f < features; ++f) total += a[f] * a[f];
  return total;
}

inline void set_squared_norms(View& view) {
  for (Index i = 0; i < view.rows(); ++i) {
    view.squared_norms()(i) = squared_norm(view.point(i).data(), view.features());
  }
}

// Calls transform(Strip&) on all values, a strip at a time. Rows that follow each other in memory
// are taken together: the loop is as fast for one column as for a thousand.
template <class Transform>
void transform_values(Rows values, const Transform& transform) {
  const bool contiguous = values.outerStride() == values.cols();
  const Index runs = contiguous ? 1 : values.rows();
  const Index length = contiguous ? values.size() : values.cols();
  const Index whole = length - length % strip_length;
  Strip strip;
  for (Index r = 0; r < runs; ++r) {
    double* run = values.data() + r * values.outerStride();
    for (Index j = 0; j < whole; j += strip_length) {
      Eigen::Map<Strip> piece(run + j);
      strip = piece;
      transform(strip);
      piece = strip;
    }
    if (whole == length) continue;
    strip.setZero();
    std::copy(run + whole, run + length, strip.data());
    transform(strip);
    std::copy(strip.data(), strip.data() + (length - whole), run + whole);
  }
}

// The points of a view in groups, a feature a row and padded to whole lanes, so that the distances
// to one other point are computed lane by lane.
class Tile {
 public:
  static constexpr Index features = 32;
  static constexpr Index width = 64;

  void load(const View& view, Index begin, Index count) {
    count_ = count;
    features_ = view.features();
    const auto points = view.tall();
    for (Index f = 0; f < features_; ++f) {
      double* row = values_ + f * width;
      for (Index j = 0; j < count; ++j) row[j] = *points.at(begin + j, f);
      std::fill(row + count, row + (count + lane_count - 1) / lane_count * lane_count, 0.0);
    }
  }

  // out[j] = sum_f Term(tile_fj - point_f)
  template <class Term>
  void distances(const double* point, double* out) const {
    for (Index j = 0; j < count_; j += lane_count) {
      Lanes sum = Lanes::Zero();
      for (Index f = 0; f < features_; ++f) {
        sum += Term::of(ConstLanes(values_ + f * width + j) - point[f]);
      }
      if (count_ - j >= lane_count) {
        Eigen::Map<Lanes>(out + j) = sum;
      } else {
        std::copy(sum.data(), sum.data() + (count_ - j), out + j);
      }
    }
  }

 private:
  alignas(64) double values_[features * width];
  Index count_ = 0;
  Index features_ = 0;
};

// A block of one column, a single sample, is a block of one row if the two views change places,
// and along a row the loops below are fast.
inline bool is_column(const Rows& values) {
  return values.cols() == 1 && values.rows() > 1 && values.outerStride() == 1;
}

inline Eigen::Map<RowMatrix> as_row(Rows values) { return {values.data(), 1, values.rows()}; }

// Calls compute(row) for every row of the block, and finish(Rows) on the rows of about a thousand
// values at a time, while they are in the first cache.
template <class Compute, class Finish>
void compute_rows(Rows values, const Compute& compute, const Finish& finish) {
  if (values.size() == 0) return;
  const Index height = std::max<Index>(1, 1024 / values.cols());
  for (Index i = 0; i < values.rows(); i += height) {
    const Index end = std::min(i + height, values.rows());
    for (Index r = i; r < end; ++r) compute(r);
    finish(values.middleRows(i, end - i));
  }
}

// values(i, j) = sum_f Term(a_if - b_jf), then finish(Rows) on parts of them.
template <class Term, class Finish>
void direct_distances(const View& a, const View& b, Rows values, const Finish& finish) {
  if (is_column(values)) return direct_distances<Term>(b, a, as_row(values), finish);
  if (a.features() > Tile::features) {
    const auto pairs = [&](Index i) {
      for (Index j = 0; j < values.cols(); ++j) {
        values(i, j) = distance<Term>(a.point(i).data(), b.point(j).data(), a.features());
      }
    };
    return compute_rows(values, pairs, finish);
  }
  Tile tile;
  for (Index j = 0; j < values.cols(); j += Tile::width) {
    const Index columns = std::min(Tile::width, values.cols() - j);
    tile.load(b, j, columns);
    const auto along_row = [&](Index i) { tile.distances<Term>(a.point(i).data(), &values(i, j)); };
    compute_rows(values.middleCols(j, columns), along_row, finish);
  }
}

// From products ab to squared distances: out_j = norm + norms_j - 2 out_j, computed again where
// that cancels. The test is also true of NaN, which is what overflow of the norms leads to.
inline void complete_squared_distances(const double* point, double norm, const View& b, double near,
                                       double* out) {
  const double* norms = b.squared_norms().data();
  Eigen::Map<Eigen::ArrayXd> distances(out, b.rows());
  const auto sums = Eigen::Map<const Eigen::ArrayXd>(norms, b.rows()) + norm;
  distances = sums - 2.0 * distances;
  if ((distances - near * sums).template minCoeff<Eigen::PropagateNaN>() > 0) return;
  for (Index j = 0; j < b.rows(); ++j) {
    if (out[j] > near * (norms[j] + norm)) continue;
    out[j] = distance<Square>(point, b.point(j).data(), b.features());
  }
}

struct RoundedProducts;

inline bool in_single_precision(const View& a, const View& b) {
  return a.is_rounded() && b.is_rounded();
}

// values(i, j) = <a_i, b_j>, in single precision where both views are there in it, then
// finish(begin, end) on rows of them, on several threads if there are many.
template <class Finish>
void multiply_points(const View& a, const View& b, Rows values, const Finish& finish) {
  if (values.size() == 0) return;
  const Index depth = a.features(), columns = values.cols();
  const double flops = 2.0 * static_cast<double>(depth) * static_cast<double>(values.size());
  if (in_single_precision(a, b)) {
    const Index width = linalg::padded<float>(columns);
    const auto right = linalg::narrow_transpose(b.rounded(), columns, depth);
    linalg::share(values.rows(), linalg::grain(values.rows()), flops, [&](Index begin, Index end) {
      float* products = scratch<RoundedProducts, float>((end - begin) * width);
      for (Index start = 0; start < depth; start += single_terms) {
        const Index terms = std::min(single_terms, depth - start);
        const linalg::Narrow<float> part{right.data + start * right.row, right.row, right.panel};
        linalg::multiply(end - begin, width, terms, a.rounded().from(begin, start), part, products,
                         width);
        for (Index i = begin; i < end; ++i) {
          const float* row = products + (i - begin) * width;
          const auto sums = Eigen::Map<const Eigen::RowVectorXf>(row, columns).cast<double>();
          if (start == 0) {
            values.row(i) = sums;
          } else {
            values.row(i) += sums;
          }
        }
      }
      for (Index i = begin; i < end; ++i) {
        // Beyond the range of single precision.
        if (values.row(i).allFinite()) continue;
        linalg::multiply_row(a.point(i).data(), depth, b.tall(), values.row(i));
      }
      finish(begin, end);
    });
  } else if (values.rows() == 1) {
    linalg::multiply_row(a.point(0).data(), depth, b.tall(), values.row(0));
    finish(0, 1);
  } else if (columns == 1 && values.outerStride() == 1) {
    linalg::multiply_row(b.point(0).data(), depth, a.tall(), values.col(0).transpose());
    finish(0, values.rows());
  } else {
    const auto right = linalg::narrow_transpose(b.tall(), columns, depth);
    linalg::share(values.rows(), linalg::grain(values.rows()), flops, [&](Index begin, Index end) {
      linalg::multiply_rows(a.tall().from(begin, 0), depth, right,
                            values.middleRows(begin, end - begin));
      finish(begin, end);
    });
  }
}

// values(i, j) = |a_i - b_j|^2, then finish(Rows) on parts of them.
template <class Finish>
void squared_distances(const View& a, const View& b, Rows values, const Finish& finish) {
  if (a.features() <= direct_features) return direct_distances<Square>(a, b, values, finish);
  const bool single = in_single_precision(a, b);
  if (is_column(values) && !single) return squared_distances(b, a, as_row(values), finish);
  const double near = single ? single_cancellation : cancellation;
  multiply_points(a, b, values, [&](Index begin, Index end) {
    const auto complete = [&](Index i) {
      complete_squared_distances(a.point(begin + i).data(), a.squared_norms()(begin + i), b, near,
                                 &values(begin + i, 0));
    };
    compute_rows(values.middleRows(begin, end - begin), complete, finish);
  });
}

}  // namespace parsimon::detail
