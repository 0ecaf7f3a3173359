/* Part of pair_kernel.h: sums in both directions where two vectors of targets and their sums do not fit into the registers (pair_kernel_both.h). For each
 * source the loop runs over the vectors of targets: sums on the source stay in registers, sums on the targets in the block's rows, which the
 * first-level cache holds, and how short a piece of sources is makes no difference.
 *
 * Staged, a batch of sources passes over the targets several times, to make all roots first: one pair is a chain of some 60 cycles' latency, of which a
 * core's scheduler holds only two or three; each pass is a short one. In double a pass takes squares and estimates, two vectors' as one of floats, and
 * another the roots; in single, where nothing is converted, one pass does both. */
#if !defined(FMM_SINGLE) && defined(FMM_SIMD_AVX2_BUILD)
#include "kernels/pair/paired_root.h"
typedef half_float_vector begun_root;
VECTOR_FUNCTION void begin_roots(fmm_vector *square, begun_root *begun) {
  *(float_vector *)begun = (float_vector)_mm256_rsqrt_ps((__m256)floats_of(square[0], square[1]));
}
VECTOR_FUNCTION void end_roots(int64_t n, fmm_vector *square, const begun_root *begun) {
  for (int64_t k = 0; k < n; k++) square[k] = rsqrt_refine(square[k], doubles_of(begun[k]));
}
#else
typedef fmm_vector begun_root;
VECTOR_FUNCTION void begin_roots(fmm_vector *square, begun_root *begun) { square[0] = vector_rsqrt(square[0]), square[1] = vector_rsqrt(square[1]); }
VECTOR_FUNCTION void end_roots(int64_t n, fmm_vector *square, const begun_root *begun) { (void)0; }
#endif

enum { BLOCK_VECTORS = FMM_PAIR_BLOCK / LANES, BATCH = LANES < 4 ? LANES : 4 };
_Static_assert(!STAGED_GRADIENT || FMM_PAIR_MAX_LANES % (2 * LANES) == 0, "targets are padded to pairs of vectors");

/* Of a batch of sources with all vectors of targets, [source * vectors + vector]. */
typedef struct batch_roots {
  fmm_vector square[BATCH * BLOCK_VECTORS]; /* then the root */
  _Alignas(64) begun_root begun[BATCH * BLOCK_VECTORS];
} batch_roots;

/* Source j with an even number of vectors of targets; the nearest pair is noted. */
VECTOR_FUNCTION void begin_source(const fmm_pair_call *call, int64_t j, int vectors, shape q, fmm_vector *square, begun_root *begun, fmm_vector *nearest) {
  const one_source source = load_source(call, j);
  for (int64_t i = 0; i < vectors; i += 2) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; v++) {
      lane_group g = load_group(call, (int)(i + v) * LANES);
      difference d = difference_between(&g, source, q);
      g.nearest = *nearest;
      if (!q.apart) track(&g, d.x, d.y, d.z, 0);
      *nearest = g.nearest;
      square[i + v] = d.x * d.x + d.y * d.y + d.z * d.z;
    }
    begin_roots(square + i, begun + i);
  }
}

/* Source j with all targets; sums[value][vector] on the targets are added to, back[value] are those on the source, a lane a target. */
VECTOR_FUNCTION void sum_source_both(const fmm_pair_call *call, int64_t j, int vectors, const fmm_scalar *params, shape q, pair_function *pair,
                                     const fmm_vector *root, fmm_vector (*sums)[BLOCK_VECTORS], fmm_vector *back, fmm_vector *nearest) {
  fmm_vector s[FMM_PAIR_MAX_COMPONENTS], b[FMM_PAIR_MAX_VALUES] = {{0}};
#pragma GCC unroll 4
  for (int k = 0; k < q.components; k++) s[k] = broadcast(((const fmm_scalar *)call->density[k])[j]);
  const one_source source = load_source(call, j);
  for (int i = 0; i < vectors; i++) {
    fmm_vector t[FMM_PAIR_MAX_COMPONENTS], f[FMM_PAIR_MAX_VALUES], extras[EXTRAS] = {{0}};
    lane_group g = load_group(call, i * LANES);
    difference d = difference_between(&g, source, q);
    if (q.staged) extras[ROOT] = root[i];
    else if (!q.apart) {
      g.nearest = *nearest;
      track(&g, d.x, d.y, d.z, 0);
      *nearest = g.nearest;
    }
#pragma GCC unroll 4
    for (int k = 0; k < q.components; k++) t[k] = ((const fmm_vector *)call->target_density[k])[i];
#pragma GCC unroll 12
    for (int k = 0; k < q.values; k++) f[k] = sums[k][i];
    pair(d.x, d.y, d.z, s, extras, params, 1, q.gradient, f);
    pair(-d.x, -d.y, -d.z, t, extras, params, 1, q.gradient, b);
#pragma GCC unroll 12
    for (int k = 0; k < q.values; k++) sums[k][i] = f[k];
  }
#pragma GCC unroll 12
  for (int k = 0; k < q.values; k++) back[k] = b[k];
}

