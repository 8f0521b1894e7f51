#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "parsimon/interrupt.hpp"
#include "parsimon/linalg/basis_columns.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/merging.hpp"
#include "parsimon/rkhs/newcomers.hpp"
#include "parsimon/rkhs/pair_search.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Destructive kernel orthogonal matching pursuit with pre-fitting (Algorithm 1, POLK): removes the
// point whose removal, with all other weights re-fitted, leaves the function nearest to the given
// one, as long as the distance stays within the budget, or there are more points than allowed.
//
// In terms of the inverse Gram matrix P of all points, removing j costs ||w_j||^2 / P(j, j) more
// squared error, and the re-fitted weights are W - P(:, j) w_j / P(j, j). With A and S of the
// newcomers, P = [P_basis + A S^-1 A', -A S^-1; ., S^-1]; it is never formed.
//
// Nearly all that go are newcomers, and each changes the weight and the score of every point of the
// basis. So what there is of the basis is kept one column per point: one pass over the columns does
// it all.
//
// Where points may be merged, the point that would go next and another one are replaced by a point
// between them, if that costs less: both go, the new one joins the newcomers, and the function
// becomes the projection of f~, the one that was given, on what is spanned then. So it always is,
// and squared errors add up: with r = f~(z) - f(z) and what the others leave unexplained of
// k(z, .), of squared norm `left`, the new point gives ||r||^2 / left back.
//
// Only the first `scored` columns of the weights decide; the others are projected along.
class Komp {
 public:
  // weights: one row for each point of the basis, then for each newcomer; the survivors' on return.
  // Removed points leave the basis and the newcomers, but never the first `protected_points`.
  // merging: of this step, if points may be merged. Returns the squared error spent in all.
  double run(GramFactor& basis, Newcomers& newcomers, RowBuffer& weights, Index protected_points,
             Index scored, double squared_budget, double squared_error,
             Index most_points = std::numeric_limits<Index>::max(), Merging* merging = nullptr) {
    basis_ = &basis;
    newcomers_ = &newcomers;
    merging_ = merging;
    start(weights, protected_points, scored);
    Removal next = cheapest(passes_.score(columns(), known(), exact_diagonal()));
    while (next.position >= 0) {
      Interruptible::check();
      const bool too_many = known() + newcomers.size() > most_points;
      const MergedPair pair = merging != nullptr
                                  ? pairs_.cheapest(points_left(), *merging, next.position)
                                  : MergedPair();
      const double cost = std::min(next.cost, pair.cost);
      if (!too_many && !(squared_error + cost <= squared_budget)) break;
      if (pair.cost < next.cost) {
        squared_error += merge(pair);
        next = cheapest(passes_.score(columns(), known(), exact_diagonal()));
      } else {
        squared_error += next.cost;
        next = cheapest(remove(next.position));
      }
    }
    finish(weights);
    return squared_error;
  }

  // Positions in the weights that run() was given, in the order of removal and of the rows left.
  const std::vector<Index>& removed() const { return removed_; }
  const std::vector<Index>& survivors() const { return positions_; }

 private:
  // Positions below known() are points of the basis, the others newcomers.
  struct Removal {
    Index position;
    double cost;
  };

  Index known() const { return basis_->size(); }

  void start(const RowBuffer& weights, Index protected_points, Index scored) {
    const Index size = known(), count = newcomers_->size(), width = linalg::padded(size);
    scored_ = scored;
    first_newcomer_ = size;
    removed_.clear();
    positions_.resize(static_cast<std::size_t>(size));
    std::iota(positions_.begin(), positions_.end(), Index{0});
    for (Vector* row : {&inverse_diagonal_, &barrier_, &costs_, &column_, &pivot_row_}) {
      ensure_size(*row, width);
    }
    ensure_size(of_newcomers_, count);
    ensure_size(of_removed_, count);
    kept_.resize(1, weights.columns());
    weights_.resize(weights.columns(), width);
    linalg::transpose_padded(weights.all().topRows(size), weights_.data(), width);
    lost_directions_.resize(0, size);
    newcomer_weights_.resize(count, weights.columns());
    std::copy_n(weights.row(size).data(), count * weights.columns(), newcomer_weights_.data());

    // Whatever is in the columns of the padding, it is never chosen.
    const double never = std::numeric_limits<double>::infinity();
    std::fill_n(inverse_diagonal_.data(), width, 1.0);
    std::fill_n(barrier_.data(), width, never);
    std::fill(barrier_.data() + protected_points, barrier_.data() + size, 0.0);
    add_diagonal(size, count, width);
  }

