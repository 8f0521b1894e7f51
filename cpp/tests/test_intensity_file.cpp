#include <optional>
#include <parsimon/io/intensity_file.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

namespace {

const auto forever = [] { return true; };
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

RowMatrix bump(Index count, Index features, Random& random) {
  RowMatrix samples(count, features);
  for (double& x : samples.reshaped()) {
    do x = 0.6 + 0.15 * random.normal();
    while (x < 0 || x > 1);
  }
  return samples;
}

SpppotSettings settings(double step, const Compression& compression) {
  SpppotSettings all;
  all.step = StepSchedule::constant(step);
  all.compression = compression;
  return all;
}

Spppot on_coarse_grid(const SpppotSettings& given) {
  return {std::make_shared<Gaussian>(0.1), given, Box::unit(2), Quadrature::grid({5, 6})};
}

// 100 nodes, of which 38 are numerically independent.
Spppot on_fine_grid(const SpppotSettings& given) {
  return {std::make_shared<Gaussian>(std::sqrt(0.0065)), given, Box::unit(1),
          Quadrature::grid({100})};
}

const MirrorNewtonSettings newton_settings{StepSchedule::power_law(1, 0.5, 50), 2};

MirrorNewton newton() {
  return {std::make_shared<Gaussian>(0.2), newton_settings, Box::unit(2), Quadrature::grid({5, 6})};
}

Hybrid hybrid() {
  OrderWatch watch;
  watch.patience = 30;
  watch.cap = 60;
  return {on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0.02))), newton_settings, watch};
}

void load(const Archive& archive, std::optional<Spppot>& model) {
  model.emplace(spppot_from_archive(archive));
}
void load(const Archive& archive, std::optional<MirrorNewton>& model) {
  model.emplace(mirror_newton_from_archive(archive));
}
void load(const Archive& archive, std::optional<Hybrid>& model) {
  model.emplace(hybrid_from_archive(archive));
}

template <class Model>
Model from(const Archive& archive) {
  std::optional<Model> model;
  load(archive, model);
  return std::move(*model);
}

template <class Model>
std::string bytes(const Model& model) {
  return to_archive(model).to_bytes();
}

// Stopped and loaded at odd places, the model ends up with the bits of the one that was never
// stopped.
template <class Model>
void check_resuming(const char* what, Model straight, Index batch_size, Index batches) {
  Random random(1);
  Model stopped = straight;
  for (Index done = 0; done < batches;) {
    const Index count = batch_size * random.integer(1, 1 + batches / 10);
    const RowMatrix samples = bump(count, straight.features(), random);
    straight.run(samples, batch_size, forever);
    stopped.run(samples, batch_size, forever);
    done += count / batch_size;
    const bool same = bytes(straight) == bytes(stopped);
    if (!same) std::printf("%s: other bits after %d batches\n", what, static_cast<int>(done));
    CHECK(same);
    if (!same) return;
    stopped = from<Model>(Archive::from_bytes(bytes(stopped)));
    CHECK(bytes(straight) == bytes(stopped));
  }
}

template <class Model>
Model trained(Model model, Index batches) {
  Random random(2);
  model.run(bump(8 * batches, model.features(), random), 8, forever);
  return model;
}

// The archive without one of its entries.
Archive without(const Archive& archive, const std::string& missing) {
  Archive result;
  for (const auto& [name, entry] : archive.entries()) {
    const std::size_t rank = entry.shape.size();
    if (name == missing) continue;
    if (entry.type == Archive::Type::text) {
      result.set(name, archive.get_text(name));
    } else if (entry.type == Archive::Type::integers) {
      rank == 0 ? result.set(name, archive.get_integer(name))
                : result.set(name, archive.get_integers(name));
    } else if (rank == 0) {
      result.set(name, archive.get_number(name));
    } else {
      rank == 1 ? result.set(name, archive.get_vector(name))
                : result.set(name, archive.get_matrix(name));
    }
  }
  return result;
}

