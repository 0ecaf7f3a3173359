/* Products of vlist_simd.c for one value type, after vlist_body.h and with its names: a parent's octants taken from their lanes and expanded, the matrices of
 * all directions, products, and contracted sums given back to lanes. Included more than once. */

/* Eight octants -> 27 sums and back, of real and imaginary parts, at in and in + 8 or in + PADDED.
 * Expansion: a[z]: the four (x, y) of one z, lanes 01 of x0, x1 at y0, then at y1; b[z]: sums over y, of x0, x1, then sums over x, at y0, y1.
 * Contraction: along an axis, octant 0 takes sums 2 and 1, octant 1 takes sums 2 and 0. */
#if 8 * REAL_BYTES <= VECTOR_BYTES
/* Four lanes of real parts and four of imaginary ones side by side. */
typedef REAL NAME(both) __attribute__((vector_size(8 * REAL_BYTES), aligned(8 * REAL_BYTES)));
#define FIRST_QUADS(a, b) __builtin_shuffle(a, b, (NAME(both_index)){0, 1, 2, 3, 8, 9, 10, 11})
#define LAST_QUADS(a, b) __builtin_shuffle(a, b, (NAME(both_index)){4, 5, 6, 7, 12, 13, 14, 15})
#define LANES(a, i, j, k, l) __builtin_shuffle(a, (NAME(both_index)){i, j, k, l, 4 + i, 4 + j, 4 + k, 4 + l})

/* Element i is v's from[i], or that of `otherwise` where there is none. */
INLINE NAME(both) NAME(arrange)(NAME(both) v, const uint8_t from[8], NAME(both) otherwise) {
  const __m128i each = _mm_loadl_epi64((const __m128i *)(const void *)from);
#if REAL_BYTES == 8
  return (NAME(both))_mm512_mask_permutexvar_pd((__m512d)otherwise, (__mmask8)~_mm_movepi8_mask(each), _mm512_cvtepu8_epi64(each), (__m512d)v);
#elif defined(FMM_SIMD_AVX512_BUILD)
  return (NAME(both))_mm256_mask_permutexvar_ps((__m256)otherwise, (__mmask8)~_mm_movepi8_mask(each), _mm256_cvtepu8_epi32(each), (__m256)v);
#else
  const __m256i index = _mm256_cvtepi8_epi32(each); /* below zero where there is none */
  return (NAME(both))_mm256_blendv_ps(_mm256_permutevar8x32_ps((__m256)v, index), (__m256)otherwise, (__m256)index);
#endif
}

/* A parent's octants from the lanes of its group, zeros where it has none. */
INLINE NAME(both) NAME(take)(const REAL *lanes, const fmm_vlist_place *at) {
  const NAME(both) v = *(const NAME(both) *)lanes;
  return at->children == 0xff ? v : NAME(arrange)(v, at->lane, (NAME(both)){0});
}

/* Octants into their lanes; others become zero where the group begins. */
INLINE void NAME(give)(NAME(both) v, const fmm_vlist_place *at, REAL *lanes) {
  if (at->children != 0xff) v = NAME(arrange)(v, at->octant, at->first ? *(const NAME(both) *)lanes : (NAME(both)){0});
  *(NAME(both) *)lanes = v;
}

INLINE void NAME(expand_value)(const REAL *in, const fmm_vlist_place *at, REAL *out) {
  NAME(both) re = NAME(take)(in, at), im = NAME(take)(in + 8, at), a[3] = {FIRST_QUADS(re, im), LAST_QUADS(re, im)}, b[3], c[3];
  a[2] = a[0] + a[1];
#pragma GCC unroll 3
  for (int z = 0; z < 3; z++) {
    NAME(both) y = a[z] + LANES(a[z], 2, 3, 0, 1), x = a[z] + LANES(a[z], 1, 0, 3, 2);
    b[z] = __builtin_shuffle(y, x, (NAME(both_index)){0, 1, 8, 10, 4, 5, 12, 14});
    c[z] = y + LANES(y, 1, 0, 3, 2);
  }
  NAME(both) last = __builtin_shuffle(c[0], c[1], (NAME(both_index)){0, 8, 0, 8, 4, 12, 4, 12});
  last = __builtin_shuffle(last, c[2], (NAME(both_index)){0, 1, 8, 8, 4, 5, 12, 12}); /* lane 3 is padding: the matrices have 0 there */
  NAME(both) pairs[4][2] = {{a[0], a[1]}, {a[2], b[0]}, {b[1], b[2]}, {last, (NAME(both)){0}}};
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    *(NAME(both) *)(out + 8 * i) = FIRST_QUADS(pairs[i][0], pairs[i][1]);
    *(NAME(both) *)(out + NAME(PADDED) + 8 * i) = LAST_QUADS(pairs[i][0], pairs[i][1]);
  }
}

