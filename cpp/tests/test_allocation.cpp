#include <algorithm>
#include <atomic>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <parsimon/algorithm/polk.hpp>
#include <parsimon/io/archive.hpp>
#include <parsimon/kernel/kernels.hpp>
#include <parsimon/loss/losses.hpp>
#include <parsimon/predict.hpp>
#include <vector>

#include "check.hpp"
#include "reference.hpp"

namespace {

std::atomic<long> allocations{0};
std::atomic<long> bytes{0};
std::atomic<long> most_bytes{0};

[[maybe_unused]] void count(long size) {
  ++allocations;
  const long now = bytes += size;
  if (now > most_bytes) most_bytes = now;
}

}  // namespace

// Every allocation goes through malloc in the end, Eigen's and operator new's. Only glibc lets a
// program count them, and sanitizers have a malloc of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define COUNTS_ALLOCATIONS 1
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) {
  void* memory = __libc_malloc(size);
  count(static_cast<long>(malloc_usable_size(memory)));
  return memory;
}
void free(void* memory) {
  bytes -= static_cast<long>(malloc_usable_size(memory));
  __libc_free(memory);
}
void* realloc(void* memory, std::size_t size) {
  bytes -= static_cast<long>(malloc_usable_size(memory));
  memory = __libc_realloc(memory, size);
  count(static_cast<long>(malloc_usable_size(memory)));
  return memory;
}
void* calloc(std::size_t number, std::size_t size) {
  void* memory = __libc_calloc(number, size);
  count(static_cast<long>(malloc_usable_size(memory)));
  return memory;
}
}
#else
#define COUNTS_ALLOCATIONS 0
#endif

using namespace parsimon;
using reference::Random;

namespace {

struct Stream {
  RowMatrix samples;
  RowMatrix labels;
};

// Three classes, each about a centre of its own.
Stream make_stream(Index size, Index features, double spread) {
  Random random(1);
  Stream stream{spread * random.normal_points(size, features), RowMatrix(size, 1)};
  for (Index i = 0; i < size; ++i) {
    const Index label = random.integer(0, 2);
    stream.labels(i, 0) = static_cast<double>(label);
    stream.samples(i, label % features) += 1;
  }
  return stream;
}

// Allocations in the loop over the mini-batches of a stream, once the model has its size: those of
// steps in which there are no more points at once than ever before.
template <typename Samples>
long in_steady_state(Polk& polk, const Samples& samples, const RowMatrix& labels, Index batch_size,
                     Index warm_up, Index counted) {
  Index order = 0, active = 0, largest = 0, growing = 0, step = -1;
  long in_all = 0, before = 0;
  polk.run(samples, labels, Vector(), batch_size, [&] {
    const long spent = allocations - before;
    Index active_now = 0;
    for (const StepRecord& record : polk.trace().records()) active_now += record.active;
    const Index at_once = order + active_now - active;
    if (step >= warm_up && at_once > largest) {
      ++growing;
    } else if (step >= warm_up) {
      in_all += spent;
    }
    largest = std::max(largest, at_once);
    order = polk.model_order();
    active = active_now;
    before = allocations;
    return ++step < warm_up + counted;
  });
  CHECK(step == warm_up + counted && growing <= counted / 100);
  return in_all;
}

Polk make_polk(const std::string& loss, KernelPtr kernel, Index features, double parsimony,
               bool average) {
  const PolkSettings settings{parse_loss(loss), StepSchedule::constant(2.0),
                              BudgetSchedule::parsimony(parsimony), 1e-6, average};
  return Polk(std::move(kernel), settings, features, 3);
}

}  // namespace

TEST(allocations_are_counted) {
  const long before = allocations;
  const RowMatrix matrix = RowMatrix::Zero(100, 100);
  CHECK(matrix(3, 3) == 0);
  CHECK(!COUNTS_ALLOCATIONS || allocations > before);
}