template <class Model, typename Value>
void check_refused(const Archive& good, const std::string& name, const Value& value) {
  Archive archive = good;
  archive.set(name, value);
  bool refused = false;
  try {
    from<Model>(archive);
  } catch (const Error&) {
    refused = true;
  }
  if (!refused) std::printf("not refused: %s\n", name.c_str());
  CHECK(refused);
}

// Each entry missing, of another size, or without a single finite number. A factor is built anew
// if it is not the dictionary's.
template <class Model>
void check_damaged(const Model& model) {
  const Archive good = to_archive(model);
  CHECK(without(good, "").to_bytes() == good.to_bytes());
  for (const auto& [name, entry] : good.entries()) {
    if (name == "algorithm") continue;  // for whoever chooses the function that reads the rest
    bool refused = false;
    try {
      from<Model>(without(good, name));
    } catch (const Error&) {
      refused = true;
    }
    if (!refused) std::printf("can be missing: %s\n", name.c_str());
    CHECK(refused);
    if (entry.type == Archive::Type::text) check_refused<Model>(good, name, std::string("foo"));
    if (entry.type != Archive::Type::numbers) continue;
    if (entry.shape.size() == 2) {
      const RowMatrix all = good.get_matrix(name);
      RowMatrix wide(all.rows(), all.cols() + 1);
      wide << all, Vector::Zero(all.rows());
      check_refused<Model>(good, name, wide);
      if (all.size() > 0) check_refused<Model>(good, name, RowMatrix(std::nan("") * all));
    } else if (entry.shape.size() == 1) {
      Vector all = good.get_vector(name);
      const bool is_factor = name == "factor" || name == "factor.diagonal";
      if (all.size() > 0 && !is_factor) {
        check_refused<Model>(good, name, Vector(std::nan("") * all));
      }
      all.conservativeResize(all.size() + 1);
      all(all.size() - 1) = 1;
      check_refused<Model>(good, name, all);
    } else {
      check_refused<Model>(good, name, std::nan(""));
    }
  }
}

// Numbers of nodes that the file does not hold must be refused before memory is asked for.
template <class Model>
void check_absurd_counts(const Archive& good) {
  using Counts = std::vector<std::int64_t>;
  for (const Counts& counts :
       {Counts{}, Counts{0, 0}, Counts{-5, -6}, Counts{30}, Counts{kHuge, kHuge},
        Counts{1 << 16, 1 << 15}, Counts{1 << 30, 2}, Counts{5, 6, 1}}) {
    check_refused<Model>(good, "quadrature.counts", counts);
  }
  Archive scattered = good;
  scattered.set("quadrature", std::string("scattered"));
  check_refused<Model>(scattered, "quadrature.counts", Counts{std::int64_t{1} << 31});
  for (const char* name : {"samples", "batches"}) {
    for (const std::int64_t count : {std::int64_t{-1}, kHuge})
      check_refused<Model>(good, name, count);
  }
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-2}, std::int64_t{3}, kHuge}) {
    check_refused<Model>(good, "features", count);
    check_refused<Model>(good, "outputs", count);
  }
  check_refused<Model>(good, "domain.lower", Vector(Vector::Constant(2, 2.0)));
  check_refused<Model>(good, "kernel", std::string("gaussian([1,1,1])"));
  check_refused<Model>(good, "kernel", std::string("function(f)"));
  check_refused<Model>(good, "trace", RowMatrix(RowMatrix::Constant(2, 6, 1e300)));
  check_refused<Model>(good, "trace", RowMatrix(RowMatrix::Constant(2, 6, -1.0)));
}

}  // namespace

TEST(training_goes_on_with_the_same_bits) {
  check_resuming("coarse", on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0.02))), 8, 150);
  check_resuming("fine", on_fine_grid(settings(0.5, BudgetSchedule::fixed(1e-3))), 8, 100);
  check_resuming("tiny budget", on_fine_grid(settings(1, BudgetSchedule::fixed(1e-5))), 8, 100);
  check_resuming("no budget", on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0))), 3, 60);
  check_resuming("adaptive",
                 on_coarse_grid(settings(0.3, BudgetSchedule::hold_model_order(60, 0.05))), 4, 300);
  check_resuming("capped", on_coarse_grid(settings(0.3, {BudgetSchedule::fixed(0.02), 35})), 8,
                 150);
}

