/* The pair-sum engine for both directions of a symmetric pair between two sets of points: blocks of one set with pieces of the other,
 * each piece by the kernel of its accuracy, in double when single is not enough, by the plain C reference when a sum is not finite
 * (see pair_sums.c). One column: with several the root is shared already. */
#include "kernels/pair/pair_block.h"
#include "kernels/pair/pair_both.h"

int fmm_pair_sum_can_add_both(const fmm_pair_sum *sum) { return sum->kernels && fmm_pair_can_both(sum->pair->info, sum->n_columns); }

int fmm_pair_sum_prefers_both(const fmm_pair_sum *sum) { return sum->kernels && fmm_pair_prefers_both(sum->pair->info, sum->gradient, sum->n_columns); }

static void load_densities(fmm_pair_block *b, const fmm_pair_points *a, int components, int64_t begin) {
  for (int k = 0; k < components; k++)
    for (int i = 0; i < FMM_PAIR_BLOCK; i++) b->density[k][i] = i < b->n ? a->density[k * a->component_stride + begin + i] : 0;
}

static int back_finite(const fmm_pair_back *back, int n_values, int64_t n) {
  for (int v = 0; v < n_values; v++)
    if (!fmm_pair_all_finite(n, back->sums[v])) return 0;
  return 1;
}

static int both_double(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_sources *s, fmm_pair_back *back) {
  fmm_pair_call call = {.n_targets = b->n, .target = {b->target[0], b->target[1], b->target[2]}, .n_sources = s->n, .source = {s->x, s->y, s->z},
                        .params = sum->params, .sums = b->sums, .sums_step = 1, .back = back->sums};
  for (int k = 0; k < sum->pair->info->components; k++) {
    call.density[k] = s->density + k * s->component_stride;
    call.target_density[k] = b->density[k];
  }
  sum->kernels->run[sum->gradient][FMM_PAIR_BOTH](&call);
  return fmm_pair_rows_finite(b->sums, b->n_values, b->n) && back_finite(back, b->n_values, s->n);
}

static void both_reference(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_sources *s, fmm_pair_back *back) {
  static const double *const no_normal[3];
  const double *density[FMM_PAIR_MAX_COMPONENTS];
  fmm_pair_rows_clear(b->sums, b->n_values, b->n);
  fmm_pair_range_reference(sum, b, s);
  for (int k = 0; k < sum->pair->info->components; k++) density[k] = b->density[k];
  for (int64_t j = 0; j < s->n; j++) {
    double at[3] = {s->x[j], s->y[j], s->z[j]}, f[FMM_PAIR_MAX_VALUES] = {0};
    sum->pair->reference(at, b->n, b->target[0], b->target[1], b->target[2], no_normal, density, sum->params, 1, sum->gradient, f);
    for (int v = 0; v < b->n_values; v++) back->sums[v][j] = f[v];
  }
}

static void add_back(const fmm_pair_parts *parts, int k, int64_t at, int n_values, const fmm_pair_back *back) {
  for (int v = 0; v < n_values; v++)
    for (int64_t j = 0; j < parts->part[k].n; j++) parts->value[k][v * parts->value_stride[k] + j] += back->sums[v][at + j];
}

/* The sources of all parts as one: short ranges share the cost of a call. */
static fmm_pair_sources gather(const fmm_pair_parts *parts, int components, fmm_pair_back *back) {
  int64_t at = 0;
  for (int k = 0; k < parts->n; at += parts->part[k++].n) {
    const fmm_pair_sources *s = &parts->part[k];
    const double *const from[] = {s->x, s->y, s->z};
    for (int row = 0; row < 3 + components; row++)
      memcpy(back->gathered[row] + at, row < 3 ? from[row] : s->density + (row - 3) * s->component_stride, (size_t)s->n * sizeof(double));
  }
  return (fmm_pair_sources){.n = at, .x = back->gathered[0], .y = back->gathered[1], .z = back->gathered[2], .density = back->gathered[3],
                            .component_stride = FMM_PAIR_BACK};
}

static int all_double(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_parts *parts, fmm_pair_back *back) {
  fmm_pair_sources all = parts->n == 1 ? parts->part[0] : gather(parts, sum->pair->info->components, back);
  fmm_pair_rows_clear(b->sums, b->n_values, b->n);
  return both_double(sum, b, &all, back);
}

static int all_single(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_parts *parts, fmm_pair_back *back) {
  fmm_pair_rows_clear(b->sums, b->n_values, b->n);
  return sum->single_kernels && fmm_pair_both_single(sum, b, parts, back) && fmm_pair_rows_finite(b->sums, b->n_values, b->n) &&
         back_finite(back, b->n_values, parts->n_sources);
}

/* All parts at once, in single or double, or one after another where some sum is not finite. */
static void both_parts(const fmm_pair_sum *sum, fmm_pair_block *b, fmm_pair_parts *parts, const fmm_pair_targets *t, int64_t begin, fmm_pair_back *back) {
  if (!parts->n) return;
  if (all_single(sum, b, parts, back) || all_double(sum, b, parts, back)) {
    fmm_pair_add_to_targets(b, t, begin);
    int64_t at = 0;
    for (int k = 0; k < parts->n; at += parts->part[k++].n) add_back(parts, k, at, b->n_values, back);
  } else {
    for (int k = 0; k < parts->n; k++) {
      fmm_pair_rows_clear(b->sums, b->n_values, b->n);
      if (!both_double(sum, b, &parts->part[k], back)) both_reference(sum, b, &parts->part[k], back);
      fmm_pair_add_to_targets(b, t, begin);
      add_back(parts, k, 0, b->n_values, back);
    }
  }
  parts->n = 0, parts->n_sources = 0;
}

/* Takes what fits of one set of points; how many. */
static int64_t take(fmm_pair_parts *parts, const fmm_pair_points *p, int64_t begin, int64_t most) {
  const fmm_pair_sources s = {.n = p->n, .x = p->x, .y = p->y, .z = p->z, .density = p->density, .component_stride = p->component_stride};
  int64_t n = fmm_pair_take(parts, &s, begin, most);
  if (n) parts->value[parts->n - 1] = p->value + begin, parts->value_stride[parts->n - 1] = p->value_stride;
  return n;
}

void fmm_pair_sum_add_both(const fmm_pair_sum *sum, const fmm_pair_points *a, int64_t n_others, const fmm_pair_points *others) {
  const fmm_pair_targets targets = {.n = a->n, .x = a->x, .y = a->y, .z = a->z, .value = a->value, .value_stride = a->value_stride};
  fmm_pair_block block;
  fmm_pair_back back;
  fmm_pair_parts parts;
  block.column = 0, block.n_columns = 1, block.form = FMM_PAIR_COLUMNS_1;
  block.n_values = sum->pair->info->outputs * (sum->gradient ? 4 : 1);
  parts.n = 0, parts.n_sources = 0;
  for (int64_t i = 0; i < a->n; i += fmm_pair_block_size(a->n)) {
    fmm_pair_load_targets(sum, &block, &targets, i);
    load_densities(&block, a, sum->pair->info->components, i);
    for (int64_t r = 0; r < n_others; r++)
      for (int64_t begin = 0, taken; begin < others[r].n; begin += taken) {
        taken = take(&parts, &others[r], begin, FMM_PAIR_BACK);
        if (!taken) both_parts(sum, &block, &parts, &targets, i, &back);
      }
    both_parts(sum, &block, &parts, &targets, i, &back);
  }
}
