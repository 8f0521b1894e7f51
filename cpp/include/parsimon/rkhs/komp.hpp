#pragma once

#include <Eigen/Cholesky>
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/newcomers.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// What a compression did: the ids of the points it removed, in order, and the exact distance in
// Hilbert norm between the function before and after. |f(x) - g(x)| <= error * sqrt(k(x, x)).
struct CompressionReport {
  std::vector<Index> removed;
  double error = 0;
  Index model_order = 0;
};

// Destructive kernel orthogonal matching pursuit with pre-fitting (Algorithm 1, POLK): removes the
// point whose removal, with all other weights re-fitted, leaves the function nearest to the given
// one, as long as the distance stays within the budget, or there are more points than allowed.
//
// In terms of the inverse Gram matrix P of all points, removing j costs ||w_j||^2 / P(j, j) more
// squared error, and the re-fitted weights are W - P(:, j) w_j / P(j, j). With A and S of the
// newcomers, P = [P_basis + A S^-1 A', -A S^-1; ., S^-1]; it is never formed.
//
// Only the first `scored` columns of the weights decide; the others are projected along.
class Komp {
 public:
  // weights: a row for each point of the basis, then for each newcomer; the survivors' on return.
  // Removed points leave the basis and the newcomers. Returns the squared error spent in all.
  double run(GramFactor& basis, Newcomers& newcomers, RowBuffer& weights,
             const std::vector<bool>& is_protected, Index scored, double squared_budget,
             double squared_error, Index most_points = std::numeric_limits<Index>::max()) {
    basis_ = &basis;
    newcomers_ = &newcomers;
    weights_ = &weights;
    start(is_protected);
    while (true) {
      const auto [candidate, cost] = cheapest(scored);
      if (candidate < 0) break;
      const bool too_many = weights.rows() > most_points;
      if (!too_many && !(squared_error + cost <= squared_budget)) break;
      squared_error += cost;
      removed_.push_back(positions_[static_cast<std::size_t>(candidate)]);
      remove(candidate);
    }
    return squared_error;
  }

  // Positions in the weights that run() was given, in the order of removal and of the rows left.
  const std::vector<Index>& removed() const { return removed_; }
  const std::vector<Index>& survivors() const { return positions_; }
  // Columns of newcomers.coefficients() that belong to newcomers that survived.
  const std::vector<Index>& surviving_newcomers() const { return alive_; }

 private:
  static constexpr double kCancellation = 1e-3;
  using Part = Eigen::VectorBlock<Vector>;

  void start(const std::vector<bool>& is_protected) {
    const Index total = weights_->rows();
    removed_.clear();
    positions_.resize(static_cast<std::size_t>(total));
    std::iota(positions_.begin(), positions_.end(), Index{0});
    alive_.resize(static_cast<std::size_t>(newcomers_->factor().size()));
    std::iota(alive_.begin(), alive_.end(), Index{0});
    ensure_capacity(protected_, is_protected.size());
    protected_ = is_protected;
    ensure_capacity(cancelled_, is_protected.size());
    ensure_size(inverse_diagonal_, total);
    ensure_size(column_, total);
    ensure_size(pivot_row_, basis_->size());
    ensure_size(spread_, newcomers_->coefficients().columns());
    ensure_size(solved_, newcomers_->coefficients().columns());
    inverse_diagonal_.head(basis_->size()) = basis_->inverse_diagonal();
    auto whitened = whitened_.resize(basis_->size(), newcomers_->factor().size());
    if (whitened.size() > 0) {
      linalg::multiply_by_transpose(newcomers_->coefficients().all(), newcomers_->factor().root(),
                                    whitened);
      inverse_diagonal_.head(basis_->size()) += whitened.rowwise().squaredNorm();
    }
    refresh_newcomers();
  }

  struct Candidate {
    Index position;
    double cost;
  };

  Candidate cheapest(Index scored) const {
    Candidate best{-1, std::numeric_limits<double>::infinity()};
    const auto weights = weights_->all();
    for (Index i = 0; i < weights.rows(); ++i) {
      if (protected_[static_cast<std::size_t>(i)]) continue;
      const double cost = weights.row(i).head(scored).squaredNorm() / inverse_diagonal_(i);
      if (cost < best.cost) best = {i, cost};
    }
    return best;
  }

  void remove(Index position) {
    const Index known = basis_->size();
    if (position < known) {
      remove_from_basis(position);
    } else {
      remove_newcomer(position - known);
    }
    weights_->erase(position);
    erase(positions_, position);
    erase(protected_, position);
    refresh_newcomers();
  }

  void remove_newcomer(Index k) {
    const Index known = basis_->size();
    const Index count = newcomers_->factor().size();
    // Column of the inverse divided by the root of its pivot: -A u for the basis, u for newcomers.
    auto column = column_.head(known + count);
    newcomers_->factor().remove(k, column.tail(count));
    column.head(known).noalias() = newcomers_->coefficients().all() * spread(column.tail(count));
    column.head(known) *= -1;
    refit(column, known + k, column(known + k));
    downdate_basis_diagonal(column.head(known));
    erase(alive_, k);
    restore_cancelled(known);
  }

