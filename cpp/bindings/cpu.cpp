#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#ifdef _MSC_VER
#include <intrin.h>
#endif

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
#elif defined(_M_X64)
  const auto has = [](int word, int bit) { return (word >> bit & 1) != 0; };
  int first[4], later[4];
  __cpuid(first, 0);
  const int highest = first[0];
  __cpuid(first, 1);
  // The system must save the wide registers, too: what it saves is in XCR0.
  if (highest < 7 || !has(first[2], 27)) return levels;
  const unsigned long long saved = _xgetbv(0);
  __cpuidex(later, 7, 0);
  const bool avx2 = (saved & 0x6) == 0x6 && has(later[1], 5) && has(first[2], 12);
  if (avx2) levels.emplace_back("avx2");
  const bool foundation = has(later[1], 16) && has(later[1], 17);
  const bool lengths = has(later[1], 30) && has(later[1], 31);
  if (avx2 && (saved & 0xe6) == 0xe6 && foundation && lengths) levels.emplace_back("avx512");
#endif
  return levels;
}

}  // namespace

PYBIND11_MODULE(_cpu, module) { module.def("supported_levels", &supported_levels); }
