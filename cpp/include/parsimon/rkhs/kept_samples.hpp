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
// between them and the points of a dictionary that changes meanwhile. Kernel values that a step has
// computed are kept; the others, of points that came later, are computed in blocks, when they are
// needed.
//
// The kernel may throw in compare(), which then has changed nothing that counts. Whichever of the
// points and newcomers it was told of are in the dictionary later: values() needs nothing else.
class KeptSamples {
 public:
  Index size() const { return samples_ ? samples_->size() : 0; }
  RowMatrix points() const { return samples_ ? samples_->points() : RowMatrix(0, 0); }

  // These rows of the samples, which have such views about the origin of the dictionary, and such
  // kernel values: one row for each of its points.
  void append(const Dictionary& dictionary, const ConstRows& samples, const View* views,
              const std::vector<Index>& chosen, const ConstRows& kernel_values) {
    if (chosen.empty()) return;
    if (size() == 0) start(dictionary);
    const Index before = size(), count = static_cast<Index>(chosen.size());
    for (const Index i : chosen) {
      samples_->append(samples.row(i), views, i, false, samples_->next_id());
    }
    // Values of a single row or column have been summed in another order than these would be.
    if (kernel_values.rows() < 2 || kernel_values.cols() < 2) return;
    if (seen_.size() == steps_) seen_.emplace_back();
    PointRows& seen = seen_[steps_++];
    seen.begin = before;
    seen.ids = dictionary.ids();
    linalg::select_columns(kernel_values, chosen, count,
                           seen.values.resize(kernel_values.rows(), count));
  }

  // Others than there were.
  void restore(const Dictionary& dictionary, const ConstRows& samples) {
    start(dictionary);
    std::vector<View> views;
    dictionary.make_views(samples, views);
    std::vector<Index> all(static_cast<std::size_t>(samples.rows()));
    std::iota(all.begin(), all.end(), Index{0});
    append(dictionary, samples, views.data(), all, RowMatrix(0, 0));
  }

  // The first ones stay.
  void truncate(Index count) {
    while (size() > count) samples_->drop(size() - 1);
    while (steps_ > 0 && seen_[steps_ - 1].begin >= count) --steps_;
  }

  // From now on, and until settle(), undo() brings back the samples there are, if none have come
  // since.
  void remember() {
    if (samples_) samples_->remember();
  }
  void undo() noexcept {
    if (samples_) samples_->undo();
    // Kernel values can be found again.
    known_ = PointRows();
    steps_ = 0;
  }
  void settle() noexcept {
    if (samples_) samples_->settle();
  }

  // Only these stay, of all whose values() have been asked for.
  void keep(const std::vector<Index>& chosen) {
    const auto count = static_cast<Index>(chosen.size());
    samples_->select(chosen);
    auto narrow = spare_.resize(known_.values.rows(), count);
    linalg::select_columns(known_.values.all(), chosen, count, narrow);
    std::swap(known_.values, static_cast<RowBuffer&>(spare_));
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
    const std::vector<Index> fresh = unseen();
    const Kernel& kernel = dictionary.kernel();
    fresh_.compute(kernel, dictionary.views(), dictionary.ids(), samples_->views_of(fresh).data(),
                   static_cast<Index>(fresh.size()));
    late_.compute(kernel, late_views.data(), late_ids, samples_->views(), size());
  }

  // k(d_i, x_j) of the first points of the dictionary, one row for each.
  ConstRows values(const Dictionary& dictionary, Index basis_size) {
    auto all = spare_.resize(basis_size, size());
    std::vector<Place> points;  // that have been there since the last time
    for (Index i = 0; i < basis_size; ++i) {
      const double* late = late_.row(dictionary.id(i));
      if (late != nullptr) {
        std::copy_n(late, size(), all.data() + i * size());
      } else {
        points.emplace_back(dictionary.id(i), i);
      }
    }
    std::sort(points.begin(), points.end());
    const std::vector<Index> fresh = unseen();
    known_.copy_to(all, points, known_columns());
    for (std::size_t k = 0; k < steps_; ++k)
      seen_[k].copy_to(all, points, seen_[k].values.columns());
    for (std::size_t k = 0; k < fresh.size(); ++k) {
      for (const auto& [id, i] : points) all(i, fresh[k]) = fresh_.row(id)[k];
    }
    std::swap(known_.values, static_cast<RowBuffer&>(spare_));
    known_.ids.assign(dictionary.ids().begin(), dictionary.ids().begin() + basis_size);
    known_.sort();
    steps_ = 0;
    return found();
  }

  // What values() has found, of the samples that are left.
  ConstRows found() const { return known_.values.all(); }

 private:
  using Place = std::pair<Index, Index>;  // id of a point, and its row

  // Kernel values of some samples in a row, from sample `begin` on: one row per point, which is
  // found by the point's id.
  struct PointRows {
    RowBuffer values;
    std::vector<Index> ids;
    Index begin = 0;
    std::vector<Place> places;  // by id

    void sort() {
      places.clear();
      for (const Index id : ids) places.emplace_back(id, static_cast<Index>(places.size()));
      // They mostly are: points keep their order, and late ones come last.
      if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
    }

    const double* row(Index id) const {
      const auto place = std::lower_bound(places.begin(), places.end(), Place(id, 0));
      if (place == places.end() || place->first != id) return nullptr;
      return values.data() + place->second * values.columns();
    }

    // The columns of these points, which are all here.
    void copy_to(Rows all, const std::vector<Place>& points, Index columns) {
      if (columns == 0) return;
      sort();
      auto place = places.begin();
      for (const auto& [id, i] : points) {
        while (place->first != id) ++place;
        std::copy_n(values.data() + place->second * values.columns(), columns,
                    all.data() + i * all.outerStride() + begin);
      }
    }

    void compute(const Kernel& kernel, const View* points, const std::vector<Index>& of,
                 const View* samples, Index count) {
      ids = of;
      sort();
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
    steps_ = 0;
  }

  Index known_columns() const { return std::min(known_.values.columns(), size()); }

  // Samples whose kernel values nobody has kept.
  std::vector<Index> unseen() const {
    std::vector<Index> samples;
    Index next = known_columns();
    const auto up_to = [&](Index end) {
      for (; next < end; ++next) samples.push_back(next);
    };
    for (std::size_t k = 0; k < steps_; ++k) {
      up_to(seen_[k].begin);
      next = seen_[k].begin + seen_[k].values.columns();
    }
    up_to(size());
    return samples;
  }

  std::optional<Dictionary> samples_;
  PointRows known_;              // as values() found them
  std::vector<PointRows> seen_;  // what steps since have computed, the first of these
  std::size_t steps_ = 0;
  PointRows fresh_;  // of the other samples since
  PointRows late_;   // of the points since
  Workspace<RowBuffer> spare_;
};

}  // namespace parsimon