  void remove_from_basis(Index j) {
    const Index known = basis_->size();
    const Index count = newcomers_->factor().size();
    auto coefficients = newcomers_->coefficients().all();
    of_removed_.resize(0, coefficients.cols());
    of_removed_.append(coefficients.row(j));
    const auto of_removed = of_removed_.row(0);

    auto column = column_.head(known + count);
    auto pivot_row = pivot_row_.head(known);
    basis_->remove(j, pivot_row);
    const double root = pivot_row(j);
    column.tail(count) = -solve_schur(of_removed);
    column.head(known).noalias() = coefficients * spread(column.tail(count));
    column.head(known) = pivot_row * root - column.head(known);
    column /= std::sqrt(column(j));
    refit(column, j, column(j));
    downdate_basis_diagonal(column.head(known));

    // Without point j the newcomers are explained less well by the basis.
    subtract_outer(1 / root, pivot_row, of_removed.data(), newcomers_->coefficients());
    subtract_outer(-1 / (root * root), of_removed, of_removed.data(), newcomers_->schur());
    if (count > 0) refactor_schur();
    newcomers_->coefficients().erase(j);
    std::copy(inverse_diagonal_.data() + j + 1, inverse_diagonal_.data() + known,
              inverse_diagonal_.data() + j);
    erase(cancelled_, j);
    restore_cancelled(known - 1);
  }

  // W <- W - P(:, j) w_j / P(j, j); row j itself is about to go.
  void refit(const Eigen::Ref<const Vector>& column, Index j, double root) {
    weight_.resize(0, weights_->columns());
    weight_.append(weights_->row(j));
    subtract_outer(1 / root, column, weight_.row(0).data(), *weights_);
  }

  // target(i, :) -= factor column(i) row: Eigen would make temporaries of it.
  template <typename Column>
  static void subtract_outer(double factor, const Column& column, const double* row,
                             RowBuffer& target) {
    const Index columns = target.columns();
    double* out = target.all().data();
    for (Index i = 0; i < target.rows(); ++i, out += columns) {
      const double scale = factor * column(i);
      for (Index c = 0; c < columns; ++c) out[c] -= scale * row[c];
    }
  }

  void downdate_basis_diagonal(const Eigen::Ref<const Vector>& column) {
    cancelled_.assign(static_cast<std::size_t>(column.size()), false);
    for (Index i = 0; i < column.size(); ++i) {
      const double before = inverse_diagonal_(i);
      inverse_diagonal_(i) = before - column(i) * column(i);
      cancelled_[static_cast<std::size_t>(i)] = !(inverse_diagonal_(i) > kCancellation * before);
    }
  }

  void restore_cancelled(Index known) {
    for (Index i = 0; i < known; ++i) {
      if (cancelled_[static_cast<std::size_t>(i)]) refresh(i);
    }
  }

  // P(i, i) = P_basis(i, i) + ||T_S a_i||^2 for a point of the basis.
  void refresh(Index i) {
    const auto root = newcomers_->factor().root();
    const auto coefficients = newcomers_->coefficients().row(i);
    double value = basis_->inverse_diagonal()(i);
    for (Index r = 0; r < root.rows(); ++r) {
      double dot = 0;
      for (Index k = 0; k <= r; ++k) {
        dot += root(r, k) * coefficients(alive_[static_cast<std::size_t>(k)]);
      }
      value += dot * dot;
    }
    inverse_diagonal_(i) = value;
  }

  void refresh_newcomers() {
    inverse_diagonal_.segment(basis_->size(), newcomers_->factor().size()) =
        newcomers_->factor().inverse_diagonal();
  }

  template <typename Row>
  Part solve_schur(const Row& of_removed) {
    Part result = solved_.head(newcomers_->factor().size());
    for (Index k = 0; k < result.size(); ++k) {
      result(k) = of_removed(alive_[static_cast<std::size_t>(k)]);
    }
    if (result.size() == 0) return result;
    const auto root = newcomers_->factor().root();
    auto whitened = spread_.head(result.size());
    whitened.noalias() = root.template triangularView<Eigen::Lower>() * result;
    result.noalias() = root.transpose().template triangularView<Eigen::Upper>() * whitened;
    return result;
  }

  void refactor_schur() {
    const auto count = static_cast<Index>(alive_.size());
    const auto schur = newcomers_->schur().all();
    auto lower = lower_.resize(count, count);
    for (Index i = 0; i < count; ++i) {
      for (Index k = 0; k <= i; ++k) {
        lower(i, k) =
            schur(alive_[static_cast<std::size_t>(i)], alive_[static_cast<std::size_t>(k)]);
      }
    }
    Eigen::Ref<RowMatrix> in_place = lower;
    const Eigen::LLT<Eigen::Ref<RowMatrix>> cholesky(in_place);
    newcomers_->factor().assign_inverse_of(lower);
  }

  // A vector over the surviving newcomers as one over all columns of the coefficients.
  Part spread(const Eigen::Ref<const Vector>& values) {
    Part all = spread_.head(newcomers_->coefficients().columns());
    all.setZero();
    for (Index k = 0; k < values.size(); ++k) all(alive_[static_cast<std::size_t>(k)]) = values(k);
    return all;
  }

  template <typename T>
  static void erase(std::vector<T>& values, Index i) {
    values.erase(values.begin() + i);
  }

  GramFactor* basis_ = nullptr;
  Newcomers* newcomers_ = nullptr;
  RowBuffer* weights_ = nullptr;
  std::vector<Index> positions_;
  std::vector<Index> removed_;
  std::vector<Index> alive_;
  std::vector<bool> protected_;
  std::vector<char> cancelled_;  // not bool: it is written in the innermost loop
  Vector inverse_diagonal_;
  Vector column_;
  Vector pivot_row_;
  Vector spread_;
  Vector solved_;
  RowBuffer of_removed_;
  RowBuffer weight_;
  RowBuffer whitened_;
  RowBuffer lower_;
};

}  // namespace parsimon
