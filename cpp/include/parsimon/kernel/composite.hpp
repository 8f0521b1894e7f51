#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/kernel/check.hpp"
#include "parsimon/kernel/kernel.hpp"

namespace parsimon {

// A kernel made of others. Its views are those of its parts, one after the other.
class Composite : public Kernel {
 public:
  Index view_count() const override { return view_count_; }

  void check_features(Index features) const override {
    for (const KernelPtr& part : parts_) part->check_features(features);
  }

  void make_views(const ConstRows& points, const RowVector& origin, View* views) const override {
    for (const KernelPtr& part : parts_) {
      part->make_views(points, origin, views);
      views += part->view_count();
    }
  }

  double resolution() const override {
    double coarsest = 0;
    for (const KernelPtr& part : parts_) coarsest = std::max(coarsest, part->resolution());
    return coarsest;
  }

  bool has_gradient() const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const KernelPtr& part) { return part->has_gradient(); });
  }
  bool has_slopes() const override {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->has_slopes(); });
  }
  bool can_stretch() const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& p) { return p->can_stretch(); });
  }

  void add_pulls(const View* a, const View* b, const RowMatrix* weights, Rows gradient,
                 double* stretch) const override {
    for (const KernelPtr& part : parts_) {
      part->add_pulls(a, b, weights, gradient, stretch);
      a += part->view_count();
      b += part->view_count();
      weights += part->view_count();
    }
  }

  const std::vector<KernelPtr>& parts() const { return parts_; }

 protected:
  explicit Composite(std::vector<KernelPtr> parts) : parts_(std::move(parts)) {
    require(!parts_.empty(), "A sum or product of kernels needs at least one kernel.");
    for (const KernelPtr& part : parts_) {
      require(part != nullptr, "A part of a sum, product or scaled kernel is missing (null).");
      view_count_ += part->view_count();
      if (const auto* composite = dynamic_cast<const Composite*>(part.get())) {
        depth_ = std::max(depth_, composite->depth_ + 1);
      }
    }
    detail::require_part_count(view_count_);
    require(depth_ <= detail::kDeepestKernel, "Sums, products and scaled kernels can be nested " +
                                                  std::to_string(detail::kDeepestKernel) +
                                                  " deep at most; write a + b + c as one sum.");
  }

  std::string describe_parts() const {
    std::string text;
    for (const KernelPtr& part : parts_) text += (text.empty() ? "" : ",") + part->describe();
    return text;
  }

 private:
  std::vector<KernelPtr> parts_;
  Index view_count_ = 0;
  int depth_ = 1;
};

// k = k_1 + k_2 + ...
class Sum final : public Composite {
 public:
  explicit Sum(std::vector<KernelPtr> parts) : Composite(std::move(parts)) {}

  void block(const View* a, const View* b, Rows values) const override {
    parts().front()->block(a, b, values);
    RowMatrix term(values.rows(), values.cols());
    for (std::size_t i = 1; i < parts().size(); ++i) {
      a += parts()[i - 1]->view_count();
      b += parts()[i - 1]->view_count();
      parts()[i]->block(a, b, term);
      values += term;
    }
  }

  void block_and_slopes(const View* a, const View* b, Rows values,
                        RowMatrix* slopes) const override {
    RowMatrix term(values.rows(), values.cols());
    for (std::size_t i = 0; i < parts().size(); ++i) {
      parts()[i]->block_and_slopes(a, b, i == 0 ? values : Rows(term), slopes);
      if (i > 0) values += term;
      a += parts()[i]->view_count();
      b += parts()[i]->view_count();
      slopes += parts()[i]->view_count();
    }
  }

  void diagonal(const View* a, Eigen::Ref<Vector> values) const override {
    values.setZero();
    Vector term(values.size());
    for (const KernelPtr& part : parts()) {
      part->diagonal(a, term);
      values += term;
      a += part->view_count();
    }
  }

  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    for (const KernelPtr& part : parts()) {
      part->add_gradient(a, b, weights, gradient);
      a += part->view_count();
      b += part->view_count();
    }
  }

  std::string describe() const override { return "sum(" + describe_parts() + ")"; }
};

// k = k_1 k_2 ...
class Product final : public Composite {
 public:
  explicit Product(std::vector<KernelPtr> parts) : Composite(std::move(parts)) {}

  void block(const View* a, const View* b, Rows values) const override {
    parts().front()->block(a, b, values);
    RowMatrix factor(values.rows(), values.cols());
    for (std::size_t i = 1; i < parts().size(); ++i) {
      a += parts()[i - 1]->view_count();
      b += parts()[i - 1]->view_count();
      parts()[i]->block(a, b, factor);
      values.array() *= factor.array();
    }
  }

