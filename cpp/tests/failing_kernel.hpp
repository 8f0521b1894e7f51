#pragma once

#include <cmath>
#include <memory>
#include <parsimon/kernel/function.hpp>
#include <stdexcept>

namespace reference {

// exp(-rate |x - y|^2) as a user's function, which may fail at any moment: this one does when no
// calls are left.
inline parsimon::KernelPtr failing_kernel(double rate, int& calls_left) {
  using namespace parsimon;
  return std::make_shared<FunctionKernel>(
      [rate, &calls_left](const ConstRows& a, const ConstRows& b, Rows values) {
        if (calls_left-- == 0) throw std::runtime_error("no");
        for (Index i = 0; i < a.rows(); ++i) {
          for (Index j = 0; j < b.rows(); ++j) {
            values(i, j) = std::exp(-rate * (a.row(i) - b.row(j)).squaredNorm());
          }
        }
      });
}

}  // namespace reference
