#include <algorithm>
#include <numeric>
#include <parsimon/rkhs/kept_samples.hpp>
#include <parsimon/rkhs/sparse_function.hpp>
#include <string>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::KernelPair;
using reference::Random;
using reference::Real;
using reference::Table;

namespace {

std::vector<Index> first(Index count) {
  std::vector<Index> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), Index{0});
  return all;
}

// All of these samples are absorbed, after the past has faded.
void absorb_all(Statistics& statistics, const ConstRows& features, const Vector& curvature,
                const RowMatrix& wanted, double decay = 1) {
  statistics.forget(decay);
  statistics.add_curvature(features, first(features.cols()), curvature);
  statistics.add_right(features, first(features.cols()), wanted);
}

RowMatrix basis_points(const SparseFunction& function) {
  return function.dictionary().points().topRows(function.basis_size());
}

std::vector<Index> basis_ids(const SparseFunction& function) {
  const std::vector<Index>& ids = function.dictionary().ids();
  return {ids.begin(), ids.begin() + function.basis_size()};
}

// Every sample that was ever counted, as a function: its projection, by coefficients on the basis.
class BruteForce {
 public:
  explicit BruteForce(KernelPair kernel) : kernel_(std::move(kernel)) {}

  // The basis is another one: what was seen is projected onto it. A point that joins sees of the
  // past only what others that have just left had.
  void follow(const SparseFunction& function) {
    const RowMatrix points = basis_points(function);
    if (ids_ != basis_ids(function) && !samples_.empty()) {
      const Table inverse = reference::inverse(reference::gram(kernel_.exact, points, points));
      const Table cross = reference::gram(kernel_.exact, points, points_);
      const std::vector<Index> ids = basis_ids(function);
      for (Sample& sample : samples_) project(inverse, cross, ids, sample);
    }
    ids_ = basis_ids(function);
    points_ = points;
  }

  // Samples that are counted from now on, with the whole basis as it is.
  void count(const RowMatrix& samples) {
    const Table gram = this->gram(), inverse = reference::inverse(gram);
    const Table cross = reference::gram(kernel_.exact, samples, points_);
    for (Index s = 0; s < samples.rows(); ++s) {
      Sample sample;
      for (Index i = 0; i < gram.rows(); ++i) {
        sample.coefficients.push_back(reference::dot(inverse.row(i), cross.row(s), gram.rows()));
      }
      samples_.push_back(std::move(sample));
    }
  }

  void absorb(double decay, const Vector& curvature, const RowMatrix& wanted) {
    const Index known = static_cast<Index>(samples_.size()) - curvature.size();
    for (Index s = 0; s < static_cast<Index>(samples_.size()); ++s) {
      Sample& sample = samples_[static_cast<std::size_t>(s)];
      if (s < known) {
        sample.curvature *= decay;
        for (Real& z : sample.wanted) z *= decay;
      } else {
        sample.curvature = curvature(s - known);
        for (Index c = 0; c < wanted.cols(); ++c) sample.wanted.push_back(wanted(s - known, c));
      }
    }
  }

  struct Sums {
    Table normal, right;
    Real trace, pull;  // what rounding is judged by: sums of sizes
  };

  Sums sums(Index outputs) const {
    const Index size = points_.rows();
    Sums sums{Table(size, size), Table(size, outputs), 0, 0};
    const Table lower = reference::cholesky(gram());
    for (const Sample& sample : samples_) {
      const std::vector<Real> phi = coordinates(lower, sample);
      for (Index i = 0; i < size; ++i) {
        const Real of_i = phi[static_cast<std::size_t>(i)];
        for (Index k = 0; k < size; ++k) {
          sums.normal(i, k) += sample.curvature * of_i * phi[static_cast<std::size_t>(k)];
        }
        for (Index c = 0; c < outputs; ++c) {
          sums.right(i, c) += of_i * sample.wanted[static_cast<std::size_t>(c)];
          sums.pull += std::abs(of_i * sample.wanted[static_cast<std::size_t>(c)]);
        }
        sums.trace += sample.curvature * of_i * of_i;
      }
    }
    return sums;
  }

  Table gram() const { return reference::gram(kernel_.exact, points_, points_); }
  double condition() const {
    return reference::condition_number(reference::core_gram(*kernel_.core, points_));
  }

