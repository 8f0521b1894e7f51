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

// Destructive kernel orthogonal matching pursuit with pre-fitting (Algorithm 1, POLK): removes the
// point whose removal, with all other weights re-fitted, leaves the function nearest to the given
// one, as long as the distance stays within the budget, or there are more points than allowed.
//
// In terms of the inverse Gram matrix P of all points, removing j costs ||w_j||^2 / P(j, j) more
// squared error, and the re-fitted weights are W - P(:, j) w_j / P(j, j). With A and S of the
// newcomers, P = [P_basis + A S^-1 A', -A S^-1; ., S^-1]; it is never formed.
//
// Nearly all that go are newcomers, and each changes the weight and the score of every point of the
// basis. So what there is of the basis is kept a point a column: one pass over the columns does it
// all, and needs nothing but vector instructions.
//
// Only the first `scored` columns of the weights decide; the others are projected along.
class Komp {
 public:
  // weights: a row for each point of the basis, then for each newcomer; the survivors' on return.
  // Removed points leave the basis and the newcomers, but never the first `protected_points`.
  // Returns the squared error spent in all.
  double run(GramFactor& basis, Newcomers& newcomers, RowBuffer& weights, Index protected_points,
             Index scored, double squared_budget, double squared_error,
             Index most_points = std::numeric_limits<Index>::max()) {
    basis_ = &basis;
    newcomers_ = &newcomers;
    scored_ = scored;
    start(weights, protected_points);
    Candidate next = cheapest(score_basis());
    while (next.position >= 0) {
      const bool too_many = known() + count() > most_points;
      if (!too_many && !(squared_error + next.cost <= squared_budget)) break;
      squared_error += next.cost;
      if (next.position < known()) {
        removed_.push_back(positions_[static_cast<std::size_t>(next.position)]);
        next = cheapest(remove_from_basis(next.position));
      } else {
        const Index k = next.position - known();
        removed_.push_back(first_newcomer_ + alive_[static_cast<std::size_t>(k)]);
        next = cheapest(remove_newcomer(k));
      }
    }
    finish(weights);
    return squared_error;
  }

  // Positions in the weights that run() was given, in the order of removal and of the rows left.
  const std::vector<Index>& removed() const { return removed_; }
  const std::vector<Index>& survivors() const { return positions_; }
  // Newcomers that survived, and their coefficients: a row each, a column a point of the basis.
  const std::vector<Index>& surviving_newcomers() const { return alive_; }
  auto surviving_coefficients() const {
    return coefficients_.all().topLeftCorner(count(), known());
  }

 private:
  static constexpr double kCancellation = 1e-3;
  using Part = Eigen::VectorBlock<Vector>;
  using Packet = linalg::Packet<double>;
  static constexpr Index lanes = linalg::lanes<double>;

  // Positions below known() are points of the basis, the others newcomers.
  struct Candidate {
    Index position = -1;
    double cost = std::numeric_limits<double>::infinity();
  };

  Index known() const { return basis_->size(); }
  Index count() const { return newcomers_->factor().size(); }

  void start(const RowBuffer& weights, Index protected_points) {
    const Index width = linalg::padded<double>(known());
    first_newcomer_ = known();
    removed_.clear();
    positions_.resize(static_cast<std::size_t>(known()));
    std::iota(positions_.begin(), positions_.end(), Index{0});
    alive_.resize(static_cast<std::size_t>(count()));
    std::iota(alive_.begin(), alive_.end(), Index{0});
    for (Vector* row : {&inverse_diagonal_, &barrier_, &costs_, &column_, &pivot_row_}) {
      ensure_size(*row, width);
    }
    ensure_size(of_newcomers_, count());
    ensure_size(solved_, count());
    ensure_size(whitened_, count());
    kept_.resize(1, weights.columns());

    auto planes = weights_.resize(weights.columns(), width);
    linalg::transpose_padded(weights.all().topRows(known()), planes.data(), width);
    auto coefficients = coefficients_.resize(count(), width);
    linalg::transpose_padded(newcomers_->coefficients().all(), coefficients.data(), width);
    newcomer_weights_.resize(count(), weights.columns()) = weights.all().bottomRows(count());

    // Whatever is in the columns of the padding, it is never chosen.
    inverse_diagonal_.head(width).setOnes();
    barrier_.head(width).setConstant(std::numeric_limits<double>::infinity());
    inverse_diagonal_.head(known()) = basis_->inverse_diagonal();
    barrier_.segment(protected_points, known() - protected_points).setZero();
    if (count() == 0 || known() == 0) return;
    auto whitened = product_.resize(count(), width);
    linalg::multiply(newcomers_->factor().root(), coefficients_.all(), whitened);
    inverse_diagonal_.head(known()) += whitened.leftCols(known()).colwise().squaredNorm();
  }

