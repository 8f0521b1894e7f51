#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "parsimon/linalg/products.hpp"
#include "parsimon/memory/row_buffer.hpp"
#include "parsimon/rkhs/dictionary.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Samples of a stream that are kept as they are for a while, the oldest first, and the kernel
// between them and the points of a dictionary that changes meanwhile. Kernel values are computed in
// blocks, when they are needed, and only once.
//
// The kernel may throw in compare(), which then has changed nothing that counts. Whichever of the
// points and newcomers it was told of are in the dictionary later: values() needs nothing else.
class KeptSamples {
 public:
  Index size() const { return samples_ ? samples_->size() : 0; }
  RowMatrix points() const { return samples_ ? samples_->points() : RowMatrix(0, 0); }

  // Row i of the samples, which has these views about the origin of the dictionary.
  void append(const Dictionary& dictionary, const ConstRows& samples, const View* views, Index i) {
    if (size() == 0) start(dictionary);
    samples_->append(samples.row(i), views, i, false, samples_->next_id());
  }

  // Others than there were.
  void restore(const Dictionary& dictionary, const ConstRows& samples) {
    start(dictionary);
    std::vector<View> views;
    dictionary.make_views(samples, views);
    for (Index i = 0; i < samples.rows(); ++i) append(dictionary, samples, views.data(), i);
  }

  // The first ones stay.
  void truncate(Index count) {
    while (size() > count) samples_->drop(size() - 1);
  }

  // Only these stay, of all whose values() have been asked for.
  void keep(const std::vector<Index>& chosen) {
    const auto count = static_cast<Index>(chosen.size());
    samples_->select(chosen);
    auto narrow = spare_.resize(known_.values.rows(), count);
    linalg::select_columns(known_.values.all(), chosen, count, narrow);
    std::swap(known_.values, spare_);
  }

  // newcomers: which of the samples behind these views may join the dictionary, in this order.
  void compare(const Dictionary& dictionary, const View* views = nullptr,
               const std::vector<Index>& newcomers = {}) {
    std::vector<Index> late, late_ids;
    for (Index i = 0; i < dictionary.size(); ++i) {
      if (known_.row(dictionary.id(i)) != nullptr) continue;
      late.push_back(i);
      late_ids.push_back(dictionary.id(i));
    }
    std::vector<View> late_views = dictionary.views_of(late);
    for (std::size_t k = 0; k < newcomers.size(); ++k) {
      late_ids.push_back(dictionary.next_id() + static_cast<Index>(k));
      for (std::size_t v = 0; v < late_views.size(); ++v) {
        late_views[v].append(views[v], newcomers[k]);
      }
    }
    if (size() == 0) start(dictionary);
    const Index known = known_columns();
    std::vector<Index> fresh(static_cast<std::size_t>(size() - known));
    std::iota(fresh.begin(), fresh.end(), known);
    const Kernel& kernel = dictionary.kernel();
    fresh_.compute(kernel, dictionary.views(), dictionary.ids(), samples_->views_of(fresh).data(),
                   size() - known);
    late_.compute(kernel, late_views.data(), late_ids, samples_->views(), size());
  }

  // k(d_i, x_j) of the first points of the dictionary, one row for each.
  ConstRows values(const Dictionary& dictionary, Index basis_size) {
    const Index columns = known_columns();
    auto all = spare_.resize(basis_size, size());
    for (Index i = 0; i < basis_size; ++i) {
      double* row = all.data() + i * size();
      const double* known = known_.row(dictionary.id(i));
      if (known == nullptr) {
        std::copy_n(late_.row(dictionary.id(i)), size(), row);
      } else {
        std::copy_n(fresh_.row(dictionary.id(i)), size() - columns,
                    std::copy_n(known, columns, row));
      }
    }
    std::swap(known_.values, spare_);
    known_.name({dictionary.ids().begin(), dictionary.ids().begin() + basis_size});
    return known_.values.all();
  }

 private:
  // Kernel values, one row per point, which is found by the point's id.
  struct PointRows {
    RowBuffer values;
    std::vector<std::pair<Index, Index>> places;  // id and row, by id

    void name(const std::vector<Index>& ids) {
      places.clear();
      for (const Index id : ids) places.emplace_back(id, static_cast<Index>(places.size()));
      std::sort(places.begin(), places.end());
    }

    const double* row(Index id) const {
      const auto place = std::lower_bound(places.begin(), places.end(), std::pair(id, Index{0}));
      if (place == places.end() || place->first != id) return nullptr;
      return values.data() + place->second * values.columns();
    }

    void compute(const Kernel& kernel, const View* points, const std::vector<Index>& ids,
                 const View* samples, Index count) {
      name(ids);
      const auto size = static_cast<Index>(ids.size());
      if (size == 0 || count == 0) return;
      // Kernels sum in another order where there is a single row or column. What is computed must
      // not depend on when it is, or a model that was saved and loaded would go on with other bits.
      std::vector<View> two_points, two_samples;
      if (size == 1) points = doubled(points, kernel.view_count(), two_points);
      if (count == 1) samples = doubled(samples, kernel.view_count(), two_samples);
      auto all = values.resize(std::max<Index>(size, 2), std::max<Index>(count, 2));
      kernel.block(points, samples, all);
      require(all_finite(all.data(), all.size()),
              "The kernel is not finite at these samples; scale the features or choose another "
              "kernel.");
    }

    static const View* doubled(const View* views, Index count, std::vector<View>& room) {
      room.assign(views, views + count);
      for (Index v = 0; v < count; ++v) room[static_cast<std::size_t>(v)].append(views[v], 0);
      return room.data();
    }
  };

  void start(const Dictionary& dictionary) {
    samples_ = Dictionary::about(dictionary.kernel_pointer(), dictionary.features(),
                                 dictionary.origin(), 0);
    known_ = PointRows();
  }

  Index known_columns() const { return std::min(known_.values.columns(), size()); }

  std::optional<Dictionary> samples_;
  PointRows known_;  // as values() found them
  PointRows fresh_;  // of the samples since
  PointRows late_;   // of the points since
  RowBuffer spare_;
};

}  // namespace parsimon