INLINE void NAME(contract_value)(const REAL *in, const fmm_vlist_place *at, REAL *out) {
  NAME(both) quad[8], o[3];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    NAME(both) re = *(const NAME(both) *)(in + 8 * i), im = *(const NAME(both) *)(in + NAME(PADDED) + 8 * i);
    quad[2 * i] = FIRST_QUADS(re, im);
    quad[2 * i + 1] = LAST_QUADS(re, im);
  }
#define OF_Z(z) (LANES(quad[6], z, z, z, z) + LANES(quad[3 + z], 1, 0, 1, 0) + LANES(quad[3 + z], 3, 3, 2, 2) + LANES(quad[z], 3, 2, 1, 0))
  o[0] = OF_Z(0), o[1] = OF_Z(1), o[2] = OF_Z(2);
  NAME(both) low = o[2] + o[1], high = o[2] + o[0];
  NAME(give)(FIRST_QUADS(low, high), at, out);
  NAME(give)(LAST_QUADS(low, high), at, out + 8);
}
#undef FIRST_QUADS
#undef LAST_QUADS
#undef LANES
#undef OF_Z
#else
/* Element i of `to` becomes v's from[i]; where there is none it stays if `keep`, else it becomes zero. Not inline: product loops would keep fewer values in
 * registers. */
static NOINLINE void NAME(arrange)(const REAL *v, const uint8_t from[8], int keep, REAL *to) {
#if REAL_BYTES == 8 && defined(FMM_SIMD_AVX2_BUILD)
  const __m256 low = _mm256_load_ps((const float *)v), high = _mm256_load_ps((const float *)(v + 4)); /* doubles as pairs, which it can permute */
  for (int i = 0; i < 8; i += 4) {
    const __m256i each = _mm256_cvtepi8_epi64(_mm_loadu_si32(from + i)), twice = _mm256_add_epi64(each, each); /* below zero where there is none */
    const __m256i pair = _mm256_blend_epi32(twice, _mm256_slli_epi64(_mm256_add_epi64(twice, _mm256_set1_epi64x(1)), 32), 0xaa);
    const __m256 x = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, pair), _mm256_permutevar8x32_ps(high, pair), (__m256)_mm256_slli_epi32(pair, 28));
    const __m256d otherwise = keep ? _mm256_load_pd(to + i) : _mm256_setzero_pd();
    _mm256_store_pd(to + i, _mm256_blendv_pd((__m256d)x, otherwise, (__m256d)each));
  }
#else
  for (int i = 0; i < 8; i++)
    if (from[i] != FMM_VLIST_NONE) to[i] = v[from[i]];
    else if (!keep) to[i] = 0;
#endif
}

INLINE void NAME(expand_eight)(const REAL *in, REAL *out) {
  NAME(quad) a[3], last = {0};
  a[0] = *(const NAME(quad) *)in;
  a[1] = *(const NAME(quad) *)(in + 4);
  a[2] = a[0] + a[1];
  for (int z = 0; z < 3; z++) {
    NAME(quad) y = a[z] + __builtin_shuffle(a[z], (NAME(index)){2, 3, 0, 1});
    NAME(quad) x = a[z] + __builtin_shuffle(a[z], (NAME(index)){1, 0, 3, 2});
    NAME(quad) sum = y + __builtin_shuffle(y, (NAME(index)){1, 0, 3, 2});
    *(NAME(quad) *)(out + 4 * z) = a[z];
    *(NAME(quad) *)(out + 12 + 4 * z) = __builtin_shuffle(y, x, (NAME(index)){0, 1, 4, 6});
    last[z] = sum[0];
  }
  *(NAME(quad) *)(out + 24) = last;
}

INLINE void NAME(contract_eight)(const REAL *in, REAL *out) {
  NAME(quad) o[3];
  for (int z = 0; z < 3; z++) {
    NAME(quad) a = *(const NAME(quad) *)(in + 4 * z), b = *(const NAME(quad) *)(in + 12 + 4 * z);
    REAL sum = in[24 + z];
    o[z] = (NAME(quad)){sum, sum, sum, sum} + __builtin_shuffle(b, (NAME(index)){1, 0, 1, 0}) + __builtin_shuffle(b, (NAME(index)){3, 3, 2, 2}) +
           __builtin_shuffle(a, (NAME(index)){3, 2, 1, 0});
  }
  *(NAME(quad) *)out = o[2] + o[1];
  *(NAME(quad) *)(out + 4) = o[2] + o[0];
}

