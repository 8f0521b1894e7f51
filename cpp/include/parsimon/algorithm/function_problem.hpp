#pragma once

#include <functional>
#include <string>
#include <utility>

#include "parsimon/algorithm/compositional.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// A compositional problem whose parts are functions of blocks: predictions n x outputs, targets
// n x any number of columns, tracked expectations g of length m.
struct ProblemFunctions {
  // h, n x m
  std::function<RowMatrix(const ConstRows& predictions, const ConstRows& targets)> inner;
  // h', n x (m * outputs), the derivatives of one inner function by all outputs next to each other
  std::function<RowMatrix(const ConstRows& predictions, const ConstRows& targets)> inner_slopes;
  // dl/dg, n x m
  std::function<RowMatrix(const ConstRows& predictions, const ConstRows& targets,
                          const RowVector& tracked)>
      by_tracked;
  // dl/df, n x outputs; may be empty: l need not depend on f(theta)
  std::function<RowMatrix(const ConstRows& predictions, const ConstRows& targets,
                          const RowVector& tracked)>
      by_prediction;
  // l, n x 1; may be empty: only the trace needs it
  std::function<RowMatrix(const ConstRows& predictions, const ConstRows& targets,
                          const RowVector& tracked)>
      value;
};

class FunctionProblem {
 public:
  FunctionProblem(ProblemFunctions functions, Index tracked, bool outer_sees_samples = true)
      : functions_(std::move(functions)),
        tracked_(tracked),
        outer_sees_samples_(outer_sees_samples) {
    require(functions_.inner && functions_.inner_slopes && functions_.by_tracked,
            "A compositional problem needs its inner function, the derivative of that, and the "
            "gradient of its outer function.");
    require(tracked > 0, "A compositional problem needs at least one inner expectation.");
    require(outer_sees_samples_ || !functions_.by_prediction,
            "An outer function that does not depend on the sample has no derivative by its "
            "prediction.");
  }

  Index tracked() const { return tracked_; }
  bool needs_pairs() const { return true; }
  bool outer_sees_samples() const { return outer_sees_samples_; }
  Index target_columns(Index) const { return 0; }
  void check_targets(const ConstRows&, Index) const {}
  double regularizer_scale() const { return 1; }

  void track(RowVector& g, const ConstRows& predictions, const ConstRows& targets,
             const Eigen::Ref<const Vector>& weights, double beta, bool first) const {
    const RowMatrix values = functions_.inner(predictions, targets);
    require_shape(values, predictions.rows(), tracked_, "inner function");
    const TrackingStep step(weights, beta);
    const RowVector mean = step.shares.transpose() * values;
    g += (first ? 1.0 : step.rate) * (mean - g);
  }

  void outer(const ConstRows& predictions, const ConstRows& targets,
             const Eigen::Ref<const Vector>& weights, const RowVector& g, Rows by_f,
             RowVector& by_g, Vector& losses, RiskRecord& record) const {
    const RowMatrix slopes = functions_.by_tracked(predictions, targets, g);
    require_shape(slopes, predictions.rows(), tracked_, "gradient of the outer function");
    by_g = weights.transpose() * slopes / static_cast<double>(weights.size());
    by_f.setZero();
    if (functions_.by_prediction) {
      const RowMatrix direct = functions_.by_prediction(predictions, targets, g);
      require_shape(direct, predictions.rows(), by_f.cols(),
                    "derivative of the outer function by the prediction");
      by_f = direct;
    }
    losses.setZero();
    if (functions_.value) {
      const RowMatrix values = functions_.value(predictions, targets, g);
      require_shape(values, predictions.rows(), 1, "outer function");
      losses = values.col(0);
    }
    record.mean = losses.mean();
  }

  void inner(const ConstRows& predictions, const ConstRows& targets, const RowVector& by_g,
             Rows by_f) const {
    const Index outputs = predictions.cols();
    const RowMatrix slopes = functions_.inner_slopes(predictions, targets);
    require_shape(slopes, predictions.rows(), tracked_ * outputs,
                  "derivative of the inner function");
    by_f.setZero();
    for (Index k = 0; k < tracked_; ++k) {
      by_f += by_g(k) * slopes.middleCols(k * outputs, outputs);
    }
  }

 private:
  static void require_shape(const RowMatrix& values, Index rows, Index columns,
                            const std::string& what) {
    require(values.rows() == rows && values.cols() == columns,
            "The " + what + " returned " + std::to_string(values.rows()) + " x " +
                std::to_string(values.cols()) + " numbers, where " + std::to_string(rows) + " x " +
                std::to_string(columns) + " were expected.");
    require(values.allFinite(), "The " + what + " returned numbers that are not finite.");
  }

  ProblemFunctions functions_;
  Index tracked_;
  bool outer_sees_samples_;
};

}  // namespace parsimon
