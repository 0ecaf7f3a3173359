/* The vectorised kernels between points and a surface of lattice points (kernels/surface.h), of one instruction set and accuracy, for every radial
 * pair interaction of one component. Included once by each of pair_lattice_full.c and pair_lattice_near.c, which define FMM_PAIR_VARIANT.
 * Lanes are over the points, two vectors at a time. A squared distance is a sum of one square an axis: those of all 3 * order planes are made once,
 * so that a pair costs one addition where it had three subtractions and three multiplications.
 *
 * A few rows of the surface at a time, in two passes: first all roots are begun, in float (paired_root.h), then each is finished and used. The
 * parts of either pass are independent of each other, so that no pair waits for its own root. Sums on the points stay in registers; sums on the
 * surface are vectors over lanes, added across lanes at the end. */
#include "kernels/pair/pair_lattice.h"
#include "kernels/pair/vector.h"
#include "kernels/pair/paired_root.h"

/* Compile-time copies of the infos: shapes must be constants here. */
#define FMM_PAIR_INFO(name) static const fmm_pair_info info_##name
#define FMM_PAIR_INFO_PASS
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_INFO_PASS

/* What is known beforehand comes behind the normal. */
enum { EXTRAS = 5, SQUARE = 3, ROOT = 4 };
#define FMM_REAL fmm_vector
#define FMM_SCALAR fmm_scalar
#define FMM_PAIR_FUNCTION VECTOR_FUNCTION
#define FMM_CONSTANT(c) vector_constant(c)
#define FMM_EXP(x) vector_exp(x)
#define FMM_SQUARE(dx, dy, dz) normal[SQUARE]
#define FMM_RSQRT(r2) normal[ROOT]
#define FMM_PAIR_NAME(name) lattice_##name
#include "kernels/fmm_pair_list.h"

typedef void pair_function(fmm_vector, fmm_vector, fmm_vector, const fmm_vector *, const fmm_vector *, const fmm_scalar *, int, int, fmm_vector *);
enum { PAIRED = 2, ROWS = 8, MAX_PLANES = 3 * FMM_MAX_ORDER, MAX_COLUMNS = FMM_PAIR_MAX_COLUMNS, MAX_SUMS = 4 * MAX_COLUMNS };
typedef struct shape { int columns, gradient, onto, suited; } shape;

/* What two vectors of points are to all planes of a surface. Pointers to arrays of their own, so that the compiler drops what a pair does not use. */
typedef struct planes_table {
  fmm_vector (*square)[PAIRED], (*difference)[PAIRED]; /* target - source along the plane's axis */
  float_vector *scaled;                                /* ROOT_FACTOR * square, of both vectors */
} planes_table;
#define PLANES_TABLE(t)                                                    \
  fmm_vector square_[MAX_PLANES][PAIRED], difference_[MAX_PLANES][PAIRED]; \
  float_vector scaled_[MAX_PLANES];                                        \
  const planes_table t = {square_, difference_, scaled_}

VECTOR_FUNCTION void measure(const fmm_pair_lattice_call *call, int64_t i, shape q, const planes_table *t) {
  for (int axis = 0; axis < 3; axis++) {
    const fmm_vector *point = (const fmm_vector *)(call->point[axis] + i);
    for (int plane = axis * call->order; plane < (axis + 1) * call->order; plane++) {
      fmm_vector at = broadcast(call->plane[plane]);
#pragma GCC unroll 2
      for (int v = 0; v < PAIRED; v++) {
        fmm_vector d = q.onto ? at - point[v] : point[v] - at;
        t->square[plane][v] = d * d;
        t->difference[plane][v] = d;
      }
      t->scaled[plane] = floats_of(t->square[plane][0] * vector_constant(ROOT_FACTOR), t->square[plane][1] * vector_constant(ROOT_FACTOR));
    }
  }
}

VECTOR_FUNCTION void begin_roots(const fmm_surface_row *begin, const fmm_surface_row *end, const planes_table *t, float_vector *begun) {
  for (const fmm_surface_row *row = begin; row < end; row++) {
    float_vector fixed = t->scaled[row->fixed[0]] + t->scaled[row->fixed[1]];
    for (int k = 0; k < row->n; k++) *begun++ = root_begin(fixed + t->scaled[row->along + k]);
  }
}

