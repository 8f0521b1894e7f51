#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "parsimon/types.hpp"

// Loops of constant length that must become straight code, or their sums would not stay in
// registers. Other compilers do that unasked.
#if defined(__GNUC__) && !defined(__clang__)
#define PARSIMON_UNROLL _Pragma("GCC unroll 16")
#else
#define PARSIMON_UNROLL
#endif

// The innermost loops of all products of matrices, in Eigen's names for the vector instructions.
//
// The matrices here are tall (a dictionary, its factor) times narrow (a mini-batch), and a general
// product spends as much time on rearranging the tall one as on multiplying. These loops read it
// where it lies: its numbers are broadcast one by one, the narrow one's are loaded as vectors.
//
// Every number that they compute is one sum from the first term to the last. It does not depend on
// the shape of the matrices, nor on how the work is divided. Only where a factor is applied to very
// few columns, each lane has a sum of its own; that, too, is the same however the work is divided.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"  // that vector types as arguments lose some
#endif

namespace parsimon::linalg::native {

template <class Scalar>
using Packet = typename Eigen::internal::packet_traits<Scalar>::type;

template <class Scalar>
constexpr Index lanes = Eigen::internal::unpacket_traits<Packet<Scalar>>::size;

#if defined(__AVX512F__)
constexpr const char* kInstructionSet = "avx512";
#elif defined(__AVX2__)
constexpr const char* kInstructionSet = "avx2";
#else
constexpr const char* kInstructionSet = "baseline";
#endif

// How many columns of the narrow matrix are taken at once, in packets, and how many rows of the
// tall one, so that all sums of a tile fit into the registers.
constexpr bool many_registers = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32;
constexpr int most_packets = many_registers ? 4 : 3;
constexpr int tile_rows(int packets) {
  if (many_registers) return packets == 4 ? 6 : 8;
  return packets == 3 ? 4 : packets == 2 ? 6 : 8;
}

template <class Scalar>
constexpr Index panel_width = most_packets * lanes<Scalar>;

// The same for the few columns of dot_tile().
constexpr int few_columns = many_registers ? 6 : 3;

template <class Scalar>
constexpr Index whole_vectors(Index columns) {
  return (columns + lanes<Scalar> - 1) / lanes<Scalar> * lanes<Scalar>;
}

// Where some rows begin.
template <class Scalar, int rows>
using RowPointers = std::array<const Scalar*, static_cast<std::size_t>(rows)>;

// c = sum_k a(:, k) b(k, :), or added to c. Number (r, k) of a is at a[r][k * a_column].
template <int rows, int packets, bool contiguous, class Scalar>
void multiply_tile(Index depth, const RowPointers<Scalar, rows>& a, Index a_column, const Scalar* b,
                   Index b_row, Scalar* c, Index c_row, bool accumulate) {
  using namespace Eigen::internal;
  constexpr Index width = lanes<Scalar>;
  if constexpr (contiguous) a_column = 1;
  Packet<Scalar> sums[rows][packets];
  PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
    PARSIMON_UNROLL for (int p = 0; p < packets; ++p) {
      sums[r][p] = accumulate ? ploadu<Packet<Scalar>>(c + r * c_row + p * width)
                              : pset1<Packet<Scalar>>(Scalar(0));
    }
  }
  for (Index k = 0; k < depth; ++k) {
    Packet<Scalar> loaded[packets];
    PARSIMON_UNROLL for (int p = 0; p < packets; ++p) {
      loaded[p] = ploadu<Packet<Scalar>>(b + k * b_row + p * width);
    }
    PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
      const auto factor = pset1<Packet<Scalar>>(a[r][k * a_column]);
      PARSIMON_UNROLL for (int p = 0; p < packets; ++p) {
        sums[r][p] = pmadd(factor, loaded[p], sums[r][p]);
      }
    }
  }
  PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
    PARSIMON_UNROLL for (int p = 0; p < packets; ++p) {
      pstoreu(c + r * c_row + p * width, sums[r][p]);
    }
  }
}

