#pragma once

#include <pybind11/eigen.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <parsimon/io/function_file.hpp>
#include <parsimon/rkhs/span.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model_readers.hpp"

namespace parsimon::bindings {

namespace py = pybind11;

using Unlocked = py::call_guard<py::gil_scoped_release>;

// A model that several threads may use at once: each mini-batch and each evaluation is one
// uninterrupted access. The lock is only ever waited for without the GIL, which a kernel written
// in Python needs while the lock is held. Such a kernel must not ask the model that is asking it.
template <class Model>
class Shared {
 public:
  explicit Shared(Model model) : model_(std::move(model)) {}
  Shared(const Shared& other) : model_(other.snapshot()) {}
  Shared& operator=(const Shared&) = delete;
  ~Shared() = default;

  template <typename Use>
  auto use(Use&& access) const {
    const std::unique_lock<Mutex> lock(mutex_);
    return access(model_);
  }

  template <typename Use>
  auto use(Use&& access) {
    const std::unique_lock<Mutex> lock(mutex_);
    return access(model_);
  }

  Model snapshot() const {
    return use([](const Model& model) { return model; });
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
  Index run(Train&& train) {
    Index taken = 0;
    {
      const py::gil_scoped_release unlocked;
      std::unique_lock<Mutex> lock(mutex_);
      auto last_look = std::chrono::steady_clock::now();
      const auto keep_going = [&] {
        // Others get their turn between mini-batches.
        lock.unlock();
        const bool go_on = !interrupted(last_look);
        lock.lock();
        return go_on;
      };
      taken = train(model_, keep_going);
    }
    if (PyErr_Occurred()) throw py::error_already_set();
    return taken;
  }

 private:
  // A mutex that refuses the thread that has it, rather than have it wait for itself.
  class Mutex {
   public:
    void lock() {
      require(owner_ != std::this_thread::get_id(),
              "A kernel or another function of a model cannot use the model itself: it is called "
              "in the middle of a step or a prediction of that model.");
      mutex_.lock();
      owner_ = std::this_thread::get_id();
    }
    void unlock() {
      owner_ = std::thread::id();
      mutex_.unlock();
    }

   private:
    std::mutex mutex_;
    std::atomic<std::thread::id> owner_;
  };

  static bool interrupted(std::chrono::steady_clock::time_point& last_look) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_look < std::chrono::milliseconds(50)) return false;
    last_look = now;
    const py::gil_scoped_acquire locked;
    return PyErr_CheckSignals() != 0;
  }

  mutable Mutex mutex_;
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
  cls.def(
         "copy", [](const Shared<Model>& model) { return std::make_unique<Shared<Model>>(model); },
         Unlocked())
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
      .def_property_readonly("budget", reading<Model>([](const Model& m) { return m.budget(); }))
      .def_property_readonly("regularization",
                             reading<Model>([](const Model& m) { return m.regularization(); }))
      .def(
          "remember",
          [](Shared<Model>& model, double half_life, bool adapts) {
            model.use([&](Model& m) { m.set_memory({half_life, adapts}); });
          },
          py::arg("half_life"), py::arg("adapts"), Unlocked());
}

// What models answer that learn from samples with targets.
template <class Model, class Samples>
void register_predict(py::class_<Shared<Model>>& cls, const py::arg& points) {
  cls.def(
      "predict",
      [](const Shared<Model>& model, const Samples& given) {
        return model.use([&](const Model& m) {
          RowMatrix values(given.rows(), m.outputs());
          m.predict(given, values);
          return values;
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
        return model.run([&](Model& m, const KeepGoing& keep_going) {
          return m.run(given, targets, sample_weights, batch_size, keep_going);
        });
      },
      samples, py::arg("targets"), py::arg("sample_weights"), py::arg("batch_size"));
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
