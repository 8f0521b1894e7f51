#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "parsimon/linalg/rotations.hpp"
#include "parsimon/linalg/triangular.hpp"
#include "parsimon/memory/kept_triangle.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/memory/zeroed_square.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// How the orthonormal coordinates T k(D, x) of a basis have turned since they were last read: one
// entry for each point that left, of the rotations of rows from its own on.
struct Turn {
  Index point;
  Index size;  // of the basis before
  std::vector<double> cosines;
  std::vector<double> sines;
};

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
  auto root() const { return storage_.all().topLeftCorner(size_, size_); }
  auto inverse_diagonal() const { return inverse_diagonal_.head(size_); }

  // Starts again from what root() and inverse_diagonal() were. The diagonal follows from T, but not
  // to the last bit once it has been updated.
  void assign(const ConstRows& root, const Eigen::Ref<const Vector>& inverse_diagonal) {
    copy_lower(root);
    std::copy_n(inverse_diagonal.data(), size_, inverse_diagonal_.data());
  }

  // Starts again from a Cholesky factor: K = L L', T = L^-1.
  void assign_inverse_of(const ConstRows& cholesky_factor) {
    copy_lower(cholesky_factor);
    if (size_ == 0) return;
    linalg::invert_lower(storage_.all().topLeftCorner(size_, size_));
    for (Index j = 0; j < size_; ++j) refresh_diagonal(j);
  }

  // whitened = T values:  the coordinates of the columns in an orthonormal basis of the span.
  void whiten(const ConstRows& values, Rows whitened) const {
    linalg::multiply_lower(root(), values, whitened);
  }

  // coefficients = T' whitened, so that whiten() and then this multiply by the inverse of K.
  void unwhiten(const ConstRows& whitened, Rows coefficients) const {
    linalg::multiply_lower_transpose(root(), whitened, coefficients);
  }

  // Both at once, in which T is read only once.
  void solve(const ConstRows& values, Rows whitened, Rows coefficients) const {
    linalg::solve_with_root(root(), values, whitened, coefficients);
  }

  // Room for so many points.
  // Rows are kept a multiple of 64 bytes long: how a row is summed must not depend on the capacity,
  // or a model that was saved and loaded would round differently. In a step, it is best called
  // before the first removal: nothing has been kept then, and the memory for it is given up first.
  void reserve(Index size) {
    if (size <= storage_.size()) return;
    kept_.release();
    const Index capacity = (std::max(size, size_ + size_ / 4) + 7) / 8 * 8;
    // Everything new is there before anything old is given up.
    ZeroedSquare grown(capacity);
    Vector diagonal(capacity);
    stale_.reserve(static_cast<std::size_t>(capacity));
    linalg::share(size_, linalg::kCopyGrain, linalg::copy_flops(size_ * size_ / 2),
                  [&](Index begin, Index end) {
                    for (Index i = begin; i < end; ++i) {
                      std::copy_n(storage_.row(i), i + 1, grown.row(i));
                    }
                  });
    std::copy_n(inverse_diagonal_.data(), size_, diagonal.data());
    removal_.reserve(capacity);
    storage_.swap(grown);
    inverse_diagonal_.swap(diagonal);
  }

  // Appends a block of b points, given A' with A = K^-1 K(points, block) (size() x b), and a factor
  // of their Schur complement S = K(block, block) - A' K(points, block):
  //   T <- [T, 0; -T_S A', T_S],   so that  T'T = [P + A S^-1 A', -A S^-1; ., S^-1].
  void append(const ConstRows& coefficients, const GramFactor& schur) {
    const Index added = schur.size();
    reserve(size_ + added);
    Rows below = storage_.all().block(size_, 0, added, size_);
    linalg::multiply(schur.root(), coefficients, below);
    for (Index i = 0; i < added; ++i) {
      double* row = storage_.row(size_ + i);
      for (Index j = 0; j < size_; ++j) {
        row[j] = -row[j];
        inverse_diagonal_(j) += row[j] * row[j];
      }
      std::copy_n(schur.storage_.row(i), added, row + size_);
      inverse_diagonal_(size_ + i) = schur.inverse_diagonal_(i);
    }
    size_ += added;
  }

  // Removes point j. Handed out is pivot_row(i) = P(i, j) / sqrt(P(j, j)) with P = K^-1 before the
  // removal, all that a caller needs to re-fit weights: the last row of T once rotations have moved
  // all of column j there.
  void remove(Index j, Eigen::Ref<Vector> pivot_row) {
    kept_.keep(storage_, j);
    removal_.run(storage_.row(0), storage_.size(), size_, j, pivot_row.data());
    if (keeps_turns_) {
      const Index count = size_ - 1 - j;
      const double* cosines = removal_.cosines(j);
      const double* sines = removal_.sines(j);
      turns_.push_back({j, size_, {cosines, cosines + count}, {sines, sines + count}});
    }
    stale_.clear();
    for (Index i = 0, target = 0; i < size_; ++i) {
      if (i == j) continue;
      const double before = inverse_diagonal_(i);
      const double after = before - pivot_row(i) * pivot_row(i);
      inverse_diagonal_(target) = after;
      if (!(after > kCancellation * before)) stale_.push_back(target);
      ++target;
    }
    --size_;
    for (const Index i : stale_) refresh_diagonal(i);
  }

  // From now on, what removals do to the coordinates is written down until somebody has read it.
  void keep_turns(bool keep = true) { keeps_turns_ = keep; }
  const std::vector<Turn>& turns() const { return turns_; }
  void forget_turns() { turns_.clear(); }

  // How far T is from its invariant along one direction, O(size()^2): with k = K e_j,
  // T k and the solution y of T' y = e_j are the same vector if T K T' = I.
  double residual(Index j, const Eigen::Ref<const Vector>& kernel_column) const {
    struct Expected;
    double* expected = scratch<Expected>(size_);
    std::fill_n(expected, size_, 0.0);
    expected[j] = 1;
    double squared_difference = 0, squared_norm = 0;
    for (Index i = size_ - 1; i >= 0; --i) {
      const double* row = storage_.row(i);
      expected[i] /= row[i];
      for (Index k = 0; k < i; ++k) expected[k] -= row[k] * expected[i];
      double whitened;
      linalg::loops().multiply_vector(i + 1, {row, 0}, 0, 1, kernel_column.data(), &whitened);
      squared_difference += (whitened - expected[i]) * (whitened - expected[i]);
      squared_norm += expected[i] * expected[i];
    }
    return std::sqrt(squared_difference / squared_norm);
  }

  // From now on, and until the next time, undo() brings back what there is. Only a removal changes
  // rows that are there, from that of its point on: those are copied first.
  void remember(Index added) {
    kept_.start(size_);
    ensure_size(kept_diagonal_, size_ + added);
    std::copy_n(inverse_diagonal_.data(), size_, kept_diagonal_.data());
  }
  void undo() noexcept {
    size_ = kept_.size();
    kept_.bring_back(storage_);
    std::copy_n(kept_diagonal_.data(), size_, inverse_diagonal_.data());
    turns_.clear();
  }

 private:
  // Below this ratio, an updated diagonal entry has lost too many digits to subtraction.
  static constexpr double kCancellation = 1e-4;

  void copy_lower(const ConstRows& matrix) {
    reserve(matrix.rows());
    size_ = matrix.rows();
    for (Index i = 0; i < size_; ++i) {
      std::copy_n(matrix.data() + i * matrix.outerStride(), i + 1, storage_.row(i));
      std::fill(storage_.row(i) + i + 1, storage_.row(i) + size_, 0.0);
    }
  }

  void refresh_diagonal(Index j) {
    double sum = 0;
    for (Index i = j; i < size_; ++i) sum += storage_.row(i)[j] * storage_.row(i)[j];
    inverse_diagonal_(j) = sum;
  }

  ZeroedSquare storage_;
  Vector inverse_diagonal_;
  Index size_ = 0;

  linalg::ColumnRemoval removal_;
  std::vector<Index> stale_;
  std::vector<Turn> turns_;
  bool keeps_turns_ = false;

  Workspace<KeptTriangle> kept_;
  Vector kept_diagonal_;
};

}  // namespace parsimon