/* Parents with fewer than eight children go by way of `own`. */
INLINE void NAME(expand_value)(const REAL *in, const fmm_vlist_place *at, REAL *out) {
  REAL own[16] __attribute__((aligned(64)));
  if (at->children != 0xff) {
    NAME(arrange)(in, at->lane, 0, own), NAME(arrange)(in + 8, at->lane, 0, own + 8);
    in = own;
  }
  NAME(expand_eight)(in, out), NAME(expand_eight)(in + 8, out + NAME(PADDED));
}
INLINE void NAME(contract_value)(const REAL *in, const fmm_vlist_place *at, REAL *out) {
  REAL own[16] __attribute__((aligned(64))), *to = at->children == 0xff ? out : own;
  NAME(contract_eight)(in, to), NAME(contract_eight)(in + NAME(PADDED), to + 8);
  if (to == own) NAME(arrange)(own, at->octant, at->first > 0, out), NAME(arrange)(own + 8, at->octant, at->first > 0, out + 8);
}
#endif

static void NAME(expand)(int64_t n, int channels, const fmm_vlist_place *place, const void *spectrum, void *expanded) {
  enum { AHEAD = 16 }; /* values; sources are nearly in the order of their groups */
  REAL *out = expanded;
  for (int64_t i = 0; i < n; i++)
    for (int channel = 0; channel < channels; channel++, out += 2 * NAME(PADDED)) {
      const REAL *in = (const REAL *)spectrum + 16 * ((int64_t)place[i].group * channels + channel);
      NAME(prefetch)(in, 16 * AHEAD, 16, 0);
      NAME(expand_value)(in, &place[i], out);
    }
}

/* Differences along one axis: 7 offsets -> 3 directions x 3 sums: T(2D-1) - T(2D), T(2D+1) - T(2D), T(2D). in: [7][inner], out: [9][inner]. */
INLINE void NAME(differences)(const double *in, int inner, double *out) {
  for (int d = 0; d < 3; d++) {
    const double *centre = in + (int64_t)(2 * d + 1) * inner;
    for (int i = 0; i < inner; i++) {
      out[(3 * d + 0) * inner + i] = centre[i - inner] - centre[i];
      out[(3 * d + 1) * inner + i] = centre[i + inner] - centre[i];
      out[(3 * d + 2) * inner + i] = centre[i];
    }
  }
}

static void NAME(matrices)(const double full[343][2], void *out) {
  double x[9][7 * 7 * 2], y[9][9][7 * 2], z[9][2];
  REAL *to = out;
  NAME(differences)(full[0], 7 * 7 * 2, x[0]);
  for (int i = 0; i < 9; i++) NAME(differences)(x[i], 7 * 2, y[i][0]);
  memset(to, 0, FMM_DIRECTIONS * 2 * NAME(PADDED) * sizeof *to);
  for (int i = 0; i < 9; i++)
    for (int j = 0; j < 9; j++) {
      int ex = i % 3, ey = j % 3;
      REAL *at = to + (i / 3 + 3 * (j / 3)) * 2 * NAME(PADDED);
      NAME(differences)(y[i][j], 2, z[0]);
      for (int k = 0; k < 9; k++) {
        REAL *lane = at + 9 * (k / 3) * 2 * NAME(PADDED) + FMM_VLIST_LANE(ex, ey, k % 3);
        lane[0] = (REAL)z[k][0];
        lane[NAME(PADDED)] = (REAL)z[k][1];
      }
    }
}

/* A load of an index takes as long as one of a vector where both are under way (Zen 5): so there is half a load an entry, a turn before it is needed (docs/notes-cpu-trials.md). */
INLINE uint64_t NAME(two_entries)(const fmm_vlist_entry *e) {
  uint64_t both;
  memcpy(&both, e, sizeof both);
  return both;
}

typedef struct NAME(product_sums) { NAME(wide) re[4], im[4], re_apart[4], im_apart[4]; } NAME(product_sums);

/* pitch: reals from one source to the next. */
INLINE void NAME(add_entry)(NAME(product_sums) *s, fmm_vlist_entry e, const REAL *matrices, const REAL *expanded, int64_t pitch, int GROUP) {
  const NAME(wide) *m = (const NAME(wide) *)(matrices + (size_t)fmm_vlist_direction_of(e) * (2 * NAME(PADDED)));
  const NAME(wide) *x = (const NAME(wide) *)(expanded + fmm_vlist_source_of(e) * pitch);
#pragma GCC unroll 4
  for (int g = 0; g < GROUP; g++) {
    NAME(wide) mr = m[g], mi = m[g + NAME(PADDED) / NAME(WIDE)], xr = x[g], xi = x[g + NAME(PADDED) / NAME(WIDE)];
    KEEP_IN_REGISTER(mr);
    KEEP_IN_REGISTER(mi);
    KEEP_IN_REGISTER(xr);
    KEEP_IN_REGISTER(xi);
    ADD_PRODUCT(s->re[g], mr, xr);
    ADD_PRODUCT(s->im[g], mr, xi);
    if (APART) {
      ADD_PRODUCT(s->re_apart[g], mi, xi);
      ADD_PRODUCT(s->im_apart[g], mi, xr);
    } else {
      SUBTRACT_PRODUCT(s->re[g], mi, xi);
      ADD_PRODUCT(s->im[g], mi, xr);
    }
  }
}

