#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

// A module of its own, compiled for the baseline only: asking the processor what it runs must not
// itself need an instruction that it lacks.

namespace {

std::vector<std::string> supported_levels() {
  std::vector<std::string> levels{"baseline"};
#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) levels.emplace_back("avx2");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
    levels.emplace_back("avx512");
  }
#endif
  return levels;
}

}  // namespace

PYBIND11_MODULE(_cpu, module) { module.def("supported_levels", &supported_levels); }
