#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#ifndef PARSIMON_NO_THREADS
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#endif
#ifdef _MSC_VER
#include <intrin.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif
#ifndef _WIN32
#include <unistd.h>
#endif

#include "parsimon/interrupt.hpp"
#include "parsimon/types.hpp"

// Work that is shared among threads; PARSIMON_NO_THREADS leaves them out.
//
// Whoever divides it must see to it that no result depends on how: models are the same to the last
// bit whatever the number of threads.
namespace parsimon {

namespace detail {

#ifndef PARSIMON_NO_THREADS

// Threads that wait for the next piece of work: a short while in a loop, because it usually comes
// within microseconds, then asleep. They live as long as the program.
class ThreadPool {
 public:
  using Work = void (*)(const void* context, int part);

  // Calls work(context, part) for all parts, part 0 on this thread, and returns when all are done.
  // Returns false, having done nothing, while another thread uses the pool: that one has the
  // processors already.
  bool run(int parts, Work work, const void* context) {
    if (busy_.exchange(true)) return false;
    if (!has_workers(parts - 1)) {
      busy_ = false;
      return false;
    }
    work_ = work;
    context_ = context;
    left_ = parts - 1;
    // Round and number of parts change together: a thread that comes too late for one round must
    // not mistake the next round for its own.
    ticket_ = ((ticket_ >> 16) + 1) << 16 | static_cast<std::uint64_t>(parts);
    if (asleep_ > 0) {
      const std::lock_guard<std::mutex> lock(mutex_);
      wake_.notify_all();
    }
    // All must have ended before the caller may see an exception: they use what it owns.
    attempt(0);
    for (int spins = 0; left_ > 0; ++spins) pause(spins);
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    busy_ = false;
    if (failure) std::rethrow_exception(failure);
    return true;
  }

  // A child of fork() has none of its parent's threads.
  static ThreadPool& instance() {
    static std::atomic<ThreadPool*> pool{new ThreadPool};
#ifndef _WIN32
    static std::atomic<pid_t> owner{getpid()};
    if (owner != getpid()) {
      pool = new ThreadPool;
      owner = getpid();
    }
#endif
    return *pool;
  }

 private:
  // A few milliseconds: longer than what is done between two products of a mini-batch.
  static constexpr int kPatience = 200000;

