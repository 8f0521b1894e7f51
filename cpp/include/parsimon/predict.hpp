#pragma once

// For programs that load a model and predict, and do not train: no Eigen, no threads, and a second
// or two of compilation.
//
//   const auto model = parsimon::load_regressor("model.parsimon");
//   double y = 0;
//   model.predict(x, &y);                                  // what Python's predict gives
//
//   const auto model = parsimon::load_classifier("model.parsimon");
//   std::cout << model.predict(x).text();                  // a label
//
// A model that Python's StreamingPipeline saved takes what the pipeline was given, one value for
// each column; where some are text, x is a std::vector<Cell>.
//
// The outputs of a density are those of Predictor.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/io/cells.hpp"
#include "parsimon/io/entries.hpp"
#include "parsimon/io/labels.hpp"
#include "parsimon/predictor.hpp"
#include "parsimon/votes.hpp"

namespace parsimon {

namespace detail {

// The outputs of a model in the units of its targets: raw outputs times a scale, plus a mean.
class Outputs {
 public:
  explicit Outputs(const Entries& file) : model_(file), encoding_(file, model_.features()) {
    require(!model_.is_density(),
            "The model file holds a density: Predictor::load(path).density(x) gives its values.");
    const Index count = model_.outputs();
    mean_.assign(static_cast<std::size_t>(count), 0.0);
    scale_.assign(static_cast<std::size_t>(count), 1.0);
    if (file.has("output.mean")) mean_ = file.get_numbers("output.mean", count);
    if (file.has("output.scale")) scale_ = file.get_numbers("output.scale", count);
    require_finite(mean_.data(), count);
    require_finite(scale_.data(), count);
  }

  const Predictor& model() const { return model_; }
  const ColumnEncoding& encoding() const { return encoding_; }
  // Values of a sample as it is given.
  Index features() const { return encoding_.is_needed() ? encoding_.columns() : model_.features(); }

  void operator()(const double* x, double* out) const {
    if (encoding_.is_needed()) {
      model_.predict(encoding_(x).data(), out);
    } else {
      model_.predict(x, out);
    }
    in_units(out);
  }

  void operator()(const Cell* cells, double* out) const {
    if (encoding_.is_needed()) {
      model_.predict(encoding_(cells).data(), out);
    } else {
      std::vector<double> x;
      for (Index i = 0; i < features(); ++i) x.push_back(cells[i].number);
      model_.predict(x.data(), out);
    }
    in_units(out);
  }

 private:
  void in_units(double* out) const {
    for (std::size_t c = 0; c < mean_.size(); ++c) out[c] = out[c] * scale_[c] + mean_[c];
    require_in_range(all_finite(out, model_.outputs()));
  }

  Predictor model_;
  ColumnEncoding encoding_;
  std::vector<double> mean_;
  std::vector<double> scale_;
};

inline bool is_loss_of_classes(const Entries& file) {
  if (!file.has("loss")) return false;
  const std::string loss = file.get_text("loss");
  return loss == "mirror_logistic" || loss.rfind("binary_", 0) == 0 ||
         loss.rfind("multiclass_", 0) == 0;
}

// Files of earlier versions keep labels and units where only Python finds them.
inline void require_meaning(const Entries& file, const std::string& entry) {
  require(file.has(entry) || !file.has("estimator"),
          "The model file was written by a version of parsimon that kept labels and units of "
          "targets for Python alone: load it there and save it again.");
}

}  // namespace detail

// A regressor, or a value function, that Python or C++ saved. Its predictions are those of Python.
//
// Immutable, so one may serve many threads.
class Regressor {
 public:
  explicit Regressor(const Entries& file) : outputs_(file) {
    require(!detail::is_loss_of_classes(file) && !file.has("labels.type") && !file.has("threshold"),
            "The model file holds a classifier: use load_classifier.");
    // Values of states and of actions are in the units of the rewards.
    const bool of_rewards = file.get_text("algorithm") == "policy_evaluation" ||
                            (file.has("estimator") && file.get_text("estimator") == "QLearner");
    if (!of_rewards) detail::require_meaning(file, "output.mean");
  }

  // Values of a sample: its columns, if a pipeline encodes them.
  Index features() const { return outputs_.features(); }
  const ColumnEncoding& columns() const { return outputs_.encoding(); }
  // Targets per sample.
  Index outputs() const { return outputs_.model().outputs(); }
  Index points() const { return outputs_.model().points(); }

  // From features() numbers, or cells, to outputs() numbers.
  void predict(const double* x, double* out) const { outputs_(x, out); }
  void predict(const Cell* x, double* out) const { outputs_(x, out); }

  // The same for `count` samples that follow each other, as their outputs do.
  void predict(const double* x, Index count, double* out) const {
    for (Index i = 0; i < count; ++i) predict(x + i * features(), out + i * outputs());
  }

  std::vector<double> predict(const std::vector<double>& x) const { return predictions(x); }
  std::vector<double> predict(const std::vector<Cell>& x) const { return predictions(x); }

 private:
  template <class Value>
  std::vector<double> predictions(const std::vector<Value>& x) const {
    detail::require_features(static_cast<Index>(x.size()), features());
    std::vector<double> out(static_cast<std::size_t>(outputs()));
    predict(x.data(), out.data());
    return out;
  }

