// The three examples of CONTRIBUTING.md, which quotes them word for word.

#include <cmath>
#include <parsimon/algorithm/online.hpp>
#include <parsimon/algorithm/polk.hpp>
#include <parsimon/kernel/kernels.hpp>
#include <parsimon/loss/losses.hpp>
#include <string>
#include <utility>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

// [kernel]
// 1 / sqrt(1 + d)
class InverseMultiquadric final : public Radial {
 public:
  explicit InverseMultiquadric(Bandwidth bandwidth) : Radial(std::move(bandwidth)) {}

  std::string describe() const override {
    return "inverse_multiquadric(" + bandwidth().describe() + ")";
  }

 private:
  void profile(double* d, Index count) const override {
    for (Index j = 0; j < count; ++j) d[j] = 1 / std::sqrt(1 + d[j]);
  }

  void slope(double* d, Index count) const override {
    for (Index j = 0; j < count; ++j) d[j] = -0.5 / ((1 + d[j]) * std::sqrt(1 + d[j]));
  }
};
// [kernel]

// [loss]
// log cosh(f - y): squared for small differences, absolute for large ones.
class LogCoshLoss final : public ElementwiseLoss<LogCoshLoss> {
 public:
  double judge(double prediction, double target, double& slope) const {
    const double difference = prediction - target, size = std::abs(difference);
    slope = std::tanh(difference);
    return size + std::log1p(std::exp(-2 * size)) - std::log(2.0);
  }

  std::string describe() const override { return "log_cosh"; }
};
// [loss]

// [algorithm]
// The kernel perceptron with a model that stays small. With labels y = 1 and -1, each mini-batch
//
//   f <- KOMP(f + (eta / B) sum over mistakes y_i k(x_i, .), eps)
class Perceptron : public Online {
 public:
  Perceptron(KernelPtr kernel, OnlineSettings settings, Index features)
      : Online(std::move(kernel), std::move(settings), features, 1) {}

  Index run(const ConstRows& samples, const ConstRows& labels, Index batch_size,
            const KeepGoing& keep_going) {
    check_block(samples, labels, Vector());
    MiniBatches part(samples.rows(), batch_size, keep_going);
    while (part.next()) {
      advance(samples.middleRows(part.start(), part.count()),
              labels.middleRows(part.start(), part.count()), part.share());
    }
    return part.taken();
  }

 private:
  void advance(const ConstRows& samples, const ConstRows& labels, double share) {
    Step step = begin(samples.rows(), share);
    const auto predictions = evaluate(samples);
    RowMatrix pull = RowMatrix::Zero(samples.rows(), 1);
    for (Index i = 0; i < samples.rows(); ++i) {
      const bool mistaken = labels(i, 0) * predictions(i, 0) <= 0;
      if (mistaken) pull(i, 0) = step.eta * labels(i, 0) / static_cast<double>(samples.rows());
      step.record.loss += mistaken ? 1.0 / static_cast<double>(samples.rows()) : 0.0;
    }
    new_points_.take(pull);
    finish(step, function_.add(plan(step, samples)));
  }
};
// [algorithm]

TEST(a_new_kernel_has_the_values_and_the_gradient_that_it_claims) {
  Random random(1);
  const KernelPtr kernel = std::make_shared<InverseMultiquadric>(0.7);
  for (const Index features : {2, 30}) {
    const RowMatrix points = random.normal_points(6, features),
                    at = random.normal_points(4, features);
    const KernelExpansion f(kernel, points, random.normal_points(6, 1));
    const RowMatrix values = f(at), gradient = f.gradient(at, 0);
    for (Index i = 0; i < 4; ++i) {
      double expected = 0;
      for (Index m = 0; m < 6; ++m) {
        const double d = (at.row(i) - points.row(m)).squaredNorm() / (0.7 * 0.7);
        expected += f.weights()(m, 0) / std::sqrt(1 + d);
      }
      CHECK_NEAR(values(i, 0), expected, 1e-13);
      for (Index k = 0; k < features; ++k) {
        RowMatrix ahead = at.row(i), behind = at.row(i);
        ahead(0, k) += 1e-5;
        behind(0, k) -= 1e-5;
        CHECK_NEAR(gradient(i, k), (f(ahead)(0, 0) - f(behind)(0, 0)) / 2e-5, 1e-8);
      }
    }
  }
}

TEST(a_new_loss_is_learned_like_the_others) {
  Random random(2);
  const auto loss = std::make_shared<LogCoshLoss>();
  for (const double difference : {-30.0, -0.3, 0.0, 2.0}) {
    double slope = 0, unused = 0;
    const double value = loss->judge(difference, 0, slope);
    CHECK_NEAR(value, std::log(std::cosh(difference)), 1e-12);
    const double ahead = loss->judge(difference + 1e-6, 0, unused);
    CHECK_NEAR(slope, (ahead - loss->judge(difference - 1e-6, 0, unused)) / 2e-6, 1e-8);
  }
  Polk model(std::make_shared<Gaussian>(0.2),
             {loss, StepSchedule::constant(0.5), BudgetSchedule::fixed(0.01)}, 1, 1);
  const RowMatrix samples = random.uniform_points(3000, 1);
  RowMatrix targets(3000, 1), values(3000, 1);
  for (Index i = 0; i < 3000; ++i) targets(i, 0) = std::sin(6 * samples(i, 0));
  model.run(samples, targets, Vector(), 1, [] { return true; });
  model.predict(samples, values);
  CHECK((values - targets).norm() < 0.1 * targets.norm());
}

TEST(a_new_algorithm_equals_its_transcription_without_a_budget_and_is_small_with_one) {
  Random random(3);
  const RowMatrix samples = random.uniform_points(400, 2);
  RowMatrix labels(400, 1);
  for (Index i = 0; i < 400; ++i) labels(i, 0) = samples(i, 0) > samples(i, 1) ? 1 : -1;
  const auto kernel = std::make_shared<Gaussian>(0.5);
  const auto trained = [&](double budget) {
    OnlineSettings settings;
    settings.step = StepSchedule::constant(0.5);
    settings.compression = BudgetSchedule::fixed(budget);
    Perceptron model(kernel, settings, 2);
    CHECK(model.run(samples, labels, 1, [] { return true; }) == 400);
    return model;
  };
  std::vector<Index> mistakes;
  const auto value = [&](const RowMatrix& x) {
    double sum = 0;
    for (const Index m : mistakes) {
      sum += 0.5 * labels(m, 0) * std::exp(-(x.row(0) - samples.row(m)).squaredNorm() / 0.5);
    }
    return sum;
  };
  for (Index i = 0; i < 400; ++i) {
    if (labels(i, 0) * value(samples.row(i)) <= 0) mistakes.push_back(i);
  }
  const Perceptron whole = trained(0), small = trained(0.05);
  CHECK(whole.model_order() == static_cast<Index>(mistakes.size()));
  const RowMatrix at = random.uniform_points(50, 2);
  RowMatrix values(50, 1);
  whole.predict(at, values);
  for (Index i = 0; i < 50; ++i) CHECK_NEAR(values(i, 0), value(at.row(i)), 1e-12);
  CHECK(small.model_order() < whole.model_order());
  for (const StepRecord& record : small.trace().records()) {
    CHECK(record.compression_error <= 0.05);
  }
}