  // P(i, i) = P_basis(i, i) + ||T_S a_i||^2 for the points of the basis.
  void add_diagonal(Index size, Index count, Index width) {
    const auto diagonal = basis_->inverse_diagonal();
    for (Index i = 0; i < size; ++i) inverse_diagonal_(i) = diagonal(i);
    if (count == 0 || size == 0) return;
    auto whitened = product_.resize(count, width);
    linalg::multiply(newcomers_->factor().root(), newcomers_->coefficient_matrix(), whitened);
    for (Index k = 0; k < count; ++k) {
      const double* row = product_.row(k).data();
      for (Index i = 0; i < size; ++i) inverse_diagonal_(i) += row[i] * row[i];
    }
  }

  // Rows of weights again, for the points that are left.
  void finish(RowBuffer& weights) {
    const Index size = known(), count = newcomers_->size();
    if (!removed_.empty()) {
      auto all = weights.resize(size + count);
      linalg::transpose(weights_.all().leftCols(size), all.data(), all.cols());
      std::copy_n(newcomer_weights_.data(), count * all.cols(), all.data() + size * all.cols());
    }
    for (const Index k : newcomers_->present()) positions_.push_back(first_newcomer_ + k);
  }

  linalg::BasisColumns columns() {
    return {weights_.data(),          weights_.columns(), weights_.rows(), scored_,
            inverse_diagonal_.data(), barrier_.data(),    costs_.data()};
  }

  // For an entry of the diagonal that has lost its digits.
  linalg::ColumnPasses::Refresh exact_diagonal() const {
    return [this](Index i) {
      double value = basis_->inverse_diagonal()(i);
      const auto root = newcomers_->factor().root();
      for (Index r = 0; r < root.rows(); ++r) {
        double dot = 0;
        for (Index k = 0; k <= r; ++k) {
          dot += root(r, k) * newcomers_->coefficients()[static_cast<std::size_t>(k)][i];
        }
        value += dot * dot;
      }
      return value;
    };
  }

  // The cheapest of the best point of the basis and all newcomers.
  Removal cheapest(const linalg::Cheapest& of_basis) const {
    Removal best{of_basis.column, of_basis.cost};
    const auto diagonal = newcomers_->factor().inverse_diagonal();
    for (Index k = 0; k < newcomers_->size(); ++k) {
      const double* weights = newcomer_weights_.row(k).data();
      double square = 0;
      for (Index c = 0; c < scored_; ++c) square += weights[c] * weights[c];
      if (square / diagonal(k) < best.cost) best = {known() + k, square / diagonal(k)};
    }
    return best;
  }

  // All of these return the cheapest point of the basis.

  linalg::Cheapest remove(Index position) {
    return position < known() ? remove_from_basis(position) : remove_newcomer(position - known());
  }

  linalg::Cheapest remove_newcomer(Index k) {
    const Index count = newcomers_->size();
    removed_.push_back(first_newcomer_ + newcomers_->present()[static_cast<std::size_t>(k)]);
    // Column of the inverse divided by the root of its pivot: -A u for the basis, u for newcomers.
    auto u = of_newcomers_.head(count);
    rows_ = newcomers_->coefficients();
    newcomers_->remove(k, u);
    keep(newcomer_weights_.row(k).data(), 1, u(k));
    for (Index i = 0; i < count; ++i) move_newcomer(i, -u(i));
    newcomer_weights_.erase(k);
    return passes_.move_by_sum(columns(), known(), rows_, u.data(), kept_.data(), exact_diagonal());
  }

  linalg::Cheapest remove_from_basis(Index j) {
    const Index size = known(), count = newcomers_->size();
    removed_.push_back(positions_[static_cast<std::size_t>(j)]);
    auto of_removed = of_removed_.head(count);
    auto u = of_newcomers_.head(count);
    for (Index k = 0; k < count; ++k) {
      u(k) = of_removed(k) = newcomers_->coefficients()[static_cast<std::size_t>(k)][j];
    }
    auto pivot_row = pivot_row_.head(size);
    basis_->remove(j, pivot_row);
    if (merging_ != nullptr) remember_direction(pivot_row);
    newcomers_->solve(u);

    // Column j of the inverse, then divided by the root of its pivot.
    double* column = column_.data();
    for (Index i = 0; i < size; ++i) column[i] = pivot_row(i) * pivot_row(j);
    for (Index k = 0; k < count; ++k) {
      const double* row = newcomers_->coefficients()[static_cast<std::size_t>(k)];
      for (Index i = 0; i < size; ++i) column[i] += u(k) * row[i];
    }
    const double pivot = std::sqrt(column[j]);
    for (Index i = 0; i < size; ++i) column[i] /= pivot;
    keep(weights_.data() + j, weights_.columns(), pivot);
    for (Index k = 0; k < count; ++k) move_newcomer(k, u(k) / pivot);

    newcomers_->lose_basis_point(j, pivot_row, of_removed);
    erase_column(j, size);
    return passes_.move_by(columns(), known(), column, kept_.data(), exact_diagonal());
  }

  // The weights of the removed point, divided by the root of its pivot.
  void keep(const double* weights, Index stride, double root) {
    for (Index c = 0; c < kept_.columns(); ++c) kept_.data()[c] = weights[c * stride] / root;
  }

