/* The vectorised kernels of one instruction set and accuracy, for every pair interaction of the list. Included once by each of
 * pair_full.c, pair_near.c, pair_reduced.c, pair_single.c, pair_coarse.c, which define FMM_PAIR_VARIANT and the accuracy (vector.h).
 * Lanes are over targets: a few vectors of targets stay in registers while the sources are broadcast one after another.
 *
 * Of radial pairs the distance and the root's estimate are taken AHEAD sources before they are used. One pair is a chain of some 45 cycles'
 * latency, and a core's scheduler holds only two or three pairs' instructions; cut in two, whose parts belong to different sources,
 * each part finds its operands ready. */
#include "kernels/pair/pair_simd.h"
#include "kernels/pair/vector.h"

/* Compile-time copies of the infos: shapes must be constants here. */
#define FMM_PAIR_INFO(name) static const fmm_pair_info info_##name
#define FMM_PAIR_INFO_PASS
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_INFO_PASS

#define FMM_REAL fmm_vector
#define FMM_SCALAR fmm_scalar
#define FMM_PAIR_FUNCTION VECTOR_FUNCTION
#define FMM_CONSTANT(c) vector_constant(c)
#define FMM_EXP(x) vector_exp(x)
#define FMM_SQUARE(dx, dy, dz) ((dx) * (dx) + (dy) * (dy) + (dz) * (dz))
enum { EXTRAS = 5, SQUARE = 3, ESTIMATE = 4, ROOT = 3 }; /* places of what comes behind a normal */

#define FMM_PAIR_NAME(name) open_##name
#define FMM_RSQRT(r2) vector_rsqrt(r2)
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
#define FMM_PAIR_NAME(name) guarded_##name
#define FMM_RSQRT(r2) vector_rsqrt_guarded(r2)
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
/* The same with a multiple of the root. */
#define FMM_PAIR_NAME(name) open_scaled_##name
#define FMM_RSQRT(r2) rsqrt_refine_scaled(r2, rsqrt_estimate(r2))
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
#define FMM_PAIR_NAME(name) guarded_scaled_##name
#define FMM_RSQRT(r2) where_not_zero(r2, rsqrt_refine_scaled(r2, rsqrt_estimate(r2)))
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
#define FMM_PAIR_NAME(name) rooted_##name
#define FMM_RSQRT(r2) normal[ROOT]
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
#undef FMM_SQUARE
/* Staged: what was measured comes behind the normal. */
#define FMM_SQUARE(dx, dy, dz) normal[SQUARE]
#define FMM_PAIR_NAME(name) staged_open_##name
#define FMM_RSQRT(r2) rsqrt_refine(r2, normal[ESTIMATE])
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
#define FMM_PAIR_NAME(name) staged_guarded_##name
#define FMM_RSQRT(r2) where_not_zero(r2, rsqrt_refine(r2, normal[ESTIMATE]))
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
#define FMM_PAIR_NAME(name) staged_open_scaled_##name
#define FMM_RSQRT(r2) rsqrt_refine_scaled(r2, normal[ESTIMATE])
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
#define FMM_PAIR_NAME(name) staged_guarded_scaled_##name
#define FMM_RSQRT(r2) where_not_zero(r2, rsqrt_refine_scaled(r2, normal[ESTIMATE]))
#include "kernels/fmm_pair_list.h"

typedef void pair_function(fmm_vector, fmm_vector, fmm_vector, const fmm_vector *, const fmm_vector *, const fmm_scalar *, int, int, fmm_vector *);
enum { MAX_DENSITIES = FMM_PAIR_MAX_COMPONENTS * FMM_PAIR_MAX_COLUMNS, MAX_SUMS = FMM_PAIR_MAX_VALUES * FMM_PAIR_MAX_COLUMNS };

#if defined(FMM_SIMD_AVX512_BUILD) && defined(FMM_SINGLE)
enum { STAGED = 0, STAGED_GRADIENT = 0 }; /* cores with it have larger schedulers: nothing gained */
#elif defined(FMM_SIMD_AVX512_BUILD)
enum { STAGED = 1, STAGED_GRADIENT = 0 }; /* with gradient 5 % gained on Zen 4, 8 % lost on an Intel Xeon */
#else
enum { STAGED = 1, STAGED_GRADIENT = 1 };
#endif
#ifndef FMM_SINGLE
_Static_assert(STAGED, "the distances of sets that are apart come as what was measured");
#endif
#if defined(FMM_SIMD_AVX512_BUILD) && !defined(FMM_SINGLE)
enum { VECTORS = 2, APART_VECTORS = 4, MAX_VECTORS = 4, AHEAD = 4 };
#else
enum { VECTORS = 2, APART_VECTORS = 2, MAX_VECTORS = 2, AHEAD = 4 };
#endif
/* What a kernel is compiled for. vectors: of targets at once; staged: squares and estimates come from what was measured, `ahead` sources before; apart (pair_sums_apart.c; single: nothing is noted). */
typedef struct shape { int components, values, takes_normals, has_degree, columns, gradient, guarded, apart, staged, ahead, scaled, products, vectors; } shape;

