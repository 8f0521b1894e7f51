#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <parsimon/io/polk_file.hpp>
#include <utility>

#include "bindings.hpp"
#include "shared_model.hpp"

namespace parsimon::bindings {

namespace {

using SharedPolk = Shared<Polk>;

Polk::Refit begin_refit(SharedPolk& model) {
  return model.use([](Polk& polk) { return polk.begin_refit(); });
}

void add_to_refit(const SharedPolk& model, Polk::Refit& refit, const ConstRows& samples,
                  const ConstRows& targets, const Eigen::Ref<const Vector>& sample_weights) {
  model.use([&](const Polk& polk) { polk.add_to_refit(refit, samples, targets, sample_weights); });
}

void finish_refit(SharedPolk& model, const Polk::Refit& refit) {
  model.use([&](Polk& polk) { polk.finish_refit(refit); });
}

std::unique_ptr<SharedPolk> make(std::shared_ptr<Kernel> kernel, std::shared_ptr<Loss> loss,
                                 const StepSchedule& step, const Compression& compression,
                                 double regularization, bool average,
                                 const std::optional<NewtonSettings>& newton, Index features,
                                 Index outputs) {
  return std::make_unique<SharedPolk>(
      Polk(std::move(kernel),
           {std::move(loss), OnlineSettings{step, compression, regularization, average, newton}},
           features, outputs));
}

template <class Samples>
RowMatrix coordinates(SharedPolk& model, const Samples& samples) {
  return model.use([&](Polk& polk) { return polk.coordinates(samples); });
}

void assume(SharedPolk& model, const ConstRows& normal, const ConstRows& right,
            const ConstRows& solution, double samples, std::optional<double> ridge) {
  model.use([&](Polk& polk) { polk.assume(normal, right, solution, samples, ridge); });
}

std::shared_ptr<Posterior> posterior(SharedPolk& model) {
  return model.use([](Polk& polk) { return polk.posterior(); });
}

template <class Points>
Vector variance(const Posterior& posterior, const Points& points) {
  Vector variances(points.rows());
  posterior.variance(points, variances);
  return variances;
}

double compress(SharedPolk& model, double budget, std::optional<Index> max_points) {
  const Limit limit(budget, max_points.value_or(kUnlimited));
  return model.use([&](Polk& polk) { return polk.compress(limit).error; });
}

}  // namespace

void register_polk(py::module_& module) {
  py::class_<Polk::Refit>(module, "Refit");
  py::class_<Posterior, std::shared_ptr<Posterior>>(module, "Posterior")
      .def("variance", &variance<ConstSingleRows>, py::arg("points").noconvert(), Unlocked())
      .def("variance", &variance<ConstRows>, py::arg("points"), Unlocked());
  py::class_<NewtonSettings>(module, "NewtonSettings")
      .def(py::init([](double ridge, double ridge_per_sample, double half_life, bool adapts) {
             return NewtonSettings{ridge, ridge_per_sample, half_life, adapts};
           }),
           py::arg("ridge"), py::arg("ridge_per_sample"), py::arg("half_life"), py::arg("adapts"));
  py::class_<SharedPolk> polk(module, "Polk");
  polk.def(py::init(&make), py::arg("kernel"), py::arg("loss"), py::arg("step"),
           py::arg("compression"), py::arg("regularization"), py::arg("average"), py::arg("newton"),
           py::arg("features"), py::arg("outputs"))
      .def("coordinates", &coordinates<ConstSingleRows>, py::arg("samples").noconvert(), Unlocked())
      .def("coordinates", &coordinates<ConstRows>, py::arg("samples"), Unlocked())
      .def("scout", [](SharedPolk& model) { model.use([](Polk& p) { p.scout(); }); })
      .def("stop_scouting",
           [](SharedPolk& model) { model.use([](Polk& p) { p.stop_scouting(); }); })
      .def("compress", &compress, py::arg("budget"), py::arg("max_points"), Unlocked())
      .def("assume", &assume, py::arg("normal"), py::arg("right"), py::arg("solution"),
           py::arg("samples"), py::arg("ridge") = py::none(), Unlocked())
      .def("posterior", &posterior, Unlocked())
      // The variance of the noise for each output; empty if it is not known.
      .def_property_readonly("noise",
                             reading<Polk>([](const Polk& p) { return p.noise_variance(); }))
      .def_property_readonly("solution", reading<Polk>([](const Polk& p) { return p.solution(); }))
      .def("begin_refit", &begin_refit, Unlocked())
      .def("add_to_refit", &add_to_refit, py::arg("refit"), py::arg("samples"), py::arg("targets"),
           py::arg("sample_weights"), Unlocked())
      .def("finish_refit", &finish_refit, py::arg("refit"), Unlocked())
      .def_property_readonly("iterate", reading<Polk>([](const Polk& p) { return p.iterate(); }));
  register_run<Polk, ConstSingleRows>(polk, py::arg("samples").noconvert());
  register_run<Polk, ConstRows>(polk, py::arg("samples"));
  register_predict<Polk, ConstSingleRows>(polk, py::arg("points").noconvert());
  register_predict<Polk, ConstRows>(polk, py::arg("points"));
  register_online(polk);
  register_add_classes(polk);
  register_reader("polk", &polk_from_archive);
}

}  // namespace parsimon::bindings
