#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsimon/interrupt.hpp"
#include "parsimon/linalg/products.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Points are compared with the dictionary this many at a time: enough for a product of matrices to
// run at full speed, few enough that the block of kernel values stays in the cache.
inline constexpr Index kEvaluationBlock = 256;

// values.row(i) = sum_m weights.row(m) k(d_m, x_i)
template <typename Points>
void evaluate(const Dictionary& dictionary, const ConstRows& weights, const Points& points,
              Rows values) {
  values.setZero();
  if (dictionary.size() == 0) return;
  std::vector<View> views;
  RowBuffer kernel_values;
  Widened widened;
  for (Index start = 0; start < points.rows(); start += kEvaluationBlock) {
    Interruptible::check();
    const Index count = std::min(kEvaluationBlock, points.rows() - start);
    dictionary.make_views(widened.rows(points, start, count), views);
    auto block = kernel_values.resize(dictionary.size(), count);
    dictionary.kernel().block(dictionary.views(), views.data(), block);
    linalg::multiply_transpose_by(block, weights, values.middleRows(start, count));
    if (!values.middleRows(start, count).allFinite()) {
      throw DivergenceError(
          "The prediction is beyond the range of finite numbers: the kernel, or its sum with these "
          "weights, is too large at these samples.");
    }
  }
}

// A function f(x) = sum_m w_m k(d_m, x) with one row of weights per point and one column per
// output. Immutable.
class KernelExpansion {
 public:
  KernelExpansion(Dictionary dictionary, RowMatrix weights)
      : dictionary_(std::move(dictionary)), weights_(std::move(weights)) {}

  KernelExpansion(KernelPtr kernel, const ConstRows& points, RowMatrix weights)
      : dictionary_(std::move(kernel), points.cols()), weights_(std::move(weights)) {
    require(points.rows() == weights_.rows(),
            "The dictionary has " + std::to_string(points.rows()) + " points but there are " +
                std::to_string(weights_.rows()) + " rows of weights; they must be as many.");
    require(points.allFinite() && weights_.allFinite(),
            "The dictionary and the weights of an expansion must be finite.");
    dictionary_.append(points, false);
  }

  const Dictionary& dictionary() const { return dictionary_; }
  const RowMatrix& weights() const { return weights_; }
  Index model_order() const { return dictionary_.size(); }
  Index outputs() const { return weights_.cols(); }

  RowMatrix operator()(const ConstRows& points) const {
    require_features(points.cols());
    RowMatrix values(points.rows(), outputs());
    evaluate(dictionary_, weights_, points, values);
    return values;
  }

  // <f, g> = tr(W_f' K(D_f, D_g) W_g)
  double inner(const KernelExpansion& other) const {
    require_compatible(other);
    const RowMatrix values = (*this)(other.dictionary_.points());
    return (values.array() * other.weights_.array()).sum();
  }

  double norm() const { return std::sqrt(std::max(0.0, inner(*this))); }

  // ||f - g||. Points that both share are merged first, so that a small difference between two
  // large functions keeps its digits.
  double distance(const KernelExpansion& other) const { return combine(1, other, -1).norm(); }

  // a f + b g on the union of the dictionaries.
  KernelExpansion combine(double a, const KernelExpansion& other, double b) const {
    require_compatible(other);
    std::unordered_multimap<std::size_t, Index> known;
    for (Index i = 0; i < model_order(); ++i) known.emplace(hash(dictionary_, i), i);

    Dictionary merged = dictionary_;
    RowMatrix weights(model_order() + other.model_order(), outputs());
    weights.topRows(model_order()) = a * weights_;
    for (Index i = 0; i < other.model_order(); ++i) {
      const Index twin = find(known, other.dictionary_, i);
      if (twin >= 0) {
        weights.row(twin) += b * other.weights_.row(i);
      } else {
        weights.row(merged.size()) = b * other.weights_.row(i);
        merged.append(other.dictionary_.point(i), false);
      }
    }
    weights.conservativeResize(merged.size(), outputs());
    require_finite(weights);
    return {std::move(merged), std::move(weights)};
  }

  KernelExpansion scaled(double factor) const {
    RowMatrix weights = factor * weights_;
    require_finite(weights);
    return {dictionary_, std::move(weights)};
  }

  // gradient.row(i) = df_c/dx at x_i for the output c.
  RowMatrix gradient(const ConstRows& points, Index output) const {
    require_features(points.cols());
    RowMatrix result = RowMatrix::Zero(points.rows(), points.cols());
    std::vector<View> views;
    for (Index start = 0; start < points.rows(); start += kEvaluationBlock) {
      const Index count = std::min(kEvaluationBlock, points.rows() - start);
      dictionary_.make_views(points.middleRows(start, count), views);
      const RowMatrix weights = weights_.col(output).replicate(1, count);
      dictionary_.kernel().add_gradient(dictionary_.views(), views.data(), weights,
                                        result.middleRows(start, count));
    }
    return result;
  }

 private:
  static void require_finite(const RowMatrix& weights) {
    require(weights.allFinite(),
            "The weights of the sum or multiple are beyond the range of finite numbers; scale the "
            "functions down.");
  }

  void require_features(Index features) const {
    require(features == dictionary_.features(), "The points have " + std::to_string(features) +
                                                    " features, but the dictionary's have " +
                                                    std::to_string(dictionary_.features()) + ".");
  }

  void require_compatible(const KernelExpansion& other) const {
    require_features(other.dictionary_.features());
    require(outputs() == other.outputs(), "The two expansions have " + std::to_string(outputs()) +
                                              " and " + std::to_string(other.outputs()) +
                                              " outputs; they must have as many.");
    require(dictionary_.kernel_pointer() == other.dictionary_.kernel_pointer() ||
                dictionary_.kernel().describe() == other.dictionary_.kernel().describe(),
            "The two expansions have different kernels, " + dictionary_.kernel().describe() +
                " and " + other.dictionary_.kernel().describe() +
                ": they live in different spaces and cannot be compared.");
  }

  static std::string_view bytes(const Dictionary& dictionary, Index i) {
    const auto point = dictionary.point(i);
    return {reinterpret_cast<const char*>(point.data()),
            static_cast<std::size_t>(point.size()) * sizeof(double)};
  }

  static std::size_t hash(const Dictionary& dictionary, Index i) {
    return std::hash<std::string_view>{}(bytes(dictionary, i));
  }

  Index find(const std::unordered_multimap<std::size_t, Index>& known, const Dictionary& other,
             Index i) const {
    const auto [first, last] = known.equal_range(hash(other, i));
    for (auto it = first; it != last; ++it) {
      if (bytes(dictionary_, it->second) == bytes(other, i)) return it->second;
    }
    return -1;
  }

  Dictionary dictionary_;
  RowMatrix weights_;
};

}  // namespace parsimon
