/* Body of vlist_simd.c for one value type: REAL, REAL_BYTES, NAME(x) = x_double or x_float, VECTOR_BYTES of the instruction set.
 * Included more than once. */

/* OCTET: lanes of a vector over octants; PARTS of them make eight. WIDE: lanes of a vector over padded rows. QUAD: four lanes. */
enum { NAME(OCTET) = VECTOR_BYTES / REAL_BYTES < 8 ? VECTOR_BYTES / REAL_BYTES : 8, NAME(WIDE) = VECTOR_BYTES / REAL_BYTES,
       NAME(PADDED) = (27 + VECTOR_BYTES / REAL_BYTES - 1) / (VECTOR_BYTES / REAL_BYTES) * (VECTOR_BYTES / REAL_BYTES) };
typedef REAL NAME(octet) __attribute__((vector_size(NAME(OCTET) * REAL_BYTES), aligned(NAME(OCTET) * REAL_BYTES)));
typedef REAL NAME(wide) __attribute__((vector_size(NAME(WIDE) * REAL_BYTES), aligned(NAME(WIDE) * REAL_BYTES)));
typedef REAL NAME(quad) __attribute__((vector_size(4 * REAL_BYTES), aligned(4 * REAL_BYTES)));
#if REAL_BYTES == 8
typedef int64_t NAME(index) __attribute__((vector_size(32))), NAME(both_index) __attribute__((vector_size(64)));
#else
typedef int32_t NAME(index) __attribute__((vector_size(16))), NAME(both_index) __attribute__((vector_size(32)));
#endif

static void NAME(load)(int n, const double *const child[8], double factor, void *points) {
  REAL *out = points;
  for (int o = 0; o < 8; o++)
    if (child[o])
      for (int i = 0; i < n; i++) out[8 * i + o] = (REAL)(factor * child[o][i]);
    else
      for (int i = 0; i < n; i++) out[8 * i + o] = 0;
}

static void NAME(save)(int n, const void *points, double factor, double *const child[8]) {
  const REAL *in = points;
  for (int o = 0; o < 8; o++)
    for (int i = 0; child[o] && i < n; i++) child[o][i] = factor * (double)in[8 * i + o];
}

INLINE NAME(octet) NAME(get)(const REAL *p) { return *(const NAME(octet) *)p; }
INLINE void NAME(put)(REAL *p, NAME(octet) v) { *(NAME(octet) *)p = v; }
INLINE NAME(octet) NAME(all)(REAL x) { return x - (NAME(octet)){0}; }

/* A complex value; `past` the caches, whose lines are not fetched to be overwritten, where its 16 reals are whole lines. */
INLINE void NAME(put_value)(REAL *p, NAME(octet) re, NAME(octet) im, int past) {
#if defined(FMM_SIMD_AVX512_BUILD) && REAL_BYTES == 8
  if (past) {
    _mm512_stream_pd(p, (__m512d)re);
    _mm512_stream_pd(p + 8, (__m512d)im);
    return;
  }
#elif REAL_BYTES == 4 && (defined(FMM_SIMD_AVX512_BUILD) || defined(FMM_SIMD_AVX2_BUILD))
  if (past) {
    _mm256_stream_ps(p, (__m256)re);
    _mm256_stream_ps(p + 8, (__m256)im);
    return;
  }
#endif
  NAME(put)(p, re);
  NAME(put)(p + 8, im);
}

/* An axis' complex values in pairs around its centre: sums and differences of the two of a pair. */
typedef struct NAME(around) { NAME(octet) re, im, sum_re[FMM_MAX_ORDER], sum_im[FMM_MAX_ORDER], difference_re[FMM_MAX_ORDER], difference_im[FMM_MAX_ORDER]; } NAME(around);

