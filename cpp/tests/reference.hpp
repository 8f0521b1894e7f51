#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <parsimon/kernel/composite.hpp>
#include <parsimon/kernel/dot_product.hpp>
#include <parsimon/kernel/stationary.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

// What the engine is judged by: the same mathematics, written down naively in long double.
namespace reference {

using parsimon::Index;
using parsimon::RowMatrix;
using parsimon::RowVector;
using parsimon::Vector;
using Real = long double;

inline constexpr double kEps = std::numeric_limits<double>::epsilon();

// Loops rather than Eigen: its algorithms for another scalar would double the time to compile.
class Table {
 public:
  Table(Index rows, Index columns)
      : rows_(rows), columns_(columns), values_(static_cast<std::size_t>(rows * columns)) {}

  template <typename Derived>
  Table(const Eigen::MatrixBase<Derived>& given) : Table(given.rows(), given.cols()) {
    for (Index i = 0; i < rows_; ++i) {
      for (Index j = 0; j < columns_; ++j) (*this)(i, j) = given(i, j);
    }
  }

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  Real* row(Index i) { return values_.data() + i * columns_; }
  const Real* row(Index i) const { return values_.data() + i * columns_; }
  Real& operator()(Index i, Index j) { return row(i)[j]; }
  Real operator()(Index i, Index j) const { return row(i)[j]; }

