#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "parsimon/rkhs/dependents.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/rkhs/factor_state.hpp"
#include "parsimon/rkhs/fresh_factor.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/newcomers.hpp"
#include "parsimon/rkhs/output_change.hpp"
#include "parsimon/rkhs/statistics.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Samples compared with a dictionary: what evaluation and the step after it both need.
struct Batch {
  std::vector<View> views;
  RowBuffer kernel_values;  // k(d_m, x_i): one row per point, one column per sample
};

// A function on a dictionary whose basis has a Gram factor, with all that lives on the same points:
// passengers and statistics. It is asked for its values here, and its basis is changed as a whole;
// SparseFunction makes it grow by samples, step by step.
class FunctionOnBasis {
 public:
  FunctionOnBasis(KernelPtr kernel, Index features, Index columns, Index scored)
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
  Statistics& statistics() { return *statistics_; }
  const Statistics& statistics() const { return *statistics_; }

  // What was said about another function counts for this one, too. Coordinates depend on nothing
  // but the points of the basis and their order.
  void add_statistics(const FunctionOnBasis& other) {
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
    FunctionOnBasis other(dictionary_.kernel_pointer(), dictionary_.features(), weights_.columns(),
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
    Dictionary points = dictionary_;
    RowBuffer weights = weights_;
    points.select(fresh.order);
    weights.select(fresh.order);
    if (statistics_) carry_over(dictionary_, fresh);
    // From here on nothing throws.
    can_undo_ = false;
    std::swap(factor_, fresh.factor);
    if (statistics_) factor_.keep_turns();
    std::swap(dictionary_, points);
    std::swap(weights_, weights);
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

  // Nothing has happened since remember(). Not more than once.
  void undo() noexcept {
    if (!can_undo_) return;
    can_undo_ = false;
    if (forgotten_.size() > 0) std::swap(factor_, forgotten_);
    dictionary_.undo();
    std::swap(weights_, kept_weights_);
    factor_.undo();
    if (statistics_) statistics_->undo();
    changes_ = kept_changes_;
    probes_ = kept_probes_;
    dependents_.invalidate();
  }

  // Of two functions whose points have the same ids if they are the same.
  bool has_points_of(const FunctionOnBasis& other) const {
    std::vector<Index> ids = dictionary_.ids(), others = other.dictionary_.ids();
    std::sort(ids.begin(), ids.end());
    std::sort(others.begin(), others.end());
    return std::includes(ids.begin(), ids.end(), others.begin(), others.end());
  }

  // Points that the other function has, too, get the weights with which it predicts.
  void take_weights(const FunctionOnBasis& other) {
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

 protected:
  // More changes than there ever are between two probes: the factor is built anew at the next
  // comparison.
  static constexpr Index kDrifted = Index{1} << 40;

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

  void forget_factor() {
    if (factor_.size() > 0) std::swap(factor_, forgotten_);
    dependents_.invalidate();
    changes_ = 0;
  }

  // From now on, and until the next time, undo() brings back the function as it is, as long as
  // nothing has changed it but points that joined and left. Room is made for so many more points:
  // the next time may have all of them.
  void remember(Index added) {
    can_undo_ = false;
    if (forgotten_.size() > 0) forgotten_ = GramFactor();
    dictionary_.remember();
    kept_weights_.copy_from(weights_, added);
    factor_.remember(added);
    if (statistics_) statistics_->forget_kept();
    kept_changes_ = changes_;
    kept_probes_ = probes_;
    can_undo_ = true;
  }

  Dictionary dictionary_;
  RowBuffer weights_;
  GramFactor factor_;
  Index scored_;
  Index changes_ = 0;
  Index probes_ = 0;
  std::optional<Statistics> statistics_;
  Dependents dependents_;

 private:
  // Residual of the factor above which it is built anew.
  static constexpr double kDrift = 1e-8;

  // The statistics become those of a fresh basis, of these points.
  void carry_over(const Dictionary& points, const FreshFactor& fresh) {
    if (statistics_->size() == 0) return statistics_->grow(fresh.factor.size());
    Statistics followed = *statistics_;
    followed.change_basis(turn_towards(points, fresh));
    std::swap(*statistics_, followed);
  }

  // What turns coordinates of this basis into those of another function's: T_other K(other, this)
  // T'.
  RowMatrix turn_between(const FunctionOnBasis& other) const {
    std::vector<Index> old(static_cast<std::size_t>(basis_size()));
    std::iota(old.begin(), old.end(), Index{0});
    std::vector<View> views;
    const std::vector<View> old_views = dictionary_.views_of(old);
    dictionary_.make_views(other.dictionary_.points().topRows(other.basis_size()), views);
    return turn(old_views, views, other.factor_);
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

  bool has_restored_factor_ = false;

  bool can_undo_ = false;
  RowBuffer kept_weights_;
  GramFactor forgotten_;
  Index kept_changes_ = 0;
  Index kept_probes_ = 0;

  std::vector<View> probe_views_;
  RowBuffer probe_values_;
  RowBuffer coordinates_;
  RowBuffer solved_weights_;
};

}  // namespace parsimon
