#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "parsimon/algorithm/averaging.hpp"
#include "parsimon/algorithm/inverse_outer_sum.hpp"
#include "parsimon/algorithm/learner.hpp"
#include "parsimon/algorithm/rows_times_vector.hpp"
#include "parsimon/density/density.hpp"
#include "parsimon/density/quadrature.hpp"
#include "parsimon/interrupt.hpp"
#include "parsimon/schedule/step.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

struct MirrorNewtonSettings {
  StepSchedule step = StepSchedule::constant(1);
  double damping = 1;  // delta, A_0 = delta I

  void check() const { InverseOuterSum(0, damping); }
};

// Online quasi-Newton mirror descent (Algorithm 3, SPPPOT): the density of points in a box on a
// fixed dictionary D. With z(x) = w' k_D(x), each sample x does
//
//   g = -k_D(x) + (1/Q) sum_q exp(z(q)) k_D(q),   A <- A + g g',   w <- w - eta A^-1 g
//
// with Q quadrature nodes q, and the density is exp(z) / volume of an average of the latest
// iterates: the last one is at the mercy of a single extreme sample. O(|D| (|D| + Q)) a sample.
// If a step throws, the model is as it was before that sample. Not thread safe.
class MirrorNewton : public Learner {
 public:
  // On the nodes of the integral themselves, from the uniform density.
  MirrorNewton(KernelPtr kernel, MirrorNewtonSettings settings, const Box& domain,
               const Quadrature& quadrature)
      : MirrorNewton(on_nodes(std::move(kernel), quadrature.nodes(domain)),
                     Vector::Zero(quadrature.size()), std::move(settings), domain, quadrature) {}

  MirrorNewton(Dictionary dictionary, const Eigen::Ref<const Vector>& weights,
               MirrorNewtonSettings settings, Box domain, Quadrature quadrature)
      : MirrorNewton(Unprepared(), std::move(dictionary), weights, std::move(settings),
                     std::move(domain), std::move(quadrature)) {
    compare_with_nodes();
  }

  // A model that is read back compares its points with the nodes when it is trained: what a file
  // says of their number costs nothing before.
  struct Unprepared {};
  MirrorNewton(Unprepared, Dictionary dictionary, const Eigen::Ref<const Vector>& weights,
               MirrorNewtonSettings settings, Box domain, Quadrature quadrature)
      : settings_(std::move(settings)),
        domain_(std::move(domain)),
        dictionary_(std::move(dictionary)),
        quadrature_(std::move(quadrature)),
        weights_(weights),
        average_(weights),
        inverse_(dictionary_.size(), settings_.damping) {
    require(dictionary_.size() > 0 && dictionary_.features() == domain_.features() &&
                weights.size() == dictionary_.size() && weights.allFinite(),
            "The dictionary needs points with as many features as the domain has, " +
                std::to_string(domain_.features()) + ", and a finite weight each.");
  }

  const MirrorNewtonSettings& settings() const { return settings_; }
  const Box& domain() const { return domain_; }
  const Dictionary& dictionary() const { return dictionary_; }
  const Quadrature& quadrature() const { return quadrature_; }
  RowMatrix nodes() const { return quadrature_.nodes(domain_); }
  const InverseOuterSum& inverse() const { return inverse_; }
  const Vector& weights() const { return weights_; }
  const Vector& average() const { return average_; }
  Index features() const { return domain_.features(); }
  Index outputs() const { return 1; }
  Index model_order() const { return dictionary_.size(); }
  Index steps() const { return steps_; }
  int target_out_of_reach() const { return 0; }

  // Sample by sample through a block, as long as keep_going() says so, which is asked and a record
  // of the trace made once per mini-batch. Returns how many samples were taken.
  Index run(const ConstRows& samples, Index batch_size, const KeepGoing& keep_going) {
    domain_.check(samples);
    MiniBatches part(samples.rows(), batch_size, keep_going);
    while (part.next()) advance(samples.middleRows(part.start(), part.count()));
    return part.taken();
  }

  KernelExpansion expansion() const { return {dictionary_, prediction_weights()}; }
  RowMatrix prediction_weights() const { return average_; }