 private:
  struct Sample {
    std::vector<Real> coefficients;
    Real curvature = 0;
    std::vector<Real> wanted;
  };

  // T K a = L' a with K = L L'.
  std::vector<Real> coordinates(const Table& lower, const Sample& sample) const {
    const Index size = lower.rows();
    std::vector<Real> phi(static_cast<std::size_t>(size));
    for (Index i = 0; i < size; ++i) {
      for (Index k = i; k < size; ++k) {
        phi[static_cast<std::size_t>(i)] +=
            lower(k, i) * sample.coefficients[static_cast<std::size_t>(k)];
      }
    }
    return phi;
  }

  // a <- a_stays + K(new, new)^-1 K(new, old) a_leaves
  void project(const Table& inverse, const Table& cross, const std::vector<Index>& ids,
               Sample& sample) const {
    std::vector<Real> moved(ids.size()), seen(ids.size());
    for (std::size_t k = 0; k < ids_.size(); ++k) {
      const auto twin = std::find(ids.begin(), ids.end(), ids_[k]);
      if (twin != ids.end()) {
        moved[static_cast<std::size_t>(twin - ids.begin())] = sample.coefficients[k];
        continue;
      }
      for (std::size_t i = 0; i < ids.size(); ++i) {
        seen[i] += cross(static_cast<Index>(i), static_cast<Index>(k)) * sample.coefficients[k];
      }
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      moved[i] += reference::dot(inverse.row(static_cast<Index>(i)), seen.data(), inverse.rows());
    }
    sample.coefficients = std::move(moved);
  }

  KernelPair kernel_;
  std::vector<Index> ids_;
  RowMatrix points_;
  std::vector<Sample> samples_;
};

// A function with statistics, and the brute force that is to agree with it.
struct Pair {
  KernelPair kernel;
  SparseFunction function;
  BruteForce brute;
  Random& random;
  Index outputs;
  double worst_condition = 1;
  double worst_error = 0;  // in units of eps cond(K)

  Pair(const KernelPair& with, Index features, Index columns, Random& numbers)
      : kernel(with),
        function(with.core, features, 2 * columns, columns),
        brute(with),
        random(numbers),
        outputs(columns) {
    function.keep_statistics();
  }

  Statistics& statistics() { return function.statistics(); }

  // Adds the samples to the function and counts some of them.
  void step(const RowMatrix& samples, const RowMatrix& weights, const Limit& limit,
            double counted = 1) {
    Batch batch;
    function.compare(samples, batch);
    brute.follow(function);  // of a factor that was built anew
    function.add({samples, batch, first(samples.rows()), weights, 1.0, limit});
    brute.follow(function);
    CHECK(statistics().size() == function.basis_size());
    std::vector<Index> chosen;
    for (Index i = 0; i < samples.rows(); ++i) {
      if (random.uniform() < counted) chosen.push_back(i);
    }
    if (chosen.empty() || function.basis_size() == 0) return;
    RowMatrix taken(static_cast<Index>(chosen.size()), samples.cols());
    for (Index i = 0; i < taken.rows(); ++i) {
      taken.row(i) = samples.row(chosen[static_cast<std::size_t>(i)]);
    }
    const Vector curvature = random.uniform_points(taken.rows(), 1).col(0);
    const RowMatrix wanted = random.normal_points(taken.rows(), outputs);
    function.compare(taken, batch);
    brute.follow(function);
    absorb_all(statistics(), function.coordinates(batch), curvature, wanted);
    brute.count(taken);
    brute.absorb(1, curvature, wanted);
  }

  void forget(double share) {
    statistics().forget(share);
    brute.absorb(share, Vector(0), RowMatrix(0, outputs));
  }

  // H and r, to `allowed` times eps cond(K) of what was added up.
  void compare(double allowed) {
    const Index size = function.basis_size();
    if (size == 0) return;
    const double condition = brute.condition();
    worst_condition = std::max(worst_condition, condition);
    double error = 0;
    const BruteForce::Sums sums = brute.sums(outputs);
    for (Index i = 0; i < size; ++i) {
      for (Index k = 0; k <= i; ++k) {
        const Real difference = statistics().normal()(i, k) - sums.normal(i, k);
        error = std::max(error, static_cast<double>(std::abs(difference) / sums.trace));
      }
      for (Index c = 0; c < outputs; ++c) {
        const Real difference = statistics().right()(i, c) - sums.right(i, c);
        error = std::max(error, static_cast<double>(std::abs(difference) / sums.pull));
      }
    }
    const double units = error / (kEps * condition);
    worst_error = std::max(worst_error, units);
    CHECK(units < allowed);
  }

