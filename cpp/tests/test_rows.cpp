#include <parsimon/memory/placed_rows.hpp>
#include <parsimon/memory/row_buffer.hpp>

#include <algorithm>
#include <numeric>

#include "check.hpp"
#include "reference.hpp"

using namespace parsimon;
using reference::Random;

namespace {

RowMatrix chosen(const RowMatrix& rows, const std::vector<Index>& order) {
  RowMatrix result(static_cast<Index>(order.size()), rows.cols());
  for (Index i = 0; i < result.rows(); ++i) {
    result.row(i) = rows.row(order[static_cast<std::size_t>(i)]);
  }
  return result;
}

// All but a few of 0 .. count, in order or not.
std::vector<Index> some_of(Index count, bool sorted, Random& random) {
  std::vector<Index> order;
  for (Index i = 0; i < count; ++i) {
    if (random.uniform() < 0.9) order.push_back(i);
  }
  if (!sorted && order.size() > 1) {
    std::swap(
        order.front(),
        order[static_cast<std::size_t>(random.integer(1, static_cast<Index>(order.size()) - 1))]);
  }
  return order;
}

}  // namespace

TEST(rows_that_stay_where_they_are_follow_like_rows_that_move) {
  Random random(1);
  PlacedRows placed(5);
  RowBuffer moved(5);
  for (int step = 0; step < 2000; ++step) {
    const RowMatrix row = random.normal_points(1, 5);
    placed.append(row.data());
    moved.append(row.data());
    if (step % 7 == 3) {
      const Index i = random.integer(0, moved.rows() - 1);
      placed.replace_by_last(i);
      moved.replace_by_last(i);
    }
    if (step % 11 == 5) {
      const std::vector<Index> order = some_of(moved.rows(), step % 2 == 0, random);
      placed.select(order);
      moved.select(order);
    }
    CHECK(placed.rows() == moved.rows());
    CHECK(placed.in_order() == RowMatrix(moved.all()));
  }
}

TEST(rows_that_start_again_are_in_order) {
  Random random(2);
  PlacedRows rows(3);
  for (int i = 0; i < 6; ++i) rows.append(random.normal_points(1, 3).data());
  rows.select({4, 0, 2});
  const RowMatrix fresh = random.normal_points(5, 7);
  rows.reset(5, 7);
  for (Index i = 0; i < 5; ++i) rows.row(i) = fresh.row(i);
  rows.append(fresh.row(1).data());
  CHECK(rows.rows() == 6 && rows.columns() == 7);
  CHECK(rows.in_order().topRows(5) == fresh && rows.row(5) == fresh.row(1));
}

TEST(rows_are_selected_in_any_order) {
  Random random(3);
  const RowMatrix rows = random.normal_points(300, 7);
  for (const bool sorted : {true, false}) {
    const std::vector<Index> order = some_of(rows.rows(), sorted, random);
    RowBuffer buffer(rows.cols());
    buffer.resize(rows.rows()) = rows;
    buffer.select(order);
    CHECK(RowMatrix(buffer.all()) == chosen(rows, order));
  }
}
