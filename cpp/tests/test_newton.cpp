#include <algorithm>
#include <functional>
#include <limits>
#include <parsimon/io/polk_file.hpp>
#include <string>

#include "check.hpp"
#include "failing_kernel.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::Random;
using reference::Real;
using reference::Table;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
const auto forever = [] { return true; };
const Vector unweighted(0);

PolkSettings settings(const std::string& loss, double eta, const Compression& compression,
                      const NewtonSettings& newton) {
  return {parse_loss(loss),
          OnlineSettings{StepSchedule::constant(eta), compression, 0, false, newton}};
}

void train(Polk& polk, const RowMatrix& samples, const RowMatrix& targets, Index batch_size,
           const Vector& weights = unweighted) {
  polk.run(samples, targets, weights, batch_size, forever);
}

// A model whose dictionary is these points and stays so: what is stepped has weights of about 1 and
// hardly moves, so that every newcomer weighs nothing beside the points and leaves again. Nothing
// has been seen.
Polk fixed_polk(const RowMatrix& points, const std::string& loss, const NewtonSettings& newton,
                Index outputs = 1) {
  const Compression cap(BudgetSchedule::fixed(0), points.rows());
  Polk polk(std::make_shared<Matern>(0.5, 1.5), settings(loss, 1e-9, cap, newton), points.cols(),
            outputs);
  train(polk, points, RowMatrix::Constant(points.rows(), polk.target_columns(), 1), points.rows());
  const Index size = polk.function().basis_size();
  CHECK(size == points.rows());
  polk.assume(RowMatrix::Zero(size, size), RowMatrix::Zero(size, outputs),
              RowMatrix::Ones(size, outputs), 0);
  return polk;
}

// (sum_i c_i phi_i phi_i' + ridge I)^-1 sum_i c_i phi_i y_i', phi_i the rows of features.
RowMatrix ridge_solution(const RowMatrix& features, const RowMatrix& targets, const Vector& counts,
                         double ridge) {
  const Index size = features.cols();
  Table normal(size, size), right(size, targets.cols());
  for (Index s = 0; s < features.rows(); ++s) {
    for (Index i = 0; i < size; ++i) {
      const Real weighted = Real(counts(s)) * features(s, i);
      for (Index k = 0; k < size; ++k) normal(i, k) += weighted * features(s, k);
      for (Index c = 0; c < targets.cols(); ++c) right(i, c) += weighted * targets(s, c);
    }
  }
  for (Index i = 0; i < size; ++i) normal(i, i) += ridge;
  const Table inverse = reference::inverse(normal);
  RowMatrix solution(size, targets.cols());
  for (Index i = 0; i < size; ++i) {
    for (Index c = 0; c < targets.cols(); ++c) {
      Real sum = 0;
      for (Index k = 0; k < size; ++k) sum += inverse(i, k) * right(k, c);
      solution(i, c) = static_cast<double>(sum);
    }
  }
  return solution;
}

double largest_difference(const RowMatrix& a, const RowMatrix& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

// y = 2 x_0 + sin 5 x_1, with noise; a second target is its negative square.
RowMatrix curve(const RowMatrix& samples, Index outputs, Random& random) {
  RowMatrix targets(samples.rows(), outputs);
  for (Index i = 0; i < samples.rows(); ++i) {
    const double y = 2 * samples(i, 0) + std::sin(5 * samples(i, 1));
    targets(i, 0) = y + 0.1 * random.normal();
    if (outputs > 1) targets(i, 1) = -y * y + 0.1 * random.normal();
  }
  return targets;
}

}  // namespace