  void diagonal(const View* a, Eigen::Ref<Vector> values) const override {
    values.setOnes();
    Vector factor(values.size());
    for (const KernelPtr& part : parts()) {
      part->diagonal(a, factor);
      values.array() *= factor.array();
      a += part->view_count();
    }
  }

  // The slopes of each part, times the values of the others.
  void block_and_slopes(const View* a, const View* b, Rows values,
                        RowMatrix* slopes) const override {
    std::vector<RowMatrix> factors(parts().size(), RowMatrix(values.rows(), values.cols()));
    RowMatrix* slope = slopes;
    for (std::size_t i = 0; i < parts().size(); ++i) {
      parts()[i]->block_and_slopes(a, b, factors[i], slope);
      a += parts()[i]->view_count();
      b += parts()[i]->view_count();
      slope += parts()[i]->view_count();
    }
    values.setOnes();
    for (const RowMatrix& factor : factors) values.array() *= factor.array();
    for (std::size_t i = 0; i < parts().size(); ++i) {
      for (Index v = 0; v < parts()[i]->view_count(); ++v, ++slopes) {
        for (std::size_t k = 0; k < parts().size(); ++k) {
          if (k != i) slopes->array() *= factors[k].array();
        }
      }
    }
  }

  // Each part is weighted by the product of the others, which are multiplied rather than divided
  // out, because a part may be 0.
  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    RowMatrix others(weights.rows(), weights.cols()), factor(weights.rows(), weights.cols());
    const View *part_a = a, *part_b = b;
    for (const KernelPtr& part : parts()) {
      others = weights;
      const View *other_a = a, *other_b = b;
      for (const KernelPtr& other : parts()) {
        if (&other != &part) {
          other->block(other_a, other_b, factor);
          others.array() *= factor.array();
        }
        other_a += other->view_count();
        other_b += other->view_count();
      }
      part->add_gradient(part_a, part_b, others, gradient);
      part_a += part->view_count();
      part_b += part->view_count();
    }
  }

  std::string describe() const override { return "product(" + describe_parts() + ")"; }
};

// k = scale k_1, scale > 0
class Scaled final : public Composite {
 public:
  Scaled(double scale, KernelPtr part) : Composite({std::move(part)}), scale_(scale) {
    detail::require_scale(scale);
  }

  void block(const View* a, const View* b, Rows values) const override {
    parts().front()->block(a, b, values);
    values *= scale_;
  }

  void diagonal(const View* a, Eigen::Ref<Vector> values) const override {
    parts().front()->diagonal(a, values);
    values *= scale_;
  }

  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    const RowMatrix scaled = scale_ * weights;
    parts().front()->add_gradient(a, b, scaled, gradient);
  }

  void block_and_slopes(const View* a, const View* b, Rows values,
                        RowMatrix* slopes) const override {
    parts().front()->block_and_slopes(a, b, values, slopes);
    values *= scale_;
    for (Index v = 0; v < view_count(); ++v) slopes[v] *= scale_;
  }

  std::string describe() const override {
    return "scale(" + format_number(scale_) + "," + describe_parts() + ")";
  }

 private:
  double scale_;
};

// The same kernel with its products of points in single precision: half the memory to read and
// twice the lanes. Distances of near points, and all that follows, stay in double precision.
class SinglePrecision final : public Composite {
 public:
  explicit SinglePrecision(KernelPtr part) : Composite({std::move(part)}) {}

  void make_views(const ConstRows& points, const RowVector& origin, View* views) const override {
    Composite::make_views(points, origin, views);
    for (Index v = 0; v < view_count(); ++v) views[v].round();
  }

  void block(const View* a, const View* b, Rows values) const override {
    parts().front()->block(a, b, values);
  }

  void diagonal(const View* a, Eigen::Ref<Vector> values) const override {
    parts().front()->diagonal(a, values);
  }

  void add_gradient(const View* a, const View* b, const ConstRows& weights,
                    Rows gradient) const override {
    parts().front()->add_gradient(a, b, weights, gradient);
  }

  void block_and_slopes(const View* a, const View* b, Rows values,
                        RowMatrix* slopes) const override {
    parts().front()->block_and_slopes(a, b, values, slopes);
  }

  // A sum of a thousand products is right to about 1e-6 of its terms.
  double resolution() const override { return 1e-5; }

  std::string describe() const override { return "single(" + describe_parts() + ")"; }
};

}  // namespace parsimon
