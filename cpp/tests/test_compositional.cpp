#include <parsimon/algorithm/function_problem.hpp>
#include <parsimon/algorithm/polk.hpp>
#include <parsimon/io/colk_file.hpp>

#include "check.hpp"
#include "failing_kernel.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

namespace {

const auto forever = [] { return true; };
const Vector unweighted(0);
const auto kernel = std::make_shared<Gaussian>(0.5);

struct Samples {
  RowMatrix x, y;
};

Samples curve(Index count, unsigned seed) {
  Random random(seed);
  Samples samples{random.normal_points(count, 2), RowMatrix(count, 1)};
  const RowMatrix noise = random.normal_points(count, 1);
  for (Index i = 0; i < count; ++i) {
    samples.y(i, 0) = std::sin(2 * samples.x(i, 0)) + 0.3 * noise(i, 0);
  }
  return samples;
}

Risk risk(Risk::Kind kind, double weight = 0.3) {
  Risk result;
  result.kind = kind;
  result.weight = weight;
  result.parameter = kind == Risk::Kind::cvar ? 0.8 : 4;
  return result;
}

CompositionalSettings settings(double budget) {
  CompositionalSettings result;
  result.step = StepSchedule::constant(0.2);
  result.tracking = StepSchedule::constant(0.1);
  result.compression = BudgetSchedule::fixed(budget);
  result.regularization = 1e-3;
  result.average = true;
  return result;
}

Colk make_colk(const Risk& measure, double budget = 0.01) {
  return Colk(kernel, RiskProblem(std::make_shared<SquaredLoss>(), measure), settings(budget), 2,
              1);
}

const std::vector<Risk::Kind> all_kinds = {Risk::Kind::none, Risk::Kind::semideviation,
                                           Risk::Kind::semivariance, Risk::Kind::moments,
                                           Risk::Kind::cvar};

// E l + w D[l] over all predictions, with the inner expectation or the value at risk u.
double objective(const Risk& measure, const RowMatrix& f, const RowMatrix& y, double u) {
  const Vector losses = 0.5 * (f - y).rowwise().squaredNorm();
  const double mean = losses.mean();
  double dispersion = 0;
  for (const double loss : losses) {
    if (measure.kind == Risk::Kind::cvar) {
      dispersion += u + std::max(0.0, loss - u) / (1 - measure.parameter);
    } else {
      double slope = 0;
      dispersion += measure.dispersion(loss - mean, slope);
    }
  }
  dispersion /= static_cast<double>(losses.size());
  return (measure.kind == Risk::Kind::cvar ? 1 - measure.weight : 1) * mean +
         measure.weight * dispersion;
}

}  // namespace

// With theta = xi = all samples and the exact mean as what is tracked, the two parts of the
// quasi-gradient add up to the gradient of the empirical objective.
TEST(quasi_gradient_is_the_gradient_of_the_empirical_objective) {
  Random random(1);
  const RowMatrix f = random.normal_points(40, 1), y = random.normal_points(40, 1);
  const Vector exact = 0.5 * (f - y).rowwise().squaredNorm();
  for (const Risk::Kind kind : all_kinds) {
    const Risk measure = risk(kind);
    RiskProblem problem(std::make_shared<SquaredLoss>(), measure);
    RowVector g = RowVector::Constant(problem.tracked(), exact.mean());
    RowMatrix direct(40, 1), through(40, 1);
    RowVector by_g = RowVector::Zero(problem.tracked());
    Vector losses(40);
    RiskRecord record;
    problem.outer(f, y, Vector::Ones(f.rows()), g, direct, by_g, losses, record);
    through.setZero();
    if (problem.needs_pairs()) problem.inner(f, y, by_g, through);
    CHECK_NEAR(record.mean, exact.mean(), 1e-14);
    for (Index i = 0; i < 40; ++i) {
      const double h = 1e-6;
      RowMatrix up = f, down = f;
      up(i, 0) += h;
      down(i, 0) -= h;
      const double slope =
          (objective(measure, up, y, exact.mean()) - objective(measure, down, y, exact.mean())) /
          (2 * h);
      CHECK_NEAR((direct(i, 0) + through(i, 0)) / 40, slope, 2e-8);
    }
  }
}

