#pragma once

#include <limits>
#include <locale>
#include <sstream>
#include <string>

namespace parsimon {

// The shortest of 15, 16 or 17 digits that reads back as the same number, in any locale.
inline std::string format_number(double number) {
  std::string text;
  for (int digits = 15; digits <= 17; ++digits) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out.precision(digits);
    out << number;
    text = out.str();
    std::istringstream in(text);
    in.imbue(std::locale::classic());
    double again = 0.0;
    if (in >> again && again == number) break;
  }
  return text;
}

// True, and `number` set, if the whole text is one finite number.
inline bool parse_number(const std::string& text, double& number) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  double value = 0.0;
  if (!(in >> value) || !(in >> std::ws).eof()) return false;
  if (!(value - value == 0.0)) return false;
  number = value;
  return true;
}

}  // namespace parsimon
