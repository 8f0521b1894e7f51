// Loads a model, reads samples from standard input, one per line, and prints a line for each.
//
//   predict regressor model.parsimon < samples.txt     what Python's predict gives
//   predict classifier model.parsimon < samples.txt    decision function, probabilities if the
//                                                      model has them, then the label after a tab
//   predict raw model.parsimon < samples.txt           the model's own outputs; those of a density
//                                                      are followed by the density
//
// If the model has columns of text, the samples are CSV, of which the first line has their names; a
// cell with nothing in it is missing.

#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <parsimon/predict.hpp>
#include <string>
#include <vector>

namespace {

using Sample = std::vector<double>;
using Cells = std::vector<parsimon::Cell>;

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

// One line of CSV; two quotes within quotes are one.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        fields.back() += line[++i];
      else
        quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else if (line[i] != '\r') {
      fields.back() += line[i];
    }
  }
  return fields;
}

parsimon::Cell cell_of(const std::string& field, bool is_text) {
  parsimon::Cell cell;
  if (is_text) cell.text = field;
  if (!is_text && !field.empty()) cell.number = std::stod(field);
  return cell;
}

void each_row(const parsimon::ColumnEncoding& columns,
              const std::function<void(const Cells&)>& show) {
  std::string line;
  std::getline(std::cin, line);
  const auto header = fields_of(line);
  std::vector<std::size_t> places;
  for (const std::string& name : columns.names()) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) throw parsimon::Error("There is no column " + name + ".");
    places.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  Cells sample(places.size());
  while (std::getline(std::cin, line)) {
    const auto fields = fields_of(line);
    if (fields.size() != header.size()) throw parsimon::Error("A line has other columns: " + line);
    for (std::size_t i = 0; i < places.size(); ++i) {
      sample[i] = cell_of(fields[places[i]], columns.is_text(static_cast<parsimon::Index>(i)));
    }
    show(sample);
    std::cout << '\n';
  }
}

// show: takes a Sample, or Cells.
template <class Model, class Show>
void each(const Model& model, const Show& show) {
  if (model.columns().has_text()) {
    each_row(model.columns(), show);
  } else {
    each_sample(model.features(), show);
  }
}

void regressor(const char* path) {
  const auto model = parsimon::load_regressor(path);
  each(model, [&](const auto& x) { print(model.predict(x)); });
}

void classifier(const char* path) {
  const auto model = parsimon::load_classifier(path);
  Sample values(static_cast<std::size_t>(model.scores()));
  each(model, [&](const auto& x) {
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
