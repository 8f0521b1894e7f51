#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/node_kernel.hpp"
#include "parsimon/algorithm/online.hpp"
#include "parsimon/density/density.hpp"
#include "parsimon/density/mirror_map.hpp"
#include "parsimon/density/quadrature.hpp"
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

struct SpppotSettings : OnlineSettings {
  MirrorMap mirror = MirrorMap::kl();
  PseudoGradient gradient = PseudoGradient::likelihood;
  // Appendix D: keeps the sum s of the pseudo-gradients, z = -eta s, and compresses s instead of z.
  bool dual_averaging = false;

  SpppotSettings() {
    step = StepSchedule::constant(1);
    average = true;
  }
};

// Sparse positive functions by projected pseudo-mirror descent (Algorithm 1, SPPPOT): the density
// of points in a box. Each mini-batch does
//
//   z <- KOMP((1 - eta lambda) z - eta g, eps),   density = F(z) / volume
//
// on a dictionary that starts with the nodes of the integral, which are never removed; those that
// are numerically dependent keep their weights outside the factor.
class Spppot final : public Online {
 public:
  Spppot(KernelPtr kernel, const SpppotSettings& settings, Box domain, Quadrature quadrature)
      : Spppot(Unprepared(), std::move(kernel), settings, std::move(domain),
               std::move(quadrature)) {
    start();
  }

  // A model that is to be read back: its points are compared with the nodes when it is trained, and
  // what a file says of their number costs nothing before.
  struct Unprepared {};
  Spppot(Unprepared, KernelPtr kernel, const SpppotSettings& settings, Box domain,
         Quadrature quadrature)
      : Online(std::move(kernel), settings, domain.features(), 1),
        mirror_(settings.mirror),
        gradient_(settings.gradient),
        dual_averaging_(settings.dual_averaging),
        domain_(std::move(domain)),
        quadrature_(std::move(quadrature)),
        node_count_(quadrature_.size()) {
    const Compression& compression = settings.compression;
    require(compression.way() == Way::project && compression.max_points() >= node_count_,
            "The points beyond a cap can only be projected, and the cap must leave room for the " +
                std::to_string(node_count_) + " nodes of the integral, which are never removed.");
    mirror_.check_features(features());
  }

  SpppotSettings settings() const {
    SpppotSettings all;
    static_cast<OnlineSettings&>(all) = Online::settings();
    all.mirror = mirror_;
    all.gradient = gradient_;
    all.dual_averaging = dual_averaging_;
    return all;
  }
  const Box& domain() const { return domain_; }
  const Quadrature& quadrature() const { return quadrature_; }
  RowMatrix nodes() const { return quadrature_.nodes(domain_); }

  // One mini-batch, or that share of one.
  StepRecord step(const ConstRows& samples, double share = 1) {
    domain_.check(samples);
    return advance(samples, share);
  }

  // Mini-batch by mini-batch through a block of samples, as long as keep_going() says so.
  // Returns how many samples were taken.
  Index run(const ConstRows& samples, Index batch_size, const KeepGoing& keep_going) {
    domain_.check(samples);
    MiniBatches part(samples.rows(), batch_size, keep_going);
    while (part.next()) advance(samples.middleRows(part.start(), part.count()), part.share());
    return part.taken();
  }

