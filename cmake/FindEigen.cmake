# Sets PARSIMON_EIGEN_INCLUDE_DIR and PARSIMON_EIGEN_VERSION.
#
# PyPI's cmeel-eigen keeps its CMake config in <site-packages>/cmeel.prefix, and scikit-build-core
# puts <site-packages> on CMAKE_PREFIX_PATH, so that folder is offered beside every prefix.

set(prefixes ${CMAKE_PREFIX_PATH})
if(DEFINED ENV{CMAKE_PREFIX_PATH})
  file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" environment_prefixes)
  list(APPEND prefixes ${environment_prefixes})
endif()
list(TRANSFORM prefixes APPEND "/cmeel.prefix" OUTPUT_VARIABLE cmeel_prefixes)

# An isolated build lives in a new folder each time; a path remembered from the last one is stale.
if(Eigen3_DIR AND NOT EXISTS "${Eigen3_DIR}")
  unset(Eigen3_DIR CACHE)
endif()
find_package(Eigen3 3.4 CONFIG QUIET HINTS ${cmeel_prefixes})
if(NOT Eigen3_FOUND)
  message(
    FATAL_ERROR
      "Eigen 3.4 was not found. Install it (for example `pip install cmeel-eigen==3.4.1`, or your "
      "system's Eigen package) and give the folder it is in: "
      "-DCMAKE_PREFIX_PATH=<site-packages or prefix>.")
endif()

get_target_property(PARSIMON_EIGEN_INCLUDE_DIR Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
set(PARSIMON_EIGEN_VERSION "${Eigen3_VERSION}")
message(STATUS "Eigen ${PARSIMON_EIGEN_VERSION}: ${PARSIMON_EIGEN_INCLUDE_DIR}")
