# Sets PARSIMON_EIGEN_INCLUDE_DIR.
#
# PyPI's cmeel-eigen keeps its CMake config in <site-packages>/cmeel.prefix, and scikit-build-core
# puts <site-packages> on CMAKE_PREFIX_PATH, so that folder is tried below every prefix.

set(prefixes ${CMAKE_PREFIX_PATH})
if(DEFINED ENV{CMAKE_PREFIX_PATH})
  file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" environment_prefixes)
  list(APPEND prefixes ${environment_prefixes})
endif()
list(TRANSFORM prefixes APPEND "/cmeel.prefix" OUTPUT_VARIABLE cmeel_prefixes)

find_package(Eigen3 3.4 CONFIG QUIET HINTS ${cmeel_prefixes})
if(NOT Eigen3_FOUND)
  message(
    FATAL_ERROR
      "Eigen 3.4 was not found. Install it (for example `pip install cmeel-eigen==3.4.1`, or your "
      "system's Eigen package) and say where: -DCMAKE_PREFIX_PATH=<site-packages or prefix>.")
endif()

get_target_property(eigen_include_dirs Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
list(GET eigen_include_dirs 0 PARSIMON_EIGEN_INCLUDE_DIR)
message(STATUS "Eigen ${Eigen3_VERSION}: ${PARSIMON_EIGEN_INCLUDE_DIR}")
