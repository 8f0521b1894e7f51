// Classes that come late: what was learned about the others stays as it is.

#include <cmath>
#include <limits>
#include <parsimon/io/colk_file.hpp>
#include <parsimon/io/polk_file.hpp>
#include <string>
#include <vector>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

namespace {

const auto forever = [] { return true; };
const Vector unweighted(0);

Polk make(const std::string& loss, Index outputs, bool solved = true) {
  OnlineSettings settings{StepSchedule::constant(1), BudgetSchedule::fixed(0.05), 1e-6, !solved};
  if (solved) settings.newton = NewtonSettings{0.1, 0, 1e9, false};
  return {std::make_shared<Gaussian>(0.7), {parse_loss(loss), settings}, 2, outputs};
}

// Samples around so many corners; the corner is the class.
struct Task {
  RowMatrix samples, targets;

  Task(Index count, Index first, Index classes, unsigned seed)
      : samples(count, 2), targets(count, 1) {
    Random random(seed);
    for (Index i = 0; i < count; ++i) {
      const Index c = first + i % classes;
      samples(i, 0) = 2.0 * static_cast<double>(c % 2) + 0.3 * random.normal();
      samples(i, 1) = 2.0 * static_cast<double>(c / 2) + 0.3 * random.normal();
      targets(i, 0) = static_cast<double>(c);
    }
  }
};

template <class Model>
RowMatrix values(const Model& model, const RowMatrix& points) {
  RowMatrix result(points.rows(), model.outputs());
  model.predict(points, result);
  return result;
}

template <class Model>
double share_right(const Model& model, const Task& task) {
  const RowMatrix all = values(model, task.samples);
  double right = 0;
  for (Index i = 0; i < all.rows(); ++i) {
    Index best = 0;
    for (Index c = 1; c < all.cols(); ++c) best = all(i, c) > all(i, best) ? c : best;
    if (all.cols() == 1) best = all(i, 0) > 0 ? 1 : 0;
    right += best == static_cast<Index>(task.targets(i, 0)) ? 1 : 0;
  }
  return right / static_cast<double>(all.rows());
}

}  // namespace

TEST(outputs_move_to_their_places) {
  for (const bool solved : {true, false}) {
    Polk polk = make("multiclass_logistic", 3, solved);
    const Task task(300, 0, 3, 1);
    polk.run(task.samples, task.targets, unweighted, 16, forever);
    const RowMatrix before = values(polk, task.samples);
    polk.add_classes({4, 0, 2}, 5, parse_loss("multiclass_logistic"));
    const RowMatrix after = values(polk, task.samples);
    CHECK(after.cols() == 5);
    CHECK((after.col(4) - before.col(0)).cwiseAbs().maxCoeff() < 1e-12);
    CHECK((after.col(0) - before.col(1)).cwiseAbs().maxCoeff() < 1e-12);
    CHECK((after.col(2) - before.col(2)).cwiseAbs().maxCoeff() < 1e-12);
    // No sample is given to a class that nobody has seen.
    for (Index i = 0; i < after.rows(); ++i) {
      CHECK(std::max(after(i, 1), after(i, 3)) < after.row(i).maxCoeff());
    }
  }
}

TEST(one_output_becomes_two_with_the_same_difference) {
  for (const std::string loss : {"logistic", "hinge", "squared_hinge"}) {
    Polk polk = make("binary_" + loss, 1);
    const Task task(300, 0, 2, 2);
    polk.run(task.samples, task.targets, unweighted, 16, forever);
    const RowMatrix before = values(polk, task.samples);
    const Statistics::State was = polk.function().statistics().state();
    polk.add_classes({2, 1}, 3, parse_loss("multiclass_" + loss));
    const RowMatrix after = values(polk, task.samples);
    CHECK((after.col(1) - after.col(2) - before.col(0)).cwiseAbs().maxCoeff() < 1e-10);
    // A parabola over f = g - (-g) bends twice as much over each of the two.
    const Statistics::State is = polk.function().statistics().state();
    for (Index i = 0; i < was.normal.rows(); ++i) {
      for (Index k = 0; k <= i; ++k) CHECK(is.normal(i, k) == 2 * was.normal(i, k));
      CHECK(is.right(i, 1) == was.right(i, 0) && is.right(i, 2) == -was.right(i, 0));
      CHECK(2 * is.solution(i, 1) == was.solution(i, 0));
    }
  }
}