// Weights, forgetting and both ridges: after every mini-batch, the solution is that of all samples
// but those that are still pending. Sums of 400 products in a space where the solution is of size 1
// and the ridge is 0.1: 1e-10 is far above rounding and far below any mistake.
TEST(the_squared_loss_is_exact_recursive_least_squares) {
  Random random(1);
  const RowMatrix points = random.uniform_points(25, 2);
  for (const double half_life : {kNever, 200.0, 10.0}) {
    for (const Index batch : {1, 7, 32}) {
      const NewtonSettings given{0.1, 1e-3, half_life, false};
      Polk polk = fixed_polk(points, "squared", given, 2);
      const Index count = 400;
      const RowMatrix samples = random.uniform_points(count, 2);
      const RowMatrix targets = curve(samples, 2, random);
      Vector weights = 2 * random.uniform_points(count, 1).col(0);
      weights(3) = 0;
      const RowMatrix features = polk.coordinates(samples);
      Index compared = 0;
      for (Index start = 0; start < count; start += batch) {
        const Index size = std::min(batch, count - start);
        train(polk, samples.middleRows(start, size), targets.middleRows(start, size), size,
              weights.segment(start, size));
        const Index seen = start + size;
        if (polk.newton().unsolved() > 0) continue;
        Vector counts(seen);
        for (Index i = 0; i < seen; ++i) {
          counts(i) = weights(i) * std::exp2(-static_cast<double>(seen - 1 - i) / half_life);
        }
        CHECK_NEAR(polk.newton().remembered(), counts.sum(), 1e-10 * counts.sum());
        const RowMatrix expected =
            ridge_solution(features.topRows(seen), targets.topRows(seen), counts,
                           given.ridge + counts.sum() * given.ridge_per_sample);
        CHECK(largest_difference(polk.function().statistics().solution(), expected) < 1e-10);
        ++compared;
      }
      CHECK(compared >= 8);
      CHECK(polk.model_order() == points.rows());
      for (Index i = 0; i < points.rows(); ++i) CHECK(polk.dictionary().id(i) < points.rows());

      RowMatrix values(50, 2);
      const RowMatrix places = random.uniform_points(50, 2);
      polk.predict(places, values);
      const RowMatrix at = polk.coordinates(places);
      CHECK(largest_difference(values, at * polk.function().statistics().solution()) < 1e-10);
    }
  }
}

TEST(the_size_of_the_blocks_does_not_matter_to_the_squared_loss) {
  Random random(2);
  const RowMatrix points = random.uniform_points(20, 2);
  // Whole mini-batches of all sizes, and then so many at once that there is a solution.
  const Index count = 7 * 32 * 8, last = 400;
  const RowMatrix samples = random.uniform_points(count + last, 2);
  const RowMatrix targets = curve(samples, 1, random);
  for (const double half_life : {kNever, 300.0}) {
    std::vector<RowMatrix> all;
    for (const Index batch : {1, 7, 32}) {
      Polk polk = fixed_polk(points, "squared", {0.01, 1e-4, half_life, false});
      train(polk, samples.topRows(count), targets.topRows(count), batch);
      train(polk, samples.bottomRows(last), targets.bottomRows(last), last);
      CHECK(polk.newton().unsolved() == 0);
      all.push_back(polk.function().statistics().solution());
    }
    for (const RowMatrix& one : all) CHECK(largest_difference(one, all[0]) < 1e-10);
  }
}

namespace {

struct Problem {
  RowMatrix samples, targets;
  Index outputs;
};

Problem problem(const Loss& loss, const std::string& name, Random& random) {
  Problem all{random.uniform_points(300, 2), RowMatrix(300, 1), 1};
  if (!loss.is_classification()) {
    all.targets = curve(all.samples, 1, random);
    return all;
  }
  const bool binary = name.find("binary") == 0;
  all.outputs = binary ? 1 : 3;
  for (Index i = 0; i < 300; ++i) {
    const double place = all.samples(i, 0) + 0.1 * random.normal();
    all.targets(i, 0) = binary ? (place > 0.5 ? 1 : 0) : (place > 0.6 ? 2 : place > 0.3 ? 1 : 0);
  }
  return all;
}

struct Objective {
  const Loss& loss;
  const RowMatrix &features, &targets;
  Vector counts;
  double ridge;
  Index outputs;