TEST(training_goes_on_with_the_same_bits_for_every_map_gradient_and_method) {
  const RowVector centre = RowVector::Constant(2, 0.4), width = RowVector::Constant(2, 0.3);
  for (const MirrorMap& mirror :
       {MirrorMap::kl(), MirrorMap::euclidean(), MirrorMap::mahalanobis(1, centre, width)}) {
    for (const PseudoGradient gradient :
         {PseudoGradient::likelihood, PseudoGradient::kernel_embedding, PseudoGradient::sign}) {
      for (const bool dual : {false, true}) {
        SpppotSettings given = settings(0.1, BudgetSchedule::proportional(dual ? 2 : 0.1));
        given.mirror = mirror;
        given.gradient = gradient;
        given.dual_averaging = dual;
        given.average = !dual;
        given.regularization = 0.01;
        given.step = StepSchedule::power_law(0.2, 0.3, 10);
        check_resuming("combination", on_coarse_grid(given), 5, 40);
      }
    }
  }
}

namespace {

void check_resuming_in(Index features) {
  const double h = 0.2 * std::sqrt(static_cast<double>(features));
  Spppot model(std::make_shared<Matern>(h, 2.5), settings(0.5, BudgetSchedule::fixed(0.02)),
               Box::unit(features), Quadrature::scattered(37));
  check_resuming("scattered", model, 7, 80);
}

}  // namespace

TEST(training_goes_on_with_the_same_bits_in_any_number_of_features) {
  for (const Index features : {1, 3, 5, 16}) check_resuming_in(features);
}

// Beyond 16 features kernel values come from a product of matrices.
TEST(training_goes_on_with_the_same_bits_where_there_are_many_features) { check_resuming_in(20); }

TEST(training_goes_on_with_the_same_bits_in_the_other_algorithms) {
  check_resuming("newton", newton(), 3, 150);
  check_resuming("hybrid", hybrid(), 8, 150);
}

TEST(a_model_without_samples_is_saved_and_trained) {
  const Spppot empty = on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0.02)));
  CHECK(bytes(from<Spppot>(to_archive(empty))) == bytes(empty));
  CHECK(bytes(trained(from<Spppot>(to_archive(empty)), 20)) == bytes(trained(empty, 20)));
  CHECK(bytes(trained(from<MirrorNewton>(to_archive(newton())), 20)) ==
        bytes(trained(newton(), 20)));
  CHECK(bytes(trained(from<Hybrid>(to_archive(hybrid())), 20)) == bytes(trained(hybrid(), 20)));
}

// A few points, and as many nodes as their integral needs.
TEST(a_small_dictionary_with_a_fine_quadrature_is_read_back) {
  Dictionary dictionary(std::make_shared<Gaussian>(0.3), 2);
  dictionary.append(RowMatrix::Constant(3, 2, 0.5), true);
  const MirrorNewton model(dictionary, Vector::Zero(3), newton_settings, Box::unit(2),
                           Quadrature::grid({30, 30}));
  CHECK(bytes(from<MirrorNewton>(to_archive(model))) == bytes(model));
}

TEST(damaged_files_are_refused) {
  check_damaged(trained(on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0.02))), 50));
  check_damaged(trained(newton(), 10));
  const Hybrid early = trained(hybrid(), 10), late = trained(hybrid(), 70);
  CHECK(!early.in_second_phase() && late.in_second_phase());
  check_damaged(early);
  check_damaged(late);
}

TEST(weights_that_square_to_infinity_are_refused) {
  const auto check = [](const auto& model, const std::string& name) {
    using Model = std::decay_t<decltype(model)>;
    const Archive good = to_archive(model);
    for (const double bad : {1e100, -1e300}) {
      if (good.entries().at(name).shape.size() == 1) {
        check_refused<Model>(good, name, Vector(Vector::Constant(model.model_order(), bad)));
      } else {
        check_refused<Model>(good, name,
                             RowMatrix(RowMatrix::Constant(model.model_order(), 2, bad)));
      }
    }
  };
  check(trained(on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0.02))), 50), "weights");
  check(trained(newton(), 10), "weights");
  check(trained(newton(), 10), "weights.average");
  check(trained(hybrid(), 10), "weights");
  check(trained(hybrid(), 70), "weights.average");
}

