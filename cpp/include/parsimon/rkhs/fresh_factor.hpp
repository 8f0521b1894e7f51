#pragma once

#include <algorithm>
#include <vector>

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
  // tolerance: what a point must bring to join the basis, relative to k(x, x).
  explicit FreshFactor(const Dictionary& dictionary, double tolerance = Newcomers::kTolerance)
      : dictionary_(dictionary), tolerance_(tolerance) {
    for (const bool is_protected : {true, false}) {
      for (Index i = 0; i < dictionary.size(); ++i) {
        if (dictionary.is_protected(i) != is_protected) continue;
        block_.push_back(i);
        if (block_.size() == kBlock) add_block();
      }
      add_block();
    }
    order.insert(order.end(), outside_.begin(), outside_.end());
  }

  GramFactor factor;         // of the first factor.size() points in this order
  std::vector<Index> order;  // places in the dictionary

 private:
  static constexpr std::size_t kBlock = 128;

  void add_block() {
    if (block_.empty()) return;
    const std::vector<View> basis = dictionary_.views_of(order);
    const std::vector<View> block = dictionary_.views_of(block_);
    const auto count = static_cast<Index>(block_.size());
    cross_.resize(factor.size(), count);
    gram_.resize(count, count);
    if (factor.size() > 0) dictionary_.kernel().block(basis.data(), block.data(), cross_);
    dictionary_.kernel().block(block.data(), block.data(), gram_);
    const double resolution = dictionary_.kernel().resolution();
    PivotedRoot::Stakes stakes;
    if (tolerance_ < Newcomers::kTolerance) {  // no point can be done without
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
  std::vector<Index> block_;
  std::vector<Index> outside_;
  RowMatrix cross_;
  RowMatrix gram_;
  Newcomers newcomers_;
};

}  // namespace parsimon
