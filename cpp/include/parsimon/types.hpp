#pragma once

// Eigen where the compiler looks for it, or in the folder beside that of parsimon, where the wheel
// has it.
#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#else
#include <eigen3/Eigen/Core>
#endif
#include <type_traits>

#include "parsimon/error.hpp"

namespace parsimon {

static_assert(std::is_same_v<Index, Eigen::Index>, "parsimon counts as Eigen does");

using Vector = Eigen::VectorXd;
using RowVector = Eigen::RowVectorXd;

// Everything that holds points, samples, weights or kernel values keeps one of them per row, as
// NumPy does.
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Ref<RowMatrix, 0, Eigen::OuterStride<>>;
using ConstRows = Eigen::Ref<const RowMatrix, 0, Eigen::OuterStride<>>;

// Samples may come in single precision.
using SingleRowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstSingleRows = Eigen::Ref<const SingleRowMatrix, 0, Eigen::OuterStride<>>;

// False for NaN, too.
template <typename Values>
bool is_bounded(const Values& values) {
  for (Index i = 0; i < values.rows(); ++i) {
    for (Index j = 0; j < values.cols(); ++j) {
      const double value = values(i, j);
      if (!(value < kLargestWeight && value > -kLargestWeight)) return false;
    }
  }
  return true;
}

}  // namespace parsimon
