#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "parsimon/algorithm/rows_times_vector.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The inverse of A = delta I + sum_t g_t g_t', as the g_t come.
//
// Invariant:  A^-1 == root().transpose() * root(),  root() lower triangular.
// An explicit inverse would lose its definiteness to rounding; a triangular root cannot, and an
// update reads and writes half a matrix once (Carlson's square-root filter).
class InverseOuterSum {
 public:
  InverseOuterSum(Index size, double delta) {
    require(std::isfinite(delta) && delta > 0,
            "The damping is " + format_number(delta) + ": give a positive, finite number.");
    root_ = RowMatrix::Identity(size, size) / std::sqrt(delta);
  }

  // What root() was.
  explicit InverseOuterSum(RowMatrix root) : root_(std::move(root)) {
    require(root_.rows() == root_.cols() && root_.allFinite() && root_.isLowerTriangular(0) &&
                (root_.diagonal().array() >= 0).all(),
            "The inverse of a quasi-Newton model must have a root that is finite and lower "
            "triangular.");
  }

  Index size() const { return root_.rows(); }
  const RowMatrix& root() const { return root_; }

  // A <- A + g g';  product = A^-1 g with the new A. Throws, and changes nothing, if that is beyond
  // the range of numbers.
  //
  // With T the old root and v = T g: row by row, with product = T' v and growth = 1 + v'v so far,
  // T(j, :) <- sqrt(growth before / after) T(j, :) - v_j / sqrt(before * after) product before.
  void add(const Eigen::Ref<const Vector>& g, Vector& product) {
    const Index n = size();
    image_.resize(n);
    for (Index start = 0; start < n; start += kBlock) {
      const Index rows = std::min(kBlock, n - start);
      rows_times_vector(root_.block(start, 0, rows, start + rows), g, image_.segment(start, rows));
    }
    growth_.resize(n + 1);
    growth_(0) = 1;
    for (Index j = 0; j < n; ++j) growth_(j + 1) = growth_(j) + image_(j) * image_(j);
    if (!std::isfinite(growth_(n))) {
      throw DivergenceError(
          "The inverse of a quasi-Newton model has left the range of finite numbers; choose a "
          "larger "
          "damping or scale the features.");
    }
    shrink_ = (growth_.head(n) / growth_.tail(n)).sqrt();
    pull_ = image_.array() / growth_.head(n) * shrink_;

    product.setZero(n);
    Index j = 0;
    for (; j + kTogether <= n; j += kTogether) update_rows<kTogether>(j, product);
    for (; j < n; ++j) update_rows<1>(j, product);
    product /= growth_(n);
  }

 private:
  static constexpr Index kBlock = 16;
  static constexpr int kTogether = 4;  // rows that are updated in one pass over the product
  static constexpr int kChunk = 8;     // numbers at a time

  template <int count>
  void update_rows(Index first, Vector& product) {
    double v[count], shrink[count], pull[count];
    for (int r = 0; r < count; ++r) {
      v[r] = image_(first + r);
      shrink[r] = shrink_(first + r);
      pull[r] = pull_(first + r);
    }
    double* const rows = root_.row(first).data();
    double* const sums = product.data();
    const Index stride = size();
    // Beyond its diagonal a row stays zero, and so does what it adds to the product.
    const Index end = first + count;
    const auto update = [&](Index start, auto width) {
      using Chunk = Eigen::Array<double, decltype(width)::value, 1>;
      Eigen::Map<Chunk> sum(sums + start);
      Chunk so_far = sum;
      for (int r = 0; r < count; ++r) {
        Eigen::Map<Chunk> entries(rows + r * stride + start);
        const Chunk old = entries;
        entries = shrink[r] * old - pull[r] * so_far;
        so_far += v[r] * old;
      }
      sum = so_far;
    };
    Index i = 0;
    for (; i + kChunk <= end; i += kChunk) update(i, std::integral_constant<int, kChunk>());
    for (; i + kChunk / 2 <= end; i += kChunk / 2) {
      update(i, std::integral_constant<int, kChunk / 2>());
    }
    for (; i < end; ++i) update(i, std::integral_constant<int, 1>());
  }

  RowMatrix root_;

  Vector image_;           // v
  Eigen::ArrayXd growth_;  // before each row, and after the last
  Eigen::ArrayXd shrink_;
  Eigen::ArrayXd pull_;
};

}  // namespace parsimon
