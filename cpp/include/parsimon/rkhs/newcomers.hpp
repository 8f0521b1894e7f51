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
// below the tolerance. They cannot join, but can be written as combinations of those that do.
class Newcomers {
 public:
  // Relative to k(x, x), what a point must bring to count as independent.
  static constexpr double kTolerance = 1e-8;
  // The same where the basis is fresh and a point is worth it: less drowns in rounding.
  static constexpr double kFinest = 1e-13;
  // The same for a point that stays outside: what it must add to what the basis, N and the others
  // outside explain. The factor of a basis in use knows no less.
  static constexpr double kFinestOutside = 1e-12;
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

  // A point that comes from elsewhere than the block, and is independent.
  struct Newcomer {
    Vector coefficients;  // K^-1 K(basis, x)
    Vector schur;         // K(N, x) - A' K(basis, x)
    Vector within;        // S^-1 times that
    double corner;        // k(x, x) - K(x, basis) K^-1 K(basis, x)
    double left;          // what remains of it beside the other newcomers
    Vector lost;  // its inner products with the directions of points that have left the basis
  };

  // It is the last of them, after all those of the block.
  void append(const Newcomer& x) {
    const Index before = schur_.rows(), width = coefficients_.columns();
    coefficients_.resize(before + 1);
    double* row = coefficients_.row(before).data();
    std::fill(std::copy_n(x.coefficients.data(), basis_size_, row), row + width, 0.0);
    const RowMatrix schur = schur_.all(), lost = lost_.all();
    auto kept = schur_.resize(before + 1, before + 1);
    std::fill_n(kept.data(), kept.size(), 0.0);
    kept.topLeftCorner(before, before) = schur;
    for (Index k = 0; k < size(); ++k) {
      const Index i = present_[static_cast<std::size_t>(k)];
      kept(i, before) = kept(before, i) = x.schur(k);
    }
    kept(before, before) = x.corner;
    auto all_lost = lost_.resize(lost.rows(), before + 1);
    all_lost.leftCols(before) = lost;
    all_lost.col(before) = x.lost;
    RowMatrix pivot(1, 1), coefficients(1, size());
    pivot(0, 0) = std::sqrt(x.left);
    coefficients.row(0) = x.within.transpose();
    GramFactor own;
    own.assign_inverse_of(pivot);
    factor_.append(coefficients, own);
    present_.push_back(before);
    rows_.clear();
    for (const Index i : present_) rows_.push_back(coefficients_.row(i).data());
  }

  // Newcomer k goes. pivot_row: as GramFactor::remove() has it.
  void remove(Index k, Eigen::Ref<Vector> pivot_row) {
    factor_.remove(k, pivot_row);
    present_.erase(present_.begin() + k);
    rows_.erase(rows_.begin() + k);
  }

