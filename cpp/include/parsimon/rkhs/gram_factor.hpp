#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "parsimon/linalg/products.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/memory/zeroed_square.hpp"
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
  auto root() const { return storage_.all().topLeftCorner(size_, size_); }
  auto inverse_diagonal() const { return inverse_diagonal_.head(size_); }

  void clear() { size_ = 0; }

  // Starts again from what root() and inverse_diagonal() were. The diagonal follows from T, but not
  // to the last bit once it has been updated.
  void assign(const ConstRows& root, const Eigen::Ref<const Vector>& inverse_diagonal) {
    reserve(root.rows());
    size_ = root.rows();
    storage_.all().topLeftCorner(size_, size_) = root.triangularView<Eigen::Lower>();
    inverse_diagonal_.head(size_) = inverse_diagonal;
  }

  // Starts again from a Cholesky factor: K = L L', T = L^-1.
  void assign_inverse_of(const ConstRows& cholesky_factor) {
    reserve(cholesky_factor.rows());
    size_ = cholesky_factor.rows();
    if (size_ == 0) return;
    auto inverse = storage_.all().topLeftCorner(size_, size_);
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
    const bool few = linalg::are_few(columns);
    const Index row = few ? linalg::padded<double>(size_) : width;
    const Index room = few ? columns * row : size_ * row;
    struct Values;
    struct Whitened;
    struct Coefficients;
    double* in = scratch<Values>(room);
    double* between = scratch<Whitened>(room);
    double* out = scratch<Coefficients>(room);
    using Copy = Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>;
    if (few) {
      linalg::transpose_padded(values, in, row);
      linalg::solve_with_few(root(), columns, in, between, out, row);
      const auto back = [&](double* from, Rows to) {
        linalg::transpose(Copy(from, columns, size_, Eigen::OuterStride<>(row)), to.data(),
                          to.outerStride());
      };
      back(between, whitened);
      back(out, coefficients);
    } else {
      const auto copy = [&](double* from) {
        return Copy(from, size_, columns, Eigen::OuterStride<>(row));
      };
      std::fill(in, in + room, 0.0);
      copy(in) = values;
      linalg::solve_with_root(root(), columns, in, between, out, row);
      whitened = copy(between);
      coefficients = copy(out);
    }
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
    auto below = storage_.all().block(size_, 0, added, size_);
    linalg::multiply(schur.root(), coefficients, below);
    below *= -1;
    storage_.all().block(size_, size_, added, added) = schur.root();
    inverse_diagonal_.head(size_) += below.colwise().squaredNorm().transpose();
    inverse_diagonal_.segment(size_, added) = schur.inverse_diagonal();
    size_ += added;
  }

  // Removes point j. Plane rotations move all of column j into the last row, which then goes.
  // That row is handed out: pivot_row(i) = P(i, j) / sqrt(P(j, j)) with P = K^-1 before the
  // removal, all that a caller needs to re-fit weights. One pass over the rows from j on.
  void remove(Index j, Eigen::Ref<Vector> pivot_row) {
    const double pivot = choose_rotations(j);
    const auto rows = static_cast<double>(size_ - j);
    const double flops = 6.0 * rows * (static_cast<double>(j) + 0.5 * rows);
    const Index most_parts = std::min<Index>(get_num_threads(), size_ / kPartWidth + 1);
    edges_.resize(most_parts, size_);
    int parts = 1;
    linalg::in_parts(most_parts, flops, [&](int part, int of) {
      if (part == 0) parts = of;
      rotate(j, first_column(j, part, of), first_column(j, part + 1, of), edges_.row(part).data());
    });
    for (int part = 1; part < parts; ++part) {
      place_edge(j, first_column(j, part, parts), edges_.row(part).data());
    }
    pivot_row = carried_.head(size_);
    pivot_row(j) = pivot;
    drop_from_diagonal(j, pivot_row);
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

  // Parts of T that threads rotate are a multiple of this wide: whole cache lines.
  static constexpr Index kPartWidth = 64;

  // Rotation i turns row i + 1 and what has been carried down to row i, such that of column j
  // nothing stays in row i. That column alone decides about all rotations. Returns what becomes of
  // it in the last row.
  double choose_rotations(Index j) {
    // All of the column is fetched from afar before any of it is waited for.
    double* column = carried_.data();
    for (Index i = j; i < size_; ++i) column[i] = storage_.row(i)[j];
    double carried = column[j];
    for (Index i = j; i + 1 < size_; ++i) {
      const double next = column[i + 1];
      const double norm = length(carried, next);
      cosines_(i) = next / norm;
      sines_(i) = carried / norm;
      carried = norm;
    }
    return carried;
  }

  static double length(double a, double b) {
    const double square = a * a + b * b;
    constexpr double smallest = 1e-280, largest = 1e280;
    return square > smallest && square < largest ? std::sqrt(square) : std::hypot(a, b);
  }

  // Where a part of the columns begins, if all are to have as many numbers from row j on.
  Index first_column(Index j, int part, int parts) const {
    const Index width = linalg::padded<double>(size_);
    if (part == parts) return width;
    const auto rows = static_cast<double>(size_ - j), left = static_cast<double>(j) * rows;
    const double numbers = (left + rows * rows / 2) * part / parts;
    const double column = numbers < left
                              ? numbers / rows
                              : static_cast<double>(size_) -
                                    std::sqrt(std::max(0.0, rows * rows - 2 * (numbers - left)));
    return std::min(static_cast<Index>(column) / kPartWidth * kPartWidth, width);
  }

  // All rotations of the columns begin .. end. What stays of column k is in row i then; columns
  // behind the removed one move up by one. Where that leads into the part before, which may still
  // be at work there, it is put into `edge` for place_edge().
  void rotate(Index j, Index begin, Index end, double* edge) {
    using namespace Eigen::internal;
    using Packet = linalg::Packet<double>;
    constexpr Index lanes = linalg::lanes<double>;
    std::fill(carried_.data() + begin, carried_.data() + end, 0.0);
    for (Index k = begin; k < std::min(j + 1, end); ++k) carried_(k) = storage_.row(j)[k];
    for (Index i = std::max(j, begin - 1); i + 1 < size_; ++i) {
      const auto sine = pset1<Packet>(sines_(i)), cosine = pset1<Packet>(cosines_(i));
      const double* next = storage_.row(i + 1);
      double* kept = storage_.row(i);
      double* carried = carried_.data();
      const auto turn = [&](Index k) {
        const auto of_next = ploadu<Packet>(next + k), of_carried = ploadu<Packet>(carried + k);
        pstoreu(carried + k, pmadd(sine, of_carried, pmul(cosine, of_next)));
        return pmadd(sine, of_next, pmul(pnegate(cosine), of_carried));
      };
      const Index last = std::min(end, linalg::padded<double>(i + 2));
      Index k = begin;
      for (; k + lanes <= std::min(j, last); k += lanes) pstoreu(kept + k, turn(k));
      if (k < last) {
        // These columns lie on both sides of the removed one, or of where the part begins.
        double stay[lanes];
        pstoreu(stay, turn(k));
        for (Index lane = 0; lane < lanes; ++lane) {
          const Index column = k + lane;
          if (column < j) kept[column] = stay[lane];
          if (column > j && column > begin) kept[column - 1] = stay[lane];
          if (column > j && column == begin) edge[i] = stay[lane];
        }
        k += lanes;
      }
      for (; k < last; k += lanes) pstoreu(kept + k - 1, turn(k));
    }
  }

  void place_edge(Index j, Index begin, const double* edge) {
    if (begin <= j) return;
    for (Index i = begin - 1; i + 1 < size_; ++i) storage_.row(i)[begin - 1] = edge[i];
  }

  void drop_from_diagonal(Index j, const Eigen::Ref<const Vector>& pivot_row) {
    Index target = 0;
    for (Index i = 0; i < size_; ++i) {
      if (i == j) continue;
      const double before = inverse_diagonal_(i);
      const double after = before - pivot_row(i) * pivot_row(i);
      stale_(target) = !(after > kCancellation * before);
      inverse_diagonal_(target++) = after;
    }
  }

  void refresh_diagonal(Index j) {
    inverse_diagonal_(j) = storage_.all().col(j).segment(j, size_ - j).squaredNorm();
  }

  // Rows are kept a multiple of 64 bytes long: how a row is summed must not depend on the capacity,
  // or a model that was saved and loaded would round differently.
  void reserve(Index size) {
    if (size <= storage_.size()) return;
    const Index capacity = (std::max(size, size_ + size_ / 4) + 7) / 8 * 8;
    // Everything new is there before anything old is given up.
    ZeroedSquare grown(capacity);
    Vector diagonal(capacity), carried(capacity), cosines(capacity), sines(capacity);
    Eigen::Array<bool, Eigen::Dynamic, 1> stale(capacity);
    linalg::share(size_, linalg::kCopyGrain, linalg::copy_flops(size_ * size_ / 2),
                  [&](Index begin, Index end) {
                    for (Index i = begin; i < end; ++i) {
                      std::copy_n(storage_.row(i), i + 1, grown.row(i));
                    }
                  });
    diagonal.head(size_) = inverse_diagonal_.head(size_);
    storage_.swap(grown);
    inverse_diagonal_.swap(diagonal);
    carried_.swap(carried);
    cosines_.swap(cosines);
    sines_.swap(sines);
    stale_.swap(stale);
  }

  ZeroedSquare storage_;
  Vector inverse_diagonal_;
  Vector carried_;
  Vector cosines_;
  Vector sines_;
  RowBuffer edges_;
  Eigen::Array<bool, Eigen::Dynamic, 1> stale_;
  Index size_ = 0;
};

}  // namespace parsimon