/* Coordinates are doubles, int32 quanta whose differences are exact (single), or floats (coarse). */
#ifdef FMM_SINGLE
#ifdef FMM_COARSE
typedef float coordinate;
typedef fmm_vector coordinate_vector;
#define DIFFERENCE(target, source) ((target) - (source))
#else
typedef int32_t coordinate;
typedef fmm_mask coordinate_vector;
#define DIFFERENCE(target, source) __builtin_convertvector((target) - (source), fmm_vector)
#endif
#include "kernels/pair/float_vectors.h"
enum { FLUSH = 64 }; /* sources summed in float before they go to the double sums */
#else
typedef double coordinate;
typedef fmm_vector coordinate_vector;
#define DIFFERENCE(target, source) ((target) - (source))
enum { FLUSH = 1 << 30 };
#endif

/* One vector of targets with what is summed on it. */
typedef struct lane_group {
  coordinate_vector x, y, z;
  fmm_vector square; /* double, apart */
  fmm_vector nearest;
  fmm_mask apart; /* guarded: sources that are not at distance zero */
} lane_group;

VECTOR_FUNCTION lane_group load_group(const fmm_pair_call *call, int i) {
  return (lane_group){.x = *(const coordinate_vector *)((const coordinate *)call->target[0] + i),
                      .y = *(const coordinate_vector *)((const coordinate *)call->target[1] + i),
                      .z = *(const coordinate_vector *)((const coordinate *)call->target[2] + i), .nearest = vector_constant(3e38)};
}

/* What value k (0: a potential, else derivatives, in which the root is cubed) is to be multiplied with at its end. */
VECTOR_FUNCTION fmm_vector of_scaled(shape q, int k, fmm_vector sum) {
  return !q.scaled ? sum : sum * vector_constant(k ? 1. / ROOT_MULTIPLE / ROOT_MULTIPLE / ROOT_MULTIPLE : 1. / ROOT_MULTIPLE);
}

/* 1 / s, and 0 of 0: lanes that pad. */
VECTOR_FUNCTION fmm_vector inverse_of(fmm_vector s) { return where_not_zero(s, 1 / s); }

VECTOR_FUNCTION void add_sums(const fmm_pair_call *call, int i, shape q, const fmm_vector *f) {
  fmm_vector by = {0};
  if (q.products) by = inverse_of(*(const fmm_vector *)((const fmm_scalar *)call->target_density[0] + i));
#pragma GCC unroll 28
  for (int k = 0; k < q.values * q.columns; k++) {
    double *sums = call->sums[k * call->sums_step] + i;
    fmm_vector sum = of_scaled(q, k / q.columns, f[k]);
    if (q.products) sum *= by;
#ifdef FMM_SINGLE
    const union { fmm_vector all; half_float_vector half[2]; } parts = {sum};
    for (int h = 0; h < 2; h++) *(double_vector *)(sums + h * LANES / 2) += __builtin_convertvector(parts.half[h], double_vector);
#else
    *(fmm_vector *)sums += sum;
#endif
  }
}

#ifdef FMM_SINGLE
/* Notes the nearest pair; where some may be at distance zero it leaves them out and counts the others. */
VECTOR_FUNCTION void track_square(lane_group *g, fmm_vector r2, int guarded) {
  if (guarded) note_distance(r2, &g->nearest, &g->apart);
  else g->nearest = vector_min(r2, g->nearest);
}

VECTOR_FUNCTION void track(lane_group *g, fmm_vector dx, fmm_vector dy, fmm_vector dz, int guarded) { track_square(g, dx * dx + dy * dy + dz * dz, guarded); }

