#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <optional>
#include <parsimon/algorithm/function_problem.hpp>
#include <parsimon/io/colk_file.hpp>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "shared_model.hpp"

namespace parsimon::bindings {

namespace {

using General = Compositional<FunctionProblem>;

std::unique_ptr<Shared<Colk>> make_colk(std::shared_ptr<Kernel> kernel, std::shared_ptr<Loss> loss,
                                        const std::string& risk, double weight, double parameter,
                                        std::optional<double> clip, const StepSchedule& step,
                                        const StepSchedule& tracking,
                                        const Compression& compression, double regularization,
                                        bool average, Index features, Index outputs) {
  const Risk measure{Risk::parse(risk), weight, parameter,
                     clip.value_or(std::numeric_limits<double>::infinity())};
  return std::make_unique<Shared<Colk>>(
      Colk(std::move(kernel), RiskProblem(std::move(loss), measure),
           {{step, compression, regularization, average}, tracking}, features, outputs));
}

// Calls of Python functions on blocks, with the GIL that the algorithm runs without. The functions
// are let go with the GIL too, whoever does it last.
using Callable = std::shared_ptr<py::object>;

Callable keep(const py::object& callable) {
  return {new py::object(callable), [](py::object* object) {
            if (!Py_IsInitialized()) return;
            const py::gil_scoped_acquire locked;
            delete object;
          }};
}

template <typename... Arguments>
RowMatrix call(const Callable& callable, const Arguments&... arguments) {
  const py::gil_scoped_acquire locked;
  const py::object result = (*callable)(RowMatrix(arguments)...);
  const py::array given = py::array::ensure(result);
  const char kind = given ? given.dtype().kind() : ' ';
  if (kind != 'f' && kind != 'i' && kind != 'u' && kind != 'b') {
    throw Error("The functions of a compositional problem must return arrays of real numbers.");
  }
  const py::array_t<double, py::array::c_style | py::array::forcecast> array(given);
  const auto rows = static_cast<Index>(array.ndim() > 0 ? array.shape(0) : 1);
  const Index columns = rows > 0 ? static_cast<Index>(array.size()) / rows : 0;
  return Eigen::Map<const RowMatrix>(array.data(), rows, columns);
}

FunctionProblem make_problem(const py::dict& functions, Index tracked, bool outer_sees_samples) {
  ProblemFunctions all;
  const auto get = [&](const char* name) {
    return functions.contains(name) && !functions[name].is_none() ? keep(functions[name])
                                                                  : Callable();
  };
  const auto of_two = [](Callable f) {
    return [f](const ConstRows& a, const ConstRows& b) { return call(f, a, b); };
  };
  const auto of_three = [](Callable f) {
    return [f](const ConstRows& a, const ConstRows& b, const RowVector& g) {
      return call(f, a, b, g);
    };
  };
  if (const Callable f = get("inner")) all.inner = of_two(f);
  if (const Callable f = get("inner_derivative")) all.inner_slopes = of_two(f);
  if (const Callable f = get("outer_gradient")) all.by_tracked = of_three(f);
  if (const Callable f = get("direct_gradient")) all.by_prediction = of_three(f);
  if (const Callable f = get("outer")) all.value = of_three(f);
  return {std::move(all), tracked, outer_sees_samples};
}

std::unique_ptr<Shared<General>> make_general(std::shared_ptr<Kernel> kernel,
                                              const py::dict& functions, Index tracked,
                                              bool outer_sees_samples, const StepSchedule& step,
                                              const StepSchedule& tracking,
                                              const Compression& compression, double regularization,
                                              bool average, Index features, Index outputs) {
  return std::make_unique<Shared<General>>(
      General(std::move(kernel), make_problem(functions, tracked, outer_sees_samples),
              {{step, compression, regularization, average}, tracking}, features, outputs));
}

std::unique_ptr<Shared<PolicyEvaluation>> make_policy_evaluation(
    std::shared_ptr<Kernel> kernel, bool gradient, double discount, const StepSchedule& step,
    const StepSchedule& tracking, const Compression& compression,
    const Compression& tracker_compression, double regularization, bool average, Index features) {
  PolicyEvaluationSettings settings;
  static_cast<OnlineSettings&>(settings) = {step, compression, regularization, average};
  settings.gradient = gradient;
  settings.discount = discount;
  settings.tracking = tracking;
  settings.tracker_compression = tracker_compression;
  return std::make_unique<Shared<PolicyEvaluation>>(
      PolicyEvaluation(std::move(kernel), settings, features));
}

template <class Problem>
void register_compositional(py::class_<Shared<Compositional<Problem>>>& cls) {
  using Model = Compositional<Problem>;
  cls.def_property_readonly("tracked", reading<Model>([](const Model& m) { return m.tracked(); }))
      .def_property_readonly("iterate", reading<Model>([](const Model& m) { return m.iterate(); }))
      .def_property_readonly("risk_trace", reading<Model>([](const Model& m) {
                               return detail::trace_matrix(m.risk_trace());
                             }));
  register_run<Model, ConstRows>(cls, py::arg("samples"));
  register_predict<Model, ConstRows>(cls, py::arg("points"));
  register_online(cls);
}

}  // namespace

void register_colk(py::module_& module) {
  py::class_<Shared<Colk>> colk(module, "Colk");
  colk.def(py::init(&make_colk), py::arg("kernel"), py::arg("loss"), py::kw_only(), py::arg("risk"),
           py::arg("weight"), py::arg("parameter"), py::arg("clip"), py::arg("step"),
           py::arg("tracking"), py::arg("compression"), py::arg("regularization"),
           py::arg("average"), py::arg("features"), py::arg("outputs"));
  register_compositional(colk);
  register_add_classes(colk);
  register_reader("colk", &colk_from_archive);

  py::class_<Shared<General>> general(module, "Compositional");
  general
      .def(py::init(&make_general), py::arg("kernel"), py::arg("functions"), py::arg("tracked"),
           py::kw_only(), py::arg("outer_sees_samples"), py::arg("step"), py::arg("tracking"),
           py::arg("compression"), py::arg("regularization"), py::arg("average"),
           py::arg("features"), py::arg("outputs"))
      .def_static(
          "from_archive",
          [](const Archive& archive, std::shared_ptr<Kernel> kernel, const py::dict& functions,
             Index tracked, bool outer_sees_samples) {
            detail::require_algorithm(archive, "compositional");
            return std::make_unique<Shared<General>>(compositional_from_archive(
                archive, make_problem(functions, tracked, outer_sees_samples), std::move(kernel)));
          },
          py::arg("archive"), py::arg("kernel"), py::arg("functions"), py::arg("tracked"),
          py::arg("outer_sees_samples"));
  register_compositional(general);

  py::class_<Shared<PolicyEvaluation>> policy(module, "PolicyEvaluation");
  policy
      .def(py::init(&make_policy_evaluation), py::arg("kernel"), py::kw_only(), py::arg("gradient"),
           py::arg("discount"), py::arg("step"), py::arg("tracking"), py::arg("compression"),
           py::arg("tracker_compression"), py::arg("regularization"), py::arg("average"),
           py::arg("features"))
      .def(
          "run",
          [](Shared<PolicyEvaluation>& model, const ConstRows& states,
             const Eigen::Ref<const Vector>& rewards, const ConstRows& next_states,
             const Eigen::Ref<const Vector>& discounts, const Eigen::Ref<const Vector>& ratios,
             Index batch_size) {
            const Transitions all{states, rewards, next_states, discounts, ratios};
            return model.run_in_batches([&](PolicyEvaluation& m, const KeepGoing& keep_going) {
              return m.run(all, batch_size, keep_going);
            });
          },
          py::arg("states"), py::arg("rewards"), py::arg("next_states"), py::arg("discounts"),
          py::arg("ratios"), py::arg("batch_size"))
      .def_property_readonly("tracker", reading<PolicyEvaluation>([](const PolicyEvaluation& m) {
                               return m.tracker().expansion(0, 1);
                             }))
      .def_property_readonly("tracker_order",
                             reading<PolicyEvaluation>([](const PolicyEvaluation& m) {
                               return m.tracker().model_order();
                             }));
  register_predict<PolicyEvaluation, ConstRows>(policy, py::arg("points"));
  register_online(policy);
  register_reader("policy_evaluation", &policy_evaluation_from_archive);
}

}  // namespace parsimon::bindings
