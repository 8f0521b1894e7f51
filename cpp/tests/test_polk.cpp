#include <parsimon/algorithm/polk.hpp>
#include <parsimon/loss/parse.hpp>

#include "brute_force_komp.hpp"
#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::KernelPair;
using reference::Random;
using reference::Real;
using reference::Table;

namespace {

struct Samples {
  RowMatrix x, y;
};

const auto forever = [] { return true; };
const Vector unweighted(0);

Polk make_polk(const KernelPair& kernel, const std::string& loss, double step,
               const BudgetSchedule& budget, double regularization, Index features, Index outputs,
               bool average = false) {
  return Polk(kernel.core,
              {parse_loss(loss), StepSchedule::constant(step), budget, regularization, average},
              features, outputs);
}

Samples regression(Index count, Random& random) {
  Samples samples{random.uniform_points(count, 2), RowMatrix(count, 1)};
  for (Index i = 0; i < count; ++i) {
    samples.y(i, 0) = std::sin(7 * samples.x(i, 0)) + samples.x(i, 1) + 0.1 * random.normal();
  }
  return samples;
}

Samples three_classes(Index count, Random& random) {
  Samples samples{random.uniform_points(count, 2), RowMatrix(count, 1)};
  for (Index i = 0; i < count; ++i) {
    samples.y(i, 0) = std::floor(3 * std::min(0.999, samples.x(i, 0) * samples.x(i, 1) * 2));
  }
  return samples;
}

// The task of the POLK paper: 5 classes of 3 modes each, standard deviation 0.2.
Samples multidist(Index count, Random& random) {
  RowMatrix modes = random.normal_points(15, 2);
  for (Index m = 0; m < 15; ++m) {
    const double angle = 2 * 3.14159265358979 * static_cast<double>(m / 3) / 5;
    modes(m, 0) += std::cos(angle);
    modes(m, 1) += std::sin(angle);
  }
  Samples samples{0.2 * random.normal_points(count, 2), RowMatrix(count, 1)};
  for (Index i = 0; i < count; ++i) {
    const Index mode = random.integer(0, 14);
    samples.x.row(i) += modes.row(mode);
    samples.y(i, 0) = static_cast<double>(mode / 3);
  }
  return samples;
}

// Algorithm 2 (POLK), one mini-batch after the other, dense and in long double.
class NaivePolk {
 public:
  NaivePolk(KernelPair kernel, bool hinge, double step, double budget, double regularization,
            Index outputs)
      : kernel_(std::move(kernel)),
        hinge_(hinge),
        step_(step),
        budget_(budget),
        shrinkage_(Real(step) * Real(regularization) * (hinge ? 2 : 1)),
        weights_(0, outputs) {}

  // share: of a mini-batch that these samples are
  void learn(const RowMatrix& x, const RowMatrix& y, const Vector& sample_weights,
             double share = 1) {
    const Table gram = reference::gram(kernel_.exact, points_, x);
    std::vector<std::vector<Real>> rows;
    for (Index m = 0; m < weights_.rows(); ++m) {
      rows.emplace_back(weights_.row(m), weights_.row(m) + weights_.columns());
      for (Real& weight : rows.back()) weight *= 1 - Real(share) * shrinkage_;
    }
    RowMatrix points = points_;
    for (Index i = 0; i < x.rows(); ++i) {
      std::vector<Real> values(static_cast<std::size_t>(weights_.columns()));
      for (Index m = 0; m < weights_.rows(); ++m) {
        for (Index c = 0; c < weights_.columns(); ++c) {
          values[static_cast<std::size_t>(c)] += gram(m, i) * weights_(m, c);
        }
      }
      std::vector<Real> gradient = slope(values, y(i, 0));
      const double weight = sample_weights.size() > 0 ? sample_weights(i) : 1;
      bool active = false;
      for (Real& g : gradient) {
        g *= -Real(share) * Real(step_) * Real(weight) / static_cast<Real>(x.rows());
        active = active || g != 0;
      }
      if (!active) continue;
      rows.push_back(gradient);
      points.conservativeResize(points.rows() + 1, x.cols());
      points.row(points.rows() - 1) = x.row(i);
    }
    adopt(points, rows, points.rows() > points_.rows() ? share * budget_ : 0);
  }

