// Loads a model, reads samples from standard input, one per line, and prints a line for each.
//
//   predict regressor model.parsimon < samples.txt     what Python's predict gives
//   predict classifier model.parsimon < samples.txt    decision function, probabilities if the
//                                                      model has them, then the label after a tab
//   predict raw model.parsimon < samples.txt           the model's own outputs; those of a density
//                                                      are followed by the density

#include <exception>
#include <functional>
#include <iostream>
#include <parsimon/predict.hpp>
#include <string>
#include <vector>

namespace {

using Sample = std::vector<double>;

void print(const Sample& numbers) {
  for (const double number : numbers) std::cout << number << ' ';
}

void each_sample(parsimon::Index features, const std::function<void(const Sample&)>& show) {
  Sample sample(static_cast<std::size_t>(features));
  while (true) {
    for (double& number : sample) std::cin >> number;
    if (!std::cin) return;
    show(sample);
    std::cout << '\n';
  }
}

void regressor(const char* path) {
  const auto model = parsimon::load_regressor(path);
  each_sample(model.features(), [&](const Sample& x) { print(model.predict(x)); });
}

void classifier(const char* path) {
  const auto model = parsimon::load_classifier(path);
  Sample values(static_cast<std::size_t>(model.scores()));
  each_sample(model.features(), [&](const Sample& x) {
    model.decision(x.data(), values.data());
    print(values);
    if (model.has_probabilities()) print(model.probabilities(x.data()));
    std::cout << '\t' << model.predict(x).text();
  });
}

void raw(const char* path) {
  const auto model = parsimon::Predictor::load(path);
  Sample outputs(static_cast<std::size_t>(model.outputs()));
  each_sample(model.features(), [&](const Sample& x) {
    model.predict(x.data(), outputs.data());
    print(outputs);
    if (model.is_density()) std::cout << model.density(x.data());
  });
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string kind = argc == 3 ? argv[1] : "";
  std::cout.precision(17);
  if (kind == "regressor") {
    regressor(argv[2]);
  } else if (kind == "classifier") {
    classifier(argv[2]);
  } else if (kind == "raw") {
    raw(argv[2]);
  } else {
    std::cerr << "usage: predict regressor|classifier|raw <model file>, with samples on standard "
                 "input\n";
    return 2;
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