// c(k, :) += sum_r a(r, k) b(r, :) for k = 0 .. count: the same with a transposed, for when a few
// rows of a are at hand and all of c is wanted.
template <int rows, int packets, class Scalar>
void spread_tile(Index count, const Scalar* a, Index a_row, const Scalar* b, Index b_row, Scalar* c,
                 Index c_row) {
  using namespace Eigen::internal;
  constexpr Index width = lanes<Scalar>;
  Packet<Scalar> loaded[rows][packets];
  PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
    PARSIMON_UNROLL for (int p = 0; p < packets; ++p) {
      loaded[r][p] = ploadu<Packet<Scalar>>(b + r * b_row + p * width);
    }
  }
  for (Index k = 0; k < count; ++k) {
    Packet<Scalar> sums[packets];
    PARSIMON_UNROLL for (int p = 0; p < packets; ++p) {
      sums[p] = ploadu<Packet<Scalar>>(c + k * c_row + p * width);
    }
    PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
      const auto factor = pset1<Packet<Scalar>>(a[r * a_row + k]);
      PARSIMON_UNROLL for (int p = 0; p < packets; ++p) {
        sums[p] = pmadd(factor, loaded[r][p], sums[p]);
      }
    }
    PARSIMON_UNROLL for (int p = 0; p < packets; ++p) pstoreu(c + k * c_row + p * width, sums[p]);
  }
}

// out(c, r) = sum_k a(r, k) x(c, k): for so few columns that loading them as vectors would leave
// most lanes empty. Here they are rows, and the sums run over lanes. `count` is a multiple of the
// lanes. `sums` has a packet for each number, of what has been summed up before; add_lanes() ends
// it.
template <int rows, int columns>
void dot_tile(Index count, const double* a, Index a_row, const double* x, Index x_row, double* sums,
              bool is_first) {
  using namespace Eigen::internal;
  constexpr Index width = lanes<double>;
  Packet<double> sum[rows][columns];
  PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
    PARSIMON_UNROLL for (int c = 0; c < columns; ++c) {
      sum[r][c] = is_first ? pset1<Packet<double>>(0.0)
                           : ploadu<Packet<double>>(sums + (r * columns + c) * width);
    }
  }
  for (Index k = 0; k < count; k += width) {
    Packet<double> loaded[columns];
    PARSIMON_UNROLL for (int c = 0; c < columns; ++c) {
      loaded[c] = ploadu<Packet<double>>(x + c * x_row + k);
    }
    PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
      const auto factor = ploadu<Packet<double>>(a + r * a_row + k);
      // The next rows: what is read of each is too short for the processor to foresee them.
      if constexpr (columns > 1) prefetch(a + (r + rows) * a_row + k);
      PARSIMON_UNROLL for (int c = 0; c < columns; ++c) {
        sum[r][c] = pmadd(factor, loaded[c], sum[r][c]);
      }
    }
  }
  PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
    PARSIMON_UNROLL for (int c = 0; c < columns; ++c) {
      pstoreu(sums + (r * columns + c) * width, sum[r][c]);
    }
  }
}

template <int rows, int columns>
void add_lanes(const double* sums, double* out, Index out_row) {
  using namespace Eigen::internal;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const double* lane = sums + (r * columns + c) * lanes<double>;
      out[c * out_row + r] = predux(ploadu<Packet<double>>(lane));
    }
  }
}

// out(c, k) += sum_r a(r, k) x(c, r), likewise.
template <int rows, int columns>
void add_rows_tile(Index count, const double* a, Index a_row, const double* x, Index x_row,
                   double* out, Index out_row) {
  using namespace Eigen::internal;
  Packet<double> factors[rows][columns];
  PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
    PARSIMON_UNROLL for (int c = 0; c < columns; ++c) {
      factors[r][c] = pset1<Packet<double>>(x[c * x_row + r]);
    }
  }
  for (Index k = 0; k < count; k += lanes<double>) {
    Packet<double> loaded[rows];
    PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
      loaded[r] = ploadu<Packet<double>>(a + r * a_row + k);
    }
    PARSIMON_UNROLL for (int c = 0; c < columns; ++c) {
      auto sum = ploadu<Packet<double>>(out + c * out_row + k);
      PARSIMON_UNROLL for (int r = 0; r < rows; ++r) sum = pmadd(loaded[r], factors[r][c], sum);
      pstoreu(out + c * out_row + k, sum);
    }
  }
}

