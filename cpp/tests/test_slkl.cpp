#include <Eigen/Cholesky>
#include <parsimon/algorithm/slkl/solver.hpp>
#include <parsimon/io/slkl_file.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

namespace {

const auto forever = [] { return true; };

// F(mu) and its gradient as (14) and (20) define them, with a dense n x n matrix.
struct Dense {
  Eigen::MatrixXd columns;
  Vector y;
  double penalty;

  Vector residual(const Vector& mu) const {
    Eigen::MatrixXd k = columns * mu.asDiagonal() * columns.transpose();
    k.diagonal().array() += 1;
    return k.llt().solve(y);
  }
  double objective(const Vector& mu) const { return y.dot(residual(mu)) + penalty * mu.sum(); }
  Vector gradient(const Vector& mu) const {
    return penalty - (columns.transpose() * residual(mu)).array().square();
  }
};

struct Problem {
  RowMatrix samples, targets, points;
  double bandwidth;

  KernelColumns columns(bool stored) const {
    KernelColumns result(std::make_shared<Gaussian>(bandwidth), points, stored);
    result.prepare(samples, targets, forever);
    return result;
  }

  Dense dense(double penalty) const {
    const auto kernel = reference::gaussian(bandwidth);
    const reference::Table table = reference::gram(kernel.exact, samples, points);
    Eigen::MatrixXd c(samples.rows(), points.rows());
    for (Index i = 0; i < c.rows(); ++i) {
      for (Index j = 0; j < c.cols(); ++j) c(i, j) = static_cast<double>(table(i, j));
    }
    return {c, targets.col(0), penalty};
  }
};

Problem make_problem(Index n, Index m, double bandwidth, unsigned seed) {
  Random random(seed);
  Problem p{random.normal_points(n, 2), RowMatrix(n, 1), RowMatrix(), bandwidth};
  for (Index i = 0; i < n; ++i) {
    p.targets(i, 0) = std::sin(2 * p.samples(i, 0)) + p.samples(i, 1) + 0.1 * random.normal();
  }
  p.points = p.samples.topRows(m);
  return p;
}

double relative_error_of_inverse(const WeightedRidge& ridge) {
  Eigen::MatrixXd inverse = ridge.gram();
  inverse.diagonal() += ridge.weights().cwiseInverse();
  const Vector root = ridge.weights().cwiseSqrt();
  Eigen::MatrixXd scaled = root.asDiagonal() * Eigen::MatrixXd(ridge.gram()) * root.asDiagonal();
  scaled.diagonal().array() += 1;
  const Eigen::MatrixXd identity = Eigen::MatrixXd::Identity(ridge.size(), ridge.size());
  const Eigen::MatrixXd fresh =
      root.asDiagonal() * Eigen::MatrixXd(scaled.llt().solve(identity)) * root.asDiagonal();
  return (ridge.inverse() - fresh).norm() / fresh.norm();
}

}  // namespace

TEST(ridge_equals_a_fresh_inverse_after_each_kind_of_update) {
  const Problem p = make_problem(60, 20, 1.0, 1);
  const Dense dense = p.dense(0.01);
  const Eigen::MatrixXd products = dense.columns.transpose() * dense.columns;
  const Vector correlations = dense.columns.transpose() * dense.y;
  Random random(2);
  WeightedRidge ridge;
  std::vector<Index> members;
  Vector product;
  for (int k = 0; k < 400; ++k) {
    const bool full = members.size() == 20;
    if (members.size() < 2 || (!full && random.uniform() < 0.4)) {
      Index m = 0;
      while (std::find(members.begin(), members.end(), m) != members.end()) ++m;
      const Vector b = products(members, m);
      ridge.solve(b, product);
      const double stiffness = std::max(0.0, products(m, m) - b.dot(product));
      ridge.append(b, product, products(m, m), correlations(m), std::exp(3 * random.normal()),
                   stiffness);
      members.push_back(m);
    } else {
      const auto i = static_cast<std::size_t>(random.uniform() * double(members.size()));
      if (random.uniform() < 0.5) {
        ridge.change(static_cast<Index>(i), std::exp(3 * random.normal()));
      } else {
        ridge.remove(static_cast<Index>(i));
        members[i] = members.back();
        members.pop_back();
      }
    }
    CHECK(ridge.size() == static_cast<Index>(members.size()));
    CHECK(relative_error_of_inverse(ridge) < 1e-9);
    const Eigen::MatrixXd g = ridge.inverse();
    CHECK((g.diagonal() - ridge.diagonal()).norm() <= 1e-9 * g.diagonal().norm());
    const Vector expected = g * Vector(correlations(members));
    CHECK((expected - ridge.solution()).norm() <= 1e-8 * expected.norm());
  }
}

