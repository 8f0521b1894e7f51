// Preloaded (LD_PRELOAD), it makes every n-th allocation of a process fail while it is armed.
//
// A program arms it through parsimon_fail_after(n), which it finds by dlsym: the n-th allocation
// from then on fails, once. parsimon_allocations() tells how many there have been since.

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace {

std::atomic<long> left{-1};  // allocations until the one that fails; negative: none does
std::atomic<long> counted{0};

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool fails() {
  ++counted;
  if (left.load(std::memory_order_relaxed) < 0) return false;
  if (left.fetch_sub(1) != 0) return false;
  errno = ENOMEM;
  return true;
}

// dlsym itself asks calloc for memory before we know where it is.
char early[4096];
std::size_t early_used = 0;

}  // namespace

extern "C" {

void parsimon_fail_after(long n) {
  counted = 0;
  left = n;
}
long parsimon_allocations() { return counted; }

void* malloc(std::size_t size) {
  static const auto real = next<void* (*)(std::size_t)>("malloc");
  return fails() ? nullptr : real(size);
}

void* calloc(std::size_t count, std::size_t size) {
  static bool searching = false;
  static void* (*real)(std::size_t, std::size_t) = nullptr;
  if (real == nullptr) {
    if (searching) {
      void* const memory = early + early_used;
      early_used += (count * size + 15) / 16 * 16;
      return early_used <= sizeof early ? memory : nullptr;
    }
    searching = true;
    real = next<void* (*)(std::size_t, std::size_t)>("calloc");
    searching = false;
  }
  return fails() ? nullptr : real(count, size);
}

void* realloc(void* memory, std::size_t size) {
  static const auto real = next<void* (*)(void*, std::size_t)>("realloc");
  return fails() ? nullptr : real(memory, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  static const auto real = next<int (*)(void**, std::size_t, std::size_t)>("posix_memalign");
  return fails() ? ENOMEM : real(memory, alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  static const auto real = next<void* (*)(std::size_t, std::size_t)>("aligned_alloc");
  return fails() ? nullptr : real(alignment, size);
}

void free(void* memory) {
  static const auto real = next<void (*)(void*)>("free");
  if (memory >= early && memory < early + sizeof early) return;
  real(memory);
}

}  // extern "C"
