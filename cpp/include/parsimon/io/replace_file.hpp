#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>

#ifdef _WIN32
#include <io.h>
#else
#include <fcntl.h>
#include <unistd.h>
#endif

#include "parsimon/io/input_file.hpp"

namespace parsimon::detail {

// Fails if the file exists, so that two writers never share a temporary file.
inline std::FILE* create_new_file(const std::filesystem::path& path) {
#ifdef _WIN32
  return _wfopen(path.c_str(), L"wbx");
#else
  return std::fopen(path.c_str(), "wbx");
#endif
}

inline bool flush_to_disk(std::FILE* file) {
  if (std::fflush(file) != 0) return false;
#ifdef _WIN32
  return _commit(_fileno(file)) == 0;
#else
  return fsync(fileno(file)) == 0;
#endif
}

// Makes the renaming itself durable. Best effort: some file systems cannot.
inline void flush_directory(const std::filesystem::path& directory) {
#ifdef _WIN32
  (void)directory;
#else
  const int handle = open(directory.c_str(), O_RDONLY);
  if (handle < 0) return;
  (void)fsync(handle);
  close(handle);
#endif
}

// A file of its own beside `target`, gone at the end of the scope unless it has taken its place.
// Errors name the target: the temporary name means nothing to a user.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target) : target_(target) {
    static const char digits[] = "0123456789abcdef";
    std::random_device entropy;
    for (int attempt = 0; attempt < 16 && !file_; ++attempt) {
      std::string name = ".parsimon-";
      for (int i = 0; i < 16; ++i) name += digits[entropy() % 16];
      path_ = target.parent_path() / (name + ".tmp");
      errno = 0;
      file_ = create_new_file(path_);
      if (!file_ && errno != EEXIST) break;
    }
    if (!file_) throw_file_error("Cannot create", target_, errno);
  }

  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  ~TemporaryFile() {
    if (file_) std::fclose(file_);
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  void write(const std::string& bytes) {
    errno = 0;
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
    if (!written || !flush_to_disk(file_)) throw_file_error("Cannot write", target_, errno);
    std::FILE* const file = file_;
    file_ = nullptr;
    if (std::fclose(file) != 0) throw_file_error("Cannot write", target_, errno);
  }

  void take_place() {
    std::error_code code;
    std::filesystem::rename(path_, target_, code);
    if (code) throw std::filesystem::filesystem_error("Cannot replace", target_, code);
    path_.clear();
  }

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

// Whoever reads `path` meanwhile, or after a crash, finds the old content or the new, never a part.
inline void replace_file(const std::filesystem::path& path, const std::string& bytes) {
  TemporaryFile temporary(path);
  temporary.write(bytes);
  temporary.take_place();
  flush_directory(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

}  // namespace parsimon::detail
