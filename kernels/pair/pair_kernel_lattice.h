/* The vectorised kernels between points and a surface of lattice points (kernels/surface.h), of one instruction set and accuracy, for every radial
 * pair interaction of one component. Included once by each of pair_lattice_full.c, pair_lattice_near.c and pair_lattice_single.c, which define FMM_PAIR_VARIANT.
 * Lanes are over the points, a few vectors at a time. A squared distance is a sum of one square an axis: those of all 3 * order planes are made once,
 * so that a pair costs one addition where it had three subtractions and three multiplications.
 *
 * Double with AVX2, and near with AVX-512, takes a few rows of the surface at a time, in two passes: first all roots are begun, in float, two vectors' as one
 * (paired_root.h), then each is finished and used. The others take each root where it is used: single and plain vectors need no other, and AVX-512 has estimates of
 * doubles for full accuracy (two terms of the series, 2e-13 from these estimates, are as many operations as a root of 1e-14 begun in float, and at order 11 they
 * raised the error by a half).
 * Sums on the points stay in registers; sums on the surface are vectors over lanes, added across lanes at the end. */
#include "kernels/pair/pair_lattice.h"
#include "kernels/pair/vector.h"
#if !defined(FMM_SINGLE) && (defined(FMM_SIMD_AVX2_BUILD) || (defined(FMM_SIMD_AVX512_BUILD) && defined(FMM_NEAR)))
#define FMM_BEGINS_ROOTS
#include "kernels/pair/paired_root.h"
#else
#include "kernels/pair/float_vectors.h"
#endif

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
enum { MAX_PLANES = 3 * FMM_MAX_ORDER, MAX_COLUMNS = FMM_PAIR_MAX_COLUMNS, MAX_SUMS = 4 * MAX_COLUMNS };
#if defined(FMM_SIMD_AVX512_BUILD) && !defined(FMM_BEGINS_ROOTS)
enum { VECTORS = 4 }; /* at once; even */
#else
enum { VECTORS = 2 };
#endif
#ifdef FMM_SINGLE
enum { ROWS = 16 }; /* rows summed in float before they go to the double sums */
#else
enum { ROWS = 8 }; /* rows whose roots are begun together, where they are begun */
#endif
typedef struct shape { int columns, gradient, onto, suited, scaled; } shape;

/* What a few vectors of points are to all planes of a surface. Pointers to arrays of their own, so that the compiler drops what a pair does not use. */
typedef struct planes_table {
  fmm_vector (*square)[VECTORS], (*difference)[VECTORS]; /* target - source along the plane's axis */
#ifdef FMM_BEGINS_ROOTS
  float_vector *scaled; /* ROOT_FACTOR * square, of both vectors */
#endif
} planes_table;
#ifdef FMM_BEGINS_ROOTS
#define PLANES_TABLE(t)                                                    \
  fmm_vector square_[MAX_PLANES][VECTORS], difference_[MAX_PLANES][VECTORS]; \
  float_vector scaled_[MAX_PLANES];                                        \
  const planes_table t = {square_, difference_, scaled_}
#else
#define PLANES_TABLE(t)                                                    \
  fmm_vector square_[MAX_PLANES][VECTORS], difference_[MAX_PLANES][VECTORS]; \
  const planes_table t = {square_, difference_}
#endif

VECTOR_FUNCTION void measure(const fmm_pair_lattice_call *call, int64_t i, int vectors, shape q, const planes_table *t) {
  for (int axis = 0; axis < 3; axis++) {
    const fmm_vector *point = (const fmm_vector *)((const fmm_scalar *)call->point[axis] + i);
    for (int plane = axis * call->order; plane < (axis + 1) * call->order; plane++) {
      fmm_vector at = vector_constant(call->plane[plane]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) {
        fmm_vector d = q.onto ? at - point[v] : point[v] - at;
        t->square[plane][v] = d * d;
        t->difference[plane][v] = d;
      }
#ifdef FMM_BEGINS_ROOTS
      t->scaled[plane] = floats_of(t->square[plane][0] * vector_constant(ROOT_FACTOR), t->square[plane][1] * vector_constant(ROOT_FACTOR));
#endif
    }
  }
}