/* Adds x, y times each of COUNT factors to as many sums. */
INLINE void NAME(turn)(NAME(octet) x, NAME(octet) y, const REAL *factor, int stride, int COUNT, NAME(octet) *to_x, NAME(octet) *to_y) {
#pragma GCC unroll 3
  for (int i = 0; i < COUNT; i++) {
    NAME(octet) c = NAME(all)(factor[i * stride]);
    ADD_PRODUCT(to_x[i], c, x);
    ADD_PRODUCT(to_y[i], c, y);
  }
}

/* COUNT frequencies from k on of one axis: sums over the pairs of points around the centre, which itself (none for even orders: zero) begins the cosines'.
 * The more at a time, the fewer loads a multiply-add: a value once loaded serves all; three have twelve sums, as many as 16 registers take. */
INLINE void NAME(forward_group)(const fmm_vlist_shape *s, int p, const NAME(around) *v, int k, int COUNT, REAL *out, int64_t out_stride, int only_positive, int past) {
  int half = (p + 1) / 2, grid = 2 * p - 1;
  const REAL *cosine = (const REAL *)s->cosine + k * half, *sine = (const REAL *)s->sine + k * half;
  NAME(octet) a[3], b[3] = {{0}}, r[3], e[3] = {{0}};
#pragma GCC unroll 3
  for (int i = 0; i < COUNT; i++) a[i] = v->re, r[i] = v->im;
  for (int h = 0; h < p / 2; h++) {
    NAME(turn)(v->sum_re[h], v->sum_im[h], cosine + h, half, COUNT, a, r);
    NAME(turn)(v->difference_im[h], v->difference_re[h], sine + h, half, COUNT, b, e);
  }
#pragma GCC unroll 3
  for (int i = 0; i < COUNT; i++) {
    REAL *plus = out + (k + i) * out_stride, *minus = out + (grid - k - i) * out_stride;
    NAME(put_value)(plus, a[i] + b[i], r[i] - e[i], past);
    if (!only_positive) NAME(put_value)(minus, a[i] - b[i], r[i] + e[i], past);
  }
}

/* One axis forward, one part of the lanes: p complex values at in + j*in_stride -> frequencies k and -k at out + k*out_stride, (grid-k)*out_stride.
 * With S = value above + value below the centre, D = above - below: out(+-k) = (sum cos S_re +- sum sin D_im) + i (sum cos S_im -+ sum sin D_re). */
INLINE void NAME(axis_forward)(const fmm_vlist_shape *s, int p, const REAL *in, int64_t in_stride, REAL *out, int64_t out_stride, int only_positive, int past) {
  NAME(around) v;
  int k = 1;
  v.re = v.im = (NAME(octet)){0};
  if (p % 2) v.re = NAME(get)(in + p / 2 * in_stride), v.im = NAME(get)(in + p / 2 * in_stride + 8);
  NAME(octet) re = v.re, im = v.im;
  for (int h = 0; h < p / 2; h++) {
    const REAL *above = in + (p - 1 - h) * in_stride, *below = in + h * in_stride;
    NAME(octet) ar = NAME(get)(above), ai = NAME(get)(above + 8), br = NAME(get)(below), bi = NAME(get)(below + 8);
    v.sum_re[h] = ar + br;
    v.sum_im[h] = ai + bi;
    v.difference_re[h] = ar - br;
    v.difference_im[h] = ai - bi;
    re += ar + br, im += ai + bi;
  }
  NAME(put_value)(out, re, im, past);
  for (; k + 3 <= p; k += 3) NAME(forward_group)(s, p, &v, k, 3, out, out_stride, only_positive, past);
  if (p - k == 2) NAME(forward_group)(s, p, &v, k, 2, out, out_stride, only_positive, past);
  else if (p - k == 1) NAME(forward_group)(s, p, &v, k, 1, out, out_stride, only_positive, past);
}

