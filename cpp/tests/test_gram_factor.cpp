#include <parsimon/rkhs/gram_factor.hpp>
#include <parsimon/rkhs/newcomers.hpp>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::defect;
using reference::kEps;
using reference::Random;
using reference::Table;

namespace {

// A set of points from which every dictionary of a test is drawn. The eigenvalues of principal
// submatrices interlace, so no dictionary is worse conditioned than the pool.
struct Pool {
  RowMatrix gram;
  double condition;

  template <typename MakeKernel>
  static Pool with_condition(const RowMatrix& points, double target, MakeKernel make_kernel) {
    const double bandwidth = reference::bandwidth_of_condition(points, target, make_kernel);
    const RowMatrix gram = reference::core_gram(*make_kernel(bandwidth), points);
    return {gram, reference::condition_number(gram)};
  }

  RowMatrix between(const std::vector<Index>& a, const std::vector<Index>& b) const {
    RowMatrix values(static_cast<Index>(a.size()), static_cast<Index>(b.size()));
    for (Index i = 0; i < values.rows(); ++i) {
      for (Index j = 0; j < values.cols(); ++j) {
        values(i, j) = gram(a[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(j)]);
      }
    }
    return values;
  }
};

// A factor with the points of the pool that it is the factor of.
class Follower {
 public:
  explicit Follower(const Pool& pool) : pool_(pool) {
    for (Index i = 0; i < pool.gram.rows(); ++i) absent_.push_back(i);
  }

  void append(Index count, Random& random) {
    std::vector<Index> block;
    for (Index i = 0; i < count && !absent_.empty(); ++i) {
      const auto k = random.integer(0, static_cast<Index>(absent_.size()) - 1);
      block.push_back(absent_[static_cast<std::size_t>(k)]);
      absent_.erase(absent_.begin() + k);
    }
    RowMatrix cross = pool_.between(members_, block), gram = pool_.between(block, block);
    newcomers_.factorise(factor_, cross, gram);
    factor_.append(newcomers_.coefficient_rows(), newcomers_.factor());
    for (Index i = 0; i < static_cast<Index>(block.size()); ++i) {
      const Index point = block[static_cast<std::size_t>(newcomers_.order(i))];
      (i < newcomers_.independent() ? members_ : absent_).push_back(point);
    }
  }

  Vector remove(Index j) {
    Vector pivot_row(factor_.size());
    factor_.remove(j, pivot_row);
    absent_.push_back(members_[static_cast<std::size_t>(j)]);
    members_.erase(members_.begin() + j);
    return pivot_row;
  }

  Index size() const { return factor_.size(); }
  const GramFactor& factor() const { return factor_; }
  RowMatrix gram() const { return pool_.between(members_, members_); }

 private:
  const Pool& pool_;
  std::vector<Index> members_, absent_;
  GramFactor factor_;
  Newcomers newcomers_;
};

// max |T K T' - I| of a factor that was built at once.
double fresh_defect(RowMatrix gram) {
  const RowMatrix given = gram;
  RowMatrix cross(0, gram.rows());
  Newcomers newcomers;
  newcomers.factorise(GramFactor(), cross, gram);
  RowMatrix ordered(newcomers.independent(), newcomers.independent());
  for (Index i = 0; i < ordered.rows(); ++i) {
    for (Index j = 0; j < ordered.rows(); ++j) {
      ordered(i, j) = given(newcomers.order(i), newcomers.order(j));
    }
  }
  return defect(newcomers.factor().root(), ordered);
}

// Largest relative error of inverse_diagonal().
double diagonal_error(const GramFactor& factor, const RowMatrix& gram) {
  const Table exact = reference::inverse(gram);
  double worst = 0;
  for (Index j = 0; j < factor.size(); ++j) {
    const auto expected = static_cast<double>(exact(j, j));
    worst = std::max(worst, std::abs(factor.inverse_diagonal()(j) - expected) / expected);
  }
  return worst;
}

bool is_lower_triangular(const GramFactor& factor) {
  for (Index i = 0; i < factor.size(); ++i) {
    if (!(factor.root()(i, i) > 0)) return false;
    for (Index j = i + 1; j < factor.size(); ++j) {
      if (factor.root()(i, j) != 0) return false;
    }
  }
  return true;
}

struct Worst {
  double defect = 0, fresh = 0, diagonal = 0;
};

// Appends blocks of 1 to 32 points and removes points at random, `operations` of both together,
// with the size swinging between `fewest` and all points of the pool.
Worst wander(const Pool& pool, Index fewest, Index operations, unsigned seed) {
  Random random(seed);
  Follower follower(pool);
  Worst worst;
  bool growing = true;
  Index next_check = operations / 12;
  for (Index done = 0; done < operations;) {
    if (follower.size() + 32 > pool.gram.rows()) growing = false;
    if (follower.size() < fewest + 32) growing = true;
    follower.append(random.integer(1, 32), random);
    const Index removals = growing ? random.integer(0, 20) : random.integer(12, 48);
    for (Index i = 0; i < removals && follower.size() > fewest; ++i, ++done) {
      follower.remove(random.integer(0, follower.size() - 1));
    }
    if (++done < next_check) continue;
    next_check += operations / 12;
    const RowMatrix gram = follower.gram();
    CHECK(is_lower_triangular(follower.factor()));
    worst.defect = std::max(worst.defect, defect(follower.factor().root(), gram));
    worst.fresh = std::max(worst.fresh, fresh_defect(gram));
    worst.diagonal = std::max(worst.diagonal, diagonal_error(follower.factor(), gram));
  }
  return worst;
}

// 1e-6 is for 100,000 operations at cond(K) = 1e8. For P_jj, errors of size eps in K allow a
// relative error of eps cond(K) times the number of points.
void check_wandering(const char* what, const Pool& pool, Index fewest, Index operations) {
  const Worst worst = wander(pool, fewest, operations, 1);
  std::printf("       %s: cond %.1e, max |TKT'-I| %.1e (fresh %.1e), P_jj off by %.1e\n", what,
              pool.condition, worst.defect, worst.fresh, worst.diagonal);
  CHECK(pool.condition > 2e7 && pool.condition < 1.1e8);
  CHECK(worst.defect < 1e-6);
  CHECK(worst.diagonal < 300 * kEps * pool.condition);
}

const auto make_gaussian = [](double h) { return std::make_shared<Gaussian>(h); };
const auto make_matern = [](double h) { return std::make_shared<Matern>(h, 2.5); };

Pool well_conditioned_pool(Index size) {
  Random random(7);
  const RowMatrix points = random.uniform_points(size, 2);
  return Pool::with_condition(points, 1e3, make_gaussian);
}

}  // namespace

