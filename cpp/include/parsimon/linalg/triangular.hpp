#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "parsimon/linalg/products.hpp"
#include "parsimon/memory/scratch.hpp"
#include "parsimon/types.hpp"

// Lower triangular matrices: products with them, and where they come from. What lies above the
// diagonal is taken for zero, and must be where it says so.
namespace parsimon::linalg {

// Calls whiten(first, end) for all rows of a triangular matrix and then unwhiten(first, last,
// begin, end) for rows first .. last of it, as far as they concern rows begin .. end of the result,
// soon enough that they are still in the cache. Each thread takes `grain` rows at a time.
template <class Whiten, class Unwhiten>
void in_row_blocks(Index size, Index grain, double flops_per_row, const Whiten& whiten,
                   const Unwhiten& unwhiten) {
  const Index block = grain * get_num_threads();
  // Threads meet after each block: all of it must be whitened before any of it is used again. So
  // that they meet only once, one block is whitened together with the other use of the one before.
  for (Index i = 0; i < size + block; i += block) {
    in_parts(get_num_threads(), flops_per_row * static_cast<double>(block),
             [&](int part, int parts) {
               const Index before = std::max<Index>(i - block, 0), here = std::min(i, size);
               take_part(here, grain, part, parts,
                         [&](Index begin, Index end) { unwhiten(before, here, begin, end); });
               take_part(std::min(block, size - here), grain, part, parts,
                         [&](Index begin, Index end) { whiten(i + begin, i + end); });
             });
  }
}

// whitened = T values and coefficients = T' whitened, reading T once: a block of its rows is used a
// second time while it is in the cache. There are zeros above the diagonal of T. Rows of all three
// have room for padded(columns) numbers.
inline void solve_with_root(const ConstRows& root, Index columns, const double* values,
                            double* whitened, double* coefficients, Index row) {
  const Index size = root.rows(), stride = root.outerStride(), width = padded(columns);
  const Narrow<double> right{values, row, loops().panel};
  const auto whiten = [&](Index first, Index end) {
    std::fill(coefficients + first * row, coefficients + end * row, 0.0);
    loops().multiply(end - first, width, end, {root.data() + first * stride, stride}, right,
                     whitened + first * row, row);
  };
  const auto unwhiten = [&](Index first, Index last, Index begin, Index end) {
    loops().spread(root.data(), stride, first, last, begin, end, width, whitened, coefficients,
                   row);
  };
  in_row_blocks(size, kGrain, 2.0 * static_cast<double>(size * width), whiten, unwhiten);
}

struct PartialSums;

// Reading a number from memory takes the time of this many operations.
constexpr Index kReadFlops = 8;

// Whether solve_with_few() is faster than padding the columns.
inline bool are_few(Index columns) {
  return columns < 2 * loops().lanes && columns % loops().lanes != 0;
}

// The same for a few columns, each of which is a row here of `row` numbers, zeros from `size` on.
// Rows of T have room for padded(size) numbers.
inline void solve_with_few(const ConstRows& root, Index columns, const double* values,
                           double* whitened, double* coefficients, Index row) {
  const Index size = root.rows(), stride = root.outerStride();
  std::fill(coefficients, coefficients + columns * row, 0.0);
  const auto whiten = [&](Index first, Index end) {
    double* sums = scratch<PartialSums>((end - first) * columns * loops().lanes);
    loops().whiten_few(root.data(), stride, first, end, columns, values, whitened, row, sums);
  };
  const auto unwhiten = [&](Index first, Index last, Index begin, Index end) {
    loops().spread_few(root.data(), stride, first, last, begin, end, columns, whitened,
                       coefficients, row);
  };
  in_row_blocks(size, 2 * kGrain, static_cast<double>(size * (2 * columns + kReadFlops)), whiten,
                unwhiten);
}

struct SolveValues;
struct SolveWhitened;
struct SolveCoefficients;

// The same for matrices whose rows need not be padded: whitened = T values, coefficients = T'
// whitened. Rows of T have room for padded(size) numbers.
inline void solve_with_root(const ConstRows& root, const ConstRows& values, Rows whitened,
                            Rows coefficients) {
  const Index size = root.rows(), columns = values.cols(), width = padded(columns);
  if (size == 0 || columns == 0) return;
  const auto lies_ready = [&](Index stride) { return stride == width && columns == width; };
  if (lies_ready(values.outerStride()) && lies_ready(whitened.outerStride()) &&
      lies_ready(coefficients.outerStride())) {
    return solve_with_root(root, columns, values.data(), whitened.data(), coefficients.data(),
                           width);
  }
  const bool few = are_few(columns);
  const Index row = few ? padded(size) : width, room = few ? columns * row : size * row;
  double* in = scratch<SolveValues>(room);
  double* between = scratch<SolveWhitened>(room);
  double* out = scratch<SolveCoefficients>(room);
  if (few) {
    transpose_padded(values, in, row);
    solve_with_few(root, columns, in, between, out, row);
  } else {
    for (Index i = 0; i < size; ++i) {
      std::copy_n(values.data() + i * values.outerStride(), columns, in + i * row);
      std::fill(in + i * row + columns, in + (i + 1) * row, 0.0);
    }
    solve_with_root(root, columns, in, between, out, row);
  }
  const auto copy_back = [&](const double* from, Rows to) {
    if (few) {
      using Few = Eigen::Map<const RowMatrix, 0, Eigen::OuterStride<>>;
      return transpose(Few(from, columns, size, Eigen::OuterStride<>(row)), to.data(),
                       to.outerStride());
    }
    for (Index i = 0; i < size; ++i) {
      std::copy_n(from + i * row, columns, to.data() + i * to.outerStride());
    }
  };
  copy_back(between, whitened);
  copy_back(out, coefficients);
}

// Of a wide product with a triangular matrix, columns and rows that are taken at a time: a block of
// the columns stays in the third cache, and each of its numbers is used for so many rows.
constexpr Index kBlockColumns = 256;
constexpr Index kBlockRows = 4 * kGrain;

// result = T values, for a T with zeros above its diagonal.
inline void multiply_lower(const ConstRows& root, const ConstRows& values, Rows result) {
  const Index rows = root.rows(), grain = rows < 8 * kBlockRows ? kGrain : kBlockRows;
  for (Index j = 0; j < result.cols() && rows > 0; j += kBlockColumns) {
    const Index width = std::min(kBlockColumns, result.cols() - j);
    const Narrow<double> right =
        width == values.cols() ? narrow(values) : narrow_panels(values.middleCols(j, width));
    const double flops = static_cast<double>(rows) * static_cast<double>(rows * width);
    share(rows, grain, flops, [&](Index begin, Index end) {
      for (Index i = begin; i < end; i += grain) {
        const Index last = std::min(i + grain, end);
        multiply_rows({root.data() + i * root.outerStride(), root.outerStride()}, last, right,
                      result.block(i, j, last - i, width));
      }
    });
  }
}

// result = T' values, likewise.
inline void multiply_lower_transpose(const ConstRows& root, const ConstRows& values, Rows result) {
  if (result.size() == 0) return;
  const Narrow<double> right = narrow(values);
  const double flops = static_cast<double>(root.rows()) * static_cast<double>(values.size());
  share(root.rows(), kGrain, flops, [&](Index begin, Index end) {
    for (Index i = begin; i < end; i += kGrain) {
      const Index last = std::min(i + kGrain, end);
      multiply_rows({root.data() + i * root.outerStride() + i, 1, root.outerStride()},
                    root.rows() - i, {right.data + i * right.row, right.row, right.panel},
                    result.middleRows(i, last - i));
    }
  });
}

// Up to this size, loops over single rows are as fast as products of blocks.
constexpr Index kSmallTriangle = 48;

struct BlockProduct;

// Room for a product of that size, whose rows are next to each other.
inline Eigen::Map<RowMatrix> product_of_blocks(Index rows, Index columns) {
  return {scratch<BlockProduct>(rows * columns), rows, columns};
}

// L becomes L^-1. There are zeros above its diagonal. Nearly all of it is products of matrices.
inline void invert_lower(Rows lower) {
  const Index size = lower.rows(), half = size / 2, rest = size - half;
  if (size > kSmallTriangle) {
    // [L11 0; L21 L22]^-1 = [T11 0; -T22 L21 T11, T22]
    Rows first = lower.topLeftCorner(half, half), second = lower.bottomRightCorner(rest, rest);
    Rows below = lower.bottomLeftCorner(rest, half);
    invert_lower(first);
    invert_lower(second);
    auto product = product_of_blocks(rest, half);
    multiply_lower(second, below, product);
    multiply(product, first, below);
    for (Index i = 0; i < rest; ++i) {
      for (Index j = 0; j < half; ++j) below(i, j) = -below(i, j);
    }
    return;
  }
  double old[kSmallTriangle];
  for (Index i = 0; i < size; ++i) {
    double* row = lower.data() + i * lower.outerStride();
    std::copy_n(row, i, old);
    std::fill_n(row, i, 0.0);
    const double scale = 1 / row[i];
    for (Index k = 0; k < i; ++k) {
      const double* above = lower.data() + k * lower.outerStride();
      for (Index j = 0; j <= k; ++j) row[j] -= old[k] * above[j];
    }
    for (Index j = 0; j < i; ++j) row[j] *= scale;
    row[i] = scale;
  }
}

// The same without products of blocks. Returns false if a pivot is not positive.
[[nodiscard]] inline bool small_cholesky(Rows matrix) {
  const Index stride = matrix.outerStride();
  for (Index i = 0; i < matrix.rows(); ++i) {
    double* row = matrix.data() + i * stride;
    for (Index k = 0; k <= i; ++k) {
      const double* other = matrix.data() + k * stride;
      double value = row[k];
      for (Index j = 0; j < k; ++j) value -= row[j] * other[j];
      if (k < i) {
        row[k] = value / other[k];
      } else {
        if (!(value > 0 && value < std::numeric_limits<double>::infinity())) return false;
        row[i] = std::sqrt(value);
      }
    }
  }
  return true;
}

// The lower triangle of a symmetric matrix A becomes L with L L' = A, nearly all in products of
// matrices; above the diagonal there are zeros then. Returns false, and leaves the matrix
// undefined, if A is not numerically positive definite.
[[nodiscard]] inline bool cholesky(Rows matrix) {
  const Index size = matrix.rows();
  for (Index j = 0; j < size; j += kSmallTriangle) {
    const Index width = std::min(kSmallTriangle, size - j), below = size - j - width;
    Rows diagonal = matrix.block(j, j, width, width);
    if (j > 0) {
      auto product = product_of_blocks(size - j, width);
      multiply_by_transpose(matrix.block(j, 0, size - j, j), matrix.block(j, 0, width, j), product);
      for (Index i = 0; i < size - j; ++i) {
        double* row = matrix.data() + (j + i) * matrix.outerStride() + j;
        for (Index k = 0; k < width; ++k) row[k] -= product(i, k);
      }
    }
    if (!small_cholesky(diagonal)) return false;
    for (Index i = 0; i < width; ++i) {
      double* row = matrix.data() + (j + i) * matrix.outerStride();
      std::fill(row + j + i + 1, row + size, 0.0);
    }
    if (below == 0) break;
    RowMatrix inverse = diagonal;
    invert_lower(inverse);
    auto product = product_of_blocks(below, width);
    Rows rest = matrix.block(j + width, j, below, width);
    multiply_by_transpose(rest, inverse, product);
    rest = product;
  }
  return true;
}

// A symmetric positive definite matrix becomes its inverse. Returns false, and leaves the matrix
// undefined, if it is not numerically positive definite.
inline bool invert_positive(Rows matrix) {
  if (!cholesky(matrix)) return false;
  invert_lower(matrix);
  const RowMatrix root = matrix;
  multiply_lower_transpose(root, root, matrix);
  return true;
}

// right <- L^-1 right, nearly all in products of matrices.
inline void solve_lower(const ConstRows& lower, Rows right) {
  const Index size = lower.rows(), columns = right.cols();
  for (Index i = 0; i < size; i += kSmallTriangle) {
    const Index width = std::min(kSmallTriangle, size - i);
    Rows block = right.middleRows(i, width);
    if (i > 0) {
      auto product = product_of_blocks(width, columns);
      multiply(lower.block(i, 0, width, i), right.topRows(i), product);
      block -= product;
    }
    for (Index r = 0; r < width; ++r) {
      const double* factors = lower.data() + (i + r) * lower.outerStride() + i;
      double* row = block.data() + r * block.outerStride();
      for (Index k = 0; k < r; ++k) {
        const double* above = block.data() + k * block.outerStride();
        for (Index c = 0; c < columns; ++c) row[c] -= factors[k] * above[c];
      }
      for (Index c = 0; c < columns; ++c) row[c] /= factors[r];
    }
  }
}

// right <- L'^-1 right, likewise.
inline void solve_lower_transpose(const ConstRows& lower, Rows right) {
  const Index size = lower.rows(), columns = right.cols(), stride = lower.outerStride();
  const Index blocks = (size + kSmallTriangle - 1) / kSmallTriangle;
  for (Index i = (blocks - 1) * kSmallTriangle; i >= 0; i -= kSmallTriangle) {
    const Index width = std::min(kSmallTriangle, size - i), below = size - i - width;
    Rows block = right.middleRows(i, width);
    if (below > 0) {
      auto product = product_of_blocks(width, columns);
      multiply_rows({lower.data() + (i + width) * stride + i, 1, stride}, below,
                    narrow(right.bottomRows(below)), product);
      block -= product;
    }
    for (Index r = width - 1; r >= 0; --r) {
      double* row = block.data() + r * block.outerStride();
      for (Index k = r + 1; k < width; ++k) {
        const double factor = lower.data()[(i + k) * stride + i + r];
        const double* under = block.data() + k * block.outerStride();
        for (Index c = 0; c < columns; ++c) row[c] -= factor * under[c];
      }
      const double pivot = lower.data()[(i + r) * stride + i + r];
      for (Index c = 0; c < columns; ++c) row[c] /= pivot;
    }
  }
}

// right <- A^-1 right, given L with L L' = A.
inline void solve_cholesky(const ConstRows& lower, Rows right) {
  solve_lower(lower, right);
  solve_lower_transpose(lower, right);
}

}  // namespace parsimon::linalg
