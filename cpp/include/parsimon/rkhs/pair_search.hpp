#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/merge.hpp"
#include "parsimon/rkhs/merging.hpp"
#include "parsimon/rkhs/newcomers.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The points that KOMP has left, by their position there: first the basis, then the newcomers.
struct PointsLeft {
  const GramFactor& basis;
  const Newcomers& newcomers;
  const RowBuffer& weights;  // of the basis: one row per output
  const RowBuffer& newcomer_weights;
  const Vector& inverse_diagonal;  // of the basis
  const Vector& barrier;           // likewise, infinite where a point is protected
  const std::vector<Index>& positions;
  Index first_newcomer;
  Index scored;

  Index known() const { return basis.size(); }
  Index count() const { return known() + newcomers.size(); }
  bool may_go(Index i) const { return i >= known() || barrier(i) == 0; }

  // Where the point was when it all began, or behind that (merging.hpp).
  Index origin(Index i) const {
    if (i < known()) return positions[static_cast<std::size_t>(i)];
    return first_newcomer + newcomers.present()[static_cast<std::size_t>(i - known())];
  }

  double weight(Index i, Index c) const {
    return i < known() ? weights.row(c)(i) : newcomer_weights.row(i - known())(c);
  }
  double product(Index i, Index j) const {
    double sum = 0;
    for (Index c = 0; c < scored; ++c) sum += weight(i, c) * weight(j, c);
    return sum;
  }

  // P(i, i), P the inverse Gram matrix of all points that are left.
  double inverse(Index i) const {
    return i < known() ? inverse_diagonal(i) : newcomers.factor().inverse_diagonal()(i - known());
  }
  // What it costs to remove a point.
  double cost(Index i) const { return product(i, i) / inverse(i); }

  // P(i, j) = P_basis(i, j) + c_i' S^-1 c_j, the former 0 unless both are of the basis. This is
  // c_i:
  void in_newcomers(Index i, Vector& c) const {
    c.setZero(newcomers.size());
    if (i >= known()) c(i - known()) = -1;
    if (i >= known()) return;
    for (Index k = 0; k < c.size(); ++k) {
      c(k) = newcomers.coefficients()[static_cast<std::size_t>(k)][i];
    }
  }
  double basis_inverse(Index i, Index j) const {
    if (i >= known() || j >= known()) return 0;
    const auto root = basis.root();
    double sum = 0;
    for (Index r = std::max(i, j); r < known(); ++r) sum += root(r, i) * root(r, j);
    return sum;
  }
};

// Two of these points, and which of the places that merging was asked about is the one between
// them. Infinite costs: there is no such pair.
struct MergedPair {
  Index first = -1;
  Index second = -1;
  Index place = -1;
  double cost = std::numeric_limits<double>::infinity();
};

// Which two points KOMP had best put together, and what that costs.
//
// With r = f~(z) - f(z), what the points leave unexplained of k(z, .), `left`, and the coefficients
// a of what they do explain: without two points i and j,
//   of these the others leave  G = P(ij, ij)^-1,    which costs  tr(w_ij' G w_ij),
//   left <- left + a_ij' G a_ij,    r <- r + w_ij' G a_ij,    and z gives  |r|^2 / left  back.
class PairSearch {
 public:
  // With one point given. Partners are judged by what the pair alone would lose; the best few are
  // tried.
  MergedPair cheapest(const PointsLeft& points, Merging& merging, Index first) {
    choose_partners(points, merging, first);
    MergedPair best;
    const auto places = static_cast<Index>(partners_.size());
    if (places == 0) return best;
    std::vector<Index> others;
    std::vector<double> fractions;
    for (const Partner& partner : partners_) {
      others.push_back(points.origin(partner.position));
      fractions.push_back(partner.fraction);
    }
    merging.ask_about(points.origin(first), others, fractions);
    explain(points, merging, 0, places);
    points.in_newcomers(first, of_first_);
    with_first_ = of_first_;
    points.newcomers.solve(with_first_);
    for (Index k = 0; k < places; ++k) {
      const Index second = partners_[static_cast<std::size_t>(k)].position;
      const double cost = cost_of(points, merging, first, second, k);
      if (cost < best.cost) best = {first, second, k, cost};
    }
    return best;
  }

