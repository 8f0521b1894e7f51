#include <parsimon/algorithm/hybrid.hpp>

#include "check.hpp"
#include "failing_kernel.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

namespace {

const auto forever = [] { return true; };

RowMatrix bump(Index count, Index features, Random& random) {
  RowMatrix samples(count, features);
  for (double& x : samples.reshaped()) {
    do x = 0.6 + 0.15 * random.normal();
    while (x < 0 || x > 1);
  }
  return samples;
}

SpppotSettings first_settings(double budget) {
  SpppotSettings all;
  all.step = StepSchedule::constant(0.3);
  all.compression = BudgetSchedule::fixed(budget);
  return all;
}

const MirrorNewtonSettings second_settings{StepSchedule::power_law(1, 0.5, 100), 2};

OrderWatch watch(Index patience, Index cap) {
  OrderWatch result;
  result.patience = patience;
  result.cap = cap;
  return result;
}

// Nodes further apart than the kernel reaches: samples join the dictionary.
Spppot first_phase(KernelPtr kernel = std::make_shared<Gaussian>(0.1)) {
  return {std::move(kernel), first_settings(0.02), Box::unit(2), Quadrature::grid({4, 5})};
}

Vector density(const Hybrid& model, const RowMatrix& at) {
  Vector values(at.rows());
  model.density(at, values);
  return values;
}

// After how many mini-batches the order counts as stable; 0 if it never does.
Index stable_after(OrderWatch rule, const std::vector<Index>& orders) {
  for (const Index order : orders) {
    rule.observe(order);
    if (rule.is_stable()) return rule.seen;
  }
  return 0;
}

bool within_band(const std::vector<Index>& orders, std::size_t first, std::size_t last) {
  const auto begin = orders.begin() + static_cast<std::ptrdiff_t>(first);
  const auto [low, high] =
      std::minmax_element(begin, orders.begin() + static_cast<std::ptrdiff_t>(last));
  return static_cast<double>(*high - *low) <= std::max(2.0, 0.02 * static_cast<double>(*high));
}

// Everything that a caller can see.
struct Snapshot {
  bool second;
  RowMatrix points, weights;
  Index samples, batches, seen;
  std::size_t records;

  explicit Snapshot(const Hybrid& model)
      : second(model.in_second_phase()),
        points(model.dictionary().points()),
        weights(model.prediction_weights()),
        samples(model.samples()),
        batches(model.batches()),
        seen(model.watch().seen),
        records(model.trace().records().size()) {}

  bool operator==(const Snapshot& other) const {
    return second == other.second && same(points, other.points) && same(weights, other.weights) &&
           samples == other.samples && batches == other.batches && seen == other.seen &&
           records == other.records;
  }

 private:
  static bool same(const RowMatrix& a, const RowMatrix& b) {
    return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
  }
};

}  // namespace

TEST(an_order_is_stable_once_it_has_stayed_within_the_band) {
  using Orders = std::vector<Index>;
  const OrderWatch rule = watch(4, 1000);
  CHECK(stable_after(rule, Orders(10, 7)) == 4);
  CHECK(stable_after(rule, {7, 8, 9, 7, 8}) == 4);        // 2 points
  CHECK(stable_after(rule, {7, 8, 10, 10, 9, 12}) == 0);  // 3 are too many
  CHECK(stable_after(rule, {7, 8, 10, 10, 9, 10}) == 6);
  CHECK(stable_after(rule, {500, 505, 510, 502}) == 4);  // 2 % of 510
  CHECK(stable_after(rule, {500, 505, 511, 502}) == 0);
  CHECK(stable_after(rule, {0, 1, 2, 1}) == 4);
  CHECK(stable_after(watch(1, 1000), {3}) == 1);
  Orders growing;
  for (Index i = 0; i < 500; ++i) growing.push_back(100 + i);
  CHECK(stable_after(watch(30, 1000), growing) == 0);
  CHECK(stable_after(watch(30, 77), growing) == 77);
  CHECK(stable_after(watch(1000, 5), Orders(10, 7)) == 5);
}

