#include <stdexcept>

// Eigen asserts that it does not allocate where that is forbidden, in release builds as well.
#define EIGEN_RUNTIME_NO_MALLOC
#define eigen_assert(condition) \
  if (!(condition)) throw std::logic_error(#condition)

#include <cmath>
#include <limits>
#include <parsimon/loss/losses.hpp>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

using namespace parsimon;

namespace {

struct Case {
  LossPtr loss;
  Index outputs;
  Index classes;  // 0 for regression
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* text : {"squared", "huber(0.7)", "epsilon_insensitive(0.3)",
                           "epsilon_insensitive(0)", "pinball(0.2)", "pinball(0.9)"}) {
    cases.push_back({parse_loss(text), 1, 0});
    cases.push_back({parse_loss(text), 3, 0});
  }
  for (const char* text : {"binary_logistic", "binary_hinge", "binary_squared_hinge"}) {
    cases.push_back({parse_loss(text), 1, 2});
  }
  for (const char* text : {"multiclass_logistic", "multiclass_hinge", "multiclass_squared_hinge"}) {
    cases.push_back({parse_loss(text), 2, 2});
    cases.push_back({parse_loss(text), 5, 5});
  }
  return cases;
}

RowMatrix random_targets(const Case& c, Index n, std::mt19937& random) {
  RowMatrix targets(n, c.loss->target_columns(c.outputs));
  std::uniform_real_distribution<double> real(-2.0, 2.0);
  std::uniform_int_distribution<int> label(0, std::max(1, static_cast<int>(c.classes)) - 1);
  for (Index i = 0; i < targets.size(); ++i) {
    targets.data()[i] = c.classes > 0 ? label(random) : real(random);
  }
  return targets;
}

RowMatrix random_predictions(const Case& c, Index n, std::mt19937& random) {
  std::uniform_real_distribution<double> real(-3.0, 3.0);
  return RowMatrix::NullaryExpr(n, c.outputs, [&] { return real(random); });
}

struct Evaluation {
  Vector values;
  RowMatrix gradient;
};

Evaluation evaluate(const Loss& loss, const RowMatrix& predictions, const RowMatrix& targets) {
  loss.check_targets(targets, predictions.cols());
  Evaluation result{Vector::Constant(predictions.rows(), -7.0),
                    RowMatrix::Constant(predictions.rows(), predictions.cols(), -7.0)};
  loss.evaluate(predictions, targets, result.values, result.gradient);
  return result;
}

// The formulas as they are written, in long double, for predictions of moderate size.
long double brute_force(const std::string& name, const RowVector& f, const RowVector& y) {
  using Real = long double;
  const Real s = y(0) > 0.5 ? 1 : -1;
  const Index label = static_cast<Index>(y(0));
  if (name == "binary_logistic") return std::log1p(std::exp(-s * static_cast<Real>(f(0))));
  const auto half_square = [](Real v) { return v * v / 2; };
  const Real binary = std::max<Real>(0, 1 - s * static_cast<Real>(f(0)));
  if (name == "binary_hinge") return binary;
  if (name == "binary_squared_hinge") return half_square(binary);
  Real sum = 0, wrong = -std::numeric_limits<Real>::infinity();
  for (Index c = 0; c < f.size(); ++c) {
    sum += std::exp(static_cast<Real>(f(c)));
    if (c != label) wrong = std::max<Real>(wrong, f(c));
  }
  if (name == "multiclass_logistic") return std::log(sum) - static_cast<Real>(f(label));
  if (name == "multiclass_hinge") return std::max<Real>(0, 1 + wrong - static_cast<Real>(f(label)));
  if (name == "multiclass_squared_hinge") {
    return half_square(std::max<Real>(0, 1 + wrong - static_cast<Real>(f(label))));
  }

  const Real parameter = name == "squared" ? 0.0L : std::stold(name.substr(name.find('(') + 1));
  Real total = 0;
  for (Index c = 0; c < f.size(); ++c) {
    const Real r = static_cast<Real>(f(c)) - static_cast<Real>(y(c)), size = std::abs(r);
    if (name == "squared") total += r * r / 2;
    if (name[0] == 'h') {
      total += size <= parameter ? r * r / 2 : parameter * (size - parameter / 2);
    }
    if (name[0] == 'e') total += std::max<Real>(0, size - parameter);
    if (name[0] == 'p') total += std::max(-parameter * r, (1 - parameter) * r);
  }
  return total;
}

}  // namespace