VECTOR_FUNCTION void store_tracking(const fmm_pair_call *call, int i, const lane_group *g, int guarded) {
  *(fmm_vector *)call->nearest = vector_min(g->nearest, *(fmm_vector *)call->nearest);
  if (guarded) *(fmm_mask *)(call->zeros + i) += (fmm_integer)call->n_sources - g->apart;
}
#else
VECTOR_FUNCTION void track_square(lane_group *g, fmm_vector r2, int guarded) { (void)0; }
VECTOR_FUNCTION void track(lane_group *g, fmm_vector dx, fmm_vector dy, fmm_vector dz, int guarded) { (void)0; }
VECTOR_FUNCTION void store_tracking(const fmm_pair_call *call, int i, const lane_group *g, int guarded) { (void)0; }
#endif

typedef struct difference { fmm_vector x, y, z; } difference;

/* Coordinates of source j, the same in all lanes. */
typedef struct one_source { coordinate_vector x, y, z; } one_source;
VECTOR_FUNCTION one_source load_source(const fmm_pair_call *call, int64_t j) {
  const coordinate *px = call->source[0], *py = call->source[1], *pz = call->source[2];
  const coordinate_vector none = {0};
  return (one_source){px[j] - none, py[j] - none, pz[j] - none};
}

/* Targets minus source. */
VECTOR_FUNCTION difference difference_between(const lane_group *g, one_source s, shape q) {
  difference d = {DIFFERENCE(g->x, s.x), DIFFERENCE(g->y, s.y), DIFFERENCE(g->z, s.z)};
#ifdef FMM_SINGLE
  const fmm_vector unit = vector_constant(1 / FMM_PAIR_QUANTA_OF_UNIT);
  if (!q.has_degree) d.x *= unit, d.y *= unit, d.z *= unit;
#endif
  return d;
}
VECTOR_FUNCTION difference difference_of(const fmm_pair_call *call, int64_t j, const lane_group *g, shape q) {
  return difference_between(g, load_source(call, j), q);
}

/* Squared distances of targets from source j. */
VECTOR_FUNCTION fmm_vector square_of(const fmm_pair_call *call, int64_t j, const lane_group *g, difference d, shape q) {
#ifndef FMM_SINGLE
  if (q.apart) {
    const one_source s = load_source(call, j);
    return g->x * s.x + (g->y * s.y + (g->z * s.z + (g->square + broadcast(call->square[1][j]))));
  }
#endif
  return d.x * d.x + d.y * d.y + d.z * d.z;
}

/* What is taken of a source ahead of its turn, for each vector of targets. */
typedef struct measured { fmm_vector square[MAX_VECTORS], estimate[MAX_VECTORS]; } measured;

/* Nothing of pairs that are not radial but what the check of single precision wants. */
VECTOR_FUNCTION void measure(const fmm_pair_call *call, int64_t j, shape q, int vectors, lane_group *g, measured *m) {
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    difference d = difference_of(call, j, &g[v], q);
    if (!q.apart) track(&g[v], d.x, d.y, d.z, q.guarded);
    if (!q.staged) continue;
    m->square[v] = square_of(call, j, &g[v], d, q);
    m->estimate[v] = rsqrt_estimate(m->square[v]);
  }
}

VECTOR_FUNCTION void add_source(const fmm_pair_call *call, int64_t j, const fmm_scalar *params, shape q, pair_function *pair, int vectors,
                                const lane_group *g, const measured *m, fmm_vector f[][MAX_SUMS]) {
  fmm_vector s[MAX_DENSITIES], extras[EXTRAS] = {{0}};
  int n_densities = q.components * q.columns;
#pragma GCC unroll 16
  for (int k = 0; k < n_densities; k++) s[k] = broadcast(((const fmm_scalar *)call->density[k])[j]);
  if (q.takes_normals)
    for (int k = 0; k < 3; k++) extras[k] = broadcast(((const fmm_scalar *)call->normal[k])[j]);
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    difference d = difference_of(call, j, &g[v], q);
    if (q.staged) extras[SQUARE] = m->square[v], extras[ESTIMATE] = m->estimate[v];
    pair(d.x, d.y, d.z, s, extras, params, q.columns, q.gradient, f[v]);
  }
}