// The trace takes new memory once in 1,024 mini-batches, between what is counted here.
TEST(a_step_allocates_nothing) {
  for (const Index features : {2, 30}) {
    const double spread = features == 2 ? 0.4 : 0.2;
    const KernelPtr gaussian = std::make_shared<Gaussian>(features == 2 ? 0.5 : 2.0);
    for (const Index batch_size : {1, 32}) {
      // Until the model has grown, and off the multiples of 1,024.
      const Index warm_up = batch_size == 1 ? 16500 : 3100, counted = 800;
      const Stream stream = make_stream((warm_up + counted + 1) * batch_size, features, spread);
      for (const char* loss : {"multiclass_hinge", "multiclass_logistic"}) {
        for (const bool average : {false, true}) {
          Polk polk = make_polk(loss, gaussian, features, 0.05, average);
          CHECK(in_steady_state(polk, stream.samples, stream.labels, batch_size, warm_up,
                                counted) == 0);
          CHECK(polk.model_order() > 3);
        }
      }
      const SingleRowMatrix single = stream.samples.cast<float>();
      Polk polk = make_polk("multiclass_hinge", std::make_shared<SinglePrecision>(gaussian),
                            features, 0.05, false);
      CHECK(in_steady_state(polk, ConstSingleRows(single), stream.labels, batch_size, warm_up,
                            counted) == 0);
    }
  }
}

// docs/speed.md has this formula. N is the largest number of points, those of a mini-batch included
// before they are compressed; what is not the dictionary or its factor is a workspace.
TEST(memory_is_dictionary_and_factor_and_workspace) {
  for (const Index features : {30, 300}) {
    for (const double parsimony : {0.12, 0.08, 0.02}) {
      const Index batch_size = 32, outputs = 3;
      const Stream stream = make_stream(100 * batch_size, features, 1.0);
      const double bandwidth = 0.7 * std::sqrt(static_cast<double>(features));
      const long before = bytes;
      most_bytes = before;
      Polk polk = make_polk("multiclass_hinge", std::make_shared<Gaussian>(bandwidth), features,
                            parsimony, false);
      polk.run(stream.samples, stream.labels, Vector(), batch_size, [] { return true; });
      const auto peak = static_cast<double>(most_bytes - before);
      Index largest = 0;
      for (const StepRecord& record : polk.trace().records()) {
        largest = std::max(largest, record.model_order);
      }
      const auto n = static_cast<double>(largest + batch_size);
      const auto p = static_cast<double>(features), b = static_cast<double>(batch_size);
      const auto c = static_cast<double>(outputs);
      const double formula = 8 * (n * (3 * p + 2.6 * n + 20 * b + 10 * c) + 8 * b * p) + 1e5;
      std::printf("%ld points of %ld features: %.3g bytes, %.2f of the formula\n",
                  static_cast<long>(largest), static_cast<long>(features), peak, peak / formula);
      if (COUNTS_ALLOCATIONS) CHECK(peak > 0.3 * formula && peak < formula);
    }
  }
}

TEST(a_prediction_allocates_nothing_and_a_model_little_more_than_its_file) {
  // As many kernels as there may be, each of which would have a copy of the points in training.
  std::string kernel = "sum(gaussian(1)";
  for (int i = 2; i <= 1000; ++i) kernel += ",gaussian(" + std::to_string(i) + ")";
  const Index size = 100, features = 30;
  Archive archive;
  archive.set("algorithm", "slkl");
  archive.set("kernel", kernel + ")");
  archive.set("features", features);
  archive.set("outputs", 3);
  archive.set("dictionary", Random(1).normal_points(size, features));
  archive.set("weights", Random(2).normal_points(size, 3));
  const std::string file = archive.to_bytes();

  const long before = bytes;
  most_bytes = before;
  const Predictor model = Predictor::from_bytes(file);
  CHECK(most_bytes - before < 16 * static_cast<long>(file.size()));

  const RowMatrix sample = RowMatrix::Ones(1, features);
  RowMatrix outputs(1, 3);
  const long made = allocations;
  model.predict(sample.data(), outputs.data());
  CHECK(allocations == made && outputs.allFinite());
}