/* At most BATCH sources. back: [source][value]. */
VECTOR_FUNCTION void sum_batch_both(const fmm_pair_call *call, int64_t begin, int64_t end, int vectors, const fmm_scalar *params, shape q, pair_function *pair,
                                    fmm_vector (*sums)[BLOCK_VECTORS], fmm_vector *back, fmm_vector *nearest) {
  batch_roots r;
  int even = (vectors + 1) / 2 * 2; /* targets are padded to as many */
  if (q.staged) {
    for (int64_t j = begin; j < end; j++) begin_source(call, j, even, q, r.square + (j - begin) * even, r.begun + (j - begin) * even, nearest);
    end_roots((end - begin) * even, r.square, r.begun);
  }
  for (int64_t j = begin; j < end; j++)
    sum_source_both(call, j, vectors, params, q, pair, r.square + (j - begin) * even, sums, back + (j - begin) * q.values, nearest);
}

/* Adds sums on LANES sources from the j-th on, [source][value], across lanes. */
VECTOR_FUNCTION void add_lanes_both(const fmm_pair_call *call, int64_t j, shape q, const fmm_vector *lanes) {
  for (int k = 0; k < q.values; k++) {
    fmm_vector rows[LANES];
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++) rows[l] = lanes[l * q.values + k];
    fmm_vector sums = of_scaled(q, k, lane_sums(rows));
    if (q.products)
      for (int l = 0; l < LANES && j + l < call->n_sources; l++) sums[l] /= ((const fmm_scalar *)call->density[0])[j + l];
    for (int l = 0; l < LANES; l++) call->back[k][j + l] = sums[l];
  }
}

/* Up to LANES sources, whose sums are added across lanes together. */
VECTOR_FUNCTION void sum_lanes_both(const fmm_pair_call *call, int64_t begin, int64_t end, int vectors, const fmm_scalar *params, shape q,
                                    pair_function *pair, fmm_vector (*sums)[BLOCK_VECTORS], fmm_vector *nearest) {
  fmm_vector back[LANES * FMM_PAIR_MAX_VALUES];
  for (int64_t k = (end - begin) * q.values; k < LANES * q.values; k++) back[k] = (fmm_vector){0};
  for (int64_t j = begin; j < end; j += BATCH)
    sum_batch_both(call, j, j + BATCH < end ? j + BATCH : end, vectors, params, q, pair, sums, back + (j - begin) * q.values, nearest);
  add_lanes_both(call, begin, q, back);
}

VECTOR_FUNCTION void sum_block_batch(const fmm_pair_call *call, shape q, pair_function *pair) {
  const int vectors = (call->n_targets + LANES - 1) / LANES;
  fmm_scalar params[FMM_MAX_PARAMS];
  fmm_vector nearest = vector_constant(3e38);
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = (fmm_scalar)call->params[k];
  for (int64_t begin = 0; begin < call->n_sources; begin += FLUSH) {
    int64_t end = call->n_sources - begin > FLUSH ? begin + FLUSH : call->n_sources;
#ifdef FMM_SINGLE
    fmm_vector sums[FMM_PAIR_MAX_VALUES][BLOCK_VECTORS];
    for (int k = 0; k < q.values; k++)
      for (int i = 0; i < vectors; i++) sums[k][i] = (fmm_vector){0};
#else
    fmm_vector(*sums)[BLOCK_VECTORS] = (fmm_vector(*)[BLOCK_VECTORS])call->sums;
#endif
    for (int64_t j = begin; j < end; j += LANES) sum_lanes_both(call, j, j + LANES < end ? j + LANES : end, vectors, params, q, pair, sums, &nearest);
#ifdef FMM_SINGLE
    for (int i = 0; i < vectors; i++) {
      fmm_vector f[FMM_PAIR_MAX_VALUES];
      for (int k = 0; k < q.values; k++) f[k] = sums[k][i];
      add_sums(call, i * LANES, q, f);
    }
#endif
  }
  lane_group noted = {.nearest = nearest};
  store_tracking(call, 0, &noted, 0);
}
