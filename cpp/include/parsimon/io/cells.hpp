#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/io/checks.hpp"
#include "parsimon/io/entries.hpp"

namespace parsimon {

// One value of a sample with columns of numbers and of text: whichever its column holds. NaN and ""
// stand for what is missing.
struct Cell {
  double number = std::numeric_limits<double>::quiet_NaN();
  std::string text = {};
};

// What Python's StreamingPipeline does to samples before its estimator sees them: every number less
// its mean and over its scale, 0 if it is missing; then, for every column of text, as many places
// as it has, with a 1 at that of the category. A category that was never learned has none, unless
// all are taken: then it shares the last one.
class ColumnEncoding {
 public:
  // features: numbers of an encoded sample.
  ColumnEncoding(const Entries& file, Index features) {
    if (!file.has("pipeline") || file.get_integer("pipeline.columns") == 0) return;
    const Index count = file.get_integer("pipeline.columns");
    require(count > 0, "The model file holds a pipeline without columns.");
    is_text_ = file.get_integers("pipeline.is_text", count);
    for (Index i = 0; i < count; ++i) {
      names_.push_back(file.get_text("pipeline.column." + std::to_string(i)));
    }
    const Index texts = count - std::count(is_text_.begin(), is_text_.end(), 0);
    mean_ = file.get_numbers("pipeline.mean", count - texts);
    scale_ = file.get_numbers("pipeline.scale", count - texts);
    detail::require_finite(mean_.data(), count - texts);
    for (const double scale : scale_) {
      require(scale > 0, "The model file holds a scale that is not positive.");
    }
    width_ = count - texts;
    if (texts > 0) read_categories(file, texts);
    require(width_ == features, "The pipeline in the model file is not that of its model.");
  }

  // Whether samples are to be changed at all.
  bool is_needed() const { return !is_text_.empty(); }
  bool has_text() const { return !columns_.empty(); }
  // Of a sample as it is given.
  Index columns() const { return static_cast<Index>(is_text_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  bool is_text(Index column) const { return is_text_[static_cast<std::size_t>(column)] != 0; }

  std::vector<double> operator()(const double* x) const {
    require(!has_text(), "The model has columns of text: give a Cell for each column.");
    std::vector<double> encoded(mean_.size());
    for (std::size_t i = 0; i < encoded.size(); ++i) encoded[i] = scaled(i, x[i]);
    return encoded;
  }

  std::vector<double> operator()(const Cell* cells) const {
    std::vector<double> encoded(static_cast<std::size_t>(width_), 0.0);
    std::size_t number = 0, text = 0, start = mean_.size();
    for (Index i = 0; i < columns(); ++i) {
      if (!is_text(i)) {
        encoded[number] = scaled(number, cells[i].number);
        ++number;
        continue;
      }
      const Categories& column = columns_[text++];
      const auto place = column.place_of(cells[i].text);
      if (place >= 0) encoded[start + static_cast<std::size_t>(place)] = 1;
      start += static_cast<std::size_t>(column.places);
    }
    return encoded;
  }

 private:
  static constexpr Index kFree = 4;

  struct Categories {
    std::map<std::string, Index> known;
    Index places = 0;

    Index place_of(const std::string& text) const {
      const auto found = known.find(text);
      if (found != known.end()) return found->second;
      return static_cast<Index>(known.size()) == places - 1 ? places - 1 : -1;
    }
  };

  double scaled(std::size_t i, double number) const {
    return std::isnan(number) ? 0 : (number - mean_[i]) / scale_[i];
  }

  void read_categories(const Entries& file, Index texts) {
    const auto places = file.get_integers("pipeline.places", texts);
    const auto sizes = file.get_integers("pipeline.categories", texts);
    for (std::size_t j = 0; j < places.size(); ++j) {
      // No more are kept free than there were categories first, or four: a small file does not ask
      // for samples that fill the memory.
      require(0 <= sizes[j] && sizes[j] < places[j] &&
                  places[j] - sizes[j] - 1 <= std::max<std::int64_t>(sizes[j], kFree),
              "The model file holds a column of text with places that it cannot have.");
      Categories column;
      column.places = places[j];
      for (Index k = 0; k < sizes[j]; ++k) {
        const std::string entry =
            "pipeline.category." + std::to_string(j) + "." + std::to_string(k);
        require(column.known.emplace(file.get_text(entry), k).second,
                "The model file holds a category twice.");
      }
      width_ += column.places;
      columns_.push_back(std::move(column));
    }
  }

  std::vector<std::string> names_;
  std::vector<std::int64_t> is_text_;
  std::vector<double> mean_;
  std::vector<double> scale_;
  std::vector<Categories> columns_;  // those of text
  Index width_ = 0;
};

}  // namespace parsimon
