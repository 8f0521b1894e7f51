#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/hybrid.hpp"
#include "parsimon/algorithm/solved_density.hpp"
#include "parsimon/io/archive.hpp"
#include "parsimon/io/function_file.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

namespace detail {

inline constexpr std::array<const char*, 3> kGradientNames = {"likelihood", "kernel_embedding",
                                                              "sign"};

inline PseudoGradient parse_gradient(const std::string& name) {
  for (std::size_t i = 0; i < kGradientNames.size(); ++i) {
    if (name == kGradientNames[i]) return static_cast<PseudoGradient>(i);
  }
  throw Error("There is no gradient \"" + name + "\": use likelihood, kernel_embedding or sign.");
}

template <class File>
void fields(File& file, SpppotSettings& settings) {
  fields(file, static_cast<OnlineSettings&>(settings));
  named(file, "mirror", settings.mirror);
  std::string gradient = kGradientNames[static_cast<std::size_t>(settings.gradient)];
  file("gradient", gradient);
  settings.gradient = parse_gradient(gradient);
  file("dual_averaging", settings.dual_averaging);
}

template <class File>
void fields(File& file, MirrorNewtonSettings& settings) {
  named(file, "newton.step", settings.step);
  file("newton.damping", settings.damping);
}

// Where a density is, and how it is integrated.
struct Place {
  Box domain = Box::unit(1);
  Quadrature quadrature = Quadrature::scattered(1);
};

template <class File>
void fields(File& file, Place& place) {
  std::vector<double> lower = place.domain.lower(), upper = place.domain.upper();
  std::string kind = place.quadrature.kind();
  std::vector<Index> counts = place.quadrature.counts();
  file("domain.lower", lower);
  file("domain.upper", upper);
  file("quadrature", kind);
  file("quadrature.counts", counts);
  if constexpr (File::reads) place = {Box(lower, upper), Quadrature::restore(kind, counts)};
}

// Nodes are made only when a model is trained, so a file could claim any number of them: more than
// training could use are refused.
inline void require_belongs_to(const Place& place, const Progress& progress) {
  constexpr Index most = Index{1} << 24;
  require(progress.features == place.domain.features() && progress.outputs == 1 &&
              place.quadrature.size() <= most,
          "The model file has impossible sizes.");
  place.quadrature.check_features(progress.features);
}

struct SpppotState {
  OnlineState<SpppotSettings> online;
  Place place = {};
  RowMatrix kernel_with_nodes = {};
};

template <class File>
void fields(File& file, SpppotState& state) {
  fields(file, state.online);
  fields(file, state.place);
  const Index points = state.online.learned.weights.rows(), nodes = state.place.quadrature.size();
  require_belongs_to(state.place, state.online.progress);
  // They are among the points. Nothing is made of nodes that the file does not hold.
  require(nodes <= points, "The model file has " + std::to_string(points) +
                               " dictionary points, too few for its integral over " +
                               std::to_string(nodes) + " nodes.");
  file("dictionary.kernel_with_nodes", state.kernel_with_nodes, points - nodes, nodes);
  // Whether they are those of the dictionary is seen at the first step, which has the nodes.
  require(state.kernel_with_nodes.allFinite(),
          "The kernel values of the nodes in the model file must be finite.");
}

struct MirrorNewtonState {
  KernelPtr kernel;
  MirrorNewtonSettings settings = {};
  Place place = {};
  Progress progress = {};
  Points points = {};
  Vector weights = {};
  Vector average = {};
  Index steps = 0;
  RowMatrix root = {};
};

template <class File>
void fields(File& file, MirrorNewtonState& state) {
  described(file, "kernel", state.kernel, parse_kernel);
  fields(file, state.settings);
  fields(file, state.place);
  fields(file, state.progress);
  fields(file, state.points, state.progress.features, true);
  const Index size = state.points.rows.rows();
  require_belongs_to(state.place, state.progress);
  file("weights", state.weights, size);
  file("weights.average", state.average, size);
  count(file, "steps", state.steps);
  file("inverse.root", state.root, size, size);
}

template <class File>
void fields(File& file, OrderWatch& watch) {
  std::vector<Index> counts = {watch.patience, watch.cap,    watch.low,
                               watch.high,     watch.inside, watch.seen};
  file("watch", counts, 6);
  for (const Index count : counts) require_count(count, "watch");
  watch = {counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]};
}

struct SolvedDensityState {
  KernelPtr kernel;
  Place place = {};
  Progress progress = {};
  Points points = {};
  ProductGrid grid = {};
  Vector weights = {};
  Vector moments = {};
  double log_integral = 0;
  double ridge = 0;
  double mass = 0;
};

template <class File>
void fields(File& file, SolvedDensityState& state) {
  described(file, "kernel", state.kernel, parse_kernel);
  fields(file, state.place);
  fields(file, state.progress);
  fields(file, state.points, state.progress.features, true);
  const Index size = state.points.rows.rows();
  require_belongs_to(state.place, state.progress);
  std::vector<double> lower = state.grid.lower(), step = state.grid.step();
  std::vector<Index> counts = state.grid.counts();
  file("grid.lower", lower);
  file("grid.step", step);
  file("grid.counts", counts);
  if constexpr (File::reads) state.grid = ProductGrid(lower, step, counts);
  file("weights", state.weights, size);
  file("moments", state.moments, size);
  file("density.log_integral", state.log_integral);
  file("ridge", state.ridge);
  file("moments.mass", state.mass);
}

