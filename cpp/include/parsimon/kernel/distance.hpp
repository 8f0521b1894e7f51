#pragma once

#include <algorithm>

#include "parsimon/kernel/exponential.hpp"
#include "parsimon/kernel/kernel.hpp"

// Distances between the points of two views, and the loops that turn them into kernel values.
//
// Every number here depends only on the numbers it is computed from, never on the address or the
// row at which they happen to lie: a point read back from a file gives the bits it gave before.
// So sums run over fixed lanes, and no loop peels its head to reach an aligned address.
namespace parsimon::detail {

// Up to this many features, differences are as fast as a product of matrices, and exact.
constexpr Index direct_features = 32;

// |a|^2 + |b|^2 - 2ab loses the digits by which the distance is smaller than the norms. Pairs
// nearer than this fraction are computed again from the differences, which leaves a relative
// error of 1e-12 at worst.
constexpr double cancellation = 1e-3;

// Scaled coordinates stay below this, so that no difference of two of them overflows: equal
// points are at distance 0 and distant ones at infinity, but no pair at NaN.
constexpr double largest_coordinate = 1e300;

constexpr Index lane_count = 16;
using Lanes = Eigen::Array<double, lane_count, 1>;
using ConstLanes = Eigen::Map<const Lanes>;

struct Square {
  template <class T>
  static auto of(const Eigen::ArrayBase<T>& x) { return x.square(); }
};

struct Absolute {
  template <class T>
  static auto of(const Eigen::ArrayBase<T>& x) { return x.abs(); }
};

inline double squared_distance(const double* a, const double* b, Index features) {
  const Index whole = features - features % lane_count;
  Lanes sum = Lanes::Zero();
  for (Index f = 0; f < whole; f += lane_count) {
    sum += (ConstLanes(a + f) - ConstLanes(b + f)).square();
  }
  double total = sum.sum();
  for (Index f = whole; f < features; ++f) total += (a[f] - b[f]) * (a[f] - b[f]);
  return total;
}

inline void set_squared_norms(View& view) {
  const RowVector zero = RowVector::Zero(view.features());
  for (Index i = 0; i < view.rows(); ++i) {
    view.squared_norms()(i) =
        squared_distance(view.points().row(i).data(), zero.data(), view.features());
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

// Some features of some points, a feature a row and padded to whole lanes, in which the distances
// to one other point are computed lane by lane.
class Tile {
 public:
  static constexpr Index features = direct_features;
  static constexpr Index width = 64;

  void load(const View& view, Index first_row, Index rows, Index first_feature, Index count) {
    rows_ = rows;
    count_ = count;
    for (Index f = 0; f < count; ++f) {
      double* lane = values_ + f * width;
      for (Index j = 0; j < rows; ++j) lane[j] = view.points()(first_row + j, first_feature + f);
      std::fill(lane + rows, lane + (rows + lane_count - 1) / lane_count * lane_count, 0.0);
    }
  }

  // out[j] (+)= sum_f Term(point_f - point j's feature f)
  template <class Term>
  void distances(const double* point, bool add, double* out) const {
    for (Index j = 0; j < rows_; j += lane_count) {
      Lanes sum = Lanes::Zero();
      for (Index f = 0; f < count_; ++f) {
        sum += Term::of(ConstLanes(values_ + f * width + j) - point[f]);
      }
      const Index used = std::min(lane_count, rows_ - j);
      if (add) {
        for (Index l = 0; l < used; ++l) out[j + l] += sum(l);
      } else if (used == lane_count) {
        Eigen::Map<Lanes>(out + j) = sum;
      } else {
        std::copy(sum.data(), sum.data() + used, out + j);
      }
    }
  }

 private:
  alignas(64) double values_[features * width];
  Index rows_ = 0;
  Index count_ = 0;
};

// Distances are handed on in pieces of about this many values, while they are in the first cache.
constexpr Index piece_size = 1024;

// values(i, j) = sum_f Term(a_if - b_jf), then finish(Rows) on each piece of them.
template <class Term, class Finish>
void direct_distances(const View& a, const View& b, Rows values, const Finish& finish) {
  const Index features = a.features();
  Tile tile;
  for (Index j = 0; j < values.cols(); j += Tile::width) {
    const Index columns = std::min(Tile::width, values.cols() - j);
    const Index height = std::max<Index>(1, piece_size / columns);
    for (Index f = 0; f == 0 || f < features; f += Tile::features) {
      tile.load(b, j, columns, f, std::min(Tile::features, features - f));
      for (Index i = 0; i < values.rows(); i += height) {
        const Index rows = std::min(height, values.rows() - i);
        for (Index r = i; r < i + rows; ++r) {
          const double* point = a.points().row(r).data() + f;
          tile.distances<Term>(point, f > 0, &values(r, j));
        }
        if (f + Tile::features >= features) finish(values.block(i, j, rows, columns));
      }
    }
  }
}

// From products ab to squared distances: out_j = norm + norms_j - 2 out_j, computed again where
// that cancels. The test is also true of NaN, which is what overflow of the norms leads to.
inline void complete_squared_distances(const double* point, double norm, const View& b,
                                       double* out) {
  const double* norms = b.squared_norms().data();
  Eigen::Map<Eigen::ArrayXd> distances(out, b.rows());
  const auto sums = Eigen::Map<const Eigen::ArrayXd>(norms, b.rows()) + norm;
  distances = sums - 2.0 * distances;
  if ((distances - cancellation * sums).template minCoeff<Eigen::PropagateNaN>() > 0) return;
  for (Index j = 0; j < b.rows(); ++j) {
    if (out[j] > cancellation * (norms[j] + norm)) continue;
    out[j] = squared_distance(point, b.points().row(j).data(), b.features());
  }
}

// values(i, j) = |a_i - b_j|^2, then finish(Rows) on each piece of them.
template <class Finish>
void squared_distances(const View& a, const View& b, Rows values, const Finish& finish) {
  if (a.features() <= direct_features) return direct_distances<Square>(a, b, values, finish);
  if (values.size() == 0) return;
  values.noalias() = a.points() * b.points().transpose();
  const Index height = std::max<Index>(1, piece_size / values.cols());
  for (Index i = 0; i < values.rows(); i += height) {
    const Index rows = std::min(height, values.rows() - i);
    for (Index r = i; r < i + rows; ++r) {
      complete_squared_distances(a.points().row(r).data(), a.squared_norms()(r), b, &values(r, 0));
    }
    finish(values.middleRows(i, rows));
  }
}

}  // namespace parsimon::detail
