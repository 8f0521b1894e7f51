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
  return interruptible([&] {
    return std::make_unique<Shared<Spppot>>(
        Spppot(std::move(kernel), settings, domain, quadrature));
  });
}

std::unique_ptr<Shared<MirrorNewton>> make_newton(std::shared_ptr<Kernel> kernel, const Box& domain,
                                                  const Quadrature& quadrature,
                                                  const StepSchedule& step, double damping) {
  return interruptible([&] {
    return std::make_unique<Shared<MirrorNewton>>(
        MirrorNewton(std::move(kernel), {step, damping}, domain, quadrature));
  });
}

std::unique_ptr<Shared<Hybrid>> make_hybrid(const Shared<Spppot>& first, const StepSchedule& step,
                                            double damping, Index patience, Index cap) {
  OrderWatch watch;
  watch.patience = patience;
  watch.cap = cap;
  return std::make_unique<Shared<Hybrid>>(
      Hybrid(reading<Spppot>([](const Spppot& m) { return m; })(first), {step, damping}, watch));
}

using Numbers = std::vector<double>;
using Counts = std::vector<Index>;

std::unique_ptr<Shared<SolvedDensity>> solved_on_points(std::shared_ptr<Kernel> kernel,
                                                        const ConstRows& points, const Box& domain,
                                                        const Quadrature& quadrature) {
  return std::make_unique<Shared<SolvedDensity>>(
      SolvedDensity(std::move(kernel), points, domain, quadrature));
}

std::unique_ptr<Shared<SolvedDensity>> solved_on_grid(std::shared_ptr<Kernel> kernel,
                                                      const ProductGrid& grid, const Box& domain,
                                                      const Quadrature& quadrature) {
  return std::make_unique<Shared<SolvedDensity>>(
      SolvedDensity(std::move(kernel), grid, domain, quadrature));
}

// What a density is made of.
void register_parts(py::module_& module) {
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
void register_steps(py::class_<Shared<Model>>& cls) {
  cls.def(
      "run",
      [](Shared<Model>& model, const ConstRows& samples, Index batch_size) {
        return model.run_in_batches([&](Model& m, const KeepGoing& keep_going) {
          return m.run(samples, batch_size, keep_going);
        });
      },
      py::arg("samples"), py::arg("batch_size"));
}

template <class Model>
void register_density(py::class_<Shared<Model>>& cls) {
  cls.def(
         "log_density",
         [](const Shared<Model>& model, const ConstRows& points) {
           return interruptible([&] {
             Vector values(points.rows());
             model.use([&](const Model& m) { m.log_density(points, values); });
             return values;
           });
         },
         py::arg("points"), Unlocked())
      .def(
          "density",
          [](const Shared<Model>& model, const ConstRows& points) {
            return interruptible([&] {
              Vector values(points.rows());
              model.use([&](const Model& m) { m.density(points, values); });
              return values;
            });
          },
          py::arg("points"), Unlocked())
      .def_property_readonly("nodes", reading<Model>([](const Model& m) { return m.nodes(); }))
      .def_property_readonly("quadrature",
                             reading<Model>([](const Model& m) { return m.quadrature(); }));
}

void register_solved_density(py::module_& module) {
  using Model = SolvedDensity;
  py::class_<ProductGrid>(module, "ProductGrid")
      .def(py::init<Numbers, Numbers, Counts>(), py::arg("lower"), py::arg("step"),
           py::arg("counts"))
      .def_property_readonly("lower", &ProductGrid::lower)
      .def_property_readonly("step", &ProductGrid::step)
      .def_property_readonly("counts", &ProductGrid::counts)
      .def_property_readonly("points", &ProductGrid::points)
      .def(
          "gather",
          [](const ProductGrid& grid, const ConstRows& points, const Numbers& lengths,
             const Eigen::Ref<const Vector>& amounts) {
            require(points.cols() == grid.features() && amounts.size() == points.rows() &&
                        static_cast<Index>(lengths.size()) == grid.features(),
                    "A sum over a grid needs points, a length for each feature and an amount for "
                    "each point.");
            Vector moments = Vector::Zero(grid.size());
            grid.gather(points, lengths, amounts, moments);
            return moments;
          },
          py::arg("points"), py::arg("lengths"), py::arg("amounts"), Unlocked());

  py::class_<Shared<Model>> solved(module, "SolvedDensity");
  solved
      .def(py::init(&solved_on_points), py::arg("kernel"), py::arg("points"), py::arg("domain"),
           py::arg("quadrature"))
      .def_static("on_grid", &solved_on_grid, py::arg("kernel"), py::arg("grid"), py::arg("domain"),
                  py::arg("quadrature"))
      .def(
          "observe",
          [](Shared<Model>& model, const ConstRows& points, const Eigen::Ref<const Vector>& amounts,
             double kept) { model.use([&](Model& m) { m.observe(points, amounts, kept); }); },
          py::arg("points"), py::arg("amounts"), py::arg("kept"), Unlocked())
      .def(
          "assume",
          [](Shared<Model>& model, const Eigen::Ref<const Vector>& weights, double offset,
             double ridge,
             double loss) { model.use([&](Model& m) { m.assume(weights, offset, ridge, loss); }); },
          py::arg("weights"), py::arg("offset"), py::arg("ridge"), py::arg("loss"), Unlocked())
      .def_property_readonly("moments", reading<Model>([](const Model& m) { return m.moments(); }))
      .def_property_readonly("mass", reading<Model>([](const Model& m) { return m.mass(); }))
      .def_property_readonly("offset", reading<Model>([](const Model& m) { return m.offset(); }))
      .def_property_readonly("ridge", reading<Model>([](const Model& m) { return m.ridge(); }))
      .def_property_readonly("regularization",
                             reading<Model>([](const Model& m) { return m.regularization(); }))
      .def_property_readonly("grid", reading<Model>([](const Model& m) { return m.grid(); }));
  register_density(solved);
  register_answers(solved);
  register_reader("solved_density", &solved_density_from_archive);
}

}  // namespace

void register_intensity(py::module_& module) {
  register_parts(module);

  py::class_<Shared<Spppot>> spppot(module, "Spppot");
  spppot.def(py::init(&make_spppot), py::arg("kernel"), py::arg("domain"), py::arg("quadrature"),
             py::kw_only(), py::arg("mirror"), py::arg("gradient"), py::arg("dual_averaging"),
             py::arg("step"), py::arg("compression"), py::arg("regularization"),
             py::arg("average"));
  register_steps(spppot);
  register_density(spppot);
  register_online(spppot);
  register_reader("spppot", &spppot_from_archive);

  py::class_<Shared<MirrorNewton>> newton(module, "MirrorNewton");
  newton.def(py::init(&make_newton), py::arg("kernel"), py::arg("domain"), py::arg("quadrature"),
             py::kw_only(), py::arg("step"), py::arg("damping"));
  register_steps(newton);
  register_density(newton);
  register_answers(newton);
  register_reader("mirror_newton", &mirror_newton_from_archive);

  py::class_<Shared<Hybrid>> hybrid(module, "Hybrid");
  hybrid
      .def(py::init(&make_hybrid), py::arg("first"), py::kw_only(), py::arg("step"),
           py::arg("damping"), py::arg("patience"), py::arg("cap"))
      .def_property_readonly("in_second_phase",
                             reading<Hybrid>([](const Hybrid& m) { return m.in_second_phase(); }));
  register_steps(hybrid);
  register_density(hybrid);
  register_answers(hybrid);
  register_reader("hybrid", &hybrid_from_archive);
  register_solved_density(module);
}

}  // namespace parsimon::bindings