/* Roots of a few rows begun, where they are; a row's come one after the other. */
#ifdef FMM_BEGINS_ROOTS
typedef float_vector begun_root;
VECTOR_FUNCTION void begin_roots(const fmm_surface_row *begin, const fmm_surface_row *end, const planes_table *t, begun_root *begun) {
  for (const fmm_surface_row *row = begin; row < end; row++) {
    float_vector fixed = t->scaled[row->fixed[0]] + t->scaled[row->fixed[1]];
    for (int k = 0; k < row->n; k++) *begun++ = root_begin(fixed + t->scaled[row->along + k]);
  }
}
VECTOR_FUNCTION fmm_vector root_of(shape q, fmm_vector r2, const begun_root *begun, int v) { return root_end(r2, ((const half_float_vector *)begun)[v]); }
enum { BEGUN = ROWS * FMM_MAX_ORDER };
#else
typedef char begun_root;
VECTOR_FUNCTION void begin_roots(const fmm_surface_row *begin, const fmm_surface_row *end, const planes_table *t, begun_root *begun) { (void)0; }
VECTOR_FUNCTION fmm_vector root_of(shape q, fmm_vector r2, const begun_root *begun, int v) {
  return q.scaled ? rsqrt_refine_scaled(r2, rsqrt_estimate(r2)) : vector_rsqrt(r2);
}
enum { BEGUN = 1 };
#endif

/* One vector's pair with surface point `along` of a row. s: densities of the source, [column]. */
VECTOR_FUNCTION void act(int v, const planes_table *t, const fmm_surface_row *row, int k, int axis, fmm_vector fixed, const begun_root *begun,
                         const fmm_scalar *params, shape q, pair_function *pair, const fmm_vector *s, fmm_vector *f) {
  fmm_vector extras[EXTRAS] = {{0}}, d[3];
  d[0] = t->difference[row->fixed[0]][v], d[3 - axis] = t->difference[row->fixed[1]][v], d[axis] = t->difference[row->along + k][v];
  extras[SQUARE] = fixed + t->square[row->along + k][v];
  extras[ROOT] = root_of(q, extras[SQUARE], begun, v);
  pair(d[0], d[1], d[2], s, extras, params, q.columns, q.gradient, f);
}

/* A row onto vectors [v0, v1) of the points. axis is the row's, a constant. */
VECTOR_FUNCTION void row_onto_points(const fmm_pair_lattice_call *call, const fmm_surface_row *row, int axis, int v0, int v1, const planes_table *t,
                                     const begun_root *begun, const fmm_scalar *params, shape q, pair_function *pair, fmm_vector f[][MAX_SUMS]) {
  fmm_vector fixed[VECTORS];
#pragma GCC unroll 4
  for (int v = v0; v < v1; v++) fixed[v] = t->square[row->fixed[0]][v] + t->square[row->fixed[1]][v];
  int64_t at = row->first;
  for (int k = 0; k < row->n; k++, at += row->stride) {
    fmm_vector s[MAX_COLUMNS];
#pragma GCC unroll 4
    for (int c = 0; c < q.columns; c++) s[c] = broadcast(((const fmm_scalar *)call->density[c])[at]);
#pragma GCC unroll 4
    for (int v = v0; v < v1; v++) act(v, t, row, k, axis, fixed[v], begun + k, params, q, pair, s, f[v]);
  }
}

/* Vectors [0, vectors) of the points onto a row. lanes: [surface point][column]. */
VECTOR_FUNCTION void points_onto_row(const fmm_surface_row *row, int axis, int vectors, const planes_table *t, const begun_root *begun, const fmm_scalar *params,
                                     shape q, pair_function *pair, fmm_vector s[][MAX_COLUMNS], fmm_vector *lanes) {
  fmm_vector fixed[VECTORS];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) fixed[v] = t->square[row->fixed[0]][v] + t->square[row->fixed[1]][v];
  fmm_vector *sums = lanes + row->first * q.columns;
  for (int k = 0; k < row->n; k++, sums += row->stride * q.columns) {
    fmm_vector f[MAX_SUMS];
#pragma GCC unroll 4
    for (int c = 0; c < q.columns; c++) f[c] = sums[c];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) act(v, t, row, k, axis, fixed[v], begun + k, params, q, pair, s[v], f);
