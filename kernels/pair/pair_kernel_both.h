/* Part of pair_kernel.h: sums in both directions between two sets of points, for symmetric pairs. The pair function is called twice with
 * opposite differences; what they share (the root above all) is computed once by the compiler's common subexpressions.
 * Where two vectors of targets and the sums of both directions fit into the registers, sources are broadcast one after another onto these, and sums on the
 * sources are kept as vectors over the targets' lanes, [value][source][lane], a chunk of sources at a time, and added across lanes at the end.
 * Where they do not, each source goes over all targets (pair_kernel_batch.h). */
#include "kernels/pair/pair_kernel_batch.h"
#include "kernels/pair/pair_kernel_products.h"

enum { CHUNK_SUMS = 256 }; /* sums on a chunk of sources, kept in the first-level cache */

/* Source j and `vectors` vectors of targets, onto each other. t: densities of the targets; sums: on the sources, [source][value]. */
VECTOR_FUNCTION void add_source_both(const fmm_pair_call *call, int64_t j, const fmm_scalar *params, shape q, pair_function *pair, int vectors,
                                     const lane_group *g, const measured *m, fmm_vector f[][MAX_SUMS], fmm_vector t[][FMM_PAIR_MAX_COMPONENTS], fmm_vector *sums) {
  fmm_vector s[FMM_PAIR_MAX_COMPONENTS], back[FMM_PAIR_MAX_VALUES], extras[EXTRAS] = {{0}}, *lanes = sums + j * q.values;
#pragma GCC unroll 4
  for (int k = 0; k < q.components; k++) s[k] = broadcast(((const fmm_scalar *)call->density[k])[j]);
#pragma GCC unroll 12
  for (int k = 0; k < q.values; k++) back[k] = lanes[k];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    difference d = difference_of(call, j, &g[v], q);
    if (q.staged) extras[SQUARE] = m->square[v], extras[ESTIMATE] = m->estimate[v];
    pair(d.x, d.y, d.z, s, extras, params, 1, q.gradient, f[v]);
    pair(-d.x, -d.y, -d.z, t[v], extras, params, 1, q.gradient, back);
  }
#pragma GCC unroll 12
  for (int k = 0; k < q.values; k++) lanes[k] = back[k];
}

VECTOR_FUNCTION void sum_sources_both(const fmm_pair_call *call, int64_t begin, int64_t end, const fmm_scalar *params, shape q, pair_function *pair,
                                      int vectors, lane_group *g, fmm_vector f[][MAX_SUMS], fmm_vector t[][FMM_PAIR_MAX_COMPONENTS], fmm_vector *sums) {
#define ACT(j, m) add_source_both(call, j, params, q, pair, vectors, g, m, f, t, sums)
  if (q.products) sum_sources_products(call, begin, end, q, vectors, g, f, t, sums);
  else FOR_SOURCES(begin, end, q.ahead, MEASURE, ACT);
#undef ACT
#undef MEASURE
}

VECTOR_FUNCTION void sum_group_both(const fmm_pair_call *call, int i, int vectors, shape q, pair_function *pair, fmm_vector *sums) {
  lane_group g[MAX_VECTORS];
  fmm_vector t[MAX_VECTORS][FMM_PAIR_MAX_COMPONENTS];
  fmm_scalar params[FMM_MAX_PARAMS];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    g[v] = load_group(call, i + v * LANES);
#ifndef FMM_SINGLE
    if (q.apart) g[v].square = *(const fmm_vector *)(call->square[0] + i + v * LANES);
#endif
#pragma GCC unroll 4
    for (int k = 0; k < q.components; k++) t[v][k] = *(const fmm_vector *)((const fmm_scalar *)call->target_density[k] + i + v * LANES);
  }
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = (fmm_scalar)call->params[k];
  for (int64_t j = 0; j < call->n_sources; j += FLUSH) {
    int64_t end = call->n_sources - j > FLUSH ? j + FLUSH : call->n_sources;
    fmm_vector f[MAX_VECTORS][MAX_SUMS] = {{{0}}};
    sum_sources_both(call, j, end, params, q, pair, vectors, g, f, t, sums);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) add_sums(call, i + v * LANES, q, f[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) store_tracking(call, i + v * LANES, &g[v], 0);
}

VECTOR_FUNCTION void sum_chunk_both(const fmm_pair_call *call, shape q, pair_function *pair) {
  _Alignas(64) fmm_vector sums[CHUNK_SUMS];
  int64_t padded = (call->n_sources + LANES - 1) / LANES * LANES;
  int i = 0;
  for (int64_t k = 0; k < padded * q.values; k++) sums[k] = (fmm_vector){0};
  for (; i + (q.vectors - 1) * LANES < call->n_targets; i += q.vectors * LANES) sum_group_both(call, i, q.vectors, q, pair, sums);
  for (; i < call->n_targets; i += LANES) sum_group_both(call, i, 1, q, pair, sums);
  for (int64_t j = 0; j < padded; j += LANES) add_lanes_both(call, j, q, sums + j * q.values);
}

/* Calls `sum_chunk` for chunks of about equal size; it is a function of its own so that its loop has all registers. */
VECTOR_FUNCTION void sum_block_both(const fmm_pair_call *call, shape q, fmm_pair_kernel *sum_chunk) {
  const int64_t most = CHUNK_SUMS / q.values / LANES * LANES, n = call->n_sources, chunks = (n + most - 1) / most;
  const int64_t size = n ? ((n + chunks - 1) / chunks + LANES - 1) / LANES * LANES : 1;
  fmm_pair_call part = *call;
  for (int64_t j = 0; j < n; j += size) {
    part.n_sources = n - j > size ? size : n - j;
    for (int axis = 0; axis < 3; axis++) part.source[axis] = (const coordinate *)call->source[axis] + j;
    if (call->square[1]) part.square[1] = call->square[1] + j;
    for (int k = 0; k < q.components; k++) part.density[k] = (const fmm_scalar *)call->density[k] + j;
    part.back = (double (*)[FMM_PAIR_BACK])(call->back[0] + j);
    sum_chunk(&part);
  }
}
