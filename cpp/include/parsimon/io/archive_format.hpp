#pragma once

// The functions of Entries that turn them into bytes and back, and that explain what is wrong.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/io/encoding.hpp"
#include "parsimon/io/entries.hpp"
#include "parsimon/io/input_file.hpp"

namespace parsimon {

namespace detail {

// Like PNG's: no text file begins so, and a transfer that rewrites line ends destroys it.
inline const std::string& archive_magic() {
  static const std::string magic("\x89PRSM\r\n\x1a", 8);
  return magic;
}

constexpr std::size_t archive_header_size = 32;
constexpr std::size_t archive_checksum_offset = 24;

inline std::uint64_t archive_checksum(const std::string& bytes) {
  const std::uint64_t head = fnv1a(bytes.data(), archive_checksum_offset);
  return fnv1a(bytes.data() + archive_header_size, bytes.size() - archive_header_size, head);
}

struct ArchiveHeader {
  std::uint32_t entries;
  std::uint64_t checksum;
};

// `bytes` holds at least the header if there are so many; `available` is what there is in all.
inline ArchiveHeader check_archive_header(const std::string& bytes, std::uint64_t available,
                                          const std::string& source) {
  const std::string& magic = archive_magic();
  if (bytes.empty()) throw Error(source + " is empty: it is not a parsimon model.");
  if (bytes.compare(0, magic.size(), magic, 0, bytes.size()) != 0) {
    throw Error(source + " is not a parsimon model: it does not begin as one.");
  }
  if (bytes.size() < archive_header_size) {
    throw Error(source + " ends after " + std::to_string(bytes.size()) +
                " bytes, within its header: the copy is incomplete.");
  }
  const std::uint32_t version = load_little_endian<std::uint32_t>(bytes.data() + 8);
  if (version > Entries::format_version) {
    throw Error(source + " was written by a newer parsimon (format " + std::to_string(version) +
                "; this one reads up to " + std::to_string(Entries::format_version) +
                "): upgrade parsimon.");
  }
  if (version == 0) throw Error(source + " is damaged: there is no format 0.");
  const std::uint64_t length = load_little_endian<std::uint64_t>(bytes.data() + 16);
  if (length != available) {
    throw Error(source + " has " + std::to_string(available) + " bytes, but was written with " +
                std::to_string(length) +
                (length > available ? ": the copy is incomplete." : ": something was appended."));
  }
  return {load_little_endian<std::uint32_t>(bytes.data() + 12),
          load_little_endian<std::uint64_t>(bytes.data() + archive_checksum_offset)};
}

// Takes entries off a buffer and never looks beyond its end.
class EntryReader {
 public:
  EntryReader(const std::string& bytes, const std::string& source)
      : bytes_(bytes), source_(source), position_(archive_header_size) {}

  std::size_t remaining() const { return bytes_.size() - position_; }

  std::string take(std::uint64_t count) {
    if (count > remaining()) damaged("an entry reaches beyond the end");
    const std::size_t start = position_;
    position_ += static_cast<std::size_t>(count);
    return bytes_.substr(start, static_cast<std::size_t>(count));
  }

  template <class Unsigned>
  Unsigned take_unsigned() {
    if (sizeof(Unsigned) > remaining()) damaged("an entry reaches beyond the end");
    const Unsigned value = load_little_endian<Unsigned>(bytes_.data() + position_);
    position_ += sizeof(Unsigned);
    return value;
  }

  std::string take_name() {
    const std::uint32_t size = take_unsigned<std::uint32_t>();
    if (size == 0 || size > 255) damaged("the name of an entry is empty or too long");
    std::string name = take(size);
    if (!is_utf8(name)) damaged("the name of an entry is not UTF-8");
    return name;
  }

  Entries::Entry take_entry(const std::string& name) {
    const auto type = static_cast<Entries::Type>(take_unsigned<std::uint8_t>());
    const unsigned rank = take_unsigned<std::uint8_t>();
    const bool is_text = type == Entries::Type::text;
    if (!is_text && type != Entries::Type::integers && type != Entries::Type::numbers) {
      damaged("the entry \"" + name + "\" is of an unknown type");
    }
    if (rank > 2 || (is_text && rank != 1)) {
      damaged("the entry \"" + name + "\" is of an impossible rank");
    }
    Entries::Entry entry{type, {}, {}};
    std::uint64_t count = is_text ? 1 : 8;
    for (unsigned axis = 0; axis < rank; ++axis) {
      const std::uint64_t size = take_unsigned<std::uint64_t>();
      if (size > largest_size || (size != 0 && count > largest_size / size)) {
        damaged("the entry \"" + name + "\" is impossibly large");
      }
      count *= size;
      entry.shape.push_back(static_cast<Index>(size));
    }
    entry.payload = take(count);
    if (is_text && !is_utf8(entry.payload)) {
      damaged("the text of the entry \"" + name + "\" is not UTF-8");
    }
    return entry;
  }

