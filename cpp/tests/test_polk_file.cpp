#include <parsimon/io/polk_file.hpp>

#include "check.hpp"
#include "failing_kernel.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

namespace {

const auto forever = [] { return true; };
const Vector unweighted(0);

struct Samples {
  RowMatrix x, y;
};

Samples classes(Index count, unsigned seed) {
  Random random(seed);
  Samples samples{random.normal_points(count, 2), RowMatrix(count, 1)};
  for (Index i = 0; i < count; ++i) {
    const double angle = std::atan2(samples.x(i, 1), samples.x(i, 0)) + 3.1415927;
    samples.y(i, 0) = std::floor(3 * angle / 6.2831854);
  }
  return samples;
}

PolkSettings settings(const std::string& loss, const BudgetSchedule& budget, bool average = false) {
  return {parse_loss(loss), StepSchedule::constant(4), budget, 1e-6, average};
}

Polk make_polk(const PolkSettings& given, Index outputs = 3) {
  return Polk(std::make_shared<Gaussian>(0.7), given, 2, outputs);
}

void train(Polk& polk, const Samples& samples, Index first, Index last, Index batch_size) {
  polk.run(samples.x.middleRows(first, last - first), samples.y.middleRows(first, last - first),
           unweighted, batch_size, forever);
}

std::string bytes(const Polk& polk) { return to_archive(polk).to_bytes(); }

Polk reload(const Polk& polk) { return polk_from_archive(Archive::from_bytes(bytes(polk))); }

double defect(const Polk& polk) {
  const SparseFunction& f = polk.function();
  const RowMatrix points = f.dictionary().points().topRows(f.basis_size());
  return reference::defect(f.factor().root(),
                           reference::core_gram(f.dictionary().kernel(), points));
}

// Stopped and loaded in the middle, and once more at odd places, the model ends up with the bits
// of the one that was never stopped.
void check_resuming(const char* what, const PolkSettings& given, Index batch_size, Index total) {
  const Samples samples = classes(total, 1);
  Polk straight = make_polk(given), stopped = make_polk(given);
  Random random(2);
  for (Index start = 0; start < total;) {
    const Index end =
        std::min(total, start + batch_size * random.integer(1, total / 8 / batch_size));
    train(straight, samples, start, end, batch_size);
    train(stopped, samples, start, end, batch_size);
    const bool same = bytes(straight) == bytes(stopped);
    if (!same) {
      std::printf("%s, after %d samples: max |TKT'-I| %.1e\n", what, static_cast<int>(end),
                  defect(straight));
    }
    CHECK(same);
    if (!same) return;
    stopped = reload(stopped);
    CHECK(bytes(straight) == bytes(stopped));
    start = end;
  }
  CHECK(straight.function().model_order() > 3);
}

// Runs `step`, which must throw, and checks that it left no trace.
template <typename Type, typename Step>
void check_refused(Polk& polk, Step step) {
  const std::string before = bytes(polk);
  CHECK_THROWS(step(), Type);
  CHECK(bytes(polk) == before);
}

Polk trained() {
  Polk polk = make_polk(settings("multiclass_hinge", BudgetSchedule::parsimony(1e-3)));
  train(polk, classes(800, 3), 0, 800, 16);
  return polk;
}

RowMatrix predictions(const Polk& polk) {
  Random random(4);
  RowMatrix values(50, polk.outputs());
  polk.predict(random.normal_points(50, 2), values);
  return values;
}

}  // namespace

TEST(training_goes_on_with_the_same_bits) {
  check_resuming("hinge", settings("multiclass_hinge", BudgetSchedule::parsimony(1e-3)), 16, 1600);
  check_resuming("logistic, averaged",
                 settings("multiclass_logistic", BudgetSchedule::parsimony(1e-3), true), 32, 1600);
  check_resuming("sample by sample", settings("multiclass_hinge", BudgetSchedule::fixed(0.3)), 1,
                 400);
}

TEST(training_goes_on_with_the_same_bits_under_an_adaptive_budget) {
  check_resuming("adaptive",
                 settings("multiclass_hinge", BudgetSchedule::hold_model_order(40, 0.01)), 16,
                 3000);
}

TEST(training_goes_on_with_the_same_bits_under_a_diminishing_step) {
  PolkSettings given = settings("multiclass_logistic", BudgetSchedule::step_squared(0.01));
  given.step = StepSchedule::power_law(4, 0.7, 10);
  check_resuming("power law", given, 8, 800);
}

TEST(training_goes_on_with_the_same_bits_without_a_budget) {
  check_resuming("no budget", settings("multiclass_hinge", BudgetSchedule::fixed(0)), 16, 600);
}

// Small budgets keep points that are nearly dependent: the factor is as bad as it gets.
TEST(training_goes_on_with_the_same_bits_where_points_are_nearly_dependent) {
  check_resuming("logistic, tiny budget",
                 settings("multiclass_logistic", BudgetSchedule::parsimony(1e-6)), 32, 4000);
  check_resuming("hinge, tiny budget",
                 settings("multiclass_hinge", BudgetSchedule::parsimony(1e-7)), 32, 2000);
}

