#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "parsimon/linalg/loops.hpp"
#include "parsimon/linalg/parallel.hpp"
#include "parsimon/linalg/tall.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/memory/scratch.hpp"
#include "parsimon/types.hpp"

// Products of matrices on several threads, without rearranging the tall one.
namespace parsimon::linalg {

// Column i of the target, from column `first` on, becomes column columns[i] of the source.
inline void select_columns(const ConstRows& source, const std::vector<Index>& columns, Index count,
                           Rows target, Index first = 0) {
  const Index* chosen = columns.data();
  share(target.rows(), kCopyGrain, copy_flops(target.rows() * count), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const double* from = source.data() + r * source.outerStride();
      double* to = target.data() + r * target.outerStride() + first;
      for (Index i = 0; i < count; ++i) to[i] = from[chosen[i]];
    }
  });
}

// out = a', its rows `out_row` numbers apart.
inline void transpose(const ConstRows& a, double* out, Index out_row) {
  if (a.size() == 0) return;
  const Tall<double> source{a.data(), a.outerStride()};
  const Index rows = a.rows(), columns = a.cols();
  // Threads share the longer side.
  share(std::max(rows, columns), kCopyGrain, copy_flops(a.size()), [&](Index begin, Index end) {
    if (rows >= columns) {
      loops().transpose(source, begin, end, 0, columns, out, out_row);
    } else {
      loops().transpose(source, 0, rows, begin, end, out, out_row);
    }
  });
}

// The same with rows that are padded with zeros to `out_row` numbers.
inline void transpose_padded(const ConstRows& a, double* out, Index out_row) {
  transpose(a, out, out_row);
  for (Index j = 0; j < a.cols(); ++j) {
    std::fill(out + j * out_row + a.rows(), out + (j + 1) * out_row, 0.0);
  }
}

struct NarrowRows;
struct NarrowColumns;

// The rows of a matrix as the narrow one of a product, copied only if they are not padded.
inline Narrow<double> narrow(const ConstRows& b) {
  const Index width = padded(b.cols());
  if (width == b.cols()) return {b.data(), b.outerStride(), loops().panel};
  double* copy = scratch<NarrowRows>(b.rows() * width);
  share(b.rows(), kCopyGrain, copy_flops(b.rows() * width), [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      const double* source = b.data() + k * b.outerStride();
      std::copy(source, source + b.cols(), copy + k * width);
      std::fill(copy + k * width + b.cols(), copy + (k + 1) * width, 0.0);
    }
  });
  return {copy, width, loops().panel};
}

// The same, copied in any case: rows that are far apart come next to each other, in panels of the
// width that is used at a time.
inline Narrow<double> narrow_panels(const ConstRows& b) {
  const Index width = std::min(padded(b.cols()), loops().panel), rows = b.rows();
  const Index panels = (b.cols() + width - 1) / width;
  double* copy = scratch<NarrowRows>(panels * width * rows);
  share(rows, kCopyGrain, copy_flops(panels * width * rows), [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      const double* source = b.data() + k * b.outerStride();
      for (Index j = 0; j < b.cols(); j += width) {
        const Index count = std::min(width, b.cols() - j);
        double* target = copy + j * rows + k * width;
        std::copy_n(source + j, count, target);
        std::fill(target + count, target + width, 0.0);
      }
    }
  });
  return {copy, width, width * rows};
}

// The same of the transpose of b: every row of b becomes a column.
template <class Scalar>
Narrow<Scalar> narrow_transpose(const Tall<Scalar>& b, Index rows, Index columns) {
  constexpr bool is_double = std::is_same_v<Scalar, double>;
  const Index lanes = is_double ? loops().lanes : loops().single_lanes;
  const Index panel = is_double ? loops().panel : loops().single_panel;
  const Index width = std::min((rows + lanes - 1) / lanes * lanes, panel);
  const Index panels = (rows + width - 1) / width;
  Scalar* copy = scratch<NarrowColumns, Scalar>(panels * width * columns);
  share(panels * width, lanes, copy_flops(rows * columns), [&](Index begin, Index end) {
    if constexpr (is_double) {
      loops().pack(b, rows, columns, width, begin, end, copy);
    } else {
      loops().pack_single(b, rows, columns, width, begin, end, copy);
    }
  });
  return {copy, width, width * columns};
}

// Threads share tall matrices in multiples of this many rows, of all heights of tiles; a few rows
// are rather shared evenly.
constexpr Index kGrain = 24;

inline Index grain(Index rows) { return rows < 8 * kGrain ? 8 : kGrain; }

struct PaddedResult;

// values = a b for a result whose rows need not be padded.
inline void multiply_rows(const Tall<double>& a, Index depth, const Narrow<double>& b,
                          Rows values) {
  const Index rows = values.rows(), columns = values.cols(), width = padded(columns);
  if (width == columns) {
    return loops().multiply(rows, width, depth, a, b, values.data(), values.outerStride());
  }
  double* result = scratch<PaddedResult>(rows * width);
  loops().multiply(rows, width, depth, a, b, result, width);
  for (Index i = 0; i < rows; ++i) {
    std::copy_n(result + i * width, columns, values.data() + i * values.outerStride());
  }
}

