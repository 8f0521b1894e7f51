#include <iostream>
#include <parsimon/types.hpp>
#include <parsimon/version.hpp>

int main() {
  const parsimon::RowMatrix points = parsimon::RowMatrix::Identity(3, 3);
  std::cout << "parsimon " << PARSIMON_VERSION << ", trace " << points.trace() << '\n';
  return points.trace() == 3.0 ? 0 : 1;
}
