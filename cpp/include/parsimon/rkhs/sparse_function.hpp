#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "parsimon/rkhs/candidates.hpp"
#include "parsimon/rkhs/compression.hpp"
#include "parsimon/rkhs/dependents.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/rkhs/factor_state.hpp"
#include "parsimon/rkhs/fresh_factor.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/komp.hpp"
#include "parsimon/rkhs/merge.hpp"
#include "parsimon/rkhs/newcomers.hpp"
#include "parsimon/rkhs/remove.hpp"
#include "parsimon/rkhs/statistics.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Samples compared with a dictionary: what evaluation and the step after it both need.
struct Batch {
  std::vector<View> views;
  RowBuffer kernel_values;  // k(d_m, x_i): one row per point, one column per sample
};

// What a step does to a function:
//
//   f <- compress(shrink f + sum_m increments(m) k(d_m, .) + sum_i weights(i) k(x_active(i), .))
//
// No increments if there are none.
struct Move {
  ConstRows samples;
  const Batch& batch;  // the samples compared with the dictionary
  const std::vector<Index>& active;
  ConstRows weights;  // one row for each active sample
  double shrink;
  Limit limit;
  ConstRows increments = RowMatrix(0, 0);

  bool adds_nothing() const { return active.empty() && increments.rows() == 0; }
};

// The engine that every algorithm shares: a function on a dictionary that grows by samples and is
// compressed. Its words, here and everywhere:
//
//   dictionary   all points of the function, in this order: the basis, then those outside it
//   basis        points that are numerically independent and have a Gram factor
//   newcomer     a sample, or a point outside, on probation: it may join the basis
//   dependent    explained by the others up to the tolerance: it cannot join the basis
//   folded       dependent, and its weight moved to those that explain it
//   outside      dependent, but kept with a weight of its own: because it is protected, or because
//                folding it would cost more than the budget
//   protected    never removed; such points come first within the basis
//   passenger    columns of weights beyond the first `scored`, which are the function: they live on
//                the same dictionary, are projected along and decide nothing. The last `scored` of
//                all columns predict: a passenger (an average of the iterates, say), or the
//                function itself if there is none.
//   statistics   what samples have said about the weights, if they are kept: in the coordinates of
//                the basis, which they follow.
class SparseFunction {
 public:
  SparseFunction(KernelPtr kernel, Index features, Index columns, Index scored)
      : dictionary_(std::move(kernel), features), weights_(columns), scored_(scored) {}

  const Dictionary& dictionary() const { return dictionary_; }
  const GramFactor& factor() const { return factor_; }
  auto weights() { return weights_.all(); }
  auto weights() const { return weights_.all(); }
  auto function_weights() { return weights_.all().leftCols(scored_); }
  auto function_weights() const { return weights_.all().leftCols(scored_); }
  auto predictor_weights() { return weights_.all().rightCols(scored_); }
  auto predictor_weights() const { return weights_.all().rightCols(scored_); }
  Index model_order() const { return dictionary_.size(); }
  Index basis_size() const { return factor_.size(); }

  KernelExpansion expansion(Index first_column, Index columns) const {
    return {dictionary_, weights_.all().middleCols(first_column, columns)};
  }

  // The function with its points in the order in which they first came.
  KernelExpansion expansion_by_age() const {
    std::vector<Index> order(static_cast<std::size_t>(model_order()));
    std::iota(order.begin(), order.end(), Index{0});
    std::sort(order.begin(), order.end(),
              [&](Index a, Index b) { return dictionary_.id(a) < dictionary_.id(b); });
    Dictionary dictionary = dictionary_;
    RowBuffer weights = weights_;
    dictionary.select(order);
    weights.select(order);
    return {std::move(dictionary), weights.all().leftCols(scored_)};
  }

  // From now on there are statistics. Only projection keeps a factor, without which there are none.
  void keep_statistics() {
    statistics_.emplace(scored_);
    factor_.keep_turns();
  }
  void forget_statistics() {
    statistics_.reset();
    factor_.keep_turns(false);
  }
  bool keeps_statistics() const { return statistics_.has_value(); }
  Statistics& statistics() { return *statistics_; }
  const Statistics& statistics() const { return *statistics_; }

