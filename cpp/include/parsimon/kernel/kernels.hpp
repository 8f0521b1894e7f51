#pragma once

#include "parsimon/kernel/composite.hpp"
#include "parsimon/kernel/dot_product.hpp"
#include "parsimon/kernel/function.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/kernel/parse.hpp"
#include "parsimon/kernel/stationary.hpp"
