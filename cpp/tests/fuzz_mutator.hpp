#pragma once

// Changes model files so that they are still files: what the reader of a model must refuse lies
// behind the checksum.

#include <cstring>
#include <iterator>
#include <limits>
#include <parsimon/io/archive.hpp>
#include <random>
#include <string>

namespace fuzz {

using namespace parsimon;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  // Another file; one that cannot be read is returned with a checksum that is right.
  std::string operator()(const std::string& bytes) {
    try {
      const Archive given = Archive::from_bytes(bytes);
      Open archive;
      for (const auto& [name, entry] : given.entries()) archive.put(name, entry);
      const int changes = 1 + below(3);
      for (int i = 0; i < changes && !archive.entries().empty(); ++i) change(archive);
      return archive.to_bytes();
    } catch (const Error&) {
      return repaired(bytes);
    }
  }

  // The same bytes with a length and a checksum that fit.
  static std::string repaired(std::string bytes) {
    if (bytes.size() < detail::archive_header_size) return bytes;
    std::string field;
    detail::append_little_endian(field, static_cast<std::uint64_t>(bytes.size()));
    bytes.replace(16, 8, field);
    field.clear();
    detail::append_little_endian(field, detail::archive_checksum(bytes));
    return bytes.replace(detail::archive_checksum_offset, 8, field);
  }

 private:
  struct Open : Archive {
    using Archive::put;
  };

  int below(std::size_t count) { return static_cast<int>(random_() % count); }

  void change(Open& archive) {
    const auto& all = archive.entries();
    const auto chosen = std::next(all.begin(), below(all.size()));
    const std::string name = chosen->first;
    Archive::Entry entry = chosen->second;
    switch (below(6)) {
      case 0: {  // what another entry holds
        entry = std::next(all.begin(), below(all.size()))->second;
        break;
      }
      case 1: {  // fewer rows
        if (entry.shape.empty() || entry.shape[0] == 0) break;
        const auto row = entry.payload.size() / static_cast<std::size_t>(entry.shape[0]);
        entry.shape[0] = below(static_cast<std::size_t>(entry.shape[0]));
        entry.payload.resize(row * static_cast<std::size_t>(entry.shape[0]));
        break;
      }
      case 2: {  // rows once more
        if (entry.shape.empty() || entry.payload.size() > 100'000) break;
        entry.shape[0] *= 2;
        entry.payload += entry.payload;
        break;
      }
      default:
        entry.type == Archive::Type::text ? change_text(entry) : change_number(entry);
    }
    archive.put(name, entry);
  }

  void change_text(Archive::Entry& entry) {
    static const char* const words[] = {"",
                                        "polk",
                                        "merge",
                                        "newton",
                                        "gaussian(1e-300)",
                                        "gaussian(1e300)",
                                        "polynomial(1000000,1,1)",
                                        "linear()",
                                        "multiclass_hinge",
                                        "squared",
                                        "pinball(0.1)",
                                        "scattered",
                                        "adaptive",
                                        "euclidean"};
    entry.payload = words[below(std::size(words))];
    entry.shape = {static_cast<Index>(entry.payload.size())};
  }

  void change_number(Archive::Entry& entry) {
    const std::size_t count = entry.payload.size() / 8;
    if (count == 0) return;
    const std::size_t first = below(4) == 0 ? 0 : static_cast<std::size_t>(below(count));
    const std::size_t last = first == 0 && below(2) == 0 ? count : first + 1;
    std::string value(8, '\0');
    if (entry.type == Archive::Type::integers) {
      static const std::int64_t odd[] = {0,
                                         1,
                                         2,
                                         -1,
                                         7,
                                         1000,
                                         1 << 20,
                                         std::int64_t{1} << 40,
                                         std::numeric_limits<std::int64_t>::max()};
      const std::int64_t number = odd[below(std::size(odd))];
      std::memcpy(value.data(), &number, 8);
    } else {
      static const double odd[] = {0,
                                   -0.0,
                                   1,
                                   -1,
                                   0.5,
                                   1e-300,
                                   5e-324,
                                   1e99,
                                   1e101,
                                   1e154,
                                   1e300,
                                   -1e99,
                                   1e16,
                                   1e6,
                                   std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
      const double number = odd[below(std::size(odd))];
      std::memcpy(value.data(), &number, 8);
    }
    if (below(3) == 0) value[static_cast<std::size_t>(below(8))] = static_cast<char>(random_());
    for (std::size_t i = first; i < last; ++i) entry.payload.replace(8 * i, 8, value);
  }

  std::mt19937_64 random_;
};

}  // namespace fuzz
