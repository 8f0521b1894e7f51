#include <atomic>
#include <cstdlib>
#include <new>
#include <parsimon/algorithm/polk.hpp>
#include <parsimon/kernel/kernels.hpp>
#include <parsimon/loss/losses.hpp>

#include "check.hpp"
#include "reference.hpp"

namespace {
std::atomic<long> allocations{0};
}

// Every allocation goes through malloc in the end, Eigen's and operator new's. Only glibc lets a
// program count them, and sanitizers have a malloc of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define COUNTS_ALLOCATIONS 1
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* realloc(void* memory, std::size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
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

// Allocations in the loop over the mini-batches of a stream, once the model has its size.
template <typename Samples>
long in_steady_state(Polk& polk, const Samples& samples, const RowMatrix& labels, Index batch_size,
                     Index warm_up, Index counted) {
  Index batches = 0;
  long at_start = 0, at_end = 0;
  polk.run(samples, labels, Vector(), batch_size, [&] {
    if (batches == warm_up) at_start = allocations;
    if (batches == warm_up + counted) at_end = allocations;
    return batches++ < warm_up + counted;
  });
  return at_end - at_start;
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
          CHECK(in_steady_state(polk, stream.samples, stream.labels, batch_size, warm_up, counted) == 0);
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
