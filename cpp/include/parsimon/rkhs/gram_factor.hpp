#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "parsimon/linalg/products.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// A square root of the inverse of a Gram matrix K that follows the points as they come and go.
//
// Invariant:  T.transpose() * T == K.inverse(),  T lower triangular with a positive diagonal,
//             inverse_diagonal()(j) == K.inverse()(j, j) == T.col(j).squaredNorm().
//
// Points join through the Schur complement of the whole block and leave through plane rotations.
// Both keep T triangular, and rotations are orthogonal: unlike an explicit inverse that is updated
// in place, T cannot lose its definiteness.
class GramFactor {
 public:
  Index size() const { return size_; }

  // T itself; above the diagonal there are zeros.
  auto root() const { return storage_.topLeftCorner(size_, size_); }
  auto inverse_diagonal() const { return inverse_diagonal_.head(size_); }

  void clear() { size_ = 0; }

  // Starts again from what root() and inverse_diagonal() were. The diagonal follows from T, but not
  // to the last bit once it has been updated.
  void assign(const ConstRows& root, const Eigen::Ref<const Vector>& inverse_diagonal) {
    reserve(root.rows());
    size_ = root.rows();
    storage_.topLeftCorner(size_, size_) = root.triangularView<Eigen::Lower>();
    inverse_diagonal_.head(size_) = inverse_diagonal;
  }

  // Starts again from a Cholesky factor: K = L L', T = L^-1.
  void assign_inverse_of(const ConstRows& cholesky_factor) {
    reserve(cholesky_factor.rows());
    size_ = cholesky_factor.rows();
    if (size_ == 0) return;
    auto inverse = storage_.topLeftCorner(size_, size_);
    inverse.setIdentity();
    cholesky_factor.triangularView<Eigen::Lower>().solveInPlace(inverse);
    for (Index j = 0; j < size_; ++j) refresh_diagonal(j);
  }

  // whitened = T values:  the coordinates of the columns in an orthonormal basis of the span.
  void whiten(const ConstRows& values, Rows whitened) const {
    if (whitened.size() == 0) return;  // Eigen's triangular products cannot be empty
    whitened.noalias() = root().template triangularView<Eigen::Lower>() * values;
  }

  // coefficients = T' whitened, so that whiten() and then this multiply by the inverse of K.
  void unwhiten(const ConstRows& whitened, Rows coefficients) const {
    if (coefficients.size() == 0) return;
    coefficients.noalias() = root().transpose().template triangularView<Eigen::Upper>() * whitened;
  }

  // Both at once, in which T is read only once.
  void solve(const ConstRows& values, Rows whitened, Rows coefficients) const {
    const Index columns = values.cols(), width = linalg::padded<double>(columns);
    if (size_ == 0 || columns == 0) return;
    const auto lies_ready = [&](const auto& rows) {
      return rows.outerStride() == width && columns == width;
    };
    if (lies_ready(values) && lies_ready(whitened) && lies_ready(coefficients)) {
      return linalg::solve_with_root(root(), columns, values.data(), whitened.data(),
                                     coefficients.data(), width);
    }
    struct Values;
    struct Whitened;
    struct Coefficients;
    const Index row = columns == 1 ? 1 : width;
    const Index room = linalg::padded<double>(size_) * row;
    using Padded = Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>;
    const auto padded = [&](double* data) {
      return Padded(data, size_, columns, Eigen::OuterStride<>(row));
    };
    double* in = scratch<Values>(room);
    double* between = scratch<Whitened>(room);
    double* out = scratch<Coefficients>(room);
    std::fill(in, in + room, 0.0);
    padded(in) = values;
    if (columns == 1) {
      linalg::solve_with_root(root(), in, between, out);
    } else {
      linalg::solve_with_root(root(), columns, in, between, out, row);
    }
    whitened = padded(between);
    coefficients = padded(out);
  }

  // Appends a block of b points, given their coefficients A = K^-1 K(points, block) (size() x b)
  // and a factor of their Schur complement S = K(block, block) - A' K(points, block):
  //   T <- [T, 0; -T_S A', T_S],   so that  T'T = [P + A S^-1 A', -A S^-1; ., S^-1].
  void append(const ConstRows& coefficients, const GramFactor& schur) {
    struct Transposed;
    const Index added = coefficients.cols();
    Eigen::Map<RowMatrix> transposed(scratch<Transposed>(coefficients.size()), added, size_);
    transposed = coefficients.transpose();
    append_transposed(transposed, schur);
  }

