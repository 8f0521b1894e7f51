#include <Eigen/Eigenvalues>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "kernel_cases.hpp"

using namespace parsimon;
using namespace kernel_cases;

namespace {

RowMatrix gradient_of(const Kernel& kernel, const RowMatrix& a, const RowMatrix& b,
                      const RowMatrix& weights) {
  RowMatrix gradient = RowMatrix::Constant(b.rows(), b.cols(), 1.0);
  const auto va = views_of(kernel, a, a.row(0)), vb = views_of(kernel, b, a.row(0));
  kernel.add_gradient(va.data(), vb.data(), weights, gradient);
  return gradient.array() - 1.0;  // it must add, not overwrite
}

// Central differences of sum_i weights(i, j) k(a_i, x) at x = b_j.
RowMatrix differences(const Reference& reference, const RowMatrix& a, const RowMatrix& b,
                      const RowMatrix& weights, double step) {
  RowMatrix gradient = RowMatrix::Zero(b.rows(), b.cols());
  for (Index j = 0; j < b.rows(); ++j) {
    for (Index f = 0; f < b.cols(); ++f) {
      std::vector<Number> x(static_cast<std::size_t>(b.cols())), y(x.size());
      Number sum = 0;
      for (Index i = 0; i < a.rows(); ++i) {
        for (Index g = 0; g < b.cols(); ++g) {
          x[static_cast<std::size_t>(g)] = a(i, g);
          y[static_cast<std::size_t>(g)] = b(j, g);
        }
        Number& moved = y[static_cast<std::size_t>(f)];
        moved += Number(step);
        const Number up = reference(x.data(), y.data(), b.cols());
        moved -= 2 * Number(step);
        sum += Number(weights(i, j)) * (up - reference(x.data(), y.data(), b.cols()));
      }
      gradient(j, f) = double(sum / (2 * Number(step)));
    }
  }
  return gradient;
}

double largest(const RowMatrix& x) { return x.array().abs().maxCoeff(); }

KernelPtr function_kernel(bool with_gradient) {
  const auto value = [](const ConstRows& a, const ConstRows& b, Rows values) {
    values = ((a * b.transpose()).array() + 1.0).square();
  };
  const auto gradient = [](const ConstRows& a, const RowVector& x, Rows gradients) {
    const Vector slopes = 2.0 * ((a * x.transpose()).array() + 1.0);
    gradients = slopes.asDiagonal() * a;
  };
  if (!with_gradient) return std::make_shared<FunctionKernel>(value, "square");
  return std::make_shared<FunctionKernel>(value, "square", gradient);
}

}  // namespace

TEST(gradients_equal_central_differences) {
  for (Index p : {1, 3, 20, 40}) {
    const RowMatrix a = normal(7, p, 1), b = normal(5, p, 2), weights = normal(7, 5, 3);
    const RowVector each = normal(1, p, 4).array().abs() + 0.7;
    for (const RowVector& h : {scalar(std::sqrt(double(p))), RowVector(each * std::sqrt(p))}) {
      for (const Case& c : all_cases(h)) {
        const RowMatrix expected = differences(c.reference, a, b, weights, 1e-6);
        const RowMatrix gradient = gradient_of(*c.kernel, a, b, weights);
        CHECK_NEAR(largest(gradient - expected), 0, 1e-9 * (1.0 + largest(expected)));
      }
    }
  }
}

TEST(gradients_of_data_far_from_zero) {
  for (Index p : {2, 40}) {
    const RowMatrix a = (normal(7, p, 1).array() + 1e8).matrix();
    const RowMatrix b = (normal(5, p, 2).array() + 1e8).matrix();
    const RowMatrix weights = normal(7, 5, 3);
    for (const Case& c : stationary_cases(scalar(std::sqrt(double(p))))) {
      const RowMatrix expected = differences(c.reference, a, b, weights, 1e-5);
      CHECK_NEAR(largest(gradient_of(*c.kernel, a, b, weights) - expected), 0, 1e-6);
    }
  }
}

