#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "parsimon/linalg/basis_columns.hpp"
#include "parsimon/linalg/triangular.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/pivoted_root.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Points that are about to join a basis. As long as they have not joined, removing one of them
// touches nothing of the size of the basis squared, and most leave again at once.
//
// Invariant, with K of the basis and N the newcomers that are numerically independent of it and of
// each other, as long as they have not been removed:
//   coefficients()[k] is row k of A' with A = K^-1 K(basis, N),
//   schur(i, k) == S(i, k) with S = K(N, N) - A' K(basis, N),   factor() is the GramFactor of S.
// The other points Z of the block are dependent: what the basis and N do not explain of them is
// below the tolerance. They cannot join; fold() writes them as combinations of those that do.
class Newcomers {
 public:
  // Relative to k(x, x), what a point must bring to count as independent.
  static constexpr double kTolerance = 1e-8;
  // The same where the basis is fresh and a point is worth it: less drowns in rounding.
  static constexpr double kFinest = 1e-13;
  // A squared error that no budget pays.
  static constexpr double kUnaffordable = std::numeric_limits<double>::infinity();

  // cross = K(basis, block); gram = K(block, block), which is overwritten. resolution: the
  // kernel's.
  void factorise(const GramFactor& basis, const ConstRows& cross, Rows gram,
                 const PivotedRoot::Stakes& stakes = {}, double resolution = 0) {
    const Index size = gram.rows();
    basis_size_ = basis.size();
    ensure_size(self_kernel_, size);
    for (Index i = 0; i < size; ++i) self_kernel_(i) = gram(i, i);
    auto all = all_coefficients_.resize(basis_size_, size);
    if (basis_size_ > 0 && size > 0) {
      auto whitened = product_.resize(basis_size_, size);
      basis.solve(cross, whitened, all);
      auto explained = explained_.resize(size, size);
      linalg::multiply_transpose_by(whitened, whitened, explained);
      for (Index i = 0; i < size; ++i) {
        for (Index k = 0; k < size; ++k) gram(i, k) -= explained(i, k);
      }
    }
    split_.run(gram, self_kernel_.data(), std::max(kTolerance, resolution), stakes);
    gather(gram);
  }

  // Position in the block of the i-th point, the independent ones first, as factorise() found them.
  Index independent() const { return split_.rank(); }
  Index order(Index i) const { return split_.order(i); }

  // -- those that have not been removed
  // ------------------------------------------------------------

  Index size() const { return factor_.size(); }
  // Which of the independent() ones they are.
  const std::vector<Index>& present() const { return present_; }
  // Padded with zeros to whole vectors.
  const std::vector<double*>& coefficients() const { return rows_; }
  // All rows at once, as long as none has been removed.
  ConstRows coefficient_matrix() const { return coefficients_.all(); }
  double schur(Index i, Index k) const {
    return schur_.row(present_[static_cast<std::size_t>(i)])(present_[static_cast<std::size_t>(k)]);
  }
  const GramFactor& factor() const { return factor_; }

  // What the newcomers have in common with the points that have left the basis and with none of the
  // rest: column s for the s-th of them, coordinates along the direction that only it spanned in
  // the basis, row i along an orthonormal basis of what the newcomers add.
  RowMatrix shares_of_lost() const {
    const Index lost = lost_.rows();
    RowMatrix shares = RowMatrix::Zero(size(), lost);
    const auto root = factor_.root();
    for (Index i = 0; i < size(); ++i) {
      for (Index k = 0; k <= i; ++k) {
        const Index newcomer = present_[static_cast<std::size_t>(k)];
        for (Index s = 0; s < lost; ++s) shares(i, s) += root(i, k) * lost_.row(s)(newcomer);
      }
    }
    return shares;
  }

  // Newcomer k goes. pivot_row: as GramFactor::remove() has it.
  void remove(Index k, Eigen::Ref<Vector> pivot_row) {
    factor_.remove(k, pivot_row);
    present_.erase(present_.begin() + k);
    rows_.erase(rows_.begin() + k);
  }

  // values <- S^-1 values, one number per newcomer.
  void solve(Eigen::Ref<Vector> values) {
    const auto root = factor_.root();
    for (Index i = size() - 1; i >= 0; --i) {
      double sum = 0;
      for (Index k = 0; k <= i; ++k) sum += root(i, k) * values(k);
      values(i) = sum;
    }
    for (Index k = 0; k < size(); ++k) {
      double sum = 0;
      for (Index i = k; i < size(); ++i) sum += root(i, k) * values(i);
      values(k) = sum;
    }
  }

