// Trains a classifier on a stream of points from two spirals, saves it, and writes what it predicts
// on a grid. In Python, parsimon.load("model.parsimon") reads the same model back.
//
//   train_and_save [model file] [predictions file]

#include <cmath>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <parsimon/io/polk_file.hpp>
#include <parsimon/kernel/stationary.hpp>
#include <parsimon/loss/parse.hpp>
#include <random>
#include <string>

namespace {

using parsimon::Index;
using parsimon::RowMatrix;

// One mini-batch from a sensor: points on two spiral arms, and which arm each is on.
void read_sensor(std::mt19937_64& random, RowMatrix& points, RowMatrix& labels) {
  std::uniform_real_distribution<double> along(0.5, 3.0);
  std::normal_distribution<double> noise(0.0, 0.1);
  std::bernoulli_distribution arm(0.5);
  for (Index i = 0; i < points.rows(); ++i) {
    const double t = along(random);
    labels(i, 0) = arm(random) ? 1 : 0;
    const double sign = labels(i, 0) > 0 ? 1 : -1;
    points(i, 0) = sign * t * std::cos(2 * t) + noise(random);
    points(i, 1) = sign * t * std::sin(2 * t) + noise(random);
  }
}

void write_predictions(const parsimon::Polk& model, const std::string& path) {
  const Index side = 25;
  RowMatrix grid(side * side, 2);
  for (Index i = 0; i < grid.rows(); ++i) {
    grid(i, 0) = -3 + 0.25 * static_cast<double>(i % side);
    grid(i, 1) = -3 + 0.25 * static_cast<double>(i / side);
  }
  RowMatrix values(grid.rows(), 1);
  model.predict(grid, values);
  std::ofstream file(path);
  file.precision(17);
  for (Index i = 0; i < grid.rows(); ++i) {
    file << grid(i, 0) << ' ' << grid(i, 1) << ' ' << values(i, 0) << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string model_file = argc > 1 ? argv[1] : "model.parsimon";
  const std::string predictions_file = argc > 2 ? argv[2] : "predictions.txt";

  parsimon::PolkSettings settings{
      parsimon::parse_loss("binary_logistic"), parsimon::StepSchedule::constant(4.0),
      parsimon::BudgetSchedule::parsimony(0.002), /*regularization=*/1e-6, /*average=*/true};
  parsimon::Polk model(std::make_shared<parsimon::Gaussian>(0.5), settings, /*features=*/2,
                       /*outputs=*/1);

  std::mt19937_64 random(1);
  RowMatrix points(32, 2), labels(32, 1);
  for (int batch = 0; batch < 500; ++batch) {
    read_sensor(random, points, labels);
    const parsimon::StepRecord record = model.step(points, labels, parsimon::Vector());
    if (batch % 100 == 99) {
      std::cout << record.samples << " samples: " << record.model_order << " points, loss "
                << record.loss << '\n';
    }
  }

  parsimon::to_archive(model).write(model_file);
  write_predictions(model, predictions_file);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
