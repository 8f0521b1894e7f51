#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <parsimon/io/intensity_file.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "shared_model.hpp"

namespace parsimon::bindings {

namespace {

// A kind and its numbers of nodes, as Quadrature::restore() takes them.
using QuadratureText = std::pair<std::string, std::vector<Index>>;

Box make_domain(const ConstRows& bounds) {
  require(bounds.cols() == 2, "A domain needs a lower and an upper bound for each feature.");
  return {bounds.col(0).transpose(), bounds.col(1).transpose()};
}

Quadrature make_quadrature(const QuadratureText& quadrature) {
  return Quadrature::restore(quadrature.first, quadrature.second);
}

std::unique_ptr<Shared<Spppot>> make_spppot(std::shared_ptr<Kernel> kernel, const ConstRows& domain,
                                            const QuadratureText& quadrature,
                                            const Schedule& mirror, const std::string& gradient,
                                            bool dual_averaging, const Schedule& step,
                                            const Schedule& budget, double regularization,
                                            bool average, std::optional<Index> max_points) {
  SpppotSettings settings;
  settings.mirror = MirrorMap::restore(mirror.first, mirror.second);
  settings.gradient = detail::parse_gradient(gradient);
  settings.dual_averaging = dual_averaging;
  settings.step = make_step(step);
  settings.compression = make_compression(budget, max_points);
  settings.regularization = regularization;
  settings.average = average;
  return std::make_unique<Shared<Spppot>>(
      Spppot(std::move(kernel), settings, make_domain(domain), make_quadrature(quadrature)));
}

std::unique_ptr<Shared<MirrorNewton>> make_newton(std::shared_ptr<Kernel> kernel,
                                                  const ConstRows& domain,
                                                  const QuadratureText& quadrature,
                                                  const Schedule& step, double damping) {
  return std::make_unique<Shared<MirrorNewton>>(
      MirrorNewton(std::move(kernel), MirrorNewtonSettings{make_step(step), damping},
                   make_domain(domain), make_quadrature(quadrature)));
}

std::unique_ptr<Shared<Hybrid>> make_hybrid(const Shared<Spppot>& first, const Schedule& step,
                                            double damping, Index patience, Index cap) {
  OrderWatch watch;
  watch.patience = patience;
  watch.cap = cap;
  return std::make_unique<Shared<Hybrid>>(
      Hybrid(first.snapshot(), MirrorNewtonSettings{make_step(step), damping}, watch));
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
      .def_property_readonly("quadrature", reading<Model>([](const Model& m) {
                               const Quadrature& quadrature = m.quadrature();
                               return QuadratureText{quadrature.kind(), quadrature.counts()};
                             }));
}

}  // namespace

void register_intensity(py::module_& module) {
  module.def(
      "quadrature_nodes",
      [](const QuadratureText& quadrature, const ConstRows& domain) {
        return make_quadrature(quadrature).nodes(make_domain(domain));
      },
      py::arg("quadrature"), py::arg("domain"));

  py::class_<Shared<Spppot>> spppot(module, "Spppot");
  spppot.def(py::init(&make_spppot), py::arg("kernel"), py::arg("domain"), py::arg("quadrature"),
             py::kw_only(), py::arg("mirror"), py::arg("gradient"), py::arg("dual_averaging"),
             py::arg("step"), py::arg("budget"), py::arg("regularization"), py::arg("average"),
             py::arg("max_points") = py::none());
  register_density(spppot);
  register_answers(spppot);
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