TEST(appending_and_removing_keep_the_invariant) {
  const Pool pool = well_conditioned_pool(40);
  Random random(2);
  Follower follower(pool);
  for (int round = 0; round < 60; ++round) {
    follower.append(random.integer(0, 9), random);
    const Index removals = std::min(follower.size(), random.integer(0, 9));
    for (Index i = 0; i < removals; ++i) follower.remove(random.integer(0, follower.size() - 1));
    const RowMatrix gram = follower.gram();
    // cond(K) <= 1e3, 40 points: errors of eps * cond each, some dozens of them.
    CHECK(is_lower_triangular(follower.factor()));
    CHECK(defect(follower.factor().root(), gram) < 1e-11);
    CHECK(diagonal_error(follower.factor(), gram) < 1e-11);
  }
  while (follower.size() > 0) follower.remove(0);
  CHECK(follower.factor().inverse_diagonal().size() == 0);
}

TEST(removal_hands_out_the_column_of_the_inverse) {
  const Pool pool = well_conditioned_pool(30);
  Random random(3);
  Follower follower(pool);
  follower.append(30, random);
  while (follower.size() > 0) {
    const Table inverse = reference::inverse(follower.gram());
    const Index size = follower.size(), j = random.integer(0, size - 1);
    const Vector row = follower.remove(j);
    CHECK(row.size() == size && row(j) > 0);
    for (Index i = 0; i < size; ++i) {
      const auto expected = static_cast<double>(inverse(i, j) / std::sqrt(inverse(j, j)));
      CHECK_NEAR(row(i), expected, 1e-11 * row(j));
    }
  }
}

// Squares of its numbers may be beyond what is safe to add up.
TEST(a_factor_may_have_any_scale) {
  Random random(12);
  const Index size = 20;
  const RowMatrix square = random.normal_points(size, size);
  const RowMatrix root = square.triangularView<Eigen::Lower>();
  const auto without_third = [&](double scale) {
    GramFactor factor;
    factor.assign(scale * root, scale * scale * root.colwise().squaredNorm().transpose());
    Vector pivot_row(size);
    factor.remove(3, pivot_row);
    CHECK(factor.inverse_diagonal().allFinite());
    return RowMatrix(factor.root());
  };
  const RowMatrix expected = without_third(1);
  for (const double scale : {std::ldexp(1.0, -500), std::ldexp(1.0, 500)}) {
    CHECK((without_third(scale) / scale - expected).norm() < 10 * kEps * expected.norm());
  }
}