  double at(const RowMatrix& solution) const {
    const RowMatrix predictions = features * solution;
    RowMatrix gradient(predictions.rows(), predictions.cols());
    Vector values(predictions.rows()), curvature(predictions.rows());
    loss.majorise(predictions, targets, values, gradient, curvature);
    return counts.dot(values) + 0.5 * ridge * solution.squaredNorm();
  }

  // By parabolas with twice the curvature, which lie above multi-class hinge losses, too: every
  // step goes down.
  RowMatrix minimise() const {
    const Index size = features.cols();
    RowMatrix solution = RowMatrix::Zero(size, outputs);
    for (int step = 0; step < 3000; ++step) {
      const RowMatrix predictions = features * solution;
      RowMatrix gradient(predictions.rows(), predictions.cols());
      Vector values(predictions.rows()), curvature(predictions.rows());
      loss.majorise(predictions, targets, values, gradient, curvature);
      RowMatrix normal = ridge * RowMatrix::Identity(size, size);
      normal += features.transpose() * (2 * curvature.cwiseProduct(counts)).asDiagonal() * features;
      RowMatrix down = features.transpose() * counts.asDiagonal() * gradient + ridge * solution;
      CHECK(linalg::cholesky(normal));
      linalg::solve_cholesky(normal, down);
      solution -= down;
      if (down.cwiseAbs().maxCoeff() < 1e-10) break;
    }
    return solution;
  }
};

}  // namespace

// The same 300 samples again and again, with a memory of three passes: where the solution stays, it
// is the minimiser of the smooth loss, with weights by age. It goes on moving a little, as the
// weights move through the data, and what the oldest said was said of another solution: two per
// cent of the minimum; five for the logistic loss of many classes, whose parabolas are the widest.
TEST(every_loss_comes_to_the_minimum_of_its_smooth_form) {
  Random random(3);
  for (const std::string name :
       {"squared", "huber(0.3)", "epsilon_insensitive(0.1)", "pinball(0.5)", "pinball(0.9)",
        "binary_logistic", "multiclass_logistic", "binary_hinge", "multiclass_hinge",
        "binary_squared_hinge", "multiclass_squared_hinge"}) {
    const LossPtr loss = parse_loss(name);
    const Problem data = problem(*loss, name, random);
    const double half_life = 900, ridge = 0.5;
    Polk polk =
        fixed_polk(random.uniform_points(20, 2), name, {ridge, 0, half_life, false}, data.outputs);
    const RowMatrix features = polk.coordinates(data.samples);
    for (int pass = 0; pass < 40; ++pass) train(polk, data.samples, data.targets, 25);

    Vector counts(300);
    const double share = 1 / (1 - std::exp2(-300 / half_life));  // of all passes
    for (Index i = 0; i < 300; ++i) {
      counts(i) = share * std::exp2(-static_cast<double>(299 - i) / half_life);
    }
    const Objective objective{*loss, features, data.targets, counts, ridge, data.outputs};
    const double least = objective.at(objective.minimise());
    const double found = objective.at(polk.function().statistics().solution());
    const double start = objective.at(RowMatrix::Zero(20, data.outputs));
    std::printf("       %-26s objective %.5g, minimum %.5g, of 0 %.5g\n", name.c_str(), found,
                least, start);
    CHECK(found >= least * (1 - 1e-6));
    CHECK(found <= least * (name == "multiclass_logistic" ? 1.05 : 1.02));
  }
}

// A sample that is far off has a wide parabola, which is too wide as soon as the function has
// moved. One pass, in blocks of any size, comes within a quarter of the minimum; it was seventeen
// times the minimum while curvatures stayed what they had been at first.
TEST(a_large_first_block_far_from_its_targets_is_no_harm) {
  Random random(4);
  for (const double offset : {0.0, 3.0, 20.0}) {
    for (const std::string name : {"huber(0.3)", "epsilon_insensitive(0.1)", "pinball(0.5)"}) {
      const LossPtr loss = parse_loss(name);
      Problem data = problem(*loss, name, random);
      data.targets.array() += offset;
      for (const Index batch : {1, 25, 300}) {
        Polk polk = fixed_polk(random.uniform_points(20, 2), name, {0.5, 0, kNever, false});
        const RowMatrix features = polk.coordinates(data.samples);
        const Objective objective{*loss, features, data.targets, Vector::Ones(300), 0.5, 1};
        const double least = objective.at(objective.minimise());
        train(polk, data.samples, data.targets, batch);
        CHECK(objective.at(polk.function().statistics().solution()) < 1.25 * least);
      }
    }
  }
}