  // Rows of weights again, for the points that are left.
  void finish(RowBuffer& weights) {
    if (!removed_.empty()) {
      auto all = weights.resize(known() + count());
      linalg::transpose(weights_.all().leftCols(known()), all.data(), all.cols());
      all.bottomRows(count()) = newcomer_weights_.all();
    }
    for (Index k = 0; k < count(); ++k) {
      const Index newcomer = alive_[static_cast<std::size_t>(k)];
      positions_.push_back(first_newcomer_ + newcomer);
      if (newcomer != k) coefficients_.row(k) = coefficients_.row(newcomer);
    }
  }

  // -- scores ------------------------------------------------------------------------------------

  // The cheapest of the best point of the basis and all newcomers.
  Candidate cheapest(Candidate best) const {
    const auto diagonal = newcomers_->factor().inverse_diagonal();
    for (Index k = 0; k < count(); ++k) {
      const double cost = newcomer_weights_.row(k).head(scored_).squaredNorm() / diagonal(k);
      if (cost < best.cost) best = {known() + k, cost};
    }
    return best;
  }

  Candidate score_basis() {
    return over_basis([this](Index begin, Index end) {
      for (Index i = begin; i < end; i += lanes) score(i, load_diagonal(i));
    });
  }

  // costs(i) = ||w_i||^2 / P(i, i), for as many points as there are lanes.
  void score(Index i, const Packet& diagonal) {
    using namespace Eigen::internal;
    Packet square = pset1<Packet>(0.0);
    for (Index c = 0; c < scored_; ++c) {
      const Packet weight = ploadu<Packet>(weights_.row(c).data() + i);
      square = pmadd(weight, weight, square);
    }
    const Packet barrier = ploadu<Packet>(barrier_.data() + i);
    pstoreu(costs_.data() + i, padd(pdiv(square, diagonal), barrier));
  }

  Packet load_diagonal(Index i) const {
    return Eigen::internal::ploadu<Packet>(inverse_diagonal_.data() + i);
  }

  // Calls work(begin, end) for parts of the basis and returns the point that is cheapest then, the
  // first of several.
  template <class Work>
  Candidate over_basis(const Work& work) {
    const Index grains = (known() + linalg::kCopyGrain - 1) / linalg::kCopyGrain;
    best_of_.assign(static_cast<std::size_t>(grains), Candidate());
    const double flops =
        15.0 * static_cast<double>(known()) * static_cast<double>(count() + 2 * weights_.rows());
    linalg::share(known(), linalg::kCopyGrain, flops, [&](Index begin, Index end) {
      work(begin, end);
      const Index best = first_smallest(costs_.data() + begin, end - begin);
      if (best < 0) return;
      best_of_[static_cast<std::size_t>(begin / linalg::kCopyGrain)] = {begin + best,
                                                                        costs_(begin + best)};
    });
    Candidate best;
    for (const Candidate& candidate : best_of_) {
      if (candidate.cost < best.cost) best = candidate;
    }
    return best;
  }

  // Of what is finite; -1 if there is nothing.
  static Index first_smallest(const double* values, Index size) {
    double smallest = std::numeric_limits<double>::infinity();
    for (Index i = 0; i < size; ++i) smallest = values[i] < smallest ? values[i] : smallest;
    if (smallest == std::numeric_limits<double>::infinity()) return -1;
    return std::find(values, values + size, smallest) - values;
  }

  // -- removals ----------------------------------------------------------------------------------