  void say(const char* what) const {
    std::printf("       %s: cond(K) up to %.0e, error %.2g eps cond(K)\n", what, worst_condition,
                worst_error);
  }
};

// Near the dictionary now and then: a copy of one of its points, or of another sample.
void make_copies(RowMatrix& samples, const SparseFunction& function, Random& random) {
  for (Index i = 0; i < samples.rows(); ++i) {
    if (function.model_order() > 0 && random.uniform() < 0.1) {
      const Index twin = random.integer(0, function.model_order() - 1);
      samples.row(i) = function.dictionary().points().row(twin);
    }
    if (random.uniform() < 0.1) samples.row(i) = samples.row(random.integer(0, i));
  }
}

double trace(const Statistics& statistics) {
  double sum = 0;
  for (Index i = 0; i < statistics.size(); ++i) sum += statistics.normal()(i, i);
  return sum;
}

}  // namespace

// Points come, go and are copied; the budget swings so that many go at once. The coordinates are
// those of a triangular factor of K, which moves by eps cond(K) if K does by eps: this is what a
// number may be wrong by, and nothing that grows with the stream.
TEST(long_random_streams_agree_with_all_samples_ever_counted) {
  Random random(1);
  for (const KernelPair& kernel : {reference::laplacian(0.5), reference::matern(0.5, 1.5),
                                   reference::gaussian(0.3), reference::gaussian(1)}) {
    Pair pair(kernel, 2, 3, random);
    Index removed = 0;
    for (int step = 0; step < 150; ++step) {
      RowMatrix samples = random.uniform_points(random.integer(1, 9), 2);
      make_copies(samples, pair.function, random);
      const RowMatrix weights = random.normal_points(samples.rows(), 3);
      const std::vector<Index> before = basis_ids(pair.function);
      const Limit limit(random.magnitude(-2, 0.4), random.integer(12, 25));
      pair.step(samples, weights, limit, 0.7);
      const std::vector<Index> after = basis_ids(pair.function);
      for (const Index id : before) {
        removed += std::find(after.begin(), after.end(), id) == after.end() ? 1 : 0;
      }
      if (random.uniform() < 0.15) pair.forget(random.uniform());
      if (random.uniform() < 0.05) {
        pair.function.refactor();
        pair.brute.follow(pair.function);
      }
      if (step % 10 == 9) pair.compare(20);
    }
    CHECK(removed > 100);
    pair.say(kernel.name.c_str());
  }
}

// Points that stay see what they saw; those that are new see what the span that was saw of them.
TEST(a_function_that_moves_to_other_points_keeps_what_was_said) {
  Random random(4);
  for (const KernelPair& kernel : {reference::matern(0.5, 1.5), reference::gaussian(0.3)}) {
    Pair pair(kernel, 2, 3, random);
    for (int step = 0; step < 60; ++step) {
      const RowMatrix samples = random.uniform_points(8, 2);
      pair.step(samples, random.normal_points(8, 3), Limit(0.01, 15), 0.7);
      Dictionary points = pair.function.dictionary();
      for (Index left = random.integer(0, 6); left > 0; --left) {
        points.drop(random.integer(0, points.size() - 1));
      }
      points.append(random.uniform_points(random.integer(0, 3), 2), false);
      pair.function.move_to(points);
      pair.brute.follow(pair.function);
      CHECK(pair.function.model_order() == points.size());
      pair.compare(20);
    }
    pair.say(kernel.name.c_str());
  }
}