TEST(an_empty_model_is_saved_and_trained) {
  Polk polk = make_polk(settings("multiclass_hinge", BudgetSchedule::parsimony(1e-3)));
  Polk loaded = reload(polk);
  CHECK(bytes(polk) == bytes(loaded) && loaded.function().model_order() == 0);
  train(polk, classes(200, 5), 0, 200, 16);
  train(loaded, classes(200, 5), 0, 200, 16);
  CHECK(bytes(polk) == bytes(loaded));
}

TEST(a_factor_that_was_tampered_with_is_built_anew) {
  const Polk polk = trained();
  const Archive good = to_archive(polk);
  const Vector factor = good.get_vector("factor");
  const Index size = good.get_integer("factor.size");
  const auto with_factor = [&](const Vector& packed) {
    Archive archive = good;
    archive.set("factor", packed);
    return polk_from_archive(archive);
  };
  Vector not_finite = factor, one_entry = factor, negative = factor;
  not_finite(3) = std::nan("");
  one_entry(factor.size() / 2) += 0.1;
  negative(0) = -negative(0);
  for (const Vector& bad : {Vector(1.5 * factor), Vector(0 * factor), Vector(-factor), not_finite,
                            one_entry, negative, Vector(Vector::Ones(factor.size()))}) {
    Polk loaded = with_factor(bad);
    CHECK(defect(loaded) < 1e-6);
    CHECK((predictions(loaded) - predictions(polk)).cwiseAbs().maxCoeff() < 1e-12);
    train(loaded, classes(300, 6), 0, 300, 16);
    CHECK(predictions(loaded).allFinite() && predictions(loaded).cwiseAbs().maxCoeff() < 100);
  }
  Archive smaller = good;
  smaller.set("factor.size", size - 2);
  smaller.set("factor", Vector(factor.head((size - 2) * (size - 1) / 2)));
  CHECK_THROWS(polk_from_archive(smaller), Error);
  smaller.set("factor.diagonal", Vector(good.get_vector("factor.diagonal").head(size - 2)));
  Polk loaded = polk_from_archive(smaller);
  train(loaded, classes(300, 6), 0, 300, 16);
  CHECK(defect(loaded) < 1e-6);
}

// The diagonal is kept beside the factor and must be as little trusted.
TEST(no_entry_of_the_file_can_make_the_factor_wrong) {
  const Archive good = to_archive(trained());
  for (const auto& [name, entry] : good.entries()) {
    if (name.rfind("factor", 0) != 0 || entry.type != Archive::Type::numbers) continue;
    for (const double factor : {0.0, -1.0, 1e3, std::nan("")}) {
      Archive archive = good;
      archive.set(name, Vector(factor * good.get_vector(name)));
      const Polk loaded = polk_from_archive(archive);
      CHECK(defect(loaded) < 1e-6);
      const RowMatrix root = loaded.function().factor().root();
      const Vector expected = root.colwise().squaredNorm();
      const Vector diagonal = loaded.function().factor().inverse_diagonal();
      CHECK((diagonal - expected).cwiseAbs().cwiseQuotient(expected).maxCoeff() < 1e-6);
    }
  }
}

TEST(files_that_contradict_themselves_are_refused) {
  const Archive good = to_archive(trained());
  const auto refused = [&](const std::string& name, const auto& value) {
    Archive archive = good;
    archive.set(name, value);
    CHECK_THROWS(polk_from_archive(archive), Error);
  };
  const RowMatrix points = good.get_matrix("dictionary"), weights = good.get_matrix("weights");
  const Index size = points.rows();
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), 1e100, -1e300}) {
    RowMatrix wrong = weights;
    wrong(0, 0) = bad;
    refused("weights", wrong);
  }
  refused("weights", RowMatrix(weights.topRows(size - 1)));
  refused("weights", RowMatrix(weights.leftCols(2)));
  refused("dictionary", RowMatrix(points.leftCols(1)));
  refused("dictionary", RowMatrix(points.topRows(size - 1)));
  refused("dictionary.ids", std::vector<std::int64_t>(static_cast<std::size_t>(size), 1));
  refused("dictionary.ids", std::vector<std::int64_t>{-1});
  refused("dictionary.origin", Vector(Vector::Zero(3)));
  refused("factor.size", size + 1);
  refused("factor.size", Index{-1});
  refused("factor.size", std::numeric_limits<Index>::max());
  refused("factor", Vector(Vector::Zero(7)));
  refused("factor.changes", -1);
  refused("features", 0);
  refused("features", 3);
  refused("outputs", -3);
  refused("samples", -1);
  refused("algorithm", std::string("colk"));
  refused("kernel", std::string("function(f)"));
  refused("kernel", std::string("gaussian([1,1,1])"));
  refused("loss", std::string("hinge"));
  refused("loss", std::string("binary_hinge"));
  refused("regularization", 1.0);
  refused("step.parameters", Vector(Vector::Constant(1, -1.0)));
  refused("budget", std::string("none"));
  refused("trace", RowMatrix(RowMatrix::Zero(2, 5)));
  refused("trace", RowMatrix(RowMatrix::Constant(2, 6, 1e300)));
}

