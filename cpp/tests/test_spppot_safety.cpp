#include <parsimon/algorithm/spppot.hpp>

#include "check.hpp"
#include "failing_kernel.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::KernelPair;
using reference::Random;

namespace {

const auto forever = [] { return true; };

// The paper's grid: 100 nodes and a Gaussian of variance 0.0065, a Gram matrix of rank 38.
const KernelPair wide = reference::gaussian(std::sqrt(0.0065));

RowMatrix bump(Index count, Index features, Random& random) {
  RowMatrix samples(count, features);
  for (double& x : samples.reshaped()) {
    do x = 0.6 + 0.15 * random.normal();
    while (x < 0 || x > 1);
  }
  return samples;
}

SpppotSettings settings(double step, const Compression& compression,
                        PseudoGradient gradient = PseudoGradient::likelihood) {
  SpppotSettings all;
  all.gradient = gradient;
  all.step = StepSchedule::constant(step);
  all.compression = compression;
  all.average = false;
  return all;
}

Spppot on_the_papers_grid(const SpppotSettings& given) {
  return {wide.core, given, Box::unit(1), Quadrature::grid({100})};
}

// Nodes further apart than the kernel reaches: samples between them come and go.
Spppot on_a_coarse_grid(const SpppotSettings& given) {
  return {reference::gaussian(0.1).core, given, Box::unit(2), Quadrature::grid({5, 6})};
}

// What the model would be after the step if nothing were compressed.
Spppot uncompressed(const KernelPair& kernel, const Spppot& model) {
  SpppotSettings given = model.settings();
  given.compression = BudgetSchedule::fixed(0);
  Spppot twin(kernel.core, given, model.domain(), model.quadrature());
  twin.restore(model.function(), model.samples(), model.batches(), model.trace());
  return twin;
}

// The error that is reported is within the budget, and no less than the true distance. The core
// knows the kernel to a few eps, and the cost of each of n points to an eps: a squared distance to
// (16 + n) eps times the square of sum |w|.
double check_certificate(const KernelPair& kernel, Spppot& model, const RowMatrix& samples) {
  Spppot twin = uncompressed(kernel, model);
  twin.step(samples);
  const StepRecord record = model.step(samples);
  const RowMatrix before = twin.dictionary().points(), after = model.dictionary().points();
  const RowMatrix old_weights = twin.function().weights(), weights = model.function().weights();
  const double truth = reference::distance(kernel.exact, before, old_weights, after, weights);
  const double size = old_weights.cwiseAbs().sum() + weights.cwiseAbs().sum();
  const double noise = (16 + static_cast<double>(before.rows())) * kEps * size * size;
  CHECK(record.compression_error <= record.budget);
  CHECK(truth * truth <= record.compression_error * record.compression_error * (1 + 1e-3) + noise);
  return truth;
}

// Everything that a caller can see.
struct Snapshot {
  RowMatrix points, weights, root;
  std::vector<Index> ids;
  std::vector<double> budget;
  Index samples, batches;
  std::size_t records;

  explicit Snapshot(const Spppot& model)
      : points(model.dictionary().points()),
        weights(model.function().weights()),
        root(model.function().factor().root()),
        ids(model.dictionary().ids()),
        budget(model.settings().compression.budget().parameters()),
        samples(model.samples()),
        batches(model.batches()),
        records(model.trace().records().size()) {}

  bool operator==(const Snapshot& other) const {
    return same(points, other.points) && same(weights, other.weights) && same(root, other.root) &&
           ids == other.ids && budget == other.budget && samples == other.samples &&
           batches == other.batches && records == other.records;
  }

