#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "parsimon/types.hpp"

namespace parsimon {

// A square row-major matrix, all zeros at first, for what is lower triangular. Systems hand out
// large zeroed memory without writing to it, so what lies above the diagonal takes none as long as
// nobody writes there.
class ZeroedSquare {
 public:
  ZeroedSquare() = default;

  explicit ZeroedSquare(Index size) : size_(size) {
    const auto numbers = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
    memory_.reset(std::calloc(numbers * sizeof(double) + kAlignment, 1));
    if (memory_ == nullptr) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    const auto past = address % kAlignment;
    data_ = reinterpret_cast<double*>(past == 0 ? address : address + (kAlignment - past));
  }

  ZeroedSquare(const ZeroedSquare& other) : ZeroedSquare(other.size_) {
    for (Index i = 0; i < size_; ++i) {
      std::memcpy(data_ + i * size_, other.data_ + i * size_,
                  static_cast<std::size_t>(i + 1) * sizeof(double));
    }
  }
  ZeroedSquare(ZeroedSquare&& other) noexcept { swap(other); }
  ZeroedSquare& operator=(ZeroedSquare other) noexcept {
    swap(other);
    return *this;
  }

  void swap(ZeroedSquare& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  Index size() const { return size_; }
  Eigen::Map<RowMatrix> all() { return {data_, size_, size_}; }
  Eigen::Map<const RowMatrix> all() const { return {data_, size_, size_}; }
  double* row(Index i) { return data_ + i * size_; }
  const double* row(Index i) const { return data_ + i * size_; }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::unique_ptr<void, Free> memory_;
  double* data_ = nullptr;
  Index size_ = 0;
};

}  // namespace parsimon
