#pragma once

// Everything at once, for programs that embed the core.

#include "parsimon/algorithm/hybrid.hpp"
#include "parsimon/algorithm/mirror_newton.hpp"
#include "parsimon/algorithm/polk.hpp"
#include "parsimon/algorithm/slkl.hpp"
#include "parsimon/algorithm/spppot.hpp"
#include "parsimon/density/quadrature.hpp"
#include "parsimon/io/archive.hpp"
#include "parsimon/io/intensity_file.hpp"
#include "parsimon/io/polk_file.hpp"
#include "parsimon/io/slkl_file.hpp"
#include "parsimon/kernel/kernels.hpp"
#include "parsimon/loss/losses.hpp"
#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/rkhs/least_squares.hpp"
#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/schedule/budget.hpp"
#include "parsimon/schedule/step.hpp"
#include "parsimon/types.hpp"
#include "parsimon/version.hpp"