  // The same, given A'.
  void append_transposed(const ConstRows& coefficients, const GramFactor& schur) {
    const Index added = schur.size();
    reserve(size_ + added);
    auto below = storage_.block(size_, 0, added, size_);
    linalg::multiply(schur.root(), coefficients, below);
    below *= -1;
    storage_.block(size_, size_, added, added) = schur.root();
    inverse_diagonal_.head(size_) += below.colwise().squaredNorm().transpose();
    inverse_diagonal_.segment(size_, added) = schur.inverse_diagonal();
    size_ += added;
  }

  // Removes point j. Plane rotations move all of column j into the last row, which then goes.
  // That row is handed out: pivot_row(i) = P(i, j) / sqrt(P(j, j)) with P = K^-1 before the
  // removal, all that a caller needs to re-fit weights. One pass over the rows from j on.
  void remove(Index j, Eigen::Ref<Vector> pivot_row) {
    carried_.head(size_).setZero();
    carried_.head(j + 1) = storage_.row(j).head(j + 1);
    for (Index i = j; i + 1 < size_; ++i) {
      auto next = storage_.row(i + 1);
      const double norm = std::hypot(carried_(j), next(j));
      const double cosine = next(j) / norm;
      const double sine = carried_(j) / norm;
      rotate_into(i, 0, 0, j, cosine, sine);
      rotate_into(i, j + 1, j, i + 1 - j, cosine, sine);
      carried_(j) = norm;
    }
    pivot_row = carried_.head(size_);
    drop_from_diagonal(j);
    --size_;
    for (Index i = 0; i < size_; ++i) {
      if (stale_(i)) refresh_diagonal(i);
    }
  }

  // How far T is from its invariant along one direction, O(size()^2): with k = K e_j,
  // T k and the solution y of T' y = e_j are the same vector if T K T' = I.
  double residual(Index j, const Eigen::Ref<const Vector>& kernel_column) const {
    struct Expected;
    struct Whitened;
    Eigen::Map<Vector> expected(scratch<Expected>(size_), size_);
    Eigen::Map<Vector> whitened(scratch<Whitened>(size_), size_);
    expected = Vector::Unit(size_, j);
    root().transpose().template triangularView<Eigen::Upper>().solveInPlace(expected);
    whitened.noalias() = root().template triangularView<Eigen::Lower>() * kernel_column;
    return (whitened - expected).norm() / expected.norm();
  }

 private:
  // Below this ratio, an updated diagonal entry has lost too many digits to subtraction.
  static constexpr double kCancellation = 1e-4;

  // Columns from + [0, count) of the carried row and of row i + 1 are rotated; the half that
  // stays becomes columns to + [0, count) of row i (the column of the removed point is skipped).
  void rotate_into(Index i, Index from, Index to, Index count, double cosine, double sine) {
    const double* next = &storage_(i + 1, from);
    double* kept = &storage_(i, to);
    double* carried = carried_.data() + from;
    for (Index k = 0; k < count; ++k) {
      const double stay = sine * next[k] - cosine * carried[k];
      carried[k] = sine * carried[k] + cosine * next[k];
      kept[k] = stay;
    }
  }

  void drop_from_diagonal(Index j) {
    Index target = 0;
    for (Index i = 0; i < size_; ++i) {
      if (i == j) continue;
      const double before = inverse_diagonal_(i);
      const double after = before - carried_(i) * carried_(i);
      stale_(target) = !(after > kCancellation * before);
      inverse_diagonal_(target++) = after;
    }
  }

  void refresh_diagonal(Index j) {
    inverse_diagonal_(j) = storage_.col(j).segment(j, size_ - j).squaredNorm();
  }

  // Rows are kept a multiple of 64 bytes long: how a row is summed must not depend on the capacity,
  // or a model that was saved and loaded would round differently.
  void reserve(Index size) {
    if (size <= storage_.rows()) return;
    const Index capacity = (std::max(size, size_ + size_ / 4) + 7) / 8 * 8;
    // Everything new is there before anything old is given up.
    RowMatrix grown = RowMatrix::Zero(capacity, capacity);
    Vector diagonal(capacity), carried(capacity);
    Eigen::Array<bool, Eigen::Dynamic, 1> stale(capacity);
    grown.topLeftCorner(size_, size_) = root();
    diagonal.head(size_) = inverse_diagonal_.head(size_);
    storage_.swap(grown);
    inverse_diagonal_.swap(diagonal);
    carried_.swap(carried);
    stale_.swap(stale);
  }

  RowMatrix storage_;
  Vector inverse_diagonal_;
  Vector carried_;
  Eigen::Array<bool, Eigen::Dynamic, 1> stale_;
  Index size_ = 0;
};

}  // namespace parsimon
