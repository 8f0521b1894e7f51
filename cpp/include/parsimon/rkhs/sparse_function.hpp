#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "parsimon/rkhs/candidates.hpp"
#include "parsimon/rkhs/compression.hpp"
#include "parsimon/rkhs/function_on_basis.hpp"
#include "parsimon/rkhs/komp.hpp"
#include "parsimon/rkhs/merge.hpp"
#include "parsimon/rkhs/merging.hpp"
#include "parsimon/rkhs/newcomers.hpp"
#include "parsimon/rkhs/remove.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

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
class SparseFunction : public FunctionOnBasis {
 public:
  using FunctionOnBasis::FunctionOnBasis;

  // What a step needs of the kernel: nothing changes yet.
  void prepare(const Move& move) {
    remember(static_cast<Index>(move.active.size()));
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
    factor_.reserve(basis_size() + candidates_.size());
    if (statistics_) statistics_->reserve(basis_size() + candidates_.size());
    drifted_ = has_drifted();
    spoilt_ = model_order() - basis_size() > kMostOutside && is_spoilt();
  }

  // The rest of it. If it throws, because memory has run out or it was interrupted, it has changed
  // nothing; if something else does after it, undo() takes it back, statistics only if they were
  // told to remember. The report is valid until the next step.
  const CompressionReport& apply(const Move& move) {
    try {
      start_report();
      shift(move.shrink, move.increments);
      if (!move.adds_nothing()) grow_and_shrink(move);
    } catch (...) {
      undo();
      throw;
    }
    return report_;
  }

  // Both at once. A step that adds nothing is not compressed. Throws, and changes nothing, if the
  // kernel does or is not finite at the samples.
  const CompressionReport& add(const Move& move) {
    prepare(move);
    return apply(move);
  }

  // f <- KOMP(f, limit). If it throws, the function is to be thrown away.
  CompressionReport compress(const Limit& limit) {
    if (changes_ > 0) refactor();
    start_election(true);
    candidates_.compare(dictionary_, basis_size(), 0);
    require_finite(candidates_.gram());
    start_report();
    settle(RowMatrix(0, dictionary_.features()), nullptr, limit, stakes(limit.budget));
    update_statistics();
    // Points that were worth a closer look may be too nearly dependent to build upon.
    if (candidates_.size() > 0) refactor();
    report_.model_order = model_order();
    return report_;
  }

 private:
  void grow_and_shrink(const Move& move) {
    if (move.limit.needs_no_factor()) {
      append_uncompressed(move);
      reduce(move.limit);
    } else {
      project(move);
    }
    report_.model_order = model_order();
  }

  // Relative to the function's size, which budgets can be told from rounding.
  static constexpr double kResolution = 1e-7;
  // Points outside the basis: so few that they take part in every step, so many that it is too
  // many, and the samples after which they take part in any case.
  static constexpr Index kFewOutside = 32;
  static constexpr Index kMostOutside = 512;
  static constexpr Index kTurn = 256;
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

  // There are many only where the budget does not pay for them. Ids count all samples that were
  // ever added: a model that is read back goes on as it would have.
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
    update_statistics();
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
    const bool unites = limit.way == Way::unite;
    if (unites) merging_.start(dictionary_, known, candidates_, samples, weights_.all());
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
    if (unites) merging_.leave_outside(newcomers_);
    squared_error =
        komp_.run(factor_, newcomers_, weights_, protected_basis(), scored_, squared_budget,
                  squared_error, limit.points - outside, unites ? &merging_ : nullptr);
    first_made_ = dictionary_.next_id();
    for (Index i = 0; i < candidates_.size(); ++i) {
      first_made_ = std::max(first_made_, candidates_[i].id + 1);
    }
    for (const Index position : komp_.removed()) {
      report_.removed.push_back(position < known ? dictionary_.id(position)
                                                 : id_of_newcomer(position - known));
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

  // Points that merging has made come after them.
  Index id_of_newcomer(Index i) const {
    const Index independent = newcomers_.independent();
    return i < independent ? candidate(i).id : first_made_ + i - independent;
  }

  // Makes the dictionary, the weights and the factor those of the survivors.
  void adopt(Index known, const ConstRows& samples, const View* sample_views) {
    if (newcomers_.size() > 0) {
      factor_.append(newcomers_.coefficient_rows(), newcomers_.factor());
    }
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
      } else if (position - known < newcomers_.independent()) {
        place(candidate(position - known));
      } else {
        const Index i = position - known - newcomers_.independent();
        order_.push_back(dictionary_.size());
        dictionary_.append(merging_.made_point(i), merging_.made_views(), i, false,
                           first_made_ + i);
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

  // They follow the basis. It is the end of a step, and nothing fails once it has begun: copies of
  // them, to be taken back, would cost more than all else in it.
  void update_statistics() {
    if (!statistics_) return;
    const RowMatrix shares = newcomers_.shares_of_lost();
    statistics_->reserve(basis_size(), static_cast<Index>(factor_.turns().size()));
    statistics_->follow(factor_.turns());
    factor_.forget_turns();
    if (shares.rows() > 0) statistics_->grow(shares);
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

  // Points go one by one until there are no more than allowed.
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

  Candidates candidates_;
  RowBuffer outside_weights_;
  Newcomers newcomers_;
  Komp komp_;
  Merging merging_;
  Index first_made_ = 0;  // the id of the first point that merging has made in this step
  CompressionReport report_;
  std::vector<Index> order_;
  std::vector<Index> outside_;
  bool drifted_ = false;
  bool spoilt_ = false;
  bool elects_outside_ = true;
  Vector sample_self_kernel_;
  std::vector<double> self_kernel_;
};

}  // namespace parsimon
