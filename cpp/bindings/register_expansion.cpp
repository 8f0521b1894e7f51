#include <pybind11/eigen.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <parsimon/rkhs/compress.hpp>
#include <parsimon/rkhs/span.hpp>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "fork_safe_mutex.hpp"
#include "interruptible.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

template <class Points>
Vector distance(const Span& span, const Points& points) {
  return interruptible([&] {
    Vector distances(points.rows());
    span.distance(points, distances);
    return distances;
  });
}

// A question to an expansion that Ctrl-C ends soon.
template <auto question, class... Arguments>
auto stoppable(const KernelExpansion& expansion, Arguments... arguments) {
  return interruptible([&] { return (expansion.*question)(arguments...); });
}

}  // namespace

void register_expansion(py::module_& module) {
  py::class_<Span, std::shared_ptr<Span>>(module, "Span")
      .def("distance", &distance<ConstSingleRows>, py::arg("points").noconvert(), Unlocked())
      .def("distance", &distance<ConstRows>, py::arg("points"), Unlocked())
      .def_property_readonly("size", &Span::size);

  py::class_<KernelExpansion>(module, "KernelExpansion")
      .def(py::init([](std::shared_ptr<Kernel> kernel, const ConstRows& dictionary,
                       const ConstRows& weights) {
             return KernelExpansion(std::move(kernel), dictionary, weights);
           }),
           py::arg("kernel"), py::arg("dictionary"), py::arg("weights"))
      .def(
          "__call__",
          [](const KernelExpansion& e, const ConstRows& points) {
            return interruptible([&] { return e(points); });
          },
          py::arg("points"), Unlocked())
      .def("norm", &stoppable<&KernelExpansion::norm>, Unlocked())
      .def("inner", &stoppable<&KernelExpansion::inner, const KernelExpansion&>, py::arg("other"),
           Unlocked())
      .def("distance", &stoppable<&KernelExpansion::distance, const KernelExpansion&>,
           py::arg("other"), Unlocked())
      .def("combine", &stoppable<&KernelExpansion::combine, double, const KernelExpansion&, double>,
           py::arg("a"), py::arg("other"), py::arg("b"), Unlocked())
      .def("scaled", &KernelExpansion::scaled, py::arg("factor"), Unlocked())
      .def("gradient", &stoppable<&KernelExpansion::gradient, const ConstRows&, Index>,
           py::arg("points"), py::arg("output"), Unlocked())
      .def(
          "span",
          [](const KernelExpansion& e) {
            return interruptible([&] { return Span::of(e.dictionary()); });
          },
          Unlocked())
      .def_property_readonly("model_order", &KernelExpansion::model_order)
      .def_property_readonly("dictionary",
                             [](const KernelExpansion& e) { return e.dictionary().points(); })
      .def_property_readonly("weights", [](const KernelExpansion& e) { return e.weights(); })
      .def_property_readonly("kernel", [](const KernelExpansion& e) {
        return std::const_pointer_cast<Kernel>(e.dictionary().kernel_pointer());
      });

  module.def(
      "komp",
      [](const KernelExpansion& expansion, double budget, const std::vector<bool>& is_protected,
         std::optional<Index> max_points, bool merges) {
        const Limit limit(budget, max_points.value_or(kUnlimited),
                          merges ? Way::unite : Way::project);
        return interruptible([&] { return compress(expansion, limit, is_protected); });
      },
      py::arg("expansion"), py::arg("budget"), py::arg("is_protected"),
      py::arg("max_points") = py::none(), py::arg("merges") = false, Unlocked());

  // What os.register_at_fork is given.
  module.def("before_fork", &ForkSafeMutex::before_fork, Unlocked());
  module.def("after_fork", &ForkSafeMutex::after_fork);
}

}  // namespace parsimon::bindings
