#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/online.hpp"
#include "parsimon/io/archive.hpp"
#include "parsimon/io/checks.hpp"
#include "parsimon/types.hpp"

// What the files of all algorithms have in common.

namespace parsimon {

namespace detail {

inline std::vector<double> to_std(const Vector& values) {
  return {values.data(), values.data() + values.size()};
}

inline Index load_count(const Archive& archive, const std::string& name) {
  const Index count = archive.get_integer(name);
  require_count(count, name);
  return count;
}

inline void require_weights(const ConstRows& weights) {
  for (Index i = 0; i < weights.rows(); ++i) {
    require_weights(weights.data() + i * weights.outerStride(), weights.cols());
  }
}

struct Sizes {
  Index features;
  Index outputs;
  Index samples;
  Index batches;

  explicit Sizes(const Archive& archive)
      : features(archive.get_integer("features")),
        outputs(archive.get_integer("outputs")),
        samples(load_count(archive, "samples")),
        batches(load_count(archive, "batches")) {
    require_sizes(features, outputs);
  }
};

// prefix: of the names of its entries, if a model has several functions.
inline void save_function(const SparseFunction& function, Archive& archive,
                          const std::string& prefix = "") {
  const Dictionary& dictionary = function.dictionary();
  std::vector<std::int64_t> ids, is_protected;
  for (Index i = 0; i < dictionary.size(); ++i) {
    ids.push_back(dictionary.id(i));
    is_protected.push_back(dictionary.is_protected(i) ? 1 : 0);
  }
  archive.set(prefix + "dictionary", dictionary.points());
  // As long as there are no points, the next ones choose the origin.
  archive.set(prefix + "dictionary.origin",
              dictionary.size() > 0 ? dictionary.origin() : RowVector());
  archive.set(prefix + "dictionary.ids", ids);
  archive.set(prefix + "dictionary.next_id", dictionary.next_id());
  archive.set(prefix + "dictionary.protected", is_protected);
  archive.set(prefix + "weights", RowMatrix(function.weights()));

  const FactorState state = function.factor_state();
  Vector packed(state.root.rows() * (state.root.rows() + 1) / 2);
  for (Index i = 0, k = 0; i < state.root.rows(); k += ++i) {
    packed.segment(k, i + 1) = state.root.row(i).head(i + 1);
  }
  archive.set(prefix + "factor", packed);
  archive.set(prefix + "factor.size", state.root.rows());
  archive.set(prefix + "factor.diagonal", state.inverse_diagonal);
  archive.set(prefix + "factor.changes", state.changes);
  archive.set(prefix + "factor.probes", state.probes);
}

inline FactorState load_factor_state(const Archive& archive, Index model_order,
                                     const std::string& prefix) {
  FactorState state;
  const Index size = archive.get_integer(prefix + "factor.size");
  require(size >= 0 && size <= model_order,
          "The model file has a factor of " + std::to_string(size) +
              " points, but a dictionary of " + std::to_string(model_order) + ".");
  const Vector packed = archive.get_vector(prefix + "factor", size * (size + 1) / 2);
  state.root = RowMatrix::Zero(size, size);
  for (Index i = 0, k = 0; i < size; k += ++i) {
    state.root.row(i).head(i + 1) = packed.segment(k, i + 1).transpose();
  }
  state.inverse_diagonal = archive.get_vector(prefix + "factor.diagonal", size);
  state.changes = archive.get_integer(prefix + "factor.changes");
  state.probes = archive.get_integer(prefix + "factor.probes");
  require(state.changes >= 0 && state.probes >= 0 && state.probes < (Index{1} << 40),
          "The model file has impossible counters.");
  return state;
}

// averaged: whether there are weights that predict beside those of the function.
inline SparseFunction load_function(const Archive& archive, KernelPtr kernel, Index features,
                                    Index outputs, bool averaged, const std::string& prefix = "") {
  const Index columns = averaged ? 2 * outputs : outputs;
  const RowMatrix points = archive.get_matrix(prefix + "dictionary", Archive::any_size, features);
  const Vector origin = archive.get_vector(prefix + "dictionary.origin");
  const auto ids = archive.get_integers(prefix + "dictionary.ids", points.rows());
  const auto is_protected = archive.get_integers(prefix + "dictionary.protected", points.rows());
  const RowMatrix weights = archive.get_matrix(prefix + "weights", points.rows(), columns);
  require(points.allFinite() && origin.allFinite(),
          "The model file holds numbers that are not finite.");
  require_weights(weights);
  const Index next_id = archive.get_integer(prefix + "dictionary.next_id");
  const std::set<std::int64_t> known(ids.begin(), ids.end());
  require(known.size() == ids.size() && next_id >= 0 && next_id < (Index{1} << 62) &&
              (known.empty() || (*known.begin() >= 0 && *known.rbegin() < next_id)),
          "The model file gives impossible identities to its dictionary points.");
  require(origin.size() == (points.rows() > 0 ? features : 0),
          "The origin in the model file has " + std::to_string(origin.size()) +
              " features, but its dictionary has " + std::to_string(points.rows()) +
              " points with " + std::to_string(features) + ".");

  Dictionary dictionary = Dictionary::about(kernel, features, origin.transpose(), next_id);
  std::vector<View> views;
  std::as_const(dictionary).make_views(points, views);
  for (Index i = 0; i < points.rows(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    dictionary.append(points.row(i), views.data(), i, is_protected[k] != 0, ids[k]);
  }
  SparseFunction function(kernel, features, columns, outputs);
  function.restore(std::move(dictionary), weights,
                   load_factor_state(archive, points.rows(), prefix));
  return function;
}

inline void save_step(const StepSchedule& step, Archive& archive,
                      const std::string& name = "step") {
  archive.set(name, step.name());
  archive.set(name + ".parameters", step.parameters());
}

inline StepSchedule load_step(const Archive& archive, const std::string& name = "step") {
  return StepSchedule::restore(archive.get_text(name),
                               to_std(archive.get_vector(name + ".parameters")));
}

inline void save_compression(const Compression& compression, Archive& archive,
                             const std::string& prefix = "") {
  archive.set(prefix + "budget", compression.budget().name());
  archive.set(prefix + "budget.parameters", compression.budget().parameters());
  archive.set(prefix + "maintenance", compression.name());
  archive.set(prefix + "maintenance.parameters", compression.parameters());
}

inline Compression load_compression(const Archive& archive, const std::string& prefix = "") {
  BudgetSchedule budget =
      BudgetSchedule::restore(archive.get_text(prefix + "budget"),
                              to_std(archive.get_vector(prefix + "budget.parameters")));
  const std::string name = prefix + "maintenance";
  // Files of the first version have no cap.
  if (!archive.has(name) && !archive.has(name + ".parameters")) return budget;
  return Compression::restore(std::move(budget), archive.get_text(name),
                              to_std(archive.get_vector(name + ".parameters")));
}

inline void save_settings(const OnlineSettings& settings, Archive& archive) {
  save_step(settings.step, archive);
  save_compression(settings.compression, archive);
  archive.set("regularization", settings.regularization);
  archive.set("average", settings.average ? 1 : 0);
}

inline OnlineSettings load_settings(const Archive& archive) {
  return {load_step(archive), load_compression(archive), archive.get_number("regularization"),
          archive.get_integer("average") != 0};
}

inline void require_algorithm(const Archive& archive, const std::string& expected) {
  const std::string found = archive.get_text("algorithm");
  require(found == expected, "The model file holds a model of the algorithm " + found + ", where " +
                                 expected + " was expected.");
}

inline RowMatrix trace_matrix(const Trace& trace) {
  const std::vector<StepRecord> records = trace.records();
  RowMatrix matrix(static_cast<Index>(records.size()), 6);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const StepRecord& r = records[i];
    matrix.row(static_cast<Index>(i)) << static_cast<double>(r.samples),
        static_cast<double>(r.model_order), static_cast<double>(r.active), r.loss,
        r.compression_error, r.budget;
  }
  return matrix;
}

inline Trace trace_from(const RowMatrix& matrix) {
  Trace trace;
  require(matrix.allFinite(), "The trace in the model file is not finite.");
  const auto counts = matrix.leftCols(3).array();
  require((counts >= 0).all() && (counts < 0x1p53).all(),
          "The trace in the model file counts what cannot be counted.");
  for (Index i = 0; i < matrix.rows(); ++i) {
    const auto count = [&](Index column) { return static_cast<Index>(matrix(i, column)); };
    trace.add({count(0), count(1), count(2), matrix(i, 3), matrix(i, 4), matrix(i, 5)});
  }
  return trace;
}

// model: any Learner, of which something has features and outputs.
template <class Model>
void save_progress(const Model& model, Archive& archive) {
  archive.set("features", model.features());
  archive.set("outputs", model.outputs());
  archive.set("samples", model.samples());
  archive.set("batches", model.batches());
  archive.set("trace", trace_matrix(model.trace()));
}

inline Trace load_trace(const Archive& archive) {
  return trace_from(archive.get_matrix("trace", Archive::any_size, 6));
}

}  // namespace detail

}  // namespace parsimon
