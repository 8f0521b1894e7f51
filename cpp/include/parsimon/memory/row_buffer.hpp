#pragma once

#include <algorithm>
#include <vector>

#include "parsimon/types.hpp"

namespace parsimon {

// How many of the first are to stay where they are.
inline std::size_t unmoved(const std::vector<Index>& order) {
  std::size_t first = 0;
  while (first < order.size() && order[first] == static_cast<Index>(first)) ++first;
  return first;
}

// A row-major matrix whose memory only ever grows: rows come and go, or the shape changes from one
// use to the next, and a loop in steady state does not allocate.
template <class Scalar>
class RowBufferOf {
 public:
  using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Row = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;
  using Map = Eigen::Map<Matrix, Eigen::AlignedMax>;
  using ConstMap = Eigen::Map<const Matrix, Eigen::AlignedMax>;

  explicit RowBufferOf(Index columns = 0) : columns_(columns) {}

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  Scalar* data() { return storage_.data(); }
  const Scalar* data() const { return storage_.data(); }
  Map all() { return {storage_.data(), rows_, columns_}; }
  ConstMap all() const { return {storage_.data(), rows_, columns_}; }
  auto row(Index i) { return Eigen::Map<Row>(storage_.data() + i * columns_, columns_); }
  auto row(Index i) const {
    return Eigen::Map<const Row>(storage_.data() + i * columns_, columns_);
  }

  // Keeps the first rows that fit; new ones are uninitialised.
  Map resize(Index rows) {
    const Index needed = rows * columns_;
    if (needed > storage_.size()) {
      storage_.conservativeResize(std::max(needed, storage_.size() + storage_.size() / 2));
    }
    rows_ = rows;
    return all();
  }

  // What was there is lost if the number of columns changes.
  Map resize(Index rows, Index columns) {
    columns_ = columns;
    return resize(rows);
  }

  // values: one number per column, which may be one of these rows.
  void append(const Scalar* values) {
    const bool own = values >= data() && values < data() + rows_ * columns_;
    const Index offset = own ? values - data() : 0;
    resize(rows_ + 1);
    std::copy_n(own ? data() + offset : values, columns_, data() + (rows_ - 1) * columns_);
  }

  void erase(Index i) {
    Scalar* rest = storage_.data() + (i + 1) * columns_;
    std::copy(rest, storage_.data() + rows_ * columns_, storage_.data() + i * columns_);
    --rows_;
  }

  // The last row takes the place of row i.
  void replace_by_last(Index i) {
    --rows_;
    if (i != rows_) copy_row(data(), rows_, i);
  }

  // The same rows, in memory that is used again and has room for so many more.
  void copy_from(const RowBufferOf& other, Index more = 0) {
    resize(other.rows_ + more, other.columns_);
    resize(other.rows_);
    std::copy_n(other.data(), rows_ * columns_, data());
  }

  // Row i becomes what row order[i] was; rows that are not named go.
  void select(const std::vector<Index>& order) {
    const auto count = static_cast<Index>(order.size());
    const auto source = [&](Index i) { return order[static_cast<std::size_t>(i)]; };
    const auto kept = static_cast<Index>(unmoved(order));
    if (std::is_sorted(order.begin(), order.end())) {
      for (Index i = kept; i < count; ++i) copy_row(data(), source(i), i);
    } else {
      const std::vector<Scalar> old(data(), data() + rows_ * columns_);
      for (Index i = kept; i < count; ++i) copy_row(old.data(), source(i), i);
    }
    rows_ = count;
  }

 private:
  void copy_row(const Scalar* from, Index source, Index target) {
    if (from == data() && source == target) return;
    std::copy_n(from + source * columns_, columns_, data() + target * columns_);
  }

  Eigen::Matrix<Scalar, Eigen::Dynamic, 1> storage_;
  Index columns_;
  Index rows_ = 0;
};

using RowBuffer = RowBufferOf<double>;

// Makes room for at least this many numbers. What was there is lost if it grows.
template <typename Numbers>
void ensure_size(Numbers& numbers, Index size) {
  if (numbers.size() >= size) return;
  // The old ones are given up only once there are new ones.
  Numbers grown(size + size / 2);
  numbers.swap(grown);
}

// Gives a matrix or vector another shape. What was there is lost, but Eigen's resize() would leave
// a matrix that cannot be destroyed if there is no memory for the new numbers.
template <typename Numbers>
void reshape(Numbers& numbers, Index rows, Index columns = 1) {
  if (numbers.rows() == rows && numbers.cols() == columns) return;
  Numbers fresh;
  fresh.resize(rows, columns);
  numbers.swap(fresh);
}

// What ensure_size() does, for a list, ahead of an assignment, which would take just what it needs
// each time.
template <typename T>
void ensure_capacity(std::vector<T>& list, std::size_t size) {
  if (list.capacity() < size) list.reserve(2 * size);
}

// What holds nothing from one use to the next, and so nothing that a copy would need.
template <class Buffer>
class Workspace : public Buffer {
 public:
  Workspace() = default;
  Workspace(const Workspace&) : Buffer() {}
  Workspace(Workspace&&) noexcept = default;
  Workspace& operator=(const Workspace&) { return *this; }
  Workspace& operator=(Workspace&&) noexcept = default;
  ~Workspace() = default;
};

// A few rows at a time of a matrix of any precision, in double precision.
class Widened {
 public:
  ConstRows rows(const ConstRows& all, Index start, Index count) {
    return all.middleRows(start, count);
  }
  ConstRows rows(const ConstSingleRows& all, Index start, Index count) {
    buffer_.resize(count, all.cols());
    for (Index i = 0; i < count; ++i) {
      std::copy_n(all.data() + (start + i) * all.outerStride(), all.cols(),
                  buffer_.data() + i * all.cols());
    }
    return buffer_.all();
  }

 private:
  RowBuffer buffer_;
};

}  // namespace parsimon
