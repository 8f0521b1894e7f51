#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Regularised least squares on the span of a dictionary, exactly, from samples that come block by
// block: the minimiser of
//
//   1/2 sum_i c_i ||f(x_i) - y_i||^2 + n ridge / 2 ||f||^2,   n the number of samples
//
// In the orthonormal coordinates T k(D, x) of the span this is an ordinary ridge problem. Without
// any ridge, a dictionary larger than the data would leave the weights undetermined: there is
// always a little, whatever the unit of the kernel.
//
// The function must not change between the first block and solve().
class LeastSquares {
 public:
  LeastSquares(const SparseFunction& function, Index outputs)
      : normal_(RowMatrix::Zero(function.basis_size(), function.basis_size())),
        right_(RowMatrix::Zero(function.basis_size(), outputs)) {}

  // counts: one number c_i a sample.
  void add(const SparseFunction& function, const ConstRows& samples, const ConstRows& targets,
           const Eigen::Ref<const Vector>& counts) {
    const Index size = normal_.rows();
    for (Index start = 0; start < samples.rows() && size > 0; start += kEvaluationBlock) {
      const Index count = std::min(kEvaluationBlock, samples.rows() - start);
      function.dictionary().make_views(samples.middleRows(start, count), views_);
      auto block = values_.resize(function.model_order(), count);
      function.dictionary().kernel().block(function.dictionary().views(), views_.data(), block);
      auto features = whitened_.resize(size, count);
      function.factor().whiten(block.topRows(size), features);
      auto weighted = weighted_.resize(size, count);
      for (Index i = 0; i < size; ++i) {
        for (Index k = 0; k < count; ++k) weighted(i, k) = features(i, k) * counts(start + k);
      }
      add_product(weighted, features, true, normal_);
      add_product(weighted, targets.middleRows(start, count), false, right_);
    }
    count_ += static_cast<double>(samples.rows());
  }

  const RowMatrix& normal() const { return normal_; }
  const RowMatrix& right() const { return right_; }
  double count() const { return count_; }

  // One row of weights for each point of the dictionary, zero outside the basis.
  RowMatrix solve(const SparseFunction& function, double ridge) const {
    RowMatrix weights = RowMatrix::Zero(function.model_order(), right_.cols());
    if (normal_.rows() == 0) return weights;
    function.factor().unwhiten(coordinates(ridge), weights.topRows(normal_.rows()));
    return weights;
  }

  // Of the same function, in the orthonormal coordinates.
  RowMatrix coordinates(double ridge) const {
    double trace = 0;
    for (Index i = 0; i < normal_.rows(); ++i) trace += normal_(i, i);
    double damping =
        std::max({ridge * count_, kSmallestRidge * trace, std::numeric_limits<double>::min()});
    RowMatrix normal = normal_, solution = right_;
    const auto damped = [&] {
      normal = normal_;
      for (Index i = 0; i < normal.rows(); ++i) normal(i, i) += damping;
      return linalg::cholesky(normal);
    };
    // Rounding may eat up a ridge that is too small. No ridge mends what is not finite.
    while (!damped()) {
      if (!(damping < trace)) throw DivergenceError("The least-squares fit is not finite.");
      damping *= 10;
    }
    linalg::solve_cholesky(normal, solution);
    return solution;
  }

 private:
  // Relative to the sum of the squared coordinates.
  static constexpr double kSmallestRidge = 1e-12;

  // sum += a b', or a b
  void add_product(const ConstRows& a, const ConstRows& b, bool transposed, Rows sum) {
    auto product = product_.resize(sum.rows(), sum.cols());
    if (transposed) {
      linalg::multiply_by_transpose(a, b, product);
    } else {
      linalg::multiply(a, b, product);
    }
    for (Index i = 0; i < sum.rows(); ++i) {
      for (Index k = 0; k < sum.cols(); ++k) sum(i, k) += product(i, k);
    }
  }

  RowMatrix normal_;
  RowMatrix right_;
  double count_ = 0;

  std::vector<View> views_;
  RowBuffer values_;
  RowBuffer whitened_;
  RowBuffer weighted_;
  RowBuffer product_;
};

}  // namespace parsimon
