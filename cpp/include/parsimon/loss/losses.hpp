#pragma once

#include "parsimon/loss/classification.hpp"
#include "parsimon/loss/loss.hpp"
#include "parsimon/loss/parse.hpp"
#include "parsimon/loss/regression.hpp"
