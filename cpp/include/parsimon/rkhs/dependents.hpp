#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Protected points that the basis of a function explains up to the tolerance: they stay in the
// dictionary, outside the factor. Their weights need not stay with them: moving them to the basis
// changes the function only slightly, which is charged to the budget. Left alone, a
// step that always adds to one and takes from the others would let both grow for ever.
//
// With Z these points and K of the basis: coefficients_ == K^-1 K(basis, Z),
// remainder_ == K(Z, Z) - coefficients_' K(basis, Z).
class Dependents {
 public:
  // To be called whenever the basis or the points outside it have changed.
  void invalidate() { valid_ = false; }

  // Does nothing unless invalidated. Throws if the kernel does.
  void refresh(const Dictionary& dictionary, const GramFactor& basis) {
    if (valid_) return;
    members_.clear();
    for (Index i = basis.size(); i < dictionary.size(); ++i) {
      if (dictionary.is_protected(i)) members_.push_back(i);
    }
    const auto count = static_cast<Index>(members_.size());
    if (count > 0) {
      const std::vector<View> views = dictionary.views_of(members_);
      RowMatrix cross(dictionary.size(), count);
      dictionary.kernel().block(dictionary.views(), views.data(), cross);
      reshape(remainder_, count, count);
      RowMatrix whitened(basis.size(), count), explained(count, count);
      reshape(coefficients_, basis.size(), count);
      basis.solve(cross.topRows(basis.size()), whitened, coefficients_);
      linalg::multiply_transpose_by(whitened, whitened, explained);
      for (Index i = 0; i < count; ++i) {
        for (Index k = 0; k < count; ++k) {
          remainder_(i, k) = cross(member(i), k) - explained(i, k);
        }
      }
    }
    valid_ = true;
  }

  // Moves the weights to the basis: all of each, or as large a part as keeps the error, in Hilbert
  // norm over the first `scored` columns, within `affordable`; nothing if invalidated. Returns
  // the error.
  double fold(Rows weights, Index scored, double affordable) {
    const auto count = static_cast<Index>(members_.size());
    if (count == 0 || !valid_ || !(affordable > 0)) return 0;
    reshape(moved_, count, weights.cols());
    for (Index i = 0; i < count; ++i) {
      for (Index c = 0; c < weights.cols(); ++c) moved_(i, c) = weights(member(i), c);
    }
    const double error = std::sqrt(std::max(0.0, squared_norm(scored)));
    const double part = error <= affordable ? 1 : affordable / error;
    for (Index i = 0; i < count; ++i) {
      for (Index c = 0; c < weights.cols(); ++c) {
        weights(member(i), c) *= 1 - part;
        moved_(i, c) *= part;
      }
    }
    if (coefficients_.rows() == 0) return part * error;
    reshape(onto_basis_, coefficients_.rows(), weights.cols());
    linalg::multiply(coefficients_, moved_, onto_basis_);
    for (Index i = 0; i < onto_basis_.rows(); ++i) {
      for (Index c = 0; c < weights.cols(); ++c) weights(i, c) += onto_basis_(i, c);
    }
    return part * error;
  }

 private:
  Index member(Index i) const { return members_[static_cast<std::size_t>(i)]; }

  // Of what is left of the function if all of `moved_` is: tr(W' R W).
  double squared_norm(Index scored) const {
    double sum = 0;
    for (Index i = 0; i < moved_.rows(); ++i) {
      for (Index k = 0; k < moved_.rows(); ++k) {
        double product = 0;
        for (Index c = 0; c < scored; ++c) product += moved_(i, c) * moved_(k, c);
        sum += remainder_(i, k) * product;
      }
    }
    return sum;
  }

  std::vector<Index> members_;  // positions in the dictionary
  RowMatrix coefficients_;
  RowMatrix remainder_;
  RowMatrix moved_;
  RowMatrix onto_basis_;
  bool valid_ = false;
};

}  // namespace parsimon