  const RowMatrix& points() const { return points_; }
  const Table& weights() const { return weights_; }
  double error() const { return error_; }

 private:
  std::vector<Real> slope(const std::vector<Real>& values, double target) const {
    if (!hinge_) return {values[0] - Real(target)};
    std::vector<Real> gradient(values.size());
    const auto label = static_cast<std::size_t>(target);
    std::size_t rival = label == 0 ? 1 : 0;
    for (std::size_t c = 0; c < values.size(); ++c) {
      if (c != label && values[c] > values[rival]) rival = c;
    }
    if (1 + values[rival] - values[label] <= 0) return gradient;
    gradient[rival] = 1;
    gradient[label] = -1;
    return gradient;
  }

  void adopt(const RowMatrix& points, const std::vector<std::vector<Real>>& rows, double budget) {
    Table weights(points.rows(), weights_.columns());
    for (Index m = 0; m < weights.rows(); ++m) {
      std::copy(rows[static_cast<std::size_t>(m)].begin(), rows[static_cast<std::size_t>(m)].end(),
                weights.row(m));
    }
    points_ = points;
    weights_ = weights;
    error_ = 0;
    if (budget == 0) return;
    const auto result =
        reference::BruteForceKomp(reference::gram(kernel_.exact, points, points), weights)
            .run(budget);
    error_ = result.error;
    if (result.removed.empty()) return;
    weights_ = result.weights;
    points_.resize(static_cast<Index>(result.kept.size()), points.cols());
    for (std::size_t i = 0; i < result.kept.size(); ++i) {
      points_.row(static_cast<Index>(i)) = points.row(result.kept[i]);
    }
  }

  KernelPair kernel_;
  bool hinge_;
  double step_, budget_;
  Real shrinkage_;
  RowMatrix points_{0, 2};
  Table weights_;
  double error_ = 0;
};

// Same points, weights to 1e-9: cond(K) < 1e4 and a hundred steps of size 1.
void check_same(const Polk& polk, const NaivePolk& naive) {
  const KernelExpansion ours = polk.function().expansion_by_age();
  CHECK(ours.model_order() == naive.points().rows());
  if (ours.model_order() != naive.points().rows()) return;
  CHECK(ours.dictionary().points() == naive.points());
  for (Index m = 0; m < ours.model_order(); ++m) {
    for (Index c = 0; c < polk.outputs(); ++c) {
      CHECK_NEAR(ours.weights()(m, c), static_cast<double>(naive.weights()(m, c)), 1e-9);
    }
  }
}

void check_against_naive(const std::string& loss, Index batch_size, double budget, bool weighted) {
  Random random(1);
  const bool hinge = loss == "multiclass_hinge";
  const Samples samples = hinge ? three_classes(100, random) : regression(100, random);
  const Index outputs = hinge ? 3 : 1;
  Vector sample_weights(weighted ? 100 : 0);
  for (double& w : sample_weights) w = random.uniform() < 0.2 ? 0 : random.uniform(0, 3);
  const KernelPair kernel = reference::laplacian(0.6);
  Polk polk = make_polk(kernel, loss, 0.5, BudgetSchedule::fixed(budget), 0.01, 2, outputs);
  NaivePolk naive(kernel, hinge, 0.5, budget, 0.01, outputs);
  for (Index start = 0; start < 100; start += batch_size) {
    const Index count = std::min(batch_size, 100 - start);
    const RowMatrix x = samples.x.middleRows(start, count), y = samples.y.middleRows(start, count);
    const Vector w = weighted ? Vector(sample_weights.segment(start, count)) : unweighted;
    polk.run(x, y, w, batch_size, forever);
    naive.learn(x, y, w, static_cast<double>(count) / static_cast<double>(batch_size));
    CHECK_NEAR(polk.trace().records().back().compression_error, naive.error(), 1e-9);
    check_same(polk, naive);
  }
  CHECK(budget == 0 || (naive.points().rows() > 2 && naive.points().rows() < 60));
}

}  // namespace

