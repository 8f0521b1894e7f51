#pragma once

#include <algorithm>
#include <vector>

#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// A point that may join the basis of a function.
struct Candidate {
  bool in_dictionary;  // outside the basis so far; otherwise a sample
  Index index;         // in the dictionary, or among the samples
  Index id;
};

// The points that may join the basis in one step, with their views, weights and kernel values.
class Candidates {
 public:
  void clear(const Dictionary& dictionary, Index columns) {
    points_.clear();
    weights_.resize(0, columns);
    views_.resize(static_cast<std::size_t>(dictionary.kernel().view_count()));
    for (View& view : views_) view.reset(0, dictionary.features());
  }

  // weights: of the first `columns` columns; the others are zero.
  void add(const Candidate& candidate, const View* views, const double* weights, Index columns) {
    points_.push_back(candidate);
    for (std::size_t v = 0; v < views_.size(); ++v) {
      views_[v].append(views[v], candidate.index);
    }
    const Index row = weights_.rows();
    weights_.resize(row + 1);
    double* target = weights_.row(row).data();
    std::fill(std::copy_n(weights, columns, target), target + weights_.columns(), 0.0);
  }

  // Kernel values of the candidates among each other, and room for those with the first
  // `basis_size` points of the dictionary; the last `known` columns of the latter are left for the
  // caller to fill in.
  void compare(const Dictionary& dictionary, Index basis_size, Index known) {
    const Index fresh = size() - known;
    auto gram = gram_.resize(size(), size());
    auto cross = cross_.resize(basis_size, size());
    if (size() > 0) dictionary.kernel().block(views_.data(), views_.data(), gram);
    if (fresh > 0 && basis_size > 0) {
      RowMatrix values(dictionary.size(), size());
      dictionary.kernel().block(dictionary.views(), views_.data(), values);
      for (Index i = 0; i < basis_size; ++i) {
        std::copy_n(values.data() + i * size(), fresh, cross.data() + i * size());
      }
    }
  }

  Index size() const { return static_cast<Index>(points_.size()); }
  const Candidate& operator[](Index i) const { return points_[static_cast<std::size_t>(i)]; }
  RowBuffer& weights() { return weights_; }
  const RowBuffer& weights() const { return weights_; }
  RowBuffer& cross() { return cross_; }
  const View* views() const { return views_.data(); }
  RowBuffer& gram() { return gram_; }
  const RowBuffer& gram() const { return gram_; }

 private:
  std::vector<Candidate> points_;
  std::vector<View> views_;
  RowBuffer weights_;
  RowBuffer cross_;
  RowBuffer gram_;
};

}  // namespace parsimon
