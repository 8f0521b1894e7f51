#include <pybind11/eigen.h>
#include <pybind11/stl.h>

#include <parsimon/algorithm/drift.hpp>
#include <vector>

#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

// The places of the losses with which a change was found, in a stream that a model of so many
// points learns from.
std::vector<Index> observe(DriftDetector& detector, const Eigen::Ref<const Vector>& losses,
                           Index points) {
  std::vector<Index> found;
  for (Index i = 0; i < losses.size(); ++i) {
    const Index before = detector.changes();
    detector.observe(losses(i));
    if (detector.changes() > before) found.push_back(i);
    // An alarm that nothing ends is over at last.
    detector.memory_to_keep(1, 1, points);
  }
  return found;
}

void register_drift(py::module_& module) {
  py::class_<DriftDetector>(module, "DriftDetector")
      .def(py::init())
      .def("observe", &observe, py::arg("losses"), py::arg("points"))
      .def_property_readonly("changes", &DriftDetector::changes);
}

}  // namespace parsimon::bindings
