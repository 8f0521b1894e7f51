#include <parsimon/algorithm/mirror_newton.hpp>
#include <parsimon/kernel/function.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::KernelPair;
using reference::Random;
using reference::Real;
using reference::Table;

namespace {

const auto forever = [] { return true; };

Box square() { return {RowVector::Constant(2, -1.0), RowVector::Constant(2, 2.0)}; }

// Two bumps in the square.
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

// Algorithm 3 (SPPPOT), dense and in long double.
class NaiveNewton {
 public:
  NaiveNewton(KernelPair kernel, RowMatrix dictionary, RowMatrix nodes, const Vector& weights,
              double damping)
      : kernel_(std::move(kernel)),
        dictionary_(std::move(dictionary)),
        at_nodes_(reference::gram(kernel_.exact, dictionary_, nodes)),
        w_(weights.begin(), weights.end()),
        a_(dictionary_.rows(), dictionary_.rows()) {
    for (Index i = 0; i < a_.rows(); ++i) a_(i, i) = damping;
  }

  // Returns the loss, without the volume of the domain.
  double learn(const RowMatrix& x, double eta) {
    const Index size = dictionary_.rows();
    const Table at_sample = reference::gram(kernel_.exact, dictionary_, x);
    std::vector<Real> g(w_.size());
    Real z = 0, integral = 0;
    for (Index m = 0; m < size; ++m) z += w_[at(m)] * at_sample(m, 0);
    for (Index q = 0; q < at_nodes_.columns(); ++q) {
      Real height = 0;
      for (Index m = 0; m < size; ++m) height += w_[at(m)] * at_nodes_(m, q);
      const Real density = std::exp(height) / static_cast<Real>(at_nodes_.columns());
      integral += density;
      for (Index m = 0; m < size; ++m) g[at(m)] += density * at_nodes_(m, q);
    }
    for (Index m = 0; m < size; ++m) g[at(m)] -= at_sample(m, 0);
    for (Index i = 0; i < size; ++i) {
      for (Index j = 0; j < size; ++j) a_(i, j) += g[at(i)] * g[at(j)];
    }
    const Table inverse = reference::inverse(a_);
    for (Index i = 0; i < size; ++i)
      w_[at(i)] -= eta * reference::dot(inverse.row(i), g.data(), size);
    remember();
    return static_cast<double>(integral - z);
  }

  double weight(Index m) const { return static_cast<double>(w_[at(m)]); }

  // Iterate t counts like t (t + 1) ... (t + 8): what shares of 10 / (t + 9) are.
  double average(Index m) const {
    Real sum = 0, total = 0;
    for (std::size_t t = 1; t <= iterates_.size(); ++t) {
      Real share = 1;
      for (std::size_t k = 0; k < 9; ++k) share *= static_cast<Real>(t + k);
      sum += share * iterates_[t - 1][at(m)];
      total += share;
    }
    return static_cast<double>(sum / total);
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  void remember() { iterates_.push_back(w_); }

  KernelPair kernel_;
  RowMatrix dictionary_;
  Table at_nodes_;
  std::vector<Real> w_;
  Table a_;
  std::vector<std::vector<Real>> iterates_;
};

// 300 samples. cond(A) < 1e4: 1e-10 is a million times the rounding of one step.
void check_against_naive(MirrorNewton model, const KernelPair& kernel) {
  Random random(1);
  const RowMatrix samples = samples_in_square(300, random);
  const RowMatrix dictionary = model.dictionary().points();
  const MirrorNewtonSettings settings = model.settings();
  NaiveNewton naive(kernel, dictionary, model.nodes(), model.weights(), settings.damping);
  for (Index i = 0; i < 300; ++i) {
    const double loss = naive.learn(samples.row(i), settings.step.at(i));
    CHECK(model.run(samples.middleRows(i, 1), 1, forever) == 1);
    CHECK_NEAR(model.trace().records().back().loss, loss + std::log(9.0), 1e-10);
    for (Index m = 0; m < dictionary.rows(); ++m) {
      CHECK_NEAR(model.weights()(m), naive.weight(m), 1e-10);
      if (i % 50 == 0 || i == 299) CHECK_NEAR(model.average()(m), naive.average(m), 1e-10);
    }
  }
  CHECK(model.samples() == 300 && model.batches() == 300 && model.steps() == 300);
  CHECK((model.weights() - model.average()).norm() > 1e-4);
}

MirrorNewton on_grid(double step = 1, double damping = 1) {
  return {reference::gaussian(0.4).core,
          {StepSchedule::constant(step), damping},
          square(),
          Quadrature::grid({5, 4})};
}

// Everything that a caller can see.
struct Snapshot {
  Vector weights, average;
  RowMatrix root;
  Index samples, steps;
  std::size_t records;

