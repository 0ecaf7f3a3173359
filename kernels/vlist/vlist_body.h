/* Body of vlist_simd.c for one value type: REAL, REAL_BYTES, NAME(x) = x_double or x_float, VECTOR_BYTES of the instruction set.
 * Included more than once. */

/* OCTET: lanes of a vector over octants; PARTS of them make eight. WIDE: lanes of a vector over padded rows. QUAD: four lanes. */
enum { NAME(OCTET) = VECTOR_BYTES / REAL_BYTES < 8 ? VECTOR_BYTES / REAL_BYTES : 8, NAME(WIDE) = VECTOR_BYTES / REAL_BYTES,
       NAME(PADDED) = (27 + VECTOR_BYTES / REAL_BYTES - 1) / (VECTOR_BYTES / REAL_BYTES) * (VECTOR_BYTES / REAL_BYTES) };
typedef REAL NAME(octet) __attribute__((vector_size(NAME(OCTET) * REAL_BYTES), aligned(NAME(OCTET) * REAL_BYTES)));
typedef REAL NAME(wide) __attribute__((vector_size(NAME(WIDE) * REAL_BYTES), aligned(NAME(WIDE) * REAL_BYTES)));
typedef REAL NAME(quad) __attribute__((vector_size(4 * REAL_BYTES), aligned(4 * REAL_BYTES)));
#if REAL_BYTES == 8
typedef int64_t NAME(index) __attribute__((vector_size(32)));
#else
typedef int32_t NAME(index) __attribute__((vector_size(16)));
#endif

