#pragma once

#include "parsimon/types.hpp"

namespace parsimon {

// Room for intermediate results, one for each thread, use and type, that only ever grows. It holds
// nothing from one call to the next.
template <class Use, class Scalar = double>
Scalar* scratch(Index count) {
  thread_local Eigen::Matrix<Scalar, Eigen::Dynamic, 1> storage;
  if (storage.size() < count) storage.resize(count + count / 2);
  return storage.data();
}

}  // namespace parsimon
