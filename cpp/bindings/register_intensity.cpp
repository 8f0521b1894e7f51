#include <pybind11/stl.h>

#include <memory>
#include <parsimon/io/intensity_file.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "shared_model.hpp"

namespace parsimon::bindings {

namespace {

std::unique_ptr<Shared<Spppot>> make_spppot(std::shared_ptr<Kernel> kernel, const Box& domain,
                                            const Quadrature& quadrature, const MirrorMap& mirror,
                                            const std::string& gradient, bool dual_averaging,
                                            const StepSchedule& step,
                                            const Compression& compression, double regularization,
                                            bool average) {
  SpppotSettings settings;
  static_cast<OnlineSettings&>(settings) = {step, compression, regularization, average};
  settings.mirror = mirror;
  settings.gradient = detail::parse_gradient(gradient);
  settings.dual_averaging = dual_averaging;
  return std::make_unique<Shared<Spppot>>(Spppot(std::move(kernel), settings, domain, quadrature));
}

std::unique_ptr<Shared<MirrorNewton>> make_newton(std::shared_ptr<Kernel> kernel, const Box& domain,
                                                  const Quadrature& quadrature,
                                                  const StepSchedule& step, double damping) {
  return std::make_unique<Shared<MirrorNewton>>(
      MirrorNewton(std::move(kernel), {step, damping}, domain, quadrature));
}

std::unique_ptr<Shared<Hybrid>> make_hybrid(const Shared<Spppot>& first, const StepSchedule& step,
                                            double damping, Index patience, Index cap) {
  OrderWatch watch;
  watch.patience = patience;
  watch.cap = cap;
  return std::make_unique<Shared<Hybrid>>(Hybrid(first.snapshot(), {step, damping}, watch));
}

// What a density is made of.
void register_parts(py::module_& module) {
  using Numbers = std::vector<double>;
  py::class_<Box>(module, "Box")
      .def(py::init<Numbers, Numbers>(), py::arg("lower"), py::arg("upper"));

  py::class_<Quadrature>(module, "Quadrature")
      .def_static("grid", &Quadrature::grid, py::arg("counts"))
      .def_static("scattered", &Quadrature::scattered, py::arg("count"))
      .def("nodes", &Quadrature::nodes, py::arg("box"))
      .def_property_readonly("kind", &Quadrature::kind)
      .def_property_readonly("counts", &Quadrature::counts);

  py::class_<MirrorMap>(module, "MirrorMap")
      .def_static("kl", &MirrorMap::kl)
      .def_static("euclidean", &MirrorMap::euclidean)
      .def_static("mahalanobis", &MirrorMap::mahalanobis<Numbers, Numbers>, py::arg("height"),
                  py::arg("center"), py::arg("width"));
}

template <class Model>
void register_density(py::class_<Shared<Model>>& cls) {
  cls.def(
         "run",
         [](Shared<Model>& model, const ConstRows& samples, Index batch_size) {
           return model.run([&](Model& m, const KeepGoing& keep_going) {
             return m.run(samples, batch_size, keep_going);
           });
         },
         py::arg("samples"), py::arg("batch_size"))
      .def(
          "log_density",
          [](const Shared<Model>& model, const ConstRows& points) {
            Vector values(points.rows());
            model.use([&](const Model& m) { m.log_density(points, values); });
            return values;
          },
          py::arg("points"), Unlocked())
      .def(
          "density",
          [](const Shared<Model>& model, const ConstRows& points) {
            Vector values(points.rows());
            model.use([&](const Model& m) { m.density(points, values); });
            return values;
          },
          py::arg("points"), Unlocked())
      .def_property_readonly("nodes", reading<Model>([](const Model& m) { return m.nodes(); }))
      .def_property_readonly("quadrature",
                             reading<Model>([](const Model& m) { return m.quadrature(); }));
}

}  // namespace

void register_intensity(py::module_& module) {
  register_parts(module);

  py::class_<Shared<Spppot>> spppot(module, "Spppot");
  spppot.def(py::init(&make_spppot), py::arg("kernel"), py::arg("domain"), py::arg("quadrature"),
             py::kw_only(), py::arg("mirror"), py::arg("gradient"), py::arg("dual_averaging"),
             py::arg("step"), py::arg("compression"), py::arg("regularization"),
             py::arg("average"));
  register_density(spppot);
  register_online(spppot);
  register_reader("spppot", &spppot_from_archive);

  py::class_<Shared<MirrorNewton>> newton(module, "MirrorNewton");
  newton.def(py::init(&make_newton), py::arg("kernel"), py::arg("domain"), py::arg("quadrature"),
             py::kw_only(), py::arg("step"), py::arg("damping"));
  register_density(newton);
  register_answers(newton);
  register_reader("mirror_newton", &mirror_newton_from_archive);

  py::class_<Shared<Hybrid>> hybrid(module, "Hybrid");
  hybrid
      .def(py::init(&make_hybrid), py::arg("first"), py::kw_only(), py::arg("step"),
           py::arg("damping"), py::arg("patience"), py::arg("cap"), Unlocked())
      .def_property_readonly("in_second_phase",
                             reading<Hybrid>([](const Hybrid& m) { return m.in_second_phase(); }));
  register_density(hybrid);
  register_answers(hybrid);
  register_reader("hybrid", &hybrid_from_archive);
}

}  // namespace parsimon::bindings