 private:
  static bool same(const RowMatrix& a, const RowMatrix& b) {
    return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
  }
};

// The loss of a step shows z at the nodes as the algorithm knows it; here it is evaluated anew.
void check_nodes(Spppot model, Random& random, int steps, Index batch_size, double copies) {
  const RowMatrix nodes = model.nodes();
  Index removed = 0, most = 0;
  for (int t = 0; t < steps; ++t) {
    RowMatrix x = bump(batch_size, nodes.cols(), random);
    for (Index i = 0; i < batch_size; ++i) {
      if (random.uniform() >= copies) continue;
      const Index twin = random.integer(0, model.model_order() - 1);
      x.row(i) = random.uniform() < 0.5 ? RowVector(model.dictionary().points().row(twin))
                                        : RowVector(x.row(random.integer(0, i)));
    }
    const KernelExpansion z = model.expansion();
    const double expected = -z(x).mean() + z(nodes).array().exp().mean();
    const Index before = model.model_order();
    const StepRecord record = model.step(x);
    CHECK_NEAR(record.loss, expected, 1e-11 * (1 + std::abs(expected)));
    if (std::abs(record.loss - expected) > 1e-3) return;  // once is enough
    removed += before + record.active - model.model_order();
    most = std::max(most, model.model_order() - nodes.rows());
  }
  std::printf("       up to %d samples in the dictionary, %d removed\n", static_cast<int>(most),
              static_cast<int>(removed));
}

}  // namespace

TEST(the_reported_error_bounds_the_true_distance_on_a_rank_deficient_grid) {
  Random random(1);
  for (const PseudoGradient gradient :
       {PseudoGradient::likelihood, PseudoGradient::kernel_embedding}) {
    for (const double budget : {1e-5, 1e-3, 3e-2}) {
      Spppot model = on_the_papers_grid(settings(1, BudgetSchedule::fixed(budget), gradient));
      double largest = 0;
      for (int t = 0; t < 40; ++t) {
        largest = std::max(largest, check_certificate(wide, model, bump(8, 1, random)));
      }
      CHECK(largest > 1e-6);  // otherwise nothing has been shown
      CHECK(model.function().basis_size() < 45);
    }
  }
}

TEST(the_reported_error_bounds_the_true_distance_where_samples_come_and_go) {
  Random random(2);
  const KernelPair kernel = reference::gaussian(0.1);
  Spppot model = on_a_coarse_grid(settings(0.5, BudgetSchedule::fixed(0.05)));
  for (int t = 0; t < 60; ++t) check_certificate(kernel, model, bump(8, 2, random));
  CHECK(model.model_order() > 33);
}

// Every step takes from each node what it adds to the samples. If the dependent ones kept that,
// their weights would grow by eta h f per step, to 20 times 2.6 here.
TEST(dependent_nodes_are_folded_and_weights_stay_bounded) {
  Random random(4);
  SpppotSettings given = settings(0.5, BudgetSchedule::fixed(1e-3));
  given.average = true;
  Spppot model = on_the_papers_grid(given);
  CHECK(model.function().basis_size() >= 28 && model.function().basis_size() <= 38);
  double early = 0, late = 0;
  for (int t = 1; t <= 4000; ++t) {
    model.step(bump(16, 1, random));
    const double largest = model.function().weights().cwiseAbs().maxCoeff();
    if (t <= 400) early = std::max(early, largest);
    late = std::max(late, largest);
  }
  std::printf("       largest weight %.2f after 400 steps, %.2f after 4000\n", early, late);
  CHECK(late < 3 * early);
  const Index basis = model.function().basis_size();
  const auto weights = model.function().function_weights();
  CHECK(weights.bottomRows(model.model_order() - basis).cwiseAbs().maxCoeff() < 0.1);
  Vector density(100);
  model.density(model.nodes(), density);
  CHECK_NEAR(density.mean(), 1.0, 0.02);
  CHECK((density.array() > 0).all());
  for (Index i = 0; i < 100; ++i) {
    const auto& ids = model.dictionary().ids();
    CHECK(std::find(ids.begin(), ids.end(), i) != ids.end());
  }
}

TEST(z_at_the_nodes_stays_right_while_samples_come_and_go) {
  Random random(5);
  for (const PseudoGradient gradient :
       {PseudoGradient::likelihood, PseudoGradient::kernel_embedding, PseudoGradient::sign}) {
    check_nodes(on_a_coarse_grid(settings(0.2, BudgetSchedule::fixed(0.03), gradient)), random, 300,
                6, 0.1);
  }
  check_nodes(on_a_coarse_grid(settings(0.2, BudgetSchedule::hold_model_order(60, 0.1))), random,
              300, 3, 0);
  SpppotSettings dual = settings(0.05, BudgetSchedule::fixed(0.3));
  dual.dual_averaging = true;
  check_nodes(on_a_coarse_grid(dual), random, 200, 4, 0);
  check_nodes(on_the_papers_grid(settings(1, BudgetSchedule::fixed(1e-5))), random, 300, 4, 0.1);
}

