#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "check.hpp"
#include "kernel_cases.hpp"

using namespace parsimon;
using namespace kernel_cases;

namespace {

double relative_error(const RowMatrix& values, const RowMatrix& exact) {
  return ((values - exact).array().abs() / (exact.array().abs() + 1e-290)).maxCoeff();
}

double absolute_error(const RowMatrix& values, const RowMatrix& exact) {
  return (values - exact).array().abs().maxCoeff();
}

// Chosen to meet every path: few and many features, whole lanes and remainders.
const std::vector<Index> feature_counts{1, 2, 3, 16, 17, 31, 33, 50, 100};

}  // namespace

TEST(blocks_and_diagonals_equal_the_definition) {
  for (Index p : feature_counts) {
    const RowMatrix a = normal(13, p, 1), b = normal(70, p, 2);
    const RowVector each = normal(1, p, 3).array().abs() + 0.7;
    for (const RowVector& h : {scalar(1.7 * std::sqrt(double(p))), RowVector(each * p)}) {
      for (const Case& c : all_cases(h)) {
        const RowMatrix exact = exact_block(c.reference, a, b);
        const double size = exact.array().abs().maxCoeff();
        CHECK_NEAR(absolute_error(block_of(*c.kernel, a, b, a.row(0)), exact), 0, 1e-13 * size);
        Vector diagonal(a.rows());
        c.kernel->diagonal(views_of(*c.kernel, a, a.row(0)).data(), diagonal);
        const RowMatrix square = exact_block(c.reference, a, a);
        CHECK_NEAR((diagonal - square.diagonal()).cwiseAbs().maxCoeff(), 0,
                   1e-13 * square.diagonal().maxCoeff());
      }
    }
  }
}

TEST(small_values_are_relatively_exact) {
  for (Index p : {3, 40}) {
    const RowMatrix a = normal(20, p, 1), b = normal(20, p, 2);
    for (const Case& c : stationary_cases(scalar(0.1 * std::sqrt(double(p))))) {
      const RowMatrix exact = exact_block(c.reference, a, b);
      CHECK_NEAR(relative_error(block_of(*c.kernel, a, b, a.row(0)), exact), 0, 1e-11);
    }
  }
}

TEST(strided_blocks_and_every_width) {
  const RowMatrix a = normal(5, 3, 1), wide = normal(5, 40, 3);
  for (Index width : {1, 2, 15, 16, 17, 63, 64, 65, 130}) {
    const RowMatrix b = normal(width, 3, 2), wide_b = normal(width, 40, 4);
    for (const Case& c : stationary_cases(scalar(2.0))) {
      for (const auto& pair : {std::make_pair(&a, &b), std::make_pair(&wide, &wide_b)}) {
        const auto va = views_of(*c.kernel, *pair.first, pair.first->row(0));
        const auto vb = views_of(*c.kernel, *pair.second, pair.first->row(0));
        RowMatrix frame = RowMatrix::Constant(7, width + 3, 7.0);
        c.kernel->block(va.data(), vb.data(), frame.block(1, 2, 5, width));
        const RowMatrix exact = exact_block(c.reference, *pair.first, *pair.second);
        CHECK_NEAR(absolute_error(frame.block(1, 2, 5, width), exact), 0, 1e-14);
        CHECK((frame.array() == 7.0).count() == frame.size() - 5 * width);
      }
    }
  }
}

TEST(a_value_does_not_depend_on_its_place) {
  for (Index p : {1, 7, 16}) {
    const RowMatrix a = normal(9, p, 1), b = normal(77, p, 2);
    for (const Case& c : stationary_cases(scalar(2.0))) {
      const RowMatrix whole = block_of(*c.kernel, a, b, a.row(0));
      for (Index j : {0, 5, 76}) {
        const RowMatrix column = block_of(*c.kernel, a, b.row(j), a.row(0));
        CHECK(column == whole.col(j));
      }
    }
  }
  const Gaussian gaussian(1.0);
  const RowMatrix x = normal(9, 37, 1);
  const auto together = views_of(gaussian, x, x.row(0));
  for (Index i = 0; i < x.rows(); ++i) {
    const auto alone = views_of(gaussian, x.row(i), x.row(0));
    CHECK(alone[0].squared_norms()[0] == together[0].squared_norms()[i]);
  }
}

TEST(data_far_from_zero_keep_their_digits) {
  for (double offset : {1e6, 1e8}) {
    for (Index p : {2, 60}) {
      const RowMatrix a = (normal(12, p, 1).array() + offset).matrix();
      RowMatrix b = (normal(15, p, 2).array() + offset).matrix();
      b.row(3) = a.row(3);
      b.row(4) = a.row(4);
      b(4, 0) = std::nextafter(b(4, 0), 1e300);
      for (const Case& c : stationary_cases(scalar(0.5 * std::sqrt(double(p))))) {
        const RowMatrix exact = exact_block(c.reference, a, b);
        const RowMatrix values = block_of(*c.kernel, a, b, a.row(0));
        CHECK_NEAR(relative_error(values, exact), 0, 1e-12);
        CHECK(values(3, 3) == 1.0);
      }
    }
  }
}