  // What was said about another function counts for this one, too. Coordinates depend on nothing
  // but the points of the basis and their order.
  void add_statistics(const SparseFunction& other) {
    const Index size = basis_size();
    require(other.basis_size() == size && other.dictionary_.features() == dictionary_.features() &&
                other.dictionary_.kernel().describe() == dictionary_.kernel().describe() &&
                other.dictionary_.points().topRows(size) == dictionary_.points().topRows(size),
            "Only statistics of the same dictionary can be added: same kernel, same points, in the "
            "same order.");
    *statistics_ += *other.statistics_;
  }

  // Must precede evaluate() and add(): the order of the dictionary may change here.
  void compare(const ConstRows& samples, Batch& batch) {
    if (changes_ >= kDrifted) refactor();
    dictionary_.make_views(samples, batch.views);
    auto values = batch.kernel_values.resize(model_order(), samples.rows());
    if (model_order() > 0) {
      dictionary_.kernel().block(dictionary_.views(), batch.views.data(), values);
    }
  }

  // values = f at the samples of the batch
  void evaluate(const Batch& batch, Rows values) const {
    linalg::multiply_transpose_by(batch.kernel_values.all(), function_weights(), values);
  }

  // The same for the weights that predict.
  void evaluate_predictor(const Batch& batch, Rows values) const {
    linalg::multiply_transpose_by(batch.kernel_values.all(), predictor_weights(), values);
  }

  // The orthonormal coordinates of the samples in the span of the basis, one column each. The
  // function must not have moved since the batch was compared with it.
  RowBuffer::Map coordinates(const Batch& batch) {
    auto whitened = coordinates_.resize(basis_size(), batch.kernel_values.columns());
    factor_.whiten(batch.kernel_values.all().topRows(basis_size()), whitened);
    return whitened;
  }

  // The weights that predict become those of the function with these coordinates.
  void set_predictor(const ConstRows& coordinates) {
    auto weights = solved_weights_.resize(basis_size(), scored_);
    factor_.unwhiten(coordinates, weights);
    for (Index i = 0; i < model_order(); ++i) {
      double* predictor = weights_.row(i).data() + weights_.columns() - scored_;
      for (Index c = 0; c < scored_; ++c) predictor[c] = i < basis_size() ? weights(i, c) : 0.0;
    }
  }

  // There are other outputs. Without a factor, fresh ones begin at 0.
  void change_outputs(const OutputChange& change) {
    const Index outputs = change.map.cols(), groups = weights_.columns() / scored_;
    RowMatrix ones = RowMatrix::Ones(basis_size(), 1), constant(basis_size(), 1), lifted = constant;
    if (basis_size() > 0) {
      factor_.whiten(ones, constant);
      factor_.unwhiten(constant, lifted);
    }
    RowBuffer changed(groups * outputs);
    changed.resize(model_order()).setZero();
    for (Index i = 0; i < model_order(); ++i) {
      for (Index g = 0; g < groups; ++g) {
        const double* old = weights_.row(i).data() + g * scored_;
        double* now = changed.row(i).data() + g * outputs;
        for (Index c = 0; c < outputs; ++c) {
          for (Index b = 0; b < scored_; ++b) now[c] += old[b] * change.map(b, c);
        }
        if (i >= basis_size()) continue;
        for (const Index c : change.fresh) now[c] = change.fresh_value * lifted(i, 0);
      }
    }
    if (statistics_) statistics_->change_outputs(change, constant.col(0));
    std::swap(weights_, changed);
    scored_ = outputs;
  }

  // The part of a step that may throw: it changes nothing yet. Two functions that are prepared
  // move together or not at all.
  void prepare(const Move& move) {
    if (move.adds_nothing()) return;
    if (move.limit.needs_no_factor()) return prepare_uncompressed(move);
    const auto count = static_cast<Index>(move.active.size());
    start_election(is_turn_of_outside(count, move.limit));
    const Index old = candidates_.size();
    for (Index i = 0; i < count; ++i) {
      candidates_.add({false, move.active[static_cast<std::size_t>(i)], dictionary_.next_id() + i},
                      move.batch.views.data(), &move.weights.coeffRef(i, 0), move.weights.cols());
    }
    candidates_.compare(dictionary_, basis_size(), count);
    require_finite(candidates_.gram());
    auto cross = candidates_.cross().all();
    linalg::select_columns(move.batch.kernel_values.all(), move.active, count, cross, old);
    dependents_.refresh(dictionary_, factor_);
    if (statistics_) statistics_->reserve(basis_size() + candidates_.size());
    drifted_ = has_drifted();
    spoilt_ = model_order() - basis_size() > kMostOutside && is_spoilt();
  }