TEST(without_risk_it_is_polk_to_the_last_bit) {
  const Samples samples = curve(400, 2);
  for (const double budget : {0.0, 0.01}) {
    Colk colk = make_colk(risk(Risk::Kind::none, 0), budget);
    const CompositionalSettings s = settings(budget);
    Polk polk(kernel,
              {std::make_shared<SquaredLoss>(), s.step, s.compression, s.regularization, true}, 2,
              1);
    colk.run(samples.x, samples.y, unweighted, 7, forever);
    polk.run(samples.x, samples.y, unweighted, 7, forever);
    CHECK(RowMatrix(colk.function().weights()) == RowMatrix(polk.function().weights()));
    CHECK(RowMatrix(colk.dictionary().points()) ==
          RowMatrix(polk.function().dictionary().points()));
  }
}

// (82)-(83) for one pair per step, without compression, in plain loops.
TEST(one_pair_a_step_is_the_printed_update) {
  const Samples samples = curve(200, 3);
  Risk measure = risk(Risk::Kind::moments, 0.1);
  measure.clip = 1;
  Colk colk(kernel, RiskProblem(std::make_shared<SquaredLoss>(2), measure), settings(0), 2, 1);
  colk.run(samples.x, samples.y, unweighted, 2, forever);

  std::vector<double> weights;
  double g = 0;
  const auto f = [&](Index i) {
    double value = 0;
    for (std::size_t m = 0; m < weights.size(); ++m) {
      const RowVector d = samples.x.row(static_cast<Index>(m)) - samples.x.row(i);
      value += weights[m] * std::exp(-d.squaredNorm() / (2 * 0.25));
    }
    return value - samples.y(i, 0);
  };
  for (Index t = 0; t < 200; t += 2) {
    const double r = f(t), other = f(t + 1);
    g = t == 0 ? other * other : 0.9 * g + 0.1 * other * other;
    const double d = r * r - g;
    const double pull = std::clamp(0.1 * (2 * d + 3 * d * d + 4 * d * d * d), -1.0, 1.0);
    for (double& w : weights) w *= 1 - 0.2 * 1e-3;
    weights.push_back(-0.2 * (1 + pull) * 2 * r);
    weights.push_back(0.2 * pull * 2 * other);
  }
  CHECK_NEAR(colk.tracked()(0), g, 1e-12);
  CHECK(colk.model_order() == 200);
  for (Index i = 0; i < 200; ++i) {
    CHECK_NEAR(colk.function().weights()(i, 0), weights[static_cast<std::size_t>(i)], 1e-12);
  }
}

TEST(functions_on_blocks_make_the_same_model) {
  const Samples samples = curve(300, 4);
  Colk colk = make_colk(risk(Risk::Kind::moments));
  ProblemFunctions functions;
  const auto losses = [](const ConstRows& f, const ConstRows& y) -> RowMatrix {
    return 0.5 * (f - y).cwiseAbs2();
  };
  const auto slope = [](double d) { return 0.3 * (2 * d + 3 * d * d + 4 * d * d * d); };
  functions.inner = losses;
  functions.inner_slopes = [](const ConstRows& f, const ConstRows& y) -> RowMatrix {
    return f - y;
  };
  functions.by_tracked = [=](const ConstRows& f, const ConstRows& y, const RowVector& g) {
    return RowMatrix(losses(f, y).unaryExpr([&](double l) { return -slope(l - g(0)); }));
  };
  functions.by_prediction = [=](const ConstRows& f, const ConstRows& y, const RowVector& g) {
    const RowMatrix scale = losses(f, y).unaryExpr([&](double l) { return 1 + slope(l - g(0)); });
    return RowMatrix(scale.cwiseProduct(f - y));
  };
  Compositional<FunctionProblem> general(kernel, FunctionProblem(functions, 1), settings(0.01), 2,
                                         1);
  colk.run(samples.x, samples.y, unweighted, 6, forever);
  general.run(samples.x, samples.y, unweighted, 6, forever);
  CHECK(colk.model_order() == general.model_order());
  CHECK((colk.prediction_weights() - general.prediction_weights()).cwiseAbs().maxCoeff() < 1e-10);

  functions.inner = [](const ConstRows&, const ConstRows&) -> RowMatrix { return RowMatrix(1, 3); };
  Compositional<FunctionProblem> wrong(kernel, FunctionProblem(functions, 1), settings(0), 2, 1);
  CHECK_THROWS(wrong.run(samples.x, samples.y, unweighted, 6, forever), Error);
  CHECK(wrong.model_order() == 0 && wrong.samples() == 0);
}