// Wide kernels: neighbouring columns are nearly collinear, cond(G) is above 1e5, and without a
// refresh the error is 4e-6.
TEST(inverse_is_fresh_after_50000_updates) {
  const Problem p = make_problem(200, 60, 2.0, 3);
  const KernelColumns columns = p.columns(true);
  SlklSettings settings;
  settings.penalty = 1e-4;
  SlklSolver solver(columns, 0, settings);
  Random random(4);
  Vector mu(columns.size());
  for (Index m = 0; m < mu.size(); ++m) mu(m) = std::exp(2 * random.normal());
  solver.start(mu);
  WeightedRidge ridge = solver.ridge();
  while (ridge.updates() < 50000) {
    const auto i = static_cast<Index>(random.uniform() * double(ridge.size()));
    ridge.change(i, std::exp(2 * random.normal()));
  }
  CHECK(relative_error_of_inverse(ridge) < 1e-8);
}

TEST(alignment_and_stiffness_are_those_of_the_dense_inverse) {
  const Problem p = make_problem(50, 10, 0.7, 5);
  const Dense dense = p.dense(0.01);
  const KernelColumns columns = p.columns(true);
  SlklSolver solver(columns, 0, SlklSettings());
  Vector mu = Vector::LinSpaced(10, 0.1, 2.0);
  solver.start(mu);
  Eigen::MatrixXd k = dense.columns * mu.asDiagonal() * dense.columns.transpose();
  k.diagonal().array() += 1;
  for (Index i = 0; i < 10; ++i) {
    const Vector c = dense.columns.col(i);
    CHECK_NEAR(solver.ridge().alignment(i), c.dot(k.llt().solve(dense.y)), 1e-10);
    CHECK_NEAR(solver.ridge().stiffness(i), c.dot(k.llt().solve(c)), 1e-10);
  }
  CHECK_NEAR(solver.objective(), dense.objective(mu), 1e-9);
}

TEST(exact_steps_reach_the_minimum_along_their_coordinate_and_never_increase_the_objective) {
  const Problem p = make_problem(80, 25, 0.8, 6);
  const Dense dense = p.dense(0.02);
  const KernelColumns columns = p.columns(true);
  SlklSettings settings;
  settings.penalty = 0.02;
  SlklSolver solver(columns, 0, settings);
  Random random(7);
  double before = solver.objective();
  for (int k = 0; k < 500; ++k) {
    const auto m = static_cast<Index>(random.uniform() * 25);
    solver.visit(m);
    CHECK(solver.objective() <= before + 1e-12 * before);
    before = solver.objective();
    Vector mu = Vector::Zero(25);
    for (std::size_t i = 0; i < solver.active().size(); ++i) {
      mu(solver.active()[i]) = solver.ridge().weights()(static_cast<Index>(i));
    }
    CHECK_NEAR(before, dense.objective(mu), 1e-8 * before);
    const double slope = dense.gradient(mu)(m);
    CHECK(mu(m) > 0 ? std::abs(slope) < 1e-7 : slope > -1e-9);
  }
}

TEST(optimality_conditions_hold_at_tolerance_zero) {
  for (const double bandwidth : {0.3, 1.0, 3.0}) {
    for (const bool stored : {true, false}) {
      const Problem p = make_problem(150, 100, bandwidth, 8);
      SlklSettings settings;
      settings.tolerance = 0;
      const SlklSolution solution = solve_slkl(p.columns(stored), 0, settings, Vector(), forever);
      CHECK(solution.converged);
      const Dense dense = p.dense(settings.penalty);
      const Vector gradient = dense.gradient(solution.mu) / settings.penalty;
      for (Index m = 0; m < 100; ++m) {
        CHECK(solution.mu(m) > 0 ? std::abs(gradient(m)) < 1e-6 : gradient(m) > -1e-6);
      }
      CHECK(solution.gap <= 1e-9 * solution.objective.back());
      CHECK_NEAR(solution.objective.back(), dense.objective(solution.mu), 1e-9);
      for (std::size_t k = 1; k < solution.objective.size(); ++k) {
        CHECK(solution.objective[k] <= solution.objective[k - 1] * (1 + 1e-12));
      }
    }
  }
}