TEST(whitening_twice_multiplies_by_the_inverse) {
  const Pool pool = well_conditioned_pool(25);
  Random random(4);
  Follower follower(pool);
  follower.append(25, random);
  const RowMatrix values = random.normal_points(25, 4);
  RowMatrix whitened(25, 4), coefficients(25, 4);
  follower.factor().whiten(values, whitened);
  follower.factor().unwhiten(whitened, coefficients);
  CHECK((follower.gram() * coefficients - values).cwiseAbs().maxCoeff() < 1e-11);
  RowMatrix empty(25, 0);
  follower.factor().whiten(RowMatrix(25, 0), empty);
  follower.factor().unwhiten(RowMatrix(25, 0), empty);
}

TEST(a_factor_of_nothing) {
  GramFactor factor, block;
  RowMatrix nothing(0, 0), columns(0, 3);
  factor.whiten(columns, columns);
  factor.unwhiten(columns, columns);
  factor.assign(nothing, Vector(0));
  factor.assign_inverse_of(nothing);
  factor.append(nothing, block);
  CHECK(factor.size() == 0);
  block.assign_inverse_of(RowMatrix::Constant(1, 1, 2.0));
  factor.append(RowMatrix(0, 1), block);
  factor.append(RowMatrix(1, 0), GramFactor());
  CHECK(factor.size() == 1 && factor.inverse_diagonal()(0) == 0.25);
  Vector row(1);
  factor.remove(0, row);
  CHECK(factor.size() == 0 && row(0) == 0.5);
}

TEST(one_hundred_thousand_changes_to_clusters_in_the_plane) {
  Random random(11);
  const RowMatrix points = random.clustered_points(300, 2, 20, 0.02);
  check_wandering("gaussian, 2-D", Pool::with_condition(points, 1e8, make_gaussian), 0, 100000);
}

TEST(thirty_thousand_changes_to_clusters_on_a_line_that_never_gets_short) {
  Random random(12);
  const RowMatrix points = random.clustered_points(300, 1, 30, 0.02);
  check_wandering("gaussian, 1-D", Pool::with_condition(points, 1e8, make_gaussian), 150, 30000);
}

TEST(thirty_thousand_changes_with_a_matern_kernel) {
  Random random(13);
  const RowMatrix points = random.clustered_points(300, 2, 20, 0.02);
  check_wandering("matern 5/2", Pool::with_condition(points, 1e8, make_matern), 100, 30000);
}

// Each pass adds and takes away a point that makes P_jj of its neighbour 1e8 times as large.
TEST(the_diagonal_survives_being_made_huge_again_and_again) {
  RowMatrix points(4, 1);
  points << 0, 2e-4, 4e-4, 1;
  const RowMatrix gram = reference::core_gram(Gaussian(1.0), points);
  const Pool pool{gram, reference::condition_number(gram)};
  Random random(5);
  Follower follower(pool);
  follower.append(4, random);
  for (int pass = 0; pass < 20000; ++pass) {
    follower.remove(random.integer(0, follower.size() - 1));
    if (random.uniform() < 0.5) follower.remove(random.integer(0, follower.size() - 1));
    follower.append(4, random);
  }
  while (follower.size() > 2) follower.remove(0);
  // Each of 20,000 passes may leave eps times the ratio 1e8 by which P_jj came down, at random.
  CHECK(diagonal_error(follower.factor(), follower.gram()) < std::sqrt(2e4) * kEps * 1e8);
}

TEST(a_factor_that_was_assigned_goes_on_with_the_same_bits) {
  const Pool pool = well_conditioned_pool(60);
  Random random(6);
  Follower follower(pool);
  follower.append(60, random);
  for (int i = 0; i < 25; ++i) follower.remove(random.integer(0, follower.size() - 1));
  GramFactor grown = follower.factor(), copy;
  copy.assign(grown.root(), grown.inverse_diagonal());
  CHECK(copy.root() == grown.root() && copy.inverse_diagonal() == grown.inverse_diagonal());
  Vector a(grown.size()), b(grown.size());
  grown.remove(3, a);
  copy.remove(3, b);
  CHECK(a == b && copy.root() == grown.root());
  CHECK(copy.inverse_diagonal() == grown.inverse_diagonal());
}

TEST(the_residual_tells_a_damaged_factor_from_a_good_one) {
  const Pool pool = well_conditioned_pool(50);
  Random random(8);
  Follower follower(pool);
  follower.append(50, random);
  const RowMatrix gram = follower.gram();
  RowMatrix damaged = follower.factor().root();
  damaged(30, 10) += 1e-6;
  GramFactor bad;
  bad.assign(damaged, follower.factor().inverse_diagonal());
  double worst = 0;
  for (Index j = 0; j < 50; ++j) {
    CHECK(follower.factor().residual(j, gram.col(j)) < 1e-12);
    worst = std::max(worst, bad.residual(j, gram.col(j)));
  }
  CHECK(worst > 1e-8);
}