TEST(fresh_outputs_are_constant_at_the_points_and_stay_there) {
  Polk polk = make("multiclass_hinge", 2);
  const Task task(400, 0, 2, 3);
  polk.run(task.samples, task.targets, unweighted, 16, forever);
  polk.add_classes({0, 1}, 3, parse_loss("multiclass_hinge"));
  const Index size = polk.function().basis_size();
  const RowMatrix points = polk.dictionary().points().topRows(size);
  CHECK((values(polk, points).col(2).array() + 0.5).abs().maxCoeff() < 1e-6);
  // What the past says about them is that they are right where they are: H v = r.
  const Statistics::State state = polk.function().statistics().state();
  for (Index i = 0; i < size; ++i) {
    double sum = 0;
    for (Index k = 0; k < size; ++k) {
      sum += (k <= i ? state.normal(i, k) : state.normal(k, i)) * state.solution(k, 2);
    }
    CHECK(std::abs(sum - state.right(i, 2)) < 1e-9 * (1 + std::abs(sum)));
  }
}

TEST(the_other_class_may_come_first) {
  Polk polk = make("binary_logistic", 1);
  const Task task(200, 0, 1, 4);
  polk.run(task.samples, task.targets, unweighted, 16, forever);
  const RowMatrix before = values(polk, task.samples);
  CHECK(before.maxCoeff() < 0);
  polk.add_classes({1}, 2, parse_loss("binary_logistic"));
  CHECK(values(polk, task.samples) == -before);
}

TEST(late_classes_are_learned_and_the_file_knows_them) {
  for (const std::string loss : {"logistic", "hinge", "squared_hinge"}) {
    Polk polk = make("binary_" + loss, 1);
    const Task two(400, 0, 2, 5), late(400, 0, 4, 6), test(400, 0, 4, 7);
    polk.run(two.samples, two.targets, unweighted, 16, forever);
    polk.add_classes({0, 1}, 4, parse_loss("multiclass_" + loss));
    Polk again = polk_from_archive(to_archive(polk));
    CHECK(values(again, test.samples) == values(polk, test.samples));
    polk.run(late.samples, late.targets, unweighted, 16, forever);
    again.run(late.samples, late.targets, unweighted, 16, forever);
    CHECK(values(again, test.samples) == values(polk, test.samples));
    CHECK(share_right(polk, test) > 0.97);
  }
}

TEST(what_cannot_be_is_refused_and_changes_nothing) {
  Polk polk = make("multiclass_logistic", 3);
  const Task task(100, 0, 3, 8);
  polk.run(task.samples, task.targets, unweighted, 16, forever);
  const RowMatrix before = values(polk, task.samples);
  const auto add = [&](std::vector<Index> places, Index classes, const char* loss) {
    CHECK_THROWS(polk.add_classes(places, classes, parse_loss(loss)), Error);
    CHECK(polk.outputs() == 3 && values(polk, task.samples) == before);
  };
  add({0, 1, 1}, 4, "multiclass_logistic");
  add({0, 1, 4}, 4, "multiclass_logistic");
  add({0, 1, -1}, 4, "multiclass_logistic");
  add({0, 1, 2, 3}, 4, "multiclass_logistic");
  add({0, 1}, 2, "binary_logistic");
  add({0, 1, 2}, 4, "binary_logistic");
  add({0, 1, 2}, 4, "squared");
}

TEST(a_risk_grows_as_well) {
  const OnlineSettings online{StepSchedule::constant(1), BudgetSchedule::fixed(0.05), 1e-6, true};
  Colk colk(std::make_shared<Gaussian>(0.7),
            RiskProblem(parse_loss("binary_logistic"), {Risk::Kind::semideviation, 0.5, 0, 1}),
            {online, StepSchedule::constant(0.5)}, 2, 1);
  const Task two(400, 0, 2, 9), late(2000, 0, 3, 10), test(300, 0, 3, 11);
  colk.run(two.samples, two.targets, unweighted, 16, forever);
  colk.add_classes({0, 1}, 3, parse_loss("multiclass_logistic"));
  colk.run(late.samples, late.targets, unweighted, 16, forever);
  CHECK(share_right(colk, test) > 0.95);
}
