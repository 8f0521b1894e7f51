#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/io/entries.hpp"

namespace parsimon {

// A label of a class: an integer (True is 1), a number or a text, as it was in training.
class Label {
 public:
  using Value = std::variant<std::int64_t, double, std::string>;

  explicit Label(std::int64_t value) : value_(value) {}
  explicit Label(double value) : value_(value) {}
  explicit Label(std::string value) : value_(std::move(value)) {}

  const Value& value() const { return value_; }

  std::string text() const {
    if (const auto* text = std::get_if<std::string>(&value_)) return *text;
    if (const auto* integer = std::get_if<std::int64_t>(&value_)) return std::to_string(*integer);
    std::ostringstream stream;
    stream.precision(17);
    stream << std::get<double>(value_);
    return stream.str();
  }

  bool operator==(const Label& other) const { return value_ == other.value_; }

 private:
  Value value_;
};

namespace detail {

template <class Number>
std::vector<Label> labels_of(const std::vector<Number>& numbers) {
  return {numbers.begin(), numbers.end()};
}

// So many; or a single one, if there was only one class so far where there is room for two.
// 0, 1, ... in a file that a C++ program wrote and that says nothing else.
inline std::vector<Label> read_labels(const Entries& file, Index count) {
  std::vector<Label> labels;
  const auto has_one = [&] {
    return file.has("labels") ? file.entries().at("labels").shape == std::vector<Index>{1}
                              : file.has("labels.type") && !file.has("labels.1");
  };
  if (count == 2 && has_one()) count = 1;
  if (file.has("labels")) {
    const bool integers = file.entries().at("labels").type == Entries::Type::integers;
    if (integers) return labels_of(file.get_integers("labels", count));
    return labels_of(file.get_numbers("labels", count));
  }
  const bool told = file.has("labels.type");
  for (Index i = 0; i < count; ++i) {
    if (told) {
      labels.emplace_back(file.get_text("labels." + std::to_string(i)));
    } else {
      labels.emplace_back(static_cast<std::int64_t>(i));
    }
  }
  return labels;
}

inline void require_features(Index given, Index expected) {
  require(given == expected, "The sample has " + std::to_string(given) + " features, where " +
                                 std::to_string(expected) + " were expected.");
}

}  // namespace detail

}  // namespace parsimon