 private:
  Index rows_, columns_;
  std::vector<Real> values_;
};

inline Real dot(const Real* a, const Real* b, Index count) {
  Real sum = 0;
  for (Index i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

using RealKernel = std::function<Real(const std::vector<Real>&, const std::vector<Real>&)>;

// A kernel of the core beside its definition.
struct KernelPair {
  std::string name;
  parsimon::KernelPtr core;
  RealKernel exact;
};

inline Real squared_distance(const std::vector<Real>& x, const std::vector<Real>& y) {
  Real sum = 0;
  for (std::size_t f = 0; f < x.size(); ++f) sum += (x[f] - y[f]) * (x[f] - y[f]);
  return sum;
}

inline Real product(const std::vector<Real>& x, const std::vector<Real>& y) {
  return dot(x.data(), y.data(), static_cast<Index>(x.size()));
}

inline KernelPair gaussian(double h) {
  return {"gaussian", std::make_shared<parsimon::Gaussian>(h), [h](const auto& x, const auto& y) {
            return std::exp(-squared_distance(x, y) / (2 * Real(h) * Real(h)));
          }};
}

inline KernelPair laplacian(double h) {
  return {"laplacian", std::make_shared<parsimon::Laplacian>(h), [h](const auto& x, const auto& y) {
            Real sum = 0;
            for (std::size_t f = 0; f < x.size(); ++f) sum += std::abs(x[f] - y[f]);
            return std::exp(-sum / Real(h));
          }};
}

inline KernelPair matern(double h, double nu) {
  return {"matern", std::make_shared<parsimon::Matern>(h, nu),
          [h, nu](const auto& x, const auto& y) {
            const Real s = std::sqrt(2 * Real(nu) * squared_distance(x, y)) / Real(h);
            const Real p = nu == 0.5 ? 1 : nu == 1.5 ? 1 + s : 1 + s + s * s / 3;
            return p * std::exp(-s);
          }};
}

inline KernelPair cauchy(double h) {
  return {"cauchy", std::make_shared<parsimon::StudentT>(h), [h](const auto& x, const auto& y) {
            return 1 / (1 + squared_distance(x, y) / (Real(h) * Real(h)));
          }};
}

inline KernelPair polynomial(int degree, double gamma, double coef0) {
  return {"polynomial", std::make_shared<parsimon::Polynomial>(degree, gamma, coef0),
          [degree, gamma, coef0](const auto& x, const auto& y) {
            return std::pow(Real(gamma) * product(x, y) + Real(coef0), Real(degree));
          }};
}

inline KernelPair linear() {
  return {"linear", std::make_shared<parsimon::Linear>(),
          [](const auto& x, const auto& y) { return product(x, y); }};
}

// gaussian + matern * linear / 4
inline KernelPair mixture() {
  using Parts = std::vector<parsimon::KernelPtr>;
  const KernelPair a = gaussian(0.5), b = matern(1, 2.5), c = linear();
  const auto both = std::make_shared<parsimon::Product>(Parts{b.core, c.core});
  const auto scaled = std::make_shared<parsimon::Scaled>(0.25, both);
  return {"mixture", std::make_shared<parsimon::Sum>(Parts{a.core, scaled}),
          [=](const auto& x, const auto& y) {
            return a.exact(x, y) + b.exact(x, y) * c.exact(x, y) / 4;
          }};
}

// gaussian + 2 + 3 * matern, with constant kernels, which have no view of the points
inline KernelPair with_constants() {
  using Parts = std::vector<parsimon::KernelPtr>;
  const KernelPair a = gaussian(0.5), b = matern(1, 1.5);
  const auto constant = std::make_shared<parsimon::Constant>();
  const auto thrice = std::make_shared<parsimon::Scaled>(3.0, constant);
  const auto twice = std::make_shared<parsimon::Scaled>(2.0, constant);
  const auto both = std::make_shared<parsimon::Product>(Parts{thrice, b.core});
  return {"with constants", std::make_shared<parsimon::Sum>(Parts{a.core, twice, both}),
          [=](const auto& x, const auto& y) { return a.exact(x, y) + 2 + 3 * b.exact(x, y); }};
}

// One of each kind, for data of size 1.
inline std::vector<KernelPair> all_kernels() {
  return {gaussian(0.4), laplacian(0.7),      matern(0.5, 0.5), matern(0.5, 1.5), matern(0.8, 2.5),
          cauchy(0.3),   polynomial(3, 1, 1), linear(),         mixture(),        with_constants()};
}

inline Table gram(const RealKernel& kernel, const RowMatrix& a, const RowMatrix& b) {
  const auto rows_of = [](const RowMatrix& points) {
    std::vector<std::vector<Real>> rows;
    for (Index i = 0; i < points.rows(); ++i) {
      rows.emplace_back(points.data() + i * points.cols(), points.data() + (i + 1) * points.cols());
    }
    return rows;
  };
  const auto x = rows_of(a), y = rows_of(b);
  Table result(a.rows(), b.rows());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < b.rows(); ++j) {
      result(i, j) = kernel(x[static_cast<std::size_t>(i)], y[static_cast<std::size_t>(j)]);
    }
  }
  return result;
}

// K(points, points) as the core computes it.
inline RowMatrix core_gram(const parsimon::Kernel& kernel, const RowMatrix& points) {
  std::vector<parsimon::View> views(static_cast<std::size_t>(kernel.view_count()));
  const RowVector origin = points.row(0);
  kernel.make_views(points, origin, views.data());
  RowMatrix values(points.rows(), points.rows());
  kernel.block(views.data(), views.data(), values);
  return values;
}

// sqrt(tr(W' K W))
inline Real norm(const Table& gram, const Table& weights) {
  Real sum = 0;
  for (Index i = 0; i < gram.rows(); ++i) {
    for (Index j = 0; j < gram.columns(); ++j) {
      sum += gram(i, j) * dot(weights.row(i), weights.row(j), weights.columns());
    }
  }
  return std::sqrt(std::max(Real(0), sum));
}

// ||f - g|| of two functions given by points and weights. Points that both have are merged: what
// is left of them would drown in the rounding of everything else.
inline double distance(const RealKernel& kernel, const RowMatrix& f_points,
                       const RowMatrix& f_weights, const RowMatrix& g_points,
                       const RowMatrix& g_weights) {
  const Index known = f_points.rows();
  RowMatrix points(known + g_points.rows(), f_points.cols());
  Table weights(points.rows(), f_weights.cols());
  points << f_points, g_points;
  for (Index i = 0; i < known; ++i) {
    for (Index c = 0; c < weights.columns(); ++c) weights(i, c) = f_weights(i, c);
  }
  for (Index i = 0; i < g_points.rows(); ++i) {
    Index twin = 0;
    while (twin < known && f_points.row(twin) != g_points.row(i)) ++twin;
    if (twin == known) twin += i;
    for (Index c = 0; c < weights.columns(); ++c) weights(twin, c) -= g_weights(i, c);
  }
  return static_cast<double>(norm(gram(kernel, points, points), weights));
}

// L with L L' = K; rows from the first pivot that is not positive on are zero.
inline Table cholesky(const Table& gram) {
  Table lower(gram.rows(), gram.rows());
  for (Index i = 0; i < gram.rows(); ++i) {
    for (Index j = 0; j < i; ++j) {
      lower(i, j) = (gram(i, j) - dot(lower.row(i), lower.row(j), j)) / lower(j, j);
    }
    const Real pivot = gram(i, i) - dot(lower.row(i), lower.row(i), i);
    if (!(pivot > 0)) return Table(gram.rows(), gram.rows());
    lower(i, i) = std::sqrt(pivot);
  }
  return lower;
}

// K^-1 of a positive definite K.
inline Table inverse(const Table& gram) {
  const Index size = gram.rows();
  const Table lower = cholesky(gram);
  Table root(size, size);  // L^-1, transposed: row j is its column j
  for (Index j = 0; j < size; ++j) {
    root(j, j) = 1 / lower(j, j);
    for (Index i = j + 1; i < size; ++i) {
      root(j, i) = -dot(lower.row(i) + j, root.row(j) + j, i - j) / lower(i, i);
    }
  }
  Table result(size, size);
  for (Index i = 0; i < size; ++i) {
    for (Index j = 0; j <= i; ++j) {
      result(i, j) = result(j, i) = dot(root.row(i) + i, root.row(j) + i, size - i);
    }
  }
  return result;
}

// max |T K T' - I| for a lower triangular T
inline double defect(const RowMatrix& root, const RowMatrix& gram) {
  const Index size = root.rows();
  const Table t(root), k(gram);
  Real worst = 0;
  for (Index i = 0; i < size; ++i) {
    std::vector<Real> image(static_cast<std::size_t>(size));  // K t_i
    for (Index j = 0; j < size; ++j) {
      image[static_cast<std::size_t>(j)] = dot(k.row(j), t.row(i), i + 1);
    }
    for (Index j = 0; j <= i; ++j) {
      worst = std::max(worst, std::abs(dot(t.row(j), image.data(), j + 1) - (i == j ? 1 : 0)));
    }
  }
  return static_cast<double>(worst);
}

// Largest eigenvalue, by the power method: from below, and to a few per cent at worst.
inline Real spectral_norm(const Table& matrix) {
  const Index size = matrix.rows();
  std::vector<Real> v(static_cast<std::size_t>(size), 1), image(v);
  Real norm = 0;
  for (int step = 0; step < 60; ++step) {
    for (Index i = 0; i < size; ++i) v[static_cast<std::size_t>(i)] += 0.01L * std::sin(Real(i));
    const Real length = std::sqrt(dot(v.data(), v.data(), size));
    for (Real& value : v) value /= length;
    for (Index i = 0; i < size; ++i) {
      image[static_cast<std::size_t>(i)] = dot(matrix.row(i), v.data(), size);
    }
    norm = std::sqrt(dot(image.data(), image.data(), size));
    v = image;
    for (Real& value : v) value /= norm;
  }
  return norm;
}

// Infinity if K is not positive definite in long double.
inline double condition_number(const RowMatrix& gram) {
  const Table k(gram);
  if (!(cholesky(k)(k.rows() - 1, k.rows() - 1) > 0)) {
    return std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(spectral_norm(k) * spectral_norm(inverse(k)));
}

// The largest bandwidth (to a per cent or so) at which cond(K) is below the target.
template <typename MakeKernel>
double bandwidth_of_condition(const RowMatrix& points, double target, MakeKernel make_kernel) {
  double low = 1e-4, high = 10;
  for (int i = 0; i < 12; ++i) {
    const double middle = std::sqrt(low * high);
    const double found = condition_number(core_gram(*make_kernel(middle), points));
    (found < target ? low : high) = middle;
  }
  return low;
}

// Repeatable random numbers of any kind.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  double uniform(double low = 0, double high = 1) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  double normal() { return std::normal_distribution<double>()(engine_); }
  Index integer(Index low, Index high) {  // both included
    return std::uniform_int_distribution<Index>(low, high)(engine_);
  }
  // 10^uniform(low, high)
  double magnitude(double low, double high) { return std::pow(10.0, uniform(low, high)); }

  RowMatrix uniform_points(Index rows, Index columns) {
    return RowMatrix::NullaryExpr(rows, columns, [&] { return uniform(); });
  }
  RowMatrix normal_points(Index rows, Index columns) {
    return RowMatrix::NullaryExpr(rows, columns, [&] { return normal(); });
  }
  // Around `clusters` centres in the unit cube
  RowMatrix clustered_points(Index rows, Index columns, Index clusters, double spread) {
    const RowMatrix centres = uniform_points(clusters, columns);
    RowMatrix points = spread * normal_points(rows, columns);
    for (Index i = 0; i < rows; ++i) points.row(i) += centres.row(integer(0, clusters - 1));
    return points;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace reference
