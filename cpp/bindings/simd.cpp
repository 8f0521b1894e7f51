#include <pybind11/pybind11.h>

#include <parsimon/linalg/native_loops.hpp>

// The innermost loops for one instruction set. A module of its own, because nothing else may be
// compiled for instructions that the processor might lack.
PYBIND11_MODULE(PARSIMON_MODULE_NAME, module) {
  module.attr("loops") = pybind11::capsule(&parsimon::linalg::kNativeLoops, "parsimon loops");
}
