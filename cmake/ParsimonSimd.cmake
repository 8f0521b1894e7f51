# Sets PARSIMON_SIMD_LEVELS (a cache variable) and PARSIMON_SIMD_FLAGS_<level>.
#
# The levels are spelt out rather than taken from -march=native: a wheel must run on machines other
# than the one it was built on.

set(PARSIMON_SIMD_FLAGS_baseline "")
if(MSVC)
  set(PARSIMON_SIMD_FLAGS_avx2 /arch:AVX2)
  set(PARSIMON_SIMD_FLAGS_avx512 /arch:AVX512)
else()
  set(PARSIMON_SIMD_FLAGS_avx2 -mavx2 -mfma)
  set(PARSIMON_SIMD_FLAGS_avx512 -mavx2 -mfma -mavx512f -mavx512dq -mavx512vl -mavx512bw)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105593: its own AVX-512 intrinsics are reported as using uninitialised variables.
    list(APPEND PARSIMON_SIMD_FLAGS_avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
endif()

set(default_levels baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$"
   AND CMAKE_SIZEOF_VOID_P EQUAL 8
   AND NOT CMAKE_OSX_ARCHITECTURES MATCHES "arm64")
  list(APPEND default_levels avx2 avx512)
endif()
set(PARSIMON_SIMD_LEVELS "${default_levels}" CACHE STRING "Instruction sets to compile for")

foreach(level IN LISTS PARSIMON_SIMD_LEVELS)
  if(NOT level MATCHES "^(baseline|avx2|avx512)$")
    message(FATAL_ERROR "PARSIMON_SIMD_LEVELS has '${level}'; it may list baseline, avx2, avx512.")
  endif()
endforeach()
if(NOT "baseline" IN_LIST PARSIMON_SIMD_LEVELS)
  message(FATAL_ERROR "PARSIMON_SIMD_LEVELS must list baseline, which every processor runs.")
endif()
