/* Part of pair_kernel.h: sums in both directions between two sets of points, for symmetric pairs. The pair function is called twice with
 * opposite differences; what they share (the root above all) is computed once by the compiler's common subexpressions.
 * Sums on the sources are kept as vectors over the targets' lanes, [value][source][lane], and added across lanes at the end. */

/* Source j and `vectors` vectors of targets, onto each other. t: densities of the targets. */
VECTOR_FUNCTION void add_source_both(const fmm_pair_call *call, int64_t j, const fmm_scalar *params, shape q, pair_function *pair, int vectors,
                                     const lane_group *g, const measured *m, fmm_vector f[][MAX_SUMS], fmm_vector t[][FMM_PAIR_MAX_COMPONENTS]) {
  fmm_vector s[FMM_PAIR_MAX_COMPONENTS], back[FMM_PAIR_MAX_VALUES], extras[EXTRAS] = {{0}}, *lanes = (fmm_vector *)call->lanes + j * q.values;
#pragma GCC unroll 4
  for (int k = 0; k < q.components; k++) s[k] = broadcast(((const fmm_scalar *)call->density[k])[j]);
#pragma GCC unroll 12
  for (int k = 0; k < q.values; k++) back[k] = lanes[k];
#pragma GCC unroll 2
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
                                      int vectors, lane_group *g, fmm_vector f[][MAX_SUMS], fmm_vector t[][FMM_PAIR_MAX_COMPONENTS]) {
#define ACT(j, m) add_source_both(call, j, params, q, pair, vectors, g, m, f, t)
  FOR_SOURCES(begin, end, q.staged, MEASURE, ACT);
#undef ACT
#undef MEASURE
}

VECTOR_FUNCTION void sum_group_both(const fmm_pair_call *call, int i, int vectors, shape q, pair_function *pair) {
  lane_group g[MAX_VECTORS];
  fmm_vector t[MAX_VECTORS][FMM_PAIR_MAX_COMPONENTS];
  fmm_scalar params[FMM_MAX_PARAMS];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; v++) {
    g[v] = load_group(call, i + v * LANES);
#pragma GCC unroll 4
    for (int k = 0; k < q.components; k++) t[v][k] = *(const fmm_vector *)((const fmm_scalar *)call->target_density[k] + i + v * LANES);
  }
  for (int k = 0; k < FMM_MAX_PARAMS; k++) params[k] = (fmm_scalar)call->params[k];
  for (int64_t j = 0; j < call->n_sources; j += FLUSH) {
    int64_t end = call->n_sources - j > FLUSH ? j + FLUSH : call->n_sources;
    fmm_vector f[MAX_VECTORS][MAX_SUMS] = {{{0}}};
    sum_sources_both(call, j, end, params, q, pair, vectors, g, f, t);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) add_sums(call, i + v * LANES, q.values, f[v]);
  }
#pragma GCC unroll 2
  for (int v = 0; v < vectors; v++) store_tracking(call, i + v * LANES, &g[v], 0);
}

VECTOR_FUNCTION void sum_block_both(const fmm_pair_call *call, shape q, pair_function *pair) {
  int64_t padded = (call->n_sources + LANES - 1) / LANES * LANES;
  fmm_vector *lanes = call->lanes;
  for (int64_t k = 0; k < padded * q.values; k++) lanes[k] = (fmm_vector){0};
  int i = 0;
  if (MAX_VECTORS * (2 * q.values + 4) <= VECTOR_REGISTERS)
    for (; i + (MAX_VECTORS - 1) * LANES < call->n_targets; i += MAX_VECTORS * LANES) sum_group_both(call, i, MAX_VECTORS, q, pair);
  for (; i < call->n_targets; i += LANES) sum_group_both(call, i, 1, q, pair);
  for (int64_t j = 0; j < padded; j += LANES)
    for (int k = 0; k < q.values; k++) {
      fmm_vector rows[LANES];
#pragma GCC unroll 16
      for (int l = 0; l < LANES; l++) rows[l] = lanes[(j + l) * q.values + k];
      fmm_vector sums = lane_sums(rows);
      for (int l = 0; l < LANES; l++) call->back[k][j + l] = sums[l];
    }
}