// One sample at a time, theta is the new one and xi the one before: as in mini-batches of such
// pairs.
TEST(single_samples_keep_the_risk) {
  const Samples samples = curve(40, 11);
  for (const Risk::Kind kind : {Risk::Kind::semideviation, Risk::Kind::moments}) {
    Colk alone = make_colk(risk(kind), 0), paired = make_colk(risk(kind), 0);
    Colk neutral = make_colk(risk(kind, 0), 0);
    alone.run(samples.x, samples.y, unweighted, 1, forever);
    neutral.run(samples.x, samples.y, unweighted, 1, forever);
    paired.run(samples.x.topRows(1), samples.y.topRows(1), unweighted, 1, forever);
    for (Index i = 1; i < 40; ++i) {
      RowMatrix x(2, 2), y(2, 1);
      x << samples.x.row(i), samples.x.row(i - 1);
      y << samples.y.row(i), samples.y.row(i - 1);
      paired.run(x, y, unweighted, 2, forever);
    }
    RowMatrix ours(40, 1), theirs(40, 1), without(40, 1);
    alone.predict(samples.x, ours);
    paired.predict(samples.x, theirs);
    neutral.predict(samples.x, without);
    CHECK((ours - theirs).cwiseAbs().maxCoeff() < 1e-12);
    CHECK((ours - without).cwiseAbs().maxCoeff() > 1e-2);
    CHECK(alone.samples() == 40);
  }
}

TEST(the_sample_before_is_in_the_file_and_goes_with_the_weights) {
  const Samples samples = curve(60, 12);
  const Vector weights = (Vector::Random(60).array() + 1.5).matrix();
  Colk straight = make_colk(risk(Risk::Kind::semideviation));
  straight.run(samples.x.topRows(30), samples.y.topRows(30), weights.head(30), 1, forever);
  Colk again = colk_from_archive(Archive::from_bytes(to_archive(straight).to_bytes()));
  for (Colk* model : {&straight, &again}) {
    model->run(samples.x.bottomRows(30), samples.y.bottomRows(30), weights.tail(30), 1, forever);
  }
  CHECK(to_archive(again).to_bytes() == to_archive(straight).to_bytes());
  Archive archive = to_archive(straight);
  archive.set("latest.sample", Vector(Vector::Zero(3)));
  CHECK_THROWS(colk_from_archive(archive), Error);
}

TEST(where_the_outer_function_does_not_see_samples_all_of_a_mini_batch_is_xi) {
  const Samples samples = curve(40, 13);
  ProblemFunctions functions;
  functions.inner = [](const ConstRows& f, const ConstRows& y) -> RowMatrix { return f - y; };
  functions.inner_slopes = [](const ConstRows& f, const ConstRows&) -> RowMatrix {
    return RowMatrix::Ones(f.rows(), 1);
  };
  functions.by_tracked = [](const ConstRows& f, const ConstRows&, const RowVector& g) {
    return RowMatrix(RowMatrix::Constant(f.rows(), 1, 2 * g(0)));
  };
  Compositional<FunctionProblem> model(kernel, FunctionProblem(functions, 1, false), settings(0), 2,
                                       1);
  model.run(samples.x, samples.y, unweighted, 40, forever);
  CHECK(model.model_order() == 40);
  const double mean = -samples.y.mean();
  CHECK_NEAR(model.tracked()(0), mean, 1e-12);
  const RowMatrix weights = model.iterate().weights();
  for (Index i = 0; i < 40; ++i) CHECK_NEAR(weights(i, 0), -0.2 * 2 * mean / 40, 1e-12);
  functions.by_prediction = functions.by_tracked;
  CHECK_THROWS(FunctionProblem(functions, 1, false), Error);
}

