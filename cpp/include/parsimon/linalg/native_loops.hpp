#pragma once

#include <algorithm>

#include "parsimon/linalg/exponential.hpp"
#include "parsimon/linalg/loop_table.hpp"
#include "parsimon/linalg/tile.hpp"
#include "parsimon/types.hpp"

// The table of loops for the instruction set that the compiler was told to use. Nothing else may
// include this but loops.hpp, and a module that is compiled to offer another instruction set.
namespace parsimon::linalg::native {

template <class Scalar>
void multiply(Index rows, Index columns, Index depth, const Tall<Scalar>& a,
              const Narrow<Scalar>& b, Scalar* c, Index c_row) {
  if (depth == 0) {
    for (Index i = 0; i < rows; ++i) std::fill_n(c + i * c_row, columns, Scalar{0});
    return;
  }
  // A block of a for each tile to read from the second cache, and one of b that stays there.
  constexpr Index block_rows = 48;
  const Index block_depth =
      std::max<Index>(128, (Index{1} << 18) / static_cast<Index>(sizeof(Scalar)) / columns);
  for (Index start = 0; start < depth; start += block_depth) {
    const Index terms = std::min(block_depth, depth - start);
    for (Index i = 0; i < rows; i += block_rows) {
      const Index count = std::min(block_rows, rows - i);
      for_each_panel<Scalar>(columns, [&](auto packets, Index j) {
        const Scalar* right = b.data + j / panel_width<Scalar> * b.panel + start * b.row;
        for_each_tile<packets>(count, [&](auto height, Index r) {
          const auto source = a.template rows_at<height>(i + r, start);
          Scalar* target = c + (i + r) * c_row + j;
          if (a.column == 1) {
            multiply_tile<height, packets, true>(terms, source, 1, right, b.row, target, c_row,
                                                 start > 0);
          } else {
            multiply_tile<height, packets, false>(terms, source, a.column, right, b.row, target,
                                                  c_row, start > 0);
          }
        });
      });
    }
  }
}

inline void multiply_vector(Index depth, const Tall<double>& b, Index begin, Index end,
                            const double* x, double* out) {
  for_each_group<8>(end - begin, [&](auto height, Index r) {
    dot_rows<height>(depth, b.template rows_at<height>(begin + r, 0), x, out + begin + r);
  });
}

inline void transpose(const Tall<double>& a, Index i_begin, Index i_end, Index j_begin, Index j_end,
                      double* out, Index out_row) {
  constexpr Index lane = lanes<double>;
  const Index whole_i = i_end - (i_end - i_begin) % lane;
  const Index whole_j = j_end - (j_end - j_begin) % lane;
  const auto one_by_one = [&](Index i, Index last, Index j) {
    for (; j < j_end; ++j) {
      for (Index r = i; r < last; ++r) out[j * out_row + r] = *a.at(r, j);
    }
  };
  for (Index i = i_begin; i < whole_i; i += lane) {
    const auto source = a.rows_at<lane>(i, 0);
    for (Index j = j_begin; j < whole_j; j += lane) {
      transpose_tile(source, j, out + j * out_row + i, out_row);
    }
    one_by_one(i, i + lane, whole_j);
  }
  one_by_one(whole_i, i_end, j_begin);
}

template <class Scalar>
void pack(const Tall<Scalar>& b, Index rows, Index columns, Index width, Index begin, Index end,
          Scalar* out) {
  constexpr Index lane = lanes<Scalar>;
  const Index whole = columns - columns % lane;
  for (Index j = begin; j < end; j += lane) {
    Scalar* target = out + j / width * width * columns + j % width;
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
}

inline void spread(const double* root, Index stride, Index first, Index last, Index begin,
                   Index end, Index width, const double* whitened, double* coefficients,
                   Index row) {
  for_each_panel<double>(width, [&](auto packets, Index j) {
    for_each_tile<packets>(last - first, [&](auto height, Index r) {
      const Index i = first + r;
      const Index known = std::min(i + height, end);
      if (known <= begin) return;
      spread_tile<height, packets>(known - begin, root + i * stride + begin, stride,
                                   whitened + i * row + j, row, coefficients + begin * row + j,
                                   row);
    });
  });
}

// So much of a few columns stays in the first cache while a block of the root passes by.
constexpr Index kFewDepth = 384;

inline void whiten_few(const double* root, Index stride, Index first, Index end, Index columns,
                       const double* values, double* whitened, Index row, double* sums) {
  for (Index start = 0; start < whole_vectors<double>(end); start += kFewDepth) {
    for_each_few(columns, end - first, [&](auto wide, auto high, Index c, Index r) {
      const Index i = first + r, known = whole_vectors<double>(i + high);
      if (known <= start) return;
      double* tile = sums + (c * (end - first) + r * wide) * lanes<double>;
      dot_tile<high, wide>(std::min(known - start, kFewDepth), root + i * stride + start, stride,
                           values + c * row + start, row, tile, start == 0);
      if (known <= start + kFewDepth) add_lanes<high, wide>(tile, whitened + c * row + i, row);
    });
  }
}

inline void spread_few(const double* root, Index stride, Index first, Index last, Index begin,
                       Index end, Index columns, const double* whitened, double* coefficients,
                       Index row) {
  for (Index start = begin; start < end; start += kFewDepth) {
    const Index stop = std::min(start + kFewDepth, whole_vectors<double>(end));
    for_each_few(columns, last - first, [&](auto wide, auto high, Index c, Index r) {
      const Index i = first + r, known = std::min(whole_vectors<double>(i + high), stop);
      if (known <= start) return;
      add_rows_tile<high, wide>(known - start, root + i * stride + start, stride,
                                whitened + c * row + i, row, coefficients + c * row + start, row);
    });
  }
}

inline void rotate(double* root, Index stride, Index size, Index j, Index begin, Index end,
                   const double* cosines, const double* sines, double* carried, double* edge) {
  using namespace Eigen::internal;
  constexpr Index lane = lanes<double>;
  std::fill(carried + begin, carried + end, 0.0);
  for (Index k = begin; k < std::min(j + 1, end); ++k) carried[k] = root[j * stride + k];
  for (Index i = std::max(j, begin - 1); i + 1 < size; ++i) {
    const auto sine = pset1<Packet<double>>(sines[i]), cosine = pset1<Packet<double>>(cosines[i]);
    const double* next = root + (i + 1) * stride;
    double* kept = root + i * stride;
    const auto turn = [&](Index k) {
      const auto of_next = ploadu<Packet<double>>(next + k);
      const auto of_carried = ploadu<Packet<double>>(carried + k);
      pstoreu(carried + k, pmadd(sine, of_carried, pmul(cosine, of_next)));
      return pmadd(sine, of_next, pmul(pnegate(cosine), of_carried));
    };
    const Index last = std::min(end, whole_vectors<double>(i + 2));
    Index k = begin;
    for (; k + lane <= std::min(j, last); k += lane) pstoreu(kept + k, turn(k));
    if (k < last) {
      // These columns lie on both sides of the removed one, or of where the part begins.
      double stay[lane];
      pstoreu(stay, turn(k));
      for (Index l = 0; l < lane; ++l) {
        const Index column = k + l;
        if (column < j) kept[column] = stay[l];
        if (column > j && column > begin) kept[column - 1] = stay[l];
        if (column > j && column == begin) edge[i] = stay[l];
      }
      k += lane;
    }
    for (; k < last; k += lane) pstoreu(kept + k - 1, turn(k));
  }
}

inline void rotate_rows(double* rows, Index stride, Index count, Index begin, Index end,
                        const double* cosines, const double* sines) {
  using namespace Eigen::internal;
  // Vectors of columns stay in registers on their way down.
  const auto turn = [&](Index k, auto vectors) {
    constexpr Index lane = lanes<double>;
    constexpr int count_at_once = decltype(vectors)::value;
    Packet<double> carried[count_at_once];
    PARSIMON_UNROLL for (int v = 0; v < count_at_once; ++v) {
      carried[v] = ploadu<Packet<double>>(rows + k + v * lane);
    }
    for (Index i = 0; i + 1 < count; ++i) {
      const auto sine = pset1<Packet<double>>(sines[i]), cosine = pset1<Packet<double>>(cosines[i]);
      double* kept = rows + i * stride + k;
      PARSIMON_UNROLL for (int v = 0; v < count_at_once; ++v) {
        const auto next = ploadu<Packet<double>>(kept + stride + v * lane);
        pstoreu(kept + v * lane, pmadd(sine, next, pmul(pnegate(cosine), carried[v])));
        carried[v] = pmadd(sine, carried[v], pmul(cosine, next));
      }
    }
    PARSIMON_UNROLL for (int v = 0; v < count_at_once; ++v) {
      pstoreu(rows + (count - 1) * stride + k + v * lane, carried[v]);
    }
  };
  Index k = begin;
  for (; k + 8 * lanes<double> <= end; k += 8 * lanes<double>) {
    turn(k, std::integral_constant<int, 8>());
  }
  for (; k < end; k += lanes<double>) turn(k, std::integral_constant<int, 1>());
}

template <int count>
void update_some_rows(double* root, Index stride, Index first, const double* v,
                      const double* shrink, const double* pull, double* product) {
  using namespace Eigen::internal;
  Packet<double> vs[count], shrinks[count], pulls[count];
  PARSIMON_UNROLL for (int r = 0; r < count; ++r) {
    vs[r] = pset1<Packet<double>>(v[first + r]);
    shrinks[r] = pset1<Packet<double>>(shrink[first + r]);
    pulls[r] = pset1<Packet<double>>(pull[first + r]);
  }
  double* const rows = root + first * stride;
  // Beyond its diagonal a row stays zero, and so does what it adds to the product.
  for (Index i = 0; i < whole_vectors<double>(first + count); i += lanes<double>) {
    auto so_far = ploadu<Packet<double>>(product + i);
    PARSIMON_UNROLL for (int r = 0; r < count; ++r) {
      const auto old = ploadu<Packet<double>>(rows + r * stride + i);
      pstoreu(rows + r * stride + i, psub(pmul(shrinks[r], old), pmul(pulls[r], so_far)));
      so_far = pmadd(vs[r], old, so_far);
    }
    pstoreu(product + i, so_far);
  }
}

inline void update_rows(double* root, Index stride, Index first, Index last, const double* v,
                        const double* shrink, const double* pull, double* product) {
  Index j = first;
  for (; j + 4 <= last; j += 4) update_some_rows<4>(root, stride, j, v, shrink, pull, product);
  for (; j < last; ++j) update_some_rows<1>(root, stride, j, v, shrink, pull, product);
}

// Below this ratio, an entry of the diagonal has lost too many digits to subtraction.
constexpr double kCancellation = 1e-3;

inline Packet<double> cost(const BasisColumns& basis, Index i, const Packet<double>& diagonal) {
  using namespace Eigen::internal;
  auto square = pset1<Packet<double>>(0.0);
  for (Index c = 0; c < basis.scored; ++c) {
    const auto weight = ploadu<Packet<double>>(basis.weights + c * basis.weights_row + i);
    square = pmadd(weight, weight, square);
  }
  return padd(pdiv(square, diagonal), ploadu<Packet<double>>(basis.barrier + i));
}

inline void score(const BasisColumns& basis, Index begin, Index end) {
  using namespace Eigen::internal;
  for (Index i = begin; i < end; i += lanes<double>) {
    const auto diagonal = ploadu<Packet<double>>(basis.inverse_diagonal + i);
    pstoreu(basis.costs + i, cost(basis, i, diagonal));
  }
}

inline void move_columns(const BasisColumns& basis, Index i, const Packet<double>& column,
                         const double* kept) {
  using namespace Eigen::internal;
  const auto opposite = pnegate(column);
  for (Index c = 0; c < basis.outputs; ++c) {
    double* weight = basis.weights + c * basis.weights_row + i;
    pstoreu(weight,
            pmadd(opposite, pset1<Packet<double>>(kept[c]), ploadu<Packet<double>>(weight)));
  }
  const auto before = ploadu<Packet<double>>(basis.inverse_diagonal + i);
  const auto after = pmadd(opposite, column, before);
  pstoreu(basis.inverse_diagonal + i, after);
  const auto least = pmul(pset1<Packet<double>>(kCancellation), before);
  pstoreu(basis.costs + i, cost(basis, i, after));
  // True as well if there is a NaN.
  if (!(predux_min(psub(after, least)) > 0)) {
    double of_before[lanes<double>];
    pstoreu(of_before, before);
    for (Index l = 0; l < lanes<double>; ++l) {
      if (!(basis.inverse_diagonal[i + l] > kCancellation * of_before[l])) {
        basis.costs[i + l] = kStale;
      }
    }
  }
}

inline void move_by(const BasisColumns& basis, Index begin, Index end, const double* column,
                    const double* kept) {
  using namespace Eigen::internal;
  for (Index i = begin; i < end; i += lanes<double>) {
    move_columns(basis, i, ploadu<Packet<double>>(column + i), kept);
  }
}

inline void move_by_sum(const BasisColumns& basis, Index begin, Index end,
                        const double* const* rows, const double* u, Index count,
                        const double* kept) {
  using namespace Eigen::internal;
  for (Index i = begin; i < end; i += lanes<double>) {
    auto column = pset1<Packet<double>>(0.0);
    for (Index r = 0; r < count; ++r) {
      column = pmadd(pset1<Packet<double>>(-u[r]), ploadu<Packet<double>>(rows[r] + i), column);
    }
    move_columns(basis, i, column, kept);
  }
}

// Sums over features run in this many lanes, whatever the length of a vector.
constexpr int kSumLanes = 16;
constexpr int kSumPackets = kSumLanes / static_cast<int>(lanes<double>);

struct SquaredDifference {
  static Packet<double> add(const Packet<double>& difference, const Packet<double>& sum) {
    return Eigen::internal::pmadd(difference, difference, sum);
  }
  static double of(double difference) { return difference * difference; }
};

struct AbsoluteDifference {
  static Packet<double> add(const Packet<double>& difference, const Packet<double>& sum) {
    return Eigen::internal::padd(Eigen::internal::pabs(difference), sum);
  }
  static double of(double difference) { return difference < 0 ? -difference : difference; }
};

inline double sum_of_lanes(const Packet<double> (&sums)[kSumPackets]) {
  double lane[kSumLanes];
  for (int p = 0; p < kSumPackets; ++p) {
    Eigen::internal::pstoreu(lane + p * lanes<double>, sums[p]);
  }
  for (int half = kSumLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  }
  return lane[0];
}

template <class Term>
double distance(const double* a, const double* b, Index features) {
  using namespace Eigen::internal;
  const Index whole = features - features % kSumLanes;
  Packet<double> sums[kSumPackets];
  for (auto& sum : sums) sum = pset1<Packet<double>>(0.0);
  for (Index f = 0; f < whole; f += kSumLanes) {
    PARSIMON_UNROLL for (int p = 0; p < kSumPackets; ++p) {
      const Index at = f + p * lanes<double>;
      sums[p] =
          Term::add(psub(ploadu<Packet<double>>(a + at), ploadu<Packet<double>>(b + at)), sums[p]);
    }
  }
  double total = sum_of_lanes(sums);
  for (Index f = whole; f < features; ++f) total += Term::of(a[f] - b[f]);
  return total;
}

inline double squared_norm(const double* a, Index features) {
  using namespace Eigen::internal;
  const Index whole = features - features % kSumLanes;
  Packet<double> sums[kSumPackets];
  for (auto& sum : sums) sum = pset1<Packet<double>>(0.0);
  for (Index f = 0; f < whole; f += kSumLanes) {
    PARSIMON_UNROLL for (int p = 0; p < kSumPackets; ++p) {
      const auto part = ploadu<Packet<double>>(a + f + p * lanes<double>);
      sums[p] = pmadd(part, part, sums[p]);
    }
  }
  double total = sum_of_lanes(sums);
  for (Index f = whole; f < features; ++f) total += a[f] * a[f];
  return total;
}

template <class Term>
void distances_to_tile(const Tall<double>& a, Index begin, Index end, const double* tile,
                       Index features, Index count, double* out, Index out_row) {
  using namespace Eigen::internal;
  for (Index i = begin; i < end; ++i) {
    const double* point = a.at(i, 0);
    double* row = out + (i - begin) * out_row;
    for (Index j = 0; j < count; j += kSumLanes) {
      Packet<double> sums[kSumPackets];
      PARSIMON_UNROLL for (int p = 0; p < kSumPackets; ++p) sums[p] = pset1<Packet<double>>(0.0);
      for (Index f = 0; f < features; ++f) {
        const auto coordinate = pset1<Packet<double>>(point[f]);
        PARSIMON_UNROLL for (int p = 0; p < kSumPackets; ++p) {
          const double* others = tile + f * kTileWidth + j + p * lanes<double>;
          sums[p] = Term::add(psub(ploadu<Packet<double>>(others), coordinate), sums[p]);
        }
      }
      if (count - j >= kSumLanes) {
        PARSIMON_UNROLL for (int p = 0; p < kSumPackets; ++p) {
          pstoreu(row + j + p * lanes<double>, sums[p]);
        }
      } else {
        double rest[kSumLanes];
        for (int p = 0; p < kSumPackets; ++p) pstoreu(rest + p * lanes<double>, sums[p]);
        std::copy(rest, rest + (count - j), row + j);
      }
    }
  }
}

inline bool complete_distances(double norm, const double* norms, double near, double* out,
                               Index count) {
  int too_near = 0;
  for (Index j = 0; j < count; ++j) {
    const double sum = norms[j] + norm;
    const double distance = sum - 2.0 * out[j];
    out[j] = distance;
    too_near |= !(distance > near * sum);
  }
  return too_near != 0;
}

}  // namespace parsimon::linalg::native

namespace parsimon::linalg {

inline constexpr Loops kNativeLoops = {
    native::kInstructionSet,
    native::lanes<double>,
    native::panel_width<double>,
    native::lanes<float>,
    native::panel_width<float>,
    native::multiply<double>,
    native::multiply<float>,
    native::multiply_vector,
    native::transpose,
    native::pack<double>,
    native::pack<float>,
    native::spread,
    native::whiten_few,
    native::spread_few,
    native::rotate,
    native::rotate_rows,
    native::update_rows,
    native::score,
    native::move_by,
    native::move_by_sum,
    native::distance<native::SquaredDifference>,
    native::distance<native::AbsoluteDifference>,
    native::squared_norm,
    native::distances_to_tile<native::SquaredDifference>,
    native::distances_to_tile<native::AbsoluteDifference>,
    native::complete_distances,
    native::exponential,
};

}  // namespace parsimon::linalg
