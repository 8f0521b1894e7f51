// A short run of what `make fuzz` does for as long as one likes: files of every algorithm, changed
// behind their checksum, are refused with a sentence, or can be trained and asked.

#include <cstdlib>

#include "check.hpp"
#include "fuzz_models.hpp"
#include "fuzz_mutator.hpp"

namespace {

constexpr int kRuns = 150;

}  // namespace

TEST(what_was_made_is_what_is_read) {
  for (const fuzz::Kind& kind : fuzz::kinds()) {
    const std::string bytes = kind.make().to_bytes();
    kind.use(parsimon::Archive::from_bytes(bytes));
    CHECK(fuzz::Mutator::repaired(bytes) == bytes);
  }
}

TEST(changed_files_are_refused_or_work) {
  fuzz::Mutator mutate(1);
  for (const fuzz::Kind& kind : fuzz::kinds()) {
    const std::string seed = kind.make().to_bytes();
    std::string bytes = seed;
    for (int run = 0; run < kRuns; ++run) {
      bytes = mutate(run % 4 == 0 ? seed : bytes);
      fuzz::use(bytes);
    }
  }
}
