#pragma once

#include <algorithm>
#include <cmath>

#include "parsimon/linalg/loops.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/memory/zeroed_square.hpp"
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
  InverseOuterSum(Index size, double delta) : InverseOuterSum(size) {
    require(std::isfinite(delta) && delta > 0,
            "The damping is " + format_number(delta) + ": give a positive, finite number.");
    for (Index i = 0; i < size; ++i) root_.row(i)[i] = 1 / std::sqrt(delta);
  }

  // What root() was.
  explicit InverseOuterSum(const ConstRows& root) : InverseOuterSum(root.rows()) {
    bool fits = root.rows() == root.cols();
    for (Index i = 0; i < root.rows() && fits; ++i) {
      const double* row = root.data() + i * root.outerStride();
      const bool is_lower =
          std::all_of(row + i + 1, row + root.cols(), [](double x) { return x == 0; });
      fits = all_finite(row, i + 1) && row[i] >= 0 && is_lower;
      std::copy_n(row, i + 1, root_.row(i));
    }
    require(fits,
            "The inverse of a quasi-Newton model must have a root that is finite and lower "
            "triangular.");
  }

  Index size() const { return size_; }
  auto root() const { return root_.all().topLeftCorner(size_, size_); }

  // A <- A + g g';  product = A^-1 g with the new A. Throws, and changes nothing, if that is beyond
  // the range of numbers.
  //
  // With T the old root and v = T g: row by row, with product = T' v and growth = 1 + v'v so far,
  // T(j, :) <- sqrt(growth before / after) T(j, :) - v_j / sqrt(before * after) product before.
  void add(const Eigen::Ref<const Vector>& g, Vector& product) {
    const Index n = size(), stride = root_.size();
    for (Vector* row : {&image_, &shrink_, &pull_, &product_}) ensure_size(*row, stride);
    constexpr Index together = 8;
    for (Index j = 0; j < n; j += together) {
      const Index rows = std::min(together, n - j);
      linalg::loops().multiply_vector(j + rows, {root_.row(j), stride}, 0, rows, g.data(),
                                      image_.data() + j);
    }
    double growth = 1;
    for (Index j = 0; j < n; ++j) {
      const double before = growth;
      growth += image_(j) * image_(j);
      shrink_(j) = std::sqrt(before / growth);
      pull_(j) = image_(j) / before * shrink_(j);
    }
    if (!std::isfinite(growth)) {
      throw DivergenceError(
          "The inverse of a quasi-Newton model has left the range of finite numbers; choose a "
          "larger damping or scale the features.");
    }
    std::fill_n(product_.data(), stride, 0.0);
    linalg::loops().update_rows(n > 0 ? root_.row(0) : nullptr, stride, 0, n, image_.data(),
                                shrink_.data(), pull_.data(), product_.data());
    product.resize(n);
    for (Index j = 0; j < n; ++j) product(j) = product_(j) / growth;
  }

 private:
  // Rows are whole vectors, whatever their length.
  explicit InverseOuterSum(Index size) : size_(size), root_((size + 7) / 8 * 8) {}

  Index size_;
  ZeroedSquare root_;

  Vector image_;  // v
  Vector shrink_;
  Vector pull_;
  Vector product_;
};

}  // namespace parsimon
