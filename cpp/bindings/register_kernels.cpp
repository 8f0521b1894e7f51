#include <pybind11/eigen.h>
#include <pybind11/stl.h>

#include <memory>
#include <parsimon/kernel/evaluate.hpp>
#include <parsimon/kernel/kernels.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "interruptible.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

namespace {

using SharedKernel = std::shared_ptr<Kernel>;
using Unlocked = py::call_guard<py::gil_scoped_release>;

// A model may drop its kernel while it works without the GIL. After the interpreter has gone there
// is nothing left to release the object to.
std::shared_ptr<py::object> share(py::object object) {
  return {new py::object(std::move(object)), [](py::object* held) {
            if (!Py_IsInitialized()) return;
            py::gil_scoped_acquire gil;
            delete held;
          }};
}

// A copy, because the function may keep what it is given.
py::array_t<double> to_array(const ConstRows& rows) {
  constexpr auto size = static_cast<py::ssize_t>(sizeof(double));
  return {{rows.rows(), rows.cols()}, {rows.outerStride() * size, size}, rows.data()};
}

void read_result(const py::object& result, const std::string& what, Rows values) {
  const py::array given = py::array::ensure(result);
  if (!given) {
    throw Error(what + " must return a two-dimensional array of real numbers.");
  }
  const char kind = given.dtype().kind();
  if (kind != 'f' && kind != 'i' && kind != 'u' && kind != 'b') {
    throw Error(what + " must return real numbers, but returned an array of dtype " +
                py::str(given.dtype()).cast<std::string>() + ".");
  }
  if (given.ndim() != 2 || given.shape(0) != values.rows() || given.shape(1) != values.cols()) {
    throw Error(what + " must return an array of shape (" + std::to_string(values.rows()) + ", " +
                std::to_string(values.cols()) + "), but returned one of shape " +
                py::str(given.attr("shape")).cast<std::string>() + ".");
  }
  const py::array_t<double, py::array::c_style | py::array::forcecast> numbers(given);
  values = Eigen::Map<const RowMatrix>(numbers.data(), values.rows(), values.cols());
}

SharedKernel function(py::object callable, const std::string& name, py::object gradient) {
  const auto value = [callable = share(std::move(callable)), name](
                         const ConstRows& a, const ConstRows& b, Rows values) {
    py::gil_scoped_acquire gil;
    read_result((*callable)(to_array(a), to_array(b)), "The kernel function " + name, values);
  };
  if (gradient.is_none()) return std::make_shared<FunctionKernel>(value, name);
  const auto derivative = [callable = share(std::move(gradient)), name](
                              const ConstRows& a, const RowVector& x, Rows gradients) {
    py::gil_scoped_acquire gil;
    const py::array_t<double> point(x.size(), x.data());
    read_result((*callable)(to_array(a), point), "The gradient of the kernel function " + name,
                gradients);
  };
  return std::make_shared<FunctionKernel>(value, name, derivative);
}

std::vector<KernelPtr> constant(const std::vector<SharedKernel>& kernels) {
  return {kernels.begin(), kernels.end()};
}

SharedKernel parse(const std::string& text) {
  return std::const_pointer_cast<Kernel>(parse_kernel(text));
}

// One function for one bandwidth and one for a bandwidth for each feature.
template <class K, class... Parameters, class... Names>
void define_stationary(py::module_& module, const char* name, const Names&... names) {
  module.def(
      name,
      [](double bandwidth, Parameters... parameters) -> SharedKernel {
        return std::make_shared<K>(bandwidth, parameters...);
      },
      py::arg("bandwidth"), names...);
  module.def(
      name,
      [](RowVector bandwidth, Parameters... parameters) -> SharedKernel {
        return std::make_shared<K>(std::move(bandwidth), parameters...);
      },
      py::arg("bandwidth"), names...);
}

}  // namespace

void register_kernels(py::module_& module) {
  py::class_<Kernel, SharedKernel>(module, "Kernel")
      .def("describe", &Kernel::describe)
      .def("__repr__", &Kernel::describe)
      .def("check_features", &Kernel::check_features, py::arg("features"))
      .def(
          "block",
          [](const Kernel& kernel, const ConstRows& a, const ConstRows& b) {
            return interruptible([&] { return kernel_block(kernel, a, b); });
          },
          py::arg("a"), py::arg("b"), Unlocked(), "k(a_i, b_j)")
      .def("diagonal", &kernel_diagonal, py::arg("points"), Unlocked(), "k(x_i, x_i)")
      .def("gradient", &kernel_gradient, py::arg("a"), py::arg("b"), py::arg("weights"), Unlocked(),
           "Row j is sum_i weights[i, j] d/dx k(a_i, x) at x = b_j.")
      .def(py::pickle([](const Kernel& kernel) { return kernel.describe(); }, &parse));

  define_stationary<Gaussian>(module, "gaussian");
  define_stationary<Laplacian>(module, "laplacian");
  define_stationary<Matern, double>(module, "matern", py::arg("nu"));
  define_stationary<StudentT, double>(module, "student_t", py::arg("degrees"));
  define_stationary<StudentT>(module, "cauchy");
  module.def(
      "polynomial",
      [](int degree, double gamma, double coef0) -> SharedKernel {
        return std::make_shared<Polynomial>(degree, gamma, coef0);
      },
      py::arg("degree"), py::arg("gamma"), py::arg("coef0"));
  module.def("linear", []() -> SharedKernel { return std::make_shared<Linear>(); });
  module.def("constant", []() -> SharedKernel { return std::make_shared<Constant>(); });
  module.def("function", &function, py::arg("callable"), py::arg("name"),
             py::arg("gradient") = py::none());

  module.def(
      "sum",
      [](const std::vector<SharedKernel>& parts) -> SharedKernel {
        return std::make_shared<Sum>(constant(parts));
      },
      py::arg("parts"));
  module.def(
      "product",
      [](const std::vector<SharedKernel>& parts) -> SharedKernel {
        return std::make_shared<Product>(constant(parts));
      },
      py::arg("parts"));
  module.def(
      "scaled",
      [](double scale, const SharedKernel& part) -> SharedKernel {
        return std::make_shared<Scaled>(scale, part);
      },
      py::arg("scale"), py::arg("part"));
  module.def(
      "single",
      [](const SharedKernel& part) -> SharedKernel {
        return std::make_shared<SinglePrecision>(part);
      },
      py::arg("part"));

  py::class_<KernelExpression>(module, "KernelExpression")
      .def_property_readonly("name", &KernelExpression::name)
      .def_readonly("bandwidth", &KernelExpression::bandwidth)
      .def_readonly("per_feature", &KernelExpression::per_feature)
      .def_readonly("parameters", &KernelExpression::parameters)
      .def_readonly("parts", &KernelExpression::parts);
  module.def("parse_kernel_expression", &parse_kernel_expression, py::arg("text"),
             "The text of Kernel.describe(), taken apart.");
  module.def("parse_kernel", &parse, py::arg("text"),
             "The kernel that Kernel.describe() wrote as this text.");
}

}  // namespace parsimon::bindings
