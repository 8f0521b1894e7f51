#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "parsimon/linalg/products.hpp"
#include "parsimon/linalg/triangular.hpp"
#include "parsimon/memory/kept_triangle.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/memory/zeroed_square.hpp"
#include "parsimon/rkhs/gram_factor.hpp"
#include "parsimon/rkhs/output_change.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// What all samples so far have said about a function, as far as its weights depend on them: with
// phi_i = T k(D, x_i), the orthonormal coordinates of sample i in the span of the basis,
//
//   normal() = H = sum_i h_i phi_i phi_i'   (lower triangle)      right() = r = sum_i phi_i z_i'
//   the function that minimises 1/2 sum_i h_i ||f(x_i) - z_i / h_i||^2 + ridge / 2 ||f||^2
//   has the coordinates  V = (H + ridge I)^-1 r  and the weights  W = T' V.
//
// They follow the basis. Where a point leaves, the coordinates turn, and the one along what only
// that point spanned goes: exact for everything ever seen. Where points join, the past is taken to
// lie in the span that was: their coordinates of it are 0, but for what they have in common with
// points that leave in the same step, whose place they take. Turns are orthogonal, and the ridge is
// I: H is no worse conditioned than the data, whatever the condition of the Gram matrix.
class Statistics {
 public:
  explicit Statistics(Index outputs) : right_(outputs), solution_(outputs) {}

  Index size() const { return size_; }
  Index outputs() const { return right_.columns(); }
  auto normal() const { return normal_.all().topLeftCorner(size_, size_); }
  auto right() const { return right_.all(); }
  // The coordinates of the function that was solved last.
  auto solution() const { return solution_.all(); }
  auto solution() { return solution_.all(); }

  // Room for a basis of this size, and for this many points that leave it before others join: what
  // follows then throws nothing.
  void reserve(Index size, Index gone) {
    reserve(size);
    lost_normal_.resize(gone, size_);
    lost_corner_.resize(gone, gone);
    lost_right_.resize(gone, outputs());
    lost_solution_.resize(gone, outputs());
    panel_.resize(size_, linalg::padded(std::max(kTurnedRows, outputs())));
  }
  void reserve(Index size) {
    if (size > normal_.size()) {
      kept_.release();
      ZeroedSquare grown(linalg::padded(size + size / 4));
      for (Index i = 0; i < size_; ++i) std::copy_n(normal_.row(i), i + 1, grown.row(i));
      normal_.swap(grown);
    }
    for (RowBuffer* rows : {&right_, &solution_}) {
      rows->resize(std::max(size, size_));
      rows->resize(size_);
    }
  }

  // Points have joined the basis, in the step in which others have left: follow() has been called
  // for these. shares: one row for each new coordinate, one column for each of those that went, the
  // inner products of their directions.
  void grow(const ConstRows& shares) {
    const Index before = size_, added = shares.rows(), gone = lost_normal_.rows();
    grow(added);
    const auto combine = [&](const RowBuffer& lost, RowBuffer& rows) {
      for (Index i = 0; i < added; ++i) {
        for (Index s = 0; s < gone; ++s) {
          for (Index c = 0; c < lost.columns(); ++c) {
            rows.row(before + i)(c) += shares(i, s) * lost.row(s)(c);
          }
        }
      }
    };
    combine(lost_right_, right_);
    combine(lost_solution_, solution_);
    for (Index i = 0; i < added; ++i) {
      double* row = normal_.row(before + i);
      for (Index s = 0; s < gone; ++s) {
        const double* lost = lost_normal_.row(s).data();
        for (Index k = 0; k < before; ++k) row[k] += shares(i, s) * lost[k];
        for (Index j = 0; j <= i; ++j) {
          for (Index t = 0; t < gone; ++t) {
            row[before + j] += shares(i, s) * lost_corner_.row(s)(t) * shares(j, t);
          }
        }
      }
    }
  }

  // So many points have joined the basis.
  void grow(Index added) {
    reserve(size_ + added);
    for (Index i = size_; i < size_ + added; ++i) std::fill_n(normal_.row(i), i + 1, 0.0);
    for (RowBuffer* rows : {&right_, &solution_}) {
      auto all = rows->resize(size_ + added);
      std::fill_n(all.data() + size_ * all.cols(), added * all.cols(), 0.0);
    }
    size_ += added;
  }

