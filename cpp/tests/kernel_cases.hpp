#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "parsimon/kernel/kernels.hpp"

// Every kernel with its definition, written down naively in long double.
namespace kernel_cases {

using namespace parsimon;

using Number = long double;
using Reference = std::function<Number(const Number* x, const Number* y, Index features)>;

struct Case {
  KernelPtr kernel;
  Reference reference;
};

inline Number squared(const Number* x, const Number* y, Index features, const RowVector& h) {
  Number sum = 0;
  for (Index f = 0; f < features; ++f) {
    const Number d = (x[f] - y[f]) / Number(h(h.size() == 1 ? 0 : f));
    sum += d * d;
  }
  return sum;
}

inline Number absolute(const Number* x, const Number* y, Index features, const RowVector& h) {
  Number sum = 0;
  for (Index f = 0; f < features; ++f) {
    sum += std::abs(x[f] - y[f]) / Number(h(h.size() == 1 ? 0 : f));
  }
  return sum;
}

inline Number dot(const Number* x, const Number* y, Index features) {
  Number sum = 0;
  for (Index f = 0; f < features; ++f) sum += x[f] * y[f];
  return sum;
}

inline Bandwidth bandwidth_of(const RowVector& h) {
  return h.size() == 1 ? Bandwidth(h(0)) : Bandwidth(h);
}

// The kernels of differences, with these bandwidths (one, or one for each feature).
inline std::vector<Case> stationary_cases(const RowVector& h) {
  const Bandwidth b = bandwidth_of(h);
  const auto radial = [h](const std::function<Number(Number)>& profile) -> Reference {
    return [h, profile](const Number* x, const Number* y, Index p) {
      return profile(squared(x, y, p, h));
    };
  };
  return {
      {std::make_shared<Gaussian>(b), radial([](Number d) { return std::exp(-d / 2); })},
      {std::make_shared<Matern>(b, 0.5), radial([](Number d) { return std::exp(-std::sqrt(d)); })},
      {std::make_shared<Matern>(b, 1.5), radial([](Number d) {
         const Number s = std::sqrt(3 * d);
         return (1 + s) * std::exp(-s);
       })},
      {std::make_shared<Matern>(b, 2.5), radial([](Number d) {
         const Number s = std::sqrt(5 * d);
         return (1 + s + s * s / 3) * std::exp(-s);
       })},
      {std::make_shared<StudentT>(b), radial([](Number d) { return 1 / (1 + d); })},
      {std::make_shared<StudentT>(b, 3.5),
       radial([](Number d) { return std::pow(1 + d / 3.5L, -2.25L); })},
      {std::make_shared<Laplacian>(b),
       [h](const Number* x, const Number* y, Index p) { return std::exp(-absolute(x, y, p, h)); }}};
}

inline std::vector<Case> all_cases(const RowVector& h) {
  std::vector<Case> cases = stationary_cases(h);
  cases.push_back({std::make_shared<Linear>(), dot});
  for (int degree : {1, 2, 3, 6}) {
    cases.push_back({std::make_shared<Polynomial>(degree, 0.7, 0.5),
                     [degree](const Number* x, const Number* y, Index p) {
                       return std::pow(Number(0.7) * dot(x, y, p) + 0.5L, Number(degree));
                     }});
  }
  const Case gauss = cases[0], matern = cases[2], poly = cases[8];
  cases.push_back(
      {std::make_shared<Sum>(std::vector<KernelPtr>{gauss.kernel, matern.kernel, poly.kernel}),
       [=](const Number* x, const Number* y, Index p) {
         return gauss.reference(x, y, p) + matern.reference(x, y, p) + poly.reference(x, y, p);
       }});
  const auto product = std::make_shared<Product>(
      std::vector<KernelPtr>{matern.kernel, std::make_shared<Scaled>(2.5, poly.kernel)});
  cases.push_back({product, [=](const Number* x, const Number* y, Index p) {
                     return matern.reference(x, y, p) * 2.5L * poly.reference(x, y, p);
                   }});
  cases.push_back({std::make_shared<Sum>(std::vector<KernelPtr>{
                       std::make_shared<Scaled>(0.25, product), gauss.kernel}),
                   [=](const Number* x, const Number* y, Index p) {
                     return 0.25L * matern.reference(x, y, p) * 2.5L * poly.reference(x, y, p) +
                            gauss.reference(x, y, p);
                   }});
  return cases;
}

inline std::vector<View> views_of(const Kernel& kernel, const RowMatrix& points,
                                  const RowVector& origin) {
  std::vector<View> views(static_cast<std::size_t>(kernel.view_count()));
  kernel.make_views(points, origin, views.data());
  return views;
}

inline RowMatrix block_of(const Kernel& kernel, const RowMatrix& a, const RowMatrix& b,
                          const RowVector& origin) {
  RowMatrix values(a.rows(), b.rows());
  const auto va = views_of(kernel, a, origin), vb = views_of(kernel, b, origin);
  kernel.block(va.data(), vb.data(), values);
  return values;
}

inline RowMatrix exact_block(const Reference& reference, const RowMatrix& a, const RowMatrix& b) {
  using Numbers = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Numbers x = a.cast<Number>(), y = b.cast<Number>();
  RowMatrix values(a.rows(), b.rows());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < b.rows(); ++j) {
      values(i, j) = double(reference(x.row(i).data(), y.row(j).data(), a.cols()));
    }
  }
  return values;
}

inline RowMatrix normal(Index rows, Index columns, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> draw;
  RowMatrix x(rows, columns);
  for (double& value : x.reshaped()) value = draw(engine);
  return x;
}

inline RowVector scalar(double h) { return RowVector::Constant(1, h); }

}  // namespace kernel_cases
