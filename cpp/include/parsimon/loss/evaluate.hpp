#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "parsimon/loss/classification.hpp"
#include "parsimon/loss/loss.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

inline void check_judged(const Loss& loss, const ConstRows& predictions, const ConstRows& targets) {
  if (predictions.rows() != targets.rows()) {
    throw Error("There are " + std::to_string(predictions.rows()) + " predictions and " +
                std::to_string(targets.rows()) + " targets: give as many of each.");
  }
  loss.check_targets(targets, predictions.cols());
}

// The loss of each sample and its gradient by the predictions.
inline std::pair<Vector, RowMatrix> evaluate(const Loss& loss, const ConstRows& predictions,
                                             const ConstRows& targets) {
  check_judged(loss, predictions, targets);
  Vector values(predictions.rows());
  RowMatrix gradient(predictions.rows(), predictions.cols());
  loss.evaluate(predictions, targets, values, gradient);
  return {std::move(values), std::move(gradient)};
}

// The same of the smooth loss that second-order solvers minimise in its place, with curvatures.
inline std::tuple<Vector, RowMatrix, Vector> majorise(const Loss& loss,
                                                      const ConstRows& predictions,
                                                      const ConstRows& targets) {
  check_judged(loss, predictions, targets);
  Vector values(predictions.rows()), curvature(predictions.rows());
  RowMatrix gradient(predictions.rows(), predictions.cols());
  loss.majorise(predictions, targets, values, gradient, curvature);
  return {std::move(values), std::move(gradient), std::move(curvature)};
}

inline const ProbabilisticLoss* as_probabilistic(const Loss& loss) {
  return dynamic_cast<const ProbabilisticLoss*>(&loss);
}

// Class probabilities, one row per sample; logistic losses only.
inline RowMatrix probabilities(const Loss& loss, const ConstRows& predictions) {
  const ProbabilisticLoss* probabilistic = as_probabilistic(loss);
  if (!probabilistic) {
    throw Error("The loss " + loss.describe() +
                " gives no probabilities: use binary_logistic or multiclass_logistic.");
  }
  RowMatrix out(predictions.rows(), probabilistic->class_count(predictions.cols()));
  probabilistic->probabilities(predictions, out);
  return out;
}

}  // namespace parsimon