  // Returns the cheapest point of the basis.
  Candidate remove_newcomer(Index k) {
    // Column of the inverse divided by the root of its pivot: -A u for the basis, u for newcomers.
    Part u = of_newcomers_.head(count());
    newcomers_->factor().remove(k, u);
    kept_.row(0) = newcomer_weights_.row(k) / u(k);
    for (Index i = 0; i < u.size(); ++i) newcomer_weights_.row(i) -= u(i) * kept_.row(0);
    newcomer_weights_.erase(k);
    gather_rows();
    erase(alive_, k);
    return over_basis([&](Index begin, Index end) {
      using namespace Eigen::internal;
      for (Index i = begin; i < end; i += lanes) {
        Packet value = pset1<Packet>(0.0);
        for (Index r = 0; r < u.size(); ++r) {
          const double* row = rows_[static_cast<std::size_t>(r)];
          value = pmadd(pset1<Packet>(-u(r)), ploadu<Packet>(row + i), value);
        }
        move_basis(i, value);
      }
    });
  }

  // Returns the cheapest point of the basis.
  Candidate remove_from_basis(Index j) {
    auto of_removed = of_removed_.resize(coefficients_.rows(), 1);
    of_removed = coefficients_.all().col(j);
    auto pivot_row = pivot_row_.head(known());
    const Index size = known();
    basis_->remove(j, pivot_row);
    const double root = pivot_row(j);

    // Column j of the inverse, then divided by the root of its pivot.
    Part u = solve_schur(of_removed);
    auto column = column_.head(linalg::padded<double>(size));
    column.setZero();
    column.head(size) = pivot_row * root;
    for (Index k = 0; k < u.size(); ++k) {
      const Index newcomer = alive_[static_cast<std::size_t>(k)];
      column.head(size) += u(k) * coefficients_.row(newcomer).head(size).transpose();
    }
    const double pivot = std::sqrt(column(j));
    column /= pivot;
    for (Index c = 0; c < weights_.rows(); ++c) kept_.row(0)(c) = weights_.row(c)(j) / pivot;
    for (Index i = 0; i < u.size(); ++i) {
      newcomer_weights_.row(i) += u(i) / pivot * kept_.row(0);
    }

    // Without point j the newcomers are explained less well by the basis.
    const double flops = linalg::copy_flops(size * coefficients_.rows());
    linalg::share(size, linalg::kCopyGrain, flops, [&](Index begin, Index end) {
      const auto part = pivot_row.segment(begin, end - begin).transpose();
      for (Index k = 0; k < coefficients_.rows(); ++k) {
        coefficients_.row(k).segment(begin, end - begin) -= of_removed(k, 0) / root * part;
      }
    });
    for (Index k = 0; k < coefficients_.rows(); ++k) {
      newcomers_->schur().row(k) -= -of_removed(k, 0) / (root * root) * of_removed.transpose();
    }
    if (count() > 0) refactor_schur();
    erase_column(j, size, column);
    return over_basis([&](Index begin, Index end) {
      for (Index i = begin; i < end; i += lanes) {
        move_basis(i, Eigen::internal::ploadu<Packet>(column.data() + i));
      }
    });
  }

  // Weights, inverse diagonal and costs of as many points of the basis as there are lanes, given
  // their numbers in the column of the removed point.
  void move_basis(Index i, const Packet& value) {
    using namespace Eigen::internal;
    const Packet opposite = pnegate(value);
    for (Index c = 0; c < weights_.rows(); ++c) {
      double* weight = weights_.row(c).data() + i;
      pstoreu(weight, pmadd(opposite, pset1<Packet>(kept_.row(0)(c)), ploadu<Packet>(weight)));
    }
    const Packet before = load_diagonal(i);
    const Packet after = pmadd(opposite, value, before);
    pstoreu(inverse_diagonal_.data() + i, after);
    // A number that has lost its digits is computed again.
    if (!(predux_min(pmadd(before, pset1<Packet>(-kCancellation), after)) > 0)) {
      refresh(i, std::min(i + lanes, known()), before);
      return score(i, load_diagonal(i));
    }
    score(i, after);
  }

