#pragma once

#include "parsimon/linalg/loops.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// out = rows * x, on this thread.
template <typename Matrix, typename Input, typename Output>
void rows_times_vector(const Matrix& rows, const Input& x, Output&& out) {
  linalg::loops().multiply_vector(rows.cols(), {rows.data(), rows.outerStride()}, 0, rows.rows(),
                                  x.data(), out.data());
}

}  // namespace parsimon