/* One vector's pair with surface point `along` of a row. s: densities of the source, [column]. */
VECTOR_FUNCTION void act(int v, const planes_table *t, const fmm_surface_row *row, int k, int axis, fmm_vector fixed, const float_vector *begun,
                         const fmm_scalar *params, shape q, pair_function *pair, const fmm_vector *s, fmm_vector *f) {
  fmm_vector extras[EXTRAS] = {{0}}, d[3];
  d[0] = t->difference[row->fixed[0]][v], d[3 - axis] = t->difference[row->fixed[1]][v], d[axis] = t->difference[row->along + k][v];
  extras[SQUARE] = fixed + t->square[row->along + k][v];
  extras[ROOT] = root_end(extras[SQUARE], ((const half_float_vector *)begun)[v]);
  pair(d[0], d[1], d[2], s, extras, params, q.columns, q.gradient, f);
}

/* A row onto vectors [v0, v1) of the points. axis is the row's, a constant. */
VECTOR_FUNCTION void row_onto_points(const fmm_pair_lattice_call *call, const fmm_surface_row *row, int axis, int v0, int v1, const planes_table *t,
                                     const float_vector *begun, const fmm_scalar *params, shape q, pair_function *pair, fmm_vector f[][MAX_SUMS]) {
  fmm_vector fixed[PAIRED];
#pragma GCC unroll 2
  for (int v = v0; v < v1; v++) fixed[v] = t->square[row->fixed[0]][v] + t->square[row->fixed[1]][v];
  int64_t at = row->first;
  for (int k = 0; k < row->n; k++, at += row->stride) {
    fmm_vector s[MAX_COLUMNS];
#pragma GCC unroll 4
    for (int c = 0; c < q.columns; c++) s[c] = broadcast(call->density[c][at]);
#pragma GCC unroll 2
    for (int v = v0; v < v1; v++) act(v, t, row, k, axis, fixed[v], begun + k, params, q, pair, s, f[v]);
  }
}

/* The points onto a row. lanes: [surface point][column]. */
VECTOR_FUNCTION void points_onto_row(const fmm_surface_row *row, int axis, const planes_table *t, const float_vector *begun, const fmm_scalar *params,
                                     shape q, pair_function *pair, fmm_vector s[][MAX_COLUMNS], fmm_vector *lanes) {
  fmm_vector fixed[PAIRED];
#pragma GCC unroll 2
  for (int v = 0; v < PAIRED; v++) fixed[v] = t->square[row->fixed[0]][v] + t->square[row->fixed[1]][v];
  fmm_vector *sums = lanes + row->first * q.columns;
  for (int k = 0; k < row->n; k++, sums += row->stride * q.columns) {
    fmm_vector f[MAX_SUMS];
#pragma GCC unroll 4
    for (int c = 0; c < q.columns; c++) f[c] = sums[c];
#pragma GCC unroll 2
    for (int v = 0; v < PAIRED; v++) act(v, t, row, k, axis, fixed[v], begun + k, params, q, pair, s[v], f);
#pragma GCC unroll 4
    for (int c = 0; c < q.columns; c++) sums[c] = f[c];
  }
}

/* ACT(row, axis, begun) for all rows of [first, last), axis a constant, after the roots of ROWS of them are begun. */
#define FOR_ROWS(first, last, t, ACT)                                                           \
  do {                                                                                           \
    float_vector begun_[ROWS * FMM_MAX_ORDER];                                                   \
    for (const fmm_surface_row *row = (first); row < (last);) {                                  \
      const fmm_surface_row *end_ = (last) - row < ROWS ? (last) : row + ROWS;                   \
      const float_vector *at_ = begun_;                                                          \
      begin_roots(row, end_, t, begun_);                                                         \
      for (; row < end_; at_ += row++->n)                                                        \
        if (row->axis == 1) ACT(row, 1, at_);                                                    \
        else ACT(row, 2, at_);                                                                   \
    }                                                                                            \
  } while (0)

/* The surface onto two vectors of points from the i-th on, vectors [v0, v1) of them. */
VECTOR_FUNCTION void surface_onto_vectors(const fmm_pair_lattice_call *call, int64_t i, int v0, int v1, const planes_table *t, const fmm_scalar *params,
                                          shape q, pair_function *pair) {
  int n_sums = (q.gradient ? 4 : 1) * q.columns;
  fmm_vector f[PAIRED][MAX_SUMS] = {{{0}}};
#define ACT(row, axis, begun) row_onto_points(call, row, axis, v0, v1, t, begun, params, q, pair, f)
  FOR_ROWS(call->row, call->row + call->n_rows, t, ACT);
#undef ACT
#pragma GCC unroll 2
  for (int v = v0; v < v1; v++)
#pragma GCC unroll 16
    for (int k = 0; k < n_sums; k++) *(fmm_vector *)(call->sums[k] + i + v * LANES) += f[v][k];
}