// -- drift ---------------------------------------------------------------------------------------

namespace {

struct Law {
  const char* name;
  std::function<double(Random&)> before, after;
};

std::function<double(Random&)> coin(double probability) {
  return [probability](Random& random) { return random.uniform() < probability ? 1.0 : 0.0; };
}

std::vector<Law> laws() {
  const auto exponential = [](double scale) {
    return [scale](Random& random) { return -scale * std::log(1 - random.uniform()); };
  };
  const auto square = [](double scale) {
    return [scale](Random& random) { return scale * std::pow(random.normal(), 2); };
  };
  const auto log_normal = [](double scale) {
    return [scale](Random& random) { return scale * std::exp(2 * random.normal()); };
  };
  // Without a variance.
  const auto pareto = [](double scale) {
    return [scale](Random& random) { return scale * std::pow(1 - random.uniform(), -1 / 1.5); };
  };
  const auto hinge = [](double margin) {
    return [margin](Random& random) { return std::max(0.0, 1 - margin - random.normal()); };
  };
  return {{"1 in 2000", coin(0.0005), coin(0.2)},
          {"1 in 100", coin(0.01), coin(0.2)},
          {"1 in 10", coin(0.1), coin(0.3)},
          {"1 in 3", coin(0.3), coin(0.6)},
          {"exponential", exponential(1), exponential(3)},
          {"squared", square(1), square(3)},
          {"log-normal", log_normal(1), log_normal(10)},
          {"Pareto", pareto(1), pareto(5)},
          {"hinge", hinge(2), hinge(-2)}};
}

}  // namespace

TEST(stationary_losses_give_no_alarm_and_changes_do) {
  for (const Law& law : laws()) {
    Random random(5);
    DriftDetector detector;
    for (int i = 0; i < 100000; ++i) detector.observe(law.before(random));
    CHECK(detector.changes() == 0 && !detector.is_drifting());
    int delay = 0;
    while (delay < 1000 && !detector.is_drifting()) {
      detector.observe(law.after(random));
      ++delay;
    }
    std::printf("       %-12s found after %d\n", law.name, delay);
    CHECK(detector.changes() == 1 && delay < 400);
    // While it lasts, and only then, the past is forgotten.
    double remembered = 1e5;
    for (int i = 0; i < 40 && detector.is_drifting(); ++i) {
      const double share = detector.memory_to_keep(remembered, 50, 10);
      CHECK(share > 0 && share <= 1);
      remembered = share * remembered + 50;
      for (int k = 0; k < 50; ++k) detector.observe(law.after(random));
    }
    CHECK(!detector.is_drifting() && remembered < 1000);
    CHECK(detector.memory_to_keep(remembered, 50, 10) == 1);
  }
}

// One that listens finds nothing, and believes an alarm until the latest losses are those since.
TEST(a_detector_that_listens_is_told) {
  Random random(6);
  DriftDetector detector;
  detector.listen();
  for (int i = 0; i < 2000; ++i) detector.observe(i < 1000 ? random.uniform() : 5);
  CHECK(detector.changes() == 0 && !detector.is_drifting());
  detector.raise_alarm();
  CHECK(detector.changes() == 1 && detector.is_drifting());
  CHECK_NEAR(detector.memory_to_keep(1e5, 50, 10), 0.5, 1e-12);
  for (int i = 0; i < 100; ++i) detector.observe(random.uniform());
  CHECK(detector.is_drifting());
  DriftDetector again;
  again.restore(detector.state());
  CHECK(again.state() == detector.state());
  for (DriftDetector* each : {&detector, &again}) {
    each->observe(0.5);
    CHECK(!each->is_drifting() && each->memory_to_keep(1e5, 50, 10) == 1);
    for (int i = 0; i < 1000; ++i) each->observe(5);
    CHECK(each->changes() == 1);
  }
}

