#include <memory>
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
                                 double regularization, bool average, Index features,
                                 Index outputs) {
  return std::make_unique<SharedPolk>(
      Polk(std::move(kernel), {std::move(loss), step, compression, regularization, average},
           features, outputs));
}

}  // namespace

void register_polk(py::module_& module) {
  py::class_<Polk::Refit>(module, "Refit");
  py::class_<SharedPolk> polk(module, "Polk");
  polk.def(py::init(&make), py::arg("kernel"), py::arg("loss"), py::arg("step"),
           py::arg("compression"), py::arg("regularization"), py::arg("average"),
           py::arg("features"), py::arg("outputs"))
      .def("begin_refit", &begin_refit, Unlocked())
      .def("add_to_refit", &add_to_refit, py::arg("refit"), py::arg("samples"), py::arg("targets"),
           py::arg("sample_weights"), Unlocked())
      .def("finish_refit", &finish_refit, py::arg("refit"), Unlocked())
      .def_property_readonly("iterate", reading<Polk>([](const Polk& p) { return p.iterate(); }));
  register_run<Polk, ConstSingleRows>(polk, py::arg("samples").noconvert());
  register_run<Polk, ConstRows>(polk, py::arg("samples"));
  register_predict<Polk, ConstSingleRows>(polk, py::arg("points").noconvert());
  register_predict<Polk, ConstRows>(polk, py::arg("points"));
  register_answers(polk);
  register_reader("polk", &polk_from_archive);
}

}  // namespace parsimon::bindings