  // P(i, i) = P_basis(i, i) + ||T_S a_i||^2 for points of the basis.
  void refresh(Index begin, Index end, const Packet& before) {
    double old[lanes];
    Eigen::internal::pstoreu(old, before);
    const auto root = newcomers_->factor().root();
    for (Index i = begin; i < end; ++i) {
      if (inverse_diagonal_(i) > kCancellation * old[i - begin]) continue;
      double value = basis_->inverse_diagonal()(i);
      for (Index r = 0; r < root.rows(); ++r) {
        double dot = 0;
        for (Index k = 0; k <= r; ++k) {
          dot += root(r, k) * coefficients_.row(alive_[static_cast<std::size_t>(k)])(i);
        }
        value += dot * dot;
      }
      inverse_diagonal_(i) = value;
    }
  }

  // Where the coefficients of those newcomers lie that have not gone.
  void gather_rows() {
    rows_.clear();
    for (const Index k : alive_) rows_.push_back(coefficients_.row(k).data());
  }

  // Point j leaves everything that has a column for it; the padding stays as it was.
  void erase_column(Index j, Index size, Part column) {
    const auto shift = [&](double* row, double padding) {
      std::copy(row + j + 1, row + size, row + j);
      row[size - 1] = padding;
    };
    const Index outputs = weights_.rows(), rows = outputs + coefficients_.rows();
    linalg::share(rows, 1, linalg::copy_flops(rows * (size - j)), [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) {
        shift(r < outputs ? weights_.row(r).data() : coefficients_.row(r - outputs).data(), 0);
      }
    });
    shift(column.data(), 0);
    shift(inverse_diagonal_.data(), 1);
    shift(barrier_.data(), std::numeric_limits<double>::infinity());
    erase(positions_, j);
  }

  // S^-1 times a column, over the newcomers that have not gone.
  template <typename Column>
  Part solve_schur(const Column& of_removed) {
    Part result = solved_.head(count());
    if (result.size() == 0) return result;
    for (Index k = 0; k < result.size(); ++k) {
      result(k) = of_removed(alive_[static_cast<std::size_t>(k)], 0);
    }
    const auto root = newcomers_->factor().root();
    auto whitened = whitened_.head(count());
    whitened.noalias() = root.template triangularView<Eigen::Lower>() * result;
    result.noalias() = root.transpose().template triangularView<Eigen::Upper>() * whitened;
    return result;
  }

  void refactor_schur() {
    const auto schur = newcomers_->schur().all();
    auto lower = lower_.resize(count(), count());
    for (Index i = 0; i < count(); ++i) {
      for (Index k = 0; k <= i; ++k) {
        lower(i, k) =
            schur(alive_[static_cast<std::size_t>(i)], alive_[static_cast<std::size_t>(k)]);
      }
    }
    Eigen::Ref<RowMatrix> in_place = lower;
    const Eigen::LLT<Eigen::Ref<RowMatrix>> cholesky(in_place);
    newcomers_->factor().assign_inverse_of(lower);
  }

  template <typename T>
  static void erase(std::vector<T>& values, Index i) {
    values.erase(values.begin() + i);
  }

  GramFactor* basis_ = nullptr;
  Newcomers* newcomers_ = nullptr;
  Index scored_ = 0;
  Index first_newcomer_ = 0;
  std::vector<Index> positions_;
  std::vector<Index> removed_;
  std::vector<Index> alive_;
  std::vector<Candidate> best_of_;
  std::vector<const double*> rows_;

  // A column a point of the basis, padded to whole packets.
  RowBuffer weights_;       // a row an output
  RowBuffer coefficients_;  // a row a newcomer, whether it has gone or not
  Vector inverse_diagonal_;
  Vector barrier_;  // infinite for what must not be removed
  Vector costs_;
  Vector column_;
  Vector pivot_row_;

  RowBuffer newcomer_weights_;
  RowBuffer kept_;  // weights of the removed point, divided by the root of its pivot
  RowBuffer of_removed_;
  RowBuffer product_;
  RowBuffer lower_;
  Vector of_newcomers_;
  Vector solved_;
  Vector whitened_;
};

}  // namespace parsimon
