# The same tree for `cmake --install` and for the wheel, where the prefix is the package itself:
#   include/parsimon  include/eigen3/Eigen  share/cmake/parsimon

include(CMakePackageConfigHelpers)
set(cmake_dir ${CMAKE_INSTALL_DATADIR}/cmake/parsimon)

install(TARGETS parsimon EXPORT parsimonTargets COMPONENT headers)
install(EXPORT parsimonTargets NAMESPACE parsimon:: DESTINATION ${cmake_dir} COMPONENT headers)
install(DIRECTORY cpp/include/parsimon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers
        FILES_MATCHING PATTERN "*.hpp")

# Whoever embeds the core needs nothing else: Eigen's headers come along, with their licences.
install(DIRECTORY ${PARSIMON_EIGEN_INCLUDE_DIR}/Eigen
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/eigen3 COMPONENT headers)
install(DIRECTORY licenses/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/eigen3/licenses
        COMPONENT headers)
install(FILES LICENSE DESTINATION ${cmake_dir} COMPONENT headers)

configure_package_config_file(
  cmake/parsimonConfig.cmake.in ${PROJECT_BINARY_DIR}/parsimonConfig.cmake
  INSTALL_DESTINATION ${cmake_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/parsimonConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/parsimonConfig.cmake
              ${PROJECT_BINARY_DIR}/parsimonConfigVersion.cmake
        DESTINATION ${cmake_dir} COMPONENT headers)