  // A system that is out of threads, or memory for them, does the work with one.
  bool has_workers(int count) {
    try {
      while (workers_ < count) {
        std::thread([this, part = workers_ + 1, seen = ticket_.load()] {
          serve(part, seen);
        }).detach();
        ++workers_;
      }
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  void attempt(int part) {
    try {
      work_(context_, part);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  // Now and then the processor is offered to others: there may be fewer than threads.
  static void pause(int spins) {
    if (spins % 64 == 63) {
      std::this_thread::yield();
    } else {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
      __builtin_ia32_pause();
#elif defined(__GNUC__) && defined(__aarch64__)
      __asm__ __volatile__("yield");
#elif defined(_M_X64)
      _mm_pause();
#elif defined(_M_ARM64)
      __yield();
#endif
    }
  }

  void serve(int part, std::uint64_t seen) {
    while (true) {
      for (int spins = 0; spins < kPatience && ticket_ == seen; ++spins) pause(spins);
      if (ticket_ == seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        ++asleep_;
        wake_.wait(lock, [&] { return ticket_ != seen; });
        --asleep_;
      }
      seen = ticket_;
      if (part >= static_cast<int>(seen & 0xffff)) continue;
      attempt(part);
      --left_;
    }
  }

  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<int> left_{0};
  std::atomic<int> asleep_{0};
  int workers_ = 0;
  Work work_ = nullptr;
  const void* context_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::exception_ptr failure_;
};

#endif

inline int available_processors() {
#if defined(PARSIMON_NO_THREADS)
  return 1;
#elif defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return 1;
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

constexpr int kMostThreads = 256;

// joblib, Dask and batch systems tell their workers by OMP_NUM_THREADS how many threads they have.
inline int default_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const long wanted = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return wanted > 0 ? static_cast<int>(std::min<long>(wanted, kMostThreads))
                    : std::min(available_processors(), kMostThreads);
}

inline std::atomic<int>& global_threads() {
  static std::atomic<int> threads{default_threads()};
  return threads;
}

inline int& threads_of_this_call() {
  thread_local int threads = 0;
  return threads;
}

}  // namespace detail

inline void set_num_threads(int threads) {
  require(threads >= 1 && threads <= detail::kMostThreads,
          "The number of threads must be from 1 to " + std::to_string(detail::kMostThreads) +
              ", but " + std::to_string(threads) + " was given.");
  detail::global_threads() = threads;
}

// How many threads a product of matrices on this thread may use.
inline int get_num_threads() {
  const int here = detail::threads_of_this_call();
  return here > 0 ? here : detail::global_threads().load();
}

// As long as it lives, what this thread calls uses this many threads; 0 changes nothing.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads) : before_(detail::threads_of_this_call()) {
    if (threads > 0) detail::threads_of_this_call() = std::min(threads, detail::kMostThreads);
  }
  ~ThreadLimit() { detail::threads_of_this_call() = before_; }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

namespace linalg {

// Fewer floating-point operations than this are done before another thread has taken notice.
constexpr double kWorthSharing = 3e5;

// Copying takes the time of this many operations per number. It is shared among threads in the same
// way as products are: each thread goes on with what it has in its cache.
constexpr double kCopyFlops = 16;
constexpr Index kCopyGrain = 64;

inline double copy_flops(Index numbers) { return kCopyFlops * static_cast<double>(numbers); }

// Calls run(part, parts) for all parts, on a thread each: as many as there may be, up to `most`,
// but one if the `flops` are not worth it. If run() throws, so does this, once all have ended.
template <class Run>
void in_parts(Index most, double flops, const Run& run) {
#ifndef PARSIMON_NO_THREADS
  struct Context {
    const Run& run;
    int parts;
  };
  const Context context{
      run, flops < kWorthSharing ? 1 : static_cast<int>(std::min<Index>(get_num_threads(), most))};
  const auto work = [](const void* pointer, int part) {
    const auto& c = *static_cast<const Context*>(pointer);
    c.run(part, c.parts);
  };
  if (context.parts > 1 && detail::ThreadPool::instance().run(context.parts, work, &context))
    return;
#else
  static_cast<void>(most);
  static_cast<void>(flops);
#endif
  run(0, 1);
}

// Calls run(begin, end) for this part of 0 .. count, a multiple of `grain` but for the last.
template <class Run>
void take_part(Index count, Index grain, int part, int parts, const Run& run) {
  const Index grains = (count + grain - 1) / grain;
  const Index begin = grains * part / parts * grain;
  const Index end = std::min(grains * (part + 1) / parts * grain, count);
  if (begin < end) run(begin, end);
}

// Operations after which a computation that can be interrupted asks whether to go on.
constexpr double kPatience = 2e8;

// Calls run(begin, end) for parts that cover 0 .. count, on several threads if it is worth it.
template <class Run>
void share(Index count, Index grain, double flops, const Run& run) {
  const Index grains = (count + grain - 1) / grain;
  if (!Interruptible::is_active() || flops < kPatience || grains == 0) {
    in_parts(grains, flops,
             [&](int part, int parts) { take_part(count, grain, part, parts, run); });
    return;
  }
  const auto steps = static_cast<int>(std::min(flops / kPatience, 1e6)) + 1;
  for (int step = 0; step < steps; ++step) {
    Interruptible::check();
    const Index first = grains * step / steps * grain;
    const Index last = std::min(grains * (step + 1) / steps * grain, count);
    const Index some = (last - first + grain - 1) / grain;
    if (some <= 0) continue;
    in_parts(some, flops / steps, [&](int part, int parts) {
      take_part(last - first, grain, part, parts,
                [&](Index begin, Index end) { run(first + begin, first + end); });
    });
  }
}

// How long threads take to begin and to meet again with nothing to do in between. It tells whether
// their processors are near each other.
inline double meeting_seconds(int threads) {
  constexpr int meetings = 10000;
  const ThreadLimit limit(threads);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < meetings; ++i) {
    in_parts(threads, std::numeric_limits<double>::infinity(), [](int, int) {});
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / meetings;
}

}  // namespace linalg

}  // namespace parsimon