/* COUNT pairs of points from h on, the same sums with k and h exchanged. v: of frequencies k and -k, from index 1 on; re, im: of frequency 0. */
INLINE void NAME(inverse_group)(const fmm_vlist_shape *s, int p, const NAME(around) *v, int h, int COUNT, REAL *out, int64_t out_stride) {
  int half = (p + 1) / 2;
  const REAL *cosine = (const REAL *)s->cosine + h, *sine = (const REAL *)s->sine + h;
  NAME(octet) a[3], b[3] = {{0}}, r[3], e[3] = {{0}};
#pragma GCC unroll 3
  for (int i = 0; i < COUNT; i++) a[i] = v->re, r[i] = v->im;
  for (int k = 1; k < p; k++) {
    NAME(turn)(v->sum_re[k], v->sum_im[k], cosine + k * half, 1, COUNT, a, r);
    NAME(turn)(v->difference_im[k], v->difference_re[k], sine + k * half, 1, COUNT, b, e);
  }
#pragma GCC unroll 3
  for (int i = 0; i < COUNT; i++) {
    REAL *above = out + (p - 1 - h - i) * out_stride, *below = out + (h + i) * out_stride;
    NAME(put)(above, a[i] - b[i]);
    NAME(put)(above + 8, r[i] + e[i]);
    NAME(put)(below, a[i] + b[i]);
    NAME(put)(below + 8, r[i] - e[i]);
  }
}

/* One axis backward: frequencies -> p values. only_positive: values at -k are the conjugates that make the final result real, so 2 x value at k stands
 * for both. */
INLINE void NAME(axis_inverse)(const fmm_vlist_shape *s, int p, const REAL *in, int64_t in_stride, REAL *out, int64_t out_stride, int only_positive) {
  NAME(around) v;
  int h = 0;
  NAME(octet) re = v.re = NAME(get)(in), im = v.im = NAME(get)(in + 8);
  for (int k = 1; k < p; k++) {
    const REAL *plus = in + k * in_stride, *minus = in + (2 * p - 1 - k) * in_stride;
    NAME(octet) ar = NAME(get)(plus), ai = NAME(get)(plus + 8), br = {0}, bi = {0};
    if (only_positive) ar += ar, ai += ai;
    else br = NAME(get)(minus), bi = NAME(get)(minus + 8);
    v.sum_re[k] = ar + br;
    v.sum_im[k] = ai + bi;
    v.difference_re[k] = ar - br;
    v.difference_im[k] = ai - bi;
    re += ar + br, im += ai + bi;
  }
  if (p % 2) { /* the centre: all cosines are 1 */
    NAME(put)(out + p / 2 * out_stride, re);
    NAME(put)(out + p / 2 * out_stride + 8, im);
  }
  for (; h + 3 <= p / 2; h += 3) NAME(inverse_group)(s, p, &v, h, 3, out, out_stride);
  if (p / 2 - h == 2) NAME(inverse_group)(s, p, &v, h, 2, out, out_stride);
  else if (p / 2 - h == 1) NAME(inverse_group)(s, p, &v, h, 1, out, out_stride);
}

/* z axis of one lattice row of `count` points for one kz: real points -> one complex value. */
INLINE void NAME(row_forward)(const REAL *cosine, const REAL *sine, const REAL *point, int count, REAL *out) {
  NAME(octet) re = count % 2 ? NAME(get)(point + 8 * (count / 2)) : (NAME(octet)){0}, im = {0};
  for (int h = 0; h < count / 2; h++) {
    NAME(octet) above = NAME(get)(point + 8 * (count - 1 - h)), below = NAME(get)(point + 8 * h);
    ADD_PRODUCT(re, NAME(all)(cosine[h]), above + below);
    ADD_PRODUCT(im, NAME(all)(sine[h]), below - above);
  }
  NAME(put)(out, re);
  NAME(put)(out + 8, im);
}

