#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/slkl/columns.hpp"
#include "parsimon/algorithm/slkl/products.hpp"
#include "parsimon/algorithm/slkl/weighted_ridge.hpp"
#include "parsimon/linalg/triangular.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

enum class SlklStep { exact, newton };
enum class SlklSelection { uniform, shrinking };

inline SlklStep parse_slkl_step(const std::string& name) {
  require(name == "exact" || name == "newton", "The step of SLKL is exact or newton.");
  return name == "exact" ? SlklStep::exact : SlklStep::newton;
}

inline SlklSelection parse_slkl_selection(const std::string& name) {
  require(name == "uniform" || name == "shrinking",
          "The selection of SLKL is uniform or shrinking.");
  return name == "uniform" ? SlklSelection::uniform : SlklSelection::shrinking;
}

struct SlklSettings {
  double penalty = 0.01;  // lambda nu, the only number that matters (Proposition 3)
  double tolerance = 1e-5;
  Index epochs = 1000;
  SlklStep step = SlklStep::exact;
  SlklSelection selection = SlklSelection::shrinking;
  std::uint64_t seed = 0;
};

struct SlklSolution {
  Vector mu;       // one for each column, in units of lambda
  Vector weights;  // of the function sum_m weights_m k(x_m, .)
  std::vector<double> objective;
  double gap = 0;  // objective.back() is at most this far above the minimum
  Index steps = 0;
  Index updates = 0;  // steps that changed a mu
  bool converged = false;
  bool interrupted = false;
};

// Stochastic low-rank kernel learning for one output: with C the columns and K = I + C diag(mu) C',
//
//   minimise over mu >= 0:   F(mu) = y' K^-1 y + penalty sum_m mu_m     ((14), SLKL, lambda = 1)
//
// one coordinate at a time. With a = c'K^-1 y and b = c'K^-1 c the best step along a coordinate is
// mu += (|a| / sqrt(penalty) - 1) / b, clipped at 0.
//
// Since y' K^-1 y = min over w of ||y - C w||^2 + sum w^2 / mu, minimising over mu first shows F to
// be the Lasso, ||y - C w||^2 + 2 sqrt(penalty) |w|_1, with mu = |w| / sqrt(penalty). Two things
// follow: a dual point, which bounds the distance to the minimum, and the solution on a support
// with known signs, a linear system.
//
// Invariant: objective() == F(mu); it never increases with the exact step.
class SlklSolver {
 public:
  SlklSolver(const KernelColumns& columns, Index output, const SlklSettings& settings)
      : settings_(settings),
        threshold_(std::sqrt(settings.penalty)),
        products_(products_of(columns, output)),
        target_norm_(columns.target_norms()(output)),
        fit_(target_norm_),
        slots_(static_cast<std::size_t>(columns.size()), -1),
        random_(settings.seed) {}

  Index size() const { return static_cast<Index>(slots_.size()); }
  double objective() const { return fit_ + settings_.penalty * ridge_.weights().sum(); }
  const std::vector<Index>& active() const { return active_; }
  const WeightedRidge& ridge() const { return ridge_; }

  // Starts at another point than mu = 0.
  void start(const Vector& mu) {
    for (Index m = 0; m < size(); ++m) {
      if (mu(m) > 0 && products_->square(m) > 0) append(m, mu(m));
    }
    refresh();
  }