TEST(sample_by_sample_it_is_the_naive_algorithm) {
  check_against_naive("squared", 1, 0.12, false);
  check_against_naive("multiclass_hinge", 1, 0.15, false);
}

TEST(in_mini_batches_it_is_the_naive_algorithm) {
  check_against_naive("squared", 4, 0.06, false);
  check_against_naive("multiclass_hinge", 7, 0.08, false);
}

TEST(sample_weights_multiply_the_gradient) {
  check_against_naive("squared", 4, 0.06, true);
  check_against_naive("multiclass_hinge", 4, 0.06, true);
}

TEST(without_a_budget_it_is_functional_stochastic_gradient_descent) {
  check_against_naive("squared", 1, 0, false);
  check_against_naive("squared", 8, 0, true);
  check_against_naive("multiclass_hinge", 8, 0, false);
}

TEST(without_a_budget_copies_are_still_one_point) {
  Random random(2);
  Samples samples = regression(10, random);
  Samples thrice{samples.x.replicate(3, 1), samples.y.replicate(3, 1)};
  const KernelPair kernel = reference::gaussian(0.3);
  Polk polk = make_polk(kernel, "squared", 0.5, BudgetSchedule::fixed(0), 1e-3, 2, 1);
  NaivePolk naive(kernel, false, 0.5, 0, 1e-3, 1);
  polk.run(thrice.x, thrice.y, unweighted, 1, forever);
  for (Index i = 0; i < 30; ++i) naive.learn(thrice.x.row(i), thrice.y.row(i), unweighted);
  CHECK(polk.function().model_order() == 10 && naive.points().rows() == 30);
  for (Index i = 0; i < 10; ++i) {
    const Real sum =
        naive.weights()(i, 0) + naive.weights()(i + 10, 0) + naive.weights()(i + 20, 0);
    CHECK_NEAR(polk.function().weights()(i, 0), static_cast<double>(sum), 1e-13);
  }
}

TEST(a_mini_batch_without_gradient_only_shrinks) {
  Random random(3);
  const KernelPair kernel = reference::gaussian(0.5);
  Polk polk = make_polk(kernel, "binary_hinge", 10, BudgetSchedule::fixed(0.1), 1e-3, 2, 1);
  const RowMatrix x = random.uniform_points(4, 2);
  polk.run(x, RowMatrix::Ones(4, 1), unweighted, 4, forever);
  const RowMatrix points = polk.function().dictionary().points();
  const RowMatrix weights = polk.function().weights();
  polk.run(x, RowMatrix::Ones(4, 1), unweighted, 4, forever);
  const StepRecord record = polk.trace().records().back();
  CHECK(record.active == 0 && record.loss == 0 && record.compression_error == 0);
  CHECK(record.samples == 8 && polk.samples() == 8 && polk.batches() == 2);
  CHECK(polk.function().dictionary().points() == points);
  CHECK(polk.function().weights() == weights * (1 - 10 * 1e-3));
}

