#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "parsimon/algorithm/online.hpp"
#include "parsimon/io/fields.hpp"
#include "parsimon/types.hpp"

// What the files of all algorithms have in common: settings, traces, points, functions.

namespace parsimon::detail {

// Infinity is no number in a file.
inline double or_zero(double number) { return std::isinf(number) ? 0 : number; }
inline double or_infinity(double number) {
  return number == 0 ? std::numeric_limits<double>::infinity() : number;
}

template <class File>
void fields(File& file, Compression& compression) {
  BudgetSchedule budget = compression.budget();
  std::string name = compression.name();
  std::vector<double> parameters = compression.parameters();
  named(file, "budget", budget);
  bool has_cap = true;
  if constexpr (File::reads) {  // files of the first version have none
    const std::string cap = file.prefix + "maintenance";
    has_cap = file.archive.has(cap) || file.archive.has(cap + ".parameters");
    compression = budget;
  }
  if (!has_cap) return;
  file("maintenance", name);
  file("maintenance.parameters", parameters);
  if constexpr (File::reads) compression = Compression::restore(budget, name, parameters);
}

// None if nothing bounds it, as in files of the first versions.
template <class File>
void memory(File& file, Memory& memory) {
  const std::string name = "average.memory";
  Vector numbers(2);
  if constexpr (File::reads) {
    if (!file.archive.has(file.prefix + name)) return;
  } else {
    if (!memory.is_bounded()) return;
    numbers << or_zero(memory.half_life), memory.adapts ? 1.0 : 0.0;
  }
  file(name, numbers, 2);
  memory = {or_infinity(numbers(0)), numbers(1) != 0};
  memory.check();
}

template <class File>
void fields(File& file, OnlineSettings& settings) {
  named(file, "step", settings.step);
  fields(file, settings.compression);
  file("regularization", settings.regularization);
  file("average", settings.average);
  memory(file, settings.memory);
  bool solved = settings.newton.has_value();
  if constexpr (File::reads) solved = file.archive.has(file.prefix + "newton");
  if (!solved) return;
  Vector numbers(4);
  if constexpr (!File::reads) {
    const NewtonSettings& newton = *settings.newton;
    numbers << newton.ridge, newton.ridge_per_sample, or_zero(newton.half_life),
        newton.adapts ? 1.0 : 0.0;
  }
  file("newton", numbers, 4);
  if constexpr (File::reads) {
    settings.newton.emplace(
        NewtonSettings{numbers(0), numbers(1), or_infinity(numbers(2)), numbers(3) != 0});
    settings.newton->check();
  }
}

// -- traces: one row of a matrix per record ------------------------------------------------------

template <class Record>
RowMatrix trace_matrix(const TraceOf<Record>& trace) {
  RowMatrix matrix(static_cast<Index>(trace.size()),
                   std::tuple_size_v<decltype(Record().numbers())>);
  double* next = matrix.data();
  const auto put = [&](auto&... numbers) { ((*next++ = static_cast<double>(numbers)), ...); };
  for (Record record : trace.records()) std::apply(put, record.numbers());
  return matrix;
}

template <class File, class Record>
void fields(File& file, const std::string& name, TraceOf<Record>& trace) {
  RowMatrix matrix = trace_matrix(trace);
  file(name, matrix, Archive::any_size, matrix.cols());
  if constexpr (File::reads) {
    require(all_finite(matrix.data(), matrix.size()), "The trace in the model file is not finite.");
    const double* next = matrix.data();
    const auto take = [&](auto& number) {
      using Number = std::decay_t<decltype(number)>;
      require(std::is_same_v<Number, double> || (*next >= 0 && *next < 0x1p53),
              "The trace in the model file counts what cannot be counted.");
      number = static_cast<Number>(*next++);
    };
    std::vector<Record> records(static_cast<std::size_t>(matrix.rows()));
    for (Record& record : records) {
      std::apply([&](auto&... numbers) { (take(numbers), ...); }, record.numbers());
    }
    if (file.archive.has(file.prefix + name + ".stride")) {
      const auto counts = file.archive.get_integers(file.prefix + name + ".stride", 2);
      trace = TraceOf<Record>(std::move(records), counts[0], counts[1]);
    } else {  // a file of the first versions, with a record for each mini-batch
      for (const Record& record : records) trace.add(record);
    }
  } else if (trace.stride() > 1) {
    file(name + ".stride", std::vector<Index>{trace.stride(), trace.in_last()});
  }
}

// -- what a model has seen, and what it has learned ----------------------------------------------

struct Progress {
  Index features = 0;
  Index outputs = 0;
  Index samples = 0;
  Index batches = 0;
  Trace trace = {};
  std::vector<Index> drift = {};