// What decides when the first phase ends, and what comes then.
struct HybridState {
  std::string phase = "";
  MirrorNewtonSettings second = {};
  OrderWatch watch = {};
};

template <class File>
void fields(File& file, HybridState& state) {
  file("phase", state.phase);
  fields(file, state.second);
  fields(file, state.watch);
}

inline Spppot read_spppot(const Archive& archive, const KernelPtr& kernel) {
  SpppotState empty;
  empty.online.kernel = kernel;
  const SpppotState state = read(archive, std::move(empty));
  const auto& [known, settings, progress, learned, averaging] = state.online;
  SparseFunction function = state.online.function();
  Spppot model(Spppot::Unprepared(), known, settings, state.place.domain, state.place.quadrature);
  model.restore(std::move(function), progress.samples, progress.batches, progress.trace,
                state.kernel_with_nodes);
  state.online.finish(model);
  return model;
}

inline MirrorNewton read_mirror_newton(const Archive& archive, const KernelPtr& kernel) {
  const auto state = read(archive, MirrorNewtonState{kernel});
  require_weights(state.weights.data(), state.weights.size());
  require_weights(state.average.data(), state.average.size());
  MirrorNewton model(MirrorNewton::Unprepared(), state.points.dictionary(state.kernel),
                     state.weights, state.settings, state.place.domain, state.place.quadrature);
  model.follow(state.progress.samples, state.progress.batches, state.progress.trace);
  model.restore(state.average, InverseOuterSum(state.root), state.steps);
  return model;
}

inline SolvedDensity read_solved_density(const Archive& archive, const KernelPtr& kernel) {
  const auto state = read(archive, SolvedDensityState{kernel});
  const auto& [domain, quadrature] = state.place;
  const bool on_grid = !state.grid.empty();
  require(!on_grid || (state.grid.size() == state.points.rows.rows() &&
                       state.grid.features() == state.points.rows.cols() &&
                       state.grid.points() == state.points.rows),
          "The points in the model file are not those of its grid.");
  SolvedDensity model = on_grid
                            ? SolvedDensity(state.kernel, state.grid, domain, quadrature)
                            : SolvedDensity(state.kernel, state.points.rows, domain, quadrature);
  model.follow(state.progress.samples, state.progress.batches, state.progress.trace);
  model.restore(state.weights, state.moments, -state.log_integral, state.ridge, state.mass);
  return model;
}

}  // namespace detail

// Everything that an SPPPOT model is, so that training can go on as if it had not stopped.
inline Archive to_archive(const Spppot& model) {
  return detail::write("spppot", detail::SpppotState{detail::OnlineState<SpppotSettings>::of(model),
                                                     {model.domain(), model.quadrature()},
                                                     model.kernel_with_nodes()});
}

// The inverse. `kernel` stands in for one that cannot be written down (a user's function).
inline Spppot spppot_from_archive(const Archive& archive, const KernelPtr& kernel = nullptr) {
  detail::require_algorithm(archive, "spppot");
  return detail::read_spppot(archive, kernel);
}

inline Archive to_archive(const MirrorNewton& model) {
  const Dictionary& dictionary = model.dictionary();
  return detail::write("mirror_newton",
                       detail::MirrorNewtonState{dictionary.kernel_pointer(),
                                                 model.settings(),
                                                 {model.domain(), model.quadrature()},
                                                 detail::Progress::of(model),
                                                 detail::Points::of(dictionary),
                                                 model.weights(),
                                                 model.average(),
                                                 model.steps(),
                                                 model.inverse().root()});
}

inline MirrorNewton mirror_newton_from_archive(const Archive& archive,
                                               const KernelPtr& kernel = nullptr) {
  detail::require_algorithm(archive, "mirror_newton");
  return detail::read_mirror_newton(archive, kernel);
}

// The entries of the model of the current phase, and what decides when it ends.
inline Archive to_archive(const Hybrid& model) {
  const Archive archive = model.ask([](const auto& current) { return to_archive(current); });
  const std::string phase = archive.get_text("algorithm");
  return detail::write("hybrid", detail::HybridState{phase, model.second_settings(), model.watch()},
                       archive);
}

inline Hybrid hybrid_from_archive(const Archive& archive, const KernelPtr& kernel = nullptr) {
  detail::require_algorithm(archive, "hybrid");
  const auto [phase, second, watch] = detail::read(archive, detail::HybridState());
  require(phase == "spppot" || phase == "mirror_newton",
          "The model file names the unknown phase " + phase + ".");
  if (phase == "spppot") return {detail::read_spppot(archive, kernel), second, watch};
  return {Hybrid::Phase(detail::read_mirror_newton(archive, kernel)), second, watch};
}

inline Archive to_archive(const SolvedDensity& model) {
  const Dictionary& dictionary = model.dictionary();
  return detail::write("solved_density",
                       detail::SolvedDensityState{dictionary.kernel_pointer(),
                                                  {model.domain(), model.quadrature()},
                                                  detail::Progress::of(model),
                                                  detail::Points::of(dictionary),
                                                  model.grid(),
                                                  model.weights(),
                                                  model.moments(),
                                                  -model.offset(),
                                                  model.ridge(),
                                                  model.mass()});
}

inline SolvedDensity solved_density_from_archive(const Archive& archive,
                                                 const KernelPtr& kernel = nullptr) {
  detail::require_algorithm(archive, "solved_density");
  return detail::read_solved_density(archive, kernel);
}

}  // namespace parsimon
