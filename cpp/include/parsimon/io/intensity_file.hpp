#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/algorithm/hybrid.hpp"
#include "parsimon/io/archive.hpp"
#include "parsimon/io/function_file.hpp"
#include "parsimon/kernel/parse.hpp"
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

// What the file of every density has.
template <class Model>
void save_density(const Model& model, Archive& archive) {
  archive.set("kernel", model.dictionary().kernel().describe());
  archive.set("domain.lower", model.domain().lower());
  archive.set("domain.upper", model.domain().upper());
  archive.set("quadrature", model.quadrature().kind());
  archive.set("quadrature.counts", model.quadrature().counts());
  save_progress(model, archive);
}

// The same, read and checked.
struct DensityFile {
  KernelPtr kernel;
  Box domain;
  Quadrature quadrature;
  Index samples;
  Index batches;

  DensityFile(const Archive& archive, KernelPtr given)
      : kernel(given ? std::move(given) : parse_kernel(archive.get_text("kernel"))),
        domain(archive.get_vector("domain.lower").transpose(),
               archive.get_vector("domain.upper").transpose()),
        quadrature(load_quadrature(archive)),
        samples(load_count(archive, "samples")),
        batches(load_count(archive, "batches")) {
    require(
        archive.get_integer("features") == domain.features() && archive.get_integer("outputs") == 1,
        "The model file has impossible sizes.");
  }

  // A file that asks for much more memory than it holds is wrong.
  void require_stored(Index points) const {
    require(quadrature.size() <= std::max(kMostNodes, kMostNodesEach * points),
            "The model file has " + std::to_string(points) +
                " dictionary points, too few for its integral over " +
                std::to_string(quadrature.size()) + " nodes.");
  }

 private:
  static constexpr Index kMostNodes = Index{1} << 16;
  static constexpr Index kMostNodesEach = 64;

  static Quadrature load_quadrature(const Archive& archive) {
    const auto counts = archive.get_integers("quadrature.counts");
    return Quadrature::restore(archive.get_text("quadrature"), {counts.begin(), counts.end()});
  }
};

inline void save_newton_settings(const MirrorNewtonSettings& settings, Archive& archive) {
  save_step(settings.step, archive, "newton.step");
  archive.set("newton.damping", settings.damping);
}

inline MirrorNewtonSettings load_newton_settings(const Archive& archive) {
  return {load_step(archive, "newton.step"), archive.get_number("newton.damping")};
}

}  // namespace detail

// Everything that an SPPPOT model is, so that training can go on as if it had not stopped.
inline Archive to_archive(const Spppot& model) {
  const SpppotSettings settings = model.settings();
  Archive archive;
  archive.set("algorithm", std::string("spppot"));
  archive.set("mirror", settings.mirror.name());
  archive.set("mirror.parameters", settings.mirror.parameters());
  archive.set("gradient",
              std::string(detail::kGradientNames[static_cast<std::size_t>(settings.gradient)]));
  archive.set("dual_averaging", settings.dual_averaging ? 1 : 0);
  detail::save_settings(settings, archive);
  detail::save_density(model, archive);
  detail::save_function(model.function(), archive);
  archive.set("dictionary.kernel_with_nodes", model.kernel_with_nodes());
  return archive;
}

// The inverse. `kernel` stands in for one that cannot be written down (a user's function).
inline Spppot spppot_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  const detail::DensityFile file(archive, std::move(kernel));
  SpppotSettings settings;
  static_cast<OnlineSettings&>(settings) = detail::load_settings(archive);
  settings.mirror = MirrorMap::restore(archive.get_text("mirror"),
                                       detail::to_std(archive.get_vector("mirror.parameters")));
  settings.gradient = detail::parse_gradient(archive.get_text("gradient"));
  settings.dual_averaging = archive.get_integer("dual_averaging") != 0;
  SparseFunction function =
      detail::load_function(archive, file.kernel, file.domain.features(), 1, settings.average);
  file.require_stored(function.model_order());
  Spppot model(file.kernel, settings, file.domain, file.quadrature);
  const Index others = function.model_order() - file.quadrature.size();
  model.restore(std::move(function), file.samples, file.batches, detail::load_trace(archive),
                archive.get_matrix("dictionary.kernel_with_nodes", others, file.quadrature.size()));
  return model;
}

inline Archive to_archive(const MirrorNewton& model) {
  Archive archive;
  archive.set("algorithm", std::string("mirror_newton"));
  detail::save_newton_settings(model.settings(), archive);
  detail::save_density(model, archive);
  archive.set("dictionary", model.dictionary().points());
  archive.set("dictionary.origin", model.dictionary().origin());
  archive.set("weights", model.weights());
  archive.set("weights.average", model.average());
  archive.set("steps", model.steps());
  archive.set("inverse.root", model.inverse().root());
  return archive;
}

inline MirrorNewton mirror_newton_from_archive(const Archive& archive, KernelPtr kernel = nullptr) {
  const detail::DensityFile file(archive, std::move(kernel));
  const Index features = file.domain.features();
  const RowMatrix points = archive.get_matrix("dictionary", Archive::any_size, features);
  const Vector origin = archive.get_vector("dictionary.origin", features);
  const Vector weights = archive.get_vector("weights", points.rows());
  const Vector average = archive.get_vector("weights.average", points.rows());
  RowMatrix root = archive.get_matrix("inverse.root", points.rows(), points.rows());
  require(points.allFinite() && origin.allFinite(),
          "The model file holds numbers that are not finite.");
  detail::require_weights(weights);
  detail::require_weights(average);
  file.require_stored(points.rows());

  Dictionary dictionary = Dictionary::about(file.kernel, features, origin.transpose(), 0);
  std::vector<View> views;
  std::as_const(dictionary).make_views(points, views);
  for (Index i = 0; i < points.rows(); ++i) {
    dictionary.append(points.row(i), views.data(), i, true, i);
  }
  MirrorNewton model(std::move(dictionary), weights, detail::load_newton_settings(archive),
                     file.domain, file.quadrature);
  model.follow(file.samples, file.batches, detail::load_trace(archive));
  model.restore(average, InverseOuterSum(std::move(root)), detail::load_count(archive, "steps"));
  return model;
}

// The entries of the model of the current phase, and what decides when it ends.
inline Archive to_archive(const Hybrid& model) {
  Archive archive = model.ask([](const auto& phase) { return to_archive(phase); });
  archive.set("phase", archive.get_text("algorithm"));
  archive.set("algorithm", std::string("hybrid"));
  detail::save_newton_settings(model.second_settings(), archive);
  const OrderWatch& watch = model.watch();
  archive.set("watch", std::vector<Index>{watch.patience, watch.cap, watch.low, watch.high,
                                          watch.inside, watch.seen});
  return archive;
}

inline Hybrid hybrid_from_archive(const Archive& archive, const KernelPtr& kernel = nullptr) {
  const auto state = archive.get_integers("watch", 6);
  const OrderWatch watch{state[0], state[1], state[2], state[3], state[4], state[5]};
  for (const std::int64_t count : state) detail::require_count(count, "watch");
  const std::string phase = archive.get_text("phase");
  require(phase == "spppot" || phase == "mirror_newton",
          "The model file names the unknown phase " + phase + ".");
  const MirrorNewtonSettings second = detail::load_newton_settings(archive);
  if (phase == "spppot") return {spppot_from_archive(archive, kernel), second, watch};
  return {Hybrid::Phase(mirror_newton_from_archive(archive, kernel)), second, watch};
}

}  // namespace parsimon