TEST(near_points_far_from_the_origin) {
  for (Index p : {2, 60}) {
    RowMatrix a = normal(8, p, 1);
    a.bottomRows(4).array() += 1e5;
    const RowMatrix b = a + 1e-4 * normal(8, p, 2);
    for (const Case& c : stationary_cases(scalar(0.01))) {
      CHECK_NEAR(
          absolute_error(block_of(*c.kernel, a, b, a.row(0)), exact_block(c.reference, a, b)), 0,
          1e-8);
    }
    for (const Case& c : stationary_cases(scalar(1e-4))) {
      const RowMatrix near = a.topRows(4), near_b = b.topRows(4);
      CHECK_NEAR(absolute_error(block_of(*c.kernel, near, near_b, a.row(0)),
                                exact_block(c.reference, near, near_b)),
                 0, 1e-11);
    }
  }
}

TEST(tiny_and_huge_data_with_their_bandwidth) {
  for (Index p : {2, 60}) {
    const RowMatrix a = normal(8, p, 1), b = normal(9, p, 2);
    const double h = 2.0 * std::sqrt(double(p));
    for (double scale : {1e-150, 1e150, 1e-300, 1e300}) {
      const auto plain = stationary_cases(scalar(h));
      const auto scaled = stationary_cases(scalar(h * scale));
      for (std::size_t i = 0; i < plain.size(); ++i) {
        const RowMatrix expected = block_of(*plain[i].kernel, a, b, a.row(0));
        const RowMatrix values =
            block_of(*scaled[i].kernel, a * scale, b * scale, a.row(0) * scale);
        CHECK_NEAR(absolute_error(values, expected), 0, 1e-14);
      }
    }
  }
}

TEST(overflow_gives_zero_and_never_nan) {
  for (Index p : {2, 60}) {
    RowMatrix x = normal(6, p, 1);
    x.row(1).setConstant(1e200);
    x.row(2).setConstant(-1e200);
    x.row(3).setConstant(std::numeric_limits<double>::max());
    x.row(4).setConstant(std::numeric_limits<double>::lowest());
    x.row(5) = x.row(1);
    for (double h : {1.0, 1e-200, 5e-324}) {
      for (const Case& c : stationary_cases(scalar(h))) {
        for (Index origin : {0, 1, 3}) {
          const RowMatrix values = block_of(*c.kernel, x, x, x.row(origin));
          CHECK(values.allFinite());
          CHECK((values.diagonal().array() == 1.0).all());
          CHECK(values(1, 5) == 1.0);
          CHECK(values(1, 2) == 0.0 || origin == 3);  // both vanish against that origin
          CHECK(values(3, 4) == 0.0);
          RowMatrix gradient = RowMatrix::Zero(6, p);
          const auto views = views_of(*c.kernel, x, x.row(origin));
          c.kernel->add_gradient(views.data(), views.data(), RowMatrix::Ones(6, 6), gradient);
          CHECK(h < 1e-100 || gradient.allFinite());
        }
      }
    }
  }
}

TEST(far_values_are_zero_or_normal) {
  RowMatrix x(4000, 1);
  for (Index i = 0; i < x.rows(); ++i) x(i, 0) = 0.5 * double(i);
  for (const Case& c : stationary_cases(scalar(1.0))) {
    const RowMatrix values = block_of(*c.kernel, x.topRows(1), x, x.row(0));
    for (double value : values.reshaped()) {
      CHECK(value == 0.0 || value >= std::numeric_limits<double>::min());
    }
  }
}

TEST(no_points) {
  const RowMatrix none(0, 3), some = normal(4, 3, 1);
  for (const Case& c : all_cases(scalar(1.0))) {
    CHECK(block_of(*c.kernel, none, some, some.row(0)).size() == 0);
    CHECK(block_of(*c.kernel, some, none, some.row(0)).size() == 0);
    CHECK(block_of(*c.kernel, none, none, some.row(0)).size() == 0);
    Vector diagonal(0);
    c.kernel->diagonal(views_of(*c.kernel, none, some.row(0)).data(), diagonal);
    RowMatrix gradient = RowMatrix::Zero(4, 3);
    const auto nothing = views_of(*c.kernel, none, some.row(0));
    const auto views = views_of(*c.kernel, some, some.row(0));
    c.kernel->add_gradient(nothing.data(), views.data(), RowMatrix(0, 4), gradient);
    CHECK(gradient.isZero(0.0));
    gradient.resize(0, 3);
    c.kernel->add_gradient(views.data(), nothing.data(), RowMatrix(4, 0), gradient);
  }
}
