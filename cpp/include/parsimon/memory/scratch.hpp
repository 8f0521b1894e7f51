#pragma once

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Room for intermediate results, one for each thread, use and type, that only ever grows. It holds
// nothing from one call to the next.
template <class Use, class Scalar = double>
Scalar* scratch(Index count) {
  thread_local Eigen::Matrix<Scalar, Eigen::Dynamic, 1> storage;
  ensure_size(storage, count);
  return storage.data();
}

}  // namespace parsimon
