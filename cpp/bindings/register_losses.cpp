#include <pybind11/eigen.h>

#include <memory>
#include <parsimon/loss/losses.hpp>
#include <string>
#include <utility>

#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

namespace {

std::shared_ptr<Loss> make_loss(const std::string& text) {
  return std::const_pointer_cast<Loss>(parse_loss(text));
}

std::pair<Vector, RowMatrix> evaluate(const Loss& loss, const ConstRows& predictions,
                                      const ConstRows& targets) {
  if (predictions.rows() != targets.rows()) {
    throw Error("There are " + std::to_string(predictions.rows()) + " predictions and " +
                std::to_string(targets.rows()) + " targets: give as many of each.");
  }
  loss.check_targets(targets, predictions.cols());
  Vector values(predictions.rows());
  RowMatrix gradient(predictions.rows(), predictions.cols());
  loss.evaluate(predictions, targets, values, gradient);
  return {std::move(values), std::move(gradient)};
}

const ProbabilisticLoss* as_probabilistic(const Loss& loss) {
  return dynamic_cast<const ProbabilisticLoss*>(&loss);
}

RowMatrix probabilities(const Loss& loss, const ConstRows& predictions) {
  const ProbabilisticLoss* probabilistic = as_probabilistic(loss);
  if (!probabilistic) {
    throw Error("The loss " + loss.describe() +
                " gives no probabilities: use binary_logistic or multiclass_logistic.");
  }
  RowMatrix out(predictions.rows(), probabilistic->class_count(predictions.cols()));
  probabilistic->probabilities(predictions, out);
  return out;
}

}  // namespace

void register_losses(py::module_& module) {
  py::class_<Loss, std::shared_ptr<Loss>>(module, "Loss")
      .def("describe", &Loss::describe)
      .def("__repr__", &Loss::describe)
      .def("evaluate", &evaluate, py::arg("predictions"), py::arg("targets"),
           "The loss of each sample and its gradient by the predictions.")
      .def("probabilities", &probabilities, py::arg("predictions"),
           "Class probabilities, one row per sample; logistic losses only.")
      .def_property_readonly("is_classification", &Loss::is_classification)
      .def_property_readonly("gives_probabilities",
                             [](const Loss& loss) { return as_probabilistic(loss) != nullptr; })
      .def_property_readonly("regularizer_scale", &Loss::regularizer_scale)
      .def(py::pickle([](const Loss& loss) { return loss.describe(); }, &make_loss));

  module.def("parse_loss", &make_loss, py::arg("text"),
             "The loss that Loss.describe() wrote as this text.");
}

}  // namespace parsimon::bindings
