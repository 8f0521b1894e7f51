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

// max(0, 1 - s f) with s = +1 for class 1 and -1 for class 0.
class BinaryHingeLoss final : public BinaryLoss<ClassificationLoss> {
 public:
  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const override {
    for (Index i = 0; i < predictions.rows(); ++i) {
      const double s = sign(targets(i, 0));
      const double violation = 1.0 - s * predictions(i, 0);
      values(i) = std::max(0.0, violation);
      gradient(i, 0) = violation > 0.0 ? -s : 0.0;
    }
  }

  std::string describe() const override { return "binary_hinge"; }
};

// max(0, 1 + f_r - f_y), r the best wrong class (the lowest index among equals).
class MulticlassHingeLoss final : public MulticlassLoss<ClassificationLoss> {
 public:
  void evaluate(const ConstRows& predictions, const ConstRows& targets, Eigen::Ref<Vector> values,
                Rows gradient) const override {
    gradient.setZero();
    for (Index i = 0; i < predictions.rows(); ++i) {
      const Index y = static_cast<Index>(targets(i, 0));
      const Index r = best_wrong_class(predictions, i, y);
      const double violation = 1.0 + (predictions(i, r) - predictions(i, y));
      values(i) = std::max(0.0, violation);
      if (violation > 0.0) {
        gradient(i, r) = 1.0;
        gradient(i, y) = -1.0;
      }
    }
  }

  double regularizer_scale() const override { return 2.0; }

  std::string describe() const override { return "multiclass_hinge"; }

 private:
  static Index best_wrong_class(const ConstRows& predictions, Index i, Index y) {
    Index best = y == 0 ? 1 : 0;
    for (Index c = best + 1; c < predictions.cols(); ++c) {
      if (c != y && predictions(i, c) > predictions(i, best)) best = c;
    }
    return best;
  }
};

}  // namespace parsimon
