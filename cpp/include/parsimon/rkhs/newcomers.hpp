#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/pivoted_root.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Points that are about to join a basis. As long as they have not joined, removing one of them
// touches nothing of the size of the basis squared, and most leave again at once.
//
// Invariant, with K of the basis and N the newcomers that are numerically independent of it and of
// each other:
//   coefficients() == K^-1 K(basis, N),   schur() == K(N, N) - coefficients()' K(basis, N),
//   factor() is the GramFactor of schur().
// The other points Z of the block are dependent: what the basis and N do not explain of them is
// below the tolerance. They cannot join; fold() writes them as combinations of those that do.
class Newcomers {
 public:
  // Relative to k(x, x), what a point must bring to count as independent.
  static constexpr double kTolerance = 1e-8;
  // The same where the basis is fresh and a point is worth it: less drowns in rounding.
  static constexpr double kFinest = 1e-13;

  // cross = K(basis, block); gram = K(block, block), which is overwritten. resolution: the
  // kernel's.
  void factorise(const GramFactor& basis, const ConstRows& cross, Rows gram,
                 const PivotedRoot::Stakes& stakes = {}, double resolution = 0) {
    const Index size = gram.rows();
    ensure_size(self_kernel_, size);
    self_kernel_.head(size) = gram.diagonal();
    auto all = all_coefficients_.resize(basis.size(), size);
    if (basis.size() > 0 && size > 0) {
      auto whitened = product_.resize(basis.size(), size);
      basis.solve(cross, whitened, all);
      auto explained = explained_.resize(size, size);
      linalg::multiply_transpose_by(whitened, whitened, explained);
      gram -= explained;
    }
    split_.run(gram, self_kernel_.head(size), std::max(kTolerance, resolution), stakes);
    gather(gram);
  }

  Index independent() const { return split_.rank(); }
  // Position in the block of the i-th point, the independent ones first.
  Index order(Index i) const { return split_.order(i); }

  RowBuffer& coefficients() { return coefficients_; }
  RowBuffer& schur() { return schur_; }
  GramFactor& factor() { return factor_; }

  // Folds dependent points into the basis and the independent newcomers, the cheapest first, as
  // long as the squared error stays within the budget. basis_weights and block_weights have a row
  // a point; those of folded points are moved. Returns the squared error.
  double fold(Rows basis_weights, Rows block_weights, Index scored, double squared_budget) {
    folded_.clear();
    unfolded_.clear();
    const auto dependent = static_cast<Index>(block_weights.rows()) - independent();
    if (dependent == 0) return 0;
    const double squared_error = choose_folded(block_weights, scored, squared_budget);

    // All at once, a row of `moved` for each point of the block: those that stay move nothing.
    auto moved = moved_.resize(block_weights.rows(), block_weights.cols());
    moved.setZero();
    for (const Index z : folded_) {
      const Index point = order(independent() + z);
      moved.row(point) = block_weights.row(point);
    }
    if (basis_weights.rows() > 0) add_product(all_coefficients_, moved, 1, basis_weights);
    if (independent() > 0) move_within(basis_weights, block_weights);
    return squared_error;
  }

  // Takes a dependent point that fold() left out, because its weight has been moved elsewhere.
  void give_up(Index z) {
    unfolded_.erase(std::find(unfolded_.begin(), unfolded_.end(), z));
    folded_.push_back(z);
  }

  // Which dependent points fold() took and left, counted from the first dependent one.
  const std::vector<Index>& folded() const { return folded_; }
  const std::vector<Index>& unfolded() const { return unfolded_; }

 private:
  // What dependent points owe to the independent newcomers rather than to the basis.
  void move_within(Rows basis_weights, Rows block_weights) {
    split_.dependent_coefficients(within_);
    auto of_dependents = of_dependents_.resize(within_.columns(), block_weights.cols());
    for (Index z = 0; z < of_dependents.rows(); ++z) {
      of_dependents.row(z) = moved_.row(order(independent() + z));
    }
    auto onto_newcomers = onto_newcomers_.resize(independent(), block_weights.cols());
    linalg::multiply(within_.all(), of_dependents, onto_newcomers);
    add_product(coefficients_, onto_newcomers, -1, basis_weights);
    for (Index i = 0; i < independent(); ++i) block_weights.row(order(i)) += onto_newcomers.row(i);
  }

  void add_product(const RowBuffer& a, const ConstRows& b, double factor, Rows sum) {
    auto product = product_.resize(sum.rows(), sum.cols());
    linalg::multiply(a.all(), b, product);
    sum += factor * product;
  }

  void gather(const ConstRows& schur) {
    const Index count = independent();
    const auto all = all_coefficients_.all();
    auto coefficients = coefficients_.resize(all.rows(), count);
    auto kept = schur_.resize(count, count);
    linalg::select_columns(all, split_.order(), count, coefficients);
    for (Index i = 0; i < count; ++i) {
      for (Index k = 0; k < count; ++k) kept(i, k) = schur(order(i), order(k));
    }
    factor_.assign_inverse_of(split_.root_factor());
  }

  // Folding the set F moves the function by sum_F w_z r_z, whose squared norm is W_F' R W_F with
  // R the remainder of the split: the residuals r_z are not orthogonal to each other.
  double choose_folded(const ConstRows& block_weights, Index scored, double squared_budget) {
    const auto remainder = split_.remainder();
    const Index dependent = remainder.rows();
    auto weights = dependent_weights_.resize(dependent, scored);
    for (Index z = 0; z < dependent; ++z) {
      weights.row(z) = block_weights.row(order(independent() + z)).head(scored);
    }
    cheapest_first_.resize(static_cast<std::size_t>(dependent));
    std::iota(cheapest_first_.begin(), cheapest_first_.end(), Index{0});
    ensure_size(costs_, dependent);
    auto alone = costs_.head(dependent);
    alone = weights.rowwise().squaredNorm().cwiseProduct(remainder.diagonal());
    std::sort(cheapest_first_.begin(), cheapest_first_.end(), [&](Index a, Index b) {
      return alone(a) < alone(b) || (alone(a) == alone(b) && a < b);
    });

    auto moved = explained_.resize(dependent, scored);  // R W_F
    moved.setZero();
    double squared_error = 0;
    for (const Index z : cheapest_first_) {
      // Rounding may leave a remainder slightly below zero; a cost never is.
      const double after = std::max(
          0.0, squared_error + std::max(0.0, alone(z)) + 2 * weights.row(z).dot(moved.row(z)));
      if (!(after <= squared_budget)) {
        unfolded_.push_back(z);
        continue;
      }
      squared_error = after;
      moved.noalias() += remainder.row(z).transpose() * weights.row(z);
      folded_.push_back(z);
    }
    return squared_error;
  }

  PivotedRoot split_;
  Vector self_kernel_;
  RowBuffer all_coefficients_;
  RowBuffer explained_;
  RowBuffer within_;
  RowBuffer of_dependents_;
  RowBuffer onto_newcomers_;
  RowBuffer dependent_weights_;
  RowBuffer product_;
  Vector costs_;
  std::vector<Index> cheapest_first_;
  RowBuffer moved_;
  RowBuffer coefficients_;
  RowBuffer schur_;
  GramFactor factor_;
  std::vector<Index> folded_;
  std::vector<Index> unfolded_;
};

}  // namespace parsimon
