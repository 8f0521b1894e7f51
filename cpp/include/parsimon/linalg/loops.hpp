#pragma once

#include "parsimon/linalg/loop_table.hpp"
#include "parsimon/types.hpp"

#ifndef PARSIMON_LOOPS_ELSEWHERE
#include "parsimon/linalg/native_loops.hpp"
#endif

namespace parsimon::linalg {

// A program of many source files need not compile the loops in each: with PARSIMON_LOOPS_ELSEWHERE
// one of them defines this.
#ifdef PARSIMON_LOOPS_ELSEWHERE
extern const Loops* loops_in_use;
#else
inline const Loops* loops_in_use = &kNativeLoops;
#endif

inline const Loops& loops() { return *loops_in_use; }

// To be called before anything is computed: rows that are padded for one table do not fit another.
inline void use_loops(const Loops& table) { loops_in_use = &table; }

// The length of a row of this many numbers when it is padded to whole vectors.
inline Index padded(Index columns) {
  const Index lanes = loops().lanes;
  return (columns + lanes - 1) / lanes * lanes;
}

}  // namespace parsimon::linalg
