#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#ifndef _WIN32
#include <unistd.h>
#endif

#include <parsimon/error.hpp>

namespace parsimon::bindings {

// A mutex that refuses the thread that has it, rather than have it wait for itself, and that is
// never held across a fork: the child has a copy of the lock, but not of the thread that would
// release it. Before a fork, whoever has one finishes, and nobody new gets one.
//
// They are made and destroyed by who has Python's lock, as a process is forked: the list of all of
// them is then complete. It is locked for moments only, for nobody may wait for it with that lock.
class ForkSafeMutex {
 public:
  ForkSafeMutex() {
    const std::lock_guard<std::mutex> lock(registry());
    all().insert(this);
  }
  ~ForkSafeMutex() {
    const std::lock_guard<std::mutex> lock(registry());
    all().erase(this);
    taken().erase(this);
  }
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() {
    require(owner_ != std::this_thread::get_id(),
            "A kernel or another function of a model cannot use the model itself: it is called "
            "in the middle of a step or a prediction of that model.");
    // Who has another one already must be able to finish.
    while (is_fork_near() && held() == 0) std::this_thread::sleep_for(kShort);
    const int holder = process_;
    require(holder == 0 || holder == process_id(),
            "The model was in the middle of a step when this process was forked from another, and "
            "is of no use here: save it before the fork, or fork while nobody is training.");
    mutex_.lock();
    take();
  }

  void unlock() {
    owner_ = std::thread::id();
    process_ = 0;
    --held();
    mutex_.unlock();
  }

  // Takes all there are, once they are free; gives up after a while.
  static void before_fork() {
    is_fork_near() = true;
    const auto start = std::chrono::steady_clock::now();
    while (!take_all() && std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
      std::this_thread::sleep_for(kShort);
    }
  }

  // In parent and child.
  static void after_fork() {
    const std::lock_guard<std::mutex> lock(registry());
    release_all();
    is_fork_near() = false;
  }

 private:
  static constexpr std::chrono::microseconds kShort{200};

  static int process_id() {
#ifdef _WIN32
    return 1;
#else
    return static_cast<int>(getpid());
#endif
  }

  void take() {
    owner_ = std::this_thread::get_id();
    process_ = process_id();
    ++held();
  }

  static bool take_all() {
    const std::lock_guard<std::mutex> lock(registry());
    for (ForkSafeMutex* mutex : all()) {
      if (mutex->owner_ == std::this_thread::get_id()) continue;
      if (!mutex->mutex_.try_lock()) {
        release_all();
        return false;
      }
      mutex->take();
      taken().insert(mutex);
    }
    return true;
  }

  static void release_all() {
    for (ForkSafeMutex* mutex : taken()) mutex->unlock();
    taken().clear();
  }

  // They live as long as the program, whose last models may outlive other statics.
  static std::mutex& registry() {
    static auto* mutex = new std::mutex;
    return *mutex;
  }
  static std::set<ForkSafeMutex*>& all() {
    static auto* mutexes = new std::set<ForkSafeMutex*>;
    return *mutexes;
  }
  static std::set<ForkSafeMutex*>& taken() {
    static auto* mutexes = new std::set<ForkSafeMutex*>;
    return *mutexes;
  }
  static std::atomic<bool>& is_fork_near() {
    static std::atomic<bool> near{false};
    return near;
  }
  // How many this thread has.
  static int& held() {
    thread_local int count = 0;
    return count;
  }

  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;
  std::atomic<int> process_{0};
};

}  // namespace parsimon::bindings
