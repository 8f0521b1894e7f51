#include <pybind11/stl.h>

#include <memory>
#include <parsimon/algorithm/slkl/solver.hpp>
#include <parsimon/io/slkl_file.hpp>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "shared_model.hpp"

namespace parsimon::bindings {

namespace {

using SharedColumns = Shared<KernelColumns>;

void register_columns(py::module_& module) {
  py::class_<SharedColumns>(module, "KernelColumns")
      .def(py::init(
               [](std::shared_ptr<Kernel> kernel, const ConstRows& points, bool store_products) {
                 return std::make_unique<SharedColumns>(
                     KernelColumns(std::move(kernel), points, store_products));
               }),
           py::arg("kernel"), py::arg("points"), py::arg("store_products"))
      .def(
          "prepare",
          [](SharedColumns& columns, const ConstRows& samples, const ConstRows& targets,
             const Vector& sample_weights) {
            return columns.run([&](KernelColumns& c, const auto& keep_going) {
              return c.prepare(samples, targets, keep_going, sample_weights);
            });
          },
          py::arg("samples"), py::arg("targets"), py::arg("sample_weights") = Vector())
      .def(
          "solve",
          [](SharedColumns& columns, Index output, double penalty, const Vector& start,
             double tolerance, Index epochs, const std::string& step, const std::string& selection,
             std::uint64_t seed) {
            const SlklSettings settings{
                penalty, tolerance, epochs, parse_slkl_step(step), parse_slkl_selection(selection),
                seed};
            SlklSolution solution;
            columns.run([&](KernelColumns& c, const auto& keep_going) {
              solution = solve_slkl(c, output, settings, start, keep_going);
              return solution.steps;
            });
            return solution;
          },
          py::arg("output"), py::kw_only(), py::arg("penalty"), py::arg("start"),
          py::arg("tolerance"), py::arg("epochs"), py::arg("step"), py::arg("selection"),
          py::arg("seed"))
      .def_property_readonly(
          "norms", reading<KernelColumns>([](const KernelColumns& c) { return c.norms(); }))
      .def_property_readonly(
          "products", reading<KernelColumns>([](const KernelColumns& c) { return c.products(); }))
      .def_property_readonly("correlations", reading<KernelColumns>([](const KernelColumns& c) {
                               return c.correlations();
                             }));
}

}  // namespace

void register_slkl(py::module_& module) {
  py::class_<SlklSolution>(module, "SlklSolution")
      .def_readonly("mu", &SlklSolution::mu)
      .def_readonly("weights", &SlklSolution::weights)
      .def_readonly("objective", &SlklSolution::objective)
      .def_readonly("gap", &SlklSolution::gap)
      .def_readonly("steps", &SlklSolution::steps)
      .def_readonly("updates", &SlklSolution::updates)
      .def_readonly("converged", &SlklSolution::converged);
  register_columns(module);

  // A learned function, with the names that the models of the other algorithms answer to.
  py::class_<Shared<KernelExpansion>> model(module, "Slkl");
  model
      .def(py::init([](std::shared_ptr<Kernel> kernel, const ConstRows& dictionary,
                       const ConstRows& weights) {
             return std::make_unique<Shared<KernelExpansion>>(
                 KernelExpansion(std::move(kernel), dictionary, weights));
           }),
           py::arg("kernel"), py::arg("dictionary"), py::arg("weights"))
      .def(
          "predict",
          [](const Shared<KernelExpansion>& function, const ConstRows& points) {
            return interruptible(
                [&] { return function.use([&](const KernelExpansion& f) { return f(points); }); });
          },
          py::arg("points"), Unlocked())
      .def_property_readonly("expansion",
                             reading<KernelExpansion>([](const KernelExpansion& f) { return f; }))
      .def("span", &Shared<KernelExpansion>::span, Unlocked())
      .def_property_readonly("model_order", reading<KernelExpansion>([](const KernelExpansion& f) {
                               return f.model_order();
                             }))
      .def_property_readonly("dictionary", reading<KernelExpansion>([](const KernelExpansion& f) {
                               return f.dictionary().points();
                             }))
      .def_property_readonly(
          "weights", reading<KernelExpansion>([](const KernelExpansion& f) { return f.weights(); }))
      .def("to_archive",
           reading<KernelExpansion>([](const KernelExpansion& f) { return to_archive(f); }));
  register_reader("slkl", &slkl_from_archive);
}

}  // namespace parsimon::bindings