TEST(values_agree_with_the_formulas_in_long_double) {
  std::mt19937 random(1);
  for (const Case& c : all_cases()) {
    const RowMatrix f = random_predictions(c, 200, random), y = random_targets(c, 200, random);
    const Evaluation e = evaluate(*c.loss, f, y);
    for (Index i = 0; i < f.rows(); ++i) {
      const double exact = static_cast<double>(brute_force(c.loss->describe(), f.row(i), y.row(i)));
      CHECK_NEAR(e.values(i), exact, 4e-15 * (1.0 + std::abs(exact)));
    }
  }
}

TEST(gradients_agree_with_finite_differences) {
  std::mt19937 random(2);
  const double h = 1e-6;
  for (const Case& c : all_cases()) {
    const RowMatrix f = random_predictions(c, 100, random), y = random_targets(c, 100, random);
    const Evaluation e = evaluate(*c.loss, f, y);
    for (Index k = 0; k < c.outputs; ++k) {
      RowMatrix up = f, down = f;
      up.col(k).array() += h;
      down.col(k).array() -= h;
      const Vector slope =
          (evaluate(*c.loss, up, y).values - evaluate(*c.loss, down, y).values) / (2 * h);
      for (Index i = 0; i < f.rows(); ++i) CHECK_NEAR(slope(i), e.gradient(i, k), 1e-8);
    }
  }
}

TEST(gradients_are_subgradients_and_values_convex) {
  std::mt19937 random(3);
  for (const Case& c : all_cases()) {
    const RowMatrix y = random_targets(c, 500, random);
    RowMatrix f = random_predictions(c, 500, random);
    // Half of the points onto a grid where the kinks are: residuals of 0 and of the tolerance,
    // margins of exactly 1, equal outputs.
    if (c.classes > 0) f.topRows(250) = f.topRows(250).array().round();
    if (c.classes == 0) f.topRows(100) = y.topRows(100);
    if (c.classes == 0) f.middleRows(100, 100) = y.middleRows(100, 100).array() + 0.3;
    const RowMatrix g = random_predictions(c, 500, random);
    const Evaluation at_f = evaluate(*c.loss, f, y), at_g = evaluate(*c.loss, g, y);
    const Evaluation between = evaluate(*c.loss, 0.25 * f + 0.75 * g, y);
    for (Index i = 0; i < f.rows(); ++i) {
      const double tangent = at_f.values(i) + at_f.gradient.row(i).dot(g.row(i) - f.row(i));
      CHECK(at_g.values(i) >= tangent - 1e-12);
      CHECK(between.values(i) <= 0.25 * at_f.values(i) + 0.75 * at_g.values(i) + 1e-12);
      CHECK(at_f.values(i) >= 0.0);
    }
  }
}

TEST(no_gradient_where_the_sample_is_predicted_well_enough) {
  const RowMatrix zero = RowMatrix::Zero(1, 1), one = RowMatrix::Ones(1, 1);
  CHECK(evaluate(PinballLoss(0.3), one, one).gradient(0, 0) == 0.0);
  CHECK(evaluate(EpsilonInsensitiveLoss(1.0), one, zero).gradient(0, 0) == 0.0);
  CHECK(evaluate(EpsilonInsensitiveLoss(0.0), one, one).gradient(0, 0) == 0.0);
  CHECK(evaluate(BinaryHingeLoss(), one, one).gradient(0, 0) == 0.0);
  CHECK(evaluate(BinaryHingeLoss(), -one, zero).gradient(0, 0) == 0.0);
  RowMatrix f(1, 3);
  f << 1.0, 2.0, 1.0;
  CHECK(evaluate(MulticlassHingeLoss(), f, one).gradient.isZero(0.0));
}

TEST(multiclass_hinge_takes_the_best_wrong_class_and_the_first_of_equals) {
  RowMatrix f(3, 4), y(3, 1), expected(3, 4);
  f << 0.0, 0.5, 0.5, 0.1,  //
      0.0, 0.0, 0.0, 0.0,   //
      0.0, 0.0, 0.9, 0.95;
  y << 0, 0, 3;
  expected << -1, 1, 0, 0,  //
      -1, 1, 0, 0,          //
      0, 0, 1, -1;
  const Evaluation e = evaluate(MulticlassHingeLoss(), f, y);
  CHECK(e.gradient == expected);
  CHECK_NEAR(e.values(0), 1.5, 0.0);
  CHECK_NEAR(e.values(2), 0.95, 1e-15);
  CHECK(MulticlassHingeLoss().regularizer_scale() == 2.0);
  CHECK(BinaryHingeLoss().regularizer_scale() == 1.0);
}