  // Point j has left the basis, whose factor handed out the pivot row: it no longer explains any
  // part of the newcomers. of_removed: column j of the coefficients.
  void lose_basis_point(Index j, const Eigen::Ref<const Vector>& pivot_row,
                        const Eigen::Ref<const Vector>& of_removed) {
    const double root = pivot_row(j);
    ensure_size(costs_, size());
    lost_.resize(lost_.rows() + 1);
    auto lost = lost_.row(lost_.rows() - 1);
    std::fill_n(lost.data(), lost.size(), 0.0);
    for (Index k = 0; k < size(); ++k) {
      costs_(k) = of_removed(k) / root;
      lost(present_[static_cast<std::size_t>(k)]) = costs_(k);
    }
    linalg::subtract_multiples(rows_, costs_.data(), pivot_row.data(), basis_size_);
    linalg::erase_column(rows_, j, basis_size_);
    --basis_size_;
    for (Index i = 0; i < size(); ++i) {
      for (Index k = 0; k < size(); ++k) {
        schur_.row(present_[static_cast<std::size_t>(i)])(present_[static_cast<std::size_t>(k)]) +=
            costs_(i) * costs_(k);
      }
    }
    if (size() > 0) refactor();
  }

  // A' of those that have not been removed, one row each.
  ConstRows coefficient_rows() {
    auto rows = product_.resize(size(), basis_size_);
    for (Index k = 0; k < size(); ++k) {
      std::copy_n(rows_[static_cast<std::size_t>(k)], basis_size_, rows.data() + k * basis_size_);
    }
    return rows;
  }

  // -- those that cannot join
  // ----------------------------------------------------------------------

