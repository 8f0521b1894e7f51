#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/kernel/composite.hpp"
#include "parsimon/kernel/dot_product.hpp"
#include "parsimon/kernel/kernel.hpp"
#include "parsimon/kernel/stationary.hpp"
#include "parsimon/text.hpp"

namespace parsimon {

namespace detail {

// kernel = name "(" [argument {"," argument}] ")",  argument = number | "[" numbers "]" | kernel
//
// The text may come from a damaged or hostile file: recursion is bounded, every step consumes
// text, and nothing larger than the text is allocated.
class KernelParser {
 public:
  explicit KernelParser(const std::string& text) : text_(text) {}

  KernelPtr parse() {
    KernelPtr kernel = read_kernel(0);
    if (at_ != text_.size()) fail("the end of the text");
    return kernel;
  }

 private:
  KernelPtr read_kernel(int depth) {
    const std::string name = read_name();
    require(name != "function",
            "A function kernel cannot be read back, because only its name was written; give the "
            "kernel again when loading.");
    expect('(');
    if (name == "sum" || name == "product" || name == "scale" || name == "single") {
      require(depth < Composite::largest_depth, "A kernel expression is nested more than " +
                                                    std::to_string(Composite::largest_depth) +
                                                    " deep.");
      return read_composite(name, depth + 1);
    }
    KernelPtr kernel = read_leaf(name);
    expect(')');
    return kernel;
  }

  KernelPtr read_leaf(const std::string& name) {
    if (name == "gaussian") return std::make_shared<Gaussian>(read_bandwidth());
    if (name == "laplacian") return std::make_shared<Laplacian>(read_bandwidth());
    if (name == "cauchy") return std::make_shared<StudentT>(read_bandwidth());
    if (name == "linear") return std::make_shared<Linear>();
    if (name == "constant") return std::make_shared<Constant>();
    if (name == "matern" || name == "student_t") {
      Bandwidth bandwidth = read_bandwidth();
      const double parameter = read_next_number();
      if (name == "matern") return std::make_shared<Matern>(std::move(bandwidth), parameter);
      return std::make_shared<StudentT>(std::move(bandwidth), parameter);
    }
    if (name == "polynomial") {
      const int degree = read_degree();
      const double gamma = read_next_number();
      return std::make_shared<Polynomial>(degree, gamma, read_next_number());
    }
    throw Error("There is no kernel named '" + name + "' at position " + std::to_string(at_) +
                " of a kernel expression; known are gaussian, laplacian, matern, cauchy, "
                "student_t, polynomial, linear, constant, sum, product, scale and single.");
  }

  KernelPtr read_composite(const std::string& name, int depth) {
    double scale = 1;
    if (name == "scale") {
      scale = read_number();
      expect(',');
    }
    std::vector<KernelPtr> parts{read_kernel(depth)};
    while ((name == "sum" || name == "product") && peek() == ',') {
      ++at_;
      parts.push_back(read_kernel(depth));
    }
    expect(')');
    if (name == "sum") return std::make_shared<Sum>(std::move(parts));
    if (name == "product") return std::make_shared<Product>(std::move(parts));
    if (name == "single") return std::make_shared<SinglePrecision>(parts.front());
    return std::make_shared<Scaled>(scale, parts.front());
  }

  Bandwidth read_bandwidth() {
    if (peek() != '[') return read_number();
    ++at_;
    std::vector<double> lengths{read_number()};
    while (peek() == ',') lengths.push_back(read_next_number());
    expect(']');
    return RowVector(Eigen::Map<RowVector>(lengths.data(), static_cast<Index>(lengths.size())));
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

// The kernel that Kernel::describe() wrote. Throws Error for anything else.
inline KernelPtr parse_kernel(const std::string& text) {
  return detail::KernelParser(text).parse();
}

}  // namespace parsimon
