#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "parsimon/density/box.hpp"
#include "parsimon/density/mirror_map.hpp"
#include "parsimon/error.hpp"
#include "parsimon/io/checks.hpp"
#include "parsimon/io/entries.hpp"
#include "parsimon/kernel/expression.hpp"
#include "parsimon/rkhs/striped_function.hpp"
#include "parsimon/schedule/step.hpp"

namespace parsimon {

namespace detail {

inline void require_in_range(bool finite) {
  if (finite) return;
  throw DivergenceError(
      "The prediction is beyond the range of finite numbers: the sample is too far from those that "
      "the model has learned.");
}

}  // namespace detail

// A model that Python or C++ saved, for prediction alone: it keeps the function and nothing that
// training would need. What it reads from a file is checked before it is used.
//
// Its values are the raw outputs of the core's model: labels are not chosen yet, targets not scaled
// back. Regressor and Classifier (predict.hpp) do that.
//
// Immutable, so one may serve many threads.
class Predictor {
 public:
  // Throws std::filesystem::filesystem_error if the file cannot be opened, and Error if it is not a
  // complete model or its kernel is a user's function, which a file cannot hold.
  static Predictor load(const std::filesystem::path& path) {
    return Predictor(Entries::read(path));
  }

  // The same from the content of such a file; `source` names it in messages.
  static Predictor from_bytes(const std::string& bytes, const std::string& source = "The model") {
    return Predictor(Entries::from_bytes(bytes, source));
  }

  explicit Predictor(const Entries& file) : Predictor(file, algorithm_of(file)) {}

  Index features() const { return function_.features(); }
  Index outputs() const { return function_.outputs(); }
  Index points() const { return function_.size(); }

  // From features() numbers to outputs() numbers. Allocates nothing.
  void predict(const double* x, double* out) const {
    require(all_finite(x, features()),
            "The sample has NaN or infinity among its features: give finite numbers.");
    function_.evaluate(x, out);
    detail::require_in_range(all_finite(out, outputs()));
  }

  // The same for `count` samples that follow each other, as their outputs do.
  void predict(const double* x, Index count, double* out) const {
    for (Index i = 0; i < count; ++i) predict(x + i * features(), out + i * outputs());
  }

  // Whether the model is one of a density. Its output is z, and f the density relative to the
  // uniform one of its domain, exp(z) for most.
  bool is_density() const { return density_.has_value(); }

  // The density at a sample, 0 outside the domain, into which samples are folded along what goes
  // round, such as the hour of a day. It integrates to 1, unless a C++ program saved a
  // model whose steps only bring the integral near 1.
  double density(const double* x) const {
    require(is_density(), "The model is not one of a density; predict() gives its outputs.");
    std::vector<double> inside;
    if (!density_->periodic.empty()) {
      inside = folded(x);
      x = inside.data();
    }
    double z = 0;
    predict(x, &z);
    if (density_->domain && !density_->domain->contains(x)) return 0;
    const double value = density_->mirror.value(z, x) * std::exp(-density_->log_volume);
    detail::require_in_range(std::isfinite(value));
    return value;
  }

 private:
  struct Density {
    std::optional<Box> domain;     // none of one without bounds
    std::vector<double> periodic;  // not 0 for features that go round; empty if none does
    MirrorMap mirror;
    double log_volume;  // of the domain, and the integral of what is learned relative to that
  };

  std::vector<double> folded(const double* x) const {
    std::vector<double> inside(x, x + features());
    for (std::size_t j = 0; j < inside.size(); ++j) {
      if (density_->periodic[j] == 0) continue;
      const double low = density_->domain->lower()[j], high = density_->domain->upper()[j];
      inside[j] -= (high - low) * std::floor((inside[j] - low) / (high - low));
      inside[j] = std::min(std::max(inside[j], low), high);  // as rounding may leave it
    }
    return inside;
  }

  Predictor(const Entries& file, const std::string& algorithm)
      : function_(read_function(file, algorithm)), density_(read_density(file, algorithm)) {}