  explicit Snapshot(const MirrorNewton& model)
      : weights(model.weights()),
        average(model.average()),
        root(model.inverse().root()),
        samples(model.samples()),
        steps(model.steps()),
        records(model.trace().records().size()) {}

  bool operator==(const Snapshot& other) const {
    return weights == other.weights && average == other.average && root == other.root &&
           samples == other.samples && steps == other.steps && records == other.records;
  }
};

}  // namespace

TEST(on_the_nodes_it_is_the_naive_algorithm) {
  check_against_naive(on_grid(), reference::gaussian(0.4));
  const KernelPair matern = reference::matern(0.6, 1.5);
  check_against_naive({matern.core,
                       {StepSchedule::power_law(2, 0.5, 20), 0.3},
                       square(),
                       Quadrature::scattered(25)},
                      matern);
}

TEST(on_another_dictionary_it_is_the_naive_algorithm) {
  Random random(2);
  const KernelPair kernel = reference::laplacian(0.8);
  Dictionary dictionary(kernel.core, 2);
  dictionary.append(samples_in_square(12, random), false);
  const Vector weights = 0.3 * random.normal_points(12, 1).col(0);
  check_against_naive(
      {dictionary, weights, {StepSchedule::constant(0.7), 2}, square(), Quadrature::grid({6, 6})},
      kernel);
}

TEST(the_batch_size_only_groups_the_records) {
  Random random(3);
  const RowMatrix samples = samples_in_square(100, random);
  MirrorNewton one = on_grid(), seven = on_grid(), all = on_grid();
  one.run(samples, 1, forever);
  CHECK(seven.run(samples, 7, forever) == 100);
  all.run(samples, 1000, forever);
  CHECK(one.weights() == seven.weights() && one.weights() == all.weights());
  CHECK(one.average() == seven.average() && one.average() == all.average());
  CHECK(one.batches() == 100 && seven.batches() == 15 && all.batches() == 1);
  const auto records = seven.trace().records();
  CHECK(records.size() == 15 && records[0].samples == 7 && records[14].samples == 100);
  CHECK(records[14].active == 2 && records[3].model_order == 20);
  double loss = 0;
  for (const StepRecord& record : one.trace().records()) loss += record.loss / 100;
  CHECK_NEAR(all.trace().records()[0].loss, loss, 1e-13);
}

TEST(the_density_is_exp_z_over_the_volume_and_zero_outside) {
  Random random(4);
  MirrorNewton model = on_grid();
  model.run(samples_in_square(200, random), 10, forever);
  const RowMatrix inside = model.nodes();
  Vector density(20), log_density(20);
  model.density(inside, density);
  model.log_density(inside, log_density);
  const RowMatrix z =
      KernelExpansion(reference::gaussian(0.4).core, inside, model.average())(inside);
  for (Index i = 0; i < 20; ++i) {
    CHECK_NEAR(density(i), std::exp(z(i, 0)) / 9, 1e-13 * density(i));
    CHECK_NEAR(log_density(i), z(i, 0) - std::log(9.0), 1e-13);
    CHECK(density(i) > 0);
  }
  RowMatrix outside(4, 2);
  outside << 2.0000001, 0, -1, -1.1, 1e300, 0, 0, -1e300;
  Vector nothing(4), logs(4);
  model.density(outside, nothing);
  model.log_density(outside, logs);
  CHECK(nothing == Vector::Zero(4));
  for (const double value : logs) CHECK(value == -std::numeric_limits<double>::infinity());
  CHECK_THROWS(model.density(RowMatrix::Zero(4, 3), nothing), Error);
}

// 100 nodes with a Gram matrix of rank 38: the paper's own setting.
TEST(a_grid_finer_than_the_kernel_is_learned_all_the_same) {
  Random random(5);
  RowMatrix samples(6000, 1);
  for (double& x : samples.reshaped()) {
    do x = 0.6 + 0.15 * random.normal();
    while (x < 0 || x > 1);
  }
  MirrorNewton model(reference::gaussian(std::sqrt(0.0065)).core, {StepSchedule::constant(1), 1},
                     Box::unit(1), Quadrature::grid({100}));
  model.run(samples, 32, forever);
  Vector density(100);
  model.density(model.nodes(), density);
  CHECK_NEAR(density.mean(), 1.0, 0.02);
  const double mass = std::erf(0.4 / 0.15 / std::sqrt(2.0)) / 2 + std::erf(4 / std::sqrt(2.0)) / 2;
  for (Index i = 25; i < 95; ++i) {  // where there are samples enough
    const double u = (model.nodes()(i, 0) - 0.6) / 0.15;
    const double truth = std::exp(-u * u / 2) / (0.15 * std::sqrt(2 * std::acos(-1.0))) / mass;
    CHECK_NEAR(density(i), truth, 0.25);
  }
  CHECK(model.weights().cwiseAbs().maxCoeff() < 100);
}

TEST(input_that_does_not_fit_changes_nothing) {
  Random random(6);
  MirrorNewton model = on_grid();
  const RowMatrix samples = samples_in_square(20, random);
  model.run(samples, 3, forever);
  const Snapshot before(model);
  for (const double bad : {2.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    RowMatrix given = samples;
    given(19, 1) = bad;
    CHECK_THROWS(model.run(given, 3, forever), Error);
  }
  CHECK_THROWS(model.run(samples, 0, forever), Error);
  CHECK_THROWS(model.run(samples.leftCols(1), 3, forever), Error);
  CHECK(Snapshot(model) == before);
  int left = 2;
  CHECK(model.run(samples, 3, [&] { return left-- > 0; }) == 6);
  CHECK(model.run(samples.topRows(0), 3, forever) == 0);
}

TEST(models_that_cannot_be_are_refused) {
  const auto kernel = reference::gaussian(0.4).core;
  const Quadrature grid = Quadrature::grid({3, 3});
  Dictionary dictionary(kernel, 2), line(kernel, 1);
  const auto refused = [&](const Dictionary& given, const Vector& weights, double damping) {
    CHECK_THROWS(MirrorNewton(given, weights, {StepSchedule::constant(1), damping}, square(), grid),
                 Error);
  };
  refused(dictionary, Vector(0), 1);
  dictionary.append(RowMatrix::Zero(1, 2), true);
  line.append(RowMatrix::Zero(1, 1), true);
  refused(line, Vector::Zero(1), 1);
  refused(dictionary, Vector::Zero(2), 1);
  refused(dictionary, Vector::Constant(1, std::nan("")), 1);
  for (const double damping : {0.0, -1.0, std::nan("")})
    refused(dictionary, Vector::Zero(1), damping);
  const Box huge(RowVector::Constant(2, -1e150), RowVector::Constant(2, 1e150));
  CHECK_THROWS(MirrorNewton(std::make_shared<Polynomial>(3, 1.0, 1.0),
                            {StepSchedule::constant(1), 1}, huge, grid),
               Error);
  CHECK_THROWS(
      MirrorNewton(kernel, {StepSchedule::constant(1), 1}, square(), Quadrature::grid({3})), Error);
}

// The samples before the one that fails have been learned, and nothing of that one.
TEST(a_sample_that_diverges_has_not_been_seen) {
  Random random(7);
  const RowMatrix samples = samples_in_square(3000, random);
  for (const auto& [step, damping] :
       {std::pair<double, double>{1e3, 1}, {1e4, 1e-6}, {1e8, 1e-3}}) {
    MirrorNewton model = on_grid(step, damping);
    int diverged = 0;
    for (Index i = 0; i < 3000; ++i) {
      const Snapshot before(model);
      try {
        model.run(samples.middleRows(i, 1), 1, forever);
      } catch (const DivergenceError&) {
        ++diverged;
        CHECK(Snapshot(model) == before);
      }
      const bool finite = model.weights().allFinite() && model.average().allFinite() &&
                          model.inverse().root().allFinite();
      CHECK(finite);
      if (!finite) break;
    }
    CHECK(diverged > 0);
  }
}

TEST(a_kernel_that_fails_leaves_the_model_as_it_was) {
  bool fails = false;
  const auto function = [&](const ConstRows& a, const ConstRows& b, Rows values) {
    if (fails) throw std::runtime_error("no");
    for (Index i = 0; i < a.rows(); ++i) {
      for (Index j = 0; j < b.rows(); ++j) {
        values(i, j) = std::exp(-(a.row(i) - b.row(j)).squaredNorm());
      }
    }
  };
  MirrorNewton model(std::make_shared<FunctionKernel>(function), {StepSchedule::constant(1), 1},
                     square(), Quadrature::grid({3, 3}));
  Random random(8);
  const RowMatrix samples = samples_in_square(12, random);
  model.run(samples, 4, forever);
  const Snapshot before(model);
  fails = true;
  CHECK_THROWS(model.run(samples, 4, forever), std::runtime_error);
  CHECK(Snapshot(model) == before);
  fails = false;
  CHECK(model.run(samples, 4, forever) == 12);
}