  // The rest of it. The report is valid until the next step.
  const CompressionReport& apply(const Move& move) {
    start_report();
    shift(move.shrink, move.increments);
    if (move.adds_nothing()) return report_;
    if (move.limit.needs_no_factor()) {
      append_uncompressed(move);
      reduce(move.limit);
    } else {
      project(move);
    }
    report_.model_order = model_order();
    return report_;
  }

  // Both at once. A step that adds nothing is not compressed. Throws, and changes nothing, if the
  // kernel does or is not finite at the samples.
  const CompressionReport& add(const Move& move) {
    prepare(move);
    return apply(move);
  }

  // The weights that predict go a share of the way towards this multiple of the function's.
  void average_in(double share, double scale) {
    for (Index i = 0; i < model_order(); ++i) {
      const double* of_function = weights_.row(i).data();
      double* predictor = weights_.row(i).data() + weights_.columns() - scored_;
      for (Index c = 0; c < scored_; ++c) {
        predictor[c] += share * (scale * of_function[c] - predictor[c]);
      }
    }
  }

  // f <- KOMP(f, limit)
  CompressionReport compress(const Limit& limit) {
    if (changes_ > 0) refactor();
    start_election(true);
    candidates_.compare(dictionary_, basis_size(), 0);
    require_finite(candidates_.gram());
    start_report();
    settle(RowMatrix(0, dictionary_.features()), nullptr, limit, stakes(limit.budget));
    // Points that were worth a closer look may be too nearly dependent to build upon.
    if (candidates_.size() > 0) refactor();
    report_.model_order = model_order();
    return report_;
  }

  // Adds points with their weights, without compression.
  void insert(const ConstRows& points, const ConstRows& weights,
              const std::vector<bool>& is_protected) {
    std::vector<View> views;
    dictionary_.make_views(points, views);
    for (Index i = 0; i < points.rows(); ++i) {
      dictionary_.append(points.row(i), views.data(), i, is_protected[static_cast<std::size_t>(i)],
                         dictionary_.next_id());
      weights_.append(&weights.coeffRef(i, 0));
    }
    refactor();
  }

  // Becomes another function, on points of its own: all columns that predict or are stepped get
  // these weights. What samples have said is carried over to its basis, exactly as far as that lies
  // in the span of the old one. Throws, and changes nothing, if the kernel does.
  void replace(const ConstRows& points, const ConstRows& weights) {
    SparseFunction other(dictionary_.kernel_pointer(), dictionary_.features(), weights_.columns(),
                         scored_);
    const RowMatrix all = weights.replicate(1, weights_.columns() / scored_);
    const std::vector<bool> none(static_cast<std::size_t>(points.rows()), false);
    other.insert(points, all, none);
    if (statistics_) {
      Statistics followed = *statistics_;
      if (followed.size() > 0) {
        followed.change_basis(turn_between(other));
      } else {
        followed.grow(other.basis_size());
      }
      other.keep_statistics();
      std::swap(*other.statistics_, followed);
    }
    std::swap(*this, other);
  }

  // The coordinates of the function that predicts, in the span of the basis.
  RowMatrix predictor_coordinates() {
    Batch batch;
    compare(dictionary_.points(), batch);
    RowMatrix values(model_order(), scored_), found(basis_size(), scored_);
    linalg::multiply_transpose_by(batch.kernel_values.all(), predictor_weights(), values);
    factor_.whiten(values.topRows(basis_size()), found);
    return found;
  }

  // Builds the factor anew from the kernel, protected points first. Repairs any drift.
  void refactor(Index largest = std::numeric_limits<Index>::max()) {
    FreshFactor fresh(dictionary_, Newcomers::kTolerance, largest);
    if (statistics_) carry_over(dictionary_, fresh);
    // The kernel may throw above; from here on nothing does.
    std::swap(factor_, fresh.factor);
    if (statistics_) factor_.keep_turns();
    dictionary_.select(fresh.order);
    weights_.select(fresh.order);
    dependents_.invalidate();
    changes_ = 0;
  }