// Never before the last `patience` orders are within a band, nor long after.
TEST(an_order_is_not_called_stable_too_early_or_too_late) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const Index patience = random.integer(1, 12), spread = random.integer(1, 6);
    std::vector<Index> orders;
    for (Index order = random.integer(0, 300), t = 0; t < 100; ++t) {
      order = std::max<Index>(0, order + random.integer(-spread, spread) / 2);
      orders.push_back(order);
    }
    const auto after = static_cast<std::size_t>(stable_after(watch(patience, 1000), orders));
    const auto length = static_cast<std::size_t>(patience);
    if (after > 0) CHECK(after >= length && within_band(orders, after - length, after));
    // 2 * patience - 1 in one band contain a whole count that starts anew.
    const std::size_t searched = after > 0 ? after - 1 : orders.size();
    for (std::size_t end = 2 * length - 1; end <= searched; ++end) {
      CHECK(!within_band(orders, end - (2 * length - 1), end));
    }
  }
}

TEST(the_second_phase_goes_on_from_the_density_of_the_first) {
  Random random(2);
  const RowMatrix samples = bump(2000, 2, random), at = random.uniform_points(50, 2);
  Hybrid model(first_phase(), second_settings, watch(10, 200));
  Spppot alone = first_phase();
  Index start = 0;
  for (; !model.in_second_phase() && start < 2000; start += 8) {
    CHECK(model.run(samples.middleRows(start, 8), 8, forever) == 8);
    alone.run(samples.middleRows(start, 8), 8, forever);
  }
  CHECK(model.in_second_phase() && start > 80 && start < 2000);
  CHECK(model.model_order() == alone.model_order() && model.model_order() > 21);
  CHECK(model.dictionary().points() == alone.dictionary().points());
  CHECK(model.prediction_weights() == alone.prediction_weights());
  Vector expected(50);
  alone.density(at, expected);
  CHECK((density(model, at) - expected).cwiseAbs().maxCoeff() < 1e-13);
  CHECK(model.samples() == start && model.batches() == start / 8);
  CHECK(model.trace().records().size() == static_cast<std::size_t>(start / 8));

  // From here on it is Algorithm 3.
  const Quadrature finer = alone.quadrature().finer(2 * alone.model_order());
  MirrorNewton newton(alone.dictionary(), alone.prediction_weights().col(0), second_settings,
                      alone.domain(), finer);
  model.run(samples.bottomRows(2000 - start), 8, forever);
  newton.run(samples.bottomRows(2000 - start), 8, forever);
  CHECK(model.prediction_weights() == RowMatrix(newton.average()));
  CHECK(model.samples() == 2000 && model.batches() == 250);
  CHECK(model.trace().records().back().samples == 2000);
}

TEST(the_second_phase_integrates_on_more_nodes_than_the_dictionary_has_points) {
  for (const Quadrature& quadrature :
       {Quadrature::grid({4, 5}), Quadrature::scattered(23), Quadrature::grid({1, 2})}) {
    Random random(3);
    Hybrid model(
        Spppot(std::make_shared<Gaussian>(0.15), first_settings(0.05), Box::unit(2), quadrature),
        second_settings, watch(20, 30));
    CHECK(model.quadrature().counts() == quadrature.counts());
    while (!model.in_second_phase()) model.run(bump(8, 2, random), 8, forever);
    CHECK(model.quadrature().kind() == quadrature.kind());
    CHECK(model.quadrature().size() >= 2 * model.model_order());
    CHECK(model.quadrature().size() == model.nodes().rows());
    const Index order = model.model_order();
    model.run(bump(200, 2, random), 8, forever);
    CHECK(model.model_order() == order);
    CHECK(model.prediction_weights().allFinite());
  }
}

