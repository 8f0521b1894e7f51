#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "parsimon/loss/loss.hpp"
#include "parsimon/text.hpp"

namespace parsimon {

// What the losses on class indices share: one target column that holds 0, 1, ..., classes - 1.
class ClassificationLoss : public Loss {
 public:
  Index target_columns(Index) const final { return 1; }

  // Throws Error if the loss cannot judge this many outputs.
  virtual Index class_count(Index outputs) const = 0;

  void check_targets(const ConstRows& targets, Index outputs) const final {
    const Index classes = class_count(outputs);
    if (targets.cols() != 1) {
      throw Error("The targets have " + std::to_string(targets.cols()) + " columns, but the loss " +
                  describe() + " takes one column of class indices.");
    }
    for (Index i = 0; i < targets.rows(); ++i) {
      const double label = targets(i, 0);
      if (label >= 0.0 && label < static_cast<double>(classes) && label == std::floor(label)) {
        continue;
      }
      throw Error("The target of sample " + std::to_string(i) + " is " + format_number(label) +
                  ": the loss " + describe() + " takes class indices, whole numbers from 0 to " +
                  std::to_string(classes - 1) + ".");
    }
  }

  bool is_classification() const final { return true; }
};

// A classification loss whose predictions stand for class probabilities.
class ProbabilisticLoss : public ClassificationLoss {
 public:
  // out is n x class_count(predictions.cols()); its rows add up to 1.
  virtual void probabilities(const ConstRows& predictions, Rows out) const = 0;
};

// One output, class 1 where it is positive.
template <class Base>
class BinaryLoss : public Base {
 public:
  Index class_count(Index outputs) const final {
    if (outputs != 1) {
      throw Error("The loss " + this->describe() + " judges one output, but the model has " +
                  std::to_string(outputs) + ": use the multi-class loss of that name.");
    }
    return 2;
  }

 protected:
  static double sign(double target) { return target > 0.5 ? 1.0 : -1.0; }
};

// One output per class; the largest wins.
template <class Base>
class MulticlassLoss : public Base {
 public:
  Index class_count(Index outputs) const final {
    if (outputs < 2) {
      throw Error("The loss " + this->describe() +
                  " judges one output for each class, but the model has " +
                  std::to_string(outputs) + ": use the binary loss of that name.");
    }
    return outputs;
  }
};

namespace detail {

// How many outputs a model of so many classes has that is judged by this loss.
inline Index outputs_of_classes(const Loss& loss, Index classes) {
  require(loss.is_classification(), "The loss " + loss.describe() + " does not judge classes.");
  const Index outputs = loss.describe().rfind("binary_", 0) == 0 ? 1 : classes;
  const auto& judge = static_cast<const ClassificationLoss&>(loss);
  require(classes >= 2 && judge.class_count(outputs) == classes,
          "The loss " + loss.describe() + " cannot judge " + std::to_string(classes) + " classes.");
  return outputs;
}

}  // namespace detail

// log(1 + exp(-s f)) with s = +1 for class 1 and -1 for class 0.
class BinaryLogisticLoss final : public BinaryLoss<ProbabilisticLoss> {
 public:
  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const override {
    for (Index i = 0; i < predictions.rows(); ++i) {
      const double s = sign(targets(i, 0));
      const double margin = s * predictions(i, 0);
      values(i) = std::log1p(std::exp(-std::abs(margin))) + std::max(0.0, -margin);
      gradient(i, 0) = -s * sigmoid(-margin);
    }
  }

  // The tightest parabola that has the same slope at -f (Jaakkola and Jordan): at most 1/4.
  void majorise(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient, Eigen::Ref<Vector> curvature) const override {
    evaluate(predictions, targets, values, gradient);
    for (Index i = 0; i < predictions.rows(); ++i) {
      const double size = std::abs(predictions(i, 0));
      curvature(i) = size < 1e-4 ? 0.25 : std::tanh(size / 2) / (2 * size);
    }
  }
  bool has_curvature() const override { return true; }

  void probabilities(const ConstRows& predictions, Rows out) const override {
    for (Index i = 0; i < predictions.rows(); ++i) {
      out(i, 0) = sigmoid(-predictions(i, 0));
      out(i, 1) = sigmoid(predictions(i, 0));
    }
  }

  std::string describe() const override { return "binary_logistic"; }

