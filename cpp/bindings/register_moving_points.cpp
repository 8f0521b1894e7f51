#include <pybind11/eigen.h>

#include <memory>
#include <parsimon/algorithm/moving_points.hpp>
#include <utility>

#include "bindings.hpp"
#include "interruptible.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

namespace {

std::unique_ptr<MovingPoints> make(std::shared_ptr<Kernel> kernel, std::shared_ptr<Loss> loss,
                                   const RowMatrix& points, const RowMatrix& weights,
                                   const RowVector& units, double ridge, double point_rate,
                                   double weight_rate, double stretch_rate) {
  return std::make_unique<MovingPoints>(
      std::move(kernel), std::move(loss), points, weights,
      MovingSettings{ridge, units, point_rate, weight_rate, stretch_rate});
}

Index run(MovingPoints& moving, const ConstRows& samples, const ConstRows& targets,
          const Eigen::Ref<const Vector>& sample_weights, Index batch_size, Index total) {
  Index taken = 0;
  {
    const py::gil_scoped_release unlocked;
    Signals signals;
    taken = moving.run(samples, targets, sample_weights, batch_size, total,
                       [&] { return !signals.interrupt(); });
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return taken;
}

py::tuple slope(MovingPoints& moving, const ConstRows& samples, const ConstRows& targets,
                const Eigen::Ref<const Vector>& sample_weights) {
  const MovingPoints::Slope found = moving.slope(samples, targets, sample_weights);
  return py::make_tuple(found.value, found.points, found.weights, found.stretches);
}

}  // namespace

void register_moving_points(py::module_& module) {
  py::class_<MovingPoints>(module, "MovingPoints")
      .def(py::init(&make), py::arg("kernel"), py::arg("loss"), py::arg("points"),
           py::arg("weights"), py::arg("units"), py::arg("ridge"), py::arg("point_rate"),
           py::arg("weight_rate"), py::arg("stretch_rate") = 0.0)
      .def("run", &run, py::arg("samples"), py::arg("targets"), py::arg("sample_weights"),
           py::arg("batch_size"), py::arg("total"))
      .def("slope", &slope, py::arg("samples"), py::arg("targets"), py::arg("sample_weights"),
           "The objective, and its gradient by points, weights and logarithms of stretches.")
      .def("precondition", &MovingPoints::precondition, py::arg("root"))
      .def_property_readonly("points", [](const MovingPoints& m) { return m.points(); })
      .def_property_readonly("weights", [](const MovingPoints& m) { return m.weights(); })
      .def_property_readonly("stretches", [](const MovingPoints& m) { return m.stretches(); })
      .def_property_readonly("latest_loss", &MovingPoints::latest_loss);
}

}  // namespace parsimon::bindings