INLINE void NAME(add_entries)(NAME(product_sums) *s, uint64_t both, const REAL *matrices, const REAL *expanded, int64_t pitch, int GROUP) {
#pragma GCC unroll 2
  for (int k = 0; k < 2; k++) NAME(add_entry)(s, (fmm_vlist_entry)(both >> 32 * k), matrices, expanded, pitch, GROUP);
}

/* GROUP vectors of the 27 for one row, output component and column: sums stay in registers over all entries and input components.
 * A sum that takes two multiply-adds an entry waits for the first before the second: eight such sums just fill two units of latency 4, fewer
 * do not. With 32 registers the products with real and with imaginary parts of the matrices are summed apart. */
INLINE void NAME(product_group)(const fmm_vlist_product *p, int64_t row, int components, int columns, int out, int column, int first, int GROUP, REAL *sums) {
  enum { WIDE = NAME(WIDE), PAIR = 2 * NAME(PADDED), TURN = VECTOR_BYTES == 64 && REAL_BYTES == 8 ? 2 : 1 /* twos a turn; in single with as many registers how many entries a row of a surface has is hard to foretell, and a wrong guess takes longer than more at once save */ };
  NAME(product_sums) s = {0};
  const int64_t n = p->offset[row + 1] - p->offset[row];
  for (int in = 0; in < components; in++) {
    const REAL *matrices = (const REAL *)p->matrices + (int64_t)(out * components + in) * FMM_DIRECTIONS * PAIR + first * WIDE;
    const REAL *expanded = (const REAL *)p->expanded + (int64_t)(in * columns + column) * PAIR + first * WIDE;
    const fmm_vlist_entry *entry = p->entry + fmm_vlist_row_begin(p->offset, row), *const end = entry + n;
#if VECTOR_BYTES > 16
    uint64_t next[TURN];
    for (int i = 0; i < TURN; i++) next[i] = NAME(two_entries)(entry + 2 * i);
    for (; entry + 2 * (TURN - 1) < end; entry += 2 * TURN)
#pragma GCC unroll 2
      for (int i = 0; i < TURN; i++) {
        const uint64_t now = next[i];
        next[i] = NAME(two_entries)(entry + 2 * (TURN + i));
        NAME(add_entries)(&s, now, matrices, expanded, components * columns * PAIR, GROUP);
      }
    if (TURN > 1 && entry < end) NAME(add_entries)(&s, next[0], matrices, expanded, components * columns * PAIR, GROUP);
#else /* loads of vectors take longer than those of indices, and registers are few */
    for (; entry < end; entry++) NAME(add_entry)(&s, *entry, matrices, expanded, components * columns * PAIR, GROUP);
#endif
  }
#pragma GCC unroll 4
  for (int g = 0; g < GROUP; g++) {
    if (APART) s.re[g] -= s.re_apart[g], s.im[g] += s.im_apart[g];
    *(NAME(wide) *)(sums + (first + g) * WIDE) = s.re[g];
    *(NAME(wide) *)(sums + NAME(PADDED) + (first + g) * WIDE) = s.im[g];
  }
}

INLINE void NAME(product_rows)(const fmm_vlist_product *p, int components, int columns) {
  enum { VECTORS = NAME(PADDED) / NAME(WIDE), REST = VECTORS % 4 };
  const int channels = components * columns;
  REAL sums[2 * FMM_VLIST_PADDED] __attribute__((aligned(64)));
  for (int64_t row = p->row_begin; row < p->row_end; row++) {
    if (VECTOR_BYTES > 16) /* else it takes registers from the loops */
      NAME(prefetch)((const REAL *)p->out + 16 * channels * (int64_t)p->target[row].group, 0, 16 * channels, 1);
    for (int out = 0; out < components; out++)
      for (int column = 0; column < columns; column++) {
        for (int first = 0; first + 4 <= VECTORS; first += 4) NAME(product_group)(p, row, components, columns, out, column, first, 4, sums);
        if (REST) NAME(product_group)(p, row, components, columns, out, column, VECTORS - REST, REST, sums);
        const fmm_vlist_place *at = &p->target[row];
        NAME(contract_value)(sums, at, (REAL *)p->out + 16 * (channels * (int64_t)at->group + out * columns + column));
      }
  }
}

static void NAME(product)(const fmm_vlist_product *p) {
  if (p->n_components == 1 && p->n_columns == 1) NAME(product_rows)(p, 1, 1); /* no multiplications for places */
  else NAME(product_rows)(p, p->n_components, p->n_columns);
}
