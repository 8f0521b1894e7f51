#pragma once

#include <exception>
#include <functional>

namespace parsimon {

// A computation was stopped from outside, half way. What it was computing is lost; what it was
// changing is to be thrown away.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "The computation was interrupted."; }
};

// As long as it lives, long computations of this thread ask now and then whether to go on, and end
// with Interrupted if not. A step that changes a model must then work on a copy.
class Interruptible {
 public:
  using KeepGoing = std::function<bool()>;

  explicit Interruptible(const KeepGoing& keep_going) : before_(current()) {
    current() = &keep_going;
  }
  ~Interruptible() { current() = before_; }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  // To be called every few milliseconds at most.
  static void check() {
    const KeepGoing* keep_going = current();
    if (keep_going != nullptr && !(*keep_going)()) throw Interrupted();
  }
  static bool is_active() { return current() != nullptr; }

 private:
  static const KeepGoing*& current() {
    thread_local const KeepGoing* keep_going = nullptr;
    return keep_going;
  }

  const KeepGoing* before_;
};

}  // namespace parsimon
