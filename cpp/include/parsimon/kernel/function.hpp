#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "parsimon/kernel/kernel.hpp"

namespace parsimon {

// A kernel that the user wrote. Its view holds the points as they are; it has no text form that
// could be read back. The functions may be called from several threads at once.
class FunctionKernel final : public Kernel {
 public:
  // values(i, j) = k(a_i, b_j)
  using BlockFunction = std::function<void(const ConstRows& a, const ConstRows& b, Rows values)>;

  // gradients.row(i) = (d/dx) k(a_i, x)
  using GradientFunction =
      std::function<void(const ConstRows& a, const RowVector& x, Rows gradients)>;

  explicit FunctionKernel(BlockFunction function, std::string name = "unnamed",
                          GradientFunction gradient = nullptr)
      : function_(std::move(function)), gradient_(std::move(gradient)), name_(std::move(name)) {
    require(function_ != nullptr, "A function kernel needs a function.");
  }

  Index view_count() const override { return 1; }

  void check_features(Index) const override {}

  void make_views(const ConstRows& points, const RowVector&, View* views) const override {
    views->reset(points.rows(), points.cols());
    for (Index i = 0; i < points.rows(); ++i) {
      std::copy_n(points.data() + i * points.outerStride(), points.cols(), views->point(i));
    }
    std::fill_n(views->squared_norms(), points.rows(), 0.0);
  }

  void block(const View* a, const View* b, Rows values) const override {
    if (values.size() > 0) evaluate(a->points(), b->points(), values);
  }

  // The function takes two blocks, so the diagonal is that of small square ones.
  void diagonal(const View* a, Eigen::Ref<Vector> values) const override {
    constexpr Index side = 16;
    const RowMatrix points = a->points();
    RowMatrix square;
    for (Index i = 0; i < values.size(); i += side) {
      const Index count = std::min(side, values.size() - i);
      reshape(square, count, count);
      const auto rows = points.middleRows(i, count);
      evaluate(rows, rows, square);
      values.segment(i, count) = square.diagonal();
    }
  }

  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    require(gradient_ != nullptr,
            describe() + " was made without a gradient; give it one to differentiate with it.");
    if (weights.size() == 0) return;
    const RowMatrix points = a->points();
    RowMatrix gradients(a->rows(), a->features());
    for (Index j = 0; j < weights.cols(); ++j) {
      gradient_(points, Eigen::Map<const RowVector>(b->point(j), b->features()), gradients);
      require(all_finite(gradients.data(), gradients.size()),
              describe() + " returned NaN or infinity as a gradient.");
      for (Index i = 0; i < weights.rows(); ++i) {
        for (Index f = 0; f < gradients.cols(); ++f) {
          gradient(j, f) += weights(i, j) * gradients(i, f);
        }
      }
    }
  }

  bool has_gradient() const override { return gradient_ != nullptr; }

  std::string describe() const override { return "function(" + name_ + ")"; }

 private:
  void evaluate(const ConstRows& a, const ConstRows& b, Rows values) const {
    function_(a, b, values);
    require(values.allFinite(), describe() + " returned NaN or infinity.");
  }

  BlockFunction function_;
  GradientFunction gradient_;
  std::string name_;
};

}  // namespace parsimon
