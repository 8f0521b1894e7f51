#pragma once

// Models of every algorithm, small and trained, and what reads them back and trains them on.

#include <cmath>
#include <functional>
#include <parsimon/algorithm/function_problem.hpp>
#include <parsimon/io/colk_file.hpp>
#include <parsimon/io/intensity_file.hpp>
#include <parsimon/io/polk_file.hpp>
#include <parsimon/io/slkl_file.hpp>
#include <parsimon/predict.hpp>
#include <string>
#include <vector>

namespace fuzz {

using namespace parsimon;

inline RowMatrix samples(Index count) {
  RowMatrix x(count, 2);
  for (Index i = 0; i < count; ++i) {
    x(i, 0) = 0.5 + 0.45 * std::sin(7.0 * static_cast<double>(i) + 1);
    x(i, 1) = 0.5 + 0.45 * std::cos(11.0 * static_cast<double>(i));
  }
  return x;
}

inline RowMatrix targets(Index count) { return samples(count).col(0).array().round().matrix(); }

inline const KernelPtr& kernel() {
  static const KernelPtr gaussian = parse_kernel("gaussian(0.3)");
  return gaussian;
}

inline OnlineSettings online(const Compression& compression, bool average) {
  OnlineSettings settings;
  settings.step = StepSchedule::constant(0.5);
  settings.compression = compression;
  settings.average = average;
  return settings;
}

// Somebody else solves for the weights of such a density, once it has seen points.
inline SolvedDensity solved(SolvedDensity density) {
  density.observe(samples(8), Vector(), 1);
  density.assume(1e-3 * density.moments(), -0.1, 1, 0.5);
  return density;
}

inline SolvedDensity solved_density() {
  const ProductGrid grid({0.0, 0.0}, {0.25, 0.25}, {5, 5});
  return solved({kernel(), grid, Box::unit(2), Quadrature::grid({4, 4})});
}

inline SolvedDensity solved_density_on_points() {
  return solved({kernel(), samples(12), Box::unit(2), Quadrature::grid({4, 4})});
}

// A compositional problem of a user: the variance of what is predicted, and squared differences.
inline FunctionProblem problem() {
  ProblemFunctions all;
  all.inner = [](const ConstRows& f, const ConstRows&) { return RowMatrix(f); };
  all.inner_slopes = [](const ConstRows& f, const ConstRows&) {
    return RowMatrix(RowMatrix::Ones(f.rows(), 1));
  };
  all.by_tracked = [](const ConstRows& f, const ConstRows&, const RowVector& g) {
    return RowMatrix(0.2 * (g(0) - f.array()).matrix());
  };
  all.by_prediction = [](const ConstRows& f, const ConstRows& y, const RowVector& g) {
    return RowMatrix(f - y + 0.2 * (f.array() - g(0)).matrix());
  };
  return {std::move(all), 1};
}

using General = Compositional<FunctionProblem>;

inline General compositional() {
  CompositionalSettings settings;
  static_cast<OnlineSettings&>(settings) = online(BudgetSchedule::fixed(0.05), true);
  settings.step = StepSchedule::constant(0.05);
  return {kernel(), problem(), settings, 2, 1};
}

inline Polk polk(const Compression& compression, bool average, bool solved) {
  PolkSettings settings{parse_loss(solved ? "squared" : "binary_hinge"),
                        online(compression, average)};
  if (solved) settings.newton.emplace();
  return {kernel(), settings, 2, 1};
}

inline Compression nonparametric() { return {Way::nonparametric, 4, 30, 7}; }
inline Compression growing() { return Compression::growing(BudgetSchedule::fixed(0), 4, 0.5); }

inline SpppotSettings density() {
  SpppotSettings settings;
  settings.compression = BudgetSchedule::fixed(0.05);
  return settings;
}

inline Spppot spppot() { return {kernel(), density(), Box::unit(2), Quadrature::grid({4, 4})}; }

inline Colk colk() {
  CompositionalSettings settings;
  static_cast<OnlineSettings&>(settings) = online(BudgetSchedule::fixed(0.05), true);
  settings.step = StepSchedule::constant(0.05);
  return {kernel(), RiskProblem(parse_loss("squared"), Risk()), settings, 2, 1};
}

inline PolicyEvaluation policy_evaluation() {
  PolicyEvaluationSettings settings;
  static_cast<OnlineSettings&>(settings) = online(BudgetSchedule::fixed(0.05), false);
  settings.step = StepSchedule::constant(0.05);
  return {kernel(), settings, 2};
}

inline MirrorNewton mirror_newton() {
  return {kernel(), MirrorNewtonSettings(), Box::unit(2), Quadrature::grid({4, 4})};
}

inline Hybrid hybrid() {
  OrderWatch watch;
  watch.patience = 3;
  return {spppot(), MirrorNewtonSettings(), watch};
}

inline const KeepGoing& always() {
  static const KeepGoing forever = [] { return true; };
  return forever;
}

// One mini-batch after the other, whatever the model is.
inline void train(Polk& model, Index count) {
  model.run(samples(count), targets(count), Vector(), 8, always());
}
inline void train(Colk& model, Index count) {
  model.run(samples(count), targets(count), Vector(), 8, always());
}
inline void train(PolicyEvaluation& model, Index count) {
  const RowMatrix x = samples(count), rewards = targets(count);
  const Vector discounts = Vector::Constant(count, 0.9), ratios = Vector::Ones(count);
  model.run({x, rewards.col(0), x.colwise().reverse(), discounts, ratios}, 8, always());
}
inline void train(General& model, Index count) {
  model.run(samples(count), targets(count), Vector(), 8, always());
}
inline void train(SolvedDensity& model, Index count) {
  model.observe(samples(count), Vector(), 0.9);
}
template <class Density>
void train(Density& model, Index count) {
  model.run(samples(count), 8, always());
}

struct Kind {
  std::string name;
  std::function<Archive()> make;
  std::function<void(const Archive&)> use;  // reads it, trains it, asks it
};

template <class Model>
Kind kind(const std::string& name, Model (*make)(), Model (*from)(const Archive&)) {
  return {name,
          [make] {
            Model model = make();
            train(model, 40);
            return to_archive(model);
          },
          [from](const Archive& archive) {
            Model model = from(archive);
            train(model, 16);
            const RowMatrix values = model.expansion()(samples(5));
            require(values.allFinite(), "A prediction is not finite.");
          }};
}

inline std::vector<Kind> kinds() {
  std::vector<Kind> all;
  const auto from_polk = +[](const Archive& a) { return polk_from_archive(a); };
  all.push_back(kind<Polk>(
      "polk", +[] { return polk(BudgetSchedule::fixed(0.05), true, false); }, from_polk));
  all.push_back(kind<Polk>(
      "newton", +[] { return polk(BudgetSchedule::fixed(0.05), false, true); }, from_polk));
  all.push_back(kind<Polk>(
      "merge", +[] { return polk(Compression(Way::merge, 6), true, false); }, from_polk));
  all.push_back(kind<Polk>(
      "remove", +[] { return polk(Compression(Way::remove, 6), false, false); }, from_polk));
  all.push_back(
      kind<Polk>("nonparametric", +[] { return polk(nonparametric(), false, false); }, from_polk));
  all.push_back(kind<Polk>("growing", +[] { return polk(growing(), true, false); }, from_polk));
  all.push_back(kind<Polk>(
      "merge and newton", +[] { return polk(Compression(Way::merge, 6), false, true); },
      from_polk));
  all.push_back(kind<General>(
      "compositional", &compositional,
      +[](const Archive& a) { return compositional_from_archive(a, problem()); }));
  const auto from_density = +[](const Archive& a) { return solved_density_from_archive(a); };
  all.push_back(kind<SolvedDensity>("solved_density", &solved_density, from_density));
  all.push_back(kind<SolvedDensity>("density on points", &solved_density_on_points, from_density));
  all.push_back(kind<Colk>("colk", &colk, +[](const Archive& a) { return colk_from_archive(a); }));
  all.push_back(kind<PolicyEvaluation>(
      "policy_evaluation", &policy_evaluation,
      +[](const Archive& a) { return policy_evaluation_from_archive(a); }));
  all.push_back(
      kind<Spppot>("spppot", &spppot, +[](const Archive& a) { return spppot_from_archive(a); }));
  all.push_back(kind<MirrorNewton>(
      "mirror_newton", &mirror_newton,
      +[](const Archive& a) { return mirror_newton_from_archive(a); }));
  all.push_back(
      kind<Hybrid>("hybrid", &hybrid, +[](const Archive& a) { return hybrid_from_archive(a); }));
  all.push_back({"slkl",
                 [] { return to_archive(KernelExpansion(kernel(), samples(6), targets(6))); },
                 [](const Archive& a) { slkl_from_archive(a)(samples(5)); }});
  return all;
}

// Everything that a program may do with such a file. Errors are sentences, nothing else.
inline void use(const std::string& bytes) {
  static const std::vector<Kind> all = kinds();
  try {
    const Archive archive = Archive::from_bytes(bytes);
    const std::string algorithm = archive.get_text("algorithm");
    for (const Kind& each : all) {
      if (each.name == algorithm) each.use(archive);
    }
  } catch (const Error&) {
  } catch (const DivergenceError&) {
  }
  // What programs that only predict do with it.
  const auto attempt = [&](const auto& answer) {
    try {
      answer(Entries::from_bytes(bytes, "The model"));
    } catch (const Error&) {
    } catch (const DivergenceError&) {
    }
  };
  attempt([](const Entries& file) {
    const Regressor model(file);
    if (model.features() == 2) model.predict({0.3, 0.4});
  });
  attempt([](const Entries& file) {
    const Classifier model(file);
    if (model.features() != 2) return;
    model.predict({0.3, 0.4});
    if (model.has_probabilities()) model.probabilities(samples(1).data());
  });
  try {
    const Predictor model = Predictor::from_bytes(bytes);
    if (model.features() != 2) return;
    std::vector<double> out(static_cast<std::size_t>(model.outputs()));
    model.predict(samples(1).data(), out.data());
  } catch (const Error&) {
  } catch (const DivergenceError&) {
  }
}

}  // namespace fuzz
