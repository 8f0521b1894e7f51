#include <pybind11/stl.h>

#include <optional>
#include <parsimon/rkhs/compression.hpp>
#include <parsimon/schedule/step.hpp>
#include <string>

#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

void register_schedules(py::module_& module) {
  py::class_<StepSchedule>(module, "StepSchedule")
      .def_static("constant", &StepSchedule::constant, py::arg("step"))
      .def_static("power_law", &StepSchedule::power_law, py::arg("initial"), py::arg("power"),
                  py::arg("delay"));

  py::class_<BudgetSchedule>(module, "BudgetSchedule")
      .def_static("parsimony", &BudgetSchedule::parsimony, py::arg("constant"))
      .def_static("step_squared", &BudgetSchedule::step_squared, py::arg("factor"))
      .def_static("proportional", &BudgetSchedule::proportional, py::arg("alpha"))
      .def_static("fixed", &BudgetSchedule::fixed, py::arg("budget"))
      .def_static("hold_model_order", &BudgetSchedule::hold_model_order, py::arg("target"),
                  py::arg("alpha"))
      .def_static("hold_model_order_as_printed", &BudgetSchedule::hold_model_order_as_printed,
                  py::arg("target"), py::arg("alpha"))
      .def_property_readonly("name", &BudgetSchedule::name)
      .def_property_readonly("value", &BudgetSchedule::value);

  py::class_<Compression>(module, "Compression")
      .def(py::init([](const BudgetSchedule& budget, std::optional<Index> max_points, bool merges) {
             return Compression(budget, max_points.value_or(kUnlimited), merges);
           }),
           py::arg("budget"), py::arg("max_points") = py::none(), py::arg("merges") = false)
      .def_static("growing", &Compression::growing, py::arg("budget"), py::arg("max_points"),
                  py::arg("rate"), py::arg("merges") = false)
      .def_static(
          "without_budget",
          [](const std::string& way, Index max_points, double rate, std::uint64_t seed) {
            return Compression(Compression::parse(way), max_points, rate, seed);
          },
          py::arg("way"), py::arg("max_points"), py::arg("rate") = 0.0, py::arg("seed") = 0);
}

}  // namespace parsimon::bindings
