#include "bindings.hpp"

PYBIND11_MODULE(PARSIMON_MODULE_NAME, module) {
  using namespace parsimon::bindings;
  register_build_info(module);
}