  void move_newcomer(Index k, double factor) {
    double* weights = newcomer_weights_.row(k).data();
    for (Index c = 0; c < kept_.columns(); ++c) weights[c] += factor * kept_.data()[c];
  }

  // Point j leaves everything that has a column for it; the padding stays as it was.
  void erase_column(Index j, Index size) {
    rows_.clear();
    for (Index c = 0; c < weights_.rows(); ++c) rows_.push_back(weights_.row(c).data());
    for (Vector* row : {&column_, &inverse_diagonal_, &barrier_}) rows_.push_back(row->data());
    linalg::erase_column(rows_, j, size);
    inverse_diagonal_(size - 1) = 1;
    barrier_(size - 1) = std::numeric_limits<double>::infinity();
    for (Index i = size; i < linalg::padded(size); ++i) column_(i) = 0;
    positions_.erase(positions_.begin() + j);
  }

  // -- merging -----------------------------------------------------------------------------------

  PointsLeft points_left() const {
    return {*basis_,    *newcomers_,     weights_, newcomer_weights_, inverse_diagonal_, barrier_,
            positions_, first_newcomer_, scored_};
  }

  // The direction that a point of the basis alone has spanned, in terms of all points that the
  // basis began with: new points have a share in it.
  void remember_direction(const Eigen::Ref<const Vector>& pivot_row) {
    lost_directions_.resize(lost_directions_.rows() + 1);
    auto direction = lost_directions_.row(lost_directions_.rows() - 1);
    std::fill_n(direction.data(), direction.size(), 0.0);
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      direction(positions_[i]) = pivot_row(static_cast<Index>(i));
    }
  }

  // Two points go, and one between them comes. Returns the squared error.
  double merge(const MergedPair& pair) {
    double cost = points_left().cost(pair.first);
    remove(pair.first);
    const Index second = pair.second - (pair.second > pair.first ? 1 : 0);
    cost += points_left().cost(second);
    remove(second);
    pairs_.explain(points_left(), *merging_, pair.place, 1);
    const double left = pairs_.left(0);
    RowVector weights = pairs_.residual(points_left(), *merging_, 0, pair.place);
    for (Index c = 0; c < scored_; ++c) cost -= weights(c) * weights(c) / left;
    weights /= left;
    join(pair.place, weights);
    // Rounding apart, it is what was expected.
    return std::max(0.0, std::min(cost, pair.cost));
  }

  // The place, which has been explained, becomes a newcomer with these weights.
  void join(Index place, const RowVector& weights) {
    const Index size = known(), fresh = newcomers_->size();
    Newcomers::Newcomer newcomer = pairs_.newcomer(0);
    auto column = column_.head(size);  // of all coefficients, not only of those without newcomers
    column = newcomer.coefficients;
    for (Index m = 0; m < fresh; ++m) {
      const double* row = newcomers_->coefficients()[static_cast<std::size_t>(m)];
      for (Index i = 0; i < size; ++i) column(i) -= newcomer.within(m) * row[i];
    }
    for (Index c = 0; c < weights.size(); ++c) {
      double* moved = weights_.row(c).data();
      for (Index i = 0; i < size; ++i) moved[i] -= column(i) * weights(c);
    }
    for (Index i = 0; i < size; ++i) inverse_diagonal_(i) += column(i) * column(i) / newcomer.left;
    for (Index m = 0; m < fresh; ++m) newcomer_weights_.row(m) -= newcomer.within(m) * weights;
    newcomer_weights_.append(weights.data());
    newcomer.lost = Vector::Zero(lost_directions_.rows());
    for (Index s = 0; s < newcomer.lost.size(); ++s) {
      const double* direction = lost_directions_.row(s).data();
      for (Index i = 0; i < first_newcomer_; ++i) {
        newcomer.lost(s) += direction[i] * merging_->value(i, place);
      }
    }
    newcomers_->append(newcomer);
    merging_->make(place);
    ensure_size(of_newcomers_, fresh + 1);
    ensure_size(of_removed_, fresh + 1);
  }

  GramFactor* basis_ = nullptr;
  Newcomers* newcomers_ = nullptr;
  Merging* merging_ = nullptr;
  Index scored_ = 0;
  Index first_newcomer_ = 0;
  std::vector<Index> positions_;
  std::vector<Index> removed_;
  linalg::ColumnPasses passes_;
  std::vector<double*> rows_;

  // One column per point of the basis, padded to whole vectors.
  RowBuffer weights_;  // one row per output
  Vector inverse_diagonal_;
  Vector barrier_;  // infinite for what must not be removed
  Vector costs_;
  Vector column_;
  Vector pivot_row_;

  RowBuffer newcomer_weights_;
  RowBuffer kept_;
  RowBuffer product_;
  Vector of_newcomers_;
  Vector of_removed_;

  PairSearch pairs_;
  RowBuffer lost_directions_;
};

}  // namespace parsimon
