#pragma once

#include <algorithm>

#include "parsimon/types.hpp"

namespace parsimon {

// Calls advance(start, count, share) for one mini-batch after the other of `samples` samples, as
// long as keep_going() says so. Returns how many samples were taken.
//
// share = count / batch_size is less than 1 where too few samples are left. Steps and budgets are
// chosen for batch_size samples: a shorter mini-batch takes that share of both, so that a sample
// counts the same in whatever blocks it comes, as long as the step is constant.
template <typename KeepGoing, typename Advance>
Index for_each_mini_batch(Index samples, Index batch_size, KeepGoing&& keep_going,
                          Advance&& advance) {
  require(batch_size > 0, "The batch size must be positive.");
  Index start = 0;
  while (start < samples && keep_going()) {
    const Index count = std::min(batch_size, samples - start);
    advance(start, count, static_cast<double>(count) / static_cast<double>(batch_size));
    start += count;
  }
  return start;
}

}  // namespace parsimon
