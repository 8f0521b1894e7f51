#pragma once

#include <memory>
#include <string>

#include "parsimon/types.hpp"

namespace parsimon {

// What a prediction is judged by. Predictions are n x outputs(), targets n x target_columns():
// the targets themselves for regression, one column with the class index (0, 1, ...) for
// classification. Immutable.
class Loss {
 public:
  virtual ~Loss() = default;

  // Columns that the targets have when the predictions have `outputs` columns.
  virtual Index target_columns(Index outputs) const = 0;

  // Throws Error if these targets cannot be judged (a class index out of range, ...).
  virtual void check_targets(const ConstRows& targets, Index outputs) const = 0;

  // values(i) = loss of sample i;  gradient.row(i) = its derivative by prediction i.
  virtual void evaluate(const ConstRows& predictions, const ConstRows& targets,
                        Eigen::Ref<Vector> values, Rows gradient) const = 0;

  // For solvers that use curvature: of this loss, or of the smooth one that they minimise in its
  // place, values and gradient as above, and one number h_i per sample such that
  //
  //   l(p) <= values(i) + <gradient.row(i), p - f_i> + h_i / 2 ||p - f_i||^2,   f_i the prediction,
  //
  // everywhere, or (multi-class hinge losses) along each output, as long as the best wrong class is
  // the same; of several targets, for those that say something. One number for all outputs, so that
  // they share one matrix. 0 where a sample is predicted well enough to say nothing.
  virtual void majorise(const ConstRows& predictions, const ConstRows& targets,
                        Eigen::Ref<Vector> values, Rows gradient,
                        Eigen::Ref<Vector> curvature) const {
    (void)predictions, (void)targets, (void)values, (void)gradient, (void)curvature;
    throw Error("The loss " + describe() + " has no second-order solver: use solver=\"sgd\".");
  }
  virtual bool has_curvature() const { return false; }

  // The regulariser is (this * lambda / 2) ||f||^2: the papers use lambda ||f||^2 with the
  // multi-class hinge loss and lambda / 2 ||f||^2 elsewhere.
  virtual double regularizer_scale() const { return 1.0; }

  virtual bool is_classification() const = 0;

  // Whether it is ||f - y||^2 / 2, whose minimiser solves linear equations.
  virtual bool is_squared() const { return false; }

  // An expression that parse_loss() turns back into the same loss.
  virtual std::string describe() const = 0;
};

using LossPtr = std::shared_ptr<const Loss>;

}  // namespace parsimon
