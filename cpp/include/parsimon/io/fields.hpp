#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "parsimon/io/archive.hpp"
#include "parsimon/io/checks.hpp"
#include "parsimon/kernel/parse.hpp"
#include "parsimon/loss/parse.hpp"
#include "parsimon/types.hpp"

// What a model file holds of a thing is said once, for both directions:
//
//   template <class File>
//   void fields(File& file, Thing& thing) {
//     file("number", thing.number);
//     file("matrix", thing.matrix, rows, columns);
//   }
//
// A Writer puts the values into an archive. A Reader overwrites them by those of an archive, which
// must have the sizes that are given. Other types are converted before writing, and
// rebuilt `if constexpr (File::reads)`.

namespace parsimon::detail {

struct Writer {
  static constexpr bool reads = false;
  Archive& archive;
  std::string prefix = "";  // of all names, if a model has several of a thing

  template <class Value>
  void operator()(const std::string& name, const Value& value, Index = 0, Index = 0) {
    archive.set(prefix + name, value);
  }
};

struct Reader {
  static constexpr bool reads = true;
  const Archive& archive;
  std::string prefix = "";

  template <class Value>
  void operator()(const std::string& name, Value& value, Index rows = Archive::any_size,
                  [[maybe_unused]] Index columns = Archive::any_size) {
    const std::string entry = prefix + name;
    if constexpr (std::is_same_v<Value, std::string>) {
      value = archive.get_text(entry);
    } else if constexpr (std::is_same_v<Value, double>) {
      value = archive.get_number(entry);
    } else if constexpr (std::is_integral_v<Value>) {
      value = static_cast<Value>(archive.get_integer(entry));
    } else if constexpr (std::is_same_v<Value, std::vector<double>>) {
      value = archive.get_numbers(entry, rows);
    } else if constexpr (std::is_same_v<Value, std::vector<Index>>) {
      const auto found = archive.get_integers(entry, rows);
      value.assign(found.begin(), found.end());
    } else if constexpr (std::is_same_v<Value, Vector>) {
      value = archive.get_vector(entry, rows);
    } else {
      value = archive.get_matrix(entry, rows, columns);
    }
  }
};

template <class File>
void count(File& file, const std::string& name, Index& value) {
  file(name, value);
  require_count(value, name);
}

// A schedule or a map: one of several, with its parameters.
template <class File, class Value>
void named(File& file, const std::string& name, Value& value) {
  std::string kind = value.name();
  std::vector<double> parameters = value.parameters();
  file(name, kind);
  file(name + ".parameters", parameters);
  if constexpr (File::reads) value = Value::restore(kind, parameters);
}

// A kernel or a loss, by its text. One that is there already stays: it stands in for one that
// cannot be written down (a user's function).
template <class File, class Value, class Parse>
void described(File& file, const std::string& name, Value& value, const Parse& parse) {
  std::string text = value ? value->describe() : "";
  file(name, text);
  if (!value) value = parse(text);
}

inline void require_algorithm(const Archive& archive, const std::string& expected) {
  const std::string found = archive.get_text("algorithm");
  require(found == expected, "The model file holds a model of the algorithm " + found + ", where " +
                                 expected + " was expected.");
}

// The entries of a thing, beside those that there are.
template <class Thing>
Archive write(const std::string& algorithm, Thing thing, Archive archive = {}) {
  archive.set("algorithm", algorithm);
  Writer file{archive};
  fields(file, thing);
  return archive;
}

template <class Thing>
Thing read(const Archive& archive, Thing thing) {
  Reader file{archive};
  fields(file, thing);
  return thing;
}

}  // namespace parsimon::detail