  // The same with other points instead of these. What was said is carried over: exactly for points
  // that stay; of others, the past is taken to lie in the span that was. All weights are then those
  // of the function that was solved last, as far as the new points span it. Throws, and changes
  // nothing, if the kernel does.
  void move_to(Dictionary points) {
    FreshFactor fresh(points);
    carry_over(points, fresh);
    std::swap(factor_, fresh.factor);
    factor_.keep_turns();
    points.select(fresh.order);
    std::swap(dictionary_, points);
    std::fill_n(weights_.resize(model_order()).data(), model_order() * weights_.columns(), 0.0);
    set_predictor(statistics_->solution());
    function_weights() = predictor_weights().eval();
    dependents_.invalidate();
    changes_ = 0;
  }

  // Of two functions whose points have the same ids if they are the same.
  bool has_points_of(const SparseFunction& other) const {
    std::vector<Index> ids = dictionary_.ids(), others = other.dictionary_.ids();
    std::sort(ids.begin(), ids.end());
    std::sort(others.begin(), others.end());
    return std::includes(ids.begin(), ids.end(), others.begin(), others.end());
  }

  // Points that the other function has, too, get the weights with which it predicts.
  void take_weights(const SparseFunction& other) {
    std::vector<std::pair<Index, Index>> places;
    for (Index i = 0; i < other.model_order(); ++i) places.emplace_back(other.dictionary_.id(i), i);
    std::sort(places.begin(), places.end());
    const auto predictor = other.predictor_weights();
    for (Index i = 0; i < model_order(); ++i) {
      const Index id = dictionary_.id(i);
      const auto place = std::lower_bound(places.begin(), places.end(), std::pair(id, Index{0}));
      if (place == places.end() || place->first != id) continue;
      for (Index c = 0; c < scored_; ++c) weights_.row(i)(c) = predictor(place->second, c);
    }
  }

  // Relative residual of the factor along the direction of one point of the basis, O(M^2 + M p).
  double probe(Index j) {
    auto column = probe_values_.resize(model_order(), 1);
    dictionary_.make_views(dictionary_.point(j), probe_views_);
    dictionary_.kernel().block(dictionary_.views(), probe_views_.data(), column);
    return factor_.residual(j, Eigen::Map<const Vector>(column.data(), basis_size()));
  }

  FactorState factor_state() const {
    return {factor_.root(), factor_.inverse_diagonal(), changes_, probes_};
  }

  // A model that is read back. Its factor is not trusted: only if it is a square root of the
  // inverse of the Gram matrix of these points is it taken over, so that training goes on bit for
  // bit; otherwise it is built anew.
  void restore(Dictionary dictionary, const ConstRows& weights, const FactorState& state) {
    dictionary_ = std::move(dictionary);
    dependents_.invalidate();
    weights_.resize(weights.rows()) = weights;
    changes_ = state.changes;
    probes_ = state.probes;
    has_restored_factor_ = belongs_to_basis(state);
    if (has_restored_factor_) {
      factor_.assign(state.root, state.inverse_diagonal);
    } else {
      // That of the file is wrong, but not much smaller than it must be.
      refactor(2 * state.root.rows() + 256);
    }
  }

  bool has_restored_factor() const { return has_restored_factor_; }

 private:
  // Relative to the function's size, which budgets can be told from rounding.
  static constexpr double kResolution = 1e-7;
  // Residual of the factor above which it is built anew.
  static constexpr double kDrift = 1e-8;
  // Points outside the basis: so few that they take part in every step, so many that it is too
  // many, and the samples after which they take part in any case.
  static constexpr Index kFewOutside = 32;
  static constexpr Index kMostOutside = 512;
  static constexpr Index kTurn = 256;
  // As many changes as no factor sees between two probes: it is to be built anew.
  static constexpr Index kDrifted = Index{1} << 40;
  static constexpr const char* kNotFinite =
      "The kernel is not finite at these samples, or 1e90 and more; scale the features or choose "
      "another kernel.";

  // Points outside the basis that may be removed stand for election again, because the basis has
  // changed since: with every step while there are few of them, else now and then.
  void start_election(bool with_outside) {
    elects_outside_ = with_outside;
    candidates_.clear(dictionary_, weights_.columns());
    for (Index i = basis_size(); with_outside && i < model_order(); ++i) {
      if (dictionary_.is_protected(i)) continue;
      candidates_.add({true, i, dictionary_.id(i)}, dictionary_.views(), weights_.row(i).data(),
                      weights_.columns());
    }
  }

