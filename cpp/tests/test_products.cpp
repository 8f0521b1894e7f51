#include <atomic>
#include <new>
#include <parsimon/linalg/products.hpp>
#include <parsimon/rkhs/gram_factor.hpp>
#include <thread>
#include <vector>
#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

namespace {

using Exact = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

// Shapes around every edge: of a packet, a tile, a panel and a block.
const std::vector<Index> kSizes{1, 2, 3, 5, 7, 8, 9, 16, 23, 31, 32, 33, 49, 70};

bool is_product(const Exact& a, const Exact& b, const RowMatrix& values) {
  const Exact expected = a * b;
  const Exact size = a.cwiseAbs() * b.cwiseAbs();
  const auto error = (values.cast<long double>() - expected).cwiseAbs();
  const auto allowed = 1e-16L * static_cast<long double>(a.cols() + 2) * size.array();
  return (error.array() <= allowed).all();
}

RowMatrix lower_triangle(Random& random, Index size) {
  const RowMatrix square = random.normal_points(size, size);
  return square.triangularView<Eigen::Lower>();
}

}  // namespace

TEST(products_of_all_shapes) {
  Random random(1);
  for (const Index rows : kSizes) {
    for (const Index columns : kSizes) {
      for (const Index depth : {0, 1, 7, 24, 300}) {
        const RowMatrix a = random.normal_points(rows, depth);
        const RowMatrix b = random.normal_points(depth, columns);
        const RowMatrix a_transpose = a.transpose(), b_transpose = b.transpose();
        RowMatrix values = RowMatrix::Constant(rows, columns, std::nan(""));
        linalg::multiply(a, b, values);
        CHECK(is_product(a.cast<long double>(), b.cast<long double>(), values));
        RowMatrix again = RowMatrix::Constant(rows, columns, std::nan(""));
        linalg::multiply_by_transpose(a, b_transpose, again);
        CHECK(again == values);
        again.setConstant(std::nan(""));
        linalg::multiply_transpose_by(a_transpose, b, again);
        CHECK(again == values);
      }
    }
  }
}

TEST(nothing_around_a_block_is_touched) {
  Random random(2);
  const RowMatrix a = random.normal_points(13, 40), b = random.normal_points(11, 40);
  RowMatrix large = RowMatrix::Constant(17, 19, 5.0);
  linalg::multiply_by_transpose(a, b, large.block(2, 3, 13, 11));
  CHECK(is_product(a.cast<long double>(), b.transpose().cast<long double>(),
                   large.block(2, 3, 13, 11)));
  large.block(2, 3, 13, 11).setConstant(5.0);
  CHECK((large.array() == 5.0).all());
}

// Rows that lie anywhere, of either factor, give the bits of rows that lie in order.
TEST(rows_may_lie_in_any_order) {
  Random random(9);
  for (const Index rows : kSizes) {
    const Index depth = 37;
    const RowMatrix a = random.normal_points(rows, depth), b = random.normal_points(11, depth);
    std::vector<Index> places(static_cast<std::size_t>(rows));
    RowMatrix scattered = RowMatrix::Constant(3 * rows, depth, std::nan(""));
    for (Index i = 0; i < rows; ++i) {
      places[static_cast<std::size_t>(i)] = 3 * (rows - 1 - i) + i % 3;
      scattered.row(places[static_cast<std::size_t>(i)]) = a.row(i);
    }
    const linalg::Tall<double> placed{scattered.data(), depth, 1, places.data()};
    const auto narrow = [&](const linalg::Tall<double>& tall, Index count) {
      return linalg::narrow_transpose(tall, count, depth);
    };
    RowMatrix expected(rows, 11), values(rows, 11);
    linalg::multiply_by_transpose(a, b, expected);
    linalg::multiply_into(placed, depth, narrow({b.data(), depth}, 11), values);
    CHECK(values == expected);
    RowMatrix across(11, rows);
    linalg::multiply_into({b.data(), depth}, depth, narrow(placed, rows), across);
    CHECK(across == expected.transpose());
    RowMatrix single(1, rows);
    linalg::multiply_vector(placed, rows, depth, b.row(4).data(), single.data());
    CHECK(is_product(b.row(4).cast<long double>(), a.transpose().cast<long double>(), single));
  }
}

