#pragma once

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
// would cost more memory than the model.
class Trace {
 public:
  static constexpr std::size_t kCapacity = std::size_t{1} << 20;

  void add(const StepRecord& record) {
    if (records_.size() >= 2 * kCapacity) {
      records_.erase(records_.begin(), records_.end() - static_cast<std::ptrdiff_t>(kCapacity));
    }
    records_.push_back(record);
  }

  const std::vector<StepRecord>& records() const { return records_; }

 private:
  std::vector<StepRecord> records_;
};

}  // namespace parsimon