  // The statistics become those of a fresh basis, of these points.
  void carry_over(const Dictionary& points, const FreshFactor& fresh) {
    if (statistics_->size() == 0) return statistics_->grow(fresh.factor.size());
    Statistics followed = *statistics_;
    followed.change_basis(turn_towards(points, fresh));
    std::swap(*statistics_, followed);
  }

  // What turns coordinates of this basis into those of another function's: T_other K(other, this)
  // T'.
  RowMatrix turn_between(const SparseFunction& other) const {
    std::vector<Index> old(static_cast<std::size_t>(basis_size()));
    std::iota(old.begin(), old.end(), Index{0});
    std::vector<View> views;
    const std::vector<View> old_views = dictionary_.views_of(old);
    dictionary_.make_views(other.dictionary_.points().topRows(other.basis_size()), views);
    return turn(old_views, views, other.factor_);
  }

  // There are many only where the budget does not pay for them. A model that is read back goes on
  // as it would have: ids count all samples that ever came.
  bool is_turn_of_outside(Index count, const Limit& limit) const {
    const Index outside = model_order() - basis_size();
    if (outside <= kFewOutside || dictionary_.next_id() % kTurn < count ||
        model_order() + count > limit.points) {
      return true;
    }
    double sum = 0;
    for (Index i = basis_size(); i < model_order(); ++i) {
      const double* weights = weights_.row(i).data();
      double square = 0;
      for (Index c = 0; c < scored_; ++c) square += weights[c] * weights[c];
      sum += std::sqrt(square);
    }
    const auto mean = sum / static_cast<double>(outside);
    return limit.budget > std::sqrt(Newcomers::kTolerance) * mean;
  }

  // What turns coordinates of this basis into those of a fresh one: T_fresh K(fresh, this) T'.
  RowMatrix turn_towards(const Dictionary& points, const FreshFactor& fresh) const {
    std::vector<Index> old(static_cast<std::size_t>(basis_size()));
    std::iota(old.begin(), old.end(), Index{0});
    const std::vector<Index> basis(fresh.order.begin(), fresh.order.begin() + fresh.factor.size());
    const std::vector<View> old_views = dictionary_.views_of(old);
    return turn(old_views, points.views_of(basis), fresh.factor);
  }

  RowMatrix turn(const std::vector<View>& old_views, const std::vector<View>& views,
                 const GramFactor& factor) const {
    RowMatrix cross(basis_size(), factor.size()), half(cross.rows(), cross.cols());
    dictionary_.kernel().block(old_views.data(), views.data(), cross);
    factor_.whiten(cross, half);
    RowMatrix turned(factor.size(), basis_size()), result(turned.rows(), turned.cols());
    linalg::transpose(half, turned.data(), turned.cols());
    factor.whiten(turned, result);
    return result;
  }

  void forget_factor() {
    if (factor_.size() > 0) factor_ = GramFactor();
    dependents_.invalidate();
    changes_ = 0;
  }

  void start_report() {
    report_.removed.clear();
    report_.first_new = dictionary_.next_id();
    report_.error = 0;
    report_.floor = 0;
    report_.model_order = model_order();
  }

  void project(const Move& move) {
    if (is_probe_due()) {
      probes_ += 1;
      changes_ = drifted_ ? kDrifted : 0;
    }
    if (spoilt_) changes_ = kDrifted;
    for (Index i = 0; i < candidates_.size() && candidates_[i].in_dictionary; ++i) {
      std::copy_n(weights_.row(candidates_[i].index).data(), weights_.columns(),
                  candidates_.weights().row(i).data());
    }
    settle(move.samples, move.batch.views.data(), move.limit);
    // The two errors need not be orthogonal: they add up at worst, to the budget but for the last
    // bit.
    const double budget = move.limit.budget;
    const double folded = dependents_.fold(weights_.all(), scored_, budget - report_.error);
    if (folded > 0) report_.error = std::min(budget, report_.error + folded);
  }

  void shift(double shrink, const ConstRows& increments) {
    const bool only_shrinks = increments.rows() == 0;
    for (Index i = 0; i < model_order(); ++i) {
      double* row = weights_.row(i).data();
      for (Index c = 0; c < scored_; ++c) {
        row[c] = shrink * row[c] + (only_shrinks ? 0.0 : increments(i, c));
      }
    }
  }