TEST(a_step_that_diverges_changes_nothing) {
  Samples samples = curve(60, 5);
  samples.y *= 1e40;
  Colk colk = make_colk(risk(Risk::Kind::moments), 0);
  CHECK_THROWS(colk.run(samples.x, samples.y, unweighted, 2, forever), DivergenceError);
  const std::string before = to_archive(colk).to_bytes();
  CHECK_THROWS(colk.run(samples.x, samples.y, unweighted, 2, forever), DivergenceError);
  CHECK(to_archive(colk).to_bytes() == before);
}

TEST(a_model_that_is_read_back_goes_on_with_the_same_bits) {
  const Samples samples = curve(300, 6);
  for (const Risk::Kind kind : all_kinds) {
    Colk straight = make_colk(risk(kind));
    straight.run(samples.x.topRows(150), samples.y.topRows(150), unweighted, 8, forever);
    Colk again = colk_from_archive(Archive::from_bytes(to_archive(straight).to_bytes()));
    straight.run(samples.x.bottomRows(150), samples.y.bottomRows(150), unweighted, 8, forever);
    again.run(samples.x.bottomRows(150), samples.y.bottomRows(150), unweighted, 8, forever);
    CHECK(to_archive(again).to_bytes() == to_archive(straight).to_bytes());
  }
  Archive archive = to_archive(make_colk(risk(Risk::Kind::cvar)));
  archive.set("risk", std::string("bravery"));
  CHECK_THROWS(colk_from_archive(archive), Error);
  archive.set("risk", std::string("cvar"));
  archive.set("tracked", Vector(Vector::Zero(1)));
  CHECK_THROWS(colk_from_archive(archive), Error);
}

TEST(files_with_weights_that_square_to_infinity_are_refused) {
  const Samples samples = curve(20, 8);
  const Vector rewards = samples.y.col(0), ahead = Vector::Constant(20, 0.9);
  const Vector ratios = Vector::Ones(20);
  Colk colk = make_colk(risk(Risk::Kind::cvar));
  colk.run(samples.x, samples.y, unweighted, 8, forever);
  PolicyEvaluation policy(kernel, PolicyEvaluationSettings(), 2);
  policy.run({samples.x, rewards, 2 * samples.x, ahead, ratios}, 1, forever);
  const auto check = [](const Archive& good, const std::string& name, auto read) {
    RowMatrix weights = good.get_matrix(name);
    for (const double bad : {1e100, -1e300}) {
      weights(weights.rows() - 1, 0) = bad;
      Archive archive = good;
      archive.set(name, weights);
      CHECK_THROWS(read(archive), Error);
    }
  };
  const auto read_colk = [](const Archive& archive) { return colk_from_archive(archive); };
  const auto read_policy = [](const Archive& archive) {
    return policy_evaluation_from_archive(archive);
  };
  check(to_archive(colk), "weights", read_colk);
  check(to_archive(policy), "weights", read_policy);
  check(to_archive(policy), "tracker.weights", read_policy);
}

// A large tracker moves V, whose own values are small.
TEST(a_tracker_that_has_grown_beyond_all_bounds_moves_nothing) {
  PolicyEvaluation policy(std::make_shared<Linear>(), PolicyEvaluationSettings(), 2);
  const RowMatrix states = RowMatrix::Constant(1, 2, 1.0), far = RowMatrix::Constant(1, 2, 1e10);
  const Vector one = Vector::Ones(1);
  policy.run({states, one, states, 0.9 * one, one}, 1, forever);
  Archive archive = to_archive(policy);
  archive.set("tracker.weights", RowMatrix(RowMatrix::Constant(1, 1, 9e99)));
  PolicyEvaluation grown = policy_evaluation_from_archive(archive);
  const std::string before = to_archive(grown).to_bytes();
  CHECK_THROWS(grown.run({far, one, far, 0.9 * one, one}, 1, forever), DivergenceError);
  CHECK(to_archive(grown).to_bytes() == before);
}

