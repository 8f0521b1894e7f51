#include "parsimon/algorithm/moving_points.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "kernel_cases.hpp"
#include "parsimon/linalg/parallel.hpp"
#include "parsimon/loss/losses.hpp"
#include "parsimon/loss/parse.hpp"

using namespace parsimon;
using namespace kernel_cases;

namespace {

constexpr Index kFeatures = 3, kPoints = 6, kSamples = 9;

RowMatrix targets_for(const Loss& loss, Index samples, Index outputs) {
  RowMatrix targets = normal(samples, loss.target_columns(outputs), 5);
  if (!loss.is_classification()) return targets;
  for (Index i = 0; i < samples; ++i)
    targets(i, 0) = static_cast<double>(i % std::max<Index>(outputs, 2));
  return targets;
}

struct Example {
  KernelPtr kernel;
  LossPtr loss;
  Index outputs;
  bool stretches = false;
  RowMatrix points = normal(kPoints, kFeatures, 1);
  RowMatrix weights = normal(kPoints, outputs, 2);
  RowMatrix samples = normal(kSamples, kFeatures, 3);
  RowMatrix targets = targets_for(*loss, kSamples, outputs);
  Vector sample_weights = normal(kSamples, 1, 4).array().abs().matrix();

  MovingPoints moving(const RowMatrix& d, const RowMatrix& w, const KernelPtr& k) const {
    return {k, loss, d, w, {0.3, RowVector::Ones(kFeatures), 0.1, 0.1, stretches ? 0.1 : 0.0}};
  }
  double value(const RowMatrix& d, const RowMatrix& w) const {
    return moving(d, w, kernel).slope(samples, targets, sample_weights).value;
  }
};

// Of each number of `at`, by central differences.
template <class Value>
RowMatrix differences(const RowMatrix& at, const Value& value) {
  constexpr double step = 1e-5;
  RowMatrix gradient(at.rows(), at.cols()), moved = at;
  for (Index i = 0; i < at.size(); ++i) {
    moved.data()[i] = at.data()[i] + step;
    const double up = value(moved);
    moved.data()[i] = at.data()[i] - step;
    gradient.data()[i] = (up - value(moved)) / (2 * step);
    moved.data()[i] = at.data()[i];
  }
  return gradient;
}

double largest(const RowMatrix& x) { return x.array().abs().maxCoeff(); }

void check_gradients(const Example& e) {
  const auto slope =
      e.moving(e.points, e.weights, e.kernel).slope(e.samples, e.targets, e.sample_weights);
  const RowMatrix by_points =
      differences(e.points, [&](const RowMatrix& d) { return e.value(d, e.weights); });
  const RowMatrix by_weights =
      differences(e.weights, [&](const RowMatrix& w) { return e.value(e.points, w); });
  CHECK_NEAR(largest(slope.points - by_points), 0, 1e-7 * (1 + largest(by_points)));
  CHECK_NEAR(largest(slope.weights - by_weights), 0, 1e-7 * (1 + largest(by_weights)));
}

LossPtr loss(const std::string& text) { return parse_loss(text); }

}  // namespace

TEST(gradients_equal_central_differences_for_every_kernel) {
  const RowVector h = normal(1, kFeatures, 7).array().abs() + 0.8;
  for (const RowVector& lengths : {scalar(1.3), h}) {
    for (const Case& c : all_cases(lengths))
      check_gradients({c.kernel, loss("multiclass_logistic"), 3});
  }
}

TEST(gradients_equal_central_differences_for_every_loss) {
  const KernelPtr kernel = std::make_shared<Gaussian>(1.3);
  for (const char* name : {"multiclass_hinge", "multiclass_squared_hinge", "multiclass_logistic",
                           "one_vs_rest_squared_hinge"}) {
    check_gradients({kernel, loss(name), 4});
  }
  for (const char* name : {"binary_hinge", "binary_squared_hinge", "binary_logistic", "squared",
                           "huber(1)", "epsilon_insensitive(0.1)", "pinball(0.3)"}) {
    check_gradients({kernel, loss(name), 1});
  }
  check_gradients({kernel, loss("squared"), 2});
}

TEST(sums_and_products_have_the_gradients_of_their_parts) {
  const auto gaussian = std::make_shared<Gaussian>(1.1);
  const auto matern = std::make_shared<Matern>(0.9, 2.5);
  const auto constant = std::make_shared<Constant>();
  const auto cubic = std::make_shared<Polynomial>(3, 0.2, 1.0);
  const std::vector<KernelPtr> two{gaussian, matern}, mixed{cubic, gaussian, constant};
  const KernelPtr scaled = std::make_shared<Scaled>(0.7, std::make_shared<Product>(mixed));
  const std::vector<KernelPtr> nested{scaled, constant, matern};
  for (const KernelPtr& kernel :
       {KernelPtr(std::make_shared<Sum>(two)), KernelPtr(std::make_shared<Product>(mixed)),
        KernelPtr(std::make_shared<Sum>(nested))}) {
    check_gradients({kernel, loss("multiclass_logistic"), 3});
  }
}

