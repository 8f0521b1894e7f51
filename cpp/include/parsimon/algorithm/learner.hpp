#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

// What all algorithms share that learn from a stream, whatever they learn.

namespace parsimon {

// What one mini-batch did.
struct StepRecord {
  Index samples = 0;             // seen so far, this mini-batch included
  Index model_order = 0;         // after the step
  Index active = 0;              // samples with a non-zero gradient
  double loss = 0;               // mean over the mini-batch, before the step
  double compression_error = 0;  // Hilbert norm that compression spent, <= budget
  double budget = 0;             // or what a floor or a cap made of it, if more

  // A row of the trace.
  auto numbers() { return std::tie(samples, model_order, active, loss, compression_error, budget); }

  // What this and the next mini-batches did; share: that of the next in the mean.
  void take_in(const StepRecord& next, double share) {
    samples = next.samples;
    model_order = next.model_order;
    active += next.active;
    loss += share * (next.loss - loss);
    compression_error = std::max(compression_error, next.compression_error);
    budget = std::max(budget, next.budget);
  }
};

// What all mini-batches did. However many there are, there are at most kMost records: when they are
// full, each two become one, and from then on a record is that of twice as many mini-batches.
template <class Record>
class TraceOf {
 public:
  static constexpr std::size_t kMost = 4096;
  static constexpr std::size_t kMore = 1024;

  void add(const Record& record) {
    if (in_last_ < stride_) {
      in_last_ += 1;
      records_.back().take_in(record, 1 / static_cast<double>(in_last_));
      return;
    }
    if (records_.size() == kMost) halve();
    make_room();
    records_.push_back(record);
    in_last_ = 1;
  }

  // Room for one more record: add() then throws nothing.
  void make_room() {
    const std::size_t size = records_.size();
    if (size == records_.capacity() && size < kMost) records_.reserve(size + kMore);
  }

  std::size_t size() const { return records_.size(); }
  const std::vector<Record>& records() const { return records_; }
  // Mini-batches in each record, and in the last one.
  Index stride() const { return stride_; }
  Index in_last() const { return in_last_; }

  // A trace that is read back.
  TraceOf() = default;
  TraceOf(std::vector<Record> records, Index stride, Index in_last)
      : records_(std::move(records)), stride_(stride), in_last_(in_last) {
    require(records_.size() <= kMost && stride_ > 0 && stride_ < (Index{1} << 50) && in_last_ > 0 &&
                in_last_ <= stride_ && (!records_.empty() || in_last_ == stride_),
            "The trace in the model file makes no sense.");
  }

 private:
  void halve() {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      records_[i] = records_[2 * i];
      records_[i].take_in(records_[2 * i + 1], 0.5);
    }
    records_.resize(kMost / 2);
    stride_ *= 2;
  }

  std::vector<Record> records_;
  Index stride_ = 1;
  Index in_last_ = 1;  // as if there were a full one before the first
};

using Trace = TraceOf<StepRecord>;

// Asked before each mini-batch whether training goes on.
using KeepGoing = std::function<bool()>;

// One mini-batch after the other of a block of samples:
//
//   MiniBatches part(samples.rows(), batch_size, keep_going);
//   while (part.next()) advance(samples.middleRows(part.start(), part.count()), part.share());
//   return part.taken();
//
// share() = count() / batch_size is less than 1 where too few samples are left. Steps and budgets
// are chosen for batch_size samples: a shorter mini-batch takes that share of both, so that a
// sample counts the same in whatever blocks it comes, as long as the step is constant.
class MiniBatches {
 public:
  MiniBatches(Index samples, Index batch_size, const KeepGoing& keep_going)
      : samples_(samples), batch_size_(batch_size), keep_going_(keep_going) {
    require(batch_size > 0, "The batch size must be positive.");
  }

  // Whether there is one more, and it is wanted.
  bool next() {
    start_ += count_;
    count_ = 0;
    if (start_ == samples_ || !keep_going_()) return false;
    count_ = std::min(batch_size_, samples_ - start_);
    return true;
  }

  Index start() const { return start_; }
  Index count() const { return count_; }
  double share() const { return static_cast<double>(count_) / static_cast<double>(batch_size_); }
  // Samples in the mini-batches that are done.
  Index taken() const { return start_; }

 private:
  Index samples_;
  Index batch_size_;
  const KeepGoing& keep_going_;
  Index start_ = 0;
  Index count_ = 0;
};

// Throws unless what a step has found is bounded. what: "The predictions have"; step: "mini-batch".
inline void require_bounded(bool bounded, const char* what, double loss, const char* step,
                            const char* advice) {
  if (bounded) return;
  throw DivergenceError(std::string(what) + " grown beyond all bounds (mean loss " +
                        format_number(loss) + "). The model is as it was before this " + step +
                        ". " + advice);
}

// What a model has seen, and what it made of it.
class Learner {
 public:
  Index samples() const { return samples_; }
  Index batches() const { return batches_; }
  const Trace& trace() const { return trace_; }

  // How many samples there were each time the stream was found to have changed: the latest ones.
  static constexpr std::size_t kMostChanges = 1024;
  const std::vector<Index>& drift() const { return drift_; }
  void restore_drift(std::vector<Index> drift) {
    bool sensible = drift.size() <= kMostChanges && std::is_sorted(drift.begin(), drift.end());
    for (const Index at : drift) sensible = sensible && at >= 0 && at <= samples_;
    require(sensible, "The changes of the stream in the model file make no sense.");
    drift_ = std::move(drift);
  }

  // Goes on where another model stopped: one that was read back, or whose work this one continues.
  void follow(Index samples, Index batches, Trace trace) {
    samples_ = samples;
    batches_ = batches;
    trace_ = std::move(trace);
  }

 protected:
  // To be called before anything changes: what counts and records a step then throws nothing.
  void make_room() {
    trace_.make_room();
    const std::size_t size = drift_.size();
    if (size == drift_.capacity() && size < kMostChanges) drift_.reserve(2 * size + 8);
  }
  void count_samples(Index samples) { samples_ += samples; }
  void count_batch() { batches_ += 1; }
  void note_change() {
    if (drift_.size() == kMostChanges) drift_.erase(drift_.begin());
    drift_.push_back(samples_);
  }

  void record(StepRecord& step, Index model_order) {
    step.samples = samples_;
    step.model_order = model_order;
    trace_.add(step);
  }

 private:
  Index samples_ = 0;
  Index batches_ = 0;
  Trace trace_;
  std::vector<Index> drift_;
};

}  // namespace parsimon