// The nodes stay, those outside the factor as well; whoever comes beyond the cap goes.
TEST(a_cap_leaves_the_nodes_alone) {
  Random random(20);
  const BudgetSchedule budget = BudgetSchedule::fixed(1e-3);
  for (const bool fine : {false, true}) {
    const auto on_grid = fine ? on_the_papers_grid : on_a_coarse_grid;
    const Index nodes = fine ? 100 : 30;
    Spppot free = on_grid(settings(0.3, budget));
    for (const Index room : {0, 3}) {
      Spppot model = on_grid(settings(0.3, {budget, nodes + room}));
      for (int t = 0; t < 40; ++t) {
        const RowMatrix samples = bump(6, model.features(), random);
        CHECK(model.step(samples).model_order <= nodes + room);
        free.step(samples);
      }
      Index found = 0;
      for (const Index id : model.dictionary().ids()) found += id < nodes ? 1 : 0;
      CHECK(found == nodes);
      CHECK(fine || model.model_order() == nodes + room);
    }
    CHECK(fine || free.model_order() > nodes + 3);
    CHECK_THROWS(on_grid(settings(0.3, {budget, nodes - 1})), Error);
    CHECK_THROWS(on_grid(settings(0.3, Compression(Way::merge, 1000))), Error);
  }
}

TEST(z_at_the_nodes_stays_right_without_a_budget_and_with_copies) {
  Random random(6);
  check_nodes(on_a_coarse_grid(settings(0.2, BudgetSchedule::fixed(0))), random, 60, 4, 0.3);
}

// Quarters of the cells of a grid: no coordinate is rounded, at no offset.
TEST(an_offset_of_the_domain_changes_no_bit) {
  const auto trained = [](double offset) {
    Random random(7);
    const Box box(RowVector::Constant(2, offset), RowVector::Constant(2, offset + 1));
    Spppot model(std::make_shared<Gaussian>(0.125), settings(0.5, BudgetSchedule::fixed(0.03)), box,
                 Quadrature::grid({4, 8}));
    for (int t = 0; t < 60; ++t) {
      RowMatrix x = bump(4, 2, random);
      x = x.unaryExpr([&](double v) { return std::round(v * 4096) / 4096 + offset; });
      model.step(x);
    }
    return Snapshot(model);
  };
  const Snapshot plain = trained(0);
  CHECK(plain.points.rows() > 34);
  for (const double offset : {1e8, -1e8}) {
    const Snapshot moved = trained(offset);
    CHECK(moved.ids == plain.ids && moved.weights == plain.weights && moved.root == plain.root);
  }
}

TEST(the_origin_is_in_the_middle_of_the_nodes) {
  const Spppot model = on_a_coarse_grid(settings(1, BudgetSchedule::fixed(0.1)));
  CHECK((model.dictionary().origin().array() - 0.5).abs().maxCoeff() <= 0.1);
}

// Where the density is next to nothing, 1 / f is enormous; no sample moves z by more than k(x, .).
TEST(a_point_far_from_all_others_moves_the_density_a_little) {
  for (const double budget : {0.0, 0.01}) {
    Random random(8);
    Spppot model(reference::gaussian(0.1).core,
                 settings(0.5, BudgetSchedule::fixed(budget), PseudoGradient::kernel_embedding),
                 Box(RowVector::Zero(1), RowVector::Constant(1, 4.0)), Quadrature::grid({80}));
    for (int t = 0; t < 300; ++t) model.step(bump(2, 1, random));
    RowMatrix far(1, 1);
    far << 3.0;
    const double before = model.expansion()(far)(0, 0);
    CHECK(before < -5);  // 0.5 / f > 74
    const StepRecord record = model.step(far);
    CHECK(std::isfinite(record.loss));
    CHECK(std::abs(model.expansion()(far)(0, 0) - before) <= 1 + record.budget);
    CHECK(model.function().weights().allFinite());
  }
}