  // From now on, and until forget_kept(), undo() brings back what there is, all of it.
  void remember() {
    forget_kept();
    kept_.start(size_);
    kept_.keep(normal_, 0);
    kept_right_.copy_from(right_);
    kept_solution_.copy_from(solution_);
    kept_.is_whole = true;
  }
  void forget_kept() noexcept { kept_.is_whole = false; }
  void undo() noexcept {
    if (!kept_.is_whole) return;
    forget_kept();
    size_ = kept_.size();
    kept_.bring_back(normal_);
    std::swap(right_, kept_right_);
    std::swap(solution_, kept_solution_);
  }

  // Points have left it, one after the other. What was said along the directions that went is known
  // until the next time. Like grow() of their shares, it throws nothing once there is room.
  void follow(const std::vector<Turn>& turns) {
    const auto gone = static_cast<Index>(turns.size());
    lost_normal_.resize(gone, size_);
    lost_corner_.resize(gone, gone);
    lost_right_.resize(gone, right_.columns());
    lost_solution_.resize(gone, solution_.columns());
    for (Index t = 0; t < gone; ++t) lose(turns[static_cast<std::size_t>(t)], t);
  }

  // The basis is another one now, whose coordinates are U times the old ones.
  void change_basis(const ConstRows& u) {
    const Index size = u.rows();
    RowMatrix full = normal();
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k < i; ++k) full(k, i) = full(i, k);
    }
    RowMatrix half(size, size_), all(size, size);
    linalg::multiply(u, full, half);
    linalg::multiply_by_transpose(half, u, all);
    ZeroedSquare normal(linalg::padded(size));
    for (Index i = 0; i < size; ++i) {
      for (Index k = 0; k <= i; ++k) normal.row(i)[k] = all(i, k);
    }
    const auto turned = [&](const RowBuffer& rows) {
      RowBuffer result;
      auto values = result.resize(size, rows.columns());
      if (rows.columns() > 0) linalg::multiply(u, rows.all(), values);
      return result;
    };
    RowBuffer right = turned(right_), solution = turned(solution_);
    normal_.swap(normal);
    std::swap(right_, right);
    std::swap(solution_, solution);
    size_ = size;
  }

  // H <- share H and r <- share r
  void forget(double share) {
    if (share == 1) return;
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k <= i; ++k) normal_.row(i)[k] *= share;
      for (Index c = 0; c < outputs(); ++c) right_.row(i)(c) *= share;
    }
  }

  // There are other outputs. constant: the coordinates of the function that is 1 at the points of
  // the basis; so much as the past has said about the old outputs, it says for fresh ones to be
  // where they begin.
  void change_outputs(const OutputChange& change, const Eigen::Ref<const Vector>& constant) {
    const Index outputs = change.map.cols();
    RowMatrix right(size_, outputs), solution(size_, outputs);
    for (Index i = 0; i < size_; ++i) {
      for (Index c = 0; c < outputs; ++c) {
        right(i, c) = solution(i, c) = 0;
        for (Index b = 0; b < change.map.rows(); ++b) {
          right(i, c) += change.curvature * right_.row(i)(b) * change.map(b, c);
          solution(i, c) += solution_.row(i)(b) * change.map(b, c);
        }
      }
    }
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k <= i; ++k) normal_.row(i)[k] *= change.curvature;
    }
    for (const Index c : change.fresh) {
      for (Index i = 0; i < size_; ++i) {
        solution(i, c) = change.fresh_value * constant(i);
        for (Index k = 0; k < size_; ++k) {
          const double entry = k <= i ? normal_.row(i)[k] : normal_.row(k)[i];
          right(i, c) += entry * change.fresh_value * constant(k);
        }
      }
    }
    right_ = RowBuffer(outputs);
    solution_ = RowBuffer(outputs);
    right_.resize(size_) = right;
    solution_.resize(size_) = solution;
  }

  // H += sum_k h_k phi_k phi_k' over these columns of the features, with one number of curvature
  // for each.
  void add_curvature(const ConstRows& features, const std::vector<Index>& columns,
                     const Eigen::Ref<const Vector>& curvature) {
    add_curvature(features, columns, curvature, normal_.all().topLeftCorner(size_, size_));
  }

  // r += sum_k phi_k wanted_k', likewise; wanted: one row for each column of the features.
  void add_right(const ConstRows& features, const std::vector<Index>& columns,
                 const ConstRows& wanted) {
    const auto count = static_cast<Index>(columns.size());
    if (count == 0) return;
    auto chosen = weighted_.resize(size_, count);
    linalg::select_columns(features, columns, count, chosen);
    RowMatrix rows(count, outputs()), sum(size_, outputs());
    for (Index k = 0; k < count; ++k)
      rows.row(k) = wanted.row(columns[static_cast<std::size_t>(k)]);
    linalg::multiply(chosen, rows, sum);
    right_.all() += sum;
  }

  // L with L L' = H + sum_k h_k phi_k phi_k' + ridge I, the sum over these columns of the features.
  // A ridge that rounding eats up is made larger until there is one; false if none is large enough,
  // because H is not finite.
  bool factorise(double ridge, const ConstRows& features, const std::vector<Index>& columns,
                 const Eigen::Ref<const Vector>& curvature, RowBuffer& lower) {
    auto sum = lower.resize(size_, size_);
    for (double damping = 0;; damping *= 10) {
      for (Index i = 0; i < size_; ++i) std::copy_n(normal_.row(i), i + 1, sum.data() + i * size_);
      add_curvature(features, columns, curvature, sum);
      double trace = 0;
      for (Index i = 0; i < size_; ++i) trace += sum(i, i);
      if (!std::isfinite(trace)) return false;
      if (damping == 0) {
        damping = std::max({ridge, kSmallestRidge * trace, std::numeric_limits<double>::min()});
      }
      for (Index i = 0; i < size_; ++i) sum(i, i) += damping;
      if (linalg::cholesky(sum)) return true;
      if (!(damping < trace)) return false;
    }
  }

  // Of two that belong to the same basis.
  Statistics& operator+=(const Statistics& other) {
    require(other.size_ == size_ && other.outputs() == outputs(),
            "Only statistics of the same dictionary and outputs can be added.");
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k <= i; ++k) normal_.row(i)[k] += other.normal_.row(i)[k];
    }
    right_.all() += other.right_.all();
    return *this;
  }

  // What a file keeps, and its inverse.
  struct State {
    RowMatrix normal;  // lower triangle
    RowMatrix right;
    RowMatrix solution;
  };

  State state() const { return {normal(), right(), solution()}; }

  void restore(const State& state) {
    size_ = 0;
    normal_ = ZeroedSquare();
    grow(state.normal.rows());
    for (Index i = 0; i < size_; ++i) {
      for (Index k = 0; k <= i; ++k) normal_.row(i)[k] = state.normal(i, k);
    }
    right_.all() = state.right;
    solution_.all() = state.solution;
  }

 private:
  // The lower triangle of sum += sum_k h_k phi_k phi_k'.
  void add_curvature(const ConstRows& features, const std::vector<Index>& columns,
                     const Eigen::Ref<const Vector>& curvature, Rows sum) {
    const auto count = static_cast<Index>(columns.size());
    if (count == 0) return;
    auto weighted = weighted_.resize(size_, count);
    linalg::select_columns(features, columns, count, weighted);
    ensure_size(roots_, count);
    for (Index k = 0; k < count; ++k) roots_(k) = std::sqrt(curvature(k));
    for (Index i = 0; i < size_; ++i) {
      double* row = weighted_.row(i).data();
      for (Index k = 0; k < count; ++k) row[k] *= roots_(k);
    }
    linalg::add_outer_product(weighted, sum);
  }

  // Relative to the sum of the squared coordinates.
  static constexpr double kSmallestRidge = 1e-13;
  // Rows of H that turn at a time: they stay in the cache.
  static constexpr Index kTurnedRows = 32;

  // The t-th of some points leaves: H <- Q H Q', whose last row then goes. In one pass over the
  // rows of the lower triangle from that of the point on: before row r is reached, row r - 1 holds
  // what has been carried down so far, `self` its product with itself, and what is left of the rows
  // above has moved up by one.
  void lose(const Turn& turn, Index t) {
    const Index first = turn.point;
    for (Index s = 0; s < t; ++s) {
      lost_corner_.row(s)(t) = lost_corner_.row(t)(s) =
          turn_numbers(turn, lost_normal_.row(s).data() + first, size_ - first);
    }
    double self = normal_.row(first)[first];
    for (Index r = first + 1; r < size_; r += kTurnedRows) {
      const Index rows = std::min(kTurnedRows, size_ - r);
      turn_columns(turn, r, rows);
      turn_block(turn, r, rows, self);
    }
    --size_;
    double* last = normal_.row(size_);
    std::copy_n(last, size_, lost_normal_.row(t).data());
    lost_corner_.row(t)(t) = self;
    std::fill_n(last, size_ + 1, 0.0);
    const auto lose_last = [&](RowBuffer& rows, RowBuffer& lost) {
      if (rows.columns() > 0) turn_any(turn, rows, first);
      std::copy_n(rows.row(size_).data(), rows.columns(), lost.row(t).data());
      rows.resize(size_);
    };
    lose_last(right_, lost_right_);
    lose_last(solution_, lost_solution_);
  }

  // Some rows of H become those of H Q', up to the diagonal: each ends with what has been carried
  // to it, and its diagonal, which stays.
  void turn_columns(const Turn& turn, Index begin, Index rows) {
    const Index first = turn.point, columns = begin - first;
    // Columns that all of these rows have, as rows.
    auto panel = panel_.resize(columns, linalg::padded(rows));
    linalg::transpose(normal_.all().block(begin, first, rows, columns), panel.data(), panel.cols());
    turn_rows(turn, panel, panel.cols());
    linalg::transpose(panel.leftCols(rows), normal_.row(begin) + first, normal_.size());
    for (Index r = begin + 1; r < begin + rows; ++r) {
      double* row = normal_.row(r);
      for (Index k = begin; k < r; ++k) turn_pair(turn, k, row[k - 1], row[k]);
    }
  }

  // Then the rows themselves turn.
  void turn_block(const Turn& turn, Index begin, Index rows, double& self) {
    const Index first = turn.point, lanes = linalg::loops().lanes;
    const Index whole = (begin - 1) / lanes * lanes;
    linalg::loops().rotate_rows(normal_.row(begin - 1), normal_.size(), rows + 1, 0, whole,
                                turn.cosines.data() + (begin - 1 - first),
                                turn.sines.data() + (begin - 1 - first));
    for (Index r = begin; r < begin + rows; ++r) {
      double* above = normal_.row(r - 1);
      double* row = normal_.row(r);
      for (Index k = whole; k + 1 < r; ++k) turn_pair(turn, r, above[k], row[k]);
      const auto i = static_cast<std::size_t>(r - 1 - first);
      const double sine = turn.sines[i], cosine = turn.cosines[i];
      const double shared = row[r - 1], diagonal = row[r];
      above[r - 1] = sine * sine * diagonal - 2 * sine * cosine * shared + cosine * cosine * self;
      row[r - 1] = (sine * sine - cosine * cosine) * shared + sine * cosine * (diagonal - self);
      self = sine * sine * self + 2 * sine * cosine * shared + cosine * cosine * diagonal;
    }
  }

  // The rotation that point k takes part in: what has been carried and what comes next become what
  // is left behind and what is carried on.
  static void turn_pair(const Turn& turn, Index k, double& carried, double& next) {
    const auto i = static_cast<std::size_t>(k - 1 - turn.point);
    const double left = turn.sines[i] * next - turn.cosines[i] * carried;
    next = turn.sines[i] * carried + turn.cosines[i] * next;
    carried = left;
  }

  // A column of as many numbers as rows are turned; what becomes of the last is handed out.
  static double turn_numbers(const Turn& turn, double* numbers, Index count) {
    for (Index i = 1; i < count; ++i) {
      turn_pair(turn, turn.point + i, numbers[i - 1], numbers[i]);
    }
    return numbers[count - 1];
  }

  static void turn_rows(const Turn& turn, Rows rows, Index end) {
    linalg::loops().rotate_rows(rows.data(), rows.outerStride(), rows.rows(), 0, end,
                                turn.cosines.data(), turn.sines.data());
  }

  // Rows from `first` on, whose number of columns need not be that of whole vectors.
  void turn_any(const Turn& turn, RowBuffer& rows, Index first) {
    const Index columns = rows.columns(), width = linalg::padded(columns);
    if (width == columns) return turn_rows(turn, rows.all().bottomRows(rows.rows() - first), width);
    auto copy = panel_.resize(rows.rows() - first, width);
    for (Index i = 0; i < copy.rows(); ++i) {
      std::copy_n(rows.row(first + i).data(), columns, copy.data() + i * width);
      std::fill(copy.data() + i * width + columns, copy.data() + (i + 1) * width, 0.0);
    }
    turn_rows(turn, copy, width);
    for (Index i = 0; i < copy.rows(); ++i) {
      std::copy_n(copy.data() + i * width, columns, rows.row(first + i).data());
    }
  }

  Index size_ = 0;
  ZeroedSquare normal_;  // lower triangle
  RowBuffer right_;
  RowBuffer solution_;

  // Of the directions that have gone: rows of H and their inner products with each other, and rows
  // of the rest.
  RowBuffer lost_normal_;
  RowBuffer lost_corner_;
  RowBuffer lost_right_;
  RowBuffer lost_solution_;

  RowBuffer panel_;
  RowBuffer weighted_;
  Vector roots_;

  struct KeptNormal : KeptTriangle {
    bool is_whole = false;
  };
  Workspace<KeptNormal> kept_;
  RowBuffer kept_right_;
  RowBuffer kept_solution_;
};

}  // namespace parsimon
