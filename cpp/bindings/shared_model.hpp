#pragma once

#include <pybind11/eigen.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <parsimon/io/function_file.hpp>
#include <parsimon/rkhs/span.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fork_safe_mutex.hpp"
#include "interruptible.hpp"
#include "model_readers.hpp"

namespace parsimon::bindings {

namespace py = pybind11;

using Unlocked = py::call_guard<py::gil_scoped_release>;

// A model that several threads may use at once: each mini-batch and each evaluation is one
// uninterrupted access. The lock is only ever waited for without the GIL, which a kernel written
// in Python needs while the lock is held, and who forks before the lock is given back. Such a
// kernel must not ask the model that is asking it.
template <class Model>
class Shared {
 public:
  explicit Shared(Model model) : model_(std::move(model)) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() = default;

  template <typename Use>
  auto use(Use&& access) const {
    const std::unique_lock<ForkSafeMutex> lock(mutex_);
    return access(model_);
  }

  template <typename Use>
  auto use(Use&& access) {
    const std::unique_lock<ForkSafeMutex> lock(mutex_);
    return access(model_);
  }

  // The span of the model's points. To find it takes as long as many a mini-batch: it is kept until
  // there are other points, and the model can be trained meanwhile.
  std::shared_ptr<Span> span() const {
    std::optional<Dictionary> changed;
    std::shared_ptr<Span> span = use([&](const Model& model) {
      const Dictionary& dictionary = model.dictionary();
      if (!span_ || span_ids_ != dictionary.ids()) changed = dictionary;
      return span_;
    });
    if (!changed) return span;
    span = std::make_shared<Span>(Span::of(*changed));
    return use([&](const Model&) {
      span_ids_ = changed->ids();
      return span_ = span;
    });
  }

  // Calls train(model, keep_going) without the GIL. Returns what it returns: how many samples were
  // taken, fewer than given after Ctrl-C, which is then raised.
  template <typename Train>
  Index run(const Train& train) {
    Index taken = 0;
    {
      const py::gil_scoped_release unlocked;
      std::unique_lock<ForkSafeMutex> lock(mutex_);
      Signals signals;
      const auto keep_going = [&] {
        // Others get their turn between mini-batches.
        lock.unlock();
        const bool go_on = !signals.interrupt();
        lock.lock();
        return go_on;
      };
      taken = train(model_, keep_going);
    }
    if (PyErr_Occurred()) throw py::error_already_set();
    return taken;
  }

  // The same for models whose mini-batches change all or nothing, whatever is thrown inside. Ctrl-C
  // also ends a mini-batch that takes long: the model is then what it was before it.
  template <typename Train>
  Index run_in_batches(const Train& train) {
    return run([&](Model& model, const auto& keep_going) {
      const Index start = model.samples();
      Signals signals;
      const Interruptible::KeepGoing in_between = [&] { return !signals.interrupt(); };
      const Interruptible scope(in_between);
      try {
        return train(model, keep_going);
      } catch (const Interrupted&) {
        return model.samples() - start;
      }
    });
  }