#pragma GCC unroll 4
    for (int c = 0; c < q.columns; c++) sums[c] = f[c];
  }
}

/* ACT(row, axis, begun) for all rows of [first, last), axis a constant, ROWS at a time: after their roots are begun, and then AFTER(). */
#define FOR_ROWS(first, last, t, ACT, AFTER)                                                    \
  do {                                                                                           \
    begun_root begun_[BEGUN];                                                                    \
    for (const fmm_surface_row *row = (first); row < (last);) {                                  \
      const fmm_surface_row *end_ = (last) - row < ROWS ? (last) : row + ROWS;                   \
      const begun_root *at_ = begun_;                                                            \
      begin_roots(row, end_, t, begun_);                                                         \
      for (; row < end_; at_ += row++->n)                                                        \
        if (row->axis == 1) ACT(row, 1, at_);                                                    \
        else ACT(row, 2, at_);                                                                   \
      AFTER();                                                                                   \
    }                                                                                            \
  } while (0)

/* What sums of value k are to be multiplied with at their end: of potentials or of derivatives, in which the root is cubed. */
VECTOR_FUNCTION double factor_of(const fmm_pair_lattice_call *call, shape q, int k) {
  const double root = q.scaled ? 1. / ROOT_MULTIPLE : 1;
  return k < q.columns ? call->factor[0] * root : call->factor[1] * (root * root * root);
}

/* Adds vectors [v0, v1) of sums to those of the points from the i-th on, and clears them. */
VECTOR_FUNCTION void add_sums(const fmm_pair_lattice_call *call, int64_t i, int v0, int v1, shape q, fmm_vector f[][MAX_SUMS]) {
  int n_sums = (q.gradient ? 4 : 1) * q.columns;
#pragma GCC unroll 4
  for (int v = v0; v < v1; v++)
#pragma GCC unroll 16
    for (int k = 0; k < n_sums; k++) {
      double_vector *sums = (double_vector *)(call->sums[k] + i + v * LANES), factor = factor_of(call, q, k) - (double_vector){0};
#ifdef FMM_SINGLE
      const union { fmm_vector all; half_float_vector half[2]; } parts = {f[v][k]};
      for (int h = 0; h < 2; h++) sums[h] += factor * doubles_of(parts.half[h]);
#else
      sums[0] += factor * f[v][k];
#endif
      f[v][k] = (fmm_vector){0};
    }
}

/* The surface onto vectors [v0, v1) of the points from the i-th on. */
VECTOR_FUNCTION void rows_onto_vectors(const fmm_pair_lattice_call *call, int64_t i, int v0, int v1, const planes_table *t, const fmm_scalar *params,
                                          shape q, pair_function *pair) {
  fmm_vector f[VECTORS][MAX_SUMS] = {{{0}}};
#define ACT(row, axis, begun) row_onto_points(call, row, axis, v0, v1, t, begun, params, q, pair, f)
#ifdef FMM_SINGLE
#define AFTER() add_sums(call, i, v0, v1, q, f)
#else
#define AFTER() (void)0
#endif
  FOR_ROWS(call->row, call->row + call->n_rows, t, ACT, AFTER);
#undef ACT
#undef AFTER
#ifndef FMM_SINGLE
  add_sums(call, i, v0, v1, q, f);
#endif
}

/* The most vectors whose n_sums sums leave room in the registers. */
#define MOST_VECTORS(n_sums) (VECTORS * (n_sums) + 10 <= VECTOR_REGISTERS ? VECTORS : 2)

/* RUN(i, vectors) for all vectors of points, the i-th point's on; `vectors` is a constant: `most`, 2, or where it is the last of an odd number 1. */
#define FOR_VECTORS(most, RUN)                                                        \
  do {                                                                                \
    int64_t i_ = 0, left_ = (call->n_points + LANES - 1) / LANES;                     \
    for (; (most) > 2 && left_ >= (most); left_ -= (most), i_ += (most) * LANES) RUN(i_, (most)); \
    for (; left_ >= 2; left_ -= 2, i_ += 2 * LANES) RUN(i_, 2);                       \
    if (left_) RUN(i_, ((int)LANES < (int)FMM_PAIR_MAX_LANES ? 2 : 1)); /* points are padded to FMM_PAIR_MAX_LANES */ \
  } while (0)