TEST(matrices_of_all_shapes_are_transposed) {
  Random random(10);
  for (const Index rows : kSizes) {
    for (const Index columns : kSizes) {
      const RowMatrix a = random.normal_points(rows, columns);
      const Index width = rows + 3;
      RowMatrix out = RowMatrix::Constant(columns, width, 5.0);
      linalg::transpose(a, out.data(), width);
      CHECK(out.leftCols(rows) == a.transpose() && (out.rightCols(3).array() == 5).all());
      linalg::transpose_padded(a, out.data(), width);
      CHECK(out.leftCols(rows) == a.transpose() && out.rightCols(3).isZero(0));
    }
  }
  const RowMatrix tall = random.normal_points(3000, 20);
  for (const RowMatrix& a : {tall, RowMatrix(tall.transpose())}) {
    for (const int threads : {1, 2, 3}) {
      const ThreadLimit limit(threads);
      RowMatrix out(a.cols(), a.rows());
      linalg::transpose(a, out.data(), a.rows());
      CHECK(out == a.transpose());
    }
  }
}

// Every number is one sum from first to last, so a part of the matrices gives the same bits.
TEST(a_number_does_not_depend_on_its_neighbours) {
  Random random(3);
  const RowMatrix a = random.normal_points(67, 1500), b = random.normal_points(300, 1500);
  RowMatrix all(67, 300);
  linalg::multiply_by_transpose(a, b, all);
  for (const Index rows : {1, 2, 5, 48, 66}) {
    for (const Index columns : {2, 3, 8, 31, 100}) {
      RowMatrix part(rows, columns);
      linalg::multiply_by_transpose(a.bottomRows(rows), b.bottomRows(columns), part);
      CHECK(part == all.bottomRightCorner(rows, columns));
    }
  }
}

TEST(a_triangular_root_is_applied_twice) {
  Random random(4);
  for (const Index size : kSizes) {
    const RowMatrix root = lower_triangle(random, size);
    GramFactor factor;
    factor.assign(root, root.colwise().squaredNorm().transpose());
    for (const Index columns : {1, 2, 3, 5, 6, 7, 8, 9, 12, 15, 33}) {
      const RowMatrix values = random.normal_points(size, columns);
      RowMatrix whitened(size, columns), coefficients(size, columns);
      factor.solve(values, whitened, coefficients);
      CHECK(is_product(root.cast<long double>(), values.cast<long double>(), whitened));
      CHECK(is_product(root.transpose().cast<long double>(), whitened.cast<long double>(),
                       coefficients));
    }
  }
}

TEST(any_number_of_threads_gives_the_same_bits) {
  Random random(5);
  const RowMatrix a = random.normal_points(700, 301), b = random.normal_points(37, 301);
  const RowMatrix root = lower_triangle(random, 700), values = random.normal_points(700, 37);
  GramFactor factor;
  factor.assign(root, root.colwise().squaredNorm().transpose());
  for (const Index columns : {5, 32, 37}) {
    RowMatrix product, whitened, coefficients;
    for (const int threads : {1, 2, 3, 5}) {
      const ThreadLimit limit(threads);
      CHECK(get_num_threads() == threads);
      RowMatrix p(700, columns), w(700, columns), c(700, columns);
      linalg::multiply_by_transpose(a, b.topRows(columns), p);
      factor.solve(values.leftCols(columns), w, c);
      if (threads == 1) {
        product = p;
        whitened = w;
        coefficients = c;
      }
      CHECK(p == product && w == whitened && c == coefficients);
    }
  }
  CHECK(get_num_threads() != 5);
}

