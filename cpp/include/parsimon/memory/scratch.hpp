#pragma once

#include "parsimon/types.hpp"

namespace parsimon {

// Room for intermediate results, one for each thread, use and type, that only ever grows. It holds
// nothing from one call to the next.
template <class Use, class Scalar = double>
Scalar* scratch(Index count) {
  using Storage = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;
  thread_local Storage storage;
  if (storage.size() < count) {
    // The old one is given up only once there is a new one.
    Storage grown(count + count / 2);
    storage.swap(grown);
  }
  return storage.data();
}

}  // namespace parsimon