TEST(the_average_is_the_weighted_mean_of_the_iterates) {
  Random random(4);
  const Samples samples = regression(60, random);
  const KernelPair kernel = reference::gaussian(0.3);
  Polk polk = make_polk(kernel, "squared", 0.5, BudgetSchedule::fixed(0), 1e-3, 2, 1, true);
  Polk plain = make_polk(kernel, "squared", 0.5, BudgetSchedule::fixed(0), 1e-3, 2, 1);
  const RowMatrix at = random.uniform_points(30, 2);
  // Iterate t of n counts with t (t+1) (t+2) over the sum of these: what shares of 4 / (t + 3) are.
  RowMatrix mean = RowMatrix::Zero(30, 1), values(30, 1);
  double total = 0;
  for (Index t = 1; t <= 20; ++t) {
    polk.run(samples.x.middleRows(3 * t - 3, 3), samples.y.middleRows(3 * t - 3, 3), unweighted, 3,
             forever);
    plain.run(samples.x.middleRows(3 * t - 3, 3), samples.y.middleRows(3 * t - 3, 3), unweighted, 3,
              forever);
    plain.predict(at, values);
    const auto k = static_cast<double>(t);
    mean += k * (k + 1) * (k + 2) * values;
    total += k * (k + 1) * (k + 2);
    polk.predict(at, values);
    CHECK((values - mean / total).cwiseAbs().maxCoeff() < 1e-13);
    CHECK((polk.expansion()(at) - values).cwiseAbs().maxCoeff() < 1e-13);
    CHECK(polk.function().function_weights() == plain.function().weights());
  }
}

// An explicit inverse diverges within 5,000 samples on two of three draws, with risks in the
// thousands.
TEST(twenty_draws_of_multidist_stay_finite_and_learn) {
  for (const bool hinge : {true, false}) {
    double worst_loss = 0;
    Index fewest = 1000, most = 0;
    for (unsigned draw = 0; draw < 20; ++draw) {
      Random random(draw);
      const Samples samples = multidist(5000, random);
      Polk polk = make_polk(reference::gaussian(std::sqrt(0.6)),
                            hinge ? "multiclass_hinge" : "multiclass_logistic", 6,
                            BudgetSchedule::parsimony(hinge ? 1e-4 : 1e-3), 1e-6, 2, 5);
      polk.run(samples.x, samples.y, unweighted, 32, forever);
      double loss = 0;
      const auto records = polk.trace().records();
      for (std::size_t i = records.size() - 60; i < records.size(); ++i)
        loss += records[i].loss / 60;
      worst_loss = std::max(worst_loss, loss);
      fewest = std::min(fewest, polk.function().model_order());
      most = std::max(most, polk.function().model_order());
      CHECK(polk.function().weights().cwiseAbs().maxCoeff() < 1e3);
      for (const StepRecord& record : records) CHECK(record.compression_error <= record.budget);
    }
    std::printf("       %s: M from %d to %d, loss up to %.2f\n", hinge ? "hinge" : "logistic",
                static_cast<int>(fewest), static_cast<int>(most), worst_loss);
    CHECK(worst_loss < 0.8);  // 1 and log 5 = 1.6 without learning
    CHECK(fewest >= (hinge ? 60 : 35) && most <= (hinge ? 180 : 120));
  }
}

TEST(an_offset_of_the_data_changes_no_bit) {
  Random random(5);
  Samples samples = regression(300, random);
  samples.x = samples.x.unaryExpr([](double v) { return std::round(v * 4096) / 4096; });
  const RowMatrix moved = (samples.x.array() + 1e8).matrix();
  const KernelPair kernel = reference::gaussian(0.25);
  Polk a = make_polk(kernel, "squared", 0.5, BudgetSchedule::parsimony(0.03), 1e-3, 2, 1);
  Polk b = a;
  a.run(samples.x, samples.y, unweighted, 8, forever);
  b.run(moved, samples.y, unweighted, 8, forever);
  CHECK(a.function().model_order() > 4);
  CHECK(a.function().weights().rows() == b.function().weights().rows() &&
        a.function().weights() == b.function().weights());
}

