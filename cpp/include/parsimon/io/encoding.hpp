#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace parsimon::detail {

// Numbers in files are little-endian whatever the machine is; compilers turn these loops into
// plain loads and stores where it is too.
template <class Unsigned>
inline void append_little_endian(std::string& bytes, Unsigned value) {
  char buffer[sizeof(Unsigned)];
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    buffer[i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
  bytes.append(buffer, sizeof(Unsigned));
}

template <class Unsigned>
inline Unsigned load_little_endian(const char* bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return static_cast<Unsigned>(value);
}

// double and int64 travel as the 64 bits that they are.
template <class Number>
inline void append_number(std::string& bytes, Number number) {
  static_assert(sizeof(Number) == sizeof(std::uint64_t), "only 64-bit numbers are stored");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  append_little_endian(bytes, bits);
}

template <class Number>
inline Number load_number(const char* bytes) {
  static_assert(sizeof(Number) == sizeof(std::uint64_t), "only 64-bit numbers are stored");
  const std::uint64_t bits = load_little_endian<std::uint64_t>(bytes);
  Number number{};
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

// FNV-1a, 64 bits: against accidents, not against forgers.
inline std::uint64_t fnv1a(const char* bytes, std::size_t count,
                           std::uint64_t hash = 14695981039346656037ULL) {
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 1099511628211ULL;
  }
  return hash;
}

// RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
inline bool is_utf8(const std::string& text) {
  const std::size_t size = text.size();
  for (std::size_t i = 0; i < size;) {
    const unsigned lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || length > size - i) return false;
    for (std::size_t k = 1; k < length; ++k) {
      const unsigned next = static_cast<unsigned char>(text[i + k]);
      const unsigned low = k > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const unsigned high = k > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      if (next < low || next > high) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace parsimon::detail
