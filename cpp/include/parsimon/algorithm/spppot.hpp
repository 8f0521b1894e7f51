#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsimon/algorithm/averaging.hpp"
#include "parsimon/algorithm/mini_batches.hpp"
#include "parsimon/algorithm/trace.hpp"
#include "parsimon/density/density.hpp"
#include "parsimon/density/mirror_map.hpp"
#include "parsimon/density/quadrature.hpp"
#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/schedule/budget.hpp"
#include "parsimon/schedule/step.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The direction of a step, for the loss -log f(x) + integral of f; (1/B) sum over the mini-batch:
//
//   likelihood:        its gradient by z, -(f'/f)(x) k(x, .) + h sum_u f'(u) k(u, .)
//   kernel_embedding:  -1/f(x) k(x, .) + h sum_u k(u, .), (26)
//   sign:              h sum_u sign(g(u)) k(u, .), g the first of these
//
// with f' = df/dz, nodes u and h = 1 / number of nodes.
enum class PseudoGradient { likelihood, kernel_embedding, sign };

struct SpppotSettings {
  MirrorMap mirror = MirrorMap::kl();
  PseudoGradient gradient = PseudoGradient::likelihood;
  // Appendix D: keeps the sum s of the pseudo-gradients, z = -eta s, and compresses s instead of z.
  bool dual_averaging = false;
  StepSchedule step = StepSchedule::constant(1);
  BudgetSchedule budget = BudgetSchedule::fixed(0);
  double regularization = 0;
  // Whether the density comes from an average of the iterates, weighted towards the latest.
  bool average = true;
};

// Sparse positive functions by projected pseudo-mirror descent (Algorithm 1, SPPPOT): the density
// of points in a box. Each mini-batch does
//
//   z <- KOMP((1 - eta lambda) z - eta g, eps),   density = F(z) / volume
//
// on a dictionary that starts with the nodes of the integral, which are never removed; those that
// are numerically dependent keep their weights outside the factor.
// If a step throws, the model is as it was before that step. Not thread safe.
class Spppot {
 public:
  Spppot(KernelPtr kernel, SpppotSettings settings, Box domain, Quadrature quadrature)
      : settings_(std::move(settings)),
        domain_(std::move(domain)),
        quadrature_(std::move(quadrature)),
        node_count_(quadrature_.size()),
        function_(std::move(kernel), domain_.features(), settings_.average ? 2 : 1, 1) {
    const double shrinkage = settings_.step.largest() * settings_.regularization;
    require(settings_.regularization >= 0 && shrinkage < 1,
            "The learning rate " + format_number(settings_.step.largest()) +
                " times the regularization " + format_number(settings_.regularization) +
                " must be at least 0 and below 1: choose a smaller learning rate or "
                "regularization.");
    settings_.mirror.check_features(features());
    start(quadrature_.nodes(domain_));
  }

  const SpppotSettings& settings() const { return settings_; }
  const Box& domain() const { return domain_; }
  const SparseFunction& function() const { return function_; }
  const Dictionary& dictionary() const { return function_.dictionary(); }
  const Quadrature& quadrature() const { return quadrature_; }
  RowMatrix nodes() const { return quadrature_.nodes(domain_); }
  Index features() const { return domain_.features(); }
  Index model_order() const { return function_.model_order(); }
  Index samples() const { return samples_; }
  Index batches() const { return batches_; }
  const Trace& trace() const { return trace_; }
  int target_out_of_reach() const {
    return settings_.budget.at_floor() - settings_.budget.at_ceiling();
  }

  // One mini-batch, or that share of one.
  StepRecord step(const ConstRows& samples, double share = 1) {
    domain_.check(samples);
    return advance(samples, share);
  }

  // Mini-batch by mini-batch through a block of samples, as long as keep_going() says so.
  // Returns how many samples were taken.
  template <typename KeepGoing>
  Index run(const ConstRows& samples, Index batch_size, KeepGoing&& keep_going) {
    domain_.check(samples);
    return for_each_mini_batch(samples.rows(), batch_size, keep_going,
                               [&](Index start, Index count, double share) {
                                 advance(samples.middleRows(start, count), share);
                               });
  }