TEST(one_call_or_many_make_no_difference) {
  Random random(4);
  const RowMatrix samples = bump(1000, 2, random);
  Hybrid once(first_phase(), second_settings, watch(10, 40));
  Hybrid often = once;
  CHECK(once.run(samples, 8, forever) == 1000);
  for (Index start = 0; start < 1000; start += 40)
    often.run(samples.middleRows(start, 40), 8, forever);
  CHECK(once.in_second_phase());
  CHECK(Snapshot(once) == Snapshot(often));

  // keep_going() is asked once per mini-batch, in either phase and between them.
  Hybrid stopped(first_phase(), second_settings, watch(10, 40));
  int asked = 0;
  CHECK(stopped.run(samples, 8, [&] { return ++asked <= 60; }) == 480);
  CHECK(asked == 61 && stopped.in_second_phase() && stopped.batches() == 60);
  stopped.run(samples.bottomRows(520), 8, forever);
  CHECK(Snapshot(stopped) == Snapshot(once));
}

// The paper's grid: nodes that are dependent join the second phase like all others.
TEST(a_rank_deficient_grid_is_learned_in_both_phases) {
  Random random(5);
  Hybrid model(Spppot(std::make_shared<Gaussian>(std::sqrt(0.0065)), first_settings(1e-3),
                      Box::unit(1), Quadrature::grid({100})),
               second_settings, watch(100, 3000));
  model.run(bump(8000, 1, random), 16, forever);
  CHECK(model.in_second_phase() && model.watch().seen == 100 && model.model_order() == 100);
  const Vector values = density(model, model.nodes());
  CHECK((values.array() > 0).all());
  CHECK_NEAR(values.mean(), 1.0, 0.02);
  CHECK(model.prediction_weights().cwiseAbs().maxCoeff() < 100);
}

TEST(what_cannot_be_is_refused_before_the_first_sample) {
  const auto refused = [](const SpppotSettings& first, const MirrorNewtonSettings& second,
                          const OrderWatch& rule) {
    Spppot phase(std::make_shared<Gaussian>(0.15), first, Box::unit(2), Quadrature::grid({4, 5}));
    CHECK_THROWS(Hybrid(std::move(phase), second, rule), Error);
  };
  refused(first_settings(0.1), second_settings, watch(0, 10));
  refused(first_settings(0.1), second_settings, watch(10, 0));
  refused(first_settings(0.1), second_settings, watch(-1, 10));
  SpppotSettings negative = first_settings(0.1);
  negative.mirror = MirrorMap::euclidean();
  refused(negative, second_settings, watch(10, 10));
  for (const double damping : {0.0, -1.0, std::nan("")}) {
    refused(first_settings(0.1), {StepSchedule::constant(1), damping}, watch(10, 10));
  }
}

TEST(input_that_does_not_fit_changes_nothing) {
  Random random(6);
  Hybrid model(first_phase(), second_settings, watch(10, 10));
  for (int phase = 1; phase <= 2; ++phase) {
    const RowMatrix samples = bump(40, 2, random);
    model.run(samples, 8, forever);
    const Snapshot before(model);
    RowMatrix bad = samples;
    bad(39, 1) = std::nan("");
    CHECK_THROWS(model.run(bad, 8, forever), Error);
    CHECK_THROWS(model.run(samples, 0, forever), Error);
    CHECK_THROWS(model.run(samples.leftCols(1), 8, forever), Error);
    CHECK(Snapshot(model) == before);
    model.run(bump(80, 2, random), 8, forever);
    CHECK(model.in_second_phase());
  }
}

// A kernel written in Python may fail at any moment, that of the switch included.
TEST(a_kernel_that_fails_leaves_the_model_as_it_was) {
  int calls_left = 1 << 30;
  Random random(7);
  Hybrid model(first_phase(reference::failing_kernel(20, calls_left)), second_settings,
               watch(5, 10));
  int failures = 0, changed = 0;
  for (int t = 0; t < 20; ++t) {
    const RowMatrix x = bump(6, 2, random);
    const Snapshot before(model);
    for (int calls = 0;; ++calls) {
      calls_left = calls;
      try {
        model.run(x, 6, forever);
        break;
      } catch (const std::runtime_error&) {
        ++failures;
        changed += Snapshot(model) == before ? 0 : 1;
      }
    }
  }
  CHECK(changed == 0);
  CHECK(failures > 20 && model.in_second_phase());
}