// The same on several threads.
inline void multiply_into(const Tall<double>& a, Index depth, const Narrow<double>& b,
                          Rows values) {
  const double flops = 2.0 * static_cast<double>(depth) * static_cast<double>(values.size());
  share(values.rows(), grain(values.rows()), flops, [&](Index begin, Index end) {
    multiply_rows(a.from(begin, 0), depth, b, values.middleRows(begin, end - begin));
  });
}

// values = a b
inline void multiply(const ConstRows& a, const ConstRows& b, Rows values) {
  if (values.size() == 0) return;
  multiply_into({a.data(), a.outerStride()}, a.cols(), narrow(b), values);
}

// values = a b'
inline void multiply_by_transpose(const ConstRows& a, const ConstRows& b, Rows values) {
  if (values.size() == 0) return;
  multiply_into({a.data(), a.outerStride()}, a.cols(),
                narrow_transpose<double>({b.data(), b.outerStride()}, b.rows(), b.cols()), values);
}

// out[j] = <b_j, x> for all rows of b.
inline void multiply_vector(const Tall<double>& b, Index rows, Index depth, const double* x,
                            double* out) {
  const double flops = 2.0 * static_cast<double>(depth) * static_cast<double>(rows);
  share(rows, kGrain, flops,
        [&](Index begin, Index end) { loops().multiply_vector(depth, b, begin, end, x, out); });
}

struct TurnedResult;

// values = a' b, or rather its transpose b' a where that has less padding: where b is narrower, as
// the weights of a function beside the kernel values of a mini-batch.
inline void multiply_transpose_by(const ConstRows& a, const ConstRows& b, Rows values) {
  if (values.size() == 0) return;
  const Index rows = a.cols(), columns = b.cols(), width = padded(rows);
  if (rows * padded(columns) <= columns * width) {
    return multiply_into({a.data(), 1, a.outerStride()}, a.rows(), narrow(b), values);
  }
  double* turned = scratch<TurnedResult>(columns * width);
  const Narrow<double> right = narrow(a);
  const double flops = 2.0 * static_cast<double>(a.rows()) * static_cast<double>(columns * width);
  share(width, loops().lanes, flops, [&](Index begin, Index end) {
    loops().multiply(columns, end - begin, a.rows(), {b.data(), 1, b.outerStride()},
                     {right.data + begin, right.row, right.panel}, turned + begin, width);
  });
  using Turned = Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>;
  transpose(Turned(turned, columns, rows, Eigen::OuterStride<>(width)), values.data(),
            values.outerStride());
}

struct OuterProduct;

constexpr Index kOuterRows = 4 * kGrain;
constexpr Index kOuterPanels = 8;

// The lower triangle of sum += a a'.
inline void add_outer_product(const ConstRows& a, Rows sum) {
  const Index size = a.rows(), depth = a.cols();
  if (size == 0 || depth == 0) return;
  const Narrow<double> right = narrow_transpose<double>({a.data(), a.outerStride()}, size, depth);
  const double flops = static_cast<double>(depth) * static_cast<double>(size * size);
  // So many columns at a time that their products with some rows stay in the second cache.
  const Index most = kOuterPanels * right.row;
  share(size, 2 * kGrain, flops, [&](Index begin, Index end) {
    for (Index i = begin; i < end; i += kOuterRows) {
      const Index last = std::min(i + kOuterRows, end);
      for (Index j = 0; j < last; j += most) {
        const Index columns = std::min(most, last - j), width = padded(columns);
        double* product = scratch<OuterProduct>((last - i) * width);
        loops().multiply(last - i, width, depth, {a.data() + i * a.outerStride(), a.outerStride()},
                         {right.data + j / right.row * right.panel, right.row, right.panel},
                         product, width);
        for (Index r = std::max(i, j); r < last; ++r) {
          double* row = sum.data() + r * sum.outerStride() + j;
          const Index count = std::min(columns, r - j + 1);
          for (Index k = 0; k < count; ++k) row[k] += product[(r - i) * width + k];
        }
      }
    }
  });
}

struct SelfProduct;

// The lower triangle of sum += a' a.
inline void add_self_product(const ConstRows& a, Rows sum) {
  const Index size = a.cols(), depth = a.rows();
  if (size == 0 || depth == 0) return;
  const Narrow<double> right = narrow(a);
  const double flops = static_cast<double>(depth) * static_cast<double>(size * size);
  share(size, 2 * kGrain, flops, [&](Index begin, Index end) {
    for (Index i = begin; i < end; i += 2 * kGrain) {
      const Index last = std::min(i + 2 * kGrain, end), width = padded(last);
      double* product = scratch<SelfProduct>((last - i) * width);
      loops().multiply(last - i, width, depth, {a.data() + i, 1, a.outerStride()}, right, product,
                       width);
      for (Index r = i; r < last; ++r) {
        double* row = sum.data() + r * sum.outerStride();
        for (Index j = 0; j <= r; ++j) row[j] += product[(r - i) * width + j];
      }
    }
  });
}

}  // namespace parsimon::linalg
