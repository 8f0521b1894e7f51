#include <Eigen/Core>
#include <parsimon/version.hpp>
#include <string>

#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

void register_build_info(py::module_& module) {
  module.def("build_info", [] {
    py::dict info;
    info["version"] = PARSIMON_VERSION;
    info["simd"] = PARSIMON_SIMD_LEVEL;
    info["compiler"] = PARSIMON_COMPILER;
    info["cxx_standard"] = EIGEN_COMP_CXXVER;
    info["eigen"] = std::to_string(EIGEN_WORLD_VERSION) + "." +
                    std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION);
    info["build_type"] = PARSIMON_BUILD_TYPE;
    return info;
  });
}

}  // namespace parsimon::bindings
