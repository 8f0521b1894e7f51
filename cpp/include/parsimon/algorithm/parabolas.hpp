#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "parsimon/linalg/products.hpp"
#include "parsimon/loss/loss.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// What lies above the losses of some samples, at one function: one row or number for each sample.
// curvature: how wide they are taken to be, which only grows while one factor of their sum is used;
// bend: how wide they would have to be here.
struct Parabolas {
  RowMatrix predictions, gradient, wanted;
  Vector values, bend, weights, curvature;

  Parabolas(Index count, Index outputs)
      : predictions(count, outputs),
        gradient(count, outputs),
        wanted(count, outputs),
        values(count),
        bend(count),
        weights(count),
        curvature(count) {}

  Index size() const { return values.size(); }

  // Only these are left of them.
  void keep(const std::vector<Index>& chosen) {
    const auto count = static_cast<Index>(chosen.size());
    Parabolas kept(count, predictions.cols());
    for (Index k = 0; k < count; ++k) {
      const Index i = chosen[static_cast<std::size_t>(k)];
      kept.predictions.row(k) = predictions.row(i);
      kept.gradient.row(k) = gradient.row(i);
      kept.weights(k) = weights(i);
      kept.curvature(k) = curvature(i);
    }
    std::swap(*this, kept);
  }

  // What they ask of the function, times their curvature; nothing without one.
  void ask() { ask(0, size()); }

  // To the function with these weights on what the columns are about, one column for each sample.
  // sum: becomes that of what they ask for there, if it is wanted.
  void move(const Loss& loss, const std::vector<double>& targets, const ConstRows& columns,
            const RowMatrix& at, RowMatrix* sum = nullptr) {
    if (sum != nullptr) sum->setZero();
    if (size() == 0) return;
    const Eigen::Map<const RowMatrix> all(targets.data(), size(),
                                          static_cast<Index>(targets.size()) / size());
    for (Index i = 0; i < size(); i += kBlock) {
      const Index some = std::min(kBlock, size() - i);
      const auto part = columns.middleCols(i, some);
      linalg::multiply_transpose_by(part, at, predictions.middleRows(i, some));
      loss.majorise(predictions.middleRows(i, some), all.middleRows(i, some),
                    values.segment(i, some), gradient.middleRows(i, some), bend.segment(i, some));
      if (sum != nullptr) add_asked(part, i, *sum);
    }
  }

  // sum += what they ask for
  void add_asked(const ConstRows& columns, RowMatrix& sum) {
    for (Index i = 0; i < size(); i += kBlock) {
      add_asked(columns.middleCols(i, std::min(kBlock, size() - i)), i, sum);
    }
  }

 private:
  // Samples whose columns are used a second time while they are in the cache.
  static constexpr Index kBlock = 128;

  void ask(Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      for (Index c = 0; c < wanted.cols(); ++c) {
        wanted(i, c) =
            curvature(i) > 0 ? curvature(i) * predictions(i, c) - weights(i) * gradient(i, c) : 0.0;
      }
    }
  }

  void add_asked(const ConstRows& columns, Index begin, RowMatrix& sum) {
    ask(begin, begin + columns.cols());
    RowMatrix part(sum.rows(), sum.cols());
    linalg::multiply(columns, wanted.middleRows(begin, columns.cols()), part);
    sum += part;
  }
};

}  // namespace parsimon
