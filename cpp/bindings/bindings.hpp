#pragma once

#include <pybind11/pybind11.h>

namespace parsimon::bindings {

void register_build_info(pybind11::module_& module);

}  // namespace parsimon::bindings
