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
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "parsimon/error.hpp"
#include "parsimon/io/input_file.hpp"

namespace parsimon::detail {

// -- what systems do in their own ways -----------------------------------------------------------

#ifdef _WIN32

inline std::FILE* create_new_file(const std::filesystem::path& path, const std::filesystem::path&) {
  return _wfopen(path.c_str(), L"wbx");
}

inline bool flush_to_disk(std::FILE* file) {
  return std::fflush(file) == 0 && _commit(_fileno(file)) == 0;
}

inline void flush_directory(const std::filesystem::path&) {}

// Windows cannot delete open files: one that can be deleted is abandoned.
inline bool is_abandoned(const std::filesystem::path&) { return true; }

#else

// Fails if the file exists, so that two writers never share a temporary file. It is locked as long
// as it is open: that is how others know that somebody is still writing it. It gets
// the owner and the permissions of `target`.
inline std::FILE* create_new_file(const std::filesystem::path& path,
                                  const std::filesystem::path& target) {
  struct stat old = {};
  const bool exists = stat(target.c_str(), &old) == 0;
  const int handle =
      open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, exists ? 0600 : 0666);
  if (handle < 0) return nullptr;
  struct stat fresh = {};
  const bool mine = flock(handle, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  // Before it was locked, another process may have taken it for abandoned.
  if (!mine || fstat(handle, &fresh) != 0 || fresh.st_nlink == 0) {
    close(handle);
    errno = EEXIST;
    return nullptr;
  }
  if (exists) {
    const bool given = fresh.st_uid == old.st_uid && fresh.st_gid == old.st_gid;
    // Only root can give files away; the permissions of the group are then for another group.
    const bool kept = given || fchown(handle, old.st_uid, old.st_gid) == 0;
    const mode_t mode = old.st_mode & (kept ? 07777U : 0707U);
    if (fchmod(handle, mode) != 0) errno = 0;
  }
  std::FILE* const file = fdopen(handle, "wb");
  if (!file) close(handle);
  return file;
}

inline bool flush_to_disk(std::FILE* file) {
  return std::fflush(file) == 0 && fsync(fileno(file)) == 0;
}

// Makes the renaming itself durable. Best effort: some file systems cannot.
inline void flush_directory(const std::filesystem::path& directory) {
  const int handle = open(directory.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return;
  (void)fsync(handle);
  close(handle);
}

// Whether nobody is writing this temporary file any more: whoever did so was killed.
inline bool is_abandoned(const std::filesystem::path& path) {
  const int handle = open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) return false;
  struct stat state = {};
  const bool ours = fstat(handle, &state) == 0 && S_ISREG(state.st_mode) &&
                    state.st_uid == geteuid() && flock(handle, LOCK_EX | LOCK_NB) == 0;
  close(handle);
  return ours;
}

#endif

// -- temporary files -----------------------------------------------------------------------------

inline constexpr std::size_t kRandomDigits = 16;

inline std::string temporary_name() {
  static const char digits[] = "0123456789abcdef";
  std::random_device entropy;
  std::string name = ".parsimon-";
  for (std::size_t i = 0; i < kRandomDigits; ++i) name += digits[entropy() % 16];
  return name + ".tmp";
}

inline bool is_temporary_name(const std::string& name) {
  return name.size() == 10 + kRandomDigits + 4 && name.rfind(".parsimon-", 0) == 0 &&
         name.find_first_not_of("0123456789abcdef", 10) == 10 + kRandomDigits &&
         name.compare(10 + kRandomDigits, 4, ".tmp") == 0;
}

// What saves that were killed have left behind. Best effort.
inline void remove_leftovers(const std::filesystem::path& directory) {
  std::error_code code;
  std::filesystem::directory_iterator entry(directory, code), end;
  for (; !code && entry != end; entry.increment(code)) {
    if (!is_temporary_name(text_of(entry->path().filename()))) continue;
    std::error_code ignored;
    if (is_abandoned(entry->path())) std::filesystem::remove(entry->path(), ignored);
  }
}

// A file of its own beside `target`, gone at the end of the scope unless it has taken its place.
// Errors name the target: the temporary name means nothing to a user.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target) : target_(target) {
    for (int attempt = 0; attempt < 16 && !file_; ++attempt) {
      path_ = target.parent_path() / temporary_name();
      errno = 0;
      file_ = create_new_file(path_, target);
      if (!file_ && errno != EEXIST) break;
    }
    if (!file_) throw_file_error("Cannot create", target_, errno);
  }

  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  ~TemporaryFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
    if (file_) std::fclose(file_);
  }

  void write(const std::string& bytes) {
    errno = 0;
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
    if (!written || !flush_to_disk(file_)) throw_file_error("Cannot write", target_, errno);
  }

  void take_place() {
#ifdef _WIN32
    close_now();
#endif
    std::error_code code;
    std::filesystem::rename(path_, target_, code);
    if (code) throw std::filesystem::filesystem_error("Cannot replace", target_, code);
    path_.clear();
    close_now();
  }

 private:
  void close_now() {
    std::FILE* const file = file_;
    file_ = nullptr;
    if (std::fclose(file) != 0) throw_file_error("Cannot write", target_, errno);
  }

  std::filesystem::path target_;
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

// The file that a path stands for: a link is followed, also one to a file that is not there yet.
inline std::filesystem::path resolved(std::filesystem::path path) {
  constexpr int most = 40;
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(path)); ++links) {
    if (links == most) throw_file_error("Cannot write", path, ELOOP);
    const std::filesystem::path next = std::filesystem::read_symlink(path);
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

// Whoever reads `path` meanwhile, or after a crash, finds the old content or the new, never a part.
// A file that is replaced keeps its owner and its permissions.
inline void replace_file(const std::filesystem::path& path, const std::string& bytes) {
  require(!path.empty(), "The path is empty: give the name of a file.");
  const std::filesystem::path target = resolved(path);
  const std::filesystem::file_status status = std::filesystem::status(target);
  if (std::filesystem::is_directory(status)) throw_file_error("Cannot write", path, EISDIR);
  require(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status),
          "The path \"" + text_of(path) +
              "\" is a device, a pipe or a socket, which a model file cannot replace: give the "
              "name of a file.");
  const std::filesystem::path directory =
      target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  remove_leftovers(directory);
  TemporaryFile temporary(target);
  temporary.write(bytes);
  temporary.take_place();
  flush_directory(directory);
}

}  // namespace parsimon::detail