TEST(input_that_does_not_fit_changes_nothing) {
  Random random(9);
  Spppot model = on_a_coarse_grid(settings(0.5, BudgetSchedule::fixed(0.03)));
  const RowMatrix samples = bump(20, 2, random);
  model.run(samples, 3, forever);
  const Snapshot before(model);
  for (const double bad :
       {1.0000001, -1e-9, std::nan(""), std::numeric_limits<double>::infinity()}) {
    RowMatrix given = samples;
    given(19, 1) = bad;
    CHECK_THROWS(model.run(given, 3, forever), Error);
    CHECK_THROWS(model.step(given), Error);
  }
  CHECK_THROWS(model.run(samples, 0, forever), Error);
  CHECK_THROWS(model.run(samples.leftCols(1), 3, forever), Error);
  CHECK(Snapshot(model) == before);
  int left = 2;
  CHECK(model.run(samples, 3, [&] { return left-- > 0; }) == 6);
  CHECK(model.run(samples.topRows(0), 3, forever) == 0);
}

// However long the step is: it is refused, or what comes out is finite.
TEST(steps_that_are_far_too_long_leave_a_finite_model) {
  for (const PseudoGradient gradient :
       {PseudoGradient::likelihood, PseudoGradient::kernel_embedding}) {
    for (const double step : {30.0, 1e4, 1e100, 1e160, 1e300}) {
      for (const double budget : {0.0, 1e-3}) {
        Random random(10);
        Spppot model = on_the_papers_grid(settings(step, BudgetSchedule::fixed(budget), gradient));
        for (int t = 0; t < 30; ++t) {
          const Snapshot before(model);
          try {
            model.step(bump(4, 1, random));
          } catch (const DivergenceError&) {
            CHECK(Snapshot(model) == before);
          }
        }
        int bad = model.function().weights().allFinite() ? 0 : 1;
        for (const StepRecord& record : model.trace().records()) {
          const bool good = std::isfinite(record.loss) && record.compression_error <= record.budget;
          bad += good ? 0 : 1;
        }
        if (bad > 0) std::printf("       step %g, budget %g: %d of 30\n", step, budget, bad);
        CHECK(bad == 0);
      }
    }
  }
}

TEST(a_step_that_diverges_has_not_happened) {
  Random random(11);
  SpppotSettings given = settings(0.05, BudgetSchedule::hold_model_order(40, 0.01));
  given.average = true;
  Spppot model = on_a_coarse_grid(given);
  model.run(bump(64, 2, random), 8, forever);
  // Weights with which exp(z) overflows at the nodes, as a step that was far too long leaves them.
  SparseFunction function = model.function();
  function.weights() *= 1e6;
  function.weights().row(0).setConstant(1e6);
  model.restore(function, model.samples(), model.batches(), model.trace());
  const Snapshot before(model);
  CHECK_THROWS(model.step(bump(8, 2, random)), DivergenceError);
  CHECK(Snapshot(model) == before);
}

// A kernel written in Python may fail at any moment. A mini-batch that fails has not happened, and
// those after it go on as if it had not been tried.
TEST(a_kernel_that_fails_leaves_the_model_as_it_was) {
  int calls_left = 1 << 30;
  for (const double budget : {0.0, 1e-4, 0.02}) {
    Random random(12);
    SpppotSettings given = settings(0.5, BudgetSchedule::fixed(budget));
    given.average = true;
    calls_left = 1 << 30;
    Spppot model(reference::failing_kernel(40, calls_left), given, Box::unit(2),
                 Quadrature::grid({6, 6}));
    Spppot undisturbed = model;
    int failures = 0;
    for (int t = 0; t < 60; ++t) {
      const RowMatrix x = bump(5, 2, random);
      const Snapshot before(model);
      for (int calls = 0;; ++calls) {
        calls_left = calls;
        try {
          model.step(x);
          break;
        } catch (const std::runtime_error&) {
          ++failures;
          CHECK(Snapshot(model) == before);
        }
      }
      calls_left = 1 << 30;
      undisturbed.step(x);
      CHECK(Snapshot(model) == Snapshot(undisturbed));
    }
    CHECK(failures >= 60);
  }
}