// Its values at the points that both have are those that it had.
TEST(a_function_that_moves_is_projected_and_its_twin_takes_the_weights) {
  Random random(5);
  const KernelPair kernel = reference::gaussian(0.4);
  Pair pair(kernel, 2, 2, random);
  pair.step(random.uniform_points(12, 2), random.normal_points(12, 2), Limit(0.01, 12));
  const Index size = pair.function.basis_size();
  RowMatrix coordinates = random.normal_points(size, 2);
  pair.statistics().solution() = coordinates;
  pair.function.set_predictor(coordinates);
  const KernelExpansion before = pair.function.expansion(2, 2);
  Dictionary points = pair.function.dictionary();
  for (int i = 0; i < 4; ++i) points.drop(0);
  pair.function.move_to(points);
  const RowMatrix common = points.points();
  const RowMatrix then = before(common), now = pair.function.expansion(2, 2)(common);
  CHECK_NEAR((then - now).cwiseAbs().maxCoeff(), 0, 1e-9);

  SparseFunction twin(kernel.core, 2, 2, 2);
  points.append(random.uniform_points(2, 2), false);
  twin.restore(points, RowMatrix::Ones(points.size(), 2), FactorState());
  twin.take_weights(pair.function);
  for (Index i = 0; i < points.size(); ++i) {
    for (Index k = 0; k < pair.function.model_order(); ++k) {
      if (twin.dictionary().id(i) != pair.function.dictionary().id(k)) continue;
      CHECK(twin.weights().row(i) == pair.function.predictor_weights().row(k));
    }
  }
  CHECK(twin.weights().bottomRows(2) == RowMatrix::Ones(2, 2));
}

TEST(nothing_adds_up_over_many_removals) {
  Random random(2);
  const KernelPair kernel = reference::gaussian(0.5);
  Pair pair(kernel, 1, 1, random);
  for (int round = 0; round < 12; ++round) {
    for (int step = 0; step < 60; ++step) {
      const RowMatrix samples = random.uniform_points(3, 1);
      pair.step(samples, random.normal_points(3, 1), Limit(1e-6, 10), 0.1);
    }
    pair.forget(0.5);
    pair.compare(20);
  }
  CHECK(pair.worst_condition > 1e5);
  pair.say("wide Gaussian");
}

// Samples that are kept, while points come and go and the basis is built anew: whenever it is asked
// for, the kernel between them and the basis is what a fresh comparison gives, to the bit.
TEST(kept_samples_know_every_point_of_the_basis) {
  Random random(3);
  for (const KernelPtr& kernel : {KernelPtr(std::make_shared<Matern>(0.5, 1.5)),
                                  KernelPtr(std::make_shared<Gaussian>(0.7))}) {
    SparseFunction function(kernel, 2, 2, 1);
    function.keep_statistics();
    KeptSamples kept;
    RowMatrix all(0, 2);
    Index largest = 0;
    for (int step = 0; step < 80; ++step) {
      const RowMatrix samples = random.uniform_points(random.integer(1, 5), 2);
      Batch batch;
      function.compare(samples, batch);
      const std::vector<Index> active = first(samples.rows());
      const RowMatrix weights = random.normal_points(samples.rows(), 1);
      const Move move{samples, batch, active, weights, 1.0, Limit(0.3, 15)};
      function.prepare(move);
      const std::vector<Index> chosen = first(random.integer(1, samples.rows()));
      const auto count = static_cast<Index>(chosen.size());
      kept.append(function.dictionary(), samples, batch.views.data(), chosen,
                  batch.kernel_values.all());
      RowMatrix longer(all.rows() + count, 2);
      longer << all, samples.topRows(count);
      all = longer;
      const bool asked = random.uniform() < 0.4;
      if (asked) kept.compare(function.dictionary(), batch.views.data(), active);
      function.apply(move);
      if (step == 40) function.refactor();
      if (!asked) continue;
      const RowMatrix values = kept.values(function.dictionary(), function.basis_size());
      if (all.rows() == 1 || function.basis_size() == 1) continue;  // summed in another order
      function.compare(all, batch);
      CHECK(values == batch.kernel_values.all().topRows(function.basis_size()));
      largest = std::max(largest, all.rows());
      if (random.uniform() < 0.3 && all.rows() > 4) {
        kept.keep({1, all.rows() - 2, all.rows() - 1});
        RowMatrix three(3, 2);
        three << all.row(1), all.bottomRows(2);
        all = three;
        CHECK(kept.points() == all);
      }
    }
    CHECK(largest > 10);
  }
}

