// Models that several threads use at once, as Python's do: behind a lock, with traces that are read
// while they grow, and products of matrices that take all threads there are.

#include <atomic>
#include <cmath>
#include <mutex>
#include <parsimon/io/polk_file.hpp>
#include <thread>
#include <vector>

#include "../bindings/fork_safe_mutex.hpp"
#include "check.hpp"

using namespace parsimon;
using bindings::ForkSafeMutex;

namespace {

const KeepGoing forever = [] { return true; };

Polk model(bool solved) {
  PolkSettings settings{parse_loss("squared"), OnlineSettings()};
  settings.step = StepSchedule::constant(0.3);
  settings.compression = BudgetSchedule::fixed(0.01);
  settings.average = !solved;
  if (solved) settings.newton.emplace();
  return {parse_kernel("gaussian(0.5)"), settings, 3, 1};
}

RowMatrix samples(Index count, double shift) {
  RowMatrix x(count, 3);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = std::sin(1.7 * static_cast<double>(i) + shift);
  return x;
}

void train(Polk& polk, double shift) {
  const RowMatrix x = samples(64, shift);
  polk.run(x, RowMatrix(x.col(0)), Vector(), 16, forever);
}

}  // namespace

TEST(one_model_in_several_threads) {
  set_num_threads(3);
  for (const bool solved : {false, true}) {
    ForkSafeMutex mutex;
    Polk shared = model(solved);
    std::atomic<bool> right{true};
    const auto learn = [&](double shift) {
      for (int i = 0; i < 10; ++i) {
        const std::unique_lock<ForkSafeMutex> lock(mutex);
        train(shared, shift + i);
      }
    };
    const auto ask = [&] {
      for (int i = 0; i < 40; ++i) {
        const std::unique_lock<ForkSafeMutex> lock(mutex);
        const auto& records = shared.trace().records();
        if (!records.empty() && records.back().samples != shared.samples()) right = false;
        if (!shared.expansion()(samples(30, i)).allFinite()) right = false;
      }
    };
    std::vector<std::thread> threads;
    threads.emplace_back(learn, 0.0);
    threads.emplace_back(learn, 100.0);
    threads.emplace_back(ask);
    threads.emplace_back(ask);
    for (std::thread& thread : threads) thread.join();
    CHECK(right);
    CHECK(shared.samples() == 2 * 10 * 64);
  }
}

TEST(a_model_for_each_thread_learns_what_it_would_alone) {
  set_num_threads(2);
  Polk alone = model(true);
  for (int i = 0; i < 6; ++i) train(alone, i);
  std::vector<RowMatrix> weights(4);
  std::vector<std::thread> threads;
  for (RowMatrix& learned : weights) {
    threads.emplace_back([&learned] {
      Polk own = model(true);
      for (int i = 0; i < 6; ++i) train(own, i);
      learned = own.prediction_weights();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const RowMatrix& learned : weights) CHECK(learned == alone.prediction_weights());
}

TEST(a_mutex_refuses_who_has_it_already) {
  ForkSafeMutex mutex;
  const std::unique_lock<ForkSafeMutex> lock(mutex);
  CHECK_THROWS(mutex.lock(), Error);
}

TEST(before_a_fork_nobody_has_a_lock) {
  ForkSafeMutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const std::unique_lock<ForkSafeMutex> lock(mutex);
        ++inside;
        --inside;
      }
    });
  }
  bool alone = true;
  for (int i = 0; i < 50; ++i) {
    ForkSafeMutex::before_fork();
    alone = alone && inside == 0;
    ForkSafeMutex::after_fork();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(alone);
}
