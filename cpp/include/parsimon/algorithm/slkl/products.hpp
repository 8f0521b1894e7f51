#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "parsimon/algorithm/slkl/columns.hpp"
#include "parsimon/algorithm/slkl/weighted_ridge.hpp"
#include "parsimon/linalg/products.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// How a solver for one output asks for products of columns with those in its active set A, of which
// it says when they come and go.
class ColumnProducts {
 public:
  ColumnProducts(const KernelColumns& columns, Index output) : columns_(columns), output_(output) {}
  virtual ~ColumnProducts() = default;

  double square(Index m) const { return columns_.norms()(m); }
  double correlation(Index m) const { return columns_.correlations()(m, output_); }

  // result = C_A' c_m
  virtual void with_active(Index m, const std::vector<Index>& active, Vector& result) = 0;

  // c_m'(y - C_A w)
  virtual double alignment(Index m, const std::vector<Index>& active,
                           const WeightedRidge& ridge) = 0;

  // result = C'(y - C_A w), all at once. Returns false if keep_going() did, before all was done.
  virtual bool alignments(const std::vector<Index>& active, const WeightedRidge& ridge,
                          const std::function<bool()>& keep_going, Vector& result) = 0;

  // with_active() was asked for the column that comes; the last one takes the place of one that
  // goes; `kept` is in ascending order.
  virtual void appended(Index m) = 0;
  virtual void removed(Index i) = 0;
  virtual void selected(const std::vector<Index>& kept) = 0;

 protected:
  const KernelColumns& columns_;
  Index output_;
};

// All of them are stored.
class StoredProducts final : public ColumnProducts {
 public:
  using ColumnProducts::ColumnProducts;

  void with_active(Index m, const std::vector<Index>& active, Vector& result) override {
    result.resize(static_cast<Index>(active.size()));
    const double* row = columns_.products().data() + m * columns_.size();
    for (std::size_t i = 0; i < active.size(); ++i) result(static_cast<Index>(i)) = row[active[i]];
  }

  double alignment(Index m, const std::vector<Index>& active, const WeightedRidge& ridge) override {
    const double* row = columns_.products().data() + m * columns_.size();
    double value = correlation(m);
    for (std::size_t i = 0; i < active.size(); ++i) {
      value -= row[active[i]] * ridge.solution()(static_cast<Index>(i));
    }
    return value;
  }

  bool alignments(const std::vector<Index>& active, const WeightedRidge& ridge,
                  const std::function<bool()>& keep_going, Vector& result) override {
    result.resize(columns_.size());
    for (Index m = 0; m < columns_.size(); ++m) result(m) = correlation(m);
    for (std::size_t i = 0; i < active.size(); ++i) {
      const double weight = ridge.solution()(static_cast<Index>(i));
      const double* row = columns_.products().data() + active[i] * columns_.size();
      for (Index m = 0; m < columns_.size(); ++m) result(m) -= weight * row[m];
    }
    return keep_going();
  }

  void appended(Index) override {}
  void removed(Index) override {}
  void selected(const std::vector<Index>&) override {}
};

// The same from the samples: it keeps the active columns, n m0 numbers, and computes the others as
// they are asked for.
class ComputedProducts final : public ColumnProducts {
 public:
  using ColumnProducts::ColumnProducts;

  void with_active(Index m, const std::vector<Index>&, Vector& result) override {
    compute(m);
    result.resize(size_);
    linalg::multiply_vector(active(), size_, columns_.samples(), column_.data(), result.data());
  }

  double alignment(Index m, const std::vector<Index>&, const WeightedRidge& ridge) override {
    compute(m);
    find_residual(ridge);
    double value = 0;
    linalg::multiply_vector({column_.data(), 0}, 1, columns_.samples(), residual_.data(), &value);
    return value;
  }

  bool alignments(const std::vector<Index>&, const WeightedRidge& ridge,
                  const std::function<bool()>& keep_going, Vector& result) override {
    find_residual(ridge);
    result = Vector::Zero(columns_.size());
    std::vector<Index> block;
    RowMatrix some;
    for (Index start = 0; start < columns_.size(); start += kBlock) {
      if (!keep_going()) return false;
      const Index count = std::min(kBlock, columns_.size() - start);
      block.resize(static_cast<std::size_t>(count));
      for (Index k = 0; k < count; ++k) block[static_cast<std::size_t>(k)] = start + k;
      columns_.columns(block, some);
      for (Index i = 0; i < some.rows(); ++i) {
        for (Index k = 0; k < count; ++k) result(start + k) += some(i, k) * residual_(i);
      }
    }
    return true;
  }

  void appended(Index m) override {
    compute(m);
    const Index samples = columns_.samples();
    if (size_ == active_.rows()) {
      active_.conservativeResize(std::max<Index>(16, size_ + size_ / 2), samples);
    }
    std::copy_n(column_.data(), samples, active_.data() + size_++ * samples);
  }

  void removed(Index i) override {
    --size_;
    if (i != size_) move(size_, i);
  }

  void selected(const std::vector<Index>& kept) override {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (static_cast<Index>(i) != kept[i]) move(kept[i], static_cast<Index>(i));
    }
    size_ = static_cast<Index>(kept.size());
  }

 private:
  // Columns at a time.
  static constexpr Index kBlock = 64;

  linalg::Tall<double> active() const { return {active_.data(), columns_.samples()}; }

  void move(Index from, Index to) {
    const Index samples = columns_.samples();
    std::copy_n(active_.data() + from * samples, samples, active_.data() + to * samples);
  }

  void compute(Index m) {
    if (known_ == m) return;
    columns_.columns({m}, column_);
    known_ = m;
  }

  void find_residual(const WeightedRidge& ridge) {
    const Index samples = columns_.samples();
    residual_.resize(samples);
    for (Index i = 0; i < samples; ++i) residual_(i) = columns_.targets()(i, output_);
    for (Index k = 0; k < size_; ++k) {
      const double weight = ridge.solution()(k);
      const double* column = active_.data() + k * samples;
      for (Index i = 0; i < samples; ++i) residual_(i) -= weight * column[i];
    }
  }

  RowMatrix active_;  // one row per active column
  Index size_ = 0;
  RowMatrix column_;
  Index known_ = -1;
  Vector residual_;
};

}  // namespace parsimon