  void log_density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    parsimon::log_density(expansion(), MirrorMap::kl(), domain_, points, values);
  }

  void density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    parsimon::density(expansion(), MirrorMap::kl(), domain_, points, values);
  }

  // Where a model that is read back had got to.
  void restore(const Eigen::Ref<const Vector>& average, InverseOuterSum inverse, Index steps) {
    require(average.size() == model_order() && inverse.size() == model_order() && steps >= 0,
            "The state of a model must fit its dictionary.");
    average_ = average;
    inverse_ = std::move(inverse);
    steps_ = steps;
  }

 private:
  // The last tenth of the iterates.
  static constexpr double kRecency = 9;
  static constexpr Index kNodesAtOnce = 32;

  static Dictionary on_nodes(KernelPtr kernel, const ConstRows& nodes) {
    Dictionary dictionary(std::move(kernel), nodes.cols());
    dictionary.append(nodes, true);
    return dictionary;
  }

  void compare_with_nodes() {
    std::vector<View> views;
    dictionary_.make_views(nodes(), views);
    RowMatrix values(quadrature_.size(), dictionary_.size());
    dictionary_.kernel().block(views.data(), dictionary_.views(), values);
    require(values.allFinite(), "The kernel is not finite between the nodes of the domain.");
    largest_row_ = std::sqrt(values.rowwise().squaredNorm().maxCoeff());
    node_kernel_.swap(values);
  }

  void advance(const ConstRows& samples) {
    make_room();
    if (node_kernel_.rows() == 0) compare_with_nodes();
    const Index count = samples.rows();
    dictionary_.make_views(samples, views_);
    auto values = kernel_values_.resize(count, model_order());
    dictionary_.kernel().block(views_.data(), dictionary_.views(), values);
    require(std::isfinite(values.sum()),
            "The kernel is not finite at these samples; scale the features or choose another "
            "kernel.");
    // A sample changes all or nothing. If it is memory that runs out, or an interruption, so does
    // their mini-batch.
    std::optional<Before> before;
    if (count > 1) before.emplace(Before{weights_, average_, inverse_, steps_, this->samples()});
    StepRecord all;
    try {
      for (Index i = 0; i < count; ++i) all.loss += step(values.row(i).transpose());
    } catch (const DivergenceError&) {
      throw;
    } catch (...) {
      if (before) bring_back(*before);
      throw;
    }
    all.loss /= static_cast<double>(count);
    all.active = count;
    count_batch();
    record(all, model_order());
  }

  struct Before {
    Vector weights, average;
    InverseOuterSum inverse;
    Index steps, samples;
  };

  void bring_back(Before& before) noexcept {
    weights_.swap(before.weights);
    average_.swap(before.average);
    std::swap(inverse_, before.inverse);
    steps_ = before.steps;
    count_samples(before.samples - samples());
  }

  double integrate_or(Before& before) {
    try {
      return integrate();
    } catch (...) {
      bring_back(before);
      throw;
    }
  }

  // One sample, given k_D(x). Returns its loss.
  double step(const Eigen::Ref<const Vector>& kernel_values) {
    gradient_ = -kernel_values;
    const double integral = integrate();
    const double loss = domain_.log_volume() - weights_.dot(kernel_values) + integral;
    require_sensible(integral, loss);
    const double eta = settings_.step.at(steps_);
    const bool is_safe = is_safe_step(eta, integral);
    std::optional<Before> before;
    if (!is_safe) before.emplace(Before{weights_, average_, inverse_, steps_, samples()});
    direction_.resize(model_order());
    Interruptible::check();
    inverse_.add(gradient_, direction_);  // = A^-1 g
    weights_ -= eta * direction_;
    if (!is_safe) {
      const double after = integrate_or(*before);
      if (!(after < kLargestWeight)) {
        bring_back(*before);
        require_sensible(after, loss);
      }
    }
    steps_ += 1;
    count_samples(1);
    average_ += average_share(static_cast<double>(steps_), kRecency) * (weights_ - average_);
    return loss;
  }

  static void require_sensible(double integral, double loss) {
    require_bounded(integral < kLargestWeight && std::isfinite(loss), "The learned density has",
                    loss, "sample", "Choose a smaller learning rate or a larger damping.");
  }

  // Whether no node can be beyond all bounds after a step: A >= damping I bounds the direction, and
  // z(q) <= log(Q integral).
  bool is_safe_step(double eta, double integral) const {
    const double direction = gradient_.norm() / settings_.damping;
    const double largest = std::log(static_cast<double>(quadrature_.size()) * integral) +
                           eta * direction * largest_row_;
    return largest < std::log(kLargestWeight);
  }

  // Adds (1/Q) sum_q exp(z(q)) k_D(q) to the gradient; returns (1/Q) sum_q exp(z(q)). A few nodes
  // at a time, whose kernel values are then read from memory once for both.
  double integrate() {
    const Index count = quadrature_.size();
    const double cell = 1 / static_cast<double>(count);
    double integral = 0;
    for (Index start = 0; start < count; start += kNodesAtOnce) {
      const Index some = std::min(kNodesAtOnce, count - start);
      const auto kernel = node_kernel_.middleRows(start, some);
      auto density = density_.head(some);
      rows_times_vector(kernel, weights_, density);
      density = cell * density.array().exp();
      integral += density.sum();
      gradient_.noalias() += kernel.transpose() * density;
    }
    return integral;
  }

  MirrorNewtonSettings settings_;
  Box domain_;
  Dictionary dictionary_;
  Quadrature quadrature_;
  Vector weights_;
  Vector average_;
  InverseOuterSum inverse_;
  Index steps_ = 0;
  RowMatrix node_kernel_;   // k(q, d_m), one row per node
  double largest_row_ = 0;  // max_q ||k_D(q)||

  std::vector<View> views_;
  RowBuffer kernel_values_;
  Vector density_ = Vector(kNodesAtOnce);
  Vector gradient_;
  Vector direction_;
};

}  // namespace parsimon