TEST(gradients_of_tiny_and_huge_data) {
  const RowMatrix a = normal(7, 3, 1), b = normal(5, 3, 2), weights = normal(7, 5, 3);
  for (double scale : {1e-150, 1e150}) {
    const auto plain = stationary_cases(scalar(2.0)),
               scaled = stationary_cases(scalar(2.0 * scale));
    for (std::size_t i = 0; i < plain.size(); ++i) {
      RowMatrix gradient = RowMatrix::Zero(5, 3);
      const RowVector origin = a.row(0) * scale;
      const auto va = views_of(*scaled[i].kernel, a * scale, origin);
      const auto vb = views_of(*scaled[i].kernel, b * scale, origin);
      scaled[i].kernel->add_gradient(va.data(), vb.data(), weights, gradient);
      CHECK_NEAR(largest(gradient * scale - gradient_of(*plain[i].kernel, a, b, weights)), 0,
                 1e-13);
    }
  }
}

TEST(a_point_adds_nothing_to_the_gradient_at_itself) {
  for (Index p : {2, 40}) {
    const RowMatrix a = normal(4, p, 1);
    for (const Case& c : stationary_cases(scalar(1.0))) {
      RowMatrix weights = RowMatrix::Identity(4, 4);
      CHECK(gradient_of(*c.kernel, a, a, weights).isZero(0.0));
    }
  }
}

TEST(gram_matrices_are_symmetric_and_positive) {
  for (Index p : {2, 40}) {
    RowMatrix x = normal(60, p, 1);
    x.bottomRows(20) = x.topRows(20);
    x.row(59) += RowVector::Constant(p, 1e-9);
    for (const Case& c : all_cases(scalar(2.0 * std::sqrt(double(p))))) {
      const RowMatrix gram = block_of(*c.kernel, x, x, x.row(0));
      const double size = largest(gram);
      CHECK_NEAR(largest(gram - gram.transpose()), 0, 1e-14 * size);
      const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram, Eigen::EigenvaluesOnly);
      CHECK(solver.eigenvalues().minCoeff() > -1e-13 * size * double(x.rows()));
    }
    for (const Case& c : stationary_cases(scalar(1.0))) {
      const RowMatrix gram = block_of(*c.kernel, x, x, x.row(5));
      CHECK((gram.diagonal().array() == 1.0).all());
      for (Index i = 0; i < 19; ++i) CHECK(gram(i, 40 + i) == 1.0);
    }
  }
}

TEST(function_kernels) {
  const RowMatrix a = normal(37, 3, 1), b = normal(5, 3, 2), weights = normal(37, 5, 3);
  const KernelPtr kernel = function_kernel(true);
  const Polynomial same(2, 1.0, 1.0);
  CHECK_NEAR(largest(block_of(*kernel, a, b, a.row(0)) - block_of(same, a, b, a.row(0))), 0, 1e-12);
  Vector values(37), expected(37);
  kernel->diagonal(views_of(*kernel, a, a.row(0)).data(), values);
  same.diagonal(views_of(same, a, a.row(0)).data(), expected);
  CHECK_NEAR((values - expected).cwiseAbs().maxCoeff(), 0, 1e-12);
  CHECK_NEAR(largest(gradient_of(*kernel, a, b, weights) - gradient_of(same, a, b, weights)), 0,
             1e-12);
  CHECK(kernel->describe() == "function(square)");
  CHECK_THROWS(gradient_of(*function_kernel(false), a, b, weights), Error);
  const Sum sum({kernel, std::make_shared<Gaussian>(1.0)});
  CHECK(block_of(sum, a, b, a.row(0)).allFinite());
  CHECK_THROWS(parse_kernel(sum.describe()), Error);
}

TEST(function_kernels_that_return_no_numbers) {
  const RowMatrix a = normal(3, 2, 1);
  const FunctionKernel nan([](const ConstRows&, const ConstRows&, Rows values) {
    values.setConstant(std::numeric_limits<double>::quiet_NaN());
  });
  CHECK_THROWS(block_of(nan, a, a, a.row(0)), Error);
  Vector diagonal(3);
  CHECK_THROWS(nan.diagonal(views_of(nan, a, a.row(0)).data(), diagonal), Error);
}