  // As long as keep_going() says so, which is asked every few steps.
  SlklSolution solve(std::function<bool()> keep_going) {
    keep_going_ = std::move(keep_going);
    // The paper's rule; shrinking has a certificate, and stops otherwise only where rounding does.
    const bool uniform = settings_.selection == SlklSelection::uniform;
    const double least = uniform ? std::max(settings_.tolerance, kRounding) : kRounding;
    SlklSolution solution;
    solution.objective.push_back(objective());
    for (Index epoch = 0; epoch < settings_.epochs && !solution.converged; ++epoch) {
      const double before = objective();
      const Vector mu_before = weights();
      const bool looked_at_all = uniform ? uniform_epoch(solution) : shrinking_epoch(solution);
      if (interrupted_) break;
      // Single steps have not drifted where their sum and the value agree, and it has come down;
      // steps on the whole support leave no sum.
      const double tracked = objective();
      evaluate();
      const bool drifted = !(std::abs(objective() - tracked) <= kNoise * before);
      if (!uniform || drifted || !(objective() <= before)) refresh();
      const bool exact = settings_.step == SlklStep::exact;
      if (!(objective() <= (exact ? before : std::numeric_limits<double>::max()))) {
        // Steps that are rounding only: what was there is the best there is, and the minimum if
        // they hardly mattered.
        solution.converged = solution.converged || objective() <= before * (1 + kNoise);
        restart(mu_before);
        break;
      }
      solution.objective.push_back(objective());
      const double change = std::abs(before - objective());
      solution.converged = solution.converged || (looked_at_all && change <= least * before);
    }
    refresh();
    solution.objective.back() = objective();
    if (!interrupted_) solution.gap = gap();
    // Nothing has converged that the certificate contradicts.
    const double most = std::max(settings_.tolerance, kContradiction) * objective();
    if (!uniform && solution.gap > most) solution.converged = false;
    solution.interrupted = interrupted_;
    report(solution);
    return solution;
  }

  // How far F(mu) can be above the minimum: F(mu) - D for the dual point that is the residual
  // K^-1 y, shrunk until no column is aligned with it by more than sqrt(penalty).
  double gap() {
    interrupted_ = !products_->alignments(active_, ridge_, keep_going_, alignments_);
    const double largest = alignments_.size() > 0 ? alignments_.cwiseAbs().maxCoeff() : 0;
    const double shrink = largest > threshold_ ? threshold_ / largest : 1;
    double spent = 0;  // w' D^-1 w = y' K^-1 y - ||residual||^2
    for (Index i = 0; i < ridge_.size(); ++i) spent += ridge_.solution()(i) * ridge_.alignment(i);
    const double dual = shrink * (2 * fit_ - shrink * (fit_ - spent));
    return std::max(0.0, objective() - dual);
  }

  // The step of a coordinate. Returns whether its mu has changed.
  bool visit(Index m) {
    const Index slot = slots_[static_cast<std::size_t>(m)];
    if (slot < 0) return visit_zero(m);
    const double mu = ridge_.weights()(slot);
    const double a = bounded_alignment(ridge_.alignment(slot), m);
    const double b = bounded_stiffness(a, ridge_.stiffness(slot), m);
    const double t = step_length(a, b, mu);
    if (std::abs(t) <= kRounding * mu) return false;
    count_change(a, b, t);
    if (mu + t > 0) {
      ridge_.change(slot, mu + t);
    } else {
      remove(slot);
    }
    return true;
  }

 private:
  static constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();
  // Relative changes of the objective that may be rounding.
  static constexpr double kNoise = 1e-9;
  // A relative gap that rounding alone does not leave.
  static constexpr double kContradiction = 1e-3;
  // Steps for each time that keep_going() is asked.
  static constexpr unsigned kSeldom = 16;
  // Columns that may join the active set in one epoch, at least.
  static constexpr Index kNewcomers = 64;

  static std::unique_ptr<ColumnProducts> products_of(const KernelColumns& columns, Index output) {
    if (columns.stores_products()) return std::make_unique<StoredProducts>(columns, output);
    return std::make_unique<ComputedProducts>(columns, output);
  }

  bool visit_zero(Index m) {
    const double a = bounded_alignment(products_->alignment(m, active_, ridge_), m);
    if (!(std::abs(a) > threshold_)) return false;
    products_->with_active(m, active_, with_active_);
    ridge_.solve(with_active_, product_);
    const double b = bounded_stiffness(a, products_->square(m) - with_active_.dot(product_), m);
    const double t = step_length(a, b, 0);
    if (!(t > 0)) return false;
    count_change(a, b, t);
    insert(m, t, b);
    return true;
  }