INLINE void NAME(row_inverse)(const REAL *cosine, const REAL *sine, const REAL *in, REAL weight, int count, REAL *point) {
  NAME(octet) re = weight * NAME(get)(in), im = weight * NAME(get)(in + 8);
  for (int h = 0; h < count / 2; h++) {
    REAL *above = point + 8 * (count - 1 - h), *below = point + 8 * h;
    NAME(octet) c = cosine[h] * re, e = sine[h] * im;
    NAME(put)(above, NAME(get)(above) + (c - e));
    NAME(put)(below, NAME(get)(below) + (c + e));
  }
  if (count % 2) NAME(put)(point + 8 * (count / 2), NAME(get)(point + 8 * (count / 2)) + re);
}

/* The same frequency of a parent a little later: neighbours in memory are a whole transform apart in time, and each is a miss of all caches. */
enum { NAME(AHEAD) = 2 };
INLINE void NAME(prefetch)(const REAL *value, int write) {
  const uintptr_t later = (uintptr_t)value + 16 * NAME(AHEAD) * REAL_BYTES; /* beyond the array for the last parents */
  for (size_t line = 0; line < 16 * REAL_BYTES; line += 64)
    if (write) __builtin_prefetch((const void *)(later + line), 1);
    else __builtin_prefetch((const void *)(later + line), 0);
}

/* scratch: [ix][iy][16], then [ix][ky][16]. Rows of the lattice have p points or their two ends. */
INLINE void NAME(forward_order)(const fmm_vlist_shape *s, int p, const void *points, int kz, void *out, int64_t stride, int past, void *scratch) {
  int grid = 2 * p - 1;
  const REAL *cosine = (const REAL *)s->cosine + kz * ((p + 1) / 2), *sine = (const REAL *)s->sine + kz * ((p + 1) / 2);
  REAL *rows = scratch, *planes = rows + 16 * p * p;
  for (int lane = 0; lane < 8; lane += NAME(OCTET)) {
    for (int i = 0; i < p * p; i++) {
      const REAL *point = (const REAL *)points + 8 * (int64_t)s->row_first[i] + lane;
      if (s->row_count[i] == 2) NAME(row_forward)(cosine, sine, point, 2, rows + 16 * i + lane);
      else NAME(row_forward)(cosine, sine, point, p, rows + 16 * i + lane);
    }
    for (int ix = 0; ix < p; ix++) NAME(axis_forward)(s, p, rows + 16 * ix * p + lane, 16, planes + 16 * ix * grid + lane, 16, 0, 0);
  }
  for (int ky = 0; ky < grid; ky++) {
    REAL *to = (REAL *)out + ky * stride;
    for (int kx = 0; !past && kx < (kz ? grid : p); kx++) NAME(prefetch)(to + kx * grid * stride, 1);
    for (int lane = 0; lane < 8; lane += NAME(OCTET)) NAME(axis_forward)(s, p, planes + 16 * ky + lane, 16 * grid, to + lane, grid * stride, kz == 0, past);
  }
}

INLINE void NAME(inverse_order)(const fmm_vlist_shape *s, int p, const void *in, int64_t stride, int kz, void *points, void *scratch) {
  int grid = 2 * p - 1;
  const REAL *cosine = (const REAL *)s->cosine + kz * ((p + 1) / 2), *sine = (const REAL *)s->sine + kz * ((p + 1) / 2);
  REAL *rows = scratch, *planes = rows + 16 * p * p;
  for (int ky = 0; ky < grid; ky++) {
    const REAL *from = (const REAL *)in + ky * stride;
    for (int kx = 0; kx < (kz ? grid : p); kx++) NAME(prefetch)(from + kx * grid * stride, 0);
    for (int lane = 0; lane < 8; lane += NAME(OCTET)) NAME(axis_inverse)(s, p, from + lane, grid * stride, planes + 16 * ky + lane, 16 * grid, kz == 0);
  }
  for (int lane = 0; lane < 8; lane += NAME(OCTET)) {
    for (int ix = 0; ix < p; ix++) NAME(axis_inverse)(s, p, planes + 16 * ix * grid + lane, 16, rows + 16 * ix * p + lane, 16, 0);
    for (int i = 0; i < p * p; i++) {
      REAL *point = (REAL *)points + 8 * (int64_t)s->row_first[i] + lane;
      if (s->row_count[i] == 2) NAME(row_inverse)(cosine, sine, rows + 16 * i + lane, kz ? 2 : 1, 2, point);
      else NAME(row_inverse)(cosine, sine, rows + 16 * i + lane, kz ? 2 : 1, p, point);
    }
  }
}

