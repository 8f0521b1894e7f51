#pragma once

#include <algorithm>
#include <cmath>

#include "parsimon/linalg/loops.hpp"
#include "parsimon/linalg/parallel.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/types.hpp"

namespace parsimon::linalg {

// Takes columns out of a lower triangular root T that stays one: plane rotations of its rows move
// all of column j into the last row, which then goes, so that T'T = K^-1 becomes the inverse of K
// without row and column j. One pass over the rows from j on, shared among threads.
class ColumnRemoval {
 public:
  // For roots of up to this many rows.
  void reserve(Index size) {
    Vector carried(size), cosines(size), sines(size);
    carried_.swap(carried);
    cosines_.swap(cosines);
    sines_.swap(sines);
  }

  // root: `size` rows, `stride` numbers apart. Columns behind j move up by one. last_row: room for
  // the `size` numbers of the row that goes, as it is after the rotations.
  void run(double* root, Index stride, Index size, Index j, double* last_row) {
    const double corner = choose_rotations(root, stride, size, j);
    const auto rows = static_cast<double>(size - j);
    const double flops = 6.0 * rows * (static_cast<double>(j) + 0.5 * rows);
    const Index most_parts = std::min<Index>(get_num_threads(), size / kPartWidth + 1);
    edges_.resize(most_parts, size);
    int parts = 1;
    in_parts(most_parts, flops, [&](int part, int of) {
      if (part == 0) parts = of;
      loops().rotate(root, stride, size, j, first_column(size, j, part, of),
                     first_column(size, j, part + 1, of), cosines_.data(), sines_.data(),
                     carried_.data(), edges_.row(part).data());
    });
    for (int part = 1; part < parts; ++part) {
      // What a part moved into the one before, which may still have been at work there.
      const Index begin = first_column(size, j, part, parts);
      const double* edge = edges_.row(part).data();
      for (Index i = begin - 1; begin > j && i + 1 < size; ++i)
        root[i * stride + begin - 1] = edge[i];
    }
    std::copy_n(carried_.data(), size, last_row);
    last_row[j] = corner;
  }

  // Those of the last removal: rotation i turns rows j + i and j + i + 1.
  const double* cosines(Index j) const { return cosines_.data() + j; }
  const double* sines(Index j) const { return sines_.data() + j; }

 private:
  // Parts of the columns are a multiple of this wide: whole cache lines.
  static constexpr Index kPartWidth = 64;

  // Rotation i turns row i + 1 and what has been carried down to row i, such that of column j
  // nothing stays in row i. That column alone decides about all rotations. Returns what becomes of
  // it in the last row.
  double choose_rotations(const double* root, Index stride, Index size, Index j) {
    // All of the column is fetched from afar before any of it is waited for.
    double* column = carried_.data();
    for (Index i = j; i < size; ++i) column[i] = root[i * stride + j];
    double carried = column[j];
    for (Index i = j; i + 1 < size; ++i) {
      const double next = column[i + 1];
      const double norm = length(carried, next);
      cosines_(i) = next / norm;
      sines_(i) = carried / norm;
      carried = norm;
    }
    return carried;
  }

  static double length(double a, double b) {
    const double square = a * a + b * b;
    constexpr double smallest = 1e-280, largest = 1e280;
    return square > smallest && square < largest ? std::sqrt(square) : std::hypot(a, b);
  }

  // Where a part of the columns begins, if all are to have as many numbers from row j on.
  static Index first_column(Index size, Index j, int part, int parts) {
    const Index width = padded(size);
    if (part == parts) return width;
    const auto rows = static_cast<double>(size - j), left = static_cast<double>(j) * rows;
    const double numbers = (left + rows * rows / 2) * part / parts;
    const double column = numbers < left
                              ? numbers / rows
                              : static_cast<double>(size) -
                                    std::sqrt(std::max(0.0, rows * rows - 2 * (numbers - left)));
    return std::min(static_cast<Index>(column) / kPartWidth * kPartWidth, width);
  }

  Vector carried_;
  Vector cosines_;
  Vector sines_;
  RowBuffer edges_;  // one row per thread
};

}  // namespace parsimon::linalg
