#pragma once

#include <algorithm>
#include <functional>
#include <memory>
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
  double budget = 0;             // what it could spend, or what a cap on the points took

  // A row of the trace.
  auto numbers() { return std::tie(samples, model_order, active, loss, compression_error, budget); }
};

// The records of the latest mini-batches: all of them, until a stream is so long that keeping them
// would cost more memory than the model. Copies share what is complete, so that copying a model
// does not take longer the longer it has been trained.
template <class Record>
class TraceOf {
 public:
  static constexpr std::size_t kChunk = 1024;
  static constexpr std::size_t kChunks = 1024;

  void add(const Record& record) {
    if (chunks_.empty() || chunks_.back()->size() == kChunk) {
      if (chunks_.size() == kChunks) chunks_.erase(chunks_.begin());
      chunks_.push_back(std::make_shared<Chunk>());
      chunks_.back()->reserve(kChunk);
    } else if (chunks_.back().use_count() > 1) {
      chunks_.back() = std::make_shared<Chunk>(*chunks_.back());
    }
    chunks_.back()->push_back(record);
  }

  std::size_t size() const {
    return chunks_.empty() ? 0 : (chunks_.size() - 1) * kChunk + chunks_.back()->size();
  }

  std::vector<Record> records() const {
    std::vector<Record> all;
    for (const auto& chunk : chunks_) all.insert(all.end(), chunk->begin(), chunk->end());
    return all;
  }

 private:
  using Chunk = std::vector<Record>;

  std::vector<std::shared_ptr<Chunk>> chunks_;
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

// The share that iterate number t = 1, 2, ... takes in an average in which it counts like
// t^recency (polynomial-decay averaging): about the last 1 / (recency + 1) of the iterates matter,
// whatever the length of the stream.
inline double average_share(Index t, double recency) {
  return (recency + 1) / (static_cast<double>(t) + recency);
}

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

  // Goes on where another model stopped: one that was read back, or whose work this one continues.
  void follow(Index samples, Index batches, Trace trace) {
    samples_ = samples;
    batches_ = batches;
    trace_ = std::move(trace);
  }

 protected:
  void count_samples(Index samples) { samples_ += samples; }
  void count_batch() { batches_ += 1; }

  void record(StepRecord& step, Index model_order) {
    step.samples = samples_;
    step.model_order = model_order;
    trace_.add(step);
  }

 private:
  Index samples_ = 0;
  Index batches_ = 0;
  Trace trace_;
};

}  // namespace parsimon
