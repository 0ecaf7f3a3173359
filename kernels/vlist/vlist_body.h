/* Body of vlist_simd.c for one value type: REAL, REAL_BYTES, NAME(x) = x_double or x_float, VECTOR_BYTES of the instruction set.
 * Included more than once. */

/* OCTET: lanes of a vector over a group's boxes, all eight or a part. WIDE: lanes of a vector over padded rows. QUAD: four lanes. */
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

static void NAME(load)(int n, const double *const box[8], double factor, void *points) {
  REAL *out = points;
  for (int o = 0; o < 8; o++)
    if (box[o])
      for (int i = 0; i < n; i++) out[8 * i + o] = (REAL)(factor * box[o][i]);
    else
      for (int i = 0; i < n; i++) out[8 * i + o] = 0;
}

static void NAME(save)(int n, const void *points, const double mean[8], double factor, double *const box[8]) {
  const REAL *in = points;
  for (int o = 0; o < 8; o++)
    for (int i = 0; box[o] && i < n; i++) box[o][i] = factor * (mean[o] + (double)in[8 * i + o]);
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

/* Back: begins the row's points or adds to them. */
INLINE void NAME(add_or_begin)(REAL *p, NAME(octet) v, int begin) { NAME(put)(p, begin ? v : NAME(get)(p) + v); }
INLINE void NAME(row_inverse)(const REAL *cosine, const REAL *sine, const REAL *in, int begin, int count, REAL *point) {
  const REAL weight = begin ? 1 : 2; /* of kz = 0, which begins; others stand for -kz too */
  NAME(octet) re = weight * NAME(get)(in), im = weight * NAME(get)(in + 8);
  for (int h = 0; h < count / 2; h++) {
    NAME(octet) c = cosine[h] * re, e = sine[h] * im;
    NAME(add_or_begin)(point + 8 * (count - 1 - h), c - e, begin);
    NAME(add_or_begin)(point + 8 * h, c + e, begin);
  }
  if (count % 2) NAME(add_or_begin)(point + 8 * (count / 2), re, begin);
}

/* So many reals, so many ahead of a value, as near as the caches can. Beyond the array for the last ones. */
INLINE void NAME(prefetch)(const REAL *value, int64_t ahead, int64_t reals, int write) {
  const uintptr_t from = (uintptr_t)value + (uintptr_t)ahead * REAL_BYTES;
  for (int64_t byte = 0; byte < reals * REAL_BYTES; byte += 64)
    if (write) __builtin_prefetch((const void *)(from + (uintptr_t)byte), 1, 3);
    else __builtin_prefetch((const void *)(from + (uintptr_t)byte), 0, 3);
}

/* The same frequency of the next group: neighbours in memory are a whole transform apart in time, and each is a miss of all caches. */
INLINE void NAME(prefetch_value)(const REAL *value, int write) { NAME(prefetch)(value, 16, 16, write); }

/* The next group's points, a part of them with each ky. */
INLINE void NAME(prefetch_points)(const fmm_vlist_shape *s, const REAL *points, int ky, int write) {
  const int64_t all = 8 * (int64_t)s->n_surface, step = (all + s->grid - 1) / s->grid;
  NAME(prefetch)(points, all + ky * step, step, write);
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
    NAME(prefetch_points)(s, points, ky, 0);
    for (int kx = 0; !past && kx < (kz ? grid : p); kx++) NAME(prefetch_value)(to + kx * grid * stride, 1);
    for (int lane = 0; lane < 8; lane += NAME(OCTET)) NAME(axis_forward)(s, p, planes + 16 * ky + lane, 16 * grid, to + lane, grid * stride, kz == 0, past);
  }
}

INLINE void NAME(inverse_order)(const fmm_vlist_shape *s, int p, const void *in, int64_t stride, int kz, int begin, void *points, void *scratch) {
  int grid = 2 * p - 1;
  const REAL *cosine = (const REAL *)s->cosine + kz * ((p + 1) / 2), *sine = (const REAL *)s->sine + kz * ((p + 1) / 2);
  REAL *rows = scratch, *planes = rows + 16 * p * p;
  for (int ky = 0; ky < grid; ky++) {
    const REAL *from = (const REAL *)in + ky * stride;
    NAME(prefetch_points)(s, points, ky, 1);
    for (int kx = 0; kx < (kz ? grid : p); kx++) NAME(prefetch_value)(from + kx * grid * stride, 0);
    for (int lane = 0; lane < 8; lane += NAME(OCTET)) NAME(axis_inverse)(s, p, from + lane, grid * stride, planes + 16 * ky + lane, 16 * grid, kz == 0);
  }
  for (int lane = 0; lane < 8; lane += NAME(OCTET)) {
    for (int ix = 0; ix < p; ix++) NAME(axis_inverse)(s, p, planes + 16 * ix * grid + lane, 16, rows + 16 * ix * p + lane, 16, 0);
    for (int i = 0; i < p * p; i++) {
      REAL *point = (REAL *)points + 8 * (int64_t)s->row_first[i] + lane;
      if (s->row_count[i] == 2) NAME(row_inverse)(cosine, sine, rows + 16 * i + lane, begin, 2, point);
      else NAME(row_inverse)(cosine, sine, rows + 16 * i + lane, begin, p, point);
    }
  }
}

static void NAME(forward)(const fmm_vlist_shape *s, const void *points, int kz, void *out, int64_t stride, int past, void *scratch) {
  past ? NAME(forward_order)(s, s->order, points, kz, out, stride, 1, scratch) : NAME(forward_order)(s, s->order, points, kz, out, stride, 0, scratch);
#if defined(FMM_SIMD_AVX512_BUILD) || defined(FMM_SIMD_AVX2_BUILD)
  if (past) _mm_sfence();
#endif
}

static void NAME(inverse)(const fmm_vlist_shape *s, const void *in, int64_t stride, int kz, void *points, void *scratch) {
  kz ? NAME(inverse_order)(s, s->order, in, stride, kz, 0, points, scratch) : NAME(inverse_order)(s, s->order, in, stride, 0, 1, points, scratch);
}
