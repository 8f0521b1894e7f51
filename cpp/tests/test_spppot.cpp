#include <parsimon/algorithm/spppot.hpp>

#include "check.hpp"
#include "naive_spppot.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::KernelPair;
using reference::Random;
using reference::Real;

namespace {

const auto forever = [] { return true; };

Box square() { return {RowVector::Constant(2, -1.0), RowVector::Constant(2, 2.0)}; }

RowMatrix samples_in_square(Index count, Random& random) {
  RowMatrix samples(count, 2);
  for (Index i = 0; i < count; ++i) {
    do {
      samples.row(i).setConstant(random.uniform() < 0.3 ? -0.3 : 0.9);
      samples.row(i) += 0.4 * random.normal_points(1, 2);
    } while (!square().contains(samples.row(i)));
  }
  return samples;
}

std::vector<MirrorMap> all_maps() {
  return {MirrorMap::kl(), MirrorMap::euclidean(),
          MirrorMap::mahalanobis(1.5, RowVector::Constant(2, 0.5), RowVector::Constant(2, 1.0))};
}

const PseudoGradient all_gradients[] = {PseudoGradient::likelihood,
                                        PseudoGradient::kernel_embedding, PseudoGradient::sign};

SpppotSettings settings(const MirrorMap& mirror, PseudoGradient gradient, double step,
                        double budget) {
  SpppotSettings all;
  all.mirror = mirror;
  all.gradient = gradient;
  all.step = StepSchedule::constant(step);
  all.compression = BudgetSchedule::fixed(budget);
  all.average = false;
  return all;
}

// mean of -log f(x) + mean of f(u), with z + t k(p, .), or with f + t k(p, .).
struct Objective {
  const KernelPair& kernel;
  const Spppot& model;
  RowMatrix x;

  Vector shifted(const RowMatrix& at, const RowVector& p, double by_z, double by_f) const {
    Vector z = model.expansion()(at).col(0), weights(at.rows()), f(at.rows()), slopes(at.rows());
    const reference::Table k = reference::gram(kernel.exact, at, p);
    model.settings().mirror.weigh(at, weights);
    for (Index i = 0; i < at.rows(); ++i) z(i) += by_z * static_cast<double>(k(i, 0));
    model.settings().mirror.apply(z, weights, f, slopes);
    for (Index i = 0; i < at.rows(); ++i) f(i) += by_f * static_cast<double>(k(i, 0));
    return f;
  }

  double value(const RowVector& p, double by_z, double by_f) const {
    return -shifted(x, p, by_z, by_f).array().log().mean() +
           shifted(model.nodes(), p, by_z, by_f).mean();
  }

  // Central differences: the error is of the size of h^2 and eps / h.
  double slope_by_z(const RowVector& p) const {
    return (value(p, h, 0) - value(p, -h, 0)) / (2 * h);
  }
  double slope_by_f(const RowVector& p) const {
    return (value(p, 0, h) - value(p, 0, -h)) / (2 * h);
  }

  static constexpr double h = 1e-5;
};

// Same points, weights to 1e-9: cond(K) < 1e4 and some dozen steps of size 1.
void check_same(const Spppot& model, const reference::NaiveSpppot& naive) {
  const KernelExpansion ours = model.function().expansion_by_age();
  CHECK(ours.model_order() == naive.points().rows());
  if (ours.model_order() != naive.points().rows()) return;
  CHECK(ours.dictionary().points() == naive.points());
  for (Index m = 0; m < ours.model_order(); ++m) {
    CHECK_NEAR(ours.weights()(m, 0),
               static_cast<double>(naive.weights()[static_cast<std::size_t>(m)]), 1e-9);
  }
}

// Returns the largest number of samples in the dictionary.
Index check_against_naive(const SpppotSettings& given, Index batch_size, int steps) {
  Random random(1);
  const KernelPair kernel = reference::laplacian(0.7);
  Spppot model(kernel.core, given, square(), Quadrature::grid({3, 3}));
  reference::NaiveSpppot naive(kernel, given, square(), model.nodes());
  Index most = 0;
  for (int t = 0; t < steps; ++t) {
    const RowMatrix x = samples_in_square(batch_size, random);
    const StepRecord record = model.step(x);
    naive.learn(x);
    CHECK_NEAR(record.loss, naive.loss(), 1e-9 * (1 + std::abs(naive.loss())));
    CHECK_NEAR(record.compression_error, naive.error(), 1e-9);
    CHECK(record.compression_error <= record.budget);
    check_same(model, naive);
    most = std::max(most, model.model_order() - 9);
  }
  return most;
}

// A step without compression is -eta g, and g(p) the derivative of the objective along k(p, .).
void check_is_gradient(const MirrorMap& mirror, PseudoGradient gradient, double eta,
                       Index batch_size) {
  Random random(2);
  const KernelPair kernel = reference::gaussian(0.5);
  Spppot model(kernel.core, settings(mirror, gradient, eta, 0), square(), Quadrature::grid({4, 5}));
  for (int t = 0; t < 4; ++t) {
    const RowMatrix x = samples_in_square(batch_size, random), at = samples_in_square(10, random);
    const Spppot before = model;
    const Objective objective{kernel, before, x};
    model.step(x);
    const RowMatrix change = model.expansion()(at) - before.expansion()(at);
    for (Index i = 0; i < 10; ++i) {
      const double slope = gradient == PseudoGradient::likelihood ? objective.slope_by_z(at.row(i))
                                                                  : objective.slope_by_f(at.row(i));
      CHECK_NEAR(-change(i, 0) / eta, slope, 1e-8);
    }
  }
}

}  // namespace