  // What the points explain of some of the places that merging was asked about.
  void explain(const PointsLeft& points, const Merging& merging, Index first_place, Index places) {
    const Index size = points.known(), fresh = points.newcomers.size();
    auto values = values_.resize(size, places), solved = solved_.resize(size, places);
    auto whitened = whitened_.resize(size, places);
    reshape(schur_, fresh, places);
    reshape(within_, fresh, places);
    corner_.resize(places);
    left_.resize(places);
    for (Index i = 0; i < size; ++i) {
      const Index origin = points.origin(i);
      for (Index k = 0; k < places; ++k) values(i, k) = merging.value(origin, first_place + k);
    }
    if (size > 0) points.basis.solve(values, whitened, solved);
    Vector within(fresh);
    for (Index k = 0; k < places; ++k) {
      corner_(k) = merging.asked_self_kernel(first_place + k);
      for (Index i = 0; i < size; ++i) corner_(k) -= whitened(i, k) * whitened(i, k);
      for (Index m = 0; m < fresh; ++m) {
        const double* row = points.newcomers.coefficients()[static_cast<std::size_t>(m)];
        double sum = merging.value(points.origin(size + m), first_place + k);
        for (Index i = 0; i < size; ++i) sum -= row[i] * values(i, k);
        within(m) = schur_(m, k) = sum;
      }
      points.newcomers.solve(within);
      within_.col(k) = within;
      left_(k) = corner_(k) - schur_.col(k).dot(within);
    }
  }

  double left(Index k) const { return left_(k); }

  // The k-th place that was explained, as a newcomer; but for what is lost.
  Newcomers::Newcomer newcomer(Index k) const {
    return {solved_.all().col(k), schur_.col(k), within_.col(k), corner_(k), left_(k), {}};
  }

  // f~(z) - f(z) for the k-th place that was explained, `place` of those asked about; all columns.
  const RowVector& residual(const PointsLeft& points, const Merging& merging, Index k,
                            Index place) {
    residual_.resize(points.newcomer_weights.columns());
    merging.target(place, residual_);
    for (Index c = 0; c < residual_.size(); ++c) {
      const double* weights = points.weights.row(c).data();
      for (Index i = 0; i < points.known(); ++i) residual_(c) -= weights[i] * values_.row(i)(k);
    }
    for (Index m = 0; m < points.newcomers.size(); ++m) {
      const double value = merging.value(points.origin(points.known() + m), place);
      residual_ -= value * points.newcomer_weights.row(m);
    }
    return residual_;
  }

 private:
  // How many places are tried.
  static constexpr std::size_t kTried = 4;
  // Points whose k(x, z), relative to their norms, is no more than this have nothing in common.
  static constexpr double kApart = 0.01;
  // Relative to k(z, z), the least that a new point brings: rounding is divided by it.
  static constexpr double kLeast = 1e-6;
  static constexpr double kRounding = 8 * std::numeric_limits<double>::epsilon();
  // How well a cost must be known, relative to itself.
  static constexpr double kPrecision = 1e-3;

  struct Partner {
    Index position;
    double lost;
    double fraction;
    double kappa;        // k(x, z) relative to the norms
    double products[3];  // of the weights
  };

