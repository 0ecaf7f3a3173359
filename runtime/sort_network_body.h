/* The network of sort_network.h for vectors of LANES keys, up to ROWS of them. Included once a width by sort_network.c, which defines V, a vector; FITS(name), the function's name; load, of the first `left` lanes, the others the greatest key;
 * as_keys, of what load makes of them; sort_two, lane by lane. Everything is inlined into one function a number of rows, whose loops the compiler unrolls, so that all rows are in registers as far as these go. */

/* The keys in another order of lanes: l ^ with. */
NETWORK_INLINE V FITS(crossed)(V x, int with) {
  V from;
  for (int l = 0; l < LANES; l++) from[l] = l ^ with;
  return __builtin_shuffle(x, from);
}

/* Of each lane and its partner's the smaller where the lane has not this bit, else the larger. */
NETWORK_INLINE V FITS(part_of_two)(V own, V partner, int bit) {
  V is_high, smaller = own, larger = partner;
  for (int l = 0; l < LANES; l++) is_high[l] = l & bit ? -1 : 0;
  FITS(sort_two)(&smaller, &larger);
  return (smaller & ~is_high) | (larger & is_high);
}

/* Each lane's column, by odd-even merging. */
NETWORK_INLINE void FITS(sort_columns)(V *x, int rows) {
#pragma GCC unroll 8
  for (int p = 1; p < rows; p *= 2)
#pragma GCC unroll 8
    for (int k = p; k >= 1; k /= 2)
#pragma GCC unroll 16
      for (int j = k % p; j + k < rows; j += 2 * k)
#pragma GCC unroll 16
        for (int i = 0; i < k; i++)
          if (i + j + k < rows && (i + j) / (2 * p) == (i + j + k) / (2 * p)) FITS(sort_two)(&x[i + j], &x[i + j + k]);
}

/* Each lane's column, of which a first part ascends and the rest descends. */
NETWORK_INLINE void FITS(merge_columns)(V *x, int rows) {
#pragma GCC unroll 8
  for (int k = rows / 2; k >= 1; k /= 2)
#pragma GCC unroll 16
    for (int j = 0; j < rows; j += 2 * k)
#pragma GCC unroll 16
      for (int i = j; i < j + k; i++) FITS(sort_two)(&x[i], &x[i + k]);
}

/* Runs of columns, one after the other, of width lanes: the first of two with the second the other way round, so that the smaller half comes to the first. */
NETWORK_INLINE void FITS(join_runs)(V *x, int rows, int width) {
#pragma GCC unroll 16
  for (int i = 0; i < rows / 2; i++) {
    const V first = FITS(crossed)(x[i], 2 * width - 1), last = FITS(crossed)(x[rows - 1 - i], 2 * width - 1);
    x[i] = FITS(part_of_two)(x[i], last, width), x[rows - 1 - i] = FITS(part_of_two)(x[rows - 1 - i], first, width);
  }
}

NETWORK_INLINE void FITS(merge_lanes)(V *x, int rows) {
#pragma GCC unroll 4
  for (int width = 1; width < LANES; width *= 2) {
    FITS(join_runs)(x, rows, width);
#pragma GCC unroll 4
    for (int h = width / 2; h >= 1; h /= 2)
#pragma GCC unroll 16
      for (int i = 0; i < rows; i++) x[i] = FITS(part_of_two)(x[i], FITS(crossed)(x[i], h), h);
    FITS(merge_columns)(x, rows);
  }
}

/* LANES rows into columns. */
NETWORK_INLINE void FITS(transpose)(V *x) {
#pragma GCC unroll 4
  for (int h = 1; h < LANES; h *= 2) {
    V first, second;
    for (int l = 0; l < LANES; l++) first[l] = l & h ? LANES + (l ^ h) : l, second[l] = l & h ? LANES + l : l ^ h;
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++)
      if (!(i & h)) {
        const V a = x[i], b = x[i + h];
        x[i] = __builtin_shuffle(a, b, first), x[i + h] = __builtin_shuffle(a, b, second);
      }
  }
}

/* Column after column. */
NETWORK_INLINE void FITS(write_columns)(V *x, int rows, uint64_t *to) {
  if (rows < LANES) {
#pragma GCC unroll 8
    for (int l = 0; l < LANES; l++)
#pragma GCC unroll 8
      for (int i = 0; i < rows; i++) to[l * rows + i] = (uint64_t)x[i][l];
    return;
  }
#pragma GCC unroll 8
  for (int block = 0; block < rows; block += LANES) {
    FITS(transpose)(x + block);
#pragma GCC unroll 8
    for (int l = 0; l < LANES; l++) memcpy(to + l * rows + block, &x[block + l], sizeof *x);
  }
}

NETWORK_INLINE void FITS(sort_rows)(const uint64_t *from, uint64_t *to, int n, int rows) {
  V x[ROWS];
  uint64_t all[ROWS * LANES] __attribute__((aligned(64)));
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++) x[i] = FITS(load)(from + (i * LANES < n ? i * LANES : 0), n - i * LANES);
  FITS(sort_columns)(x, rows);
  FITS(merge_lanes)(x, rows);
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++) x[i] = FITS(as_keys)(x[i]);
  FITS(write_columns)(x, rows, n == rows * LANES ? to : all);
  if (n < rows * LANES) memcpy(to, all, (size_t)n * sizeof *to);
}

NETWORK_TARGET static void FITS(sort_few_rows)(const uint64_t *from, uint64_t *to, int n) {
  if (n <= 2 * LANES) FITS(sort_rows)(from, to, n, 2);
  else if (n <= 4 * LANES) FITS(sort_rows)(from, to, n, 4);
  else if (n <= 8 * LANES) FITS(sort_rows)(from, to, n, 8);
  else FITS(sort_rows)(from, to, n, ROWS);
}