TEST(losses_that_come_back_end_an_alarm) {
  Random random(6);
  DriftDetector detector;
  for (int i = 0; i < 5000; ++i) detector.observe(random.uniform());
  for (int i = 0; i < 150; ++i) detector.observe(2 + random.uniform());
  CHECK(detector.is_drifting());
  for (int i = 0; i < 600; ++i) detector.observe(random.uniform());
  CHECK(!detector.is_drifting() && detector.changes() == 1);
}

// A hinge loss that is 0 for long must not blind it, nor one outlier raise an alarm.
TEST(losses_that_were_all_zero_do_not_blind_the_detector) {
  for (const int zeros : {500, 100000}) {
    DriftDetector detector;
    for (int i = 0; i < zeros; ++i) detector.observe(0);
    detector.observe(1);
    for (int i = 0; i < 1000; ++i) detector.observe(0);
    CHECK(detector.changes() == 0);
    for (int i = 0; i < 300; ++i) detector.observe(1);
    CHECK(detector.changes() == 1);
  }
}

TEST(a_loss_that_is_no_number_does_not_break_the_detector) {
  Random random(7);
  DriftDetector detector;
  for (const double wrong : {std::nan(""), HUGE_VAL, 1e308}) {
    for (int i = 0; i < 400; ++i) detector.observe(random.uniform());
    detector.observe(wrong);
  }
  for (const double number : detector.state()) CHECK(std::isfinite(number));
  DriftDetector again;
  again.restore(detector.state());
  CHECK(again.state() == detector.state());
}

// y = sin 6x turns into -sin 6x after 20,000 samples. The model that adapts is right again 2,000
// samples later, the one that never forgets is not; a half-life of 300 helps as well.
TEST(a_stream_that_changes_is_learned_again) {
  const auto error_after_change = [](double half_life, bool adapts) {
    Random random(8);
    Polk polk(std::make_shared<Gaussian>(0.2),
              settings("squared", 0.5, Compression(BudgetSchedule::fixed(0.01), 40),
                       {0.01, 0, half_life, adapts}),
              1, 1);
    const auto block = [&](Index count, double sign, double noise) {
      std::pair<RowMatrix, RowMatrix> made{random.uniform_points(count, 1), RowMatrix(count, 1)};
      for (Index i = 0; i < count; ++i) {
        made.second(i, 0) = sign * std::sin(6 * made.first(i, 0)) + noise * random.normal();
      }
      return made;
    };
    const auto before = block(20000, 1, 0.2), after = block(2000, -1, 0.2);
    train(polk, before.first, before.second, 20);
    CHECK(polk.newton().drift().changes() == 0);
    train(polk, after.first, after.second, 20);
    CHECK(polk.newton().drift().changes() == (adapts ? 1 : 0));
    CHECK((polk.newton().remembered() < 5000) == (adapts || half_life < kNever));
    const auto test = block(500, -1, 0);
    RowMatrix values(500, 1);
    polk.predict(test.first, values);
    return (values - test.second).squaredNorm() / 500;
  };
  CHECK(error_after_change(kNever, false) > 1);
  CHECK(error_after_change(kNever, true) < 0.01);
  CHECK(error_after_change(300, false) < 0.01);
}

// -- files ---------------------------------------------------------------------------------------