// At the minimum of (1/n) sum_i c_i (f(x_i) - y_i)^2 / 2 + lambda / 2 ||f||^2 on the span of the
// dictionary, the gradient (1/n) sum_i c_i (f(x_i) - y_i) k(x_i, d) + lambda f(d) is zero at each
// d.
TEST(a_refit_is_the_best_function_on_the_dictionary) {
  Random random(7);
  const Samples samples = regression(200, random);
  const Vector c = Vector::NullaryExpr(200, [&] { return random.uniform(0, 2); });
  const KernelPair kernel = reference::gaussian(0.25);
  for (const double budget : {0.05, 0.0}) {
    Polk polk = make_polk(kernel, "squared", 0.5, BudgetSchedule::fixed(budget), 1e-3, 2, 1, true);
    polk.run(samples.x.topRows(60), samples.y.topRows(60), unweighted, 8, forever);
    const RowMatrix dictionary = polk.function().dictionary().points();
    polk.refit(samples.x, samples.y, c);
    RowMatrix values(200, 1), at_dictionary(dictionary.rows(), 1);
    polk.predict(samples.x, values);
    polk.predict(dictionary, at_dictionary);
    const Table gram = reference::gram(kernel.exact, dictionary, samples.x);
    for (Index m = 0; m < dictionary.rows(); ++m) {
      double gradient = 1e-3 * at_dictionary(m, 0);
      for (Index i = 0; i < 200; ++i) {
        gradient += c(i) * (values(i, 0) - samples.y(i, 0)) * static_cast<double>(gram(m, i)) / 200;
      }
      CHECK_NEAR(gradient, 0.0, 1e-8);  // points below the tolerance of 1e-8 are outside the basis
    }
  }
  Polk hinge = make_polk(kernel, "binary_hinge", 0.5, BudgetSchedule::fixed(0.1), 1e-3, 2, 1);
  CHECK_THROWS(hinge.refit(samples.x, RowMatrix::Ones(200, 1), unweighted), Error);
}

// No ridge makes a sum of squares positive definite that is not finite.
TEST(a_refit_that_cannot_be_solved_has_not_happened) {
  Random random(7);
  const Samples samples = regression(50, random);
  Polk polk =
      make_polk(reference::gaussian(0.25), "squared", 0.5, BudgetSchedule::fixed(0.05), 1e-3, 2, 1);
  polk.run(samples.x, samples.y, unweighted, 8, forever);
  const RowMatrix before = polk.function().weights();
  const Vector enormous = Vector::Constant(50, 1e308);
  CHECK_THROWS(polk.refit(samples.x, samples.y, enormous), DivergenceError);
  CHECK_THROWS(polk.refit(samples.x, 1e307 * samples.y, 1e3 * Vector::Ones(50)), DivergenceError);
  CHECK(polk.function().weights() == before);
}

TEST(a_run_stops_when_it_is_told_to) {
  Random random(6);
  const Samples samples = regression(40, random);
  Polk polk =
      make_polk(reference::gaussian(0.3), "squared", 0.5, BudgetSchedule::fixed(0.1), 0, 2, 1);
  int left = 3;
  CHECK(polk.run(samples.x, samples.y, unweighted, 8, [&] { return left-- > 0; }) == 24);
  CHECK(polk.samples() == 24 && polk.batches() == 3);
  CHECK(polk.run(samples.x.bottomRows(5), samples.y.bottomRows(5), unweighted, 8, forever) == 5);
  CHECK(polk.run(RowMatrix(0, 2), RowMatrix(0, 1), unweighted, 8, forever) == 0);
}

TEST(a_step_that_is_too_long_for_the_regularization_is_refused) {
  const KernelPair kernel = reference::gaussian(0.3);
  const auto budget = BudgetSchedule::fixed(0.1);
  CHECK_THROWS(make_polk(kernel, "squared", 2, budget, 0.5, 2, 1), Error);
  CHECK_THROWS(make_polk(kernel, "multiclass_hinge", 1, budget, 0.5, 2, 3), Error);
  CHECK_THROWS(make_polk(kernel, "squared", 1, budget, -1e-3, 2, 1), Error);
  CHECK_THROWS(make_polk(kernel, "squared", 1, budget, std::nan(""), 2, 1), Error);
  make_polk(kernel, "squared", 1, budget, 0.5, 2, 1);
}