TEST(the_likelihood_gradient_is_the_gradient_by_z) {
  for (const MirrorMap& mirror : all_maps()) {
    check_is_gradient(mirror, PseudoGradient::likelihood, 0.05, 6);
  }
}

// exp(z) needs no 1 / f, and so nothing that bounds it: with a bound of 1 on eta / B, the density
// would tend to B / eta times the true one.
TEST(the_likelihood_gradient_is_the_gradient_by_z_for_long_steps_of_few_samples_as_well) {
  for (const Index batch_size : {1, 2}) {
    check_is_gradient(MirrorMap::kl(), PseudoGradient::likelihood, 3, batch_size);
  }
}

TEST(the_kernel_embedding_is_the_gradient_by_f) {
  for (const MirrorMap& mirror : all_maps()) {
    check_is_gradient(mirror, PseudoGradient::kernel_embedding, 0.05, 6);
  }
}

TEST(the_sign_of_the_gradient_moves_the_nodes_alone) {
  Random random(4);
  const KernelPair kernel = reference::gaussian(0.5);
  for (const MirrorMap& mirror : all_maps()) {
    Spppot model(kernel.core, settings(mirror, PseudoGradient::sign, 0.05, 1e-3), square(),
                 Quadrature::grid({4, 5}));
    for (int t = 0; t < 4; ++t) {
      const RowMatrix x = samples_in_square(6, random);
      const Spppot before = model;
      const Objective objective{kernel, before, x};
      CHECK(model.step(x).active == 0 && model.model_order() == 20);
      const RowMatrix change = model.function().expansion_by_age().weights() -
                               before.function().expansion_by_age().weights();
      for (Index u = 0; u < 20; ++u) {
        const double sign = objective.slope_by_z(model.nodes().row(u)) > 0 ? 1 : -1;
        CHECK_NEAR(change(u, 0), -0.05 * sign / 20, 1e-15);
      }
    }
  }
}

TEST(without_a_budget_it_is_the_naive_algorithm) {
  for (const MirrorMap& mirror : all_maps()) {
    for (const PseudoGradient gradient : all_gradients) {
      SpppotSettings given = settings(mirror, gradient, 0.2, 0);
      given.regularization = 0.01;
      CHECK(check_against_naive(given, 3, 20) == (gradient == PseudoGradient::sign ? 0 : 60));
    }
  }
}

TEST(with_compression_and_protected_nodes_it_is_the_naive_algorithm) {
  for (const MirrorMap& mirror : all_maps()) {
    for (const PseudoGradient gradient : all_gradients) {
      const Index most = check_against_naive(settings(mirror, gradient, 0.3, 0.2), 3, 30);
      CHECK(gradient == PseudoGradient::sign ? most == 0 : most > 0 && most < 30);
    }
  }
  SpppotSettings given = settings(MirrorMap::kl(), PseudoGradient::likelihood, 0.3, 0.1);
  given.regularization = 0.05;
  given.step = StepSchedule::power_law(1, 0.5, 5);
  given.compression = BudgetSchedule::proportional(0.2);
  CHECK(check_against_naive(given, 1, 40) > 2);
}