namespace {

std::string bytes(const Polk& polk) { return to_archive(polk).to_bytes(); }

Polk reload(const Polk& polk) { return polk_from_archive(Archive::from_bytes(bytes(polk))); }

// Three classes on the plane, or the regression of a wave.
std::pair<RowMatrix, RowMatrix> stream(bool classes, Index count, unsigned seed) {
  Random random(seed);
  std::pair<RowMatrix, RowMatrix> made{random.normal_points(count, 2), RowMatrix(count, 1)};
  for (Index i = 0; i < count; ++i) {
    const double angle = std::atan2(made.first(i, 1), made.first(i, 0)) + 3.1415927;
    made.second(i, 0) = classes ? std::floor(3 * angle / 6.2831854) : std::sin(angle);
  }
  return made;
}

const Compression growing_cap = Compression::growing(BudgetSchedule::parsimony(1e-3), 10, 1.5);

Polk new_polk(const std::string& loss, Index outputs, const NewtonSettings& newton,
              const Compression& compression = growing_cap) {
  return Polk(std::make_shared<Gaussian>(0.7), settings(loss, 1, compression, newton), 2, outputs);
}

Polk trained() {
  Polk polk = new_polk("multiclass_squared_hinge", 3, {0.1, 1e-6, 500, true});
  const auto samples = stream(true, 700, 9);
  train(polk, samples.first, samples.second, 16);
  CHECK(polk.newton().pending() > 0);
  return polk;
}

}  // namespace

TEST(training_goes_on_with_the_same_bits) {
  const std::vector<std::pair<std::string, Compression>> cases = {
      {"multiclass_hinge", growing_cap},
      {"multiclass_logistic", growing_cap},
      {"squared", growing_cap},
      {"pinball(0.3)", growing_cap},
      {"multiclass_hinge", Compression(Way::merge, 20)},
      {"squared", Compression(Way::remove, 20)},
      {"squared", Compression(Way::nonparametric, 11, 300, 3)}};
  for (const auto& [loss, compression] : cases) {
    const bool classes = loss.find("multiclass") == 0;
    for (const NewtonSettings& newton :
         {NewtonSettings{0.1, 1e-6, kNever, true}, NewtonSettings{1, 0, 200, false}}) {
      const auto samples = stream(classes, 1600, 10);
      Polk straight = new_polk(loss, classes ? 3 : 1, newton, compression);
      Polk stopped = reload(straight);
      CHECK(bytes(stopped) == bytes(straight));
      Random random(11);
      Index idle = 0;
      for (Index start = 0; start < 1600;) {
        const Index count = std::min<Index>(1600 - start, random.integer(1, 90));
        for (Polk* polk : {&straight, &stopped}) {
          train(*polk, samples.first.middleRows(start, count),
                samples.second.middleRows(start, count), 16);
        }
        CHECK(bytes(stopped) == bytes(straight));
        stopped = reload(stopped);
        CHECK(bytes(stopped) == bytes(straight));
        idle += straight.newton().unsolved() == 0 ? 1 : 0;
        start += count;
      }
      CHECK(idle > 0);
      CHECK(straight.function().basis_size() > 10);
      CHECK(stopped.settings().newton->half_life == newton.half_life);
    }
  }
}

// What waits to be counted is as dangerous as what is learned from: a class that there is not would
// be written far outside of a row.
TEST(files_whose_pending_samples_make_no_sense_are_refused) {
  const Polk polk = trained();
  const auto with = [&](Index column, double value) {
    Newton::State state = polk.newton().state(1, polk.features());
    state.pending(0, column) = value;
    Polk other = reload(polk);
    other.restore_newton(polk.function().statistics().state(), state);
  };
  with(2, 2);
  for (const double target : {-1.0, 0.5, 3.0, 1e9}) CHECK_THROWS(with(2, target), Error);
  for (const double weight : {-1.0, HUGE_VAL, std::nan("")}) CHECK_THROWS(with(1, weight), Error);
  for (const double time : {701.0, 1e300, HUGE_VAL}) CHECK_THROWS(with(0, time), Error);
}

TEST(statistics_of_another_dictionary_are_refused) {
  Polk polk = trained();
  const Newton::State state = polk.newton().state(1, polk.features());
  Statistics other(3);
  other.grow(polk.function().basis_size() - 1);
  CHECK_THROWS(polk.restore_newton(other.state(), state), Error);
  const Index size = polk.function().basis_size();
  const RowMatrix square = RowMatrix::Zero(size, size), column = RowMatrix::Zero(size, 3);
  CHECK_THROWS(polk.assume(RowMatrix::Zero(size + 1, size + 1), column, column, 1), Error);
  CHECK_THROWS(polk.assume(square, RowMatrix::Zero(size, 2), column, 1), Error);
  CHECK_THROWS(polk.assume(square, column, RowMatrix::Constant(size, 3, std::nan("")), 1), Error);
  CHECK(bytes(polk) == bytes(trained()));
}

