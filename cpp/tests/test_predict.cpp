#include <parsimon/io/slkl_file.hpp>
#include <parsimon/predict.hpp>

#include "check.hpp"
#include "kernel_cases.hpp"

using namespace parsimon;
using namespace kernel_cases;

namespace {

constexpr double kHuge = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

KernelExpansion expansion(const KernelPtr& kernel, const RowMatrix& points, Index outputs) {
  return {kernel, points, normal(points.rows(), outputs, 3)};
}

RowMatrix predicted(const Predictor& model, const RowMatrix& x) {
  RowMatrix values(x.rows(), model.outputs());
  model.predict(x.data(), x.rows(), values.data());
  return values;
}

// |f - g| <= 1e-12 sum_m |w_m k(d_m, x)|, the sum being what rounding is relative to.
void check_same_values(const KernelExpansion& f, const RowMatrix& x) {
  const Predictor model = Predictor::from_bytes(to_archive(f).to_bytes());
  CHECK(model.features() == x.cols() && model.outputs() == f.outputs());
  CHECK(model.points() == f.model_order() && !model.is_density());
  const RowMatrix expected = f(x), values = predicted(model, x);
  const RowMatrix each = RowMatrix::Identity(f.model_order(), f.model_order());
  const RowMatrix terms = KernelExpansion(f.dictionary(), each)(x).cwiseAbs();
  const RowMatrix scale = terms * f.weights().cwiseAbs();
  CHECK(((values - expected).array().abs() <= 1e-12 * scale.array()).all());
}

// A model of the algorithm SLKL, which has the fewest entries, with one output.
Archive file(const std::string& kernel, const RowMatrix& points, const RowMatrix& weights) {
  Archive archive;
  archive.set("algorithm", "slkl");
  archive.set("kernel", kernel);
  archive.set("features", points.cols());
  archive.set("outputs", weights.cols());
  archive.set("dictionary", points);
  archive.set("weights", weights);
  return archive;
}

Archive file(const std::string& kernel = "gaussian(1)") {
  return file(kernel, normal(5, 2, 1), normal(5, 1, 2));
}

// The same as an iterate and an average of it.
Archive with_average(const std::string& algorithm, bool average) {
  Archive archive = file("gaussian(1)", normal(5, 2, 1), normal(5, average ? 4 : 2, 2));
  archive.set("algorithm", algorithm);
  archive.set("outputs", 2);
  archive.set("average", average);
  return archive;
}

Archive density(const std::string& algorithm) {
  Archive archive = file();
  archive.set("algorithm", algorithm);
  archive.set("domain.lower", std::vector<double>{-1, 0});
  archive.set("domain.upper", std::vector<double>{2, 0.5});
  archive.set("batches", 7);
  archive.set("average", false);
  archive.set("dual_averaging", false);
  archive.set("step", "power_law");
  archive.set("step.parameters", std::vector<double>{3, 0.5, 10});
  archive.set("mirror", "mahalanobis");
  archive.set("mirror.parameters", std::vector<double>{2, 0.1, 0.2, 0.3, 0.4});
  archive.set("weights.average", normal(5, 1, 4).col(0));
  return archive;
}

double value_at(const Archive& archive, const RowVector& x) {
  double value = 0;
  Predictor(archive).predict(x.data(), &value);
  return value;
}

double density_at(const Archive& archive, double x, double y) {
  const double point[] = {x, y};
  return Predictor(archive).density(point);
}

std::string refusal_of(const Archive& archive) {
  try {
    const Predictor model(archive);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(every_kernel_has_the_values_of_the_core) {
  for (const Index features : {1, 2, 3, 4, 7, 20, 64}) {
    const RowMatrix points = normal(70, features, 1), x = normal(20, features, 2);
    const double h = std::sqrt(static_cast<double>(features));
    const RowVector each = h * (normal(1, features, 5).array().abs() + 0.5);
    for (const RowVector& lengths : {scalar(h), RowVector(each)}) {
      for (const Case& c : all_cases(lengths)) {
        check_same_values(expansion(c.kernel, points, 2), x);
        check_same_values(expansion(c.kernel, points, 2), points.topRows(10));
      }
    }
    for (const char* kernel : {"constant()", "sum(gaussian(2),constant())",
                               "product(laplacian(3),scale(0.1,sum(linear(),constant())))"}) {
      check_same_values(expansion(parse_kernel(kernel), points, 1), x);
    }
  }
}

TEST(any_number_of_points_and_outputs_is_possible) {
  const auto kernel = std::make_shared<Gaussian>(2.0);
  for (const Index size : {1, 7, 8, 9, 63, 64, 65, 72, 128, 200}) {
    for (const Index outputs : {1, 2, 9}) {
      check_same_values(expansion(kernel, normal(size, 5, 1), outputs), normal(3, 5, 2));
    }
  }
}

TEST(a_model_without_points_is_zero_and_costs_no_memory_for_its_features) {
  const Index many = Index{1} << 39;
  Archive archive = file("gaussian(1)", RowMatrix(0, 3), RowMatrix(0, 2));
  CHECK(predicted(Predictor(archive), normal(4, 3, 1)) == RowMatrix::Zero(4, 2));
  archive = file("gaussian(1)", RowMatrix(0, many), RowMatrix(0, 2));
  CHECK(Predictor(archive).features() == many && Predictor(archive).points() == 0);
  CHECK_THROWS(Predictor(file("gaussian(1)", RowMatrix(0, 3), RowMatrix(0, many))), Error);
}

// In single precision the core is right to 1e-6; one sample is computed in double precision.
TEST(single_precision_is_not_worth_it_for_one_sample) {
  const RowMatrix points = normal(70, 30, 1), x = normal(20, 30, 2);
  const auto kernel = std::make_shared<Gaussian>(5.0);
  const KernelExpansion f = expansion(kernel, points, 1);
  const KernelExpansion single(std::make_shared<SinglePrecision>(kernel), points, f.weights());
  const Predictor plain(to_archive(f)), rounded(to_archive(single));
  CHECK(predicted(plain, x) == predicted(rounded, x));
  CHECK((predicted(rounded, x) - single(x)).cwiseAbs().maxCoeff() < 1e-4);
}

TEST(neither_size_nor_place_of_the_data_costs_digits) {
  for (const Index features : {2, 40}) {
    const RowMatrix points = normal(20, features, 1), x = normal(5, features, 2);
    for (const double size : {1e-300, 1e-150, 1e-8, 1e8, 1e150, 1e300}) {
      for (const Case& c : stationary_cases(scalar(5 * size))) {
        check_same_values(expansion(c.kernel, size * points, 1), size * x);
      }
    }
    // Numbers that are exact so far from 0.
    const RowMatrix near = (points * 1024).array().round() / 1024;
    const RowMatrix far = (near.array() + 0x1p40).matrix();
    for (const Case& c : stationary_cases(scalar(5.0))) {
      const KernelExpansion here = expansion(c.kernel, near, 1),
                            there = expansion(c.kernel, far, 1);
      const RowMatrix at = near.topRows(5), moved = far.topRows(5);
      CHECK(predicted(Predictor(to_archive(here)), at) ==
            predicted(Predictor(to_archive(there)), moved));
    }
  }
  // The inverse of this bandwidth is infinite.
  const RowMatrix one = RowMatrix::Ones(1, 1);
  const Archive archive = file("gaussian(1e-310)", one, one);
  CHECK(value_at(archive, RowVector::Ones(1)) == 1 && value_at(archive, RowVector::Zero(1)) == 0);
}

TEST(predictions_come_from_the_average_if_there_is_one) {
  for (const char* algorithm : {"polk", "colk", "compositional", "policy_evaluation"}) {
    for (const bool average : {false, true}) {
      const Archive archive = with_average(algorithm, average);
      const RowMatrix x = normal(6, 2, 5), weights = archive.get_matrix("weights").rightCols(2);
      const KernelExpansion f(std::make_shared<Gaussian>(1.0), archive.get_matrix("dictionary"),
                              weights);
      CHECK((predicted(Predictor(archive), x) - f(x)).cwiseAbs().maxCoeff() < 1e-14);
    }
  }
}

TEST(a_density_is_that_of_its_mirror_map_in_its_domain) {
  Archive archive = density("spppot");
  const RowVector x = RowVector::Constant(2, 0.3);
  const double z = value_at(archive, x), volume = 1.5;
  const double weight = 0.5 + 2 * std::exp(-0.5 * (std::pow(0.2 / 0.3, 2) + std::pow(0.25, 2)));
  CHECK_NEAR(density_at(archive, 0.3, 0.3), weight * z / volume, 1e-14);
  archive.set("mirror.parameters", std::vector<double>());
  archive.set("mirror", "euclidean");
  CHECK_NEAR(density_at(archive, 0.3, 0.3), z / volume, 1e-14);
  archive.set("mirror", "kl");
  CHECK_NEAR(density_at(archive, 0.3, 0.3), std::exp(z) / volume, 1e-14);
  CHECK(density_at(archive, 0.3, 0.6) == 0 && density_at(archive, 2.1, 0.2) == 0);
  CHECK(density_at(archive, 2, 0.5) > 0);
  CHECK(Predictor(archive).is_density());

  archive.set("algorithm", "hybrid");
  archive.set("phase", "spppot");
  CHECK_NEAR(density_at(archive, 0.3, 0.3), std::exp(z) / volume, 1e-14);
  archive.set("phase", "mirror_newton");
  CHECK(density_at(archive, 0.3, 0.3) == density_at(density("mirror_newton"), 0.3, 0.3));
  const KernelExpansion newton(std::make_shared<Gaussian>(1.0), archive.get_matrix("dictionary"),
                               archive.get_vector("weights.average"));
  CHECK_NEAR(value_at(archive, x), newton(x)(0, 0), 1e-14);
}

TEST(dual_averaging_multiplies_the_last_iterate_by_the_step) {
  Archive archive = density("spppot");
  const RowVector x = RowVector::Zero(2);
  const double z = value_at(archive, x);
  archive.set("dual_averaging", true);
  CHECK_NEAR(value_at(archive, x), -3 / std::sqrt(1.7) * z, 1e-14);
}

TEST(what_is_not_a_number_is_refused_and_never_predicted) {
  const Predictor model(file("polynomial(3,1,1)"));
  double value = 0;
  for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
    const double x[] = {0, bad};
    CHECK_THROWS(model.predict(x, &value), Error);
  }
  const double large[] = {1e300, 1e300};
  CHECK_THROWS(model.predict(large, &value), DivergenceError);
  CHECK_THROWS(
      Predictor(file("polynomial(1000000,1,1)")).predict(RowVector::Ones(2).eval().data(), &value),
      DivergenceError);
  CHECK_THROWS(model.density(large), Error);
  Archive steep = density("mirror_newton");
  steep.set("weights.average", Vector(Vector::Constant(5, 1e6)));
  CHECK_THROWS(density_at(steep, 0, 0), DivergenceError);
  const Predictor far(file("gaussian(1e-300)", RowMatrix::Constant(1, 2, -kHuge), normal(1, 1, 1)));
  const double opposite[] = {kHuge, kHuge};
  far.predict(opposite, &value);
  CHECK(value == 0);
}

TEST(files_that_do_not_fit_together_are_refused) {
  CHECK(refusal_of(file()).empty());
  const auto refused = [](const std::string& name, const auto& value, const std::string& part,
                          Archive archive = file()) {
    archive.set(name, value);
    const std::string message = refusal_of(archive);
    CHECK(contains(message, part));
  };
  RowMatrix points = normal(5, 2, 1), weights = normal(5, 1, 2);
  refused("algorithm", std::string("svm"), "algorithm svm");
  refused("kernel", std::string("function(mine)"), "function kernel");
  refused("kernel", std::string("gaussian([1,2,3])"), "3 bandwidths");
  refused("kernel", std::string("sum(linear(),gaussian([1]))"), "1 bandwidths");
  for (const Index size : {Index{0}, Index{-1}, Index{1} << 40}) {
    refused("features", size, "impossible sizes");
    refused("outputs", size, "impossible sizes");
  }
  refused("features", 3, "dictionary");
  refused("outputs", 2, "weights");
  refused("weights", RowMatrix(weights.topRows(4)), "weights");
  refused("weights", Vector(weights.col(0)), "a matrix of numbers");
  for (const double bad : {1e100, -1e100, kInfinity, std::nan("")}) {
    weights(3, 0) = bad;
    refused("weights", weights, "1e100 or more");
  }
  points(4, 1) = kInfinity;
  refused("dictionary", points, "not finite");

  refused("domain.lower", std::vector<double>{0}, "bound for each feature", density("spppot"));
  refused("domain.upper", std::vector<double>{2, -1}, "domain reaches", density("spppot"));
  refused("mirror", std::string("kl"), "no mirror map", density("spppot"));
  refused("mirror.parameters", std::vector<double>{1, 0, 1}, "1 features", density("spppot"));
  refused("outputs", 2, "weights", density("spppot"));
  refused("weights.average", std::vector<double>{0}, "weights.average", density("mirror_newton"));
  refused("phase", std::string("polk"), "unknown phase", density("hybrid"));
  Archive dual = density("spppot");
  dual.set("dual_averaging", true);
  refused("batches", -1, "counts nothing", dual);
  refused("step", std::string("constant"), "no step schedule", dual);
}

TEST(entries_that_are_missing_or_of_another_kind_are_refused) {
  for (const Archive& archive : {file(), with_average("polk", true), density("mirror_newton")}) {
    for (const auto& [name, entry] : archive.entries()) {
      Archive without, other;
      for (const auto& [kept, value] : archive.entries()) {
        if (kept == name) continue;
        if (value.type == Archive::Type::text) without.set(kept, archive.get_text(kept));
        if (value.type == Archive::Type::integers) without.set(kept, archive.get_integer(kept));
        if (value.shape.size() == 1 && value.type == Archive::Type::numbers) {
          without.set(kept, archive.get_vector(kept));
        }
        if (value.shape.size() == 2) without.set(kept, archive.get_matrix(kept));
      }
      other = without;
      other.set(name, std::vector<std::int64_t>{1});
      // Not every algorithm needs all of these.
      const std::string message = refusal_of(without), kind = refusal_of(other);
      CHECK(message.empty() == kind.empty());
      CHECK(message.empty() || (contains(message, name) && contains(kind, name)));
    }
  }
}

TEST(files_are_read_as_archives_are) {
  CHECK_THROWS(Predictor::load("no such file"), std::filesystem::filesystem_error);
  std::string bytes = file().to_bytes();
  CHECK(Predictor::from_bytes(bytes).points() == 5);
  bytes[bytes.size() / 2] ^= 1;
  CHECK_THROWS(Predictor::from_bytes(bytes), Error);
}

namespace {

// A number and a text, which become one number and three.
Archive with_columns() {
  Archive archive = file("gaussian(1)", normal(5, 4, 1), normal(5, 1, 2));
  archive.set("pipeline", 1);
  archive.set("pipeline.columns", 2);
  archive.set("pipeline.column.0", "colour");
  archive.set("pipeline.column.1", "size");
  archive.set("pipeline.is_text", std::vector<std::int64_t>{1, 0});
  archive.set("pipeline.mean", std::vector<double>{2});
  archive.set("pipeline.scale", std::vector<double>{4});
  archive.set("pipeline.places", std::vector<std::int64_t>{3});
  archive.set("pipeline.categories", std::vector<std::int64_t>{1});
  archive.set("pipeline.category.0.0", "red");
  return archive;
}

std::string refusal_of_regressor(const Archive& archive) {
  try {
    const Regressor model(archive);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(cells_are_encoded_as_the_pipeline_says) {
  Archive archive = with_columns();
  const Regressor model(archive);
  CHECK(model.features() == 2 && model.columns().has_text());
  CHECK(model.columns().names() == std::vector<std::string>({"colour", "size"}));
  CHECK(model.columns().is_text(0) && !model.columns().is_text(1));
  const auto is = [&](const Regressor& regressor, const Cell& colour, const Cell& size,
                      const RowVector& encoded) {
    return regressor.predict(std::vector<Cell>{colour, size})[0] == value_at(archive, encoded);
  };
  RowVector red(4), unknown(4), missing(4), last(4);
  red << 1.5, 1, 0, 0;
  unknown << 1.5, 0, 0, 0;
  missing << 0, 1, 0, 0;
  last << 1.5, 0, 0, 1;
  CHECK(is(model, {0, "red"}, {8, ""}, red));
  CHECK(is(model, {0, "blue"}, {8, ""}, unknown));
  CHECK(is(model, {0, ""}, {8, ""}, unknown));
  CHECK(is(model, {0, "red"}, {}, missing));
  CHECK_THROWS(model.predict(std::vector<double>{1, 8}), Error);
  CHECK_THROWS(model.predict(std::vector<Cell>(3)), Error);
  CHECK_THROWS(model.predict(std::vector<Cell>{{0, "red"}, {kInfinity, ""}}), Error);
  // The other places are taken.
  archive.set("pipeline.categories", std::vector<std::int64_t>{2});
  archive.set("pipeline.category.0.1", "green");
  CHECK(is(Regressor(archive), {0, "blue"}, {8, ""}, last));
}

TEST(columns_that_do_not_fit_together_are_refused) {
  CHECK(refusal_of_regressor(with_columns()).empty());
  const auto refused = [](const std::string& name, const auto& value, const std::string& part) {
    Archive archive = with_columns();
    archive.set(name, value);
    CHECK(contains(refusal_of_regressor(archive), part));
  };
  using Integers = std::vector<std::int64_t>;
  refused("pipeline.columns", -1, "without columns");
  refused("pipeline.columns", 3, "pipeline.is_text");
  refused("pipeline.is_text", Integers{0, 0}, "pipeline.mean");
  refused("pipeline.mean", std::vector<double>{kInfinity}, "not finite");
  refused("pipeline.scale", std::vector<double>{0}, "not positive");
  refused("pipeline.places", Integers{4}, "not that of its model");
  refused("pipeline.places", Integers{7}, "cannot have");
  refused("pipeline.places", Integers{Index{1} << 60}, "cannot have");
  refused("pipeline.categories", Integers{3}, "cannot have");
  refused("pipeline.categories", Integers{-1}, "cannot have");
  refused("pipeline.categories", Integers{2}, "pipeline.category.0.1");
  refused("pipeline.column.0", 1, "pipeline.column.0");
}

TEST(a_single_class_is_always_the_answer) {
  for (const Index outputs : {1, 2}) {
    Archive archive = file("gaussian(1)", normal(5, 2, 1), normal(5, outputs, 2));
    archive.set("loss", outputs == 1 ? "binary_logistic" : "mirror_logistic");
    for (const bool text : {true, false}) {
      Archive told = archive;
      told.set("labels.type", text ? "text" : "<i8");
      if (text) told.set("labels.0", "only");
      if (!text) told.set("labels", std::vector<std::int64_t>{7});
      const Classifier model(told);
      CHECK(model.labels().size() == 1 && model.scores() == 1);
      const std::vector<double> x = {0.3, -0.4};
      CHECK(model.predict(x).text() == (text ? "only" : "7"));
      CHECK(model.probabilities(x.data()) == std::vector<double>{1});
      double values[2], score = 0;
      Predictor(told).predict(x.data(), values);
      model.decision(x.data(), &score);
      CHECK(score == (outputs == 1 ? values[0] : values[1] - values[0]));
    }
  }
}