/* MEASURE(j, m) for every source j of [begin, end), `ahead` (0 or AHEAD) before its ACT(j, m). */
#define FOR_SOURCES(begin, end, ahead, MEASURE, ACT)                            \
  do {                                                                         \
    measured ring[AHEAD];                                                      \
    const int64_t first_ = (end) - (ahead);                                    \
    for (int64_t j = (begin); j < (begin) + (ahead) && j < (end); j++) MEASURE(j, &ring[j % AHEAD]); \
    int64_t j_ = (begin);                                                      \
    for (; j_ < first_; j_++) {                                                \
      measured now = ring[j_ % AHEAD];                                         \
      MEASURE(j_ + (ahead), (ahead) ? &ring[j_ % AHEAD] : &now);               \
      ACT(j_, &now);                                                           \
    }                                                                          \
    for (; j_ < (end); j_++) ACT(j_, &ring[j_ % AHEAD]);                        \
  } while (0)

/* Sources [begin, end) onto `vectors` vectors of targets. */
VECTOR_FUNCTION void sum_sources(const fmm_pair_call *call, int64_t begin, int64_t end, const fmm_scalar *params, shape q, pair_function *pair,
                                 int vectors, lane_group *g, fmm_vector f[][MAX_SUMS]) {
#define MEASURE(j, m) measure(call, j, q, vectors, g, m)
#define ACT(j, m) add_source(call, j, params, q, pair, vectors, g, m, f)
  FOR_SOURCES(begin, end, q.ahead, MEASURE, ACT);
#undef ACT
}

/* All sources onto `vectors` (1 .. MAX_VECTORS) vectors of targets from the i-th on. Constant arguments after inlining. */
VECTOR_FUNCTION void sum_group(const fmm_pair_call *call, int i, int vectors, shape q, pair_function *pair) {
  lane_group g[MAX_VECTORS];
  fmm_scalar params[FMM_MAX_PARAMS];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) g[v] = load_group(call, i + v * LANES);
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = (fmm_scalar)call->params[k];
  for (int64_t j = 0; j < call->n_sources; j += FLUSH) {
    int64_t end = call->n_sources - j > FLUSH ? j + FLUSH : call->n_sources;
    fmm_vector f[MAX_VECTORS][MAX_SUMS] = {{{0}}};
    sum_sources(call, j, end, params, q, pair, vectors, g, f);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) add_sums(call, i + v * LANES, q, f[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) store_tracking(call, i + v * LANES, &g[v], q.guarded);
}

/* Two vectors at a time where their sums leave room for it in the registers (four gained nothing on AVX2 and AVX-512). */
VECTOR_FUNCTION void sum_block(const fmm_pair_call *call, shape q, pair_function *pair) {
  int i = 0;
  if (VECTORS * q.values * q.columns + 6 <= VECTOR_REGISTERS)
    for (; i + (VECTORS - 1) * LANES < call->n_targets; i += VECTORS * LANES) sum_group(call, i, VECTORS, q, pair);
  for (; i < call->n_targets; i += LANES) sum_group(call, i, 1, q, pair);
}

#include "kernels/pair/pair_kernel_both.h"

/* Sets that are apart. Four vectors of targets (AVX-512, double) give as many chains as a scheduler needs; nothing is taken ahead then. */
VECTOR_FUNCTION shape apart_shape(shape q) {
  q.apart = 1;
  if (APART_VECTORS > VECTORS && APART_VECTORS * (2 * q.values + 4) <= VECTOR_REGISTERS) q.vectors = APART_VECTORS, q.ahead = 0;
  return q;
}

#define SHAPE(name, n_columns, with_gradient, is_guarded)                                                                                \
  (shape) {                                                                                                                       \
    .components = info_##name.components, .values = info_##name.outputs * (with_gradient ? 4 : 1), .takes_normals = info_##name.takes_normals, \
    .has_degree = info_##name.has_degree,                                                                                         \
    .columns = n_columns, .gradient = with_gradient, .guarded = is_guarded, .staged = STAGES(name, with_gradient), .ahead = STAGES(name, with_gradient) ? AHEAD : 0, .vectors = VECTORS, .scaled = SCALES(name)                 \
  }