  // a^2 <= b y'K^-1 y by Cauchy and Schwarz, b <= c'c and y'K^-1 y <= y'y: rounding must not leave
  // these bounds.
  double bounded_alignment(double a, Index m) const {
    const double largest = std::sqrt(target_norm_ * products_->square(m));
    return std::clamp(a, -largest, largest);
  }

  double bounded_stiffness(double a, double b, Index m) const {
    const double largest = products_->square(m), fit = std::min(fit_, target_norm_);
    const double least = std::max(a * a / std::max(fit, a * a / largest), kRounding * largest);
    return std::min(std::max(b, least), largest);
  }

  // mu of all columns
  Vector weights() const {
    Vector mu = Vector::Zero(size());
    for (std::size_t i = 0; i < active_.size(); ++i) {
      mu(active_[i]) = ridge_.weights()(static_cast<Index>(i));
    }
    return mu;
  }

  void restart(const Vector& mu) {
    ridge_.select({}, Vector());
    products_->selected({});
    active_.clear();
    std::fill(slots_.begin(), slots_.end(), Index{-1});
    start(mu);
  }

  double step_length(double a, double b, double mu) const {
    if (settings_.step == SlklStep::exact) return std::max(-mu, (std::abs(a) / threshold_ - 1) / b);
    const double curvature = 2 * a * a * b;  // (21)
    if (!(curvature > 0)) return -mu;
    return std::max(-mu, (a * a - settings_.penalty) / curvature);
  }

  // K <- K + t c c' changes y'K^-1 y by -t a^2 / (1 + t b).
  void count_change(double a, double b, double t) {
    fit_ = std::max(0.0, fit_ - t * a * a / (1 + t * b));
  }

  void append(Index m, double mu) {
    products_->with_active(m, active_, with_active_);
    ridge_.solve(with_active_, product_);
    const double square = products_->square(m);
    insert(m, mu, std::max(square - with_active_.dot(product_), kRounding * square));
  }

  void insert(Index m, double mu, double stiffness) {
    ridge_.append(with_active_, product_, products_->square(m), products_->correlation(m), mu,
                  stiffness);
    products_->appended(m);
    slots_[static_cast<std::size_t>(m)] = static_cast<Index>(active_.size());
    active_.push_back(m);
  }

  void remove(Index slot) {
    ridge_.remove(slot);
    products_->removed(slot);
    const auto at = static_cast<std::size_t>(slot);
    slots_[static_cast<std::size_t>(active_[at])] = -1;
    if (at + 1 < active_.size()) {
      active_[at] = active_.back();
      slots_[static_cast<std::size_t>(active_[at])] = slot;
    }
    active_.pop_back();
  }

  void refresh() {
    ridge_.refresh();
    evaluate();
  }

  // y'K^-1 y as the minimum over w that it is: an error of the ridge's solution counts squared.
  void evaluate() {
    const auto w = ridge_.solution();
    const Vector product = ridge_.gram_times(w);
    double rest = 0;
    for (Index i = 0; i < w.size(); ++i) {
      rest += w(i) * (product(i) - 2 * ridge_.correlations()(i) + w(i) / ridge_.weights()(i));
    }
    fit_ = std::max(0.0, target_norm_ + rest);
  }

  // Algorithm 2: M coordinates drawn at random.
  bool uniform_epoch(SlklSolution& solution) {
    std::uniform_int_distribution<Index> draw(0, size() - 1);
    for (Index k = 0; k < size() && may_step(); ++k) step(draw(random_), solution);
    return true;
  }

  // Looks at all coordinates at once, visits those at 0 that should not be, the worst first, and
  // all that are not 0; once none had to be left out, solves for these. Returns whether none was.
  bool shrinking_epoch(SlklSolution& solution) {
    const double distance = gap();
    if (interrupted_) return false;
    if (distance <= std::max(settings_.tolerance, kRounding) * objective()) {
      solution.converged = true;
      return true;
    }
    std::vector<Index> newcomers = violated();
    const auto most = static_cast<std::size_t>(std::max(kNewcomers, ridge_.size()));
    const bool all = newcomers.size() <= most;
    if (!all) newcomers.resize(most);
    visit(newcomers, solution);
    std::vector<Index> others = active_;
    std::shuffle(others.begin(), others.end(), random_);
    visit(others, solution);
    if (all && !interrupted_) solve_on_support();
    return all;
  }

