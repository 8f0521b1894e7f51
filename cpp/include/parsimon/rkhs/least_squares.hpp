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
        right_(RowMatrix::Zero(function.basis_size(), outputs)),
        squares_(Vector::Zero(outputs)) {}

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
      Vector outside(count);
      function.dictionary().kernel().diagonal(views_.data(), outside);
      for (Index i = 0; i < size; ++i) {
        for (Index k = 0; k < count; ++k) {
          weighted(i, k) = features(i, k) * counts(start + k);
          outside(k) -= features(i, k) * features(i, k);
        }
      }
      outside_ += outside.cwiseMax(0.0).dot(counts.segment(start, count));
      add_product(weighted, features, true, normal_);
      add_product(weighted, targets.middleRows(start, count), false, right_);
    }
    for (Index i = 0; i < samples.rows(); ++i) {
      if (counts(i) > 0) used_ += 1;
      for (Index c = 0; c < squares_.size(); ++c) {
        squares_(c) += counts(i) * targets(i, c) * targets(i, c);
      }
    }
    count_ += static_cast<double>(samples.rows());
  }

  // All that samples have said so far. What several machines have added up on one dictionary are
  // parts of one sum.
  struct Sums {
    RowMatrix normal;
    RowMatrix right;
    Vector squares;
    double outside;
    double count;
    double used;
  };

  Sums sums() const { return {normal_, right_, squares_, outside_, count_, used_}; }

  void add(const Sums& other) {
    require(other.normal.rows() == normal_.rows() && other.normal.cols() == normal_.cols() &&
                other.right.rows() == right_.rows() && other.right.cols() == right_.cols() &&
                other.squares.size() == squares_.size(),
            "Only sums over the same dictionary and outputs can be added.");
    for (Index i = 0; i < normal_.rows(); ++i) {
      for (Index k = 0; k < normal_.cols(); ++k) normal_(i, k) += other.normal(i, k);
      for (Index c = 0; c < right_.cols(); ++c) right_(i, c) += other.right(i, c);
    }
    for (Index c = 0; c < squares_.size(); ++c) squares_(c) += other.squares(c);
    outside_ += other.outside;
    count_ += other.count;
    used_ += other.used;
  }

  const RowMatrix& normal() const { return normal_; }
  const RowMatrix& right() const { return right_; }
  double count() const { return count_; }

  struct Solution {
    RowMatrix coordinates;  // in the orthonormal basis of the span
    RowMatrix lower;        // L L' = H + damping I
    double damping;
  };

  Solution solve(double ridge) const {
    double trace = 0;
    for (Index i = 0; i < normal_.rows(); ++i) trace += normal_(i, i);
    Solution solution{
        right_, normal_,
        std::max({ridge * count_, kSmallestRidge * trace, std::numeric_limits<double>::min()})};
    const auto damped = [&] {
      solution.lower = normal_;
      for (Index i = 0; i < normal_.rows(); ++i) solution.lower(i, i) += solution.damping;
      return linalg::cholesky(solution.lower);
    };
    // Rounding may eat up a ridge that is too small. No ridge mends what is not finite.
    while (!damped()) {
      if (!(solution.damping < trace)) {
        throw DivergenceError("The least-squares fit is not finite.");
      }
      solution.damping *= 10;
    }
    linalg::solve_cholesky(solution.lower, solution.coordinates);
    return solution;
  }

  // One row of weights for each point of the dictionary, zero outside the basis.
  RowMatrix weights(const SparseFunction& function, const Solution& solution) const {
    RowMatrix weights = RowMatrix::Zero(function.model_order(), right_.cols());
    if (normal_.rows() == 0) return weights;
    function.factor().unwhiten(solution.coordinates, weights.topRows(normal_.rows()));
    return weights;
  }

  // The mean of c_i times the squared norm of what lies outside the span of k(x_i, .).
  double mean_outside() const { return used_ > 0 ? outside_ / used_ : 0; }

  // How far targets are from the solution on average, c_i times squared, for each output: what is
  // left of them, for each sample that fitting has not used up, n - tr(H (H + damping I)^-1).
  Vector differences(const Solution& solution) const {
    GramFactor root;
    root.assign_inverse_of(solution.lower);
    const double damping = solution.damping;
    const double free =
        used_ - static_cast<double>(normal_.rows()) + damping * root.inverse_diagonal().sum();
    Vector left = squares_;
    for (Index i = 0; i < normal_.rows(); ++i) {
      for (Index c = 0; c < left.size(); ++c) {
        const double v = solution.coordinates(i, c);
        left(c) -= v * (right_(i, c) + damping * v);
      }
    }
    return free > 0 ? Vector((left / free).cwiseMax(0.0)) : Vector(Vector::Zero(left.size()));
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
  Vector squares_;  // sum of c_i y_i^2
  double outside_ = 0;
  double count_ = 0;
  double used_ = 0;  // samples that count at all

  std::vector<View> views_;
  RowBuffer values_;
  RowBuffer whitened_;
  RowBuffer weighted_;
  RowBuffer product_;
};

}  // namespace parsimon