 private:
  // exp() of a negative number only: neither tail overflows or loses its digits.
  static double sigmoid(double t) {
    const double e = std::exp(-std::abs(t));
    return (t >= 0.0 ? 1.0 : e) / (1.0 + e);
  }
};

// log(sum_c exp(f_c)) - f_y
//
// Sums run over the classes in order: Eigen's own would depend on where a row begins in memory, and
// with it the last bit of a model that was loaded and trained on.
class MulticlassLogisticLoss final : public MulticlassLoss<ProbabilisticLoss> {
 public:
  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const override {
    for (Index i = 0; i < predictions.rows(); ++i) {
      const Index y = static_cast<Index>(targets(i, 0));
      const Softmax softmax = apply_softmax(predictions, i, gradient);
      values(i) = std::log1p(softmax.rest) + (softmax.top - predictions(i, y));
      // p_y - 1 would cancel where the sample is predicted well: add up the other classes instead.
      double others = 0.0;
      for (Index c = 0; c < predictions.cols(); ++c) others += c == y ? 0.0 : gradient(i, c);
      gradient(i, y) = -others;
    }
  }

  // Its second derivative is at most 1/2 in any direction (Boehning).
  void majorise(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient, Eigen::Ref<Vector> curvature) const override {
    evaluate(predictions, targets, values, gradient);
    curvature.setConstant(0.5);
  }
  bool has_curvature() const override { return true; }

  void probabilities(const ConstRows& predictions, Rows out) const override {
    for (Index i = 0; i < predictions.rows(); ++i) apply_softmax(predictions, i, out);
  }

  std::string describe() const override { return "multiclass_logistic"; }

 private:
  struct Softmax {
    double top;   // max_c f_c
    double rest;  // sum of exp(f_c - top) over all classes but the first that has the maximum
  };

  // out.row(i) = softmax of row i
  static Softmax apply_softmax(const ConstRows& predictions, Index i, Rows& out) {
    Index best = 0;
    for (Index c = 1; c < predictions.cols(); ++c) {
      if (predictions(i, c) > predictions(i, best)) best = c;
    }
    Softmax softmax{predictions(i, best), 0.0};
    for (Index c = 0; c < predictions.cols(); ++c) {
      out(i, c) = c == best ? 1.0 : std::exp(predictions(i, c) - softmax.top);
      if (c != best) softmax.rest += out(i, c);
    }
    for (Index c = 0; c < predictions.cols(); ++c) out(i, c) /= 1.0 + softmax.rest;
    return softmax;
  }
};

// The multi-class logistic loss of positive functions f = exp(z), judged by its pseudo-gradient:
// the derivative by f, (94) of SPPPOT, taken as a step of z.
class MirrorLogisticLoss final : public MulticlassLoss<ProbabilisticLoss> {
 public:
  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const override {
    logistic_.evaluate(positive(predictions), targets, values, gradient);
  }

  void probabilities(const ConstRows& predictions, Rows out) const override {
    logistic_.probabilities(positive(predictions), out);
  }

  std::string describe() const override { return "mirror_logistic"; }

 private:
  // Below the largest double, with room for a sum of them.
  static constexpr double kLargestExponent = 600;

  // exp(z), or a small part of it where z is so large that only its order matters: probabilities
  // are 0 and 1 long before.
  static RowMatrix positive(const ConstRows& predictions) {
    RowMatrix exponents = predictions;
    for (Index i = 0; i < exponents.rows(); ++i) {
      const double top = exponents.row(i).maxCoeff();
      if (top > kLargestExponent) {
        exponents.row(i).array() -= top;
        exponents.row(i).array() += kLargestExponent;
      }
    }
    return exponents.array().exp();
  }

  MulticlassLogisticLoss logistic_;
};

// A function of v = 1 - s f, how far a prediction is from where it should be, or of 1 + f_r - f_y:
// the hinge max(0, v), or its square, max(0, v)^2 / 2.
//
// Where curvature is used, the hinge becomes v^2 / 2 up to v = 2, which is a sample as far on the
// wrong side as it should be on the right one, and 2 v - 2 beyond.
struct Hinge {
  static constexpr const char* name = "hinge";
  static double value(double v) { return std::max(0.0, v); }
  static double slope(double v) { return v > 0.0 ? 1.0 : 0.0; }
  static double smooth_value(double v) { return v < 2 ? 0.5 * v * v : 2 * v - 2; }
  static double smooth_slope(double v) { return std::min(v, 2.0); }
  static double curvature(double v) { return 2 / std::max(v, 2.0); }
};

struct SquaredHinge {
  static constexpr const char* name = "squared_hinge";
  static double value(double v) { return v > 0.0 ? 0.5 * v * v : 0.0; }
  static double slope(double v) { return std::max(0.0, v); }
  static double smooth_value(double v) { return 0.5 * v * v; }
  static double smooth_slope(double v) { return v; }
  static double curvature(double) { return 1; }
};

// With s = +1 for class 1 and -1 for class 0.
template <class Shape>
class BinaryMarginLoss final : public BinaryLoss<ClassificationLoss> {
 public:
  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const override {
    for (Index i = 0; i < predictions.rows(); ++i) {
      const double s = this->sign(targets(i, 0));
      const double violation = 1.0 - s * predictions(i, 0);
      values(i) = Shape::value(violation);
      gradient(i, 0) = violation > 0.0 ? -s * Shape::slope(violation) : 0.0;
    }
  }