  // values <- S^-1 values, one number per newcomer.
  void solve(Eigen::Ref<Vector> values) const {
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

  // Chooses dependent points to fold into the basis and the independent newcomers, the cheapest
  // first, as long as the squared error stays within the budget. block_weights has one row per
  // point. Returns the squared error.
  double choose_folded(const ConstRows& block_weights, Index scored, double squared_budget) {
    folded_.clear();
    unfolded_.clear();
    explained_by_outside_ = false;
    if (block_weights.rows() == independent()) return 0;
    const auto remainder = split_.remainder();
    const Index dependent = remainder.rows();
    order_by_cost(block_weights, scored);

    auto moved = explained_.resize(dependent, scored);  // R W_F
    std::fill_n(moved.data(), moved.size(), 0.0);
    double squared_error = 0;
    for (const Index z : cheapest_first_) {
      const double* weights = row_of(block_weights, z);
      double product = 0;
      for (Index c = 0; c < scored; ++c) product += weights[c] * moved(z, c);
      // Rounding may leave a remainder slightly below zero; a cost never is.
      const double after = squared_error + std::max(0.0, costs_(z)) + 2 * product;
      if (!(after <= squared_budget && after < kUnaffordable)) {
        unfolded_.push_back(z);
        continue;
      }
      squared_error = std::max(0.0, after);
      for (Index i = 0; i < dependent; ++i) {
        for (Index c = 0; c < scored; ++c) moved(i, c) += remainder(z, i) * weights[c];
      }
      folded_.push_back(z);
    }
    return squared_error;
  }

  // What can be told from rounding of an error that moves these weights of dependent points:
  // sqrt(kFinestOutside) sum_z ||w_z|| sqrt(k(z, z)).
  double rounding(const ConstRows& block_weights, Index scored) const {
    double sum = 0;
    for (Index z = 0; independent() + z < block_weights.rows(); ++z) {
      sum += size_of(block_weights, z, scored) * std::sqrt(self_kernel_of(z));
    }
    return std::sqrt(kFinestOutside) * sum;
  }

  // Chooses again, where the first choice left points outside: as few of them stay as explain the
  // others, together with the basis and the independent newcomers, up to the budget or to rounding.
  // So there are never more of them than kFinestOutside can tell apart. Returns the squared error,
  // at most that of the budget or of rounding, whichever is larger.
  double choose_outside(const ConstRows& block_weights, Index scored, double budget) {
    const auto remainder = split_.remainder();
    const Index dependent = remainder.rows();
    PivotedRoot::Stakes stakes;
    std::vector<double> self_kernel;
    for (Index z = 0; z < dependent; ++z) {
      stakes.weights.push_back(size_of(block_weights, z, scored));
      self_kernel.push_back(self_kernel_of(z));
    }
    stakes.affordable = std::max(budget, rounding(block_weights, scored));
    stakes.finest = kFinestOutside;
    outside_.run(remainder, self_kernel.data(), kUnaffordable, stakes);
    const auto all = outside_.order().begin();
    unfolded_.assign(all, all + outside_.rank());
    folded_.assign(all + outside_.rank(), outside_.order().end());
    explained_by_outside_ = true;
    return squared_error_of_outside(block_weights, scored);
  }

  // Moves the weights of what was chosen to the basis and to the points that stay, one row each.
  void move_folded(Rows basis_weights, Rows block_weights) {
    if (folded_.empty()) return;
    // All at once, one row of `moved` for each point of the block.
    auto moved = moved_.resize(block_weights.rows(), block_weights.cols());
    std::fill_n(moved.data(), moved.size(), 0.0);
    for (const Index z : folded_) {
      std::copy_n(row_of(block_weights, z), moved.cols(), moved_.row(place(z)).data());
    }
    if (explained_by_outside_) move_outside(block_weights);
    if (basis_weights.rows() > 0) {
      auto onto_basis = product_.resize(basis_weights.rows(), moved.cols());
      linalg::multiply(all_coefficients_.all(), moved, onto_basis);
      add(1, onto_basis, basis_weights);
    }
    if (independent() > 0) move_within(basis_weights, block_weights);
  }

  // Takes a dependent point that was left out, because its weight has been moved elsewhere.
  void give_up(Index z) {
    unfolded_.erase(std::find(unfolded_.begin(), unfolded_.end(), z));
    folded_.push_back(z);
  }

  // Which dependent points were chosen and left, counted from the first dependent one.
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
  void order_by_cost(const ConstRows& block_weights, Index scored) {
    const auto remainder = split_.remainder();
    const Index dependent = remainder.rows();
    ensure_size(costs_, dependent);
    for (Index z = 0; z < dependent; ++z) {
      const double* weights = row_of(block_weights, z);
      double square = 0;
      for (Index c = 0; c < scored; ++c) square += weights[c] * weights[c];
      costs_(z) = square * remainder(z, z);
      // NaN has no place in an order.
      if (!(costs_(z) < kUnaffordable)) costs_(z) = kUnaffordable;
    }
    cheapest_first_.resize(static_cast<std::size_t>(dependent));
    std::iota(cheapest_first_.begin(), cheapest_first_.end(), Index{0});
    std::sort(cheapest_first_.begin(), cheapest_first_.end(), [&](Index a, Index b) {
      return costs_(a) < costs_(b) || (costs_(a) == costs_(b) && a < b);
    });
  }

  // -- the z-th dependent point

  Index place(Index z) const { return order(independent() + z); }
  double self_kernel_of(Index z) const { return self_kernel_(place(z)); }
  const double* row_of(const ConstRows& block_weights, Index z) const {
    return &block_weights.coeffRef(place(z), 0);
  }
  double size_of(const ConstRows& block_weights, Index z, Index scored) const {
    const double* weights = row_of(block_weights, z);
    double square = 0;
    for (Index c = 0; c < scored; ++c) square += weights[c] * weights[c];
    return std::sqrt(square);
  }

  // W_F' R W_F with R what is left of the folded ones beside those outside. Where that is nothing
  // but rounding, it may be larger than residuals all in one direction would allow.
  double squared_error_of_outside(const ConstRows& block_weights, Index scored) const {
    const auto remainder = outside_.remainder();
    double square = 0, largest = 0;
    for (Index i = 0; i < remainder.rows(); ++i) {
      const Index z = folded_[static_cast<std::size_t>(i)];
      largest += size_of(block_weights, z, scored) * std::sqrt(std::max(0.0, remainder(i, i)));
      for (Index k = 0; k < remainder.rows(); ++k) {
        const double* a = row_of(block_weights, z);
        const double* b = row_of(block_weights, folded_[static_cast<std::size_t>(k)]);
        double product = 0;
        for (Index c = 0; c < scored; ++c) product += a[c] * b[c];
        square += remainder(i, k) * product;
      }
    }
    return std::min(std::max(0.0, square), largest * largest);
  }

  // What folded points owe to those outside: these gain it, and owe it to the basis themselves.
  void move_outside(Rows block_weights) {
    outside_.dependent_coefficients(within_);
    for (Index i = 0; i < within_.rows(); ++i) {
      double* own = &block_weights(place(unfolded_[static_cast<std::size_t>(i)]), 0);
      double* moved = moved_.row(place(unfolded_[static_cast<std::size_t>(i)])).data();
      for (Index k = 0; k < within_.columns(); ++k) {
        const double* folded = moved_.row(place(folded_[static_cast<std::size_t>(k)])).data();
        for (Index c = 0; c < block_weights.cols(); ++c) {
          moved[c] -= within_.row(i)(k) * folded[c];
        }
      }
      for (Index c = 0; c < block_weights.cols(); ++c) own[c] -= moved[c];
    }
  }

  PivotedRoot split_;
  PivotedRoot outside_;  // of what the split left
  bool explained_by_outside_ = false;
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