TEST(huge_predictions_give_no_nan) {
  for (const Case& c : all_cases()) {
    for (const double size : {1e3, 1e10, 1e100, 1e300, 1e308}) {
      for (int pattern = 0; pattern < 3; ++pattern) {
        RowMatrix f(2, c.outputs);
        for (Index k = 0; k < c.outputs; ++k) {
          f(0, k) = pattern == 0 || (pattern == 1 && k % 2 == 0) ? size : -size;
        }
        f.row(1) = -f.row(0);
        const RowMatrix y = RowMatrix::Zero(2, c.loss->target_columns(c.outputs));
        const Evaluation e = evaluate(*c.loss, f, y);
        CHECK(!e.values.hasNaN());
        CHECK(!e.gradient.hasNaN());
        const bool linear =
            c.classes > 0 && c.loss->describe().find("squared") == std::string::npos;
        if (linear) CHECK((e.gradient.array().abs() <= 1.0).all());
        if (linear && size < 1e308) CHECK(e.values.allFinite());
      }
    }
  }
}

TEST(logistic_losses_keep_their_digits_in_both_tails) {
  RowMatrix f(4, 1), y = RowMatrix::Ones(4, 1);
  f << 40.0, 700.0, -40.0, -1e300;
  const Evaluation e = evaluate(BinaryLogisticLoss(), f, y);
  CHECK_NEAR(e.values(0) / std::exp(-40.0), 1.0, 1e-14);
  CHECK_NEAR(e.gradient(0, 0) / -std::exp(-40.0), 1.0, 1e-14);
  CHECK_NEAR(e.values(1) / std::exp(-700.0), 1.0, 1e-14);
  CHECK_NEAR(e.values(2), 40.0, 1e-13);
  CHECK(e.values(3) == 1e300 && e.gradient(3, 0) == -1.0);

  RowMatrix both(4, 2);
  both << RowMatrix::Zero(4, 1), f;
  const Evaluation m = evaluate(MulticlassLogisticLoss(), both, y);
  for (Index i = 0; i < 4; ++i) {
    CHECK_NEAR(m.values(i), e.values(i), 1e-14 * e.values(i));
    CHECK_NEAR(m.gradient(i, 1), e.gradient(i, 0), 1e-14 * std::abs(e.gradient(i, 0)));
  }
}

TEST(probabilities_are_normalised_and_ordered) {
  RowMatrix f(3, 3), p(3, 3);
  f << 1.0, 2.0, 3.0,      //
      1e300, 0.0, -1e300,  //
      -800.0, -800.0, -801.0;
  MulticlassLogisticLoss().probabilities(f, p);
  for (Index i = 0; i < 3; ++i) CHECK_NEAR(p.row(i).sum(), 1.0, 1e-15);
  CHECK_NEAR(p(0, 2), 1.0 / (1.0 + std::exp(-1.0) + std::exp(-2.0)), 1e-15);
  CHECK(p(1, 0) == 1.0 && p(1, 2) == 0.0);
  CHECK_NEAR(p(2, 0), 1.0 / (2.0 + std::exp(-1.0)), 1e-15);

  RowMatrix one(3, 1), two(3, 2);
  one << 0.0, 30.0, -1e300;
  BinaryLogisticLoss().probabilities(one, two);
  CHECK(two(0, 0) == 0.5 && two(0, 1) == 0.5);
  CHECK_NEAR(two(1, 0) / std::exp(-30.0), 1.0, 1e-12);
  CHECK(two(2, 0) == 1.0 && two(2, 1) == 0.0);
}

