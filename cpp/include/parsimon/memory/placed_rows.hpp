#pragma once

#include <utility>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Rows that stay where they were put: removing one, or changing their order, moves no numbers.
// Places that have become free are used again.
class PlacedRows {
 public:
  explicit PlacedRows(Index columns) : storage_(columns) {}

  Index rows() const { return static_cast<Index>(places_.size()); }
  Index columns() const { return storage_.columns(); }
  auto row(Index i) const { return storage_.row(place(i)); }

  RowMatrix in_order() const {
    RowMatrix all(rows(), columns());
    for (Index i = 0; i < rows(); ++i) all.row(i) = row(i);
    return all;
  }

  template <typename Values>
  void append(const Eigen::MatrixBase<Values>& values) {
    if (free_.empty()) {
      // Also those that become free must find room without allocating.
      ensure_capacity(free_, places_.size() + 1);
      places_.push_back(storage_.rows());
      storage_.append(values);
    } else {
      places_.push_back(free_.back());
      free_.pop_back();
      storage_.row(places_.back()) = values;
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
    ensure_capacity(old_places_, places_.size());
    old_places_ = places_;
    places_.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      Index& old = old_places_[static_cast<std::size_t>(order[i])];
      places_[i] = std::exchange(old, -1);
    }
    for (const Index old : old_places_) {
      if (old >= 0) free_.push_back(old);
    }
  }

 private:
  Index place(Index i) const { return places_[static_cast<std::size_t>(i)]; }

  RowBuffer storage_;
  std::vector<Index> places_;
  std::vector<Index> free_;
  std::vector<Index> old_places_;
};

}  // namespace parsimon