TEST(kept_samples_that_were_not_meant_to_stay_leave_no_trace) {
  Random random(16);
  SparseFunction function(std::make_shared<Gaussian>(0.7), 2, 2, 1);
  const RowMatrix points = random.uniform_points(8, 2), samples = random.uniform_points(6, 2);
  function.insert(points, RowMatrix::Zero(8, 2), std::vector<bool>(8));
  Batch batch;
  function.compare(samples, batch);
  KeptSamples kept;
  const auto keep = [&](const std::vector<Index>& chosen) {
    kept.append(function.dictionary(), samples, batch.views.data(), chosen,
                batch.kernel_values.all());
  };
  keep(first(3));
  kept.compare(function.dictionary());
  kept.values(function.dictionary(), function.basis_size());
  keep({3, 4, 5});
  kept.compare(function.dictionary(), batch.views.data(), first(2));
  kept.truncate(3);
  kept.compare(function.dictionary());
  const RowMatrix values = kept.values(function.dictionary(), function.basis_size());
  CHECK(values == batch.kernel_values.all().topLeftCorner(function.basis_size(), 3));
}

TEST(a_fresh_factor_turns_what_was_said_and_changes_nothing) {
  Random random(4);
  Pair pair(reference::gaussian(0.4), 2, 2, random);
  for (int step = 0; step < 20; ++step) {
    pair.step(random.uniform_points(4, 2), random.normal_points(4, 2), Limit(0.1, 20));
  }
  for (int i = 0; i < 50; ++i) {
    const double before = trace(pair.statistics());
    pair.function.refactor();
    CHECK_NEAR(trace(pair.statistics()), before, 1e-9 * before);
    pair.brute.follow(pair.function);
    pair.compare(20);
  }
}

TEST(compression_is_followed) {
  Random random(5);
  for (const KernelPair& kernel : {reference::laplacian(0.5), reference::gaussian(0.5)}) {
    Pair pair(kernel, 2, 2, random);
    for (int round = 0; round < 10; ++round) {
      for (int step = 0; step < 8; ++step) {
        pair.step(random.uniform_points(4, 2), random.normal_points(4, 2), Limit(0.05, 24));
      }
      const Index before = pair.function.basis_size();
      CHECK(pair.function.model_order() == before);  // or compress() may take others in
      pair.function.compress(Limit(0.2, 10));
      pair.brute.follow(pair.function);
      CHECK(pair.function.basis_size() < before);
      CHECK(pair.statistics().size() == pair.function.basis_size());
      pair.compare(20);
    }
    pair.say(kernel.name.c_str());
  }
}

// Protected points, of which some are so near each other that they stay outside of the basis.
TEST(protected_points_outside_of_the_basis_say_nothing) {
  Random random(6);
  Pair pair(reference::gaussian(0.3), 1, 1, random);
  RowMatrix grid(30, 1);
  for (Index i = 0; i < 30; ++i) grid(i, 0) = static_cast<double>(i) / 29;
  pair.function.insert(grid, RowMatrix::Zero(30, 2), std::vector<bool>(30, true));
  CHECK(pair.function.basis_size() < 20 && pair.function.model_order() == 30);
  CHECK(pair.statistics().size() == pair.function.basis_size());
  pair.brute.follow(pair.function);
  for (int step = 0; step < 40; ++step) {
    RowMatrix samples = random.uniform_points(4, 1);
    samples.row(0).array() += 1.5;  // some far enough away to join, and to go again
    pair.step(samples, random.normal_points(4, 1), Limit(0.3, 34));
    if (step % 4 == 3) pair.compare(20);
  }
  CHECK(pair.function.model_order() > 30);
  pair.say("grid");
}