// f = exp(z): values are those of the logistic loss of f, and gradients softmax(f) - onehot(y).
TEST(mirror_logistic_is_the_derivative_of_the_logistic_loss_by_exp_z) {
  using Real = long double;
  std::mt19937 random(5);
  const LossPtr loss = parse_loss("mirror_logistic");
  const Case c{loss, 4, 4};
  const RowMatrix z = random_predictions(c, 200, random), y = random_targets(c, 200, random);
  const Evaluation e = evaluate(*loss, z, y);
  RowMatrix p(200, 4);
  dynamic_cast<const ProbabilisticLoss&>(*loss).probabilities(z, p);
  for (Index i = 0; i < z.rows(); ++i) {
    const Index label = static_cast<Index>(y(i, 0));
    Real sum = 0;
    for (Index k = 0; k < 4; ++k) sum += std::exp(std::exp(static_cast<Real>(z(i, k))));
    const Real value = std::log(sum) - std::exp(static_cast<Real>(z(i, label)));
    CHECK_NEAR(e.values(i), static_cast<double>(value), 4e-15 * std::exp(3.0));
    for (Index k = 0; k < 4; ++k) {
      const Real share = std::exp(std::exp(static_cast<Real>(z(i, k)))) / sum;
      // exp(z) <= exp(3) is known to an eps, which is what softmax makes of it in relative terms.
      CHECK_NEAR(p(i, k), static_cast<double>(share), 4e-15 * std::exp(3.0));
      CHECK_NEAR(e.gradient(i, k), static_cast<double>(share) - (k == label ? 1.0 : 0.0),
                 4e-15 * std::exp(3.0));
    }
  }
}

TEST(mirror_logistic_does_not_overflow) {
  const MirrorLogisticLoss loss;
  for (const double size : {1e3, 1e10, 1e300, std::numeric_limits<double>::max()}) {
    RowMatrix z(4, 3), y(4, 1), p(4, 3);
    z << size, -size, 0, -size, -size, -size, size, size, size, -size, 1, 2;
    y << 1, 0, 2, 0;
    const Evaluation e = evaluate(loss, z, y);
    loss.probabilities(z, p);
    CHECK(e.values.allFinite() && (e.values.array() >= 0).all());
    CHECK(e.gradient.allFinite() && (e.gradient.array().abs() <= 1).all());
    for (Index i = 0; i < 4; ++i) {
      CHECK_NEAR(p.row(i).sum(), 1.0, 1e-15);
      CHECK_NEAR(e.gradient.row(i).sum(), 0.0, 1e-15);
    }
    CHECK(p(0, 0) == 1 && e.gradient(0, 0) == 1 && e.gradient(0, 1) == -1);
    for (Index k = 0; k < 3; ++k) {  // exp(-size) = 0 for all, and any number of equals
      CHECK_NEAR(p(1, k), 1.0 / 3, 1e-15);
      CHECK_NEAR(p(2, k), 1.0 / 3, 1e-15);
    }
    CHECK_NEAR(p(3, 2) / p(3, 1), std::exp(std::exp(2.0) - std::exp(1.0)), 1e-12);
  }
}

TEST(mirror_logistic_keeps_the_order_of_the_classes) {
  const MirrorLogisticLoss loss;
  RowMatrix z(5, 3), p(5, 3);
  z << -1, 0.5, 0.4, 5, 5.1, -3, 300, 301, 299, 700, 800, 650, 1e3, 2e3, -1e3;
  loss.probabilities(z, p);
  for (Index i = 0; i < 5; ++i) CHECK(p(i, 1) > p(i, 0) && p(i, 1) > p(i, 2));
  CHECK(loss.describe() == "mirror_logistic");
  CHECK(parse_loss(loss.describe())->describe() == loss.describe());
  CHECK(loss.is_classification() && loss.class_count(3) == 3);
  CHECK_THROWS(loss.class_count(1), Error);
  CHECK_THROWS(loss.check_targets(RowMatrix::Constant(2, 1, 3.0), 3), Error);
}

TEST(evaluation_allocates_nothing_and_takes_blocks) {
  std::mt19937 random(4);
  for (const Case& c : all_cases()) {
    const RowMatrix f = random_predictions(c, 32, random), y = random_targets(c, 32, random);
    const Evaluation whole = evaluate(*c.loss, f, y);
    RowMatrix gradient = RowMatrix::Constant(40, c.outputs + 2, 9.0);
    Vector values = Vector::Constant(40, 9.0);
    Eigen::internal::set_is_malloc_allowed(false);
    c.loss->evaluate(f.topRows(16), y.topRows(16), values.segment(3, 16),
                     gradient.block(3, 1, 16, c.outputs));
    Eigen::internal::set_is_malloc_allowed(true);
    CHECK(values.segment(3, 16) == whole.values.head(16));
    CHECK(gradient.block(3, 1, 16, c.outputs) == whole.gradient.topRows(16));
    CHECK((gradient.col(0).array() == 9.0).all() && (gradient.bottomRows(21).array() == 9.0).all());
  }
}