/* Orders in use at usual accuracies have loops of known length. */
static void NAME(forward)(const fmm_vlist_shape *s, const void *points, int kz, void *out, int64_t stride, int past, void *scratch) {
  switch (s->order) {
#ifdef FIXED
    case 7: past ? NAME(forward_order)(s, 7, points, kz, out, stride, 1, scratch) : NAME(forward_order)(s, 7, points, kz, out, stride, 0, scratch); break;
#endif
    default: past ? NAME(forward_order)(s, s->order, points, kz, out, stride, 1, scratch) : NAME(forward_order)(s, s->order, points, kz, out, stride, 0, scratch);
  }
#if defined(FMM_SIMD_AVX512_BUILD) || defined(FMM_SIMD_AVX2_BUILD)
  if (past) _mm_sfence();
#endif
}

static void NAME(inverse)(const fmm_vlist_shape *s, const void *in, int64_t stride, int kz, void *points, void *scratch) {
  switch (s->order) {
#ifdef FIXED
    case 7: NAME(inverse_order)(s, 7, in, stride, kz, points, scratch); break;
#endif
    default: NAME(inverse_order)(s, s->order, in, stride, kz, points, scratch);
  }
}

/* Eight octants -> 27 sums and back, of real and imaginary parts, at in and in + 8 or in + PADDED.
 * Expansion: a[z]: the four (x, y) of one z, lanes 01 of x0, x1 at y0, then at y1; b[z]: sums over y, of x0, x1, then sums over x, at y0, y1.
 * Contraction: along an axis, octant 0 takes sums 2 and 1, octant 1 takes sums 2 and 0. */
#if 8 * REAL_BYTES <= VECTOR_BYTES
/* Four lanes of real parts and four of imaginary ones side by side. */
typedef REAL NAME(both) __attribute__((vector_size(8 * REAL_BYTES), aligned(8 * REAL_BYTES)));
#define FIRST_QUADS(a, b) __builtin_shuffle(a, b, (NAME(both_index)){0, 1, 2, 3, 8, 9, 10, 11})
#define LAST_QUADS(a, b) __builtin_shuffle(a, b, (NAME(both_index)){4, 5, 6, 7, 12, 13, 14, 15})
#define LANES(a, i, j, k, l) __builtin_shuffle(a, (NAME(both_index)){i, j, k, l, 4 + i, 4 + j, 4 + k, 4 + l})