// On a dictionary that does not change there is nothing to lose: sums of products, to rounding.
TEST(a_fixed_dictionary_has_exactly_the_fresh_sums) {
  Random random(7);
  SparseFunction function(std::make_shared<Gaussian>(0.4), 2, 2, 1);
  function.keep_statistics();
  const RowMatrix points = random.uniform_points(20, 2);
  function.insert(points, RowMatrix::Zero(20, 2), std::vector<bool>(20));
  const Index size = function.basis_size();
  CHECK(size > 10 && function.statistics().size() == size);

  RowMatrix normal = RowMatrix::Zero(size, size), sizes = normal;
  RowMatrix right = RowMatrix::Zero(size, 1), pulls = right;
  for (int block = 0; block < 30; ++block) {
    const Index count = random.integer(1, 70);
    const RowMatrix samples = random.uniform_points(count, 2);
    Batch batch;
    function.compare(samples, batch);
    const RowMatrix features = function.coordinates(batch);
    const double decay = block % 3 == 0 ? random.uniform() : 1;
    const Vector curvature = random.uniform_points(count, 1).col(0);
    const RowMatrix wanted = random.normal_points(count, 1);
    absorb_all(function.statistics(), features, curvature, wanted, decay);
    normal = decay * normal + features * curvature.asDiagonal() * features.transpose();
    sizes = decay * sizes +
            features.cwiseAbs() * curvature.asDiagonal() * features.cwiseAbs().transpose();
    right = decay * right + features * wanted;
    pulls = decay * pulls + features.cwiseAbs() * wanted.cwiseAbs();
  }
  const RowMatrix kept = function.statistics().normal(), seen = function.statistics().right();
  for (Index i = 0; i < size; ++i) {
    for (Index k = 0; k <= i; ++k) CHECK_NEAR(kept(i, k), normal(i, k), 200 * kEps * sizes(i, k));
    CHECK_NEAR(seen(i, 0), right(i, 0), 200 * kEps * pulls(i, 0));
  }
}

// The coordinates have the inner products of the samples' projections, whatever the basis is.
TEST(coordinates_of_points_of_the_basis_have_the_inner_products_of_the_kernel) {
  Random random(8);
  SparseFunction function(std::make_shared<Matern>(0.5, 1.5), 2, 2, 1);
  function.keep_statistics();
  for (int step = 0; step < 30; ++step) {
    const RowMatrix samples = random.uniform_points(6, 2);
    Batch batch;
    function.compare(samples, batch);
    function.add({samples, batch, first(6), random.normal_points(6, 1), 1.0, Limit(0.3, 20)});
  }
  const RowMatrix points = basis_points(function);
  Batch batch;
  function.compare(points, batch);
  const RowMatrix phi = function.coordinates(batch);
  const RowMatrix gram = reference::core_gram(function.dictionary().kernel(), points);
  CHECK((phi.transpose() * phi - gram).cwiseAbs().maxCoeff() < 1e-12);
}

TEST(solutions_become_the_weights_that_predict) {
  Random random(9);
  Pair pair(reference::matern(0.5, 1.5), 2, 2, random);
  for (int step = 0; step < 20; ++step) {
    pair.step(random.uniform_points(6, 2), random.normal_points(6, 2), Limit(0.3, 20));
  }
  const Index size = pair.function.basis_size();
  const RowMatrix solution = random.normal_points(size, 2);
  pair.statistics().solution() = solution;
  pair.function.set_predictor(solution);
  const auto predictions_agree = [&] {
    const RowMatrix samples = random.uniform_points(30, 2);
    Batch batch;
    pair.function.compare(samples, batch);
    RowMatrix values(30, 2);
    pair.function.evaluate_predictor(batch, values);
    const RowMatrix phi = pair.function.coordinates(batch);
    const RowMatrix expected = phi.transpose() * pair.statistics().solution();
    CHECK((values - expected).cwiseAbs().maxCoeff() < 1e-11);
  };
  predictions_agree();
  // Points come and go: the weights are projected, the coordinates turned. Both are one function.
  for (int step = 0; step < 40; ++step) {
    pair.step(random.uniform_points(6, 2), random.normal_points(6, 2), Limit(0.3, 20));
    predictions_agree();
  }
  pair.function.compress(Limit(0.5, 8));
  predictions_agree();
}

TEST(a_removal_only_ever_loses) {
  Random random(10);
  Pair pair(reference::gaussian(0.5), 2, 1, random);
  for (int step = 0; step < 20; ++step) {
    pair.step(random.uniform_points(4, 2), random.normal_points(4, 1), Limit(0.01, 25));
  }
  double before = trace(pair.statistics());
  for (Index most = pair.function.basis_size() - 1; most > 0; --most) {
    pair.function.compress(Limit(0, most));
    CHECK(pair.function.basis_size() == most);
    const double after = trace(pair.statistics());
    CHECK(after <= before * (1 + 1e-9));
    RowBuffer lower;
    CHECK(pair.statistics().factorise(1e-9, RowMatrix(most, 0), {}, Vector(), lower));
    before = after;
  }
}