  detail::Outputs outputs_;
};

// A classifier, or a detector of novelties, that Python or C++ saved. Its labels and the values of
// its decision function are those of Python.
//
// Immutable, so one may serve many threads.
class Classifier {
 public:
  explicit Classifier(const Entries& file) : outputs_(file) {
    if (file.has("threshold")) {
      threshold_ = file.get_number("threshold");
      require(std::isfinite(*threshold_) && outputs_.model().outputs() == 1,
              "The threshold in the model file cannot be that of such a model.");
      labels_ = {Label(std::int64_t{-1}), Label(std::int64_t{1})};
      return;
    }
    const bool classifies = detail::is_loss_of_classes(file) || file.has("labels.type");
    require(classifies || file.get_text("algorithm") == "slkl",
            "The model file does not hold a classifier: use load_regressor.");
    detail::require_meaning(file, "labels.type");
    const Index outputs = outputs_.model().outputs();
    votes_ = detail::Votes::read(file, outputs);
    calibration_ = detail::Calibration::read(file, outputs);
    require(votes_ || !calibration_ || outputs == 1,
            "The calibration in the model file is not that of two classes, or of pairs of them.");
    labels_ = detail::read_labels(file, votes_ ? votes_->classes() : std::max<Index>(2, outputs));
    if (file.has("loss")) loss_ = file.get_text("loss");
  }

  // Values of a sample: its columns, if a pipeline encodes them. Each function below takes so many
  // numbers (double), or cells (Cell).
  Index features() const { return outputs_.features(); }
  const ColumnEncoding& columns() const { return outputs_.encoding(); }
  Index points() const { return outputs_.model().points(); }
  // In the order of Python's classes_. A detector of novelties has -1 (outliers) and 1.
  const std::vector<Label>& labels() const { return labels_; }
  // Numbers of the decision function: one for two classes, or for a single one, where there was no
  // other so far; otherwise one for each class; or one for each pair of classes, if the model that
  // was compressed had that.
  Index scores() const {
    if (votes_) return votes_->scores();
    return labels_.size() == 2 ? 1 : static_cast<Index>(labels_.size());
  }

  template <class Value>
  void decision(const Value* x, double* out) const {
    if (votes_) {
      const std::vector<double> values = votes_->decision(raw(x));
      std::copy(values.begin(), values.end(), out);
    } else if (scores() == outputs_.model().outputs()) {
      outputs_(x, out);
      if (threshold_) out[0] -= *threshold_;
    } else {
      double two[2];
      outputs_(x, two);
      out[0] = two[1] - two[0];
    }
  }

  // The number of the most likely class, in labels().
  template <class Value>
  Index predict_index(const Value* x) const {
    if (votes_) return votes_->winner(raw(x));
    std::vector<double> values(static_cast<std::size_t>(scores()));
    decision(x, values.data());
    if (labels_.size() == 1) return 0;
    if (threshold_) return values[0] < 0 ? 0 : 1;
    if (values.size() == 1) return values[0] > 0 ? 1 : 0;
    return std::max_element(values.begin(), values.end()) - values.begin();
  }

  template <class Value>
  const Label& predict(const Value* x) const {
    return labels_[static_cast<std::size_t>(predict_index(x))];
  }

  const Label& predict(const std::vector<double>& x) const { return label(x); }
  const Label& predict(const std::vector<Cell>& x) const { return label(x); }

  // Whether outputs stand for probabilities: those of a logistic loss, or calibrated ones.
  bool has_probabilities() const {
    return calibration_ ||
           (!votes_ && (loss_ == "binary_logistic" || loss_ == "multiclass_logistic" ||
                        loss_ == "mirror_logistic"));
  }

  // One for each label.
  template <class Value>
  std::vector<double> probabilities(const Value* x) const {
    require(has_probabilities(),
            "The model gives no probabilities: it was not trained with a logistic loss.");
    std::vector<double> values = raw(x);
    if (votes_) return votes_->probabilities(values, *calibration_);
    if (calibration_) {
      const double share = calibration_->share(values[0], 0);
      return {1 - share, share};
    }
    if (labels_.size() == 1) return {1.0};
    if (loss_ == "binary_logistic") values.insert(values.begin(), 0.0);
    if (loss_ == "mirror_logistic") {
      // exp(z), or a small part of it where only the order matters.
      const double top = *std::max_element(values.begin(), values.end());
      for (double& value : values) value = std::exp(value - std::max(0.0, top - 600));
    }
    return softmax(std::move(values));
  }

 private:
  template <class Value>
  const Label& label(const std::vector<Value>& x) const {
    detail::require_features(static_cast<Index>(x.size()), features());
    return predict(x.data());
  }

  template <class Value>
  std::vector<double> raw(const Value* x) const {
    std::vector<double> values(static_cast<std::size_t>(outputs_.model().outputs()));
    outputs_(x, values.data());
    return values;
  }

  static std::vector<double> softmax(std::vector<double> values) {
    const double top = *std::max_element(values.begin(), values.end());
    double sum = 0;
    for (double& value : values) sum += value = std::exp(value - top);
    for (double& value : values) value /= sum;
    return values;
  }

  detail::Outputs outputs_;
  std::vector<Label> labels_;
  std::optional<double> threshold_;
  std::optional<detail::Votes> votes_;
  std::optional<detail::Calibration> calibration_;
  std::string loss_;
};

// Each throws std::filesystem::filesystem_error if the file cannot be opened, and Error if it is
// not a complete model of that kind or its kernel is a user's function, which a file cannot hold.
inline Regressor load_regressor(const std::filesystem::path& path) {
  return Regressor(Entries::read(path));
}

inline Classifier load_classifier(const std::filesystem::path& path) {
  return Classifier(Entries::read(path));
}

}  // namespace parsimon
