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
// Places that have become free are used again; those of rows that are remembered, only once that
// is over, so that all rows there were can come back.
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

  // values: one number per column. If it throws, there is no new row.
  void append(const Scalar* values) {
    ensure_capacity(places_, places_.size() + 1);
    if (free_.empty()) {
      // Also those that become free must find room without allocating.
      const auto all = static_cast<std::size_t>(storage_.rows()) + 1;
      ensure_capacity(free_, all);
      if (remembers_) ensure_capacity(left_, all);
      storage_.append(values);
      places_.push_back(storage_.rows() - 1);
    } else {
      places_.push_back(free_.back());
      free_.pop_back();
      std::copy_n(values, columns(), storage_.data() + places_.back() * columns());
    }
  }

  // The last row takes the place of row i.
  void replace_by_last(Index i) {
    std::swap(places_[static_cast<std::size_t>(i)], places_.back());
    left().push_back(places_.back());
    places_.pop_back();
  }

  // The first ones stay. What the others leave is lost room: this is for rows that should not have
  // come.
  void truncate(Index rows) noexcept {
    if (rows < this->rows()) places_.erase(places_.begin() + rows, places_.end());
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
      if (old >= 0) left().push_back(old);
    }
  }

  // From now on, and until the next time, undo() brings all rows back as they are.
  void remember() {
    const auto all = static_cast<std::size_t>(storage_.rows());
    ensure_capacity(free_, all);
    settle();
    ensure_capacity(left_, all);
    ensure_capacity(kept_places_, all);
    ensure_capacity(kept_free_, all);
    remembers_ = true;
    kept_places_ = places_;
    kept_free_ = free_;
    kept_rows_ = storage_.rows();
  }
  void undo() noexcept {
    places_.swap(kept_places_);
    free_.swap(kept_free_);
    left_.clear();
    storage_.resize(kept_rows_);
  }
  // Nothing will be undone: places that have become free since can be used again.
  void settle() noexcept {
    free_.insert(free_.end(), left_.begin(), left_.end());
    left_.clear();
    remembers_ = false;
  }

 private:
  // Where rows that go leave their place.
  std::vector<Index>& left() { return remembers_ ? left_ : free_; }

  Index place(Index i) const { return places_[static_cast<std::size_t>(i)]; }

  RowBufferOf<Scalar> storage_;
  std::vector<Index> places_;
  std::vector<Index> free_;
  std::vector<Index> old_places_;

  bool remembers_ = false;
  std::vector<Index> left_;  // since then
  std::vector<Index> kept_places_;
  std::vector<Index> kept_free_;
  Index kept_rows_ = 0;
};

using PlacedRows = PlacedRowsOf<double>;

}  // namespace parsimon
