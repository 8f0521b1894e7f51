#pragma once

#include <Eigen/Core>
#include <limits>
#include <stdexcept>
#include <string>

namespace parsimon {

using Index = Eigen::Index;
using Vector = Eigen::VectorXd;
using RowVector = Eigen::RowVectorXd;

// Everything that holds points, samples, weights or kernel values keeps one of them a row, as NumPy
// does.
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Ref<RowMatrix, 0, Eigen::OuterStride<>>;
using ConstRows = Eigen::Ref<const RowMatrix, 0, Eigen::OuterStride<>>;

// Samples may come in single precision.
using SingleRowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstSingleRows = Eigen::Ref<const SingleRowMatrix, 0, Eigen::OuterStride<>>;

// The caller gave something that cannot be used; the callee has changed nothing.
class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// The computation left the range of finite numbers; the model is as it was before the step.
class DivergenceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Weights beyond this square to infinity somewhere; no sensible model comes near it.
inline constexpr double kLargestWeight = 1e100;

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

// Texts that are literals are made into strings only if they are needed.
inline void require(bool condition, const char* message) {
  if (!condition) throw Error(message);
}

inline void require(bool condition, const std::string& message) {
  if (!condition) throw Error(message);
}

inline bool all_finite(const double* numbers, Index count) {
  constexpr double largest = std::numeric_limits<double>::max();
  bool finite = true;
  for (Index i = 0; i < count; ++i) finite &= numbers[i] <= largest && numbers[i] >= -largest;
  return finite;
}

}  // namespace parsimon
