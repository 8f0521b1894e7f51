#include <limits>
#include <parsimon/density/mirror_map.hpp>
#include <parsimon/types.hpp>

#include "check.hpp"

using namespace parsimon;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

RowVector row(double a, double b) {
  RowVector values(2);
  values << a, b;
  return values;
}

MirrorMap mahalanobis() { return MirrorMap::mahalanobis(3, row(0.2, -1), row(0.5, 2)); }

std::vector<MirrorMap> all_maps() {
  return {MirrorMap::kl(), MirrorMap::euclidean(), mahalanobis()};
}

RowMatrix points() {
  RowMatrix all(40, 2);
  for (Index i = 0; i < 40; ++i) {
    const auto t = static_cast<double>(i);
    all.row(i) << std::sin(t), 3 * std::cos(2 * t);
  }
  return all;
}

// z at the points, on both sides of zero.
Vector heights() { return Vector::LinSpaced(40, -3.0, 2.5); }

struct Values {
  Vector weights, f, slopes, logs;

  Values(const MirrorMap& map, const RowMatrix& at, const Vector& z)
      : weights(z.size()), f(z.size()), slopes(z.size()), logs(z.size()) {
    map.weigh(at, weights);
    map.apply(z, weights, f, slopes);
    map.log(z, weights, logs);
  }
};

}  // namespace

TEST(values_are_those_of_the_formulas) {
  const RowMatrix at = points();
  const Vector z = heights();
  const Values kl(MirrorMap::kl(), at, z), plain(MirrorMap::euclidean(), at, z),
      weighted(mahalanobis(), at, z);
  for (Index i = 0; i < z.size(); ++i) {
    const double u = (at(i, 0) - 0.2) / 0.5, v = (at(i, 1) + 1) / 2;
    const double r = 0.5 + 3 * std::exp(-(u * u + v * v) / 2);
    CHECK(kl.weights(i) == 1 && plain.weights(i) == 1);
    CHECK_NEAR(weighted.weights(i), r, 4e-16 * r);
    CHECK_NEAR(kl.f(i), std::exp(z(i)), 1e-15 * std::exp(z(i)));
    CHECK(plain.f(i) == z(i));
    CHECK_NEAR(weighted.f(i), r * z(i), 1e-15 * std::abs(r * z(i)));
  }
  CHECK(MirrorMap::kl().is_positive());
  CHECK(!MirrorMap::euclidean().is_positive() && !mahalanobis().is_positive());
}

// f' by central differences, whose error is f''' h^2 / 6 and eps f / h.
TEST(derivatives_agree_with_finite_differences) {
  const double h = 1e-5;
  const RowMatrix at = points();
  const Vector z = heights();
  for (const MirrorMap& map : all_maps()) {
    const Values here(map, at, z), up(map, at, z.array() + h), down(map, at, z.array() - h);
    for (Index i = 0; i < z.size(); ++i) {
      const double size = std::exp(2.6) + std::abs(here.f(i));
      CHECK_NEAR((up.f(i) - down.f(i)) / (2 * h), here.slopes(i), 1e-9 * size);
    }
  }
}

TEST(logarithms_are_those_of_the_values_or_minus_infinity) {
  const RowMatrix at = points();
  const Vector z = heights();
  for (const MirrorMap& map : all_maps()) {
    const Values here(map, at, z);
    for (Index i = 0; i < z.size(); ++i) {
      if (here.f(i) > 0) {
        CHECK_NEAR(here.logs(i), std::log(here.f(i)), 1e-14);
      } else {
        CHECK(here.logs(i) == -infinity);
      }
    }
  }
  // Where exp(z) is 0 or infinite, its logarithm is still z.
  Vector extreme(4), zero = Vector::Zero(1);
  extreme << -1e5, 1e5, -745, 710;
  const Values kl(MirrorMap::kl(), points().topRows(4), extreme);
  CHECK(kl.logs == extreme);
  CHECK((kl.f.array() >= 0).all() && kl.f(0) < 1e-300 && kl.f(1) == infinity);
  CHECK(Values(MirrorMap::euclidean(), points().topRows(1), zero).logs(0) == -infinity);
}

TEST(the_weight_function_lies_between_a_half_and_its_height_above_it) {
  const MirrorMap map = mahalanobis();
  RowMatrix at(4, 2);
  at << 0.2, -1, 1e300, 0, -1e300, 1e300, 0.2, 1e200;
  Vector weights(4);
  map.weigh(at, weights);
  CHECK(weights(0) == 3.5);
  for (Index i = 1; i < 4; ++i) CHECK(weights(i) == 0.5);
  Vector flat(4);
  MirrorMap::mahalanobis(0, row(0, 0), row(1, 1)).weigh(at, flat);
  CHECK(flat == Vector::Constant(4, 0.5));
}

TEST(a_map_is_restored_from_its_name_and_parameters) {
  const RowMatrix at = points();
  const Vector z = heights();
  for (const MirrorMap& map : all_maps()) {
    const MirrorMap again = MirrorMap::restore(map.name(), map.parameters());
    CHECK(again.name() == map.name() && again.parameters() == map.parameters());
    CHECK(again.is_positive() == map.is_positive());
    const Values here(map, at, z), there(again, at, z);
    CHECK(here.f == there.f && here.slopes == there.slopes && here.weights == there.weights);
  }
  CHECK(mahalanobis().parameters() == (std::vector<double>{3, 0.2, -1, 0.5, 2}));
}

TEST(maps_that_cannot_be_are_refused) {
  const double nan = std::nan("");
  using Parameters = std::vector<double>;
  for (const auto& [name, parameters] :
       std::vector<std::pair<std::string, Parameters>>{{"kl", {1}},
                                                       {"euclidean", {0}},
                                                       {"", {}},
                                                       {"KL", {}},
                                                       {"mahalanobis", {}},
                                                       {"mahalanobis", {1}},
                                                       {"mahalanobis", {1, 0}},
                                                       {"mahalanobis", {1, 0, 0, 1}},
                                                       {"mahalanobis", {-1, 0, 1}},
                                                       {"mahalanobis", {nan, 0, 1}},
                                                       {"mahalanobis", {infinity, 0, 1}},
                                                       {"mahalanobis", {1, nan, 1}},
                                                       {"mahalanobis", {1, 0, 0}},
                                                       {"mahalanobis", {1, 0, -1}},
                                                       {"mahalanobis", {1, 0, nan}},
                                                       {"mahalanobis", {1, 0, infinity}}}) {
    CHECK_THROWS(MirrorMap::restore(name, parameters), Error);
  }
  CHECK_THROWS(MirrorMap::mahalanobis(1, row(0, 0), RowVector::Ones(3)), Error);
  mahalanobis().check_features(2);
  CHECK_THROWS(mahalanobis().check_features(3), Error);
  MirrorMap::kl().check_features(3);
  MirrorMap::euclidean().check_features(0);
}
