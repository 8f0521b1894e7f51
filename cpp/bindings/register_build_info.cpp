#include <Eigen/Core>
#include <parsimon/linalg/loops.hpp>
#include <parsimon/linalg/parallel.hpp>
#include <parsimon/version.hpp>
#include <string>
#include <utility>

#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

void register_build_info(py::module_& module) {
  module.def("build_info", [] {
    py::dict info;
    info["version"] = PARSIMON_VERSION;
    info["simd"] = linalg::loops().name;
    info["compiler"] = PARSIMON_COMPILER;
    info["cxx_standard"] = EIGEN_COMP_CXXVER;
    info["eigen"] = std::to_string(EIGEN_WORLD_VERSION) + "." +
                    std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION);
    info["build_type"] = PARSIMON_BUILD_TYPE;
    return info;
  });
  module.def(
      "use_loops",
      [](const py::capsule& loops) { linalg::use_loops(*loops.get_pointer<linalg::Loops>()); },
      py::arg("loops"), "What a module _simd_<level> offers; before anything is computed.");
  module.def("set_num_threads", &set_num_threads, py::arg("threads"));
  module.def("get_num_threads", &get_num_threads);
  module.def("available_processors", &parsimon::detail::available_processors);
  module.def("meeting_seconds", &linalg::meeting_seconds, py::arg("threads"),
             py::call_guard<py::gil_scoped_release>());
  module.def(
      "limit_threads_here",
      [](int threads) { return std::exchange(parsimon::detail::threads_of_this_call(), threads); },
      py::arg("threads"), "For calls from this thread, 0 for no limit. Returns what it was.");
}

}  // namespace parsimon::bindings