  void choose_partners(const PointsLeft& points, Merging& merging, Index first) {
    partners_.clear();
    const Index origin = points.origin(first);
    merging.ask_about(origin);
    const double own_kernel = merging.self_kernel(origin), own = points.product(first, first);
    for (Index i = 0; i < points.count(); ++i) {
      if (i == first || !points.may_go(i)) continue;
      const double self_kernel = merging.self_kernel(points.origin(i));
      const double norms = std::sqrt(own_kernel * self_kernel);
      const double kappa = merging.value(points.origin(i), 0) / norms;
      if (!(kappa > kApart)) continue;
      const double between = points.product(first, i), other = points.product(i, i);
      const double aa = own * own_kernel, ab = between * norms, bb = other * self_kernel;
      const Merge found = Merge::roughly_best(kappa, aa, ab, bb);
      const double lost = aa + bb + 2 * ab * kappa - found.value;
      partners_.push_back({i, lost, found.h, kappa, {own, between, other}});
    }
    const std::size_t tried = std::min(kTried, partners_.size());
    std::partial_sort(partners_.begin(), partners_.begin() + static_cast<std::ptrdiff_t>(tried),
                      partners_.end(),
                      [](const Partner& a, const Partner& b) { return a.lost < b.lost; });
    partners_.resize(tried);
    for (Partner& partner : partners_) {
      partner.fraction = merging.best_fraction(origin, points.origin(partner.position),
                                               partner.fraction, partner.kappa, partner.products);
    }
  }

  // The k-th place, which has been explained, instead of both.
  double cost_of(const PointsLeft& points, const Merging& merging, Index first, Index second,
                 Index k) {
    constexpr double never = std::numeric_limits<double>::infinity();
    points.in_newcomers(second, of_second_);
    const double p = points.inverse(first), q = points.inverse(second);
    const double between = points.basis_inverse(first, second) + of_second_.dot(with_first_);
    const double determinant = p * q - between * between;
    if (!(determinant > 0)) return never;
    const double g11 = q / determinant, g12 = -between / determinant, g22 = p / determinant;
    const double of_basis_1 = first < points.known() ? solved_.row(first)(k) : 0;
    const double of_basis_2 = second < points.known() ? solved_.row(second)(k) : 0;
    const double a1 = of_basis_1 - of_first_.dot(within_.col(k));
    const double a2 = of_basis_2 - of_second_.dot(within_.col(k));
    const double to_first = g11 * a1 + g12 * a2, to_second = g12 * a1 + g22 * a2;
    const double left = left_(k) + a1 * to_first + a2 * to_second;
    const double least = std::max(kLeast, merging.resolution());
    if (!(left > least * merging.asked_self_kernel(k))) return never;
    residual(points, merging, k, k);
    double lost = 0, gained = 0;
    for (Index c = 0; c < points.scored; ++c) {
      const double v = points.weight(first, c), w = points.weight(second, c);
      lost += g11 * v * v + 2 * g12 * v * w + g22 * w * w;
      const double r = residual_(c) + v * to_first + w * to_second;
      gained += r * r / left;
    }
    // The entries of P are known to an eps relative to how far the points are from dependent, and
    // what is divided by `left` likewise. Where the two cancel that is all there is.
    const double dependence = (p * merging.self_kernel(points.origin(first)) +
                               q * merging.self_kernel(points.origin(second))) *
                              p * q / determinant;
    const double rounding =
        kRounding * ((lost + gained) * dependence + gained * merging.asked_self_kernel(k) / left);
    return rounding < kPrecision * (lost - gained) ? lost - gained + rounding : never;
  }

  std::vector<Partner> partners_;
  Vector of_first_;
  Vector of_second_;
  Vector with_first_;  // S^-1 of_first_

  // One column for each place that was explained.
  RowBuffer values_;    // at the points of the basis
  RowBuffer whitened_;  // T values
  RowBuffer solved_;    // T'T values
  RowMatrix schur_;     // what the basis leaves of the values at the newcomers
  RowMatrix within_;    // S^-1 schur_
  Vector corner_;       // what the basis leaves of k(z, z)
  Vector left_;         // and the newcomers
  RowVector residual_;
};

}  // namespace parsimon
