#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace parsimon::detail {

[[noreturn]] inline void throw_file_error(const std::string& what,
                                          const std::filesystem::path& path, int code) {
  throw std::filesystem::filesystem_error(what, path,
                                          std::error_code(code, std::generic_category()));
}

// In UTF-8. On Windows, path.string() throws if a name has characters that the code page lacks.
inline std::string text_of(const std::filesystem::path& path) {
  const auto text = path.u8string();  // in C++20 not of char
  return {text.begin(), text.end()};
}

// A regular file whose length is known before any of it is read.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path) : path_(path) {
    const std::filesystem::file_status status = std::filesystem::status(path);
    if (!std::filesystem::exists(status)) throw_file_error("Cannot open", path, ENOENT);
    if (std::filesystem::is_directory(status)) throw_file_error("Cannot open", path, EISDIR);
    if (!std::filesystem::is_regular_file(status)) throw_file_error("Cannot open", path, EINVAL);
    length_ = std::filesystem::file_size(path);
    errno = 0;
    stream_.open(path, std::ios::binary);
    if (!stream_) throw_file_error("Cannot open", path, errno != 0 ? errno : EACCES);
  }

  std::uintmax_t length() const { return length_; }

  // Appends up to `count` bytes; fewer only where the file ends.
  void read_onto(std::string& bytes, std::size_t count) {
    const std::size_t start = bytes.size();
    bytes.resize(start + count);
    stream_.read(bytes.data() + start, static_cast<std::streamsize>(count));
    if (stream_.bad()) throw_file_error("Cannot read", path_, EIO);
    bytes.resize(start + static_cast<std::size_t>(stream_.gcount()));
  }

 private:
  std::filesystem::path path_;
  std::uintmax_t length_ = 0;
  std::ifstream stream_;
};

}  // namespace parsimon::detail