  void log_density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    parsimon::log_density(expansion(), mirror_, domain_, points, values);
  }

  void density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    parsimon::density(expansion(), mirror_, domain_, points, values);
  }

  // k(d, u) for the dictionary's points that are not nodes, one row each.
  RowMatrix kernel_with_nodes() const {
    return is_prepared() ? node_kernel_.of_others() : kernel_with_nodes_;
  }

  // Where a model that is read back had got to. kernel_with_nodes: as that of the model was, or
  // empty if the last bit does not matter.
  void restore(SparseFunction function, Index samples, Index batches, Trace trace,
               const ConstRows& kernel_with_nodes = RowMatrix(0, 0)) {
    require_nodes_in(function.dictionary());
    kernel_with_nodes_ = kernel_with_nodes;
    Online::restore(std::move(function), samples, batches, std::move(trace));
    node_kernel_ = NodeKernel();
  }

 private:
  bool is_prepared() const { return node_kernel_.nodes() > 0; }

  // What the first step after restore() needs: values of the nodes to the last bit, which are those
  // of a model that begins.
  void prepare() {
    if (is_prepared()) return;
    const Spppot fresh(dictionary().kernel_pointer(), settings(), domain_, quadrature_);
    NodeKernel node_kernel;
    node_kernel.compute(dictionary(), nodes());
    node_kernel.restore(fresh.node_kernel_.of_nodes(fresh.node_kernel_.values()),
                        kernel_with_nodes_);
    Vector mirror_weights = fresh.mirror_weights_;
    std::swap(node_kernel_, node_kernel);
    mirror_weights_.swap(mirror_weights);
    largest_self_ = fresh.largest_self_;
    kernel_with_nodes_ = RowMatrix();
  }

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

  void start() {
    const RowMatrix nodes = this->nodes();
    function_.insert(nodes, RowMatrix::Zero(nodes.rows(), function_.weights().cols()),
                     std::vector<bool>(static_cast<std::size_t>(nodes.rows()), true));
    node_kernel_.compute(dictionary(), nodes);
    largest_self_ = node_kernel_.values().cwiseAbs().maxCoeff();
    mirror_weights_.resize(node_count_);
    mirror_.weigh(nodes, mirror_weights_);
    if (mirror_.is_positive()) return;  // z = 0 is the uniform density
    // Equal weights with which z is 1 on average: uniform but for the edges.
    const double mean = node_kernel_.values().sum() / static_cast<double>(node_count_);
    require(mean > 0,
            "The kernel is zero, or negative on average, between the nodes of the domain.");
    function_.weights().setConstant(1 / mean);
    function_.weights().col(0) /= scale();
  }

  double scale() const override { return dual_averaging_ ? -settings_.step.at(batches()) : 1; }

  StepRecord advance(const ConstRows& samples, double share) {
    prepare();
    Step step = begin(samples.rows(), share);
    function_.compare(samples, batch_);
    node_kernel_.follow_order(dictionary());
    evaluate_at_samples_and_nodes(samples);
    step.record.loss = mean_loss();
    find_direction();

    // What is kept moves by -eta g, or by g itself where the step size comes later.
    const double gain = dual_averaging_ ? share : -step.eta;
    take_up_nodes(gain);
    take_up_samples(gain);
    // No density that is learned in earnest comes near 1e90 times the uniform one.
    require_bounded(is_bounded(at_nodes_.f) && at_samples_.z.allFinite() &&
                        std::isfinite(step.record.loss) && is_bounded(increments_.all()) &&
                        is_bounded(new_points_.weights.all()),
                    "The learned density has", step.record.loss, "mini-batch",
                    "Choose a smaller learning rate.");
    const Move move = plan(step, samples, increments_.all());
    require_bounded(stays_bounded(move), "The learned density has", step.record.loss, "mini-batch",
                    "Choose a smaller learning rate.");
    const CompressionReport& report = function_.add(move);
    try {
      node_kernel_.follow(dictionary(), report.first_new, batch_, new_points_);
    } catch (...) {
      function_.undo();
      throw;
    }
    return finish(step, report);
  }

  // Whether f is bounded at the nodes after a step, too, up to what compression changes.
  bool stays_bounded(const Move& move) {
    if (!mirror_.is_positive()) return true;  // f is as large as z is
    const double most = std::log(kLargestWeight);
    double largest = at_nodes_.z.maxCoeff(), total = increments_.all().cwiseAbs().sum();
    total += new_points_.weights.all().cwiseAbs().sum();
    largest += std::abs(scale()) * total * largest_kernel_value(move);
    if (largest < most) return true;
    Vector z = move.shrink * at_nodes_.z;
    z.noalias() += scale() * (node_kernel_.values().transpose() * increments_.all().col(0));
    const RowMatrix with_nodes = node_kernel_.of_nodes(batch_.kernel_values.all());
    for (Index k = 0; k < new_points_.weights.rows(); ++k) {
      z += scale() * new_points_.weights.row(k)(0) * with_nodes.col(new_points_.sample(k));
    }
    return z.maxCoeff() < most;
  }

  // |k| between the nodes and what is added: samples and nodes.
  double largest_kernel_value(const Move& move) const {
    const double with_samples =
        move.active.empty() ? 0.0 : batch_.kernel_values.all().cwiseAbs().maxCoeff();
    return std::max(largest_self_, with_samples);
  }

  // z, f and f' at the samples and at the nodes.
  void evaluate_at_samples_and_nodes(const ConstRows& samples) {
    const auto weights = function_.weights().col(0);
    at_samples_.resize(samples.rows());
    mirror_.weigh(samples, at_samples_.weights);
    at_samples_.z.noalias() = scale() * (batch_.kernel_values.all().transpose() * weights);
    mirror_.apply(at_samples_.z, at_samples_.weights, at_samples_.f, at_samples_.slope);

    at_nodes_.resize(node_count_);
    at_nodes_.z.noalias() = scale() * (node_kernel_.values().transpose() * weights);
    mirror_.apply(at_nodes_.z, mirror_weights_, at_nodes_.f, at_nodes_.slope);
  }

  double mean_loss() const {
    Vector logs(at_samples_.z.size());
    mirror_.log(at_samples_.z, at_samples_.weights, logs);
    // Where f is not positive the loss is infinite; what is recorded stays a number.
    return domain_.log_volume() - logs.cwiseMax(-kLargestWeight).mean() + at_nodes_.f.mean();
  }

  // Coefficients of g: on_samples_ (k(x_i, .)) and on_nodes_ (k(u, .)).
  void find_direction() {
    const double share = 1 / static_cast<double>(at_samples_.f.size());
    reshape(on_samples_, at_samples_.f.size());
    const double cell = 1 / static_cast<double>(node_count_);
    if (gradient_ == PseudoGradient::kernel_embedding) {
      on_samples_ = -share * at_samples_.f.cwiseInverse();
      on_nodes_.setConstant(node_count_, cell);
      return;
    }
    on_samples_ = -share * at_samples_.slope.cwiseQuotient(at_samples_.f);
    // f cancels, and where it underflows 0 / 0 must not be asked for.
    if (mirror_.is_positive()) on_samples_.setConstant(-share);
    on_nodes_ = cell * at_nodes_.slope;
    if (gradient_ == PseudoGradient::sign) {
      gradient_at_nodes_.noalias() = node_kernel_.of_nodes(node_kernel_.values()) * on_nodes_;
      gradient_at_nodes_.noalias() +=
          node_kernel_.of_nodes(batch_.kernel_values.all()) * on_samples_;
      on_nodes_ = cell * gradient_at_nodes_.array().sign();
      on_samples_.setZero();
    }
  }

  void take_up_nodes(double gain) {
    auto increments = increments_.resize(model_order(), 1);
    increments.setZero();
    for (Index u = 0; u < node_count_; ++u) {
      increments(node_kernel_.position(u), 0) = gain * on_nodes_(u);
    }
  }

  // Where f is next to nothing, 1 / f is enormous: no sample moves z by more than k(x, .). The
  // gradient of the likelihood of exp(z) has no 1 / f, and a bound would only falsify it.
  void take_up_samples(double gain) {
    const bool is_tame = gradient_ == PseudoGradient::likelihood && mirror_.is_positive();
    const double largest =
        is_tame ? std::numeric_limits<double>::infinity() : 1 / std::abs(scale());
    auto weights = new_points_.take(on_samples_);
    for (Index k = 0; k < weights.rows(); ++k) {
      weights(k, 0) = std::clamp(gain * weights(k, 0), -largest, largest);
    }
  }

  struct Values {
    Vector z, weights, f, slope;
    void resize(Index size) {
      for (Vector* each : {&z, &weights, &f, &slope}) reshape(*each, size);
    }
  };

  MirrorMap mirror_;
  PseudoGradient gradient_;
  bool dual_averaging_;
  Box domain_;
  Quadrature quadrature_;
  Index node_count_;

  NodeKernel node_kernel_;  // of no nodes before prepare()
  RowMatrix kernel_with_nodes_;
  Vector mirror_weights_;    // r at the nodes
  double largest_self_ = 0;  // k(u, u) at most

  Values at_samples_;
  Values at_nodes_;
  Vector on_samples_;
  Vector on_nodes_;
  Vector gradient_at_nodes_;
  RowBuffer increments_;
};

}  // namespace parsimon