INLINE void NAME(expand_value)(const REAL *in, REAL *out) {
  NAME(both) re = *(const NAME(both) *)in, im = *(const NAME(both) *)(in + 8), a[3] = {FIRST_QUADS(re, im), LAST_QUADS(re, im)}, b[3], c[3];
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

INLINE void NAME(contract_value)(const REAL *in, REAL *out) {
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
  *(NAME(both) *)out = FIRST_QUADS(low, high);
  *(NAME(both) *)(out + 8) = LAST_QUADS(low, high);
}
#undef FIRST_QUADS
#undef LAST_QUADS
#undef LANES
#undef OF_Z
#else
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

INLINE void NAME(expand_value)(const REAL *in, REAL *out) { NAME(expand_eight)(in, out), NAME(expand_eight)(in + 8, out + NAME(PADDED)); }
INLINE void NAME(contract_value)(const REAL *in, REAL *out) { NAME(contract_eight)(in, out), NAME(contract_eight)(in + NAME(PADDED), out + 8); }
#endif

static void NAME(expand)(int64_t n, const void *spectrum, void *expanded) {
  for (int64_t i = 0; i < n; i++) NAME(expand_value)((const REAL *)spectrum + 16 * i, (REAL *)expanded + 2 * NAME(PADDED) * i);
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

/* GROUP vectors of the 27 for one row, output component and column: sums stay in registers over all entries and input components.
 * A sum that takes two multiply-adds an entry waits for the first before the second: eight such sums just fill two units of latency 4, fewer
 * do not. With 32 registers the products with real and with imaginary parts of the matrices are summed apart. */
INLINE void NAME(product_group)(const fmm_vlist_product *p, int64_t row, int components, int columns, int out, int column, int first, int GROUP, REAL *sums) {
  enum { WIDE = NAME(WIDE), PAIR = 2 * NAME(PADDED) };
  NAME(wide) re[4] = {{0}}, im[4] = {{0}}, re_apart[4] = {{0}}, im_apart[4] = {{0}};
  const uint8_t *direction = p->direction;
  const int32_t *source = p->source;
  int64_t end = p->offset[row + 1];
  for (int in = 0; in < components; in++) {
    const REAL *matrices = (const REAL *)p->matrices + (int64_t)(out * components + in) * FMM_DIRECTIONS * PAIR + first * WIDE;
    const REAL *expanded = (const REAL *)p->expanded + (int64_t)(in * columns + column) * PAIR + first * WIDE;
    for (int64_t e = p->offset[row]; e < end; e++) {
      const NAME(wide) *m = (const NAME(wide) *)(matrices + (size_t)direction[e] * PAIR);
      const NAME(wide) *x = (const NAME(wide) *)(expanded + (int64_t)source[e] * (components * columns * PAIR));
#pragma GCC unroll 4
      for (int g = 0; g < GROUP; g++) {
        NAME(wide) mr = m[g], mi = m[g + NAME(PADDED) / WIDE], xr = x[g], xi = x[g + NAME(PADDED) / WIDE];
        KEEP_IN_REGISTER(mr);
        KEEP_IN_REGISTER(mi);
        KEEP_IN_REGISTER(xr);
        KEEP_IN_REGISTER(xi);
        ADD_PRODUCT(re[g], mr, xr);
        ADD_PRODUCT(im[g], mr, xi);
        if (APART) {
          ADD_PRODUCT(re_apart[g], mi, xi);
          ADD_PRODUCT(im_apart[g], mi, xr);
        } else {
          SUBTRACT_PRODUCT(re[g], mi, xi);
          ADD_PRODUCT(im[g], mi, xr);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < GROUP; g++) {
    if (APART) re[g] -= re_apart[g], im[g] += im_apart[g];
    *(NAME(wide) *)(sums + (first + g) * WIDE) = re[g];
    *(NAME(wide) *)(sums + NAME(PADDED) + (first + g) * WIDE) = im[g];
  }
}

INLINE void NAME(product_rows)(const fmm_vlist_product *p, int components, int columns) {
  enum { VECTORS = NAME(PADDED) / NAME(WIDE), REST = VECTORS % 4 };
  REAL sums[2 * FMM_VLIST_PADDED] __attribute__((aligned(64))), *to = p->out;
  for (int64_t row = p->row_begin; row < p->row_end; row++)
    for (int out = 0; out < components; out++)
      for (int column = 0; column < columns; column++, to += 16) {
        for (int first = 0; first + 4 <= VECTORS; first += 4) NAME(product_group)(p, row, components, columns, out, column, first, 4, sums);
        if (REST) NAME(product_group)(p, row, components, columns, out, column, VECTORS - REST, REST, sums);
        NAME(contract_value)(sums, to);
      }
}

static void NAME(product)(const fmm_vlist_product *p) {
  if (p->n_components == 1 && p->n_columns == 1) NAME(product_rows)(p, 1, 1); /* no multiplications for places */
  else NAME(product_rows)(p, p->n_components, p->n_columns);
}
