#pragma once

#include "parsimon/linalg/tall.hpp"
#include "parsimon/types.hpp"

namespace parsimon::linalg {

// The points of a basis while KOMP removes some of them, one column per point. All rows are padded
// to whole vectors with columns that are never chosen.
struct BasisColumns {
  double* weights;  // one row per output, `weights_row` numbers apart
  Index weights_row;
  Index outputs;
  Index scored;  // of the outputs, those that decide about the cost
  double* inverse_diagonal;
  const double* barrier;  // infinite for what must not be removed, 0 for the others
  double* costs;          // ||w_i||^2 / P(i, i) + barrier, or kStale
};

// The cost of a point whose inverse_diagonal has lost its digits and must be computed again.
constexpr double kStale = -1;

// The innermost loops of all that grows with a model, for the vector instructions of one kind of
// processor. This is the only seam between them and the rest: native_loops.hpp implements the
// table for whatever the compiler was told to use, and a program that runs on several kinds of
// processors may be given another table when it starts.
//
// All of them are for one thread. Rows that they write have room for padded() numbers, of which
// those beyond the matrix may be overwritten. No number that they compute depends on how the work
// is divided, nor on where in memory it lies.
struct Loops {
  const char* name;
  // Numbers in a vector, and columns that a product takes at once; then in single precision.
  Index lanes, panel, single_lanes, single_panel;

  // c = a b. `columns` is a multiple of the lanes.
  void (*multiply)(Index rows, Index columns, Index depth, const Tall<double>& a,
                   const Narrow<double>& b, double* c, Index c_row);
  void (*multiply_single)(Index rows, Index columns, Index depth, const Tall<float>& a,
                          const Narrow<float>& b, float* c, Index c_row);

  // out[j] = <b_j, x> for the rows j = begin .. end of b.
  void (*multiply_vector)(Index depth, const Tall<double>& b, Index begin, Index end,
                          const double* x, double* out);

  // out(j, i) = a(i, j) for i = i_begin .. i_end, j = j_begin .. j_end.
  void (*transpose)(const Tall<double>& a, Index i_begin, Index i_end, Index j_begin, Index j_end,
                    double* out, Index out_row);
  // Columns j = begin .. end of the narrow matrix b' (multiples of the lanes), for b with `rows`
  // rows and `columns` columns; zeros in the padding. `width` columns make a panel.
  void (*pack)(const Tall<double>& b, Index rows, Index columns, Index width, Index begin,
               Index end, double* out);
  void (*pack_single)(const Tall<float>& b, Index rows, Index columns, Index width, Index begin,
                      Index end, float* out);

  // coefficients(k, :) += sum_r T(r, k) whitened(r, :) for the rows r = first .. last of a lower
  // triangular T and k = begin .. end.
  void (*spread)(const double* root, Index stride, Index first, Index last, Index begin, Index end,
                 Index width, const double* whitened, double* coefficients, Index row);
  // The same and its counterpart for a few columns, each of which is a row of `row` numbers here.
  // sums: scratch for (end - first) * columns * lanes numbers.
  void (*whiten_few)(const double* root, Index stride, Index first, Index end, Index columns,
                     const double* values, double* whitened, Index row, double* sums);
  void (*spread_few)(const double* root, Index stride, Index first, Index last, Index begin,
                     Index end, Index columns, const double* whitened, double* coefficients,
                     Index row);

  // A lower triangular root loses its column j: rotation i turns row i + 1 and `carried`, which
  // began as row j, such that nothing of column j stays in row i. This takes the columns begin ..
  // end of all rows; columns behind j move up by one, and where that leads out of the part, into
  // `edge`.
  void (*rotate)(double* root, Index stride, Index size, Index j, Index begin, Index end,
                 const double* cosines, const double* sines, double* carried, double* edge);
  // The same rotations of the columns begin .. end (multiples of the lanes) of `count` full rows:
  // row i becomes what rotation i leaves of it, and the last one what has been carried there.
  void (*rotate_rows)(double* rows, Index stride, Index count, Index begin, Index end,
                      const double* cosines, const double* sines);
  // Rows first .. last of the root of an inverse, when A grows by g g' (Carlson): with v = T g,
  // product += v_j T(j, :), T(j, :) <- shrink_j T(j, :) - pull_j (product before).
  void (*update_rows)(double* root, Index stride, Index first, Index last, const double* v,
                      const double* shrink, const double* pull, double* product);

  // KOMP: the costs of the points begin .. end; then the same after weights and inverse_diagonal
  // have moved by the column of a removed point, which is given, or is -sum_r u_r rows[r]. `kept`:
  // its weights, divided by the root of its pivot.
  void (*score)(const BasisColumns& basis, Index begin, Index end);
  void (*move_by)(const BasisColumns& basis, Index begin, Index end, const double* column,
                  const double* kept);
  void (*move_by_sum)(const BasisColumns& basis, Index begin, Index end, const double* const* rows,
                      const double* u, Index count, const double* kept);

  // sum_f (a_f - b_f)^2, or of absolute values, and sum_f a_f^2.
  double (*squared_distance)(const double* a, const double* b, Index features);
  double (*absolute_distance)(const double* a, const double* b, Index features);
  double (*squared_norm)(const double* a, Index features);
  // out(i, j) = distance between row i = begin .. end of a and column j of a tile: `features` rows
  // of kTileWidth numbers, of which `count` are used.
  void (*squared_to_tile)(const Tall<double>& a, Index begin, Index end, const double* tile,
                          Index features, Index count, double* out, Index out_row);
  void (*absolute_to_tile)(const Tall<double>& a, Index begin, Index end, const double* tile,
                           Index features, Index count, double* out, Index out_row);
  // out[j] <- norm + norms[j] - 2 out[j]. Returns whether one of them is not above `near` times
  // the two norms, or NaN.
  bool (*complete_distances)(double norm, const double* norms, double near, double* out,
                             Index count);
  // values <- exp(factor values), where factor * value <= 0. Below -708 it is 0:
  // denormal numbers would slow down every product they enter.
  void (*exponential)(double factor, double* values, Index count);
};

// Columns of a tile of points, and the most features that one has.
constexpr Index kTileWidth = 64;
constexpr Index kTileFeatures = 32;

}  // namespace parsimon::linalg