/* Vectors of points at once where their sums leave room in the registers. */
VECTOR_FUNCTION void surface_onto_vectors(const fmm_pair_lattice_call *call, int64_t i, int vectors, const planes_table *t, const fmm_scalar *params, shape q, pair_function *pair) {
  measure(call, i, vectors, q, t);
  if (vectors * (q.gradient ? 4 : 1) * q.columns + 4 <= VECTOR_REGISTERS) rows_onto_vectors(call, i, 0, vectors, t, params, q, pair);
  else
    for (int v = 0; v < vectors; v++) rows_onto_vectors(call, i, v, v + 1, t, params, q, pair);
}

VECTOR_FUNCTION void surface_onto_points(const fmm_pair_lattice_call *call, shape q, pair_function *pair) {
  PLANES_TABLE(t);
  fmm_scalar params[FMM_MAX_PARAMS];
  if (!q.suited) return;
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = (fmm_scalar)call->params[k];
#define RUN(i, vectors) surface_onto_vectors(call, i, vectors, &t, params, q, pair)
  FOR_VECTORS(MOST_VECTORS((q.gradient ? 4 : 1) * q.columns), RUN);
#undef RUN
}

VECTOR_FUNCTION void add_lanes(const fmm_pair_lattice_call *call, const fmm_vector *lanes, shape q) {
  const double factor = factor_of(call, q, 0);
  for (int64_t m = 0; m < call->n_surface; m += LANES)
    for (int c = 0; c < q.columns; c++) {
      fmm_vector rows[LANES];
#pragma GCC unroll 16
      for (int l = 0; l < LANES; l++) rows[l] = m + l < call->n_surface ? lanes[(m + l) * q.columns + c] : (fmm_vector){0};
      fmm_vector sums = lane_sums(rows);
      for (int l = 0; l < LANES && m + l < call->n_surface; l++) call->sums[c][m + l] += factor * (double)sums[l];
    }
}

/* Vectors [0, vectors) of points from the i-th on, onto the surface. */
VECTOR_FUNCTION void vectors_onto_surface(const fmm_pair_lattice_call *call, int64_t i, int vectors, const planes_table *t, const fmm_scalar *params, shape q, pair_function *pair,
                                          fmm_vector *lanes) {
  fmm_vector s[VECTORS][MAX_COLUMNS];
  measure(call, i, vectors, q, t);
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++)
#pragma GCC unroll 4
    for (int c = 0; c < q.columns; c++) s[v][c] = *(const fmm_vector *)((const fmm_scalar *)call->density[c] + i + v * LANES);
#define ACT(row, axis, begun) points_onto_row(row, axis, vectors, t, begun, params, q, pair, s, lanes)
#define AFTER() (void)0
  FOR_ROWS(call->row, call->row + call->n_rows, t, ACT, AFTER);
#undef ACT
#undef AFTER
}

VECTOR_FUNCTION void points_onto_surface(const fmm_pair_lattice_call *call, shape q, pair_function *pair) {
  PLANES_TABLE(t);
  fmm_scalar params[FMM_MAX_PARAMS];
  fmm_vector *lanes = call->lanes;
  if (!q.suited) return;
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = (fmm_scalar)call->params[k];
  for (int64_t k = 0; k < (int64_t)call->n_surface * q.columns; k++) lanes[k] = (fmm_vector){0};
#define RUN(i, vectors) vectors_onto_surface(call, i, vectors, &t, params, q, pair, lanes)
  FOR_VECTORS(MOST_VECTORS(q.columns), RUN);
#undef RUN
  add_lanes(call, lanes, q);
}

#ifdef FMM_BEGINS_ROOTS
#define SCALES(name) 0
#else
#define SCALES(name) (SCALED && info_##name.inverse_distance)
#endif
#define SHAPE(name, n_columns, with_gradient, onto_surface) \
  (shape) { .columns = n_columns, .gradient = with_gradient, .onto = onto_surface, .suited = fmm_pair_suits_lattice(&info_##name), .scaled = SCALES(name) }
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
