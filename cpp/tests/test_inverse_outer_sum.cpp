#include <parsimon/algorithm/inverse_outer_sum.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::kEps;
using reference::Random;
using reference::Real;
using reference::Table;

namespace {

constexpr Index kSize = 15;

// delta I + sum_t g_t g_t' and base() - V' V, both in long double.
struct Sum {
  Table a;

  explicit Sum(double delta) : a(kSize, kSize) {
    for (Index i = 0; i < kSize; ++i) a(i, i) = delta;
  }

  void add(const Vector& g) {
    for (Index i = 0; i < kSize; ++i) {
      for (Index j = 0; j < kSize; ++j) a(i, j) += Real(g(i)) * Real(g(j));
    }
  }
};

// T' T
Table matrix_of(const InverseOuterSum& inverse) {
  const RowMatrix& root = inverse.root();
  Table result(kSize, kSize);
  for (Index i = 0; i < kSize; ++i) {
    for (Index j = 0; j < kSize; ++j) {
      for (Index k = 0; k < kSize; ++k) result(i, j) += Real(root(k, i)) * Real(root(k, j));
    }
  }
  return result;
}

// L' x
std::vector<Real> image(const Table& lower, const std::vector<Real>& x) {
  std::vector<Real> result(x.size());
  for (Index i = 0; i < kSize; ++i) {
    for (Index k = i; k < kSize; ++k) {
      result[static_cast<std::size_t>(i)] += lower(k, i) * x[static_cast<std::size_t>(k)];
    }
  }
  return result;
}

// max |L' P L - I| with A = L L': the relative error of P in the norm in which it matters.
double defect(const Table& lower, const Table& p) {
  Real worst = 0;
  for (Index j = 0; j < kSize; ++j) {
    std::vector<Real> column(static_cast<std::size_t>(kSize));  // P L e_j
    for (Index i = 0; i < kSize; ++i) {
      for (Index k = j; k < kSize; ++k)
        column[static_cast<std::size_t>(i)] += p(i, k) * lower(k, j);
    }
    const auto all = image(lower, column);
    for (Index i = 0; i < kSize; ++i) {
      worst = std::max(worst, std::abs(all[static_cast<std::size_t>(i)] - (i == j ? 1 : 0)));
    }
  }
  return static_cast<double>(worst);
}

// |L' (product - A^-1 g)|; exactly it is 0, and |L^-1 g| <= 1.
double product_error(const Table& lower, const Table& inverse, const Vector& g,
                     const Vector& product) {
  std::vector<Real> difference(static_cast<std::size_t>(kSize));
  for (Index i = 0; i < kSize; ++i) {
    Real exact = 0;
    for (Index j = 0; j < kSize; ++j) exact += inverse(i, j) * Real(g(j));
    difference[static_cast<std::size_t>(i)] = Real(product(i)) - exact;
  }
  const auto all = image(lower, difference);
  return static_cast<double>(std::sqrt(reference::dot(all.data(), all.data(), kSize)));
}

using Draw = std::function<Vector(Random&)>;

Vector normal(Random& random) { return random.normal_points(kSize, 1).col(0); }

// 10^-range, ..., 10^range
Vector scales(double range) {
  return Vector::LinSpaced(kSize, -range, range).unaryExpr([](double e) {
    return std::pow(10.0, e);
  });
}

// An update rounds each entry once per row: an error of size eps cond(A), relative in the norm of
// A, which those that follow damp. As a random walk over n updates, that is size sqrt(n) eps times
// the largest cond(A) on the way.
void check_updates(const char* what, double delta, const Draw& draw) {
  Random random(1);
  InverseOuterSum inverse(kSize, delta);
  Sum sum(delta);
  Vector product;
  double condition = 0, worst = 0, worst_product = 0;
  for (int t = 1; t <= 50000; ++t) {
    const Vector g = draw(random);
    sum.add(g);
    inverse.add(g, product);
    if (t > 100 && t % 1000 != 0) continue;
    const Table exact = reference::inverse(sum.a), lower = reference::cholesky(sum.a);
    condition = std::max(condition, static_cast<double>(reference::spectral_norm(sum.a) *
                                                        reference::spectral_norm(exact)));
    const double bound = kSize * std::sqrt(static_cast<double>(t)) * kEps * condition;
    const double error = defect(lower, matrix_of(inverse));
    const double off = product_error(lower, exact, g, product);
    CHECK(error < bound);
    CHECK(off < bound);
    worst = std::max(worst, error);
    worst_product = std::max(worst_product, off);
  }
  std::printf("       %s: cond <= %.1e, max |L'PL-I| %.1e, products %.1e\n", what, condition, worst,
              worst_product);
  CHECK(condition < 1e13);  // beyond, the bound would be none
}

}  // namespace

TEST(fifty_thousand_random_updates) {
  for (const double delta : {1.0, 1e-6, 1e6}) check_updates("random", delta, normal);
}