TEST(dual_averaging_is_the_naive_algorithm) {
  for (const MirrorMap& mirror : all_maps()) {
    for (const PseudoGradient gradient : all_gradients) {
      SpppotSettings given = settings(mirror, gradient, 0.3, 0.3);
      given.dual_averaging = true;
      check_against_naive(given, 3, 25);
      given.step = StepSchedule::power_law(0.3, 0.5, 3);
      given.compression = BudgetSchedule::fixed(0);
      check_against_naive(given, 3, 10);
    }
  }
}

// Iterate t of n counts with t (t+1) (t+2) over the sum of these: what shares of 4 / (t + 3) are.
TEST(the_density_is_that_of_the_weighted_mean_of_the_iterates) {
  Random random(5);
  const KernelPair kernel = reference::gaussian(0.5);
  const RowMatrix at = samples_in_square(30, random);
  for (const bool dual : {false, true}) {
    for (const StepSchedule& step :
         {StepSchedule::constant(0.3), StepSchedule::power_law(0.5, 0.5, 4)}) {
      SpppotSettings given = settings(MirrorMap::kl(), PseudoGradient::likelihood, 0.3, 0);
      given.dual_averaging = dual;
      given.step = step;
      Spppot plain(kernel.core, given, square(), Quadrature::grid({4, 4}));
      given.average = true;
      Spppot averaged(kernel.core, given, square(), Quadrature::grid({4, 4}));
      Vector mean = Vector::Zero(30);
      double total = 0;
      for (int t = 1; t <= 20; ++t) {
        const RowMatrix x = samples_in_square(3, random);
        plain.step(x);
        averaged.step(x);
        const double share = static_cast<double>(t) * (t + 1) * (t + 2);
        mean += share * plain.expansion()(at).col(0);
        total += share;
        CHECK((averaged.expansion()(at).col(0) - mean / total).cwiseAbs().maxCoeff() < 1e-13);
      }
    }
  }
}

TEST(the_density_starts_uniform_stays_positive_and_learns) {
  Random random(6);
  SpppotSettings given = settings(MirrorMap::kl(), PseudoGradient::likelihood, 0.5, 0.01);
  given.average = true;
  Spppot model(reference::gaussian(0.3).core, given, square(), Quadrature::grid({15, 15}));
  Vector density(225), logs(225);
  model.density(model.nodes(), density);
  CHECK((density.array() - 1.0 / 9).abs().maxCoeff() < 1e-16);  // uniform before the first sample
  model.run(samples_in_square(4000, random), 8, forever);
  model.density(model.nodes(), density);
  model.log_density(model.nodes(), logs);
  CHECK((density.array() > 0).all());
  CHECK((density.array().log() - logs.array()).abs().maxCoeff() < 1e-13);
  CHECK(model.samples() == 4000 && model.batches() == 500);
  const auto records = model.trace().records();
  CHECK(records.size() == 500 && records.back().samples == 4000);
  CHECK(records.back().loss < records.front().loss);
}

TEST(the_other_maps_start_at_the_uniform_density_on_average) {
  for (const bool dual : {false, true}) {
    SpppotSettings given = settings(MirrorMap::euclidean(), PseudoGradient::likelihood, 0.5, 0.01);
    given.dual_averaging = dual;
    const Spppot model(reference::gaussian(0.3).core, given, square(), Quadrature::grid({9, 9}));
    Vector density(81);
    model.density(model.nodes(), density);
    CHECK_NEAR(9 * density.mean(), 1.0, 1e-13);
    CHECK((density.array() > 0).all());
  }
}

TEST(settings_that_cannot_be_are_refused) {
  const auto refused = [](const SpppotSettings& given, const KernelPair& kernel) {
    CHECK_THROWS(Spppot(kernel.core, given, square(), Quadrature::grid({3, 3})), Error);
  };
  const KernelPair kernel = reference::gaussian(0.3);
  SpppotSettings given = settings(MirrorMap::kl(), PseudoGradient::likelihood, 2, 0.01);
  for (const double regularization : {0.5, -1e-9, std::nan("")}) {
    given.regularization = regularization;
    refused(given, kernel);
  }
  given.regularization = 0;
  given.mirror = MirrorMap::mahalanobis(1, RowVector::Zero(3), RowVector::Ones(3));
  refused(given, kernel);
  given.mirror = MirrorMap::euclidean();
  const Box centred(RowVector::Constant(2, -1.0), RowVector::Constant(2, 1.0));
  // The nodes cancel each other under the linear kernel.
  CHECK_THROWS(Spppot(reference::linear().core, given, centred, Quadrature::grid({2, 2})), Error);
  CHECK_THROWS(Spppot(kernel.core, given, square(), Quadrature::grid({3})), Error);
}
