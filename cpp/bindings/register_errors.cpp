#include <parsimon/types.hpp>

#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

// parsimon::Error is a std::invalid_argument, which pybind11 turns into ValueError by itself.
void register_errors(py::module_& module) {
  py::register_local_exception<DivergenceError>(module, "DivergenceError", PyExc_ArithmeticError);
}

}  // namespace parsimon::bindings