  template <class Model>
  static Progress of(const Model& m) {
    return {m.features(), m.outputs(), m.samples(), m.batches(), m.trace(), m.drift()};
  }
};

template <class File>
void fields(File& file, Progress& progress) {
  file("features", progress.features);
  file("outputs", progress.outputs);
  require_sizes(progress.features, progress.outputs);
  count(file, "samples", progress.samples);
  count(file, "batches", progress.batches);
  fields(file, "trace", progress.trace);
  // Files of the first versions do not tell.
  bool has_changed = !progress.drift.empty();
  if constexpr (File::reads) has_changed = file.archive.has(file.prefix + "drift");
  if (has_changed) file("drift", progress.drift);
}

// Each part of a kernel has a view of the points: a short text must not multiply what a file takes.
inline void require_affordable_views(Index parts, Index numbers) {
  constexpr Index most_parts = 32, spare = Index{1} << 21;
  require(parts <= most_parts || (parts - most_parts) * numbers <= spare,
          "The kernel in the model file has " + std::to_string(parts) +
              " parts, and so many points that each part would take a copy of: more than " +
              std::to_string(most_parts) + " parts go with few points only.");
}

struct Points {
  RowMatrix rows = {};
  Vector origin = {};  // none as long as there are no points: the next ones choose it
  std::vector<Index> ids = {};
  std::vector<Index> is_protected = {};
  Index next_id = 0;

  static Points of(const Dictionary& dictionary) {
    Points all{dictionary.points(), {}, dictionary.ids(), {}, dictionary.next_id()};
    if (dictionary.size() > 0) all.origin = dictionary.origin();
    for (Index i = 0; i < dictionary.size(); ++i) {
      all.is_protected.push_back(dictionary.is_protected(i) ? 1 : 0);
    }
    return all;
  }

