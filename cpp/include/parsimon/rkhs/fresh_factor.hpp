#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "parsimon/interrupt.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/newcomers.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// A factor that is built from the kernel rather than followed from change to change, with the order
// that it gives the points: first a basis of points that are numerically independent, those that
// are protected before all others; then the points outside it. Throws if the kernel does.
class FreshFactor {
 public:
  // tolerance: what a point must bring to join the basis, relative to k(x, x). A basis of more than
  // `largest` points is an Error, before memory is asked for it.
  explicit FreshFactor(const Dictionary& dictionary, double tolerance = Newcomers::kTolerance,
                       Index largest = std::numeric_limits<Index>::max())
      : dictionary_(dictionary), tolerance_(tolerance), largest_(largest) {
    for (const bool is_protected : {true, false}) {
      for (Index i = 0; i < dictionary.size(); ++i) {
        if (dictionary.is_protected(i) != is_protected) continue;
        block_.push_back(i);
        if (block_.size() == kBlock) add_block();
      }
      add_block();
    }
    if (tolerance == Newcomers::kTolerance) demote_spoilt();
    order.insert(order.end(), outside_.begin(), outside_.end());
  }

  GramFactor factor;         // of the first factor.size() points in this order
  std::vector<Index> order;  // places in the dictionary

  // k(x, x) K^-1(x, x) of a point whose squared distance to the span of all others is a hundredth
  // of the tolerance.
  static constexpr double kSpoilt = 100 / Newcomers::kTolerance;

  // The point of the basis, the first of these, that all others together explain best, if the
  // product is above `limit` and the point is not protected; -1 if there is none.
  static Index find_spoilt(const Dictionary& dictionary, const std::vector<Index>& basis,
                           const GramFactor& factor, double limit) {
    const std::vector<View> views = dictionary.views_of(basis);
    Vector self_kernel(static_cast<Index>(basis.size()));
    dictionary.kernel().diagonal(views.data(), self_kernel);
    Index worst = -1;
    for (Index i = 0; i < factor.size(); ++i) {
      const double product = self_kernel(i) * factor.inverse_diagonal()(i);
      if (!(product > limit) || dictionary.is_protected(basis[static_cast<std::size_t>(i)])) {
        continue;
      }
      limit = product;
      worst = i;
    }
    return worst;
  }

 private:
  static constexpr std::size_t kBlock = 128;

  // A basis that was well chosen has hardly any.
  void demote_spoilt() {
    Vector pivot_row(factor.size());
    for (Index j; (j = find_spoilt(dictionary_, order, factor, kSpoilt / 4)) >= 0;) {
      factor.remove(j, pivot_row.head(factor.size()));
      outside_.push_back(order[static_cast<std::size_t>(j)]);
      order.erase(order.begin() + j);
    }
  }

  void add_block() {
    if (block_.empty()) return;
    Interruptible::check();
    require(factor.size() <= largest_, "The factor in the model file is not that of its points.");
    const std::vector<View> basis = dictionary_.views_of(order);
    const std::vector<View> block = dictionary_.views_of(block_);
    const auto count = static_cast<Index>(block_.size());
    reshape(cross_, factor.size(), count);
    reshape(gram_, count, count);
    if (factor.size() > 0) dictionary_.kernel().block(basis.data(), block.data(), cross_);
    dictionary_.kernel().block(block.data(), block.data(), gram_);
    const double resolution = dictionary_.kernel().resolution();
    PivotedRoot::Stakes stakes;
    if (tolerance_ < Newcomers::kTolerance) {  // every point is needed
      stakes = {std::vector<double>(block_.size(), 1.0), 0, std::max(tolerance_, resolution)};
    }
    newcomers_.factorise(factor, cross_, gram_, stakes, resolution);
    for (Index i = 0; i < count; ++i) {
      const Index point = block_[static_cast<std::size_t>(newcomers_.order(i))];
      (i < newcomers_.independent() ? order : outside_).push_back(point);
    }
    factor.append(newcomers_.coefficient_rows(), newcomers_.factor());
    block_.clear();
  }

  const Dictionary& dictionary_;
  double tolerance_;
  Index largest_;
  std::vector<Index> block_;
  std::vector<Index> outside_;
  RowMatrix cross_;
  RowMatrix gram_;
  Newcomers newcomers_;
};

}  // namespace parsimon