TEST(description_parses_back) {
  for (const Case& c : all_cases()) {
    CHECK(parse_loss(c.loss->describe())->describe() == c.loss->describe());
  }
  const double odd = 0.1 + 0.2;
  const LossPtr again = parse_loss(HuberLoss(odd).describe());
  CHECK(dynamic_cast<const HuberLoss&>(*again).threshold() == odd);
  CHECK(parse_loss("huber(0.5)")->describe() == "huber(0.5)");
}

TEST(bad_expressions_and_parameters_are_refused) {
  for (const char* text : {"",
                           "foo",
                           "huber",
                           "squared(0)",
                           "huber()",
                           "huber(",
                           "huber(1",
                           "huber(1)x",
                           "huber(nan)",
                           "huber(inf)",
                           "huber(1e999)",
                           "huber(0)",
                           "huber(-1)",
                           "huber(1,2)",
                           "(",
                           "()",
                           "epsilon_insensitive(-0.1)",
                           "pinball(0)",
                           "pinball(1)",
                           "Squared"}) {
    CHECK_THROWS(parse_loss(text), Error);
  }
}

TEST(targets_that_cannot_be_judged_are_refused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  RowMatrix y = RowMatrix::Zero(3, 1);
  CHECK_THROWS(SquaredLoss().check_targets(y, 2), Error);
  CHECK_THROWS(BinaryHingeLoss().check_targets(y, 2), Error);
  CHECK_THROWS(MulticlassHingeLoss().check_targets(y, 1), Error);
  CHECK_THROWS(MulticlassHingeLoss().check_targets(RowMatrix::Zero(3, 2), 2), Error);
  for (const double label : {nan, -1.0, 0.5, 3.0, 1e300, std::numeric_limits<double>::infinity()}) {
    y(2, 0) = label;
    CHECK_THROWS(MulticlassLogisticLoss().check_targets(y, 3), Error);
    CHECK_THROWS(BinaryLogisticLoss().check_targets(y, 1), Error);
  }
  y(2, 0) = nan;
  CHECK_THROWS(HuberLoss(1.0).check_targets(y, 1), Error);
}

// -- the smooth losses of second-order solvers ---------------------------------------------------

namespace {

struct Majorant {
  Vector values;
  RowMatrix gradient;
  Vector curvature;
};

Majorant majorise(const Loss& loss, const RowMatrix& predictions, const RowMatrix& targets) {
  Majorant result{Vector::Constant(predictions.rows(), -7.0),
                  RowMatrix::Constant(predictions.rows(), predictions.cols(), -7.0),
                  Vector::Constant(predictions.rows(), -7.0)};
  loss.majorise(predictions, targets, result.values, result.gradient, result.curvature);
  return result;
}

bool has_quiet_samples(const Loss& loss) {
  const std::string name = loss.describe();
  return name.find("hinge") != std::string::npos || name[0] == 'e';
}

// Where kinks, joints and quiet samples are: residuals of 0, of the tolerance, of the smoothing.
RowMatrix corners(const Case& c, const RowMatrix& targets, std::mt19937& random) {
  RowMatrix f = random_predictions(c, targets.rows(), random);
  const std::vector<double> offsets{0.0, 0.3, -0.3, 0.7, -0.7, 0.05, -0.05, 0.35, 1e-12, 1e3, -1e3};
  for (Index i = 0; i < targets.rows() / 2; ++i) {
    const double offset = offsets[static_cast<std::size_t>(i) % offsets.size()];
    if (c.classes > 0) f.row(i) = f.row(i).array().round();
    if (c.classes == 0) f.row(i) = targets.row(i).array() + offset;
  }
  return f;
}

}  // namespace