  // Folds dependent points into the basis and the independent newcomers, the cheapest first, as
  // long as the squared error stays within the budget. basis_weights and block_weights have one row
  // per point; those of folded points are moved. Returns the squared error.
  double fold(Rows basis_weights, Rows block_weights, Index scored, double squared_budget) {
    folded_.clear();
    unfolded_.clear();
    if (block_weights.rows() == independent()) return 0;
    const double squared_error = choose_folded(block_weights, scored, squared_budget);

    // All at once, one row of `moved` for each point of the block: those that stay move nothing.
    auto moved = moved_.resize(block_weights.rows(), block_weights.cols());
    std::fill_n(moved.data(), moved.size(), 0.0);
    for (const Index z : folded_) {
      const Index point = order(independent() + z);
      for (Index c = 0; c < moved.cols(); ++c) moved(point, c) = block_weights(point, c);
    }
    if (basis_weights.rows() > 0) {
      auto onto_basis = product_.resize(basis_weights.rows(), moved.cols());
      linalg::multiply(all_coefficients_.all(), moved, onto_basis);
      add(1, onto_basis, basis_weights);
    }
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
  static void add(double factor, const ConstRows& values, Rows sum) {
    for (Index i = 0; i < sum.rows(); ++i) {
      for (Index c = 0; c < sum.cols(); ++c) sum(i, c) += factor * values(i, c);
    }
  }

  // What dependent points owe to the independent newcomers rather than to the basis.
  void move_within(Rows basis_weights, Rows block_weights) {
    const Index columns = block_weights.cols();
    split_.dependent_coefficients(within_);
    auto of_dependents = of_dependents_.resize(within_.columns(), columns);
    for (Index z = 0; z < of_dependents.rows(); ++z) {
      std::copy_n(moved_.row(order(independent() + z)).data(), columns,
                  of_dependents_.row(z).data());
    }
    auto onto_newcomers = onto_newcomers_.resize(independent(), columns);
    linalg::multiply(within_.all(), of_dependents, onto_newcomers);
    if (basis_weights.rows() > 0) {
      auto onto_basis = product_.resize(basis_weights.rows(), columns);
      linalg::multiply_transpose_by(coefficients_.all().leftCols(basis_weights.rows()),
                                    onto_newcomers, onto_basis);
      add(-1, onto_basis, basis_weights);
    }
    for (Index i = 0; i < independent(); ++i) {
      for (Index c = 0; c < columns; ++c) block_weights(order(i), c) += onto_newcomers(i, c);
    }
  }

  void gather(const ConstRows& schur) {
    const Index count = independent(), width = linalg::padded(basis_size_);
    auto selected = product_.resize(basis_size_, count);
    linalg::select_columns(all_coefficients_.all(), split_.order(), count, selected);
    coefficients_.resize(count, width);
    linalg::transpose_padded(selected, coefficients_.data(), width);
    auto kept = schur_.resize(count, count);
    for (Index i = 0; i < count; ++i) {
      for (Index k = 0; k < count; ++k) kept(i, k) = schur(order(i), order(k));
    }
    factor_.assign_inverse_of(split_.root_factor());
    lost_.resize(0, count);
    present_.resize(static_cast<std::size_t>(count));
    std::iota(present_.begin(), present_.end(), Index{0});
    rows_.clear();
    for (Index k = 0; k < count; ++k) rows_.push_back(coefficients_.data() + k * width);
  }

  void refactor() {
    auto lower = lower_.resize(size(), size());
    for (Index i = 0; i < size(); ++i) {
      for (Index k = 0; k <= i; ++k) lower(i, k) = schur(i, k);
    }
    // S has only grown: it is positive definite if it was before, but for rounding, in which case
    // the factor before is as near to it as rounding lets us come.
    if (linalg::cholesky(lower)) factor_.assign_inverse_of(lower);
  }

  // Folding the set F moves the function by sum_F w_z r_z, whose squared norm is W_F' R W_F with
  // R the remainder of the split: the residuals r_z are not orthogonal to each other.
  double choose_folded(const ConstRows& block_weights, Index scored, double squared_budget) {
    const auto remainder = split_.remainder();
    const Index dependent = remainder.rows();
    ensure_size(costs_, dependent);
    const auto weight = [&](Index z, Index c) {
      return block_weights(order(independent() + z), c);
    };
    for (Index z = 0; z < dependent; ++z) {
      double square = 0;
      for (Index c = 0; c < scored; ++c) square += weight(z, c) * weight(z, c);
      costs_(z) = square * remainder(z, z);
      // NaN has no place in an order.
      if (!(costs_(z) < kUnaffordable)) costs_(z) = kUnaffordable;
    }
    cheapest_first_.resize(static_cast<std::size_t>(dependent));
    std::iota(cheapest_first_.begin(), cheapest_first_.end(), Index{0});
    std::sort(cheapest_first_.begin(), cheapest_first_.end(), [&](Index a, Index b) {
      return costs_(a) < costs_(b) || (costs_(a) == costs_(b) && a < b);
    });

    auto moved = explained_.resize(dependent, scored);  // R W_F
    std::fill_n(moved.data(), moved.size(), 0.0);
    double squared_error = 0;
    for (const Index z : cheapest_first_) {
      double product = 0;
      for (Index c = 0; c < scored; ++c) product += weight(z, c) * moved(z, c);
      // Rounding may leave a remainder slightly below zero; a cost never is.
      const double after = squared_error + std::max(0.0, costs_(z)) + 2 * product;
      if (!(after <= squared_budget && after < kUnaffordable)) {
        unfolded_.push_back(z);
        continue;
      }
      squared_error = std::max(0.0, after);
      for (Index i = 0; i < dependent; ++i) {
        for (Index c = 0; c < scored; ++c) moved(i, c) += remainder(z, i) * weight(z, c);
      }
      folded_.push_back(z);
    }
    return squared_error;
  }

  PivotedRoot split_;
  Index basis_size_ = 0;
  RowBuffer coefficients_;  // one row per independent newcomer, whether it has gone or not
  RowBuffer schur_;         // likewise
  GramFactor factor_;
  RowBuffer
      lost_;  // one row per point that has left the basis, one column per independent newcomer
  std::vector<Index> present_;
  std::vector<double*> rows_;  // of coefficients_, those that are present
  std::vector<Index> folded_;
  std::vector<Index> unfolded_;

  Vector self_kernel_;
  Vector costs_;
  std::vector<Index> cheapest_first_;
  RowBuffer all_coefficients_;
  RowBuffer explained_;
  RowBuffer lower_;
  RowBuffer moved_;
  RowBuffer of_dependents_;
  RowBuffer onto_newcomers_;
  RowBuffer product_;
  RowBuffer within_;
};

}  // namespace parsimon
