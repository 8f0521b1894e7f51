#include <pybind11/eigen.h>

#include <memory>
#include <parsimon/loss/evaluate.hpp>
#include <parsimon/loss/losses.hpp>
#include <string>

#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

namespace {

std::shared_ptr<Loss> make_loss(const std::string& text) {
  return std::const_pointer_cast<Loss>(parse_loss(text));
}

}  // namespace

void register_losses(py::module_& module) {
  py::class_<Loss, std::shared_ptr<Loss>>(module, "Loss")
      .def("describe", &Loss::describe)
      .def("__repr__", &Loss::describe)
      .def("evaluate", &parsimon::evaluate, py::arg("predictions"), py::arg("targets"),
           "The loss of each sample and its gradient by the predictions.")
      .def(
          "majorise", &parsimon::majorise, py::arg("predictions"), py::arg("targets"),
          "Values, gradients and curvatures of the smooth loss that second-order solvers minimise.")
      .def("probabilities", &parsimon::probabilities, py::arg("predictions"),
           "Class probabilities, one row per sample; logistic losses only.")
      .def_property_readonly("is_classification", &Loss::is_classification)
      .def_property_readonly("is_squared", &Loss::is_squared)
      .def_property_readonly("gives_probabilities",
                             [](const Loss& loss) { return as_probabilistic(loss) != nullptr; })
      .def_property_readonly("regularizer_scale", &Loss::regularizer_scale)
      .def(py::pickle([](const Loss& loss) { return loss.describe(); }, &make_loss));

  module.def("parse_loss", &make_loss, py::arg("text"),
             "The loss that Loss.describe() wrote as this text.");
}

}  // namespace parsimon::bindings