// Threads rotate columns side by side; what moves from one's into another's must not get lost.
TEST(points_leave_a_factor_alike_with_any_number_of_threads) {
  Random random(8);
  const Index size = 701;
  const RowMatrix root = lower_triangle(random, size);
  for (const Index j :
       {Index{0}, Index{1}, Index{63}, Index{64}, Index{350}, Index{511}, size - 1}) {
    RowMatrix left;
    Vector diagonal, pivot;
    for (const int threads : {1, 2, 3, 5}) {
      const ThreadLimit limit(threads);
      GramFactor factor;
      factor.assign(root, root.colwise().squaredNorm().transpose());
      Vector row(size);
      factor.remove(j, row);
      if (threads == 1) {
        left = factor.root();
        diagonal = factor.inverse_diagonal();
        pivot = row;
      }
      CHECK(factor.root() == left && factor.inverse_diagonal() == diagonal && row == pivot);
    }
    // T'T is what it was, less the row that went, and without point j.
    const RowMatrix before = root.transpose() * root - pivot * pivot.transpose();
    RowMatrix expected(size - 1, size - 1);
    for (Index i = 0; i + 1 < size; ++i) {
      for (Index k = 0; k + 1 < size; ++k) expected(i, k) = before(i + (i >= j), k + (k >= j));
    }
    const RowMatrix found = left.transpose() * left;
    CHECK((found - expected).norm() < 1e-12 * root.squaredNorm());
    CHECK(RowMatrix(left.triangularView<Eigen::StrictlyUpper>()).isZero(0));
  }
}

// The second thread that comes does its work alone; what both get is right.
TEST(several_threads_at_once) {
  Random random(6);
  const RowMatrix a = random.normal_points(400, 200), b = random.normal_points(64, 200);
  RowMatrix expected(400, 64);
  linalg::multiply_by_transpose(a, b, expected);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      const ThreadLimit limit(1 + static_cast<int>(t));
      RowMatrix values(400, 64);
      for (int i = 0; i < 200; ++i) {
        values.setZero();
        linalg::multiply_by_transpose(a, b, values);
        wrong[t] += values != expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) CHECK(count == 0);
}

TEST(the_number_of_threads_is_checked) {
  const int before = get_num_threads();
  for (const int threads : {0, -1, 1000000}) CHECK_THROWS(set_num_threads(threads), Error);
  CHECK(get_num_threads() == before);
  set_num_threads(2);
  CHECK(get_num_threads() == 2);
  set_num_threads(before);
}