// -- what is refused -----------------------------------------------------------------------------

TEST(settings_that_cannot_be_are_refused_with_a_sentence) {
  const Compression budget(BudgetSchedule::fixed(0.1));
  const auto make = [](const std::string& loss, const Compression& compression,
                       const NewtonSettings& newton, bool average = false) {
    PolkSettings given = settings(loss, 0.1, compression, newton);
    given.average = average;
    return Polk(std::make_shared<Gaussian>(1), given, 2, loss.find("mirror") == 0 ? 3 : 1);
  };
  make("squared", budget, {1, 0, 100, true});
  for (const double wrong : {0.0, -1.0, -kNever, std::nan("")}) {
    CHECK_THROWS(make("squared", budget, {1, 0, wrong, false}), Error);
  }
  for (const double wrong : {-1.0, kNever, std::nan("")}) {
    CHECK_THROWS(make("squared", budget, {wrong, 0, kNever, false}), Error);
    CHECK_THROWS(make("squared", budget, {1, wrong, kNever, false}), Error);
  }
  CHECK_THROWS(make("squared", budget, {}, true), Error);
  CHECK_THROWS(make("mirror_logistic", budget, {}), Error);
  CHECK_THROWS(make("squared", BudgetSchedule::fixed(0), {}), Error);
  for (const Way way : {Way::remove, Way::project, Way::merge, Way::nonparametric}) {
    make("squared", Compression(way, 20), {});
  }
}

TEST(negative_sample_weights_are_refused) {
  Polk polk = trained();
  const std::string before = bytes(polk);
  const auto samples = stream(true, 10, 12);
  Vector weights = Vector::Ones(10);
  weights(7) = -1e-9;
  CHECK_THROWS(polk.run(samples.first, samples.second, weights, 5, forever), Error);
  CHECK_THROWS(polk.step(samples.first, samples.second, weights), Error);
  CHECK(bytes(polk) == before);
}

// -- corners -------------------------------------------------------------------------------------

TEST(huge_targets_leave_a_model_that_is_finite_and_can_be_saved) {
  for (const std::string loss : {"squared", "huber(1)", "pinball(0.5)"}) {
    Polk polk = new_polk(loss, 1, {1, 0, kNever, true});
    const auto samples = stream(false, 400, 13);
    RowMatrix targets = samples.second;
    for (const double size : {1.0, 1e-300, 1e40, 1.0}) {
      train(polk, samples.first, size * targets, 16);
      const Polk again = reload(polk);
      CHECK(again.prediction_weights().allFinite());
      CHECK(bytes(again) == bytes(polk));
    }
  }
}

TEST(a_refit_is_where_learning_goes_on_from) {
  Random random(14);
  const RowMatrix points = random.uniform_points(25, 2);
  Polk polk = fixed_polk(points, "squared", {0.1, 0, kNever, false});
  const RowMatrix first = random.uniform_points(200, 2), second = random.uniform_points(256, 2);
  const RowMatrix y = curve(first, 1, random), z = curve(second, 1, random);
  train(polk, first.topRows(50), y.topRows(50), 5);  // forgotten by the refit
  polk.refit(first, y, unweighted);
  CHECK(polk.newton().pending() == 0 && polk.newton().remembered() == 200);
  train(polk, second, z, 256);
  CHECK(polk.newton().unsolved() == 0);
  RowMatrix samples(456, 2), targets(456, 1);
  samples << first, second;
  targets << y, z;
  const RowMatrix expected =
      ridge_solution(polk.coordinates(samples), targets, Vector::Ones(456), 0.1);
  CHECK(largest_difference(polk.function().statistics().solution(), expected) < 1e-10);
}