TEST(stretches_have_the_derivative_of_the_objective) {
  const RowVector h = normal(1, kFeatures, 7).array().abs() + 0.8;
  const std::vector<KernelPtr> parts{std::make_shared<Gaussian>(1.1), std::make_shared<Constant>(),
                                     std::make_shared<Laplacian>(h)};
  std::vector<KernelPtr> kernels{std::make_shared<Sum>(parts), std::make_shared<Product>(parts)};
  for (const Case& c : stationary_cases(h)) kernels.push_back(c.kernel);
  for (const KernelPtr& kernel : kernels) {
    Example e{kernel, loss("multiclass_logistic"), 3, true};
    const auto slope =
        e.moving(e.points, e.weights, kernel).slope(e.samples, e.targets, e.sample_weights);
    const RowMatrix samples = e.samples;
    const RowMatrix expected =
        differences(RowMatrix::Zero(1, kFeatures), [&](const RowMatrix& logs) {
          const RowVector s = logs.array().exp().matrix();
          e.samples = samples * s.asDiagonal();
          return e.value(e.points * s.asDiagonal(), e.weights);
        });
    CHECK_NEAR(largest(slope.stretches - expected), 0, 1e-7 * (1 + largest(expected)));
  }
}

TEST(single_precision_has_the_same_gradients_as_far_as_it_goes) {
  const auto gaussian = std::make_shared<Gaussian>(5.0);
  const RowMatrix points = normal(7, 40, 1), weights = normal(7, 3, 2), samples = normal(30, 40, 3);
  const LossPtr logistic = loss("multiclass_logistic");
  const RowMatrix targets = targets_for(*logistic, 30, 3);
  const MovingSettings settings{0.1, RowVector::Ones(40), 0.1, 0.1, 0.1};
  MovingPoints exact(gaussian, logistic, points, weights, settings);
  MovingPoints rounded(std::make_shared<SinglePrecision>(gaussian), logistic, points, weights,
                       settings);
  const auto a = exact.slope(samples, targets, Vector()),
             b = rounded.slope(samples, targets, Vector());
  CHECK(largest(a.points - b.points) > 0);
  CHECK_NEAR(largest(a.points - b.points), 0, 1e-5 * largest(a.points));
  CHECK_NEAR(largest(a.weights - b.weights), 0, 1e-5 * largest(a.weights));
  CHECK_NEAR(largest(a.stretches - b.stretches), 0, 1e-5 * largest(a.stretches));
}

TEST(steps_lower_the_objective_whatever_the_number_of_threads) {
  const KernelPtr kernel = std::make_shared<Gaussian>(4.0);
  const RowMatrix samples = normal(400, 20, 3), points = samples.topRows(80);
  RowMatrix targets(400, 1);
  for (Index i = 0; i < 400; ++i) targets(i, 0) = std::tanh(samples(i, 0));
  const MovingSettings settings{1e-4, RowVector::Ones(20), 0.02, 0.1};
  std::vector<RowMatrix> found;
  for (int threads : {1, 3}) {
    const ThreadLimit limit(threads);
    MovingPoints moving(kernel, loss("squared"), points, 0.1 * normal(80, 1, 2), settings);
    const double before = moving.slope(samples, targets, Vector()).value;
    for (int epoch = 0; epoch < 10; ++epoch) {
      CHECK(moving.run(samples, targets, Vector(), 64, 70, [] { return true; }) == 400);
    }
    CHECK(moving.slope(samples, targets, Vector()).value < 0.5 * before);
    found.push_back(moving.points());
  }
  CHECK(found[0] == found[1]);
}

TEST(a_run_that_is_interrupted_says_how_far_it_got) {
  const RowMatrix samples = normal(100, 3, 3);
  MovingPoints moving(std::make_shared<Gaussian>(1.0), loss("squared"), samples.topRows(5),
                      RowMatrix::Ones(5, 1), {0.1, RowVector::Ones(3), 0.1, 0.1});
  CHECK(moving.run(samples, RowMatrix::Zero(100, 1), Vector(), 20, 10, [] { return false; }) == 20);
}

TEST(what_makes_no_sense_is_refused) {
  const RowMatrix points = normal(5, 3, 1), weights = normal(5, 1, 2);
  const LossPtr squared = loss("squared");
  const KernelPtr linear = std::make_shared<Linear>(), gaussian = std::make_shared<Gaussian>(1.0);
  const RowVector ones = RowVector::Ones(3);
  CHECK_THROWS(MovingPoints(linear, squared, points, weights, {0.1, ones, 0.1, 0.1, 0.1}), Error);
  CHECK_THROWS(MovingPoints(gaussian, squared, points, normal(4, 1, 2), {0.1, ones, 0.1, 0.1}),
               Error);
  CHECK_THROWS(
      MovingPoints(gaussian, squared, points, weights, {0.1, RowVector::Zero(3), 0.1, 0.1}), Error);
  CHECK_THROWS(MovingPoints(gaussian, squared, points, weights, {-1, ones, 0.1, 0.1}), Error);
  MovingPoints moving(gaussian, squared, points, weights, {0.1, ones, 0.1, 0.1});
  CHECK_THROWS(moving.slope(normal(4, 2, 1), normal(4, 1, 1), Vector()), Error);
  CHECK_THROWS(moving.slope(normal(4, 3, 1), normal(3, 1, 1), Vector()), Error);
  CHECK_THROWS(moving.precondition(RowMatrix::Zero(4, 4)), Error);
}