  Dictionary dictionary(const KernelPtr& kernel) const {
    require_finite(rows.data(), rows.size());
    require_finite(origin.data(), origin.size());
    const std::set<Index> known(ids.begin(), ids.end());
    require(known.size() == ids.size() && next_id >= 0 && next_id < (Index{1} << 62) &&
                (known.empty() || (*known.begin() >= 0 && *known.rbegin() < next_id)),
            "The model file gives impossible identities to its dictionary points.");
    Dictionary all = Dictionary::about(kernel, rows.cols(), origin.transpose(), next_id);
    if (rows.rows() == 0) return all;  // whose features cost nothing yet
    require_affordable_views(kernel->view_count(), rows.size());
    std::vector<View> views;
    for (Index start = 0; start < rows.rows(); start += kEvaluationBlock) {
      const Index count = std::min(kEvaluationBlock, rows.rows() - start);
      std::as_const(all).make_views(rows.middleRows(start, count), views);
      for (Index i = 0; i < count; ++i) {
        const auto k = static_cast<std::size_t>(start + i);
        all.append(rows.row(start + i), views.data(), i, is_protected[k] != 0, ids[k]);
      }
    }
    return all;
  }
};

template <class File>
void fields(File& file, Points& points, Index features) {
  file("dictionary", points.rows, Archive::any_size, features);
  file("dictionary.origin", points.origin);
  require(points.origin.size() == (points.rows.rows() > 0 ? features : 0),
          "The origin in the model file has " + std::to_string(points.origin.size()) +
              " features, but its dictionary has " + std::to_string(points.rows.rows()) +
              " points with " + std::to_string(features) + ".");
}

// Points of a dictionary that does not change are known by their positions.
template <class File>
void fields(File& file, Points& points, Index features, bool are_protected) {
  fields(file, points, features);
  if constexpr (File::reads) {
    points.next_id = points.rows.rows();
    points.is_protected.assign(static_cast<std::size_t>(points.next_id), are_protected ? 1 : 0);
    for (Index i = 0; i < points.next_id; ++i) points.ids.push_back(i);
  }
}

// The lower triangle of a matrix, row by row.
template <class File>
void lower_triangle(File& file, const std::string& name, RowMatrix& matrix, Index size) {
  std::vector<double> packed;
  for (Index i = 0; i < matrix.rows(); ++i) {
    packed.insert(packed.end(), &matrix(i, 0), &matrix(i, 0) + i + 1);
  }
  file(name, packed, size * (size + 1) / 2);
  matrix = RowMatrix::Zero(size, size);
  auto next = packed.cbegin();
  for (Index i = 0; i < size; next += ++i) std::copy_n(next, i + 1, &matrix(i, 0));
}

template <class File>
void fields(File& file, FactorState& state, Index model_order) {
  Index size = state.root.rows();
  file("factor.size", size);
  require(size >= 0 && size <= model_order,
          "The model file has a factor of " + std::to_string(size) +
              " points, but a dictionary of " + std::to_string(model_order) + ".");
  lower_triangle(file, "factor", state.root, size);
  file("factor.diagonal", state.inverse_diagonal, size);
  file("factor.changes", state.changes);
  file("factor.probes", state.probes);
  require(state.changes >= 0 && state.probes >= 0 && state.probes < (Index{1} << 40),
          "The model file has impossible counters.");
}

struct FunctionState {
  Points points = {};
  RowMatrix weights = {};
  FactorState factor = {};

  static FunctionState of(const SparseFunction& function) {
    return {Points::of(function.dictionary()), function.weights(), function.factor_state()};
  }

  SparseFunction function(const KernelPtr& kernel, Index outputs) const {
    require_weights(weights.data(), weights.size());
    SparseFunction function(kernel, points.rows.cols(), weights.cols(), outputs);
    function.restore(points.dictionary(kernel), weights, factor);
    return function;
  }
};

template <class File>
void fields(File& file, FunctionState& state, Index features, Index columns) {
  fields(file, state.points, features);
  const Index size = state.points.rows.rows();
  file("dictionary.ids", state.points.ids, size);
  file("dictionary.protected", state.points.is_protected, size);
  file("dictionary.next_id", state.points.next_id);
  file("weights", state.weights, size, columns);
  fields(file, state.factor, size);
}

// -- models that the driver moves ----------------------------------------------------------------

template <class Settings>
struct OnlineState {
  KernelPtr kernel;
  Settings settings;
  Progress progress = {};
  FunctionState learned = {};
  Vector averaging = {};  // if its memory is bounded

  template <class Model>
  static OnlineState of(const Model& model) {
    return {model.dictionary().kernel_pointer(), model.settings(), Progress::of(model),
            FunctionState::of(model.function()), model.averaging().state()};
  }

  SparseFunction function() const { return learned.function(kernel, progress.outputs); }
  // The rest of a model that is read back.
  void finish(Online& model) const {
    if (averaging.size() > 0) model.restore_averaging(averaging);
    model.restore_drift(progress.drift);
  }
};

template <class File, class Settings>
void fields(File& file, OnlineState<Settings>& state) {
  described(file, "kernel", state.kernel, parse_kernel);
  fields(file, state.settings);
  fields(file, state.progress);
  // The weights that predict, if they are others, are beside those of the function.
  fields(file, state.learned, state.progress.features,
         (state.settings.has_predictor() ? 2 : 1) * state.progress.outputs);
  if (state.settings.memory.is_bounded()) {
    file("average.state", state.averaging, Averaging::kNumbers);
  } else {
    if constexpr (File::reads) {
      require(!file.archive.has("average.state"),
              "The model file does not tell how its average forgets.");
    }
    state.averaging.resize(0);
  }
}

}  // namespace parsimon::detail