  // Products of kernel values must be finite as well: where they are not, nothing can be compared.
  static void require_finite(const RowBuffer& values) {
    require(is_bounded(values.all()), kNotFinite);
  }

  // What candidates cost if they are found dependent. A tenth of the budget is little enough that
  // folding them takes no removal from KOMP; budgets that drown in the rounding of the kernel are
  // not worth the trouble.
  PivotedRoot::Stakes stakes(double budget) const {
    PivotedRoot::Stakes stakes;
    double all = 0;
    for (Index i = 0; i < candidates_.size(); ++i) {
      const double* weights = candidates_.weights().row(i).data();
      double square = 0;
      for (Index c = 0; c < scored_; ++c) square += weights[c] * weights[c];
      stakes.weights.push_back(std::sqrt(square));
      all += stakes.weights.back() * std::sqrt(candidates_.gram().row(i)(i));
    }
    if (budget > kResolution * all) stakes.affordable = 0.1 * budget;
    stakes.finest = std::max(Newcomers::kFinest, dictionary_.kernel().resolution());
    return stakes;
  }

  // Everything after the candidates are known: who is independent, who is folded, who is removed.
  void settle(const ConstRows& samples, const View* sample_views, const Limit& limit,
              const PivotedRoot::Stakes& stakes = {}) {
    const double squared_budget = limit.budget * limit.budget;
    const Index known = basis_size();
    set_aside_outside(known);
    const auto outside = static_cast<Index>(outside_.size());
    // Points that the others explain are the first to go where their number counts: where there are
    // too many, or nothing else does.
    const bool too_many = known + outside + candidates_.size() > limit.points;
    const double for_folding = too_many || (limit.caps_points() && limit.budget == 0)
                                   ? std::numeric_limits<double>::infinity()
                                   : squared_budget;
    newcomers_.factorise(factor_, candidates_.cross().all(), candidates_.gram().all(), stakes,
                         dictionary_.kernel().resolution());
    double squared_error = fold(samples, limit.budget, for_folding,
                                sample_views != nullptr && for_folding < Newcomers::kUnaffordable);
    const Index independent = newcomers_.independent();
    for (const Index z : newcomers_.folded()) {
      report_.removed.push_back(candidate(independent + z).id);
    }

    weights_.resize(known + independent);
    for (Index i = 0; i < independent; ++i) {
      std::copy_n(candidates_.weights().row(newcomers_.order(i)).data(), weights_.columns(),
                  weights_.row(known + i).data());
    }
    squared_error = komp_.run(factor_, newcomers_, weights_, protected_basis(), scored_,
                              squared_budget, squared_error, limit.points - outside);
    for (const Index position : komp_.removed()) {
      report_.removed.push_back(position < known ? dictionary_.id(position)
                                                 : candidate(position - known).id);
    }
    adopt(known, samples, sample_views);
    report_.error = std::sqrt(squared_error);
  }

  // Weights of dependent points go to those that explain them, as far as the budget lasts. Where it
  // does not, they stay outside; but when too many have piled up, the budget has a floor.
  double fold(const ConstRows& samples, double budget, double squared_budget, bool has_floor) {
    const auto weights = candidates_.weights().all();
    double squared_error = newcomers_.choose_folded(weights, scored_, squared_budget);
    merge_duplicates(samples);
    if (has_floor && static_cast<Index>(newcomers_.unfolded().size()) > kMostOutside) {
      report_.floor = newcomers_.rounding(weights, scored_);
      squared_error = newcomers_.choose_outside(weights, scored_, budget);
    }
    newcomers_.move_folded(weights_.all().topRows(basis_size()), weights);
    return squared_error;
  }

  // Points outside the basis that take no part in the election: protected ones never do.
  void set_aside_outside(Index known) {
    outside_.clear();
    outside_weights_.resize(0, weights_.columns());
    for (Index i = known; i < model_order(); ++i) {
      if (elects_outside_ && !dictionary_.is_protected(i)) continue;
      outside_.push_back(i);
      outside_weights_.append(weights_.row(i).data());
    }
  }

  // How many points of the basis are protected: the first ones.
  Index protected_basis() const {
    Index count = 0;
    while (count < basis_size() && dictionary_.is_protected(count)) ++count;
    return count;
  }