// Points are found as by a model that solves on the way; what samples said is told in the end.
TEST(a_model_that_scouts_has_the_same_points_and_learns_on) {
  const auto samples = stream(true, 600, 17);
  const NewtonSettings newton{0.1, 0, kNever, true};
  Polk straight = new_polk("multiclass_hinge", 3, newton);
  Polk scout = new_polk("multiclass_hinge", 3, newton);
  scout.scout();
  for (Polk* polk : {&straight, &scout}) train(*polk, samples.first, samples.second, 16);
  CHECK(scout.dictionary().points() == straight.dictionary().points());
  CHECK_THROWS(scout.scout(), Error);  // it has learned already
  scout.stop_scouting();
  CHECK(scout.prediction_weights() == scout.iterate().weights());
  CHECK(bytes(reload(scout)) == bytes(scout));
  train(scout, samples.first, samples.second, 16);
  CHECK(scout.newton().has_solved() && scout.prediction_weights().allFinite());
}

// A kernel that fails, whenever it does, leaves the model as it was, and learning goes on as if
// nothing had happened.
namespace {

void check_failing_kernel(const Compression& compression, Index batch) {
  const auto samples = stream(false, 200, 16);
  const auto learn = [&](int allowed, bool& failed) {
    int calls = 1 << 30;
    Polk polk(reference::failing_kernel(1, calls),
              settings("squared", 1, compression, {0.1, 0, kNever, true}), 2, 1);
    train(polk, samples.first.topRows(16), samples.second.topRows(16), batch);
    const Index known = polk.samples();
    const RowMatrix weights = polk.prediction_weights();
    const RowMatrix next = samples.first.middleRows(16, 8),
                    wanted = samples.second.middleRows(16, 8);
    calls = allowed;
    try {
      polk.step(next, wanted, unweighted);
      failed = false;
    } catch (const std::runtime_error&) {
      failed = true;
    }
    calls = 1 << 30;
    if (failed) {
      CHECK(polk.samples() == known && polk.prediction_weights() == weights);
      polk.step(next, wanted, unweighted);
    }
    train(polk, samples.first.middleRows(24, 176), samples.second.middleRows(24, 176), batch);
    return polk.prediction_weights();
  };
  bool failed = false;
  const RowMatrix undisturbed = learn(1 << 30, failed);
  CHECK(!failed);
  Index failures = 0;
  for (int allowed = 0; allowed < 12; ++allowed) {
    CHECK(learn(allowed, failed) == undisturbed);
    failures += failed ? 1 : 0;
  }
  CHECK(failures >= 3 && failures < 12);
}

}  // namespace

TEST(a_kernel_that_fails_leaves_the_model_as_it_was) {
  check_failing_kernel(Compression(BudgetSchedule::fixed(0.05), 30), 8);
  for (const Index batch : {2, 8}) check_failing_kernel(Compression(Way::remove, 12), batch);
}

// Whoever finds the points, the weights are solved: removed points take no past with them, and a
// model of the squared loss is the least-squares fit of all samples on those that are left.
TEST(points_that_go_by_any_rule_leave_weights_that_are_solved) {
  const auto samples = stream(false, 3000, 18), test = stream(false, 1000, 19);
  for (const Way way : {Way::remove, Way::merge, Way::nonparametric}) {
    Polk polk = new_polk("squared", 1, {0.1, 0, kNever, false}, Compression(way, 25, 1e9, 3));
    for (int pass = 0; pass < 3; ++pass) {
      train(polk, samples.first, samples.second, 1);
      CHECK(polk.model_order() <= 25);
    }
    RowMatrix values(1000, 1), best(1000, 1);
    polk.predict(test.first, values);
    Polk exact = polk;
    exact.refit(samples.first, samples.second, unweighted);
    exact.predict(test.first, best);
    const double solved = (values - test.second).squaredNorm();
    CHECK(solved < 1.3 * (best - test.second).squaredNorm());
    CHECK((polk.iterate().dictionary().points().rows()) <= 25);
  }
}