  void visit(const std::vector<Index>& coordinates, SlklSolution& solution) {
    for (const Index m : coordinates) {
      if (!may_step()) return;
      step(m, solution);
    }
  }

  bool go_on() {
    interrupted_ = interrupted_ || !keep_going_();
    return !interrupted_;
  }

  // The same before a step; asking takes as long as a small one.
  bool may_step() { return ++steps_unasked_ % kSeldom == 0 ? go_on() : !interrupted_; }

  void step(Index m, SlklSolution& solution) {
    solution.steps += 1;
    if (visit(m)) solution.updates += 1;
  }

  // Coordinates at 0 whose gradient is negative, by alignments_; the steepest first.
  std::vector<Index> violated() const {
    std::vector<Index> result;
    for (Index m = 0; m < size(); ++m) {
      const bool zero = slots_[static_cast<std::size_t>(m)] < 0;
      if (zero && std::abs(alignments_(m)) > threshold_) result.push_back(m);
    }
    std::sort(result.begin(), result.end(), [&](Index i, Index j) {
      return std::abs(alignments_(i)) > std::abs(alignments_(j));
    });
    return result;
  }

  // Minimises the Lasso on the active columns, by Newton steps from w towards the solution for the
  // present signs; weights that would change theirs become 0 and leave. No step increases the
  // Lasso, and F is never below it, equal to it at mu = |w| / sqrt(penalty).
  void solve_on_support() {
    std::vector<Index> kept(static_cast<std::size_t>(ridge_.size()));
    std::iota(kept.begin(), kept.end(), Index{0});
    Vector w = ridge_.solution();
    int steps = 0;
    while (!kept.empty() && step_on_support(kept, w) && ++steps < kNewtonSteps && go_on()) {
    }
    if (!kept.empty()) adopt(kept, w);
  }

  // One such step. Returns whether weights have left, so that the next step differs.
  bool step_on_support(std::vector<Index>& kept, Vector& w) const {
    const RowMatrix gram = ridge_.gram_of(kept);
    const auto of_kept = [&](Index i) {
      return ridge_.correlations()(kept[static_cast<std::size_t>(i)]);
    };
    Vector slope(w.size());
    linalg::multiply_vector({gram.data(), w.size()}, w.size(), w.size(), w.data(), slope.data());
    for (Index i = 0; i < w.size(); ++i) {
      const double sign = w(i) > 0 ? 1.0 : w(i) < 0 ? -1.0 : 0.0;
      slope(i) = of_kept(i) - slope(i) - threshold_ * sign;
    }
    RowMatrix damped = gram;
    for (Index i = 0; i < w.size(); ++i) damped(i, i) *= 1 + kDamping;
    if (!linalg::cholesky(damped)) return false;
    RowMatrix direction = slope;
    linalg::solve_cholesky(damped, direction);
    if (!all_finite(direction.data(), direction.size())) return false;

    double first = 1;  // up to where all signs hold, and the Lasso surely decreases
    for (Index i = 0; i < w.size(); ++i) {
      if (direction(i, 0) * w(i) < 0) first = std::min(first, -w(i) / direction(i, 0));
    }
    Vector next(w.size()), change(w.size()), product(w.size());
    for (double length = 1;; length = std::max(first, length / 4)) {
      for (Index i = 0; i < w.size(); ++i) {
        const double moved = w(i) + length * direction(i, 0);
        next(i) = moved * w(i) > 0 ? moved : 0.0;
        change(i) = next(i) - w(i);
      }
      linalg::multiply_vector({gram.data(), w.size()}, w.size(), w.size(), change.data(),
                              product.data());
      if (length <= first || change.dot(product) < 2 * change.dot(slope)) break;
    }
    const double nothing = kNothing * next.cwiseAbs().maxCoeff();
    Index left = 0;
    for (Index i = 0; i < w.size(); ++i) {
      if (!(std::abs(next(i)) > nothing)) continue;
      kept[static_cast<std::size_t>(left)] = kept[static_cast<std::size_t>(i)];
      next(left++) = next(i);
    }
    const bool fewer = left < w.size();
    kept.resize(static_cast<std::size_t>(left));
    w = next.head(left);
    return fewer;
  }