TEST(gradients_of_smooth_losses_agree_with_finite_differences) {
  std::mt19937 random(11);
  const double h = 1e-6;
  for (const Case& c : all_cases()) {
    CHECK(c.loss->has_curvature());
    const RowMatrix f = random_predictions(c, 200, random), y = random_targets(c, 200, random);
    const Majorant m = majorise(*c.loss, f, y);
    for (Index k = 0; k < c.outputs; ++k) {
      RowMatrix up = f, down = f;
      up.col(k).array() += h;
      down.col(k).array() -= h;
      const Vector slope =
          (majorise(*c.loss, up, y).values - majorise(*c.loss, down, y).values) / (2 * h);
      // The slope itself may change by curvature * h across a joint.
      for (Index i = 0; i < f.rows(); ++i) CHECK_NEAR(slope(i), m.gradient(i, k), 2e-5);
    }
  }
}

// A smooth loss has no kinks: over a step of 1e-4 its slope changes by at most 20 times that, the
// largest curvature of all.
TEST(slopes_of_smooth_losses_do_not_jump) {
  std::mt19937 random(12);
  for (const Case& c : all_cases()) {
    if (c.outputs > 1 && c.classes > 0) continue;  // the best wrong class may change
    const RowMatrix y = random_targets(c, 1, random);
    for (double t = -3; t < 3; t += 1e-4) {
      const RowMatrix f = RowMatrix::Constant(1, c.outputs, t);
      const RowMatrix g = RowMatrix::Constant(1, c.outputs, t + 1e-4);
      const RowMatrix jump = majorise(*c.loss, g, y).gradient - majorise(*c.loss, f, y).gradient;
      CHECK(jump.cwiseAbs().maxCoeff() < 2.1e-3);
    }
  }
}

// l(p) <= l(f) + <g, p - f> + h/2 ||p - f||^2, everywhere; along each output alone for the hinge
// losses of two outputs. With more of them the best wrong class may change, and with several
// targets some may be within the tolerance: then there is no such bound.
TEST(parabolas_lie_above_smooth_losses) {
  std::mt19937 random(13);
  for (const Case& c : all_cases()) {
    const bool along_outputs = c.classes > 0 && c.loss->describe().find("multiclass_") == 0 &&
                               c.loss->describe().find("hinge") != std::string::npos;
    if ((along_outputs || has_quiet_samples(*c.loss)) && c.outputs > (along_outputs ? 2 : 1)) {
      continue;
    }
    const RowMatrix y = random_targets(c, 400, random), f = corners(c, y, random);
    const Majorant at = majorise(*c.loss, f, y);
    for (int direction = 0; direction < 2 * c.outputs; ++direction) {
      for (const double size : {1e-3, 0.04, 0.3, 1.0, 2.5, 10.0, 2000.0}) {
        RowMatrix move = RowMatrix::Zero(400, c.outputs);
        if (along_outputs) {
          move.col(direction / 2).setConstant(direction % 2 == 0 ? size : -size);
        } else {
          move = size * random_predictions(c, 400, random);
        }
        const Majorant there = majorise(*c.loss, f + move, y);
        for (Index i = 0; i < f.rows(); ++i) {
          // A sample that says nothing has no parabola; its loss is held where it is by others.
          if (at.curvature(i) == 0) continue;
          const double bound = at.values(i) + at.gradient.row(i).dot(move.row(i)) +
                               0.5 * at.curvature(i) * move.row(i).squaredNorm();
          CHECK(there.values(i) <= bound + 1e-12 * (1 + std::abs(bound)));
        }
      }
    }
  }
}

TEST(a_sample_has_no_curvature_exactly_where_it_has_no_gradient) {
  std::mt19937 random(14);
  for (const Case& c : all_cases()) {
    const RowMatrix y = random_targets(c, 2000, random), f = corners(c, y, random);
    const Majorant m = majorise(*c.loss, f, y);
    Index quiet = 0;
    for (Index i = 0; i < f.rows(); ++i) {
      CHECK(m.curvature(i) >= 0);
      if (!has_quiet_samples(*c.loss)) CHECK(m.curvature(i) > 0);
      if (has_quiet_samples(*c.loss)) {
        CHECK((m.curvature(i) == 0) == m.gradient.row(i).isZero(0.0));
        CHECK(m.curvature(i) > 0 || m.values(i) == 0);
        quiet += m.curvature(i) == 0 ? 1 : 0;
      }
    }
    CHECK((quiet > 20) == has_quiet_samples(*c.loss));
  }
}

