#pragma once

#include <algorithm>
#include <vector>

#include "parsimon/linalg/parallel.hpp"
#include "parsimon/linalg/tall.hpp"
#include "parsimon/linalg/tile.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/memory/scratch.hpp"
#include "parsimon/types.hpp"

namespace parsimon::linalg {

// The narrow matrix of a product: panels of columns, `panel` numbers apart, each with its rows
// `row` numbers apart and padded to whole packets.
template <class Scalar>
struct Narrow {
  const Scalar* data;
  Index row;
  Index panel;

  const Scalar* at(Index k, Index column) const {
    return data + column / panel_width<Scalar> * panel + k * row;
  }
};

// Column i of the target, from column `first` on, becomes column columns[i] of the source.
template <class Source, class Target>
void select_columns(const Source& source, const std::vector<Index>& columns, Index count,
                    Target&& target, Index first = 0) {
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
  constexpr Index lane = lanes<double>;
  const Index rows = a.rows(), columns = a.cols();
  // Those of the rows i .. i_end and columns j .. j_end.
  const auto part = [&](Index i, Index i_end, Index j, Index j_end) {
    const Index whole_i = i_end - (i_end - i) % lane, whole_j = j_end - (j_end - j) % lane;
    const auto one_by_one = [&](Index r, Index r_end, Index c, Index c_end) {
      for (Index k = c; k < c_end; ++k) {
        for (Index l = r; l < r_end; ++l) out[k * out_row + l] = a.coeff(l, k);
      }
    };
    for (Index r = i; r < whole_i; r += lane) {
      const auto source = Tall<double>{a.data(), a.outerStride()}.rows_at<lane>(r, 0);
      for (Index c = j; c < whole_j; c += lane) {
        transpose_tile(source, c, out + c * out_row + r, out_row);
      }
      one_by_one(r, r + lane, whole_j, j_end);
    }
    one_by_one(whole_i, i_end, j, j_end);
  };
  // Threads share the longer side.
  share(std::max(rows, columns), kCopyGrain, copy_flops(a.size()), [&](Index begin, Index end) {
    if (rows >= columns) {
      part(begin, end, 0, columns);
    } else {
      part(0, rows, begin, end);
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
  const Index width = padded<double>(b.cols());
  if (width == b.cols()) return {b.data(), b.outerStride(), panel_width<double>};
  double* copy = scratch<NarrowRows>(b.rows() * width);
  share(b.rows(), kCopyGrain, copy_flops(b.rows() * width), [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      const double* source = b.data() + k * b.outerStride();
      std::copy(source, source + b.cols(), copy + k * width);
      std::fill(copy + k * width + b.cols(), copy + (k + 1) * width, 0.0);
    }
  });
  return {copy, width, panel_width<double>};
}

// The same of the transpose of b: every row of b becomes a column.
template <class Scalar>
Narrow<Scalar> narrow_transpose(const Tall<Scalar>& b, Index rows, Index columns) {
  constexpr Index lane = lanes<Scalar>;
  const Index width = std::min(padded<Scalar>(rows), panel_width<Scalar>);
  const Index panels = (rows + width - 1) / width;
  Scalar* copy = scratch<NarrowColumns, Scalar>(panels * width * columns);
  const Index whole = columns - columns % lane;
  share(panels * width, lane, copy_flops(rows * columns), [&](Index begin, Index end) {
    for (Index j = begin; j < end; j += lane) {
      Scalar* target = copy + j / width * width * columns + j % width;
      const Index count = std::clamp<Index>(rows - j, 0, lane);
      Index k = 0;
      if (count == lane) {
        const auto source = b.template rows_at<lane>(j, 0);
        for (; k < whole; k += lane) transpose_tile(source, k, target + k * width, width);
      }
      for (; k < columns; ++k) {
        for (Index r = 0; r < count; ++r) target[k * width + r] = *b.at(j + r, k);
        for (Index r = count; r < lane; ++r) target[k * width + r] = 0;
      }
    }
  });
  return {copy, width, width * columns};
}

// c = a b. Rows of c must have room for padded(columns) numbers.
template <class Scalar>
void multiply(Index rows, Index columns, Index depth, const Tall<Scalar>& a,
              const Narrow<Scalar>& b, Scalar* c, Index c_row) {
  // A block of a for each tile to read from the second cache, and one of b that stays there.
  constexpr Index block_rows = 48;
  const Index width = padded<Scalar>(columns);
  const Index block_depth =
      std::max<Index>(128, (Index{1} << 18) / static_cast<Index>(sizeof(Scalar)) / width);
  for (Index start = 0; start == 0 || start < depth; start += block_depth) {
    const Index terms = std::min(block_depth, depth - start);
    for (Index i = 0; i < rows; i += block_rows) {
      const Index count = std::min(block_rows, rows - i);
      for_each_panel<Scalar>(width, [&](auto packets, Index j) {
        for_each_tile<packets>(count, [&](auto height, Index r) {
          const auto source = a.template rows_at<height>(i + r, start);
          Scalar* target = c + (i + r) * c_row + j;
          if (a.column == 1) {
            multiply_tile<height, packets, true>(terms, source, 1, b.at(start, j), b.row, target,
                                                 c_row, start > 0);
          } else {
            multiply_tile<height, packets, false>(terms, source, a.column, b.at(start, j), b.row,
                                                  target, c_row, start > 0);
          }
        });
      });
    }
  }
}

// Threads share tall matrices in multiples of so many rows, of all heights of tiles; a few rows
// are rather shared evenly.
constexpr Index kGrain = 24;

inline Index grain(Index rows) { return rows < 8 * kGrain ? 8 : kGrain; }

struct PaddedResult;

// values = a b for a result whose rows need not be padded.
inline void multiply_rows(const Tall<double>& a, Index depth, const Narrow<double>& b,
                          Rows values) {
  const Index width = padded<double>(values.cols());
  if (width == values.cols()) {
    return multiply(values.rows(), width, depth, a, b, values.data(), values.outerStride());
  }
  double* result = scratch<PaddedResult>(values.rows() * width);
  multiply(values.rows(), width, depth, a, b, result, width);
  values = Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>(result, values.rows(), values.cols(),
                                                          Eigen::OuterStride<>(width));
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

// values = x b', for a single row x.
template <class Values>
void multiply_row(const double* x, Index depth, const Tall<double>& b, Values&& values) {
  const double flops = 2.0 * static_cast<double>(depth) * static_cast<double>(values.size());
  share(values.size(), kGrain, flops, [&](Index begin, Index end) {
    for_each_group<8>(end - begin, [&](auto height, Index r) {
      const Index i = begin + r;
      dot_rows<height>(depth, b.template rows_at<height>(i, 0), x, values.data() + i);
    });
  });
}

struct TurnedResult;

// values = a' b, or rather its transpose b' a where that has less padding: where b is narrower, as
// the weights of a function beside the kernel values of a mini-batch.
inline void multiply_transpose_by(const ConstRows& a, const ConstRows& b, Rows values) {
  if (values.size() == 0) return;
  const Index rows = a.cols(), columns = b.cols(), width = padded<double>(rows);
  if (rows * padded<double>(columns) <= columns * width) {
    return multiply_into({a.data(), 1, a.outerStride()}, a.rows(), narrow(b), values);
  }
  double* turned = scratch<TurnedResult>(columns * width);
  const Narrow<double> right = narrow(a);
  const double flops = 2.0 * static_cast<double>(a.rows()) * static_cast<double>(columns * width);
  share(width, lanes<double>, flops, [&](Index begin, Index end) {
    multiply<double>(columns, end - begin, a.rows(), {b.data(), 1, b.outerStride()},
                     {right.data + begin, right.row, right.panel}, turned + begin, width);
  });
  using Turned = Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>;
  transpose(Turned(turned, columns, rows, Eigen::OuterStride<>(width)), values.data(),
            values.outerStride());
}

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

// whitened = T values and coefficients = T' whitened for a lower triangular T with zeros above the
// diagonal, reading T once: a block of its rows is used a second time while it is in the cache.
// Rows of all three have room for padded(columns) numbers.
inline void solve_with_root(const ConstRows& root, Index columns, const double* values,
                            double* whitened, double* coefficients, Index row) {
  const Index size = root.rows(), stride = root.outerStride();
  const Index width = padded<double>(columns);
  const Narrow<double> right{values, row, panel_width<double>};
  const auto whiten = [&](Index first, Index end) {
    std::fill(coefficients + first * row, coefficients + end * row, 0.0);
    multiply(end - first, width, end, Tall<double>{&root.coeffRef(first, 0), stride}, right,
             whitened + first * row, row);
  };
  const auto unwhiten = [&](Index first, Index last, Index begin, Index end) {
    for_each_panel<double>(width, [&](auto packets, Index j) {
      for_each_tile<packets>(last - first, [&](auto height, Index r) {
        const Index i = first + r;
        const Index known = std::min(i + height, end);
        if (known <= begin) return;
        spread_tile<height, packets>(known - begin, &root.coeffRef(i, begin), stride,
                                     whitened + i * row + j, row, coefficients + begin * row + j,
                                     row);
      });
    });
  };
  in_row_blocks(size, kGrain, 2.0 * static_cast<double>(size * width), whiten, unwhiten);
}

struct PartialSums;

// Reading a number from memory takes the time of so many operations.
constexpr Index kReadFlops = 8;

// Whether solve_with_few() is faster than padding the columns.
inline bool are_few(Index columns) {
  return columns < 2 * lanes<double> && columns % lanes<double> != 0;
}

// The same for a few columns, each of which is a row here of `row` numbers, zeros from `size` on.
// Rows of T have room for padded(size) numbers.
inline void solve_with_few(const ConstRows& root, Index columns, const double* values,
                           double* whitened, double* coefficients, Index row) {
  const Index size = root.rows(), stride = root.outerStride();
  std::fill(coefficients, coefficients + columns * row, 0.0);
  // So much of the columns stays in the first cache while a block of T passes by.
  constexpr Index depth = 384;
  const auto whiten = [&](Index first, Index end) {
    double* sums = scratch<PartialSums>((end - first) * columns * lanes<double>);
    for (Index start = 0; start < padded<double>(end); start += depth) {
      for_each_few(columns, end - first, [&](auto wide, auto high, Index c, Index r) {
        const Index i = first + r, known = padded<double>(i + high);
        if (known <= start) return;
        double* tile = sums + (c * (end - first) + r * wide) * lanes<double>;
        dot_tile<high, wide>(std::min(known - start, depth), &root.coeffRef(i, start), stride,
                             values + c * row + start, row, tile, start == 0);
        if (known <= start + depth) add_lanes<high, wide>(tile, whitened + c * row + i, row);
      });
    }
  };
  const auto unwhiten = [&](Index first, Index last, Index begin, Index end) {
    for (Index start = begin; start < end; start += depth) {
      const Index stop = std::min(start + depth, padded<double>(end));
      for_each_few(columns, last - first, [&](auto wide, auto high, Index c, Index r) {
        const Index i = first + r, known = std::min(padded<double>(i + high), stop);
        if (known <= start) return;
        add_rows_tile<high, wide>(known - start, &root.coeffRef(i, start), stride,
                                  whitened + c * row + i, row, coefficients + c * row + start, row);
      });
    }
  };
  in_row_blocks(size, 2 * kGrain, static_cast<double>(size * (2 * columns + kReadFlops)), whiten,
                unwhiten);
}

}  // namespace parsimon::linalg