  // Goes on with mu = |w| / sqrt(penalty) on these, unless that is no better: F is then at most the
  // Lasso at w.
  void adopt(const std::vector<Index>& kept, const Vector& w) {
    const RowMatrix gram = ridge_.gram_of(kept);
    Vector product(w.size());
    linalg::multiply_vector({gram.data(), w.size()}, w.size(), w.size(), w.data(), product.data());
    double lasso = target_norm_;
    for (Index i = 0; i < w.size(); ++i) {
      const double correlation = ridge_.correlations()(kept[static_cast<std::size_t>(i)]);
      lasso += w(i) * (product(i) - 2 * correlation) + 2 * threshold_ * std::abs(w(i));
    }
    if (!(lasso < objective())) return;
    ridge_.select(kept, w.cwiseAbs() / threshold_);
    evaluate();
    products_->selected(kept);
    std::vector<Index> names;
    for (const Index i : kept) names.push_back(active_[static_cast<std::size_t>(i)]);
    for (const Index m : active_) slots_[static_cast<std::size_t>(m)] = -1;
    active_ = std::move(names);
    for (std::size_t i = 0; i < active_.size(); ++i) {
      slots_[static_cast<std::size_t>(active_[i])] = static_cast<Index>(i);
    }
  }

  void report(SlklSolution& solution) const {
    solution.mu = Vector::Zero(size());
    solution.weights = Vector::Zero(size());
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const auto slot = static_cast<Index>(i);
      solution.mu(active_[i]) = ridge_.weights()(slot);
      solution.weights(active_[i]) = ridge_.solution()(slot);
    }
  }

  static constexpr int kNewtonSteps = 20;
  // Relative damping of the system on the support, for columns that are collinear, and weights,
  // relative to the largest, that count as 0.
  static constexpr double kDamping = 1e-13;
  static constexpr double kNothing = 1e-15;

  SlklSettings settings_;
  double threshold_;
  std::unique_ptr<ColumnProducts> products_;
  double target_norm_;
  double fit_;  // y' K^-1 y
  WeightedRidge ridge_;
  std::vector<Index> active_;
  std::vector<Index> slots_;  // of a column in the active set, or -1
  std::mt19937_64 random_;
  std::function<bool()> keep_going_ = [] { return true; };
  bool interrupted_ = false;
  unsigned steps_unasked_ = 0;

  Vector alignments_;
  Vector with_active_;
  Vector product_;
};

// Minimises F for one output, from mu = start (which may be empty: from 0). The weights are those
// of k(x_m, .).
inline SlklSolution solve_slkl(const KernelColumns& columns, Index output,
                               const SlklSettings& settings, const Vector& start,
                               const std::function<bool()>& keep_going) {
  require(std::isfinite(settings.penalty) && settings.penalty > 0,
          "The penalty of SLKL must be positive and finite: without one the weights of the kernels "
          "have no finite minimum.");
  require(std::isfinite(settings.tolerance) && settings.tolerance >= 0 && settings.epochs > 0,
          "The tolerance must not be negative, and there must be at least one epoch.");
  require(output >= 0 && output < columns.outputs(), "There is no such output.");
  require(start.size() == 0 ||
              (start.size() == columns.size() && start.allFinite() && (start.array() >= 0).all()),
          "The weights to start from must be finite and not negative, one for each column.");
  SlklSolver solver(columns, output, settings);
  if (start.size() > 0) solver.start(start);
  SlklSolution solution = solver.solve(keep_going);
  solution.weights = solution.weights.cwiseProduct(columns.scale());
  return solution;
}

}  // namespace parsimon
