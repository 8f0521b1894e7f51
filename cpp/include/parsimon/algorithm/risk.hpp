#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/compositional.hpp"
#include "parsimon/loss/loss.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// What is minimised beside the mean of the loss l:
//
//   none:           E l
//   semideviation:  E l + w E (l - E l)_+                      convex for w <= 1
//   semivariance:   E l + w E s(l - E l)^2                     s(d) = tau log(1 + exp(d / tau))
//   moments:        E l + w sum_{p=2..P} E (l - E l)^p         (81)
//   cvar:           (1 - w) E l + w min_u {u + E (l - u)_+ / (1 - level)}
struct Risk {
  enum class Kind { none, semideviation, semivariance, moments, cvar };

  Kind kind = Kind::none;
  double weight = 0;
  // P of the moments, or the level of cvar.
  double parameter = 0;
  // Bound on |w m|, m the derivative of the dispersion by l; infinite for none. cvar has its own,
  // 1 / (1 - level).
  double clip = std::numeric_limits<double>::infinity();

  // What is recorded of a dispersion, at most: a sum of many is still finite.
  static constexpr double kLargest = 1e100;
  // Width of the smoothed positive part.
  static constexpr double kSmoothing = 0.1;

  void check() const {
    require(std::isfinite(weight) && weight >= 0,
            "The risk weight is " + format_number(weight) +
                ": give a finite number that is not negative.");
    require(clip > 0, "The clip is " + format_number(clip) + ": give a positive number.");
    require(kind != Kind::moments ||
                (parameter >= 2 && parameter <= 64 && parameter == std::floor(parameter)),
            "The order of the moments is " + format_number(parameter) +
                ": give a whole number from 2 to 64.");
    require(kind != Kind::cvar || (parameter > 0 && parameter < 1 && weight <= 1),
            "CVaR needs a level between 0 and 1 and a weight of at most 1; got " +
                format_number(parameter) + " and " + format_number(weight) + ".");
  }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> all = {"none", "semideviation", "semivariance", "moments",
                                                 "cvar"};
    return all;
  }

  static Kind parse(const std::string& name) {
    const auto found = std::find(names().begin(), names().end(), name);
    require(found != names().end(), "There is no risk \"" + name +
                                        "\": use none, semideviation, semivariance, moments or "
                                        "cvar.");
    return static_cast<Kind>(found - names().begin());
  }

  std::string name() const { return names()[static_cast<std::size_t>(kind)]; }

  // The dispersion at the deviation d = l - E l, and its derivative.
  double dispersion(double d, double& slope) const {
    if (kind == Kind::semideviation) {
      slope = d > 0 ? 1 : 0;
      return std::max(0.0, d);
    }
    if (kind == Kind::semivariance) {
      const double scaled = d / kSmoothing;
      const double smooth =
          kSmoothing * (std::max(0.0, scaled) + std::log1p(std::exp(-std::abs(scaled))));
      const double e = std::exp(-std::abs(scaled));
      slope = 2 * smooth * (scaled >= 0 ? 1 : e) / (1 + e);
      return smooth * smooth;
    }
    slope = 0;
    if (kind != Kind::moments) return 0;
    // From the highest power down: beyond the range of a double this is infinite, never NaN.
    double sum = 0;
    for (double p = parameter; p >= 2; --p) {
      slope = slope * d + p;
      sum = sum * d + 1;
    }
    slope *= d;
    return std::clamp(sum * d * d, -kLargest, kLargest);
  }
};

// Risk-aware learning as a compositional problem: the inner expectation is that of the loss, (82),
// and the outer function weighs a sample's loss against it, (83). For cvar, what is tracked is the
// value at risk u, by stochastic subgradient steps in units of the mean loss, which is tracked too.
class RiskProblem {
 public:
  RiskProblem(LossPtr loss, Risk risk) : loss_(std::move(loss)), risk_(risk) { risk_.check(); }

  const LossPtr& loss() const { return loss_; }
  const Risk& risk() const { return risk_; }

  Index tracked() const {
    return risk_.kind == Risk::Kind::none ? 0 : risk_.kind == Risk::Kind::cvar ? 2 : 1;
  }
  // The deviation from a mean needs samples that are independent of those in the mean.
  bool needs_pairs() const {
    return risk_.kind != Risk::Kind::none && risk_.kind != Risk::Kind::cvar;
  }
  bool outer_sees_samples() const { return true; }
  Index target_columns(Index outputs) const { return loss_->target_columns(outputs); }
  void check_targets(const ConstRows& targets, Index outputs) const {
    loss_->check_targets(targets, outputs);
  }
  double regularizer_scale() const { return loss_->regularizer_scale(); }
  void set_loss(LossPtr loss) { loss_ = std::move(loss); }

  void track(RowVector& g, const ConstRows& predictions, const ConstRows& targets,
             const Eigen::Ref<const Vector>& weights, double beta, bool first) {
    if (tracked() == 0) return;
    judge(predictions, targets);
    const TrackingStep step(weights, beta);
    const double mean = step.shares.dot(values_);
    if (first) {
      g.setConstant(mean);
    } else if (risk_.kind == Risk::Kind::cvar) {
      const double above = (values_.array() > g(0)).select(step.shares, 0.0).sum();
      g(1) += step.rate * (mean - g(1));
      g(0) += step.rate * g(1) * (above / (1 - risk_.parameter) - 1);
    } else {
      g(0) += step.rate * (mean - g(0));
    }
  }

  void outer(const ConstRows& predictions, const ConstRows& targets,
             const Eigen::Ref<const Vector>& weights, const RowVector& g, Rows by_f,
             RowVector& by_g, Vector& losses, RiskRecord& record) const {
    loss_->evaluate(predictions, targets, losses, by_f);
    record.mean = losses.mean();
    if (risk_.kind == Risk::Kind::none) return;
    double dispersion = 0;
    for (Index i = 0; i < losses.size(); ++i) {
      if (risk_.kind == Risk::Kind::cvar) {
        const double above = losses(i) > g(0) ? 1 / (1 - risk_.parameter) : 0;
        dispersion += above * (losses(i) - g(0));
        by_f.row(i) *= 1 - risk_.weight + risk_.weight * above;
        continue;
      }
      double slope = 0;
      dispersion += risk_.dispersion(losses(i) - g(0), slope);
      const double pull = std::clamp(risk_.weight * slope, -risk_.clip, risk_.clip);
      record.clipped += pull != risk_.weight * slope ? 1 : 0;
      by_f.row(i) *= 1 + pull;
      by_g(0) -= weights(i) * pull;
    }
    by_g /= static_cast<double>(losses.size());
    record.dispersion = dispersion / static_cast<double>(losses.size());
    if (risk_.kind == Risk::Kind::cvar) record.dispersion += g(0);
  }

  void inner(const ConstRows& predictions, const ConstRows& targets, const RowVector& by_g,
             Rows by_f) {
    reshape(values_, predictions.rows());
    loss_->evaluate(predictions, targets, values_, by_f);
    by_f *= by_g(0);
  }

 private:
  void judge(const ConstRows& predictions, const ConstRows& targets) {
    reshape(values_, predictions.rows());
    auto slopes = slopes_.resize(predictions.rows(), predictions.cols());
    loss_->evaluate(predictions, targets, values_, slopes);
  }

  LossPtr loss_;
  Risk risk_;
  Vector values_;
  RowBuffer slopes_;
};

using Colk = Compositional<RiskProblem>;

}  // namespace parsimon