 private:
  mutable ForkSafeMutex mutex_;
  Model model_;
  mutable std::shared_ptr<Span> span_;
  mutable std::vector<Index> span_ids_;
};

// A getter that asks the model without the GIL.
template <class Model, typename Get>
auto reading(Get get) {
  return [get](const Shared<Model>& model) {
    const py::gil_scoped_release unlocked;
    return model.use(get);
  };
}

// What the models of all algorithms answer.
template <class Model>
void register_answers(py::class_<Shared<Model>>& cls) {
  cls.def("copy",
          [](const Shared<Model>& model) {
            return std::make_unique<Shared<Model>>(
                reading<Model>([](const Model& m) { return m; })(model));
          })
      .def_property_readonly("expansion",
                             reading<Model>([](const Model& m) { return m.expansion(); }))
      .def("span", &Shared<Model>::span, Unlocked())
      .def_property_readonly("model_order",
                             reading<Model>([](const Model& m) { return m.model_order(); }))
      .def_property_readonly("samples", reading<Model>([](const Model& m) { return m.samples(); }))
      .def_property_readonly("batches", reading<Model>([](const Model& m) { return m.batches(); }))
      .def_property_readonly("dictionary",
                             reading<Model>([](const Model& m) { return m.dictionary().points(); }))
      .def_property_readonly("weights",
                             reading<Model>([](const Model& m) { return m.prediction_weights(); }))
      .def_property_readonly(
          "trace", reading<Model>([](const Model& m) { return detail::trace_matrix(m.trace()); }))
      // The loss and the error of compression in the latest record of the trace.
      .def_property_readonly("latest", reading<Model>([](const Model& m) {
                               const auto& records = m.trace().records();
                               return records.empty() ? std::pair(0.0, 0.0)
                                                      : std::pair(records.back().loss,
                                                                  records.back().compression_error);
                             }))
      .def_property_readonly("target_out_of_reach",
                             reading<Model>([](const Model& m) { return m.target_out_of_reach(); }))
      .def("to_archive", reading<Model>([](const Model& m) { return to_archive(m); }));
}

// What models answer that the driver moves.
template <class Model>
void register_online(py::class_<Shared<Model>>& cls) {
  register_answers(cls);
  cls.def_property_readonly("learning_rate",
                            reading<Model>([](const Model& m) { return m.learning_rate(); }))
      .def_property_readonly("drift", reading<Model>([](const Model& m) { return m.drift(); }))
      .def_property_readonly("budget", reading<Model>([](const Model& m) { return m.budget(); }))
      .def_property_readonly("regularization",
                             reading<Model>([](const Model& m) { return m.regularization(); }))
      .def(
          "replace",
          [](Shared<Model>& model, const ConstRows& points, const ConstRows& weights) {
            model.use([&](Model& m) { m.replace(points, weights); });
          },
          py::arg("points"), py::arg("weights"), Unlocked())
      .def(
          "remember",
          [](Shared<Model>& model, double half_life, bool adapts) {
            model.use([&](Model& m) { m.set_memory({half_life, adapts}); });
          },
          py::arg("half_life"), py::arg("adapts"), Unlocked())
      .def(
          "listen", [](Shared<Model>& model) { model.use([](Model& m) { m.listen(); }); },
          Unlocked())
      .def(
          "raise_alarm", [](Shared<Model>& model) { model.use([](Model& m) { m.raise_alarm(); }); },
          Unlocked());
}

// What models answer that learn from samples with targets.
template <class Model, class Samples>
void register_predict(py::class_<Shared<Model>>& cls, const py::arg& points) {
  cls.def(
      "predict",
      [](const Shared<Model>& model, const Samples& given) {
        return interruptible([&] {
          return model.use([&](const Model& m) {
            RowMatrix values(given.rows(), m.outputs());
            m.predict(given, values);
            return values;
          });
        });
      },
      points, Unlocked());
}

template <class Model, class Samples>
void register_run(py::class_<Shared<Model>>& cls, const py::arg& samples) {
  cls.def(
      "run",
      [](Shared<Model>& model, const Samples& given, const ConstRows& targets,
         const Eigen::Ref<const Vector>& sample_weights, Index batch_size) {
        return model.run_in_batches([&](Model& m, const KeepGoing& keep_going) {
          return m.run(given, targets, sample_weights, batch_size, keep_going);
        });
      },
      samples, py::arg("targets"), py::arg("sample_weights"), py::arg("batch_size"));
}

// What classifiers do when classes come that they have not seen.
template <class Model>
void register_add_classes(py::class_<Shared<Model>>& cls) {
  cls.def(
      "add_classes",
      [](Shared<Model>& model, const std::vector<Index>& places, Index classes,
         const std::shared_ptr<Loss>& loss) {
        model.use([&](Model& m) { m.add_classes(places, classes, loss); });
      },
      py::arg("places"), py::arg("classes"), py::arg("loss"), Unlocked());
}

// Has read_model() know the models of an algorithm, by a function that reads an archive.
template <typename FromArchive>
void register_reader(const std::string& algorithm, FromArchive from_archive) {
  add_reader(algorithm, [from_archive](const Archive& archive, const KernelPtr& kernel) {
    auto model = from_archive(archive, kernel);
    return py::cast(std::make_unique<Shared<decltype(model)>>(std::move(model)));
  });
}

}  // namespace parsimon::bindings
