#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimon/kernel/composite.hpp"
#include "parsimon/kernel/dot_product.hpp"
#include "parsimon/kernel/expression.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/kernel/stationary.hpp"

namespace parsimon {

namespace detail {

inline Bandwidth bandwidth_of(const KernelExpression& kernel) {
  if (!kernel.per_feature) return kernel.bandwidth[0];
  const auto features = static_cast<Index>(kernel.bandwidth.size());
  return RowVector(Eigen::Map<const RowVector>(kernel.bandwidth.data(), features));
}

inline KernelPtr make_kernel(const KernelExpression& kernel) {
  std::vector<KernelPtr> parts;
  for (const KernelExpression& part : kernel.parts) parts.push_back(make_kernel(part));
  const std::vector<double>& numbers = kernel.parameters;
  switch (kernel.kind) {
    case KernelKind::gaussian:
      return std::make_shared<Gaussian>(bandwidth_of(kernel));
    case KernelKind::laplacian:
      return std::make_shared<Laplacian>(bandwidth_of(kernel));
    case KernelKind::matern:
      return std::make_shared<Matern>(bandwidth_of(kernel), numbers[0]);
    case KernelKind::student_t:
      return std::make_shared<StudentT>(bandwidth_of(kernel), numbers[0]);
    case KernelKind::polynomial:
      return std::make_shared<Polynomial>(static_cast<int>(numbers[0]), numbers[1], numbers[2]);
    case KernelKind::linear:
      return std::make_shared<Linear>();
    case KernelKind::constant:
      return std::make_shared<Constant>();
    case KernelKind::sum:
      return std::make_shared<Sum>(parts);
    case KernelKind::product:
      return std::make_shared<Product>(parts);
    case KernelKind::scale:
      return std::make_shared<Scaled>(numbers[0], parts.front());
    case KernelKind::single:
      return std::make_shared<SinglePrecision>(parts.front());
  }
  throw Error("A kernel expression is of an unknown kind.");
}

}  // namespace detail

// The kernel that Kernel::describe() wrote. Throws Error for anything else.
inline KernelPtr parse_kernel(const std::string& text) {
  return detail::make_kernel(parse_kernel_expression(text));
}

}  // namespace parsimon
