#include <pybind11/eigen.h>
#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <parsimon/io/polk_file.hpp>
#include <string>
#include <utility>
#include <vector>

#include "archive_conversion.hpp"
#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

namespace {

// A model that several threads may use at once: each mini-batch and each evaluation is one
// uninterrupted access. The lock is only ever waited for without the GIL, which a kernel written
// in Python needs while the lock is held.
class SharedPolk {
 public:
  explicit SharedPolk(Polk polk) : polk_(std::move(polk)) {}
  SharedPolk(const SharedPolk& other) : polk_(other.snapshot()) {}
  SharedPolk& operator=(const SharedPolk&) = delete;
  ~SharedPolk() = default;

  template <typename Use>
  auto use(Use&& access) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return access(polk_);
  }

  template <typename Use>
  auto use(Use&& access) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return access(polk_);
  }

  Polk snapshot() const {
    return use([](const Polk& polk) { return polk; });
  }

  void become(const SharedPolk& other) {
    Polk state = other.snapshot();
    use([&](Polk& polk) { polk = std::move(state); });
  }

  // Returns how many samples were taken; fewer than given after Ctrl-C.
  Index run(const ConstRows& samples, const ConstRows& targets,
            const Eigen::Ref<const Vector>& sample_weights, Index batch_size) {
    std::unique_lock<std::mutex> lock(mutex_);
    auto last_look = std::chrono::steady_clock::now();
    const auto keep_going = [&] {
      // Others get their turn between mini-batches.
      lock.unlock();
      const bool go_on = !interrupted(last_look);
      lock.lock();
      return go_on;
    };
    return polk_.run(samples, targets, sample_weights, batch_size, keep_going);
  }

 private:
  static bool interrupted(std::chrono::steady_clock::time_point& last_look) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_look < std::chrono::milliseconds(50)) return false;
    last_look = now;
    const py::gil_scoped_acquire locked;
    return PyErr_CheckSignals() != 0;
  }

  mutable std::mutex mutex_;
  Polk polk_;
};

Index run(SharedPolk& model, const ConstRows& samples, const ConstRows& targets,
          const Eigen::Ref<const Vector>& sample_weights, Index batch_size) {
  Index taken = 0;
  {
    const py::gil_scoped_release unlocked;
    taken = model.run(samples, targets, sample_weights, batch_size);
  }
  if (PyErr_Occurred()) throw py::error_already_set();
  return taken;
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

RowMatrix predict(const SharedPolk& model, const ConstRows& points) {
  return model.use([&](const Polk& polk) {
    require(points.cols() == polk.features(), "The points have " + std::to_string(points.cols()) +
                                                  " features, but the model was made for " +
                                                  std::to_string(polk.features()) + ".");
    RowMatrix values(points.rows(), polk.outputs());
    polk.predict(points, values);
    return values;
  });
}

template <typename Get>
auto reading(Get get) {
  return [get](const SharedPolk& model) {
    const py::gil_scoped_release unlocked;
    return model.use(get);
  };
}

using Schedule = std::pair<std::string, std::vector<double>>;

BudgetSchedule make_budget(const Schedule& schedule) {
  const auto& [name, parameters] = schedule;
  if (name == "hold_model_order" && parameters.size() == 2) {
    return BudgetSchedule::hold_model_order(parameters[0], parameters[1]);
  }
  return BudgetSchedule::restore(name, parameters);
}

std::unique_ptr<SharedPolk> make(std::shared_ptr<Kernel> kernel, std::shared_ptr<Loss> loss,
                                 const Schedule& step, const Schedule& budget,
                                 double regularization, bool average, Index features,
                                 Index outputs) {
  PolkSettings settings{std::move(loss), StepSchedule::restore(step.first, step.second),
                        make_budget(budget), regularization, average};
  return std::make_unique<SharedPolk>(
      Polk(std::move(kernel), std::move(settings), features, outputs));
}

}  // namespace

void register_polk(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Polk::Refit>(module, "Refit");
  py::class_<SharedPolk>(module, "Polk")
      .def(py::init(&make), py::arg("kernel"), py::arg("loss"), py::arg("step"), py::arg("budget"),
           py::arg("regularization"), py::arg("average"), py::arg("features"), py::arg("outputs"))
      .def("run", &run, py::arg("samples"), py::arg("targets"), py::arg("sample_weights"),
           py::arg("batch_size"))
      .def("begin_refit", &begin_refit, Unlocked())
      .def("add_to_refit", &add_to_refit, py::arg("refit"), py::arg("samples"), py::arg("targets"),
           py::arg("sample_weights"), Unlocked())
      .def("finish_refit", &finish_refit, py::arg("refit"), Unlocked())
      .def("predict", &predict, py::arg("points"), Unlocked())
      .def(
          "copy", [](const SharedPolk& model) { return std::make_unique<SharedPolk>(model); },
          Unlocked())
      .def("become", &SharedPolk::become, py::arg("other"), Unlocked())
      .def_property_readonly("expansion", reading([](const Polk& p) { return p.expansion(); }))
      .def_property_readonly(
          "iterate", reading([](const Polk& p) { return p.function().expansion(0, p.outputs()); }))
      .def_property_readonly("model_order",
                             reading([](const Polk& p) { return p.function().model_order(); }))
      .def_property_readonly("samples", reading([](const Polk& p) { return p.samples(); }))
      .def_property_readonly("batches", reading([](const Polk& p) { return p.batches(); }))
      .def_property_readonly("dictionary", reading([](const Polk& p) {
                               return RowMatrix(p.function().dictionary().points());
                             }))
      .def_property_readonly("weights",
                             reading([](const Polk& p) { return p.prediction_weights(); }))
      .def_property_readonly("trace",
                             reading([](const Polk& p) { return detail::trace_matrix(p.trace()); }))
      .def_property_readonly("target_out_of_reach", reading([](const Polk& p) {
                               return p.settings().budget.at_floor() -
                                      p.settings().budget.at_ceiling();
                             }))
      .def("to_entries",
           [](const SharedPolk& model) {
             return to_dict(reading([](const Polk& p) { return parsimon::to_archive(p); })(model));
           })
      .def_static(
          "from_entries",
          [](const py::dict& entries, std::shared_ptr<Kernel> kernel) {
            return std::make_unique<SharedPolk>(
                polk_from_archive(to_archive(entries), std::move(kernel)));
          },
          py::arg("entries"), py::arg("kernel") = nullptr);
}

}  // namespace parsimon::bindings
