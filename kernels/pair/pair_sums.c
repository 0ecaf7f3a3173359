/* The pair-sum engine, instruction-set independent part: cuts targets into blocks of FMM_PAIR_BLOCK and columns into chunks of 4, 2, 1,
 * and gives each range of sources to the kernel of the pair, accuracy and chunk.
 * A distance too small for a float's estimate of 1/r leaves NaN or inf in the sums (vector.h): such a block is summed again by the plain
 * C reference, which works over the whole range of doubles. The check costs nothing in the inner loop. */
#include "kernels/pair/pair_sums.h"

#include <string.h>

#include "kernels/pair/accuracy_steps.h"
#include "kernels/pair/pair_block.h"
#include "kernels/pair/pair_lattice.h"

#define TABLE_ROW(accuracy) {fmm_pair_kernels_##accuracy##_plain, fmm_pair_kernels_##accuracy##_avx2, fmm_pair_kernels_##accuracy##_avx512},
static const fmm_pair_kernels *const tables[FMM_N_PAIR_ACCURACIES][FMM_N_SIMD] = {FMM_PAIR_TABLES(TABLE_ROW)};

#define LATTICE_ROW(accuracy) \
  {fmm_pair_lattice_kernels_##accuracy##_plain, fmm_pair_lattice_kernels_##accuracy##_avx2, fmm_pair_lattice_kernels_##accuracy##_avx512},
enum { LATTICE_FULL, LATTICE_NEAR, LATTICE_SINGLE, N_LATTICE_ACCURACIES };
static const fmm_pair_lattice_kernels *const lattice_tables[N_LATTICE_ACCURACIES][FMM_N_SIMD] = {FMM_PAIR_LATTICE_TABLES(LATTICE_ROW)};

static const int chunk_columns[] = {[FMM_PAIR_COLUMNS_1] = 1, [FMM_PAIR_COLUMNS_2] = 2, [FMM_PAIR_COLUMNS_4] = 4};

static const fmm_pair_kernels *find_kernels(const fmm_pair *pair, fmm_pair_accuracy accuracy) {
  const fmm_pair_kernels *table = tables[accuracy][fmm_simd_level()];
  for (int i = 0; table && fmm_pairs[i]; i++)
    if (fmm_pairs[i] == pair) return &table[i];
  return NULL;
}

static const fmm_pair_lattice_kernels *find_lattice_kernels(const fmm_pair *pair, int accuracy) {
  const fmm_pair_lattice_kernels *table = lattice_tables[accuracy][fmm_simd_level()];
  for (int i = 0; fmm_pairs[i]; i++)
    if (fmm_pairs[i] == pair) return fmm_pair_suits_lattice(pair->info) ? &table[i] : NULL;
  return NULL;
}

void fmm_pair_sum_prepare(fmm_pair_sum *sum, const fmm_pair *pair, const double *params, int n_columns, int gradient, fmm_precision precision,
                          double tolerance) {
  int single = precision == FMM_PRECISION_SINGLE || precision == FMM_PRECISION_MIXED;
  const double one_step = fmm_simd_level() == FMM_SIMD_AVX512 && pair->info->has_degree ? FMM_NEWTON_FROM : FMM_NEWTON_FROM_12; /* a Newton step squares what the estimate errs by; exponentials amplify it */
  fmm_pair_accuracy exact = tolerance >= one_step ? FMM_PAIR_REDUCED : tolerance >= FMM_SERIES_FROM ? FMM_PAIR_NEAR : FMM_PAIR_FULL;
  *sum = (fmm_pair_sum){.pair = pair, .params = params, .n_columns = n_columns, .gradient = gradient != 0, .tolerance = tolerance,
                        .kernels = find_kernels(pair, exact), .lattice_kernels = find_lattice_kernels(pair, single ? LATTICE_SINGLE : LATTICE_FULL), .single_kernels = single ? find_kernels(pair, FMM_PAIR_SINGLE) : NULL,
                        .by_products = fmm_pair_products_pay(pair->info, gradient, n_columns), .accuracy = single ? FMM_PAIR_SINGLE : exact};
}

void fmm_pair_sum_allow_coarse(fmm_pair_sum *sum) {
  if (!sum->single_kernels || sum->tolerance < FMM_COARSE_FROM) return;
  sum->single_kernels = find_kernels(sum->pair, FMM_PAIR_COARSE);
  sum->accuracy = FMM_PAIR_COARSE;
}

void fmm_pair_sum_allow_near(fmm_pair_sum *sum, double tolerance) {
  if (sum->lattice_kernels && !sum->single_kernels && tolerance >= FMM_SERIES_FROM) sum->lattice_kernels = find_lattice_kernels(sum->pair, LATTICE_NEAR);
}

const fmm_pair_array_kernels *fmm_pair_arrays(void) {
  static const fmm_pair_array_kernels *const table[FMM_N_SIMD] = {&fmm_pair_arrays_plain, &fmm_pair_arrays_avx2, &fmm_pair_arrays_avx512};
  return table[fmm_simd_level()];
}

void fmm_pair_load_points(fmm_pair_block *b, const fmm_pair_targets *t, int64_t begin) {
  int n = (int)(t->n - begin < fmm_pair_block_size(t->n) ? t->n - begin : fmm_pair_block_size(t->n));
  const double *const plane[3] = {t->x + begin, t->y + begin, t->z + begin};
  b->n = n;
  b->x = t->x + begin;
  for (int axis = 0; axis < 3; axis++) {
    memcpy(b->target[axis], plane[axis], (size_t)n * sizeof(double));
    for (int i = n; i % FMM_PAIR_MAX_LANES; i++) b->target[axis][i] = plane[axis][n - 1];
  }
}

void fmm_pair_load_targets(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_targets *t, int64_t begin) {
  fmm_pair_load_points(b, t, begin);
  for (int axis = 0; axis < 3 && sum->single_kernels; axis++) {
    b->extent[axis][0] = b->extent[axis][1] = b->target[axis][0];
    fmm_pair_arrays()->extent(b->n, b->target[axis], b->extent[axis]);
  }
}

/* The block's sums over one range, chunk of columns by chunk; guarded kernels take one column a time. */
void fmm_pair_range_double(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_sources *s) {
  int step = fmm_pair_step(b, s->may_coincide), components = sum->pair->info->components;
  fmm_pair_form form = s->may_coincide ? FMM_PAIR_GUARDED : b->form;
  fmm_pair_call call = {.n_targets = b->n, .target = {b->target[0], b->target[1], b->target[2]}, .n_sources = s->n,
                        .source = {s->x, s->y, s->z}, .normal = {s->normal[0], s->normal[1], s->normal[2]}, .params = sum->params,
                        .sums_step = b->n_columns / step};
  for (int first = 0; first < b->n_columns; first += step) {
    for (int k = 0; k < components; k++)
      for (int c = 0; c < step; c++)
        call.density[k * step + c] = s->density + k * s->component_stride + (b->column + first + c) * s->column_stride;
    call.sums = b->sums + first;
    sum->kernels->run[sum->gradient][form](&call);
  }
}

/* The block's sums over one range by the plain C reference, target by target and column by column. */
void fmm_pair_range_reference(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_sources *s) {
  for (int c = 0; c < b->n_columns; c++) {
    const double *density[FMM_PAIR_MAX_COMPONENTS];
    for (int k = 0; k < sum->pair->info->components; k++) density[k] = s->density + k * s->component_stride + (b->column + c) * s->column_stride;
    for (int i = 0; i < b->n; i++) {
      double target[3] = {b->target[0][i], b->target[1][i], b->target[2][i]}, f[FMM_PAIR_MAX_VALUES] = {0};
      sum->pair->reference(target, s->n, s->x, s->y, s->z, s->normal, density, sum->params, 1, sum->gradient, f);
      for (int v = 0; v < b->n_values; v++) b->sums[v * b->n_columns + c][i] += f[v];
    }
  }
}

static void sum_ranges(const fmm_pair_sum *sum, fmm_pair_block *b, int64_t n_ranges, const fmm_pair_sources *ranges, fmm_pair_range_function *one) {
  fmm_pair_rows_clear(b->sums, b->n_values * b->n_columns, b->n);
  for (int64_t r = 0; r < n_ranges; r++)
    if (ranges[r].n > 0) one(sum, b, &ranges[r]);
}

void fmm_pair_add_to_targets(const fmm_pair_block *b, const fmm_pair_targets *t, int64_t begin) {
  for (int v = 0; v < b->n_values; v++)
    for (int c = 0; c < b->n_columns; c++) {
      double *value = t->value + v * t->value_stride + (b->column + c) * t->column_stride + begin;
      fmm_pair_arrays()->add(b->n, 1, b->sums[v * b->n_columns + c], value);
    }
}

/* All blocks, whose sums are in these rows. */
static void add_blocks(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int64_t n_ranges, const fmm_pair_sources *ranges, int n_values, fmm_pair_row *rows) {
  fmm_pair_block b;
  b.n_values = n_values, b.sums = rows;
  for (int64_t begin = 0; begin < targets->n; begin += fmm_pair_block_size(targets->n)) {
    fmm_pair_load_targets(sum, &b, targets, begin);
    for (b.column = 0; b.column < sum->n_columns; b.column += b.n_columns) {
      int left = sum->n_columns - b.column;
      b.form = left >= 4 ? FMM_PAIR_COLUMNS_4 : left >= 2 ? FMM_PAIR_COLUMNS_2 : FMM_PAIR_COLUMNS_1;
      b.n_columns = chunk_columns[b.form];
      fmm_pair_rows_clear(b.sums, b.n_values * b.n_columns, b.n);
      if (sum->single_kernels) fmm_pair_ranges_single(sum, &b, n_ranges, ranges);
      else if (sum->kernels) sum_ranges(sum, &b, n_ranges, ranges, fmm_pair_range_double);
      if (!sum->kernels || !fmm_pair_rows_finite(b.sums, b.n_values * b.n_columns, b.n)) sum_ranges(sum, &b, n_ranges, ranges, fmm_pair_range_reference);
      fmm_pair_add_to_targets(&b, targets, begin);
    }
  }
}

__attribute__((noinline)) static void add_few_rows(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int64_t n_ranges, const fmm_pair_sources *ranges, int n_values) {
  alignas(64) fmm_pair_row rows[FMM_PAIR_FEW_ROWS];
  add_blocks(sum, targets, n_ranges, ranges, n_values, rows);
}

__attribute__((noinline)) static void add_many_rows(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int64_t n_ranges, const fmm_pair_sources *ranges, int n_values) {
  alignas(64) fmm_pair_row rows[FMM_PAIR_MANY_ROWS];
  add_blocks(sum, targets, n_ranges, ranges, n_values, rows);
}

void fmm_pair_sum_add(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int64_t n_ranges, const fmm_pair_sources *ranges) {
  const int n_values = sum->pair->info->outputs * (sum->gradient ? 4 : 1), columns = sum->n_columns < FMM_PAIR_MAX_COLUMNS ? sum->n_columns : FMM_PAIR_MAX_COLUMNS;
  (n_values * columns <= FMM_PAIR_FEW_ROWS ? add_few_rows : add_many_rows)(sum, targets, n_ranges, ranges, n_values);
}

void fmm_surface_planes(int n, const double *surface, const double center[3], double radius, double *x, double *y, double *z) {
  for (int i = 0; i < n; i++) {
    x[i] = center[0] + radius * surface[3 * i];
    y[i] = center[1] + radius * surface[3 * i + 1];
    z[i] = center[2] + radius * surface[3 * i + 2];
  }
}

void fmm_pair_sum_add_shell(const fmm_pair_targets *targets, const double center[3], double decay2, double part, int gradient) {
  const double *const at[3] = {targets->x, targets->y, targets->z};
  if (part != 0) fmm_pair_arrays()->shell(targets->n, at, center, decay2, part, gradient, targets->value, targets->value_stride);
}
