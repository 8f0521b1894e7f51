#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <ctime>
#include <parsimon/interrupt.hpp>

namespace parsimon::bindings {

namespace py = pybind11;

// Whether Ctrl-C was pressed, looked at now and then; Python's exception is then set.
class Signals {
 public:
  bool interrupt() {
    const double now = seconds();
    if (now - last_look_ < 0.05) return false;
    last_look_ = now;
    const py::gil_scoped_acquire locked;
    return PyErr_CheckSignals() != 0;
  }

 private:
  // Asked many times in a mini-batch of microseconds: a few milliseconds are exact enough.
  static double seconds() {
#ifdef CLOCK_MONOTONIC_COARSE
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
#else
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
#endif
  }

  double last_look_ = seconds();
};

// Returns compute(), which Ctrl-C ends soon. It must change nothing that outlives it.
template <typename Compute>
auto interruptible(const Compute& compute) {
  Signals signals;
  const Interruptible::KeepGoing keep_going = [&] { return !signals.interrupt(); };
  const Interruptible scope(keep_going);
  try {
    return compute();
  } catch (const Interrupted&) {
    const py::gil_scoped_acquire locked;
    throw py::error_already_set();
  }
}

}  // namespace parsimon::bindings
