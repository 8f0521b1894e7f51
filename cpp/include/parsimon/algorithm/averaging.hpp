#pragma once

#include "parsimon/types.hpp"

namespace parsimon {

// The share that iterate number t = 1, 2, ... takes in an average in which it counts like
// t^recency (polynomial-decay averaging): about the last 1 / (recency + 1) of the iterates matter,
// whatever the length of the stream.
inline double average_share(Index t, double recency) {
  return (recency + 1) / (static_cast<double>(t) + recency);
}

}  // namespace parsimon
