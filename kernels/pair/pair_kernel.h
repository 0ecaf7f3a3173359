/* The vectorised kernels of one instruction set and accuracy, for every pair interaction of the list. Included once by each of
 * pair_full.c, pair_reduced.c, pair_single.c, which define FMM_PAIR_VARIANT and the accuracy (vector.h).
 * Lanes are over targets: a few vectors of targets stay in registers while the sources are broadcast one after another. */
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

#define FMM_PAIR_NAME(name) open_##name
#define FMM_RSQRT(r2) vector_rsqrt(r2)
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_NAME
#undef FMM_RSQRT
#define FMM_PAIR_NAME(name) guarded_##name
#define FMM_RSQRT(r2) vector_rsqrt_guarded(r2)
#include "kernels/fmm_pair_list.h"

typedef void pair_function(fmm_vector, fmm_vector, fmm_vector, const fmm_vector *, const fmm_vector *, const fmm_scalar *, int, int, fmm_vector *);
enum { MAX_DENSITIES = FMM_PAIR_MAX_COMPONENTS * FMM_PAIR_MAX_COLUMNS, MAX_SUMS = FMM_PAIR_MAX_VALUES * FMM_PAIR_MAX_COLUMNS };

typedef struct shape { int components, values, takes_normals, columns, gradient; } shape;

VECTOR_FUNCTION fmm_vector load_target(const fmm_pair_call *call, int axis, int i) {
  return *(const fmm_vector *)((const fmm_scalar *)call->target[axis] + i);
}

VECTOR_FUNCTION void add_sums(const fmm_pair_call *call, int i, int n, const fmm_vector *f) {
#pragma GCC unroll 48
  for (int k = 0; k < n; k++) *(fmm_vector *)(call->sums[k * call->sums_step] + i) += f[k];
}

/* All sources onto `vectors` (1 or 2) vectors of targets from the i-th on. Constant arguments after inlining. */
VECTOR_FUNCTION void sum_group(const fmm_pair_call *call, int i, int vectors, shape q, pair_function *pair) {
  const fmm_scalar *px = call->source[0], *py = call->source[1], *pz = call->source[2];
  int second = vectors > 1 ? i + LANES : i, n_densities = q.components * q.columns;
  const fmm_vector x0 = load_target(call, 0, i), y0 = load_target(call, 1, i), z0 = load_target(call, 2, i);
  const fmm_vector x1 = load_target(call, 0, second), y1 = load_target(call, 1, second), z1 = load_target(call, 2, second);
  fmm_vector f0[MAX_SUMS] = {{0}}, f1[MAX_SUMS] = {{0}};
  fmm_scalar params[FMM_MAX_PARAMS];
  const fmm_scalar *density[MAX_DENSITIES];
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = (fmm_scalar)call->params[k];
#pragma GCC unroll 16
  for (int k = 0; k < n_densities; k++) density[k] = call->density[k];
  for (int64_t j = 0; j < call->n_sources; j++) {
    fmm_vector s[MAX_DENSITIES], normal[3] = {{0}};
    const fmm_vector sx = broadcast(px[j]), sy = broadcast(py[j]), sz = broadcast(pz[j]);
#pragma GCC unroll 16
    for (int k = 0; k < n_densities; k++) s[k] = broadcast(density[k][j]);
    if (q.takes_normals)
      for (int k = 0; k < 3; k++) normal[k] = broadcast(((const fmm_scalar *)call->normal[k])[j]);
    pair(x0 - sx, y0 - sy, z0 - sz, s, normal, params, q.columns, q.gradient, f0);
    if (vectors > 1) pair(x1 - sx, y1 - sy, z1 - sz, s, normal, params, q.columns, q.gradient, f1);
  }
  add_sums(call, i, q.values * q.columns, f0);
  if (vectors > 1) add_sums(call, second, q.values * q.columns, f1);
}

/* Two vectors at a time where their sums leave room for it in the registers. */
VECTOR_FUNCTION void sum_block(const fmm_pair_call *call, shape q, pair_function *pair) {
  int i = 0;
  if (2 * q.values * q.columns + 6 <= VECTOR_REGISTERS)
    for (; i + LANES < call->n_targets; i += 2 * LANES) sum_group(call, i, 2, q, pair);
  for (; i < call->n_targets; i += LANES) sum_group(call, i, 1, q, pair);
}

#define SHAPE(name, n_columns, with_gradient)                                                                                      \
  (shape) {                                                                                                                       \
    .components = info_##name.components, .values = info_##name.outputs * (with_gradient ? 4 : 1), .takes_normals = info_##name.takes_normals, \
    .columns = n_columns, .gradient = with_gradient                                                                               \
  }
#define DEFINE_KERNELS(name, gradient)                                                                                             \
  static void name##_##gradient##_1(const fmm_pair_call *call) { sum_block(call, SHAPE(name, 1, gradient), open_##name); }         \
  static void name##_##gradient##_2(const fmm_pair_call *call) { sum_block(call, SHAPE(name, 2, gradient), open_##name); }         \
  static void name##_##gradient##_4(const fmm_pair_call *call) { sum_block(call, SHAPE(name, 4, gradient), open_##name); }         \
  static void name##_##gradient##_guarded(const fmm_pair_call *call) { sum_block(call, SHAPE(name, 1, gradient), guarded_##name); }
#define DEFINE_PAIR(name) DEFINE_KERNELS(name, 0) DEFINE_KERNELS(name, 1)
FMM_PAIR_LIST(DEFINE_PAIR)

#define KERNELS(name, gradient) {name##_##gradient##_1, name##_##gradient##_2, name##_##gradient##_4, name##_##gradient##_guarded}
#define PAIR_ROW(name) {{KERNELS(name, 0), KERNELS(name, 1)}},
#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
const fmm_pair_kernels JOIN(fmm_pair_kernels_, FMM_PAIR_VARIANT, FMM_SIMD_SUFFIX)[] = {FMM_PAIR_LIST(PAIR_ROW)};
