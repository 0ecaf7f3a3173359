/* Part of pair_kernel.h: potential and gradient of inverse distances in both directions by products of densities (pair_sums_products.c): 14 operations on the units that
 * multiply and 11 additions for a vector of pairs in double with one Newton step. Differences, squares and estimates are those of the next source, in registers: one pair with all that is added is a chain of some 57 cycles of latency (a potential's alone 45: pair_kernel.h), of which a core's scheduler
 * holds one source with its two vectors of targets; cut in two it finds the second half's operands ready. */
/* A value of its own: else the multiplication that makes it is done twice, in each of the additions that take it. */
#ifdef FMM_SIMD_AVX512_BUILD
#define AS_IT_IS(x) __asm__("" : "+v"(x))
#else
#define AS_IT_IS(x) (void)0
#endif

/* What is taken of a source before its turn. */
typedef struct begun_product { difference d; fmm_vector square, estimate; } begun_product;

VECTOR_FUNCTION void begin_products(const fmm_pair_call *call, int64_t j, const lane_group *g, shape q, begun_product *b) {
  b->d = difference_of(call, j, g, q);
  b->square = b->d.x * b->d.x + b->d.y * b->d.y + b->d.z * b->d.z;
  b->estimate = rsqrt_estimate(b->square);
}

/* Potential c/r and gradient of a product c of densities, onto both; what is taken from the one's derivatives is added to the other's. */
VECTOR_FUNCTION void add_products(const begun_product *b, fmm_vector product, shape q, fmm_vector *f, fmm_vector *back) {
  const fmm_vector r = q.scaled ? rsqrt_refine_scaled(b->square, b->estimate) : rsqrt_refine(b->square, b->estimate);
  fmm_vector potential = product * r, by = potential * (r * r), x = by * b->d.x, y = by * b->d.y, z = by * b->d.z;
  AS_IT_IS(potential);
  AS_IT_IS(x);
  AS_IT_IS(y);
  AS_IT_IS(z);
  f[0] += potential, f[1] -= x, f[2] -= y, f[3] -= z;
  back[0] += potential, back[1] += x, back[2] += y, back[3] += z;
}

VECTOR_FUNCTION void sum_sources_products(const fmm_pair_call *call, int64_t begin, int64_t end, shape q, int vectors, lane_group *g, fmm_vector f[][MAX_SUMS],
                                          fmm_vector t[][FMM_PAIR_MAX_COMPONENTS], fmm_vector *sums) {
  begun_product now[MAX_VECTORS], next[MAX_VECTORS];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) begin_products(call, begin, &g[v], q, &now[v]);
  for (int64_t j = begin; j < end; j++) {
    const int64_t after = j + 1 < end ? j + 1 : j;
    const fmm_vector s = broadcast(((const fmm_scalar *)call->density[0])[j]);
    fmm_vector back[4], *lanes = sums + j * 4;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      begin_products(call, after, &g[v], q, &next[v]);
      if (!q.apart) track_square(&g[v], now[v].square, 0);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) back[k] = lanes[k];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) add_products(&now[v], s * t[v][0], q, f[v], back);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) lanes[k] = back[k];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) now[v] = next[v];
  }
}
