#include <cmath>
#include <parsimon/algorithm/averaging.hpp>
#include <parsimon/algorithm/learner.hpp>

#include "check.hpp"

using namespace parsimon;

namespace {

constexpr Memory kAll;

double share(Averaging& averaging, const Memory& memory, double loss = 0.5) {
  return averaging.share(memory, 10, Vector::Constant(10, loss), 20);
}

}  // namespace

TEST(without_a_bound_iterates_count_like_the_cube_of_their_number) {
  Averaging averaging;
  // The share of iterate t among the first t, whatever was before: t^3 / (1 + 8 + ... + t^3) of a
  // rising factorial.
  double weight = 1, total = 0;
  for (double t = 1; t < 1000; ++t) {
    weight = t * (t + 1) * (t + 2);
    total += weight;
    CHECK_NEAR(share(averaging, kAll), weight / total, 1e-14);
  }
}

TEST(a_half_life_bounds_the_share_from_below) {
  Averaging averaging;
  const Memory memory{100, false};
  double kept = 1;
  for (int t = 0; t < 500; ++t) share(averaging, memory);
  for (int t = 0; t < 10; ++t) kept *= 1 - share(averaging, memory);
  CHECK_NEAR(kept, 0.5, 1e-12);  // 10 mini-batches of 10 samples
}

TEST(a_change_shortens_memory_until_it_is_over) {
  Averaging averaging;
  const Memory memory{1e9, true};
  for (int t = 0; t < 2000; ++t) share(averaging, memory, t % 2);
  const double calm = share(averaging, memory, 0);
  CHECK(calm < 0.003);
  for (int t = 0; t < 50; ++t) share(averaging, memory, 5);
  CHECK(averaging.drift().is_drifting());
  CHECK(share(averaging, memory, 5) > 0.03);
  for (int t = 0; t < 2000; ++t) share(averaging, memory, t % 2);
  CHECK(!averaging.drift().is_drifting());
  CHECK(share(averaging, memory, 0) < 0.003);
}

TEST(an_average_that_is_read_back_goes_on) {
  Averaging averaging, twin;
  const Memory memory{1e9, true};
  for (int t = 0; t < 700; ++t) share(averaging, memory, t < 600 ? t % 2 : 5);
  twin.restore(averaging.state());
  for (int t = 0; t < 200; ++t) {
    CHECK(share(averaging, memory, t % 3) == share(twin, memory, t % 3));
  }
  Vector bad = averaging.state();
  bad(0) = -1;
  CHECK_THROWS(twin.restore(bad), Error);
  CHECK_THROWS((Memory{0, false}.check()), Error);
}

TEST(a_trace_never_has_more_than_so_many_records_and_loses_nothing_that_adds_up) {
  Trace trace;
  const Index count = 100'000;
  double loss = 0, largest = 0;
  for (Index i = 1; i <= count; ++i) {
    StepRecord record;
    record.samples = 3 * i;
    record.model_order = i % 17;
    record.active = i % 3;
    record.loss = std::sin(static_cast<double>(i));
    record.compression_error = std::cos(static_cast<double>(i));
    loss += record.loss;
    largest = std::max(largest, record.compression_error);
    trace.add(record);
    CHECK(trace.size() <= Trace::kMost);
  }
  CHECK(trace.size() > Trace::kMost / 2);
  const auto& records = trace.records();
  CHECK(records.back().samples == 3 * count);
  CHECK(records.back().model_order == count % 17);
  Index active = 0, before = 0;
  double sum = 0, error = 0;
  for (const StepRecord& record : records) {
    sum += record.loss * static_cast<double>(record.samples - before) / 3;
    error = std::max(error, record.compression_error);
    active += record.active;
    before = record.samples;
    if (&record != &records.back()) CHECK(record.samples % (3 * trace.stride()) == 0);
  }
  CHECK(active == 100'000);
  CHECK(error == largest);
  CHECK_NEAR(sum, loss, 1e-8);
}

TEST(a_trace_that_is_read_back_goes_on) {
  Trace trace;
  const auto add = [](Trace& to, Index i) {
    StepRecord record;
    record.samples = i;
    record.loss = static_cast<double>(i * i);
    to.add(record);
  };
  for (Index i = 0; i < 9001; ++i) add(trace, i);
  Trace twin(trace.records(), trace.stride(), trace.in_last());
  for (Index i = 9001; i < 30000; ++i) {
    add(trace, i);
    add(twin, i);
  }
  CHECK(twin.size() == trace.size() && twin.stride() == trace.stride());
  for (std::size_t i = 0; i < trace.size(); ++i) {
    CHECK(twin.records()[i].samples == trace.records()[i].samples);
    CHECK(twin.records()[i].loss == trace.records()[i].loss);
  }
  CHECK_THROWS(Trace(trace.records(), 4, 5), Error);
  CHECK_THROWS(Trace(trace.records(), 0, 0), Error);
  CHECK_THROWS(Trace({}, 4, 1), Error);
}