TEST(gap_bounds_the_distance_to_the_minimum_from_anywhere) {
  const Problem p = make_problem(100, 40, 0.6, 9);
  const KernelColumns columns = p.columns(true);
  SlklSettings settings;
  settings.tolerance = 0;
  const double minimum = solve_slkl(columns, 0, settings, Vector(), forever).objective.back();
  Random random(10);
  for (int k = 0; k < 20; ++k) {
    Vector mu(40);
    for (Index m = 0; m < 40; ++m) mu(m) = std::max(0.0, random.normal());
    SlklSolver solver(columns, 0, settings);
    solver.start(mu);
    CHECK(solver.objective() - solver.gap() <= minimum * (1 + 1e-10));
  }
}

TEST(stored_and_computed_columns_and_both_selections_give_the_same) {
  const Problem p = make_problem(120, 60, 0.5, 11);
  SlklSettings settings;
  settings.tolerance = 1e-12;
  settings.epochs = 100000;
  const SlklSolution expected = solve_slkl(p.columns(true), 0, settings, Vector(), forever);
  for (const bool stored : {true, false}) {
    for (const auto selection : {SlklSelection::uniform, SlklSelection::shrinking}) {
      for (const auto step : {SlklStep::exact, SlklStep::newton}) {
        settings.selection = selection;
        settings.step = step;
        const SlklSolution found = solve_slkl(p.columns(stored), 0, settings, Vector(), forever);
        CHECK(found.converged);
        const double above = found.objective.back() - expected.objective.back();
        CHECK(above <= found.gap + 1e-12 && above <= 1e-7 * expected.objective.back());
      }
    }
  }
}

TEST(collinear_columns_and_zero_columns_are_no_trouble) {
  Problem p = make_problem(80, 40, 0.8, 12);
  p.points.bottomRows(20) = p.points.topRows(20);
  p.points.row(0) = RowMatrix::Constant(1, 2, 1e3);  // sees no sample
  SlklSettings settings;
  settings.tolerance = 0;
  for (const bool stored : {true, false}) {
    const SlklSolution solution = solve_slkl(p.columns(stored), 0, settings, Vector(), forever);
    CHECK(solution.mu.allFinite() && solution.weights.allFinite());
    CHECK(solution.mu(0) == 0);
    CHECK(solution.gap <= 1e-9 * solution.objective.back());
  }
}

TEST(starting_at_the_solution_ends_there) {
  const Problem p = make_problem(100, 50, 0.6, 13);
  const KernelColumns columns = p.columns(true);
  SlklSettings settings;
  settings.tolerance = 1e-10;
  const SlklSolution first = solve_slkl(columns, 0, settings, Vector(), forever);
  const SlklSolution again = solve_slkl(columns, 0, settings, first.mu, forever);
  CHECK(again.updates == 0);
  CHECK((again.mu - first.mu).norm() <= 1e-12 * first.mu.norm());
}

TEST(interrupted_solutions_are_valid) {
  const Problem p = make_problem(100, 50, 0.6, 14);
  int asked = 0;
  const auto few = [&] { return ++asked < 3; };
  const SlklSolution solution = solve_slkl(p.columns(true), 0, SlklSettings(), Vector(), few);
  CHECK(solution.interrupted && !solution.converged && solution.mu.allFinite());
}

TEST(bad_input_is_refused) {
  const Problem p = make_problem(30, 10, 0.6, 15);
  const KernelColumns columns = p.columns(true);
  SlklSettings settings;
  for (const double penalty : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    settings.penalty = penalty;
    CHECK_THROWS(solve_slkl(columns, 0, settings, Vector(), forever), Error);
  }
  settings.penalty = 1;
  CHECK_THROWS(solve_slkl(columns, 1, settings, Vector(), forever), Error);
  CHECK_THROWS(solve_slkl(columns, 0, settings, Vector::Ones(9), forever), Error);
  CHECK_THROWS(solve_slkl(columns, 0, settings, -Vector::Ones(10), forever), Error);
  KernelColumns other(std::make_shared<Gaussian>(1.0), p.points, true);
  CHECK_THROWS(other.prepare(p.samples, p.targets.topRows(5), forever), Error);
  CHECK_THROWS(other.prepare(p.samples, 1e200 * p.targets, forever), Error);
}

TEST(functions_are_written_and_read_back) {
  Random random(16);
  for (const Index count : {0, 7}) {
    const KernelExpansion f(std::make_shared<Gaussian>(0.5), random.normal_points(count, 3),
                            random.normal_points(count, 2));
    const KernelExpansion g = slkl_from_archive(to_archive(f));
    const RowMatrix x = random.normal_points(20, 3);
    CHECK(f(x) == g(x));
    CHECK(to_archive(g).to_bytes() == to_archive(f).to_bytes());
  }
}