TEST(absurd_counts_are_refused) {
  check_absurd_counts<Spppot>(
      to_archive(trained(on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0.02))), 50)));
  check_absurd_counts<MirrorNewton>(to_archive(trained(newton(), 10)));
  check_absurd_counts<Hybrid>(to_archive(trained(hybrid(), 10)));
}

TEST(spppot_files_that_contradict_themselves_are_refused) {
  const Archive good =
      to_archive(trained(on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0.02))), 50));
  const auto refused = [&](const std::string& name, const auto& value) {
    check_refused<Spppot>(good, name, value);
  };
  const RowMatrix points = good.get_matrix("dictionary");
  const auto ids = good.get_integers("dictionary.ids");
  RowMatrix moved = points;
  moved(std::find(ids.begin(), ids.end(), 7) - ids.begin(), 0) += 0.01;
  refused("dictionary", moved);  // the nodes are somewhere else
  refused("domain.upper", Vector(Vector::Constant(2, 2.0)));
  refused("quadrature.counts", std::vector<std::int64_t>{6, 5});
  refused("dictionary.protected", std::vector<std::int64_t>(ids.size(), 0));
  std::vector<std::int64_t> others = ids;
  for (auto& id : others) id += 30;
  refused("dictionary.ids", others);
  refused("average", 0);
  refused("regularization", 4.0);
  refused("mirror.parameters", Vector(Vector::Ones(1)));
  refused("step.parameters", Vector(Vector::Constant(1, -1.0)));
  refused("factor.size", kHuge);
  refused("factor.changes", -1);
}

// Kernel values that are numbers, but others, are seen as soon as there are nodes to compare with:
// at the first step, which then changes nothing.
TEST(other_kernel_values_of_the_nodes_are_refused_at_the_first_step) {
  Archive archive =
      to_archive(trained(on_coarse_grid(settings(0.3, BudgetSchedule::fixed(0.02))), 50));
  RowMatrix values = archive.get_matrix("dictionary.kernel_with_nodes");
  CHECK(values.size() > 0);
  values(0, 0) += 1e-6;
  archive.set("dictionary.kernel_with_nodes", values);
  auto model = from<Spppot>(archive);
  const std::string before = bytes(model);
  CHECK(before == archive.to_bytes());
  Random random(3);
  const RowMatrix samples = bump(8, 2, random);
  for (int i = 0; i < 2; ++i) {
    bool refused = false;
    try {
      model.step(samples);
    } catch (const Error&) {
      refused = true;
    }
    CHECK(refused && bytes(model) == before);
  }
}

TEST(newton_and_hybrid_files_that_contradict_themselves_are_refused) {
  const Archive good = to_archive(trained(newton(), 10));
  const Index size = good.get_matrix("dictionary").rows();
  for (const double damping : {0.0, -1.0})
    check_refused<MirrorNewton>(good, "newton.damping", damping);
  check_refused<MirrorNewton>(good, "inverse.root", RowMatrix(RowMatrix::Identity(size, size - 1)));
  for (const std::int64_t steps : {std::int64_t{-1}, kHuge}) {
    check_refused<MirrorNewton>(good, "steps", steps);
  }
  using State = std::vector<std::int64_t>;
  const Archive both = to_archive(trained(hybrid(), 10));
  for (const State& watch :
       {State{0, 60, 30, 30, 10, 10}, State{30, 0, 30, 30, 10, 10}, State{30, 60, 30, 30, -1, 10},
        State{30, 60, 30, 30, 10, -1}, State{30, 60, 30, 30, 10},
        State{30, 60, -kHuge, kHuge, 10, 10}, State{30, 60, 30, 30, kHuge, kHuge}}) {
    check_refused<Hybrid>(both, "watch", watch);
  }
  check_refused<Hybrid>(both, "phase", std::string("hybrid"));
  check_refused<Hybrid>(both, "phase", std::string("mirror_newton"));
}