#ifndef _WIN32
// The child has none of the parent's threads, and must not wait for them.
TEST(a_forked_process_has_threads_of_its_own) {
  Random random(7);
  const ThreadLimit limit(3);
  const RowMatrix a = random.normal_points(400, 200), b = random.normal_points(64, 200);
  RowMatrix expected(400, 64);
  linalg::multiply_by_transpose(a, b, expected);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    RowMatrix values(400, 64);
    linalg::multiply_by_transpose(a, b, values);
    _exit(values == expected ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

// A worker's exception reaches the caller, and the pool goes on.
TEST(exceptions_come_through) {
  const ThreadLimit limit(3);
  for (const int thrower : {0, 1, 2}) {
    const auto work = [&](int part, int) {
      if (part == thrower) throw Error("no");
    };
    CHECK_THROWS(linalg::in_parts(3, 1e9, work), Error);
    std::atomic<int> done{0};
    linalg::in_parts(3, 1e9, [&](int, int parts) { done += 6 / parts; });
    CHECK(done == 6);
  }
}

// Sanitizers end a program that asks for so much.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(scratch_survives_that_there_is_no_memory) {
  struct Use;
  scratch<Use>(1000)[999] = 1;
  CHECK_THROWS(scratch<Use>(Index{1} << 58), std::bad_alloc);
  CHECK(scratch<Use>(1000)[999] == 1);
}
#endif

// -- rotations of rows ---------------------------------------------------------------------------

namespace {

struct Rotations {
  std::vector<double> cosines, sines;

  Rotations(Random& random, Index rows) {
    for (Index i = 0; i + 1 < rows; ++i) {
      const double angle = random.uniform(-4, 4);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  }

  // One after the other, from the first two rows on.
  void apply(Exact& rows) const {
    for (std::size_t i = 0; i < cosines.size(); ++i) {
      const auto at = static_cast<Index>(i);
      const Exact carried = rows.row(at), next = rows.row(at + 1);
      rows.row(at) = static_cast<long double>(sines[i]) * next -
                     static_cast<long double>(cosines[i]) * carried;
      rows.row(at + 1) = static_cast<long double>(sines[i]) * carried +
                         static_cast<long double>(cosines[i]) * next;
    }
  }
};

}  // namespace

// Whole vectors of columns, from any of them on: as plain loops do it, and nothing else is touched.
TEST(rows_are_rotated_as_by_plain_loops) {
  Random random(21);
  const Index lanes = linalg::loops().lanes;
  for (const Index count : {1, 2, 3, 7, 40}) {
    const Rotations rotations(random, count);
    for (const Index vectors : {0, 1, 2, 7, 8, 9, 17}) {
      for (const Index first : {0, 1, 3}) {
        const Index begin = first * lanes, end = begin + vectors * lanes;
        const RowMatrix before = random.normal_points(count + 2, end + 5);
        RowMatrix after = before;
        linalg::loops().rotate_rows(after.data() + after.cols(), after.cols(), count, begin, end,
                                    rotations.cosines.data(), rotations.sines.data());
        Exact expected = before.block(1, begin, count, end - begin).cast<long double>();
        rotations.apply(expected);
        const auto turned = after.block(1, begin, count, end - begin);
        if (vectors > 0) {
          CHECK((turned.cast<long double>() - expected).cwiseAbs().maxCoeff() <
                1e-15L * (count + 4));
        }
        after.block(1, begin, count, end - begin) = before.block(1, begin, count, end - begin);
        CHECK(after == before);
      }
    }
  }
}

// A column's bits do not depend on how many others there are, or a model that is read back, whose
// buffers are shorter, would round differently.
TEST(a_rotated_column_does_not_depend_on_its_neighbours) {
  Random random(22);
  const Index lanes = linalg::loops().lanes, count = 30, columns = 19 * lanes;
  const Rotations rotations(random, count);
  const RowMatrix before = random.normal_points(count, columns);
  RowMatrix all = before, parts = before;
  const auto rotate = [&](RowMatrix& rows, Index begin, Index end) {
    linalg::loops().rotate_rows(rows.data(), columns, count, begin, end, rotations.cosines.data(),
                                rotations.sines.data());
  };
  rotate(all, 0, columns);
  for (Index k = 0; k < columns; k += lanes) rotate(parts, k, k + lanes);
  CHECK(parts == all);
}

// The turn that a factor writes down takes coordinates to those of the basis without the point.
TEST(turns_are_what_removals_do_to_coordinates) {
  Random random(23);
  const Index size = 21;
  const RowMatrix points = random.uniform_points(size, 2), places = random.uniform_points(16, 2);
  const Matern kernel(0.5, 1.5);
  RowMatrix all(size + 16, 2);
  all << points, places;
  const RowMatrix gram = reference::core_gram(kernel, all);
  for (Index j = 0; j < size; ++j) {
    RowMatrix lower = gram.topLeftCorner(size, size);
    CHECK(linalg::cholesky(lower));
    GramFactor factor;
    factor.assign_inverse_of(lower);
    RowMatrix before(size, 16);
    factor.whiten(gram.topRightCorner(size, 16), before);
    Vector pivot_row(size);
    factor.remove(j, pivot_row);
    CHECK(factor.turns().empty());  // nobody asked
    factor.assign_inverse_of(lower);
    factor.keep_turns();
    factor.remove(j, pivot_row);
    CHECK(factor.turns().size() == 1);
    const Turn& turn = factor.turns()[0];
    CHECK(turn.point == j && turn.size == size);
    CHECK(static_cast<Index>(turn.cosines.size()) == size - 1 - j);
    linalg::loops().rotate_rows(before.data() + j * 16, 16, size - j, 0, 16, turn.cosines.data(),
                                turn.sines.data());
    RowMatrix cross(size - 1, 16), after(size - 1, 16);
    for (Index i = 0; i + 1 < size; ++i) cross.row(i) = gram.row(i < j ? i : i + 1).tail(16);
    factor.whiten(cross, after);
    CHECK((before.topRows(size - 1) - after).cwiseAbs().maxCoeff() < 1e-12);
    // The last is the coordinate along what only that point spanned.
    const RowMatrix direction = pivot_row.transpose() * gram.topRightCorner(size, 16);
    CHECK((before.row(size - 1) - direction).cwiseAbs().maxCoeff() < 1e-11);
    factor.forget_turns();
    CHECK(factor.turns().empty());
  }
}
