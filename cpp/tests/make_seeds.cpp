// Writes a model of each algorithm into a folder: where `make fuzz` begins.

#include <filesystem>

#include "fuzz_models.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const fuzz::Kind& kind : fuzz::kinds()) {
    kind.make().write(std::filesystem::path(argv[1]) / kind.name);
  }
  return 0;
}