TEST(what_two_have_seen_is_the_sum) {
  Random random(11);
  const RowMatrix points = random.uniform_points(15, 2);
  const auto make = [&] {
    SparseFunction function(std::make_shared<Matern>(0.5, 1.5), 2, 2, 1);
    function.keep_statistics();
    function.insert(points, RowMatrix::Zero(15, 2), std::vector<bool>(15));
    return function;
  };
  const auto learn = [](SparseFunction& function, const RowMatrix& samples) {
    Batch batch;
    function.compare(samples, batch);
    absorb_all(function.statistics(), function.coordinates(batch), Vector::Ones(samples.rows()),
               samples.leftCols(1));
  };
  SparseFunction one = make(), other = make(), both = make();
  const RowMatrix a = random.uniform_points(40, 2), b = random.uniform_points(60, 2);
  learn(one, a);
  learn(other, b);
  learn(both, a);
  learn(both, b);
  one.add_statistics(other);
  const RowMatrix difference = one.statistics().normal() - both.statistics().normal();
  CHECK(difference.cwiseAbs().maxCoeff() < 1e-12);
  CHECK((one.statistics().right() - both.statistics().right()).cwiseAbs().maxCoeff() < 1e-12);
}

TEST(statistics_of_other_dictionaries_are_not_added) {
  Random random(13);
  const RowMatrix points = random.uniform_points(6, 2);
  RowMatrix moved = points;
  moved(5, 1) = std::nextafter(moved(5, 1), 2.0);
  const auto make = [](const KernelPtr& kernel, const RowMatrix& at) {
    SparseFunction function(kernel, at.cols(), 2, 1);
    function.keep_statistics();
    function.insert(at, RowMatrix::Zero(at.rows(), 2),
                    std::vector<bool>(static_cast<std::size_t>(at.rows())));
    return function;
  };
  const auto kernel = std::make_shared<Matern>(0.5, 1.5);
  SparseFunction function = make(kernel, points);
  function.add_statistics(make(kernel, points));
  CHECK_THROWS(function.add_statistics(make(kernel, moved)), Error);
  CHECK_THROWS(function.add_statistics(make(kernel, points.topRows(5))), Error);
  CHECK_THROWS(function.add_statistics(make(kernel, points.colwise().reverse())), Error);
  CHECK_THROWS(function.add_statistics(make(kernel, points.leftCols(1))), Error);
  CHECK_THROWS(function.add_statistics(make(std::make_shared<Matern>(0.6, 1.5), points)), Error);
}

TEST(statistics_of_other_sizes_are_not_added) {
  Statistics one(1), larger(1), wider(2);
  one.grow(3);
  larger.grow(4);
  wider.grow(3);
  for (const Statistics& other : {larger, wider}) CHECK_THROWS(one += other, Error);
  one += one;
  CHECK(one.size() == 3);
}

TEST(statistics_are_restored_bit_for_bit) {
  Random random(12);
  Pair pair(reference::gaussian(0.5), 2, 3, random);
  for (int step = 0; step < 20; ++step) {
    pair.step(random.uniform_points(4, 2), random.normal_points(4, 3), Limit(0.1, 20));
  }
  const Statistics& kept = pair.statistics();
  Statistics again(3);
  again.grow(2);  // whatever was there goes
  again.restore(kept.state());
  CHECK(again.size() == kept.size() && trace(kept) > 0);
  for (Index i = 0; i < kept.size(); ++i) {
    CHECK(again.normal().row(i).head(i + 1) == kept.normal().row(i).head(i + 1));
  }
  CHECK(again.right() == kept.right() && again.solution() == kept.solution());
}

TEST(without_any_curvature_a_ridge_is_found_and_with_too_much_none) {
  Statistics statistics(1);
  statistics.grow(5);
  RowBuffer lower;
  const auto factorise = [&](double ridge) {
    return statistics.factorise(ridge, RowMatrix(5, 0), {}, Vector(), lower);
  };
  CHECK(factorise(0));
  absorb_all(statistics, RowMatrix::Ones(5, 3), Vector::Ones(3), RowMatrix::Zero(3, 1));
  CHECK(factorise(0));  // of rank one
  CHECK(lower.all().allFinite());
  absorb_all(statistics, RowMatrix::Constant(5, 1, 1e200), Vector::Ones(1), RowMatrix::Zero(1, 1));
  CHECK(!factorise(1));
}