static void NAME(load)(int n, const double *const child[8], void *points) {
  REAL *out = points;
  for (int o = 0; o < 8; o++)
    if (child[o])
      for (int i = 0; i < n; i++) out[8 * i + o] = (REAL)child[o][i];
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

/* One axis forward, one part of the lanes: p complex values at in + j*in_stride -> frequencies k and -k at out + k*out_stride, (grid-k)*out_stride.
 * With S = value above + value below the centre, D = above - below: out(+-k) = (sum cos S_re +- sum sin D_im) + i (sum cos S_im -+ sum sin D_re). */
INLINE void NAME(axis_forward)(const fmm_vlist_shape *s, const REAL *in, int64_t in_stride, REAL *out, int64_t out_stride, int only_positive) {
  enum { LIMIT = (FMM_MAX_ORDER + 1) / 2 };
  const REAL *cosine = s->cosine, *sine = s->sine;
  NAME(octet) sr[LIMIT], si[LIMIT], dr[LIMIT], di[LIMIT];
  int half = s->half, p = s->order;
  NAME(octet) re = {0}, im = {0};
  for (int h = 0; h < half; h++) {
    const REAL *above = in + (p - 1 - h) * in_stride, *below = in + h * in_stride;
    NAME(octet) ar = NAME(get)(above), ai = NAME(get)(above + 8), br = NAME(get)(below), bi = NAME(get)(below + 8);
    int centre = 2 * h == p - 1;
    sr[h] = centre ? ar : ar + br;
    si[h] = centre ? ai : ai + bi;
    dr[h] = ar - br;
    di[h] = ai - bi;
    re += sr[h], im += si[h];
  }
  NAME(put)(out, re);
  NAME(put)(out + 8, im);
  for (int k = 1; k < p; k += 2) { /* two frequencies at a time: a value once loaded serves both */
    int last = k + 1 < p ? k + 1 : k;
    const REAL *c0 = cosine + k * half, *s0 = sine + k * half, *c1 = cosine + last * half, *s1 = sine + last * half;
    NAME(octet) a0 = {0}, b0 = {0}, r0 = {0}, e0 = {0}, a1 = {0}, b1 = {0}, r1 = {0}, e1 = {0};
    for (int h = 0; h < half; h++) {
      a0 += c0[h] * sr[h];
      a1 += c1[h] * sr[h];
      r0 += c0[h] * si[h];
      r1 += c1[h] * si[h];
      b0 += s0[h] * di[h];
      b1 += s1[h] * di[h];
      e0 += s0[h] * dr[h];
      e1 += s1[h] * dr[h];
    }
    NAME(put)(out + k * out_stride, a0 + b0);
    NAME(put)(out + k * out_stride + 8, r0 - e0);
    NAME(put)(out + last * out_stride, a1 + b1);
    NAME(put)(out + last * out_stride + 8, r1 - e1);
    if (only_positive) continue;
    NAME(put)(out + (s->grid - k) * out_stride, a0 - b0);
    NAME(put)(out + (s->grid - k) * out_stride + 8, r0 + e0);
    NAME(put)(out + (s->grid - last) * out_stride, a1 - b1);
    NAME(put)(out + (s->grid - last) * out_stride + 8, r1 + e1);
  }
}

/* One axis backward: frequencies -> p values, the same sums with k and h exchanged. only_positive: values at -k are the conjugates that make the
 * final result real, so 2 x value at k stands for both. */
INLINE void NAME(axis_inverse)(const fmm_vlist_shape *s, const REAL *in, int64_t in_stride, REAL *out, int64_t out_stride, int only_positive) {
  const REAL *cosine = s->cosine, *sine = s->sine;
  NAME(octet) pr[FMM_MAX_ORDER], pi[FMM_MAX_ORDER], mr[FMM_MAX_ORDER], mi[FMM_MAX_ORDER];
  int half = s->half, p = s->order;
  const NAME(octet) re = NAME(get)(in), im = NAME(get)(in + 8);
  for (int k = 1; k < p; k++) {
    const REAL *plus = in + k * in_stride, *minus = in + (s->grid - k) * in_stride;
    NAME(octet) ar = NAME(get)(plus), ai = NAME(get)(plus + 8), br = {0}, bi = {0};
    if (only_positive) ar += ar, ai += ai;
    else br = NAME(get)(minus), bi = NAME(get)(minus + 8);
    pr[k] = ar + br;
    pi[k] = ai + bi;
    mr[k] = ar - br;
    mi[k] = ai - bi;
  }
  for (int h = 0; h < half; h += 2) { /* two points at a time */
    int last = h + 1 < half ? h + 1 : h;
    NAME(octet) a0 = re, b0 = {0}, r0 = im, e0 = {0}, a1 = re, b1 = {0}, r1 = im, e1 = {0};
    for (int k = 1; k < p; k++) {
      const REAL *ch = cosine + k * half, *sh = sine + k * half;
      a0 += ch[h] * pr[k];
      a1 += ch[last] * pr[k];
      r0 += ch[h] * pi[k];
      r1 += ch[last] * pi[k];
      b0 += sh[h] * mi[k];
      b1 += sh[last] * mi[k];
      e0 += sh[h] * mr[k];
      e1 += sh[last] * mr[k];
    }
    NAME(put)(out + (p - 1 - h) * out_stride, a0 - b0);
    NAME(put)(out + (p - 1 - h) * out_stride + 8, r0 + e0);
    NAME(put)(out + h * out_stride, a0 + b0); /* the centre: the same, its sine is 0 */
    NAME(put)(out + h * out_stride + 8, r0 - e0);
    NAME(put)(out + (p - 1 - last) * out_stride, a1 - b1);
    NAME(put)(out + (p - 1 - last) * out_stride + 8, r1 + e1);
    NAME(put)(out + last * out_stride, a1 + b1);
    NAME(put)(out + last * out_stride + 8, r1 - e1);
  }
}

/* z axis of one lattice row for one kz: real points -> one complex value. */
INLINE void NAME(row_forward)(const fmm_vlist_shape *s, const REAL *point, int count, int kz, REAL *out) {
  const REAL *cosine = (const REAL *)s->cosine + kz * s->half, *sine = (const REAL *)s->sine + kz * s->half;
  NAME(octet) re = {0}, im = {0};
  for (int h = 0; h < (count + 1) / 2; h++) {
    NAME(octet) above = NAME(get)(point + 8 * (count - 1 - h)), below = NAME(get)(point + 8 * h);
    re += cosine[h] * (2 * h == count - 1 ? above : above + below);
    im -= sine[h] * (above - below);
  }
  NAME(put)(out, re);
  NAME(put)(out + 8, im);
}

INLINE void NAME(row_inverse)(const fmm_vlist_shape *s, const REAL *in, int kz, int count, REAL *point) {
  const REAL *cosine = (const REAL *)s->cosine + kz * s->half, *sine = (const REAL *)s->sine + kz * s->half;
  REAL weight = kz ? 2 : 1;
  NAME(octet) re = weight * NAME(get)(in), im = weight * NAME(get)(in + 8);
  for (int h = 0; h < (count + 1) / 2; h++) {
    NAME(octet) c = cosine[h] * re, e = sine[h] * im;
    REAL *above = point + 8 * (count - 1 - h), *below = point + 8 * h;
    NAME(put)(above, NAME(get)(above) + (c - e));
    if (above != below) NAME(put)(below, NAME(get)(below) + (c + e));
  }
}

/* The same frequency of a parent a little later: neighbours in memory are a whole transform apart in time, and each is a miss of all caches. */
enum { NAME(AHEAD) = 2 };
INLINE void NAME(prefetch)(const REAL *value, int write) {
  const uintptr_t later = (uintptr_t)value + 16 * NAME(AHEAD) * REAL_BYTES; /* beyond the array for the last parents */
  for (size_t line = 0; line < 16 * REAL_BYTES; line += 64)
    if (write) __builtin_prefetch((const void *)(later + line), 1);
    else __builtin_prefetch((const void *)(later + line), 0);
}

/* scratch: [ix][iy][16], then [ix][ky][16]. */
static void NAME(forward)(const fmm_vlist_shape *s, const void *points, int kz, void *out, int64_t stride, void *scratch) {
  int p = s->order, grid = s->grid;
  REAL *rows = scratch, *planes = rows + 16 * p * p;
  for (int lane = 0; lane < 8; lane += NAME(OCTET)) {
    for (int i = 0; i < p * p; i++)
      NAME(row_forward)(s, (const REAL *)points + 8 * (int64_t)s->row_first[i] + lane, s->row_count[i], kz, rows + 16 * i + lane);
    for (int ix = 0; ix < p; ix++) NAME(axis_forward)(s, rows + 16 * ix * p + lane, 16, planes + 16 * ix * grid + lane, 16, 0);
  }
  for (int ky = 0; ky < grid; ky++) {
    REAL *to = (REAL *)out + ky * stride;
    for (int kx = 0; kx < (kz ? grid : p); kx++) NAME(prefetch)(to + kx * grid * stride, 1);
    for (int lane = 0; lane < 8; lane += NAME(OCTET)) NAME(axis_forward)(s, planes + 16 * ky + lane, 16 * grid, to + lane, grid * stride, kz == 0);
  }
}

static void NAME(inverse)(const fmm_vlist_shape *s, const void *in, int64_t stride, int kz, void *points, void *scratch) {
  int p = s->order, grid = s->grid;
  REAL *rows = scratch, *planes = rows + 16 * p * p;
  for (int ky = 0; ky < grid; ky++) {
    const REAL *from = (const REAL *)in + ky * stride;
    for (int kx = 0; kx < (kz ? grid : p); kx++) NAME(prefetch)(from + kx * grid * stride, 0);
    for (int lane = 0; lane < 8; lane += NAME(OCTET)) NAME(axis_inverse)(s, from + lane, grid * stride, planes + 16 * ky + lane, 16 * grid, kz == 0);
  }
  for (int lane = 0; lane < 8; lane += NAME(OCTET)) {
    for (int ix = 0; ix < p; ix++) NAME(axis_inverse)(s, planes + 16 * ix * grid + lane, 16, rows + 16 * ix * p + lane, 16, 0);
    for (int i = 0; i < p * p; i++)
      NAME(row_inverse)(s, rows + 16 * i + lane, kz, s->row_count[i], (REAL *)points + 8 * (int64_t)s->row_first[i] + lane);
  }
}

/* Eight octants -> 27 sums. a: the four (x, y) of one z; lanes 01 of x0, x1 at y0, then at y1. */
INLINE void NAME(expand_eight)(const REAL *in, REAL *out) {
  NAME(quad) a[3], last = {0};
  a[0] = *(const NAME(quad) *)in;
  a[1] = *(const NAME(quad) *)(in + 4);
  a[2] = a[0] + a[1];
  for (int z = 0; z < 3; z++) {
    NAME(quad) y = a[z] + __builtin_shuffle(a[z], (NAME(index)){2, 3, 0, 1}); /* sums over y, of x0, x1 */
    NAME(quad) x = a[z] + __builtin_shuffle(a[z], (NAME(index)){1, 0, 3, 2}); /* sums over x, at y0 (lane 0), y1 (lane 2) */
    NAME(quad) both = y + __builtin_shuffle(y, (NAME(index)){1, 0, 3, 2});
    *(NAME(quad) *)(out + 4 * z) = a[z];
    *(NAME(quad) *)(out + 12 + 4 * z) = __builtin_shuffle(y, x, (NAME(index)){0, 1, 4, 6});
    last[z] = both[0];
  }
  *(NAME(quad) *)(out + 24) = last;
  if (NAME(PADDED) > 28) *(NAME(quad) *)(out + 28) = (NAME(quad)){0};
}

static void NAME(expand)(int64_t n, const void *spectrum, void *expanded) {
  const REAL *in = spectrum;
  REAL *out = expanded;
  for (int64_t i = 0; i < n; i++) {
    NAME(expand_eight)(in + 16 * i, out + 2 * NAME(PADDED) * i);
    NAME(expand_eight)(in + 16 * i + 8, out + 2 * NAME(PADDED) * i + NAME(PADDED));
  }
}

/* 27 -> eight octants: along an axis, octant 0 takes sums 2 and 1, octant 1 takes sums 2 and 0. */
INLINE void NAME(contract_eight)(const REAL *in, REAL *out) {
  NAME(quad) o[3];
  for (int z = 0; z < 3; z++) {
    NAME(quad) a = *(const NAME(quad) *)(in + 4 * z), b = *(const NAME(quad) *)(in + 12 + 4 * z);
    REAL both = in[24 + z];
    o[z] = (NAME(quad)){both, both, both, both} + __builtin_shuffle(b, (NAME(index)){1, 0, 1, 0}) + __builtin_shuffle(b, (NAME(index)){3, 3, 2, 2}) +
           __builtin_shuffle(a, (NAME(index)){3, 2, 1, 0});
  }
  *(NAME(quad) *)out = o[2] + o[1];
  *(NAME(quad) *)(out + 4) = o[2] + o[0];
}

/* Differences along one axis: 7 offsets -> 3 directions x 3 sums: T(2D-1) - T(2D), T(2D+1) - T(2D), T(2D). in: [7][inner][2], out: [9][inner][2]. */
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
  double x[9 * 49 * 2], y[9 * 9 * 7 * 2], z[9 * 9 * 9 * 2];
  REAL *to = out;
  NAME(differences)(full[0], 49 * 2, x);
  for (int i = 0; i < 9; i++) NAME(differences)(x + i * 49 * 2, 7 * 2, y + i * 9 * 7 * 2);
  for (int i = 0; i < 81; i++) NAME(differences)(y + i * 7 * 2, 2, z + i * 9 * 2);
  memset(to, 0, FMM_DIRECTIONS * 2 * NAME(PADDED) * sizeof *to);
  for (int i = 0; i < 729; i++) {
    int x9 = i / 81, y9 = i / 9 % 9, z9 = i % 9, direction = x9 / 3 + 3 * (y9 / 3) + 9 * (z9 / 3);
    REAL *at = to + direction * 2 * NAME(PADDED) + FMM_VLIST_LANE(x9 % 3, y9 % 3, z9 % 3);
    at[0] = (REAL)z[2 * i];
    at[NAME(PADDED)] = (REAL)z[2 * i + 1];
  }
}

