#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "parsimon/linalg/loops.hpp"
#include "parsimon/linalg/parallel.hpp"
#include "parsimon/types.hpp"

// What removals do to everything that has one column per point of a basis, shared among threads.
namespace parsimon::linalg {

// The column with the smallest cost, the first of several; none if all are infinite.
struct Cheapest {
  Index column = -1;
  double cost = std::numeric_limits<double>::infinity();
};

// Passes over all columns, after each of which all costs are known.
class ColumnPasses {
 public:
  // What the inverse_diagonal of a column really is, for one that is stale.
  using Refresh = std::function<double(Index)>;

  Cheapest score(const BasisColumns& basis, Index size, const Refresh& refresh) {
    return run(basis, size, 0, refresh,
               [&](Index begin, Index end) { loops().score(basis, begin, end); });
  }

  Cheapest move_by(const BasisColumns& basis, Index size, const double* column, const double* kept,
                   const Refresh& refresh) {
    return run(basis, size, 0, refresh,
               [&](Index begin, Index end) { loops().move_by(basis, begin, end, column, kept); });
  }

  Cheapest move_by_sum(const BasisColumns& basis, Index size, const std::vector<double*>& rows,
                       const double* u, const double* kept, const Refresh& refresh) {
    const auto count = static_cast<Index>(rows.size());
    return run(basis, size, count, refresh, [&](Index begin, Index end) {
      loops().move_by_sum(basis, begin, end, rows.data(), u, count, kept);
    });
  }

 private:
  template <class Pass>
  Cheapest run(const BasisColumns& basis, Index size, Index rows, const Refresh& refresh,
               const Pass& pass) {
    const Index grains = (size + kCopyGrain - 1) / kCopyGrain;
    best_of_.assign(static_cast<std::size_t>(grains), Cheapest());
    const double flops =
        15.0 * static_cast<double>(size) * static_cast<double>(rows + 2 * basis.outputs);
    share(size, kCopyGrain, flops, [&](Index begin, Index end) {
      pass(begin, end);
      best_of_[static_cast<std::size_t>(begin / kCopyGrain)] =
          find_cheapest(basis, begin, end, refresh);
    });
    Cheapest best;
    for (const Cheapest& candidate : best_of_) {
      if (candidate.cost < best.cost) best = candidate;
    }
    return best;
  }

  static Cheapest find_cheapest(const BasisColumns& basis, Index begin, Index end,
                                const Refresh& refresh) {
    double least = smallest(basis.costs, begin, end);
    if (least < 0) {
      for (Index i = begin; i < end; ++i) {
        if (basis.costs[i] != kStale) continue;
        basis.inverse_diagonal[i] = refresh(i);
        double square = 0;
        for (Index c = 0; c < basis.scored; ++c) {
          const double weight = basis.weights[c * basis.weights_row + i];
          square += weight * weight;
        }
        basis.costs[i] = square / basis.inverse_diagonal[i] + basis.barrier[i];
      }
      least = smallest(basis.costs, begin, end);
    }
    if (!(least < std::numeric_limits<double>::infinity())) return {};
    return {std::find(basis.costs + begin, basis.costs + end, least) - basis.costs, least};
  }

  static double smallest(const double* costs, Index begin, Index end) {
    double least = std::numeric_limits<double>::infinity();
    for (Index i = begin; i < end; ++i) least = costs[i] < least ? costs[i] : least;
    return least;
  }

  std::vector<Cheapest> best_of_;  // of each part
};

// rows[k][i] -= factors[k] * row[i]
inline void subtract_multiples(const std::vector<double*>& rows, const double* factors,
                               const double* row, Index size) {
  const auto count = static_cast<Index>(rows.size());
  share(size, kCopyGrain, copy_flops(size * count), [&](Index begin, Index end) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const double factor = factors[k];
      double* target = rows[k];
      for (Index i = begin; i < end; ++i) target[i] -= factor * row[i];
    }
  });
}

// Column j of the first `size` leaves each row; what follows moves up, and 0 takes the last place.
inline void erase_column(const std::vector<double*>& rows, Index j, Index size) {
  const auto count = static_cast<Index>(rows.size());
  share(count, 1, copy_flops(count * (size - j)), [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      double* row = rows[static_cast<std::size_t>(k)];
      std::copy(row + j + 1, row + size, row + j);
      row[size - 1] = 0;
    }
  });
}

}  // namespace parsimon::linalg
