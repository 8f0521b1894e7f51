#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/error.hpp"
#include "parsimon/kernel/check.hpp"
#include "parsimon/text.hpp"

namespace parsimon {

// The kinds that are made of others come last.
enum class KernelKind {
  gaussian,
  laplacian,
  matern,
  student_t,
  polynomial,
  linear,
  constant,
  sum,
  product,
  scale,
  single
};

// As they are written; a Student t kernel of one degree of freedom is also called cauchy.
inline constexpr std::array<const char*, 11> kKernelNames = {
    "gaussian", "laplacian", "matern",  "student_t", "polynomial", "linear",
    "constant", "sum",       "product", "scale",     "single"};

// A kernel as it is written down, without what computes it. What parse_kernel_expression() returns
// has parameters in their ranges, and is bounded in depth and number of parts.
struct KernelExpression {
  KernelKind kind;
  // The length of the kernels of differences: one for all features, or one for each.
  std::vector<double> bandwidth = {};
  bool per_feature = false;
  // nu; degrees of freedom; degree, gamma and coef0; or the factor of a scaled kernel.
  std::vector<double> parameters = {};
  std::vector<KernelExpression> parts = {};

  std::string name() const { return kKernelNames[static_cast<std::size_t>(kind)]; }

  // Leaves that look at points.
  Index leaves() const {
    if (parts.empty()) return kind == KernelKind::constant ? 0 : 1;
    Index count = 0;
    for (const KernelExpression& part : parts) count += part.leaves();
    return count;
  }

  // Throws Error if the kernel cannot take points of this many features.
  void check_features(Index features) const {
    if (per_feature) {
      detail::require_as_many_bandwidths(static_cast<Index>(bandwidth.size()), features);
    }
    for (const KernelExpression& part : parts) part.check_features(features);
  }
};

namespace detail {

// kernel = name "(" [argument {"," argument}] ")",  argument = number | "[" numbers "]" | kernel
//
// The text may come from a damaged or hostile file: recursion is bounded, every step consumes
// text, and nothing much larger than the text is allocated.
class KernelParser {
 public:
  explicit KernelParser(const std::string& text) : text_(text) {}

  KernelExpression parse() {
    KernelExpression kernel = read_kernel(0);
    if (at_ != text_.size()) fail("the end of the text");
    return kernel;
  }

 private:
  KernelExpression read_kernel(int depth) {
    const std::string name = read_name();
    require(name != "function",
            "A function kernel cannot be read back, because only its name was written; give the "
            "kernel again when loading.");
    expect('(');
    const bool is_cauchy = name == "cauchy";
    const auto found = std::find(kKernelNames.begin(), kKernelNames.end(), name);
    require(is_cauchy || found != kKernelNames.end(),
            "There is no kernel named '" + name + "' at position " + std::to_string(at_) +
                " of a kernel expression; known are gaussian, laplacian, matern, cauchy, "
                "student_t, polynomial, linear, constant, sum, product, scale and single.");
    const auto kind =
        is_cauchy ? KernelKind::student_t : static_cast<KernelKind>(found - kKernelNames.begin());
    if (kind >= KernelKind::sum) return read_composite(kind, depth);
    KernelExpression kernel = read_leaf(kind, is_cauchy);
    expect(')');
    return kernel;
  }

  KernelExpression read_leaf(KernelKind kind, bool is_cauchy) {
    if (kind == KernelKind::linear || kind == KernelKind::constant) return {kind};
    if (kind == KernelKind::polynomial) {
      const int degree = read_degree();
      const double gamma = read_next_number();
      const double coef0 = read_next_number();
      require_polynomial(degree, gamma, coef0);
      return {kind, {}, false, {static_cast<double>(degree), gamma, coef0}};
    }
    KernelExpression kernel = read_stationary(kind);
    if (kind == KernelKind::matern) {
      kernel.parameters = {read_next_number()};
      require_matern(kernel.parameters[0]);
    } else if (kind == KernelKind::student_t) {
      kernel.parameters = {is_cauchy ? 1.0 : read_next_number()};
      require_student_t(kernel.parameters[0]);
    }
    return kernel;
  }

  KernelExpression read_composite(KernelKind kind, int depth) {
    require(depth < kDeepestKernel,
            "A kernel expression is nested more than " + std::to_string(kDeepestKernel) + " deep.");
    KernelExpression kernel{kind};
    if (kind == KernelKind::scale) {
      kernel.parameters = {read_number()};
      expect(',');
    }
    kernel.parts.push_back(read_kernel(depth + 1));
    while ((kind == KernelKind::sum || kind == KernelKind::product) && peek() == ',') {
      ++at_;
      kernel.parts.push_back(read_kernel(depth + 1));
    }
    expect(')');
    require_part_count(kernel.leaves());
    if (kind == KernelKind::scale) require_scale(kernel.parameters[0]);
    return kernel;
  }

  KernelExpression read_stationary(KernelKind kind) {
    KernelExpression kernel{kind};
    kernel.per_feature = peek() == '[';
    if (kernel.per_feature) ++at_;
    kernel.bandwidth.push_back(read_number());
    while (kernel.per_feature && peek() == ',') kernel.bandwidth.push_back(read_next_number());
    if (kernel.per_feature) expect(']');
    for (const double length : kernel.bandwidth) require_bandwidth(length);
    return kernel;
  }

  int read_degree() {
    const double degree = read_number();
    require(degree >= 1 && degree <= 1e6 && degree == std::floor(degree),
            "A polynomial kernel's degree must be an integer from 1 to 1000000, but " +
                format_number(degree) + " was given.");
    return static_cast<int>(degree);
  }

  double read_next_number() {
    expect(',');
    return read_number();
  }

  double read_number() {
    const std::string number = take("0123456789+-.eE");
    double value = 0;
    if (number.empty() || number.size() > 64 || !parse_number(number, value)) fail("a number");
    return value;
  }

  std::string read_name() {
    const std::string name = take("abcdefghijklmnopqrstuvwxyz_");
    if (name.empty() || name.size() > 64) fail("a kernel's name");
    return name;
  }

  std::string take(const char* characters) {
    const std::size_t end = std::min(text_.find_first_not_of(characters, at_), text_.size());
    std::string taken = text_.substr(at_, end - at_);
    at_ = end;
    return taken;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void expect(char character) {
    if (peek() != character || at_ == text_.size()) fail(std::string("'") + character + "'");
    ++at_;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    throw Error("A kernel expression could not be read: " + expected +
                " was expected at position " + std::to_string(at_) + ".");
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace detail

// What Kernel::describe() wrote, taken apart. Throws Error for anything else.
inline KernelExpression parse_kernel_expression(const std::string& text) {
  return detail::KernelParser(text).parse();
}

}  // namespace parsimon