/* GROUP vectors of the 27 for one row, output component and column: sums stay in registers over all entries and input components.
 * A sum that takes two multiply-adds an entry waits for the first before the second: eight such sums just fill two units of latency 4, fewer
 * do not. With 32 registers the products with real and with imaginary parts of the matrices are summed apart. */
INLINE void NAME(product_group)(const fmm_vlist_product *p, int64_t row, int out, int column, int first, int GROUP, REAL *sums) {
  enum { WIDE = NAME(WIDE), PAIR = 2 * NAME(PADDED) };
  NAME(wide) re[4] = {{0}}, im[4] = {{0}}, re_apart[4] = {{0}}, im_apart[4] = {{0}};
  int64_t source_stride = (int64_t)p->n_components * p->n_columns * PAIR;
  for (int in = 0; in < p->n_components; in++) {
    const REAL *matrices = (const REAL *)p->matrices + (int64_t)(out * p->n_components + in) * FMM_DIRECTIONS * PAIR + first * WIDE;
    const REAL *expanded = (const REAL *)p->expanded + (int64_t)(in * p->n_columns + column) * PAIR + first * WIDE;
    for (int64_t e = p->offset[row]; e < p->offset[row + 1]; e++) {
      const NAME(wide) *m = (const NAME(wide) *)(matrices + p->direction[e] * PAIR);
      const NAME(wide) *x = (const NAME(wide) *)(expanded + p->source[e] * source_stride);
#pragma GCC unroll 4
      for (int g = 0; g < GROUP; g++) {
        NAME(wide) mr = m[g], mi = m[g + NAME(PADDED) / WIDE], xr = x[g], xi = x[g + NAME(PADDED) / WIDE];
        KEEP_IN_REGISTERS(mr, mi, xr, xi);
        re[g] += mr * xr;
        im[g] += mr * xi;
        if (APART) {
          re_apart[g] += mi * xi;
          im_apart[g] += mi * xr;
        } else {
          re[g] -= mi * xi;
          im[g] += mi * xr;
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

static void NAME(product)(const fmm_vlist_product *p) {
  enum { VECTORS = NAME(PADDED) / NAME(WIDE), REST = VECTORS % 4 };
  REAL sums[2 * FMM_VLIST_PADDED] __attribute__((aligned(64))), *to = p->out;
  for (int64_t row = p->row_begin; row < p->row_end; row++)
    for (int out = 0; out < p->n_components; out++)
      for (int column = 0; column < p->n_columns; column++, to += 16) {
        for (int first = 0; first + 4 <= VECTORS; first += 4) NAME(product_group)(p, row, out, column, first, 4, sums);
        if (REST) NAME(product_group)(p, row, out, column, VECTORS - REST, REST, sums);
        NAME(contract_eight)(sums, to);
        NAME(contract_eight)(sums + NAME(PADDED), to + 8);
      }
}
