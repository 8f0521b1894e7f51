// For libFuzzer (make fuzz): the reader of model files, with a step of training after it, for every
// algorithm. `fuzz_reader` finds its seeds in the folder that `make_seeds` has written.

#include <cstdint>
#include <string>

#include "fuzz_models.hpp"
#include "fuzz_mutator.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::use(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  if (seed % 4 == 0) size = LLVMFuzzerMutate(data, size, most);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string changed =
      seed % 4 == 0 ? fuzz::Mutator::repaired(bytes) : fuzz::Mutator(seed)(bytes);
  if (changed.size() > most) return size;
  changed.copy(reinterpret_cast<char*>(data), changed.size());
  return changed.size();
}