  // Of the algorithm at work, if it is one of several.
  static std::string algorithm_of(const Entries& file) {
    std::string algorithm = file.get_text("algorithm");
    if (algorithm == "hybrid") {
      algorithm = file.get_text("phase");
      require(learns_density(algorithm) && algorithm != "solved_density",
              "The model file names the unknown phase " + algorithm + ".");
    }
    for (const char* known : {"polk", "colk", "compositional", "policy_evaluation", "slkl",
                              "spppot", "mirror_newton", "solved_density"}) {
      if (algorithm == known) return algorithm;
    }
    throw Error("The model file holds a model of the algorithm " + algorithm +
                ", which this version of parsimon does not know.");
  }

  static bool learns_density(const std::string& algorithm) {
    return algorithm == "spppot" || algorithm == "mirror_newton" || algorithm == "solved_density";
  }

  static StripedFunction read_function(const Entries& file, const std::string& algorithm) {
    const KernelExpression kernel = parse_kernel_expression(file.get_text("kernel"));
    const Index features = file.get_integer("features"), outputs = file.get_integer("outputs");
    detail::require_sizes(features, outputs);
    kernel.check_features(features);
    const auto [size, columns, points] = file.get_table("dictionary", Entries::any_size, features);
    detail::require_finite(points.data(), size * columns);
    const std::vector<double> weights = read_weights(file, algorithm, size, outputs);
    detail::require_weights(weights.data(), size * outputs);
    return {kernel, points, features, weights, outputs};
  }

  // Those that the model predicts with: of the average of its iterates if there is one.
  static std::vector<double> read_weights(const Entries& file, const std::string& algorithm,
                                          Index size, Index outputs) {
    if (algorithm == "mirror_newton") return file.get_numbers("weights.average", size * outputs);
    if (algorithm == "solved_density") return file.get_numbers("weights", size * outputs);
    if (algorithm == "slkl") return file.get_table("weights", size, outputs).numbers;
    // Weights that are solved stand where an average would.
    const bool average = file.get_integer("average") != 0 || file.has("newton");
    const auto [rows, columns, all] =
        file.get_table("weights", size, average ? 2 * outputs : outputs);
    // The average is on the right.
    std::vector<double> weights;
    for (Index i = 0; i < rows; ++i) {
      const auto end = all.begin() + (i + 1) * columns;
      weights.insert(weights.end(), end - outputs, end);
    }
    if (algorithm == "spppot" && !average && file.get_integer("dual_averaging") != 0) {
      const Index batches = file.get_integer("batches");
      detail::require_count(batches, "batches");
      const double step = read_step(file).at(batches);
      for (double& weight : weights) weight *= -step;
    }
    return weights;
  }

  static StepSchedule read_step(const Entries& file) {
    return StepSchedule::restore(file.get_text("step"), file.get_numbers("step.parameters"));
  }

  static std::optional<Density> read_density(const Entries& file, const std::string& algorithm) {
    // Whatever learned it, what compression has made of it is a function that says so.
    const std::string volume = "density.log_volume", integral = "density.log_integral";
    const bool compressed = algorithm == "slkl" && file.has(volume);
    if (!learns_density(algorithm) && !compressed) return std::nullopt;
    require(!file.has("domain.window"),
            "The model file holds a density in a window or with covariates, which Python alone can "
            "tell.");
    Density density{std::nullopt, {}, MirrorMap::kl(), 0};
    const Index features = file.get_integer("features");
    if (!compressed || file.has("domain.lower")) {
      density.domain.emplace(file.get_numbers("domain.lower"), file.get_numbers("domain.upper"));
      require(density.domain->features() == features, "The model file has impossible sizes.");
    }
    if (density.domain && file.has("domain.periodic")) {
      density.periodic = file.get_numbers("domain.periodic", features);
    }
    if (compressed) {
      density.log_volume = file.get_number(volume);
    } else {
      if (file.has(integral)) density.log_volume = file.get_number(integral);
      density.log_volume += density.domain->log_volume();
    }
    require(std::isfinite(density.log_volume), "The integral in the model file is not finite.");
    require(file.get_integer("outputs") == 1, "The model file has impossible sizes.");
    if (algorithm == "spppot" || compressed) {
      density.mirror =
          MirrorMap::restore(file.get_text("mirror"), file.get_numbers("mirror.parameters"));
      density.mirror.check_features(features);
    }
    return density;
  }

  StripedFunction function_;
  std::optional<Density> density_;
};

}  // namespace parsimon
