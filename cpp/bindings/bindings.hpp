#pragma once

#include <pybind11/pybind11.h>

namespace parsimon::bindings {

void register_archive(pybind11::module_& module);
void register_build_info(pybind11::module_& module);
void register_colk(pybind11::module_& module);
void register_drift(pybind11::module_& module);
void register_errors(pybind11::module_& module);
void register_expansion(pybind11::module_& module);
void register_intensity(pybind11::module_& module);
void register_kernels(pybind11::module_& module);
void register_losses(pybind11::module_& module);
void register_moving_points(pybind11::module_& module);
void register_polk(pybind11::module_& module);
void register_schedules(pybind11::module_& module);
void register_slkl(pybind11::module_& module);

}  // namespace parsimon::bindings
