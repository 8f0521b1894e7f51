#pragma once

#include <memory>
#include <vector>

#include "parsimon/types.hpp"

namespace parsimon {

// What one mini-batch did.
struct StepRecord {
  Index samples = 0;             // seen so far, this mini-batch included
  Index model_order = 0;         // after the step
  Index active = 0;              // samples with a non-zero gradient
  double loss = 0;               // mean over the mini-batch, before the step
  double compression_error = 0;  // Hilbert norm that KOMP spent, <= budget
  double budget = 0;
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

}  // namespace parsimon
