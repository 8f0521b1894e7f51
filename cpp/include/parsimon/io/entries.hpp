#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/io/encoding.hpp"

namespace parsimon {

// A model file in memory: named texts, integers and floating-point numbers, the last two as a
// scalar, a vector or a matrix. Equal content gives equal bytes. Archive adds Eigen's types.
//
// Format 1, little-endian:
//   magic[8]  version u32  entries u32  length u64  checksum u64
//                                                     length: of the whole file
//                                                     checksum: FNV-1a of all but itself
//   for each entry, by name:
//     name: size u32, UTF-8     type u8     rank u8     sizes u64[rank]     payload
// A payload is UTF-8 (rank 1), or 8 bytes for each number, row by row.
//
// Reading trusts nothing: every size is checked against the bytes that are there before memory is
// asked for, and content that breaks the format is an Error. A file that cannot be opened is a
// std::filesystem::filesystem_error.
class Entries {
 public:
  static constexpr std::uint32_t format_version = 1;

  // 2 was for byte strings, which no file has.
  enum class Type : std::uint8_t { text = 1, integers = 3, numbers = 4 };

  struct Entry {
    Type type;
    std::vector<Index> shape;
    std::string payload;
  };

  void set(const std::string& name, const std::string& text) {
    require(detail::is_utf8(text), "The text for the entry \"" + name + "\" is not UTF-8.");
    put(name, {Type::text, {static_cast<Index>(text.size())}, text});
  }

  template <class Integer, std::enable_if_t<std::is_integral_v<Integer>, int> = 0>
  void set(const std::string& name, Integer value) {
    if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) == sizeof(std::int64_t)) {
      require(value <= static_cast<Integer>(std::numeric_limits<std::int64_t>::max()),
              "The integer for the entry \"" + name + "\" does not fit into 63 bits.");
    }
    const std::int64_t stored = static_cast<std::int64_t>(value);
    put(name, {Type::integers, {}, encode(&stored, 1)});
  }

  void set(const std::string& name, double value) {
    put(name, {Type::numbers, {}, encode(&value, 1)});
  }

  template <class Number>
  void set(const std::string& name, const std::vector<Number>& values) {
    put(name, {type_of<Number>(),
               {static_cast<Index>(values.size())},
               encode(values.data(), values.size())});
  }

  bool has(const std::string& name) const { return entries_.count(name) != 0; }

  const std::map<std::string, Entry>& entries() const { return entries_; }

  std::string get_text(const std::string& name) const {
    return find(name, Type::text, 1, "a text").payload;
  }

  std::int64_t get_integer(const std::string& name) const {
    return detail::load_number<std::int64_t>(
        find(name, Type::integers, 0, "an integer").payload.data());
  }

  double get_number(const std::string& name) const {
    return detail::load_number<double>(find(name, Type::numbers, 0, "a number").payload.data());
  }

  // A size that the caller knows already is required; any_size is not.
  static constexpr Index any_size = -1;

  std::vector<std::int64_t> get_integers(const std::string& name, Index size = any_size) const {
    return decode<std::int64_t>(find_vector(name, Type::integers, size));
  }

  std::vector<double> get_numbers(const std::string& name, Index size = any_size) const {
    return decode<double>(find_vector(name, Type::numbers, size));
  }

  // A matrix, row by row.
  struct Table {
    Index rows;
    Index columns;
    std::vector<double> numbers;
  };

  Table get_table(const std::string& name, Index rows = any_size, Index columns = any_size) const {
    const Entry& entry = find_matrix(name, rows, columns);
    return {entry.shape[0], entry.shape[1], decode<double>(entry)};
  }

  std::string to_bytes() const;

  // `source` names the bytes in messages.
  static Entries from_bytes(const std::string& bytes, const std::string& source = "The model");

  static Entries read(const std::filesystem::path& path);

 protected:
  template <class Number>
  static constexpr Type type_of() {
    constexpr bool is_integer =
        std::is_integral_v<Number> && std::is_signed_v<Number> && sizeof(Number) == 8;
    static_assert(is_integer || std::is_same_v<Number, double>,
                  "an archive holds double and signed 64-bit integers");
    return is_integer ? Type::integers : Type::numbers;
  }

  template <class Number>
  static std::string encode(const Number* values, std::size_t count) {
    std::string payload;
    payload.reserve(8 * count);
    for (std::size_t i = 0; i < count; ++i) detail::append_number(payload, values[i]);
    return payload;
  }

  template <class Number>
  static void decode(const Entry& entry, Number* values) {
    const std::size_t count = entry.payload.size() / 8;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = detail::load_number<Number>(entry.payload.data() + 8 * i);
    }
  }

  template <class Number>
  static std::vector<Number> decode(const Entry& entry) {
    std::vector<Number> values(entry.payload.size() / 8);
    decode(entry, values.data());
    return values;
  }

  void put(const std::string& name, Entry entry) {
    require(!name.empty() && name.size() <= 255 && detail::is_utf8(name),
            "The name of an entry must have 1 to 255 bytes of UTF-8.");
    entries_.insert_or_assign(name, std::move(entry));
  }

  const Entry& find_vector(const std::string& name, Type type, Index size) const {
    const Entry& entry = find(
        name, type, 1, type == Type::integers ? "a vector of integers" : "a vector of numbers");
    require_shape(name, entry, {size});
    return entry;
  }

  const Entry& find_matrix(const std::string& name, Index rows, Index columns) const {
    const Entry& entry = find(name, Type::numbers, 2, "a matrix of numbers");
    require_shape(name, entry, {rows, columns});
    return entry;
  }

 private:
  const Entry& find(const std::string& name, Type type, std::size_t rank, const char* what) const;
  static void require_shape(const std::string& name, const Entry& entry,
                            const std::vector<Index>& expected);

  std::map<std::string, Entry> entries_;
};

}  // namespace parsimon

#include "parsimon/io/archive_format.hpp"  // IWYU pragma: keep