  // z, on which the density is built.
  KernelExpansion expansion() const { return {function_.dictionary(), prediction_weights()}; }

  RowMatrix prediction_weights() const {
    const auto weights = function_.weights();
    return settings_.average ? RowMatrix(weights.col(1)) : scale(batches_) * weights;
  }

  void log_density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    parsimon::log_density(expansion(), settings_.mirror, domain_, points, values);
  }

  void density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    parsimon::density(expansion(), settings_.mirror, domain_, points, values);
  }

  // k(d, u) for the dictionary's points that are not nodes, a row each.
  RowMatrix kernel_with_nodes() const {
    RowMatrix values(model_order() - node_count_, node_count_);
    Index row = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] >= node_count_) values.row(row++) = node_kernel_.row(static_cast<Index>(i));
    }
    return values;
  }

  // Where a model that is read back had got to. kernel_with_nodes: as that of the model was, to the
  // last bit, which depends on the products of matrices that it came from; empty if that does not
  // matter.
  void restore(SparseFunction function, Index samples, Index batches, Trace trace,
               const ConstRows& kernel_with_nodes = RowMatrix(0, 0)) {
    require_nodes_in(function.dictionary());
    const RowMatrix of_nodes = rows_of_nodes(node_kernel_.all());
    function_ = std::move(function);
    samples_ = samples;
    batches_ = batches;
    trace_ = std::move(trace);
    compare_nodes();
    for (Index u = 0; u < node_count_; ++u) node_kernel_.row(position(u)) = of_nodes.row(u);
    if (kernel_with_nodes.size() > 0) adopt(kernel_with_nodes);
  }

 private:
  static constexpr double kRecency = 3;
  // No density that is learned in earnest comes near this multiple of the uniform one.
  static constexpr double kLargestValue = 1e100;

  // Kernel values that are told apart from others by more than rounding.
  static constexpr double kForeign = 1e-9;

  void require_nodes_in(const Dictionary& dictionary) const {
    const RowMatrix nodes = this->nodes();
    Index found = 0;
    for (Index i = 0; i < dictionary.size(); ++i) {
      const Index id = dictionary.id(i);
      if (id >= node_count_) continue;
      found += dictionary.is_protected(i) && dictionary.point(i) == nodes.row(id) ? 1 : 0;
    }
    require(found == node_count_, "The dictionary does not hold the nodes of the integral.");
  }

  void start(const ConstRows& nodes) {
    function_.insert(nodes, RowMatrix::Zero(nodes.rows(), function_.weights().cols()),
                     std::vector<bool>(static_cast<std::size_t>(nodes.rows()), true));
    compare_nodes();
    if (settings_.mirror.is_positive()) return;  // z = 0 is the uniform density
    // Equal weights with which z is 1 on average: uniform but for the edges.
    const double mean = node_kernel_.all().sum() / static_cast<double>(node_count_);
    require(mean > 0,
            "The kernel is zero, or negative on average, between the nodes of the domain.");
    function_.weights().setConstant(1 / mean);
    function_.weights().col(0) /= scale(0);
  }

  // z is this multiple of the function that is kept.
  double scale(Index batches) const {
    return settings_.dual_averaging ? -settings_.step.at(batches) : 1;
  }

  StepRecord advance(const ConstRows& samples, double share) {
    const double eta = share * settings_.step.at(batches_);
    const double scale = this->scale(batches_);
    StepRecord record;
    record.budget = share * settings_.budget.at(settings_.step.at(batches_));

    function_.compare(samples, batch_);
    follow_order();
    evaluate(samples, scale);
    record.loss = mean_loss();
    find_direction();

    // What is kept moves by -eta g, or by g itself where the step size comes later.
    const double gain = settings_.dual_averaging ? share : -eta;
    take_up_nodes(gain);
    auto new_weights = take_up_samples(gain, 1 / std::abs(scale));
    require_bounded(record.loss);
    record.active = new_weights.rows();
    const Index first_id = function_.dictionary().next_id();
    record.compression_error =
        function_
            .add(samples, batch_, active_, new_weights, 1 - eta * settings_.regularization,
                 record.budget, increments_.all())
            .error;
    follow_additions(first_id);
    finish(samples.rows(), record);
    return record;
  }

  // z, f and f' at the samples and at the nodes.
  void evaluate(const ConstRows& samples, double scale) {
    const auto weights = function_.weights().col(0);
    at_samples_.resize(samples.rows());
    settings_.mirror.weigh(samples, at_samples_.weights);
    at_samples_.z.noalias() = scale * (batch_.kernel_values.all().transpose() * weights);
    settings_.mirror.apply(at_samples_.z, at_samples_.weights, at_samples_.f, at_samples_.slope);

    at_nodes_.resize(node_count_);
    at_nodes_.z.noalias() = scale * (node_kernel_.all().transpose() * weights);
    settings_.mirror.apply(at_nodes_.z, mirror_weights_, at_nodes_.f, at_nodes_.slope);
  }

  double mean_loss() const {
    Vector logs(at_samples_.z.size());
    settings_.mirror.log(at_samples_.z, at_samples_.weights, logs);
    // Where f is not positive the loss is infinite; what is recorded stays a number.
    return domain_.log_volume() - logs.cwiseMax(-kLargestValue).mean() + at_nodes_.f.mean();
  }

  // Coefficients of g: on_samples_ (k(x_i, .)) and on_nodes_ (k(u, .)).
  void find_direction() {
    const double share = 1 / static_cast<double>(at_samples_.f.size());
    const double cell = 1 / static_cast<double>(node_count_);
    if (settings_.gradient == PseudoGradient::kernel_embedding) {
      on_samples_ = -share * at_samples_.f.cwiseInverse();
      on_nodes_.setConstant(node_count_, cell);
      return;
    }
    on_samples_ = -share * at_samples_.slope.cwiseQuotient(at_samples_.f);
    // f cancels, and where it underflows 0 / 0 must not be asked for.
    if (settings_.mirror.is_positive()) on_samples_.setConstant(-share);
    on_nodes_ = cell * at_nodes_.slope;
    if (settings_.gradient == PseudoGradient::sign) {
      gradient_at_nodes_.noalias() = rows_of_nodes(node_kernel_.all()) * on_nodes_;
      gradient_at_nodes_.noalias() += rows_of_nodes(batch_.kernel_values.all()) * on_samples_;
      on_nodes_ = cell * gradient_at_nodes_.array().sign();
      on_samples_.setZero();
    }
  }

  // The rows of a matrix with a row a dictionary point that belong to the nodes, in their order.
  template <typename Matrix>
  RowMatrix rows_of_nodes(const Matrix& values) const {
    RowMatrix rows(node_count_, values.cols());
    for (Index u = 0; u < node_count_; ++u) rows.row(u) = values.row(position(u));
    return rows;
  }

  void take_up_nodes(double gain) {
    auto increments = increments_.resize(model_order(), 1);
    increments.setZero();
    for (Index u = 0; u < node_count_; ++u) increments(position(u), 0) = gain * on_nodes_(u);
  }

  // Where f is next to nothing, 1 / f is enormous: no sample moves z by more than k(x, .). The
  // gradient of the likelihood of exp(z) has no 1 / f, and a bound would only falsify it.
  RowBuffer::Map take_up_samples(double gain, double largest) {
    if (settings_.gradient == PseudoGradient::likelihood && settings_.mirror.is_positive()) {
      largest = std::numeric_limits<double>::infinity();
    }
    active_.clear();
    for (Index i = 0; i < on_samples_.size(); ++i) {
      if (on_samples_(i) != 0) active_.push_back(i);
    }
    auto weights = new_weights_.resize(static_cast<Index>(active_.size()), 1);
    for (std::size_t k = 0; k < active_.size(); ++k) {
      weights(static_cast<Index>(k), 0) =
          std::clamp(gain * on_samples_(active_[k]), -largest, largest);
    }
    return weights;
  }

  void require_bounded(double loss) const {
    const auto within = [](const auto& values) {
      return values.size() == 0 || (values.array().abs() < kLargestValue).all();
    };
    const bool bounded = within(at_nodes_.f) && at_samples_.z.allFinite() && std::isfinite(loss) &&
                         within(increments_.all()) && within(new_weights_.all());
    if (bounded) return;
    throw DivergenceError(
        "The learned density has grown beyond all bounds. The model is as it was before this "
        "mini-batch. Choose a smaller learning rate.");
  }

  void finish(Index count, StepRecord& record) {
    batches_ += 1;
    samples_ += count;
    if (settings_.average) {
      auto weights = function_.weights();
      const double share = average_share(batches_, kRecency);
      weights.col(1) += share * (scale(batches_) * weights.col(0) - weights.col(1));
    }
    record.samples = samples_;
    record.model_order = model_order();
    settings_.budget.observe(record.model_order);
    trace_.add(record);
  }

  // -- the kernel values between the dictionary and the nodes, a row a dictionary point ----------

  Index position(Index node) const { return positions_[static_cast<std::size_t>(node)]; }

  void compare_nodes() {
    const RowMatrix points = nodes();
    std::vector<View> views;
    const Dictionary& dictionary = function_.dictionary();
    dictionary.make_views(points, views);
    auto values = node_kernel_.resize(model_order(), node_count_);
    dictionary.kernel().block(dictionary.views(), views.data(), values);
    remember_order();
    mirror_weights_.resize(node_count_);
    settings_.mirror.weigh(points, mirror_weights_);
  }

  // Kernel values of points that are not nodes, if they are that.
  void adopt(const ConstRows& kernel_with_nodes) {
    const RowMatrix expected = this->kernel_with_nodes();
    require(kernel_with_nodes.rows() == expected.rows() &&
                kernel_with_nodes.cols() == node_count_ &&
                ((kernel_with_nodes - expected).array().abs() <=
                 kForeign * (1 + expected.array().abs()))
                    .all(),
            "The kernel values of the nodes do not belong to the dictionary.");
    Index row = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] < node_count_) continue;
      node_kernel_.row(static_cast<Index>(i)) = kernel_with_nodes.row(row++);
    }
  }

  void remember_order() {
    order_ = function_.dictionary().ids();
    positions_.resize(static_cast<std::size_t>(node_count_));
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] < node_count_) {
        positions_[static_cast<std::size_t>(order_[i])] = static_cast<Index>(i);
      }
    }
  }

  // The engine has put its points into another order.
  void follow_order() {
    if (order_ != function_.dictionary().ids()) follow_additions(function_.dictionary().next_id());
  }

  // The same after a step that may have removed points and added samples, whose kernel values with
  // the nodes are known from the comparison before it.
  void follow_additions(Index first_id) {
    const std::vector<Index>& ids = function_.dictionary().ids();
    if (order_ == ids) return;
    std::unordered_map<Index, Index> rows;
    for (std::size_t i = 0; i < order_.size(); ++i) rows[order_[i]] = static_cast<Index>(i);
    const RowMatrix old = node_kernel_.all();
    auto values = node_kernel_.resize(model_order(), node_count_);
    for (Index i = 0; i < model_order(); ++i) {
      const Index id = ids[static_cast<std::size_t>(i)];
      if (id < first_id) {
        values.row(i) = old.row(rows.at(id));
        continue;
      }
      const Index sample = active_[static_cast<std::size_t>(id - first_id)];
      for (Index u = 0; u < node_count_; ++u) {
        values(i, u) = batch_.kernel_values.all()(position(u), sample);
      }
    }
    remember_order();
  }

  struct Values {
    Vector z, weights, f, slope;
    void resize(Index size) {
      z.resize(size);
      weights.resize(size);
      f.resize(size);
      slope.resize(size);
    }
  };

  SpppotSettings settings_;
  Box domain_;
  Quadrature quadrature_;
  Index node_count_;
  SparseFunction function_;
  Index samples_ = 0;
  Index batches_ = 0;
  Trace trace_;

  RowBuffer node_kernel_;
  std::vector<Index> order_;      // ids of the rows of node_kernel_
  std::vector<Index> positions_;  // rows of the nodes
  Vector mirror_weights_;         // r at the nodes

  Batch batch_;
  Values at_samples_;
  Values at_nodes_;
  Vector on_samples_;
  Vector on_nodes_;
  Vector gradient_at_nodes_;
  RowBuffer increments_;
  RowBuffer new_weights_;
  std::vector<Index> active_;
};

}  // namespace parsimon