  // A dependent point that the budget is too small to fold may still be an exact copy of another
  // one; then nothing is lost if that one takes its weight.
  void merge_duplicates(const ConstRows& samples) {
    if (newcomers_.unfolded().empty()) return;
    const auto point = [&](Index i) -> RowVector {
      const Candidate& c = candidate(i);
      if (c.in_dictionary) return dictionary_.point(c.index);
      return samples.row(c.index);
    };
    std::vector<Index> keepers(static_cast<std::size_t>(newcomers_.independent()));
    std::iota(keepers.begin(), keepers.end(), Index{0});
    const std::vector<Index> unfolded = newcomers_.unfolded();
    for (const Index z : unfolded) {
      const Index position = newcomers_.independent() + z;
      const RowVector copy = point(position);
      auto weight = candidates_.weights().row(newcomers_.order(position));
      Index known = 0;
      while (known < basis_size() && dictionary_.point(known) != copy) ++known;
      const auto keeper =
          std::find_if(keepers.begin(), keepers.end(), [&](Index i) { return point(i) == copy; });
      if (known < basis_size()) {
        weights_.row(known) += weight;
      } else if (keeper != keepers.end()) {
        candidates_.weights().row(newcomers_.order(*keeper)) += weight;
      } else {
        keepers.push_back(position);
        continue;
      }
      std::fill_n(weight.data(), weights_.columns(), 0.0);
      newcomers_.give_up(z);
    }
  }

  // The i-th candidate in the order of the newcomers: the independent ones first.
  const Candidate& candidate(Index i) const { return candidates_[newcomers_.order(i)]; }

  // Makes the dictionary, the weights and the factor those of the survivors.
  void adopt(Index known, const ConstRows& samples, const View* sample_views) {
    join_factor();
    order_.clear();
    const auto place = [&](const Candidate& point) {
      if (point.in_dictionary) {
        order_.push_back(point.index);
      } else {
        order_.push_back(dictionary_.size());
        dictionary_.append(samples.row(point.index), sample_views, point.index, false, point.id);
      }
    };
    for (const Index position : komp_.survivors()) {
      if (position < known) {
        order_.push_back(position);
      } else {
        place(candidate(position - known));
      }
    }
    order_.insert(order_.end(), outside_.begin(), outside_.end());
    for (Index i = 0; i < outside_weights_.rows(); ++i) {
      weights_.append(outside_weights_.row(i).data());
    }
    for (const Index z : newcomers_.unfolded()) {
      const Index i = newcomers_.independent() + z;
      place(candidate(i));
      weights_.append(candidates_.weights().row(newcomers_.order(i)).data());
    }
    const std::vector<Index>& removed = komp_.removed();
    const auto changed = std::count_if(removed.begin(), removed.end(),
                                       [&](Index position) { return position < known; }) +
                         newcomers_.size();
    if (changed > 0) dependents_.invalidate();
    changes_ += changed;
    dictionary_.select(order_);
  }

  void join_factor() {
    if (statistics_) statistics_->follow(factor_.turns());
    factor_.forget_turns();
    if (newcomers_.size() == 0) return;
    factor_.append(newcomers_.coefficient_rows(), newcomers_.factor());
    if (statistics_) statistics_->grow(newcomers_.shares_of_lost());
  }

  // -- without a factor --------------------------------------------------------------------------

  void prepare_uncompressed(const Move& move) {
    const Kernel& kernel = dictionary_.kernel();
    ensure_size(sample_self_kernel_, move.samples.rows());
    kernel.diagonal(move.batch.views.data(), sample_self_kernel_.head(move.samples.rows()));
    for (const Index i : move.active) require(sample_self_kernel_(i) < kLargestWeight, kNotFinite);
    if (!move.limit.caps_points()) return;
    self_kernel_.resize(static_cast<std::size_t>(model_order()));
    kernel.diagonal(dictionary_.views(), Eigen::Map<Vector>(self_kernel_.data(), model_order()));
  }

