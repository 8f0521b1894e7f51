#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <parsimon/io/polk_file.hpp>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "shared_model.hpp"

namespace parsimon::bindings {

namespace {

using SharedPolk = Shared<Polk>;

template <class Samples>
Index run(SharedPolk& model, const Samples& samples, const ConstRows& targets,
          const Eigen::Ref<const Vector>& sample_weights, Index batch_size) {
  return model.run([&](Polk& polk, const auto& keep_going) {
    return polk.run(samples, targets, sample_weights, batch_size, keep_going);
  });
}

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

template <class Points>
RowMatrix predict(const SharedPolk& model, const Points& points) {
  return model.use([&](const Polk& polk) {
    require(points.cols() == polk.features(), "The points have " + std::to_string(points.cols()) +
                                                  " features, but the model was made for " +
                                                  std::to_string(polk.features()) + ".");
    RowMatrix values(points.rows(), polk.outputs());
    polk.predict(points, values);
    return values;
  });
}

std::unique_ptr<SharedPolk> make(std::shared_ptr<Kernel> kernel, std::shared_ptr<Loss> loss,
                                 const Schedule& step, const Schedule& budget,
                                 double regularization, bool average, Index features, Index outputs,
                                 const std::optional<Schedule>& maintenance) {
  PolkSettings settings{std::move(loss), make_step(step), make_budget(budget), regularization,
                        average};
  if (maintenance) {
    settings.maintenance = Maintenance::restore(maintenance->first, maintenance->second);
  }
  return std::make_unique<SharedPolk>(
      Polk(std::move(kernel), std::move(settings), features, outputs));
}

}  // namespace

void register_polk(py::module_& module) {
  py::class_<Polk::Refit>(module, "Refit");
  py::class_<SharedPolk> polk(module, "Polk");
  polk.def(py::init(&make), py::arg("kernel"), py::arg("loss"), py::arg("step"), py::arg("budget"),
           py::arg("regularization"), py::arg("average"), py::arg("features"), py::arg("outputs"),
           py::arg("maintenance") = py::none())
      .def("run", &run<ConstSingleRows>, py::arg("samples").noconvert(), py::arg("targets"),
           py::arg("sample_weights"), py::arg("batch_size"))
      .def("run", &run<ConstRows>, py::arg("samples"), py::arg("targets"),
           py::arg("sample_weights"), py::arg("batch_size"))
      .def("begin_refit", &begin_refit, Unlocked())
      .def("add_to_refit", &add_to_refit, py::arg("refit"), py::arg("samples"), py::arg("targets"),
           py::arg("sample_weights"), Unlocked())
      .def("finish_refit", &finish_refit, py::arg("refit"), Unlocked())
      .def("predict", &predict<ConstSingleRows>, py::arg("points").noconvert(), Unlocked())
      .def("predict", &predict<ConstRows>, py::arg("points"), Unlocked())
      .def_property_readonly("iterate", reading<Polk>([](const Polk& p) {
                               return p.function().expansion(0, p.outputs());
                             }));
  register_answers(polk, [](const Polk& p) -> auto& { return p.function().dictionary(); });
  register_reader<Polk>(polk, [](const Archive& archive, KernelPtr kernel) {
    return polk_from_archive(archive, std::move(kernel));
  });
}

}  // namespace parsimon::bindings