#define STAGES(name, with_gradient) (((with_gradient) ? STAGED_GRADIENT : STAGED) && info_##name.radial)
#define SCALES(name) (SCALED && info_##name.inverse_distance)
#define FORM(name, kind, with_gradient)                                                                                                               \
  (STAGES(name, with_gradient) ? (SCALES(name) ? staged_##kind##_scaled_##name : staged_##kind##_##name) : SCALES(name) ? kind##_scaled_##name : kind##_##name)
#define DEFINE_KERNELS(name, gradient)                                                                                             \
  static void name##_##gradient##_1(const fmm_pair_call *call) { sum_block(call, SHAPE(name, 1, gradient, 0), FORM(name, open, gradient)); }         \
  static void name##_##gradient##_2(const fmm_pair_call *call) { sum_block(call, SHAPE(name, 2, gradient, 0), FORM(name, open, gradient)); }         \
  static void name##_##gradient##_4(const fmm_pair_call *call) { sum_block(call, SHAPE(name, 4, gradient, 0), FORM(name, open, gradient)); }         \
  static void name##_##gradient##_guarded(const fmm_pair_call *call) { sum_block(call, SHAPE(name, 1, gradient, 1), FORM(name, guarded, gradient)); } \
  DEFINE_BOTH(name, gradient, both, 0)
#define DEFINE_BOTH(name, gradient, form, is_apart)                                                                                  \
  __attribute__((noinline)) static void name##_##gradient##_##form##_chunk(const fmm_pair_call *call) {                                                    \
    shape q = SHAPE(name, 1, gradient, 0);                                                                                   \
    if (is_apart) q = apart_shape(q);                                                                                               \
    sum_chunk_both(call, q, FORM(name, open, gradient));                                                                           \
  }                                                                                                                                 \
  static void name##_##gradient##_##form(const fmm_pair_call *call) {                                                                         \
    shape q = SHAPE(name, 1, gradient, 0), once = q;                                                                                \
    if (is_apart) q = apart_shape(q), once.apart = 1;                                                                               \
    once.scaled = 0;                                                                                                                \
    if (VECTORS * (2 * q.values + 4) <= VECTOR_REGISTERS) sum_block_both(call, q, name##_##gradient##_##form##_chunk);                   \
    else sum_block_batch(call, once, STAGES(name, gradient) ? rooted_##name : open_##name);                                  \
  }
/* By products of densities, potential and gradient of inverse distances, where registers hold two vectors of targets. */
#define BY_PRODUCTS(name) (VECTOR_REGISTERS >= 32 && info_##name.inverse_distance)
#define DEFINE_PRODUCTS(name, form, otherwise, is_apart)                                                                              \
  __attribute__((noinline)) static void name##_1_##form##_chunk(const fmm_pair_call *call) {                                                             \
    shape q = SHAPE(name, 1, 1, 0);                                                                                                 \
    q.products = 1, q.apart = is_apart;                                                                                             \
    sum_chunk_both(call, q, NULL);                                                      \
  }                                                                                                                                 \
  static void name##_1_##form(const fmm_pair_call *call) {                                                                                  \
    shape q = SHAPE(name, 1, 1, 0);                                                                                                 \
    if (BY_PRODUCTS(name)) sum_block_both(call, q, name##_1_##form##_chunk);                                                        \
    else name##_1_##otherwise(call);                                                                                                \
  }
#define APART_0(name) name##_0_apart
#ifdef FMM_SINGLE
#define APART_1(name) name##_1_apart
#define DEFINE_PAIR(name) DEFINE_KERNELS(name, 0) DEFINE_KERNELS(name, 1) DEFINE_BOTH(name, 0, apart, 1) DEFINE_BOTH(name, 1, apart, 1) DEFINE_PRODUCTS(name, products, both, 0) DEFINE_PRODUCTS(name, products_apart, apart, 1)
#define PRODUCTS_APART(name) name##_1_products_apart
#else
#define APART_1(name) name##_1_both /* derivatives need the differences */
#define DEFINE_PAIR(name) DEFINE_KERNELS(name, 0) DEFINE_KERNELS(name, 1) DEFINE_BOTH(name, 0, apart, 1) DEFINE_PRODUCTS(name, products, both, 0)
#define PRODUCTS_APART(name) name##_1_products
#endif
#define PRODUCTS_0(name) name##_0_both, name##_0_apart /* nothing gained */
#define PRODUCTS_1(name) name##_1_products, PRODUCTS_APART(name)
FMM_PAIR_LIST(DEFINE_PAIR)

#define KERNELS(name, gradient) {name##_##gradient##_1, name##_##gradient##_2, name##_##gradient##_4, name##_##gradient##_guarded, name##_##gradient##_both, APART_##gradient(name), PRODUCTS_##gradient(name)}
#define PAIR_ROW(name) {{KERNELS(name, 0), KERNELS(name, 1)}},
#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
const fmm_pair_kernels JOIN(fmm_pair_kernels_, FMM_PAIR_VARIANT, FMM_SIMD_SUFFIX)[] = {FMM_PAIR_LIST(PAIR_ROW)};