  // Without a budget nothing can be compressed and no factor is needed: only a sample that is
  // exactly in the dictionary already is added to its weight.
  void append_uncompressed(const Move& move) {
    for (std::size_t i = 0; i < move.active.size(); ++i) {
      const Index id = report_.first_new + static_cast<Index>(i);
      const auto sample = move.samples.row(move.active[i]);
      Index twin = 0;
      while (twin < model_order() && dictionary_.point(twin) != sample) ++twin;
      if (twin == model_order()) {
        dictionary_.append(sample, move.batch.views.data(), move.active[i], false, id);
        weights_.resize(weights_.rows() + 1);
        std::fill_n(weights_.row(twin).data(), weights_.columns(), 0.0);
        if (move.limit.caps_points()) {
          self_kernel_.push_back(sample_self_kernel_(move.active[i]));
        }
      } else {
        report_.removed.push_back(id);
      }
      for (Index c = 0; c < scored_; ++c) {
        weights_.row(twin)(c) += move.weights(static_cast<Index>(i), c);
      }
    }
  }

  // Points go one by one until there are no more than allowed. Nothing throws: merging asks a
  // kernel that never does.
  void reduce(const Limit& limit) {
    if (model_order() <= limit.points) return;
    LoosePoints points{dictionary_, weights_, scored_, self_kernel_, report_.removed};
    for (Index allowed = limit.points; model_order() > allowed;) {
      if (limit.grows && limit.grows()) {
        allowed += 1;
        continue;
      }
      const Index j = points.smallest();
      if (j < 0) return;
      forget_factor();
      report_.error += limit.way == Way::merge ? merge(points, j) : remove(points, j);
    }
  }

  // Every so many changes the factor is measured along one direction, at the cost of one change.
  // A step that fails must leave no trace: what is found is written down only once it succeeds, and
  // acted on by the next.
  bool is_probe_due() const {
    return basis_size() > 0 && changes_ >= std::max<Index>(64, basis_size());
  }
  bool has_drifted() {
    return is_probe_due() && !(probe((probes_ + 1) * 7919 % basis_size()) <= kDrift);
  }

  // Each point was independent of those before it, but later ones may have come so near that all
  // others together explain it too well to build upon. Only where the budget is too small to remove
  // such points are there any. Asks the kernel if there is reason to.
  bool is_spoilt() {
    const auto root = factor_.root();
    double largest_inverse = 0, self_kernel = 0;  // the latter from below
    for (Index i = 0; i < basis_size(); ++i) {
      largest_inverse = std::max(largest_inverse, factor_.inverse_diagonal()(i));
      self_kernel = std::max(self_kernel, 1 / (root(i, i) * root(i, i)));
    }
    if (!(largest_inverse * self_kernel > FreshFactor::kSpoilt)) return false;
    std::vector<Index> basis(static_cast<std::size_t>(basis_size()));
    std::iota(basis.begin(), basis.end(), Index{0});
    return FreshFactor::find_spoilt(dictionary_, basis, factor_, FreshFactor::kSpoilt) >= 0;
  }

  bool starts_with_protected(Index size) const {
    for (Index i = 1; i < size; ++i) {
      if (dictionary_.is_protected(i) && !dictionary_.is_protected(i - 1)) return false;
    }
    return true;
  }

  // Whether a factor that was read back is that of the first points.
  bool belongs_to_basis(const FactorState& state) const {
    const Index size = state.root.rows();
    if (size == 0) return true;
    if (size > model_order() || !starts_with_protected(size)) return false;
    std::vector<Index> basis(static_cast<std::size_t>(size));
    std::iota(basis.begin(), basis.end(), Index{0});
    const std::vector<View> views = dictionary_.views_of(basis);
    RowMatrix gram(size, size);
    dictionary_.kernel().block(views.data(), views.data(), gram);
    return belongs_to(state, gram);
  }

  Dictionary dictionary_;
  RowBuffer weights_;
  GramFactor factor_;
  Index scored_;
  Index changes_ = 0;
  Index probes_ = 0;

  std::optional<Statistics> statistics_;
  bool has_restored_factor_ = false;

  Dependents dependents_;
  Candidates candidates_;
  RowBuffer outside_weights_;
  Newcomers newcomers_;
  Komp komp_;
  CompressionReport report_;
  std::vector<Index> order_;
  std::vector<Index> outside_;
  bool drifted_ = false;
  bool spoilt_ = false;
  bool elects_outside_ = true;
  Vector sample_self_kernel_;
  std::vector<double> self_kernel_;
  std::vector<View> probe_views_;
  RowBuffer probe_values_;
  RowBuffer coordinates_;
  RowBuffer solved_weights_;
};

}  // namespace parsimon
