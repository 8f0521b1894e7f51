#pragma once

#include <cmath>
#include <string>

#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon::detail {

inline void require_positive(double value, const std::string& what) {
  if (std::isfinite(value) && value > 0) return;
  throw Error(what + " must be a positive finite number, but " + format_number(value) +
              " was given.");
}

}  // namespace parsimon::detail
