#pragma once

#include <algorithm>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/memory/zeroed_square.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The rows of a lower triangular matrix that are about to change, as they were: those from some row
// on, copied when it is known which.
class KeptTriangle {
 public:
  // The matrix has so many rows, and none has changed.
  void start(Index size) {
    size_ = from_ = size;
    numbers_.clear();
    edges_.clear();
  }

  // Rows from this one on are about to change. Nothing is kept if this throws.
  void keep(const ZeroedSquare& matrix, Index from) {
    if (from >= from_) return;
    const Index count = (from_ * (from_ + 1) - from * (from + 1)) / 2;
    const std::size_t needed = numbers_.size() + static_cast<std::size_t>(count);
    if (numbers_.capacity() < needed) grow(needed, matrix.size());
    ensure_capacity(edges_, edges_.size() + 1);
    for (Index i = from; i < from_; ++i) {
      numbers_.insert(numbers_.end(), matrix.row(i), matrix.row(i) + i + 1);
    }
    edges_.push_back(from);
    from_ = from;
  }

  void bring_back(ZeroedSquare& matrix) const noexcept {
    const double* next = numbers_.data();
    Index end = size_;
    for (const Index from : edges_) {
      for (Index i = from; i < end; next += ++i) std::copy_n(next, i + 1, matrix.row(i));
      end = from;
    }
  }

  // Gives up its memory while there is nothing in it: somebody else is about to need much.
  void release() noexcept {
    if (edges_.empty()) std::vector<double>().swap(numbers_);
  }

  Index size() const { return size_; }

 private:
  // By half at least, so that a loop in steady state does not allocate, and to no more than there
  // is of the matrix.
  void grow(std::size_t needed, Index rows) {
    const auto all = static_cast<std::size_t>(rows * (rows + 1) / 2);
    const std::size_t before = numbers_.capacity();
    release();
    numbers_.reserve(std::max(needed, std::min(before + before / 2, all)));
  }

  Index size_ = 0;
  Index from_ = 0;
  std::vector<double> numbers_;  // the latest rows last
  std::vector<Index> edges_;     // the first row of each part, from the bottom up
};

}  // namespace parsimon