/* Both vectors of points at once where their sums leave room in the registers. */
VECTOR_FUNCTION void surface_onto_points(const fmm_pair_lattice_call *call, shape q, pair_function *pair) {
  PLANES_TABLE(t);
  fmm_scalar params[FMM_MAX_PARAMS];
  if (!q.suited) return;
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = call->params[k];
  for (int64_t i = 0; i < call->n_points; i += PAIRED * LANES) {
    measure(call, i, q, &t);
    if (PAIRED * (q.gradient ? 4 : 1) * q.columns + 4 <= VECTOR_REGISTERS) surface_onto_vectors(call, i, 0, PAIRED, &t, params, q, pair);
    else {
      surface_onto_vectors(call, i, 0, 1, &t, params, q, pair);
      surface_onto_vectors(call, i, 1, PAIRED, &t, params, q, pair);
    }
  }
}

VECTOR_FUNCTION void add_lanes(const fmm_pair_lattice_call *call, const fmm_vector *lanes, shape q) {
  for (int64_t m = 0; m < call->n_surface; m += LANES)
    for (int c = 0; c < q.columns; c++) {
      fmm_vector rows[LANES];
#pragma GCC unroll 8
      for (int l = 0; l < LANES; l++) rows[l] = m + l < call->n_surface ? lanes[(m + l) * q.columns + c] : (fmm_vector){0};
      fmm_vector sums = lane_sums(rows);
      for (int l = 0; l < LANES && m + l < call->n_surface; l++) call->sums[c][m + l] += sums[l];
    }
}

VECTOR_FUNCTION void points_onto_surface(const fmm_pair_lattice_call *call, shape q, pair_function *pair) {
  PLANES_TABLE(t);
  fmm_scalar params[FMM_MAX_PARAMS];
  fmm_vector *lanes = call->lanes;
  if (!q.suited) return;
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = call->params[k];
  for (int64_t k = 0; k < (int64_t)call->n_surface * q.columns; k++) lanes[k] = (fmm_vector){0};
  for (int64_t i = 0; i < call->n_points; i += PAIRED * LANES) {
    fmm_vector s[PAIRED][MAX_COLUMNS];
    measure(call, i, q, &t);
#pragma GCC unroll 2
    for (int v = 0; v < PAIRED; v++)
#pragma GCC unroll 4
      for (int c = 0; c < q.columns; c++) s[v][c] = *(const fmm_vector *)(call->density[c] + i + v * LANES);
#define ACT(row, axis, begun) points_onto_row(row, axis, &t, begun, params, q, pair, s, lanes)
    FOR_ROWS(call->row, call->row + call->n_rows, &t, ACT);
#undef ACT
  }
  add_lanes(call, lanes, q);
}

#define SHAPE(name, n_columns, with_gradient, onto_surface) \
  (shape) { .columns = n_columns, .gradient = with_gradient, .onto = onto_surface, .suited = fmm_pair_suits_lattice(&info_##name) }
#define DEFINE_COLUMNS(name, n)                                                                                                                    \
  static void name##_onto_points_0_##n(const fmm_pair_lattice_call *call) { surface_onto_points(call, SHAPE(name, n, 0, 0), lattice_##name); }      \
  static void name##_onto_points_1_##n(const fmm_pair_lattice_call *call) { surface_onto_points(call, SHAPE(name, n, 1, 0), lattice_##name); }      \
  static void name##_onto_surface_##n(const fmm_pair_lattice_call *call) { points_onto_surface(call, SHAPE(name, n, 0, 1), lattice_##name); }
#define DEFINE_PAIR(name) DEFINE_COLUMNS(name, 1) DEFINE_COLUMNS(name, 2) DEFINE_COLUMNS(name, 4)
FMM_PAIR_LIST(DEFINE_PAIR)

#define PAIR_ROW(name)                                                               \
  {{{name##_onto_points_0_1, name##_onto_points_0_2, name##_onto_points_0_4},        \
    {name##_onto_points_1_1, name##_onto_points_1_2, name##_onto_points_1_4}},       \
   {name##_onto_surface_1, name##_onto_surface_2, name##_onto_surface_4}},
#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
const fmm_pair_lattice_kernels JOIN(fmm_pair_lattice_kernels_, FMM_PAIR_VARIANT, FMM_SIMD_SUFFIX)[] = {FMM_PAIR_LIST(PAIR_ROW)};