TEST(fifty_thousand_duplicated_and_nearly_dependent_updates) {
  Random random(2);
  const RowMatrix directions = random.normal_points(4, kSize);
  for (const double spread : {0.0, 1e-6}) {
    check_updates("dependent", 1, [&](Random& r) -> Vector {
      return directions.row(r.integer(0, 3)).transpose() + spread * normal(r);
    });
  }
  check_updates("one vector", 0.1,
                [&](Random&) -> Vector { return directions.row(0).transpose(); });
}

TEST(fifty_thousand_badly_scaled_updates) {
  check_updates("features", 1,
                [](Random& r) -> Vector { return scales(3).cwiseProduct(normal(r)); });
  check_updates("lengths", 1, [](Random& r) -> Vector { return r.magnitude(-5, 5) * normal(r); });
  check_updates("both", 1, [](Random& r) -> Vector {
    return r.magnitude(-2, 2) * scales(2).cwiseProduct(normal(r));
  });
}

// Where cond(A) is beyond what doubles can hold, A^-1 is not known along g; but it must stay
// positive, or the next updates blow it up. g' A^-1 g lies between 0 and 1, which can be seen as
// long as it is more than the rounding of this product.
TEST(updates_of_any_size_leave_it_finite_and_positive) {
  Random random(3);
  const RowMatrix direction = random.normal_points(1, kSize);
  for (const double size : {1e6, 1e8, 1e10, 1e30, 1e90}) {
    for (const double spread : {0.0, 1e-2, 1.0}) {
      InverseOuterSum inverse(kSize, 1);
      Vector product;
      bool bounded = true;
      for (int t = 0; t < 3000 && bounded; ++t) {
        const Vector g = (t % 3 == 0 ? 1.0 : size) * direction.row(0).transpose() +
                         spread * random.magnitude(0, std::log10(size)) * normal(random);
        inverse.add(g, product);
        const double along = g.dot(product), rounding = kSize * kEps * g.norm() * product.norm();
        bounded = product.allFinite() && inverse.root().allFinite() && product.norm() <= g.norm() &&
                  (size > 1e10 || (along >= -rounding && along <= 1 + rounding));
      }
      CHECK(bounded);
      // A gradient of ordinary size still gets a step no longer than from the beginning.
      const Vector g = normal(random);
      inverse.add(g, product);
      CHECK(product.norm() <= g.norm());
    }
  }
}

TEST(the_first_update_is_sherman_and_morrison) {
  InverseOuterSum inverse(2, 4);
  CHECK(inverse.size() == 2 && inverse.root() == RowMatrix::Identity(2, 2) / 2);
  Vector g(2), product;
  g << 3, 1;
  inverse.add(g, product);  // A = [13, 3; 3, 5], A^-1 g = [12, 4] / 56
  CHECK_NEAR(product(0), 12.0 / 56, 1e-16);
  CHECK_NEAR(product(1), 4.0 / 56, 1e-16);
  const RowMatrix before = inverse.root();
  inverse.add(Vector::Zero(2), product);
  CHECK(product == Vector::Zero(2) && inverse.root() == before);
  inverse.add(g, product);  // A = [22, 6; 6, 6], A^-1 g = [12, 4] / 96
  CHECK_NEAR(product(0), 12.0 / 96, 1e-16);
  CHECK_NEAR(product(1), 4.0 / 96, 1e-16);

  InverseOuterSum scalar(1, 2);
  for (int t = 1; t <= 40; ++t) {
    scalar.add(Vector::Constant(1, 3.0), product);
    CHECK_NEAR(product(0), 3.0 / (2 + 9 * t), 1e-15);
  }
}

TEST(it_stays_triangular) {
  Random random(4);
  InverseOuterSum inverse(kSize, 0.5);
  Vector product;
  for (int t = 0; t < 70; ++t) {
    inverse.add(random.magnitude(-2, 2) * normal(random), product);
    CHECK(inverse.root().isLowerTriangular(0) && (inverse.root().diagonal().array() > 0).all());
  }
}

TEST(what_cannot_be_an_inverse_is_refused) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double delta : {0.0, -1.0, std::nan(""), infinity}) {
    CHECK_THROWS(InverseOuterSum(3, delta), Error);
  }
  const RowMatrix root = RowMatrix::Identity(3, 3);
  const auto refused = [](const RowMatrix& given) { CHECK_THROWS(InverseOuterSum{given}, Error); };
  const auto with = [&](Index i, Index j, double entry) {
    RowMatrix changed = root;
    changed(i, j) = entry;
    return changed;
  };
  refused(root.topRows(2));
  refused(with(0, 2, 1e-9));
  refused(with(1, 1, -1));
  for (const double bad : {std::nan(""), infinity}) refused(with(2, 1, bad));
  CHECK(InverseOuterSum(with(2, 1, -5)).size() == 3);
}