// As near to the loss itself as was said: kinks are rounded off over 0.05, hinges over 1.
TEST(smooth_losses_are_near_the_losses) {
  std::mt19937 random(15);
  for (const Case& c : all_cases()) {
    const std::string name = c.loss->describe();
    const RowMatrix f = random_predictions(c, 500, random), y = random_targets(c, 500, random);
    // The smooth hinge is near twice the hinge: it has the slope 2 where that has 1.
    const bool hinge = name == "binary_hinge" || name == "multiclass_hinge";
    const Vector difference =
        ((hinge ? 2 : 1) * evaluate(*c.loss, f, y).values - majorise(*c.loss, f, y).values)
            .cwiseAbs();
    double allowed = 1e-14;
    if (name[0] == 'e' || name[0] == 'p') allowed = 0.025 * static_cast<double>(c.outputs) + 1e-12;
    if (hinge) allowed = 2 + 1e-12;
    CHECK(difference.maxCoeff() <= allowed);
  }
}

TEST(curvatures_are_those_of_the_formulas) {
  const auto curvature = [](const char* loss, double f, double y) {
    return majorise(*parse_loss(loss), RowMatrix::Constant(1, 1, f), RowMatrix::Constant(1, 1, y))
        .curvature(0);
  };
  CHECK(curvature("squared", 5, 1) == 1 && curvature("squared(2)", 5, 1) == 2);
  CHECK(curvature("huber(0.5)", 1.5, 1) == 1 && curvature("huber(0.5)", 3, 1) == 0.25);
  CHECK(curvature("epsilon_insensitive(0.5)", 1.5, 1) == 0);
  CHECK(curvature("epsilon_insensitive(0.5)", 3.5, 1) == 0.5);
  CHECK_NEAR(curvature("epsilon_insensitive(0.5)", 1.51, 1), 20, 1e-12);
  CHECK(curvature("pinball(0.3)", 3, 1) == 0.25 && curvature("pinball(0.3)", 1, 1) == 10);
  CHECK(curvature("binary_logistic", 0, 1) == 0.25);
  CHECK_NEAR(curvature("binary_logistic", 1e-4, 1), 0.25, 1e-9);
  CHECK_NEAR(curvature("binary_logistic", -3, 1), std::tanh(1.5) / 6, 1e-15);
  CHECK(curvature("binary_hinge", 0.5, 1) == 1 && curvature("binary_hinge", -3, 1) == 0.5);
  CHECK(curvature("binary_hinge", 1, 1) == 0 && curvature("binary_hinge", -1, 0) == 0);
  CHECK(curvature("binary_squared_hinge", -3, 1) == 1);
  RowMatrix f(1, 3);
  f << 0, 2, 1;
  CHECK(majorise(MulticlassLogisticLoss(), f, RowMatrix::Zero(1, 1)).curvature(0) == 0.5);
  CHECK_NEAR(majorise(MulticlassHingeLoss(), f, RowMatrix::Zero(1, 1)).curvature(0), 2.0 / 3,
             1e-15);
  CHECK(majorise(MulticlassSquaredHingeLoss(), f, RowMatrix::Ones(1, 1)).curvature(0) == 0);
}

TEST(smooth_losses_of_extreme_predictions_are_finite) {
  for (const Case& c : all_cases()) {
    for (const double size : {1e-300, 1e-160, 1e-16, 1e8, 1e150}) {
      for (int pattern = 0; pattern < 4; ++pattern) {
        RowMatrix f(1, c.outputs);
        for (Index k = 0; k < c.outputs; ++k) f(0, k) = (k + pattern) % 2 == 0 ? size : -size;
        if (pattern > 1) f = f.cwiseAbs();
        const RowMatrix y = RowMatrix::Zero(1, c.loss->target_columns(c.outputs));
        const Majorant m = majorise(*c.loss, f, y);
        CHECK(m.values.allFinite() && m.gradient.allFinite() && m.curvature.allFinite());
        CHECK(m.curvature(0) >= 0 && m.curvature(0) <= 20);
        // Where the parabola has its minimum is finite, too.
        if (m.curvature(0) > 0) CHECK((m.gradient / m.curvature(0)).allFinite());
      }
    }
  }
}

TEST(a_loss_without_curvature_says_so) {
  CHECK(!MirrorLogisticLoss().has_curvature());
  CHECK_THROWS(majorise(MirrorLogisticLoss(), RowMatrix::Zero(1, 3), RowMatrix::Zero(1, 1)), Error);
}
