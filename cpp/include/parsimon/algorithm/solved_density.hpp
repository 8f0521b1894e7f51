#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/learner.hpp"
#include "parsimon/density/density.hpp"
#include "parsimon/density/product_grid.hpp"
#include "parsimon/density/quadrature.hpp"
#include "parsimon/kernel/kernels.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The density of points in a box on a fixed dictionary D, by maximum penalised likelihood:
//
//   density = exp(z - log integral of exp(z)),  z = w' k_D,
//   w = argmax  b'w - n log integral of exp(w' k_D) - ridge/2 w' K w
//
// All that it needs to know of n points is b = sum_i k_D(x_i): an exponential family. With
// forgetting, b and n fade before points are added, and stay the statistics of what is remembered.
// Whoever solves says what the weights are; see python/parsimon/spppot/_solve.py.
//
// A dictionary that is a regular grid, with a Gaussian kernel, is never compared point by point.
// Not thread safe.
class SolvedDensity : public Learner {
 public:
  // On any points; or on those of a grid, where the kernel is Gaussian of these lengths.
  SolvedDensity(KernelPtr kernel, const ConstRows& points, Box domain, Quadrature quadrature)
      : SolvedDensity(std::move(kernel), ProductGrid(), points, std::move(domain),
                      std::move(quadrature)) {}

  SolvedDensity(KernelPtr kernel, const ProductGrid& grid, Box domain, Quadrature quadrature)
      : SolvedDensity(std::move(kernel), grid, grid.points(), std::move(domain),
                      std::move(quadrature)) {}

  const Box& domain() const { return domain_; }
  const Quadrature& quadrature() const { return quadrature_; }
  RowMatrix nodes() const { return quadrature_.nodes(domain_); }
  const Dictionary& dictionary() const { return dictionary_; }
  const ProductGrid& grid() const { return grid_; }
  Index features() const { return domain_.features(); }
  Index outputs() const { return 1; }
  Index model_order() const { return dictionary_.size(); }
  int target_out_of_reach() const { return 0; }

  const Vector& weights() const { return weights_; }
  // Minus the logarithm of the mean of exp(z) over the domain.
  double offset() const { return offset_; }
  double ridge() const { return ridge_; }
  // The same for each of the points that are remembered.
  double regularization() const { return mass_ > 0 ? ridge_ / mass_ : ridge_; }
  // b and n.
  const Vector& moments() const { return moments_; }
  double mass() const { return mass_; }
  RowMatrix prediction_weights() const { return weights_; }
  KernelExpansion expansion() const { return {dictionary_, prediction_weights()}; }

  // What there was counts `kept` times as much, then points are added; amounts: one each, or none.
  void observe(const ConstRows& points, const Eigen::Ref<const Vector>& amounts, double kept) {
    domain_.check(points);
    require(amounts.size() == 0 || amounts.size() == points.rows(),
            "There must be as many sample weights as points.");
    require(kept >= 0 && kept <= 1, "What is kept of the past is a share between 0 and 1.");
    const Vector each = amounts.size() == 0 ? Vector(Vector::Ones(points.rows())) : Vector(amounts);
    require(each.allFinite() && (each.array() >= 0).all(),
            "The sample weights must be finite and not negative.");
    Vector moments = Vector::Zero(model_order());
    if (lengths_.empty()) {
      add_up(points, each, moments);
    } else {
      grid_.gather(points, lengths_, each, moments);
    }
    moments_ = kept * moments_ + moments;
    mass_ = kept * mass_ + each.sum();
    count_samples(points.rows());
  }

  // The weights that solve for what was observed, with the mean loss of the latest points before.
  void assume(const Eigen::Ref<const Vector>& weights, double offset, double ridge, double loss) {
    require(weights.size() == model_order() && is_bounded(weights) && std::isfinite(offset) &&
                std::isfinite(ridge) && ridge >= 0 && std::isfinite(loss),
            "The solution for a density must be finite.");
    make_room();
    weights_ = weights;
    offset_ = offset;
    ridge_ = ridge;
    count_batch();
    StepRecord step;
    step.loss = loss;
    step.active = samples() - (trace().size() ? trace().records().back().samples : 0);
    record(step, model_order());
  }

  // Where a model that is read back had got to, but for what a Learner follows.
  void restore(const Eigen::Ref<const Vector>& weights, const Eigen::Ref<const Vector>& moments,
               double offset, double ridge, double mass) {
    require(weights.size() == model_order() && moments.size() == model_order() &&
                is_bounded(weights) && is_bounded(moments) && std::abs(offset) < kLargestWeight &&
                std::isfinite(ridge) && ridge >= 0 && std::isfinite(mass) && mass >= 0,
            "The state of a model must fit its dictionary.");
    weights_ = weights;
    moments_ = moments;
    offset_ = offset;
    ridge_ = ridge;
    mass_ = mass;
  }

  void log_density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    require(points.cols() == features(), "The points have another number of features.");
    if (lengths_.empty()) {
      values = expansion()(points).col(0);
    } else {
      grid_.evaluate(points, lengths_, weights_, values);
    }
    values.array() += offset_ - domain_.log_volume();
    detail::outside(domain_, points, -std::numeric_limits<double>::infinity(), values);
  }

  void density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    log_density(points, values);
    values = values.array().exp();
    // Packets of values cut exp off at the smallest double.
    detail::outside(domain_, points, 0, values);
    if (!values.allFinite()) {
      throw DivergenceError("The learned density is beyond the range of finite numbers.");
    }
  }

 private:
  static constexpr Index kAtOnce = 256;

  SolvedDensity(KernelPtr kernel, ProductGrid grid, const ConstRows& points, Box domain,
                Quadrature quadrature)
      : domain_(std::move(domain)),
        quadrature_(std::move(quadrature)),
        grid_(std::move(grid)),
        dictionary_(std::move(kernel), points.cols()),
        weights_(Vector::Zero(points.rows())),
        moments_(Vector::Zero(points.rows())) {
    require(points.rows() > 0 && points.cols() == domain_.features() && points.allFinite(),
            "The dictionary needs finite points with as many features as the domain has, " +
                std::to_string(domain_.features()) + ".");
    dictionary_.append(points, true);
    if (grid_.empty()) return;
    const auto* gaussian = dynamic_cast<const Gaussian*>(&dictionary_.kernel());
    require(gaussian != nullptr, "Only a Gaussian kernel is a product over the features.");
    for (Index j = 0; j < features(); ++j) lengths_.push_back(gaussian->length(j));
  }

  void add_up(const ConstRows& points, const Vector& amounts, Vector& moments) const {
    std::vector<View> views;
    RowMatrix values;
    for (Index start = 0; start < points.rows(); start += kAtOnce) {
      const Index count = std::min(kAtOnce, points.rows() - start);
      dictionary_.make_views(points.middleRows(start, count), views);
      reshape(values, count, model_order());
      dictionary_.kernel().block(views.data(), dictionary_.views(), values);
      moments.noalias() += values.transpose() * amounts.segment(start, count);
    }
    require(moments.allFinite(),
            "The kernel is not finite at these samples; scale the features or choose another "
            "kernel.");
  }

  Box domain_;
  Quadrature quadrature_;
  ProductGrid grid_;             // empty unless the dictionary is one
  std::vector<double> lengths_;  // of the kernel, then
  Dictionary dictionary_;
  Vector weights_;
  Vector moments_;
  double offset_ = 0;
  double ridge_ = 0;
  double mass_ = 0;
};

}  // namespace parsimon
