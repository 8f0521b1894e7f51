#pragma once

#include <parsimon/algorithm/spppot.hpp>
#include <string>
#include <utility>
#include <vector>

#include "brute_force_komp.hpp"
#include "reference.hpp"

namespace reference {

// Algorithm 1 (SPPPOT) and its dual averaging (appendix D), one mini-batch after the other, dense
// and in long double. The points are the nodes, in their order, and then samples by age.
class NaiveSpppot {
 public:
  NaiveSpppot(KernelPair kernel, const parsimon::SpppotSettings& settings,
              const parsimon::Box& domain, const RowMatrix& nodes)
      : kernel_(std::move(kernel)),
        settings_(settings),
        log_volume_(domain.log_volume()),
        nodes_(nodes),
        points_(nodes),
        weights_(static_cast<std::size_t>(nodes.rows())) {
    if (settings.mirror.name() == "kl") return;
    const Table gram = reference::gram(kernel_.exact, nodes, nodes);
    Real sum = 0;
    for (Index u = 0; u < nodes.rows(); ++u) {
      for (Index v = 0; v < nodes.rows(); ++v) sum += gram(u, v);
    }
    const Real mean = sum / static_cast<Real>(nodes.rows());  // of z with all weights 1
    for (Real& weight : weights_) weight = 1 / (mean * scale(0));
  }

  void learn(const RowMatrix& x) {
    const Real eta = settings_.step.at(batches_);
    const Values at_x = values(x), at_u = values(nodes_);
    set_loss(at_x, at_u);
    std::vector<Real> on_x(at_x.f.size()), on_u(at_u.f.size());
    find_direction(x, at_x, at_u, on_x, on_u);

    const Real gain = settings_.dual_averaging ? 1 : -eta;
    for (Real& weight : weights_) weight *= 1 - eta * Real(settings_.regularization);
    for (std::size_t u = 0; u < on_u.size(); ++u) weights_[u] += gain * on_u[u];
    const Real largest = 1 / std::abs(scale(batches_));
    for (Index i = 0; i < x.rows(); ++i) {
      const Real weight = gain * on_x[static_cast<std::size_t>(i)];
      if (weight == 0) continue;
      points_.conservativeResize(points_.rows() + 1, x.cols());
      points_.row(points_.rows() - 1) = x.row(i);
      weights_.push_back(std::max(-largest, std::min(largest, weight)));
    }
    batches_ += 1;
    compress(settings_.compression.budget().at(static_cast<double>(eta)));
  }

  const RowMatrix& points() const { return points_; }
  const std::vector<Real>& weights() const { return weights_; }
  double loss() const { return loss_; }
  double error() const { return error_; }

 private:
  struct Values {
    std::vector<Real> f, slope;
  };

  Real scale(Index batches) const {
    return settings_.dual_averaging ? -Real(settings_.step.at(batches)) : Real(1);
  }

  Values values(const RowMatrix& at) const {
    const Table gram = reference::gram(kernel_.exact, at, points_);
    Vector r(at.rows());
    settings_.mirror.weigh(at, r);
    Values result;
    for (Index i = 0; i < at.rows(); ++i) {
      const Real z = scale(batches_) * dot(gram.row(i), weights_.data(), points_.rows());
      const bool positive = settings_.mirror.name() == "kl";
      result.f.push_back(positive ? std::exp(z) : Real(r(i)) * z);
      result.slope.push_back(positive ? result.f.back() : Real(r(i)));
    }
    return result;
  }

  // With the bound that stands in for the logarithm of what is not positive.
  void set_loss(const Values& at_x, const Values& at_u) {
    Real log_likelihood = 0, integral = 0;
    for (const Real f : at_x.f) log_likelihood += f > 0 ? std::log(f) : Real(-1e100);
    for (const Real f : at_u.f) integral += f;
    loss_ = static_cast<double>(log_volume_ - log_likelihood / static_cast<Real>(at_x.f.size()) +
                                integral / static_cast<Real>(at_u.f.size()));
  }

  void find_direction(const RowMatrix& x, const Values& at_x, const Values& at_u,
                      std::vector<Real>& on_x, std::vector<Real>& on_u) const {
    using parsimon::PseudoGradient;
    const auto batch = static_cast<Real>(on_x.size()), cells = static_cast<Real>(on_u.size());
    const bool embedding = settings_.gradient == PseudoGradient::kernel_embedding;
    for (std::size_t i = 0; i < on_x.size(); ++i) {
      on_x[i] = -(embedding ? 1 : at_x.slope[i]) / at_x.f[i] / batch;
    }
    for (std::size_t u = 0; u < on_u.size(); ++u) {
      on_u[u] = (embedding ? 1 : at_u.slope[u]) / cells;
    }
    if (settings_.gradient != PseudoGradient::sign) return;
    const Table with_x = reference::gram(kernel_.exact, nodes_, x);
    const Table with_u = reference::gram(kernel_.exact, nodes_, nodes_);
    std::vector<Real> signs;
    for (Index u = 0; u < nodes_.rows(); ++u) {
      const Real g = dot(with_x.row(u), on_x.data(), x.rows()) +
                     dot(with_u.row(u), on_u.data(), nodes_.rows());
      signs.push_back((g > 0 ? 1 : g < 0 ? -1 : 0) / cells);
    }
    on_u = signs;
    std::fill(on_x.begin(), on_x.end(), Real(0));
  }

  void compress(double budget) {
    error_ = 0;
    if (budget == 0 || points_.rows() == nodes_.rows()) return;
    Table weights(points_.rows(), 1);
    std::copy(weights_.begin(), weights_.end(), weights.row(0));
    std::vector<bool> is_protected(weights_.size());
    std::fill_n(is_protected.begin(), nodes_.rows(), true);
    const BruteForceKomp komp(reference::gram(kernel_.exact, points_, points_), weights);
    const Compression result = komp.run(budget, is_protected);
    error_ = result.error;
    if (result.removed.empty()) return;
    const RowMatrix points = points_;
    points_.resize(static_cast<Index>(result.kept.size()), points.cols());
    weights_.clear();
    for (Index i = 0; i < points_.rows(); ++i) {
      points_.row(i) = points.row(result.kept[static_cast<std::size_t>(i)]);
      weights_.push_back(result.weights(i, 0));
    }
  }

  KernelPair kernel_;
  parsimon::SpppotSettings settings_;
  double log_volume_;
  RowMatrix nodes_;
  RowMatrix points_;
  std::vector<Real> weights_;
  Index batches_ = 0;
  double loss_ = 0, error_ = 0;
};

}  // namespace reference
