#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "parsimon/linalg/tall.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Rows that stay where they were put: removing one, or changing their order, moves no numbers.
// Places that have become free are used again.
template <class Scalar>
class PlacedRowsOf {
 public:
  explicit PlacedRowsOf(Index columns = 0) : storage_(columns) {}

  Index rows() const { return static_cast<Index>(places_.size()); }
  Index columns() const { return storage_.columns(); }
  auto row(Index i) { return storage_.row(place(i)); }
  auto row(Index i) const { return storage_.row(place(i)); }
  Scalar* at(Index i) { return storage_.data() + place(i) * columns(); }
  const Scalar* at(Index i) const { return storage_.data() + place(i) * columns(); }

  // All of them, as products of matrices want to know it.
  linalg::Tall<Scalar> tall() const { return {storage_.data(), columns(), 1, places_.data()}; }

  auto in_order() const {
    typename RowBufferOf<Scalar>::Matrix all(rows(), columns());
    for (Index i = 0; i < rows(); ++i) std::copy_n(at(i), columns(), all.data() + i * columns());
    return all;
  }

  // Starts again, with rows that are uninitialised.
  void reset(Index rows, Index columns) {
    storage_.resize(rows, columns);
    ensure_capacity(places_, static_cast<std::size_t>(rows));
    places_.resize(static_cast<std::size_t>(rows));
    std::iota(places_.begin(), places_.end(), Index{0});
    free_.clear();
  }

  // values: one number per column
  void append(const Scalar* values) {
    if (free_.empty()) {
      // Also those that become free must find room without allocating.
      ensure_capacity(free_, places_.size() + 1);
      places_.push_back(storage_.rows());
      storage_.append(values);
    } else {
      places_.push_back(free_.back());
      free_.pop_back();
      std::copy_n(values, columns(), storage_.data() + places_.back() * columns());
    }
  }

  // The last row takes the place of row i.
  void replace_by_last(Index i) {
    std::swap(places_[static_cast<std::size_t>(i)], places_.back());
    free_.push_back(places_.back());
    places_.pop_back();
  }

  // Row i becomes what row order[i] was; rows that are not named go. None may be named twice.
  void select(const std::vector<Index>& order) {
    const std::size_t kept = unmoved(order);
    ensure_capacity(old_places_, places_.size());
    old_places_.assign(places_.begin() + static_cast<Index>(kept), places_.end());
    places_.resize(order.size());
    for (std::size_t i = kept; i < order.size(); ++i) {
      Index& old = old_places_[static_cast<std::size_t>(order[i]) - kept];
      places_[i] = std::exchange(old, -1);
    }
    for (const Index old : old_places_) {
      if (old >= 0) free_.push_back(old);
    }
  }

 private:
  Index place(Index i) const { return places_[static_cast<std::size_t>(i)]; }

  RowBufferOf<Scalar> storage_;
  std::vector<Index> places_;
  std::vector<Index> free_;
  std::vector<Index> old_places_;
};

using PlacedRows = PlacedRowsOf<double>;

}  // namespace parsimon
