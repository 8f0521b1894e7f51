#pragma once

#include <array>

#include "parsimon/types.hpp"

namespace parsimon::linalg {

// Where the tall matrix of a product lies: number (i, k) is at data[i * row + k * column], or, if
// its rows are not in order, at data[places[i] * row + k * column].
template <class Scalar>
struct Tall {
  const Scalar* data;
  Index row;
  Index column = 1;
  const Index* places = nullptr;

  const Scalar* at(Index i, Index k) const {
    return data + (places == nullptr ? i : places[i]) * row + k * column;
  }

  // Number k of as many rows, from row i on.
  template <int rows>
  std::array<const Scalar*, rows> rows_at(Index i, Index k) const {
    std::array<const Scalar*, rows> result;
    for (int r = 0; r < rows; ++r) result[static_cast<std::size_t>(r)] = at(i + r, k);
    return result;
  }

  Tall from(Index i, Index k) const {
    if (places == nullptr) return {at(i, k), row, column};
    return {data + k * column, row, column, places + i};
  }
};

// The narrow matrix of a product: panels of Loops::panel columns, `panel` numbers apart, each with
// its rows `row` numbers apart and padded to whole vectors.
template <class Scalar>
struct Narrow {
  const Scalar* data;
  Index row;
  Index panel;
};

}  // namespace parsimon::linalg
