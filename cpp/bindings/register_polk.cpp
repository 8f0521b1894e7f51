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
  interruptible([&] {
    // A block that is interrupted half way leaves no sums.
    Polk::Refit sums = refit;
    model.use([&](const Polk& polk) { polk.add_to_refit(sums, samples, targets, sample_weights); });
    std::swap(refit, sums);
  });
}

void add_sums(const SharedPolk& model, Polk::Refit& refit, const LeastSquares::Sums& sums) {
  model.use([&](const Polk& polk) { polk.add_to_refit(refit, sums); });
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
  return interruptible(
      [&] { return model.use([&](Polk& polk) { return polk.coordinates(samples); }); });
}

void assume(SharedPolk& model, const ConstRows& normal, const ConstRows& right,
            const ConstRows& solution, double samples, std::optional<double> ridge) {
  model.use([&](Polk& polk) { polk.assume(normal, right, solution, samples, ridge); });
}

std::shared_ptr<Posterior> posterior(SharedPolk& model) {
  return interruptible([&] { return model.use([](Polk& polk) { return polk.posterior(); }); });
}

template <class Points>
Vector variance(const Posterior& posterior, const Points& points) {
  return interruptible([&] {
    Vector variances(points.rows());
    posterior.variance(points, variances);
    return variances;
  });
}

double compress(SharedPolk& model, double budget, std::optional<Index> max_points) {
  return interruptible([&] {
    return model.use([&](Polk& polk) {
      const bool merges = polk.settings().compression.way() == Way::unite;
      const Way way = merges ? Way::unite : Way::project;
      return polk.compress({budget, max_points.value_or(kUnlimited), way}).error;
    });
  });
}

}  // namespace

void register_polk(py::module_& module) {
  using Sums = LeastSquares::Sums;
  py::class_<Sums>(module, "LeastSquaresSums")
      .def(py::init([](RowMatrix normal, RowMatrix right, Vector squares, double outside,
                       double count, double used) {
             return Sums{
                 std::move(normal), std::move(right), std::move(squares), outside, count, used};
           }),
           py::arg("normal"), py::arg("right"), py::arg("squares"), py::arg("outside"),
           py::arg("count"), py::arg("used"))
      .def_readonly("normal", &Sums::normal)
      .def_readonly("right", &Sums::right)
      .def_readonly("squares", &Sums::squares)
      .def_readonly("outside", &Sums::outside)
      .def_readonly("count", &Sums::count)
      .def_readonly("used", &Sums::used);
  py::class_<Polk::Refit>(module, "Refit")
      .def_property_readonly("sums", [](const Polk::Refit& refit) { return refit.problem.sums(); });
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
      .def(
          "scout", [](SharedPolk& model) { model.use([](Polk& p) { p.scout(); }); }, Unlocked())
      .def(
          "stop_scouting", [](SharedPolk& model) { model.use([](Polk& p) { p.stop_scouting(); }); },
          Unlocked())
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
      .def("add_sums_to_refit", &add_sums, py::arg("refit"), py::arg("sums"), Unlocked())
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
