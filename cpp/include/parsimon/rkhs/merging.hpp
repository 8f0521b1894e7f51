#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/candidates.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/rkhs/merge.hpp"
#include "parsimon/rkhs/newcomers.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// What KOMP asks the kernel for where it may put two points together (komp.hpp): the points of one
// step, f~ on them, and new points on the line between two.
//
// Points have positions, as KOMP counts them: first those of the basis, then the newcomers that are
// independent, then those that merging has made, in this order, whether they have gone or not.
class Merging {
 public:
  // At the beginning of a step, before anything has gone: f~ is the function with these weights.
  // samples: which the candidates are, unless they are in the dictionary.
  void start(const Dictionary& dictionary, Index basis_size, const Candidates& candidates,
             const ConstRows& samples, const ConstRows& weights) {
    dictionary_ = &dictionary;
    candidates_ = &candidates;
    samples_ = &samples;
    basis_size_ = basis_size;
    made_.reset(dictionary);
    const Index columns = weights.cols(), count = candidates.size();
    auto target = target_.resize(basis_size + count, columns);
    std::copy_n(weights.data(), basis_size * columns, target.data());
    std::copy_n(candidates.weights().data(), count * columns, target.data() + basis_size * columns);
    const Kernel& kernel = dictionary.kernel();
    self_kernel_.resize(dictionary.size() + count);
    kernel.diagonal(dictionary.views(), self_kernel_.head(dictionary.size()));
    kernel.diagonal(candidates.views(), self_kernel_.tail(count));
  }

  // Once it is known which candidates are independent, and dependent ones have been folded: what is
  // left of these stays outside, and is no part of what KOMP is given.
  void leave_outside(const Newcomers& newcomers) {
    order_.clear();
    for (Index i = 0; i < newcomers.independent(); ++i) order_.push_back(newcomers.order(i));
    for (const Index z : newcomers.unfolded()) {
      const Index i = newcomers.order(newcomers.independent() + z);
      const double* left = candidates_->weights().data() + i * target_.columns();
      double* target = target_.row(basis_size_ + i).data();
      for (Index c = 0; c < target_.columns(); ++c) target[c] -= left[c];
    }
  }

  double self_kernel(Index position) const {
    if (position < basis_size_) return self_kernel_(position);
    const Index i = position - basis_size_;
    if (i < independent()) return self_kernel_(dictionary_->size() + order(i));
    return made_.self_kernel[static_cast<std::size_t>(i - independent())];
  }

  // -- asked about some points at a time, all of these at once

  // About one of the points there are.
  void ask_about(Index position) { ask(views_of(position), 1); }

  // About `fractions.size()` new ones: h times the first point and 1 - h times this second one.
  void ask_about(Index first, const std::vector<Index>& seconds,
                 const std::vector<double>& fractions) {
    asked_.resize(static_cast<Index>(seconds.size()), dictionary_->features());
    for (std::size_t k = 0; k < seconds.size(); ++k) {
      asked_.row(static_cast<Index>(k)) =
          fractions[k] * point(first) + (1 - fractions[k]) * point(seconds[k]);
    }
    dictionary_->make_views(asked_.all(), views_);
    ask(views_, asked_.rows());
    asked_self_kernel_.resize(asked_.rows());
    dictionary_->kernel().diagonal(views_.data(), asked_self_kernel_);
  }

  // k(x, z) for the point x at this position and the k-th of those asked about.
  double value(Index position, Index k) const {
    if (position < basis_size_) return of_dictionary_.row(position)(k);
    const Index i = position - basis_size_;
    if (i < independent()) return of_candidates_.row(order(i))(k);
    return of_made_.row(i - independent())(k);
  }
  double asked_self_kernel(Index k) const { return asked_self_kernel_(k); }

  // f~(z) for the k-th of those asked about, all columns.
  void target(Index k, Eigen::Ref<RowVector> values) const {
    values.setZero();
    for (Index i = 0; i < target_.rows(); ++i) {
      const double kernel =
          i < basis_size_ ? of_dictionary_.row(i)(k) : of_candidates_.row(i - basis_size_)(k);
      const double* weights = target_.row(i).data();
      for (Index c = 0; c < values.size(); ++c) values(c) += kernel * weights[c];
    }
  }

  // The k-th of those asked about becomes a point of the step, the last of them.
  void make(Index k) {
    made_.points.append(asked_.row(k).data());
    for (std::size_t v = 0; v < made_.views.size(); ++v) made_.views[v].append(views_[v], k);
    made_.self_kernel.push_back(asked_self_kernel_(k));
  }

  // Where on the line between two points h of the first and 1 - h of the second best take their
  // place, if nothing but the two counts. near: about where it is; kappa: k(x_1, x_2);
  // products: of their weights, w_1'w_1, w_1'w_2, w_2'w_2.
  //
  // What a point z explains of the squared norm is |k(x_1, z) w_1 + k(x_2, z) w_2|^2 / k(z, z). For
  // a Gaussian it depends on h and kappa alone; else its slope along the line comes from the
  // kernel's gradient, and is zero at the best place.
  double best_fraction(Index first, Index second, double near, double kappa,
                       const double (&products)[3]) {
    if (dictionary_->kernel().merges_points()) {
      return Merge::best(kappa, products[0], products[1], products[2]).h;
    }
    const RowVector along = point(first) - point(second);
    std::vector<View> ends = views_of(first);
    const std::vector<View> other = views_of(second);
    for (std::size_t v = 0; v < ends.size(); ++v) ends[v].append(other[v], 0);
    const auto slope = [&](double h) { return slope_at(h, first, second, along, ends, products); };
    double low = std::max(0.0, near - kNear), high = std::min(1.0, near + kNear);
    double at_low = slope(low), at_high = slope(high);
    if (!(at_low > 0 && at_high < 0)) return near;
    double h = near;
    for (int i = 0; i < kSteps; ++i) {
      h = low + at_low * (high - low) / (at_low - at_high);
      const double at_h = slope(h);
      (at_h > 0 ? low : high) = h;
      (at_h > 0 ? at_low : at_high) = at_h;
    }
    return h;
  }