// out[r] = sum_k a[r][k] x[k], each lane with a sum of its own.
template <int rows>
void dot_rows(Index depth, const RowPointers<double, rows>& a, const double* x, double* out) {
  using namespace Eigen::internal;
  Packet<double> sums[rows];
  PARSIMON_UNROLL for (int r = 0; r < rows; ++r) sums[r] = pset1<Packet<double>>(0.0);
  const Index whole = depth - depth % lanes<double>;
  for (Index k = 0; k < whole; k += lanes<double>) {
    const auto loaded = ploadu<Packet<double>>(x + k);
    PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
      sums[r] = pmadd(ploadu<Packet<double>>(a[r] + k), loaded, sums[r]);
    }
  }
  PARSIMON_UNROLL for (int r = 0; r < rows; ++r) {
    out[r] = predux(sums[r]);
    for (Index k = whole; k < depth; ++k) out[r] += a[r][k] * x[k];
  }
}

// b(j, r) = a[r][k + j] for as many rows and columns as there are lanes.
template <class Scalar>
void transpose_tile(const RowPointers<Scalar, lanes<Scalar>>& a, Index k, Scalar* b, Index b_row) {
  using namespace Eigen::internal;
  constexpr int size = static_cast<int>(lanes<Scalar>);
  PacketBlock<Packet<Scalar>, size> block;
  PARSIMON_UNROLL for (int r = 0; r < size; ++r) {
    block.packet[r] = ploadu<Packet<Scalar>>(a[r] + k);
  }
  if constexpr (size > 1) ptranspose(block);
  PARSIMON_UNROLL for (int j = 0; j < size; ++j) pstoreu(b + j * b_row, block.packet[j]);
}

// Calls run(integral_constant<rows>, first row) for tiles of `whole` rows, or fewer at the end,
// that cover `count` rows.
template <int whole, class Run>
void for_each_group(Index count, const Run& run) {
  Index i = 0;
  for (; i + whole <= count; i += whole) run(std::integral_constant<int, whole>(), i);
  for (; whole > 4 && i + 4 <= count; i += 4) run(std::integral_constant<int, 4>(), i);
  for (; i + 2 <= count; i += 2) run(std::integral_constant<int, 2>(), i);
  if (i < count) run(std::integral_constant<int, 1>(), i);
}

// The same for tiles of as many rows as go with this many packets.
template <int packets, class Run>
void for_each_tile(Index count, const Run& run) {
  for_each_group<tile_rows(packets)>(count, run);
}

// Calls run(integral_constant<packets>, first column) for panels that cover `columns` columns, a
// multiple of the lanes.
template <class Scalar, class Run>
void for_each_panel(Index columns, const Run& run) {
  for (Index j = 0; j < columns; j += panel_width<Scalar>) {
    const Index packets = std::min((columns - j) / lanes<Scalar>, Index{most_packets});
    if (packets == 1) run(std::integral_constant<int, 1>(), j);
    if (packets == 2) run(std::integral_constant<int, 2>(), j);
    if (packets == 3) run(std::integral_constant<int, 3>(), j);
    if constexpr (most_packets == 4) {
      if (packets == 4) run(std::integral_constant<int, 4>(), j);
    }
  }
}

// Calls run(integral_constant<columns>, integral_constant<rows>, first column, first row) for tiles
// that cover a few columns, in groups as even as possible, and `count` rows.
template <class Run>
void for_each_few(Index columns, Index count, const Run& run) {
  const Index groups = (columns + few_columns - 1) / few_columns;
  for (Index group = 0; group < groups; ++group) {
    const Index first = columns * group / groups, width = columns * (group + 1) / groups - first;
    const auto over_rows = [&](auto wide) {
      if (width != wide) return;
      for_each_group<wide == 1 ? 8 : 4>(count,
                                        [&](auto high, Index row) { run(wide, high, first, row); });
    };
    over_rows(std::integral_constant<int, 1>());
    over_rows(std::integral_constant<int, 2>());
    over_rows(std::integral_constant<int, 3>());
    if constexpr (few_columns == 6) {
      over_rows(std::integral_constant<int, 4>());
      over_rows(std::integral_constant<int, 5>());
      over_rows(std::integral_constant<int, 6>());
    }
  }
}

}  // namespace parsimon::linalg::native

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
