#pragma once

// Eigen where the compiler finds it, or in the folder eigen3 beside that of parsimon, as the wheel
// has it and Linux distributions do.
#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#else
#include <eigen3/Eigen/Core>
#endif
