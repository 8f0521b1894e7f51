// Loads a model, reads samples from standard input, one per line, and prints the outputs of the
// model for each: what Python's decision_function gives. For a model of a density, the density
// follows.
//
//   predict model.parsimon < samples.txt

#include <exception>
#include <iostream>
#include <parsimon/predict.hpp>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: predict <model file>, with samples on standard input\n";
    return 2;
  }
  const parsimon::Predictor model = parsimon::Predictor::load(argv[1]);
  std::vector<double> sample(static_cast<std::size_t>(model.features()));
  std::vector<double> outputs(static_cast<std::size_t>(model.outputs()));
  std::cout.precision(17);
  while (true) {
    for (double& number : sample) std::cin >> number;
    if (!std::cin) break;
    model.predict(sample.data(), outputs.data());
    for (const double output : outputs) std::cout << output << ' ';
    if (model.is_density()) std::cout << model.density(sample.data());
    std::cout << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