TEST(a_cap_is_held_and_kept_in_the_file) {
  const Samples samples = curve(300, 9);
  const Vector rewards = samples.y.col(0), ahead = Vector::Constant(300, 0.9);
  const Vector ratios = Vector::Ones(300);
  CompositionalSettings of_colk = settings(0.01);
  of_colk.compression = {BudgetSchedule::fixed(0.01), 7};
  Colk colk(kernel, RiskProblem(std::make_shared<SquaredLoss>(), risk(Risk::Kind::cvar)), of_colk,
            2, 1);
  PolicyEvaluationSettings of_policy;
  of_policy.compression = {BudgetSchedule::fixed(1e-4), 9};
  of_policy.tracker_compression = {BudgetSchedule::fixed(1e-4), 5};
  PolicyEvaluation policy(kernel, of_policy, 2);
  for (int round = 0; round < 2; ++round) {
    colk.run(samples.x, samples.y, unweighted, 8, forever);
    policy.run({samples.x, rewards, 0.9 * samples.x, ahead, ratios}, 3, forever);
    CHECK(colk.model_order() == 7);
    CHECK(policy.model_order() == 9 && policy.tracker().model_order() == 5);
    colk = colk_from_archive(to_archive(colk));
    policy = policy_evaluation_from_archive(to_archive(policy));
  }
}

// A kernel written in Python may fail at any moment, between the two functions, too.
TEST(a_kernel_that_fails_leaves_the_value_function_and_its_tracker_as_they_were) {
  int calls_left = 1 << 30;
  const Samples samples = curve(120, 10);
  const Vector rewards = samples.y.col(0), ahead = Vector::Constant(120, 0.9);
  const Vector ratios = Vector::Ones(120);
  for (const double budget : {0.0, 1e-3}) {
    PolicyEvaluationSettings given;
    given.compression = given.tracker_compression = BudgetSchedule::fixed(budget);
    PolicyEvaluation policy(reference::failing_kernel(1, calls_left), given, 2);
    const Transitions all{samples.x, rewards, 0.9 * samples.x, ahead, ratios};
    int failures = 0;
    for (Index start = 0; start < 120; start += 3) {
      calls_left = 1 << 30;
      const std::string before = to_archive(policy).to_bytes();
      for (int calls = 0;; ++calls) {
        calls_left = calls;
        try {
          policy.run(all.part(start, 3), 3, forever);
          break;
        } catch (const std::runtime_error&) {
          ++failures;
          CHECK(to_archive(policy).to_bytes() == before);
        }
      }
    }
    CHECK(failures > 120 && policy.model_order() > 10 && policy.tracker().model_order() > 10);
  }
}

TEST(policy_evaluation_reads_its_tracker_before_updating_it) {
  Random random(7);
  const RowMatrix x = random.normal_points(50, 2), y = random.normal_points(50, 2);
  const Vector rewards = random.normal_points(50, 1).col(0);
  Vector discounts = Vector::Constant(50, 0.9);
  discounts(13) = 0;
  const Vector ratios = (Vector::Random(50).array() + 1).matrix();
  for (const bool gradient : {true, false}) {
    PolicyEvaluationSettings s;
    s.gradient = gradient;
    s.average = false;
    PolicyEvaluation model(kernel, s, 2);
    model.run({x, rewards, y, discounts, ratios}, 1, forever);

    RowMatrix points(100, 2);
    Vector value = Vector::Zero(100), tracker = Vector::Zero(100);
    points << x, y;
    RowMatrix gram(100, 100);
    for (Index i = 0; i < 100; ++i) {
      for (Index j = 0; j < 100; ++j) {
        gram(i, j) = std::exp(-(points.row(i) - points.row(j)).squaredNorm() / (2 * 0.25));
      }
    }
    for (Index t = 0; t < 50; ++t) {
      const double ahead = discounts(t);
      const double difference =
          rewards(t) + ahead * gram.row(50 + t).dot(value) - gram.row(t).dot(value);
      const double expected = gradient ? gram.row(t).dot(tracker) : difference;
      const double step = 0.1 * ratios(t);
      value(t) += step * expected;
      if (!gradient) continue;
      value(50 + t) -= step * ahead * expected;
      tracker(t) += step * (difference - expected);
    }
    RowMatrix values(50, 1);
    model.predict(x, values);
    CHECK((values.col(0) - gram.topRows(50) * value).cwiseAbs().maxCoeff() < 1e-12);
    const PolicyEvaluation again =
        policy_evaluation_from_archive(Archive::from_bytes(to_archive(model).to_bytes()));
    CHECK(to_archive(again).to_bytes() == to_archive(model).to_bytes());
  }
}