  [[noreturn]] void damaged(const std::string& how) const {
    throw Error(source_ + " is damaged: " + how + ".");
  }

 private:
  // A size of an empty matrix is not bounded by the file, but must still be one that can be used.
  static constexpr std::uint64_t largest_size = sizeof(Index) < 8 ? 0x3FFFFFFF : 0xFFFFFFFFFFFF;

  const std::string& bytes_;
  const std::string& source_;
  std::size_t position_;
};

inline std::string describe_shape(const std::vector<Index>& shape) {
  std::string text;
  for (const Index size : shape) {
    if (!text.empty()) text += " x ";
    text += size < 0 ? "any" : std::to_string(size);
  }
  return text;
}

inline std::string describe_entry(const Entries::Entry& entry) {
  if (entry.type == Entries::Type::text) return "a text";
  const bool integers = entry.type == Entries::Type::integers;
  if (entry.shape.empty()) return integers ? "an integer" : "a number";
  return (entry.shape.size() == 1 ? "a vector of " : "a matrix of ") +
         std::string(integers ? "integers" : "numbers");
}

}  // namespace detail

inline std::string Entries::to_bytes() const {
  std::string bytes = detail::archive_magic();
  detail::append_little_endian(bytes, format_version);
  detail::append_little_endian(bytes, static_cast<std::uint32_t>(entries_.size()));
  bytes.append(16, '\0');
  for (const auto& [name, entry] : entries_) {
    detail::append_little_endian(bytes, static_cast<std::uint32_t>(name.size()));
    bytes += name;
    detail::append_little_endian(bytes, static_cast<std::uint8_t>(entry.type));
    detail::append_little_endian(bytes, static_cast<std::uint8_t>(entry.shape.size()));
    for (const Index size : entry.shape) {
      detail::append_little_endian(bytes, static_cast<std::uint64_t>(size));
    }
    bytes += entry.payload;
  }
  std::string field;
  detail::append_little_endian(field, static_cast<std::uint64_t>(bytes.size()));
  bytes.replace(16, 8, field);
  field.clear();
  detail::append_little_endian(field, detail::archive_checksum(bytes));
  bytes.replace(detail::archive_checksum_offset, 8, field);
  return bytes;
}

inline Entries Entries::from_bytes(const std::string& bytes, const std::string& source) {
  const detail::ArchiveHeader header = detail::check_archive_header(bytes, bytes.size(), source);
  if (header.checksum != detail::archive_checksum(bytes)) {
    throw Error(source + " is damaged: its checksum does not match.");
  }
  detail::EntryReader reader(bytes, source);
  Entries entries;
  for (std::uint32_t i = 0; i < header.entries; ++i) {
    const std::string name = reader.take_name();
    if (entries.has(name)) reader.damaged("the entry \"" + name + "\" occurs twice");
    entries.entries_.emplace(name, reader.take_entry(name));
  }
  if (reader.remaining() != 0) reader.damaged("bytes follow its last entry");
  return entries;
}

inline Entries Entries::read(const std::filesystem::path& path) {
  detail::InputFile file(path);
  const std::string source = "The file \"" + detail::text_of(path) + "\"";
  std::string bytes;
  file.read_onto(bytes, detail::archive_header_size);
  detail::check_archive_header(bytes, file.length(), source);
  file.read_onto(bytes, static_cast<std::size_t>(file.length()) - bytes.size());
  return from_bytes(bytes, source);
}

inline const Entries::Entry& Entries::find(const std::string& name, Type type, std::size_t rank,
                                           const char* what) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    throw Error("The model has no entry \"" + name + "\", where " + what +
                " was expected: it was not written by this class of estimator.");
  }
  const Entry& entry = found->second;
  if (entry.type != type || entry.shape.size() != rank) {
    throw Error("The entry \"" + name + "\" of the model is " + detail::describe_entry(entry) +
                ", where " + what + " was expected.");
  }
  return entry;
}

inline void Entries::require_shape(const std::string& name, const Entry& entry,
                                   const std::vector<Index>& expected) {
  for (std::size_t axis = 0; axis < expected.size(); ++axis) {
    if (expected[axis] == any_size || expected[axis] == entry.shape[axis]) continue;
    throw Error("The entry \"" + name + "\" of the model has the shape " +
                detail::describe_shape(entry.shape) + ", where " +
                detail::describe_shape(expected) + " was expected.");
  }
}

}  // namespace parsimon
