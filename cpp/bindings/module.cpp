#include "bindings.hpp"

PYBIND11_MODULE(_engine, module) {
  using namespace parsimon::bindings;
  register_build_info(module);
  register_errors(module);
  register_kernels(module);
  register_losses(module);
  register_archive(module);
  register_schedules(module);
  register_drift(module);
  register_expansion(module);
  register_polk(module);
  register_colk(module);
  register_moving_points(module);
  register_intensity(module);
  register_slkl(module);
}
