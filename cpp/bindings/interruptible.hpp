#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <parsimon/interrupt.hpp>

namespace parsimon::bindings {

namespace py = pybind11;

// Whether Ctrl-C was pressed, looked at now and then; Python's exception is then set.
class Signals {
 public:
  bool interrupt() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_look_ < std::chrono::milliseconds(50)) return false;
    last_look_ = now;
    const py::gil_scoped_acquire locked;
    return PyErr_CheckSignals() != 0;
  }

 private:
  std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
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