TEST(a_mini_batch_that_diverges_has_not_happened) {
  PolkSettings given = settings("squared", BudgetSchedule::fixed(1e-3), true);
  given.step = StepSchedule::constant(1e3);
  Polk polk = make_polk(given, 1);
  Random random(7);
  const RowMatrix x = random.normal_points(200, 2), y = random.normal_points(200, 1);
  bool diverged = false;
  for (Index start = 0; start < 200 && !diverged; start += 4) {
    const std::string before = bytes(polk);
    try {
      polk.run(x.middleRows(start, 4), y.middleRows(start, 4), unweighted, 4, forever);
    } catch (const DivergenceError&) {
      diverged = true;
      CHECK(bytes(polk) == before);
      CHECK(polk.function().weights().allFinite());
    }
  }
  CHECK(diverged);
  Polk fresh = make_polk(given, 1);
  check_refused<DivergenceError>(
      fresh, [&] { fresh.run(x.topRows(4), 1e60 * y.topRows(4), unweighted, 4, forever); });
}

TEST(samples_at_which_the_kernel_is_not_finite_have_not_been_seen) {
  Random random(8);
  for (const double budget : {0.0, 0.01}) {
    Polk polk(std::make_shared<Polynomial>(3, 1.0, 1.0),
              {parse_loss("multiclass_hinge"), StepSchedule::constant(0.1),
               BudgetSchedule::fixed(budget), 1e-2, true},
              2, 3);
    const RowMatrix far = RowMatrix::Constant(3, 2, 1e200), y = RowMatrix::Zero(3, 1);
    check_refused<Error>(polk, [&] { polk.run(far, y, unweighted, 3, forever); });
    const Samples samples = classes(30, 9);
    train(polk, samples, 0, 30, 3);
    RowMatrix mixed = samples.x.topRows(3);
    mixed.row(1).setConstant(1e200);
    const std::string before = bytes(polk);
    bool refused = false;
    try {
      polk.run(mixed, y, unweighted, 3, forever);
    } catch (const std::exception&) {  // Error or DivergenceError: the prediction is not finite
      refused = true;
    }
    CHECK(refused && bytes(polk) == before);
  }
}

// A kernel written in Python may fail at any moment. A mini-batch that fails has not happened.
TEST(a_kernel_that_fails_leaves_the_model_as_it_was) {
  int calls_left = 1 << 30;
  PolkSettings given = settings("multiclass_logistic", BudgetSchedule::fixed(0.05), true);
  given.regularization = 0.01;
  Polk polk(reference::failing_kernel(1, calls_left), given, 2, 3);
  const Samples samples = classes(400, 10);
  int failures = 0;
  for (Index start = 0; start < 400; start += 8) {
    calls_left = 1 << 30;
    const std::string before = bytes(polk);
    for (int calls = 0;; ++calls) {
      calls_left = calls;
      try {
        train(polk, samples, start, start + 8, 8);
        break;
      } catch (const std::runtime_error&) {
        ++failures;
        CHECK(bytes(polk) == before);
      }
    }
  }
  CHECK(failures > 60);
}

TEST(input_that_does_not_fit_is_refused) {
  Polk polk = trained();
  const Samples samples = classes(10, 11);
  const auto refused = [&](const RowMatrix& x, const RowMatrix& y, const Vector& w, Index batch) {
    check_refused<Error>(polk, [&] { polk.run(x, y, w, batch, forever); });
  };
  RowMatrix nan = samples.x;
  nan(9, 1) = std::nan("");
  refused(nan, samples.y, unweighted, 2);
  nan(9, 1) = std::numeric_limits<double>::infinity();
  refused(nan, samples.y, unweighted, 2);
  refused(RowMatrix::Zero(10, 3), samples.y, unweighted, 2);
  refused(samples.x, samples.y.topRows(9), unweighted, 2);
  refused(samples.x, samples.y, Vector::Ones(9), 2);
  refused(samples.x, samples.y, Vector::Constant(10, std::nan("")), 2);
  refused(samples.x, samples.y, unweighted, 0);
  refused(samples.x, RowMatrix::Constant(10, 1, 3.0), unweighted, 2);
  refused(samples.x, RowMatrix::Constant(10, 1, 0.5), unweighted, 2);
  refused(samples.x, RowMatrix::Constant(10, 1, -1.0), unweighted, 2);
  refused(samples.x, RowMatrix::Zero(10, 2), unweighted, 2);
}