  void majorise(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient, Eigen::Ref<Vector> curvature) const override {
    for (Index i = 0; i < predictions.rows(); ++i) {
      const double s = this->sign(targets(i, 0));
      const double violation = 1.0 - s * predictions(i, 0);
      const bool counts = violation > 0;
      values(i) = counts ? Shape::smooth_value(violation) : 0.0;
      gradient(i, 0) = counts ? -s * Shape::smooth_slope(violation) : 0.0;
      curvature(i) = counts ? Shape::curvature(violation) : 0.0;
    }
  }
  bool has_curvature() const override { return true; }

  std::string describe() const override { return std::string("binary_") + Shape::name; }
};

using BinaryHingeLoss = BinaryMarginLoss<Hinge>;
using BinarySquaredHingeLoss = BinaryMarginLoss<SquaredHinge>;

// With r the best wrong class (the lowest index among equals).
template <class Shape>
class MulticlassMarginLoss final : public MulticlassLoss<ClassificationLoss> {
 public:
  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const override {
    gradient.setZero();
    for (Index i = 0; i < predictions.rows(); ++i) {
      const Index y = static_cast<Index>(targets(i, 0));
      const Index r = best_wrong_class(predictions, i, y);
      const double violation = 1.0 + (predictions(i, r) - predictions(i, y));
      values(i) = Shape::value(violation);
      if (violation > 0.0) {
        gradient(i, r) = Shape::slope(violation);
        gradient(i, y) = -Shape::slope(violation);
      }
    }
  }

  // The curvature is that of each of the two outputs. In the direction in which they move apart it
  // is twice that; a step that is too long there ends beyond the margin, where nothing pulls back.
  void majorise(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient, Eigen::Ref<Vector> curvature) const override {
    gradient.setZero();
    for (Index i = 0; i < predictions.rows(); ++i) {
      const Index y = static_cast<Index>(targets(i, 0));
      const Index r = best_wrong_class(predictions, i, y);
      const double violation = 1.0 + (predictions(i, r) - predictions(i, y));
      const bool counts = violation > 0;
      values(i) = counts ? Shape::smooth_value(violation) : 0.0;
      curvature(i) = counts ? Shape::curvature(violation) : 0.0;
      if (!counts) continue;
      gradient(i, r) = Shape::smooth_slope(violation);
      gradient(i, y) = -gradient(i, r);
    }
  }
  bool has_curvature() const override { return true; }

  double regularizer_scale() const override { return 2.0; }

  std::string describe() const override { return std::string("multiclass_") + Shape::name; }

 private:
  static Index best_wrong_class(const ConstRows& predictions, Index i, Index y) {
    Index best = y == 0 ? 1 : 0;
    for (Index c = best + 1; c < predictions.cols(); ++c) {
      if (c != y && predictions(i, c) > predictions(i, best)) best = c;
    }
    return best;
  }
};

using MulticlassHingeLoss = MulticlassMarginLoss<Hinge>;
using MulticlassSquaredHingeLoss = MulticlassMarginLoss<SquaredHinge>;

// Each class against all others: sum_c max(0, 1 - s_c f_c)^2 / 2, s_c = +1 for the right class and
// -1 for the others.
class OneVsRestSquaredHingeLoss final : public MulticlassLoss<ClassificationLoss> {
 public:
  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const override {
    for (Index i = 0; i < predictions.rows(); ++i) {
      values(i) = 0;
      for (Index c = 0; c < predictions.cols(); ++c) {
        const double s = c == static_cast<Index>(targets(i, 0)) ? 1.0 : -1.0;
        const double violation = std::max(0.0, 1.0 - s * predictions(i, c));
        values(i) += 0.5 * violation * violation;
        gradient(i, c) = -s * violation;
      }
    }
  }

  void majorise(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient, Eigen::Ref<Vector> curvature) const override {
    evaluate(predictions, targets, values, gradient);
    for (Index i = 0; i < predictions.rows(); ++i) curvature(i) = values(i) > 0 ? 1.0 : 0.0;
  }
  bool has_curvature() const override { return true; }

  std::string describe() const override { return "one_vs_rest_squared_hinge"; }
};

}  // namespace parsimon