  double resolution() const { return dictionary_->kernel().resolution(); }

  // -- the points that merging has made

  Index independent() const { return static_cast<Index>(order_.size()); }
  auto made_point(Index i) const { return made_.points.row(i); }
  const View* made_views() const { return made_.views.data(); }

 private:
  static constexpr double kNear = 0.125;
  static constexpr int kSteps = 4;

  struct Made {
    RowBuffer points;
    std::vector<View> views;
    std::vector<double> self_kernel;

    void reset(const Dictionary& dictionary) {
      points.resize(0, dictionary.features());
      views.resize(static_cast<std::size_t>(dictionary.kernel().view_count()));
      for (View& view : views) view.reset(0, dictionary.features());
      self_kernel.clear();
    }
  };

  Index order(Index i) const { return order_[static_cast<std::size_t>(i)]; }

  RowVector point(Index position) const {
    if (position < basis_size_) return dictionary_->point(position);
    const Index i = position - basis_size_;
    if (i >= independent()) return made_.points.row(i - independent());
    const Candidate& candidate = (*candidates_)[order(i)];
    if (candidate.in_dictionary) return dictionary_->point(candidate.index);
    return samples_->row(candidate.index);
  }

  std::vector<View> views_of(Index position) const {
    if (position < basis_size_) return dictionary_->views_of({position});
    const Index i = position - basis_size_;
    const bool made = i >= independent();
    const View* from = made ? made_.views.data() : candidates_->views();
    std::vector<View> views(made_.views.size());
    for (std::size_t v = 0; v < views.size(); ++v) {
      views[v].reset(0, dictionary_->features());
      views[v].append(from[v], made ? i - independent() : order(i));
    }
    return views;
  }

  void ask(const std::vector<View>& views, Index count) {
    const Kernel& kernel = dictionary_->kernel();
    const auto block = [&](const View* points, Index size, RowBuffer& values) {
      auto all = values.resize(size, count);
      if (size == 0) return;
      kernel.block(points, views.data(), all);
      require(is_bounded(all),
              "The kernel is not finite between the points of the model; scale the features or "
              "choose another kernel.");
    };
    block(dictionary_->views(), dictionary_->size(), of_dictionary_);
    block(candidates_->views(), candidates_->size(), of_candidates_);
    block(made_.views.data(), made_.points.rows(), of_made_);
  }

  double slope_at(double h, Index first, Index second, const RowVector& along,
                  const std::vector<View>& ends, const double (&products)[3]) {
    const Kernel& kernel = dictionary_->kernel();
    RowMatrix z(1, along.size());
    z.row(0) = h * point(first) + (1 - h) * point(second);
    std::vector<View> view;
    dictionary_->make_views(z, view);
    // Of k(x_1, z), k(x_2, z) and k(z, z) / 2: the latter depends on z twice.
    double values[3], slopes[3];
    RowMatrix value(2, 1);
    kernel.block(ends.data(), view.data(), value);
    Vector self(1);
    kernel.diagonal(view.data(), self);
    values[0] = value(0, 0);
    values[1] = value(1, 0);
    values[2] = self(0);
    for (Index e = 0; e < 3; ++e) {
      RowMatrix gradient = RowMatrix::Zero(1, along.size());
      RowMatrix weights = RowMatrix::Zero(e < 2 ? 2 : 1, 1);
      weights(e < 2 ? e : 0, 0) = 1;
      kernel.add_gradient(e < 2 ? ends.data() : view.data(), view.data(), weights, gradient);
      slopes[e] = gradient.row(0).dot(along);
    }
    const auto [aa, ab, bb] = products;
    const double size =
        aa * values[0] * values[0] + 2 * ab * values[0] * values[1] + bb * values[1] * values[1];
    const double change = (aa * values[0] + ab * values[1]) * slopes[0] +
                          (ab * values[0] + bb * values[1]) * slopes[1];
    return change * values[2] - size * slopes[2];
  }

  const Dictionary* dictionary_ = nullptr;
  const Candidates* candidates_ = nullptr;
  const ConstRows* samples_ = nullptr;
  Index basis_size_ = 0;
  std::vector<Index> order_;  // of the independent candidates
  RowBuffer target_;          // weights of f~: of the basis, then of all candidates
  Vector self_kernel_;        // of the dictionary, then of all candidates
  Made made_;

  // Of those that were asked about last: one column for each.
  RowBuffer asked_;
  std::vector<View> views_;
  Vector asked_self_kernel_;
  RowBuffer of_dictionary_;
  RowBuffer of_candidates_;
  RowBuffer of_made_;
};

}  // namespace parsimon
