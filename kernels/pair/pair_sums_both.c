/* The pair-sum engine for both directions of a symmetric pair between a set of points and several others. The others fill blocks of targets, so that no lanes are
 * empty but the last block's, however small the sets are; each such crowd goes with the set as its sources to the kernel of its accuracy, to double when single is not
 * enough, to the plain C reference when a sum is not finite (see pair_sums.c). One column: with several the root is shared already. */
#include "kernels/pair/pair_block.h"
#include "kernels/pair/pair_both.h"

enum { OWN_PIECE = 64 };

int fmm_pair_sum_can_add_both(const fmm_pair_sum *sum) { return sum->kernels && fmm_pair_can_both(sum->pair->info, sum->n_columns); }

int fmm_pair_sum_prefers_both(const fmm_pair_sum *sum) { return sum->kernels && fmm_pair_prefers_both(sum->pair->info, sum->gradient, sum->n_columns); }

/* The crowd's points as targets. */
static void load_crowd(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_crowd *crowd) {
  const int components = sum->pair->info->components;
  int64_t at = 0;
  for (int k = 0; k < crowd->n; at += crowd->part[k++].n) {
    const fmm_pair_side *part = &crowd->part[k];
    const fmm_pair_points *s = part->points;
    const double *const from[] = {s->x, s->y, s->z};
    for (int axis = 0; axis < 3; axis++) memcpy(b->target[axis] + at, from[axis] + part->begin, (size_t)part->n * sizeof(double));
    for (int c = 0; c < components; c++) memcpy(b->density[c] + at, s->density + c * s->component_stride + part->begin, (size_t)part->n * sizeof(double));
  }
  b->n = (int)at;
  for (; at % FMM_PAIR_MAX_LANES; at++) {
    for (int axis = 0; axis < 3; axis++) b->target[axis][at] = b->target[axis][b->n - 1];
    for (int c = 0; c < components; c++) b->density[c][at] = 0;
  }
}

static int back_finite(const fmm_pair_back *back, int n_values, int64_t n) {
  for (int v = 0; v < n_values; v++)
    if (!fmm_pair_arrays()->finite(n, back->sums[v])) return 0;
  return 1;
}

static fmm_pair_sources sources_of(const fmm_pair_side *a) {
  const fmm_pair_points *p = a->points;
  return (fmm_pair_sources){.n = a->n, .x = p->x + a->begin, .y = p->y + a->begin, .z = p->z + a->begin, .density = p->density + a->begin, .component_stride = p->component_stride};
}

static int both_double(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, fmm_pair_block *b, const fmm_pair_side *side, fmm_pair_back *back) {
  if (fmm_pair_both_apart(sum, crowd, side, b, back))
    return fmm_pair_rows_finite(b->sums, b->n_values, b->n) && back_finite(back, b->n_values, side->n);
  const fmm_pair_sources all = sources_of(side), *a = &all;
  fmm_pair_call call = {.n_targets = b->n, .target = {b->target[0], b->target[1], b->target[2]}, .n_sources = a->n, .source = {a->x, a->y, a->z},
                        .params = sum->params, .sums = b->sums, .sums_step = 1, .back = back->sums};
  for (int k = 0; k < sum->pair->info->components; k++) {
    call.density[k] = a->density + k * a->component_stride;
    call.target_density[k] = b->density[k];
  }
  load_crowd(sum, b, crowd);
  call.n_targets = b->n;
  fmm_pair_rows_clear(b->sums, b->n_values, b->n);
  sum->kernels->run[sum->gradient][fmm_pair_products_serve(sum, crowd, side) ? FMM_PAIR_PRODUCTS : FMM_PAIR_BOTH](&call);
  return fmm_pair_rows_finite(b->sums, b->n_values, b->n) && back_finite(back, b->n_values, a->n);
}

static void both_reference(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, fmm_pair_block *b, const fmm_pair_side *side, fmm_pair_back *back) {
  static const double *const no_normal[3];
  const fmm_pair_sources s = sources_of(side), *a = &s;
  const double *density[FMM_PAIR_MAX_COMPONENTS];
  load_crowd(sum, b, crowd);
  fmm_pair_rows_clear(b->sums, b->n_values, b->n);
  fmm_pair_range_reference(sum, b, &s);
  for (int k = 0; k < sum->pair->info->components; k++) density[k] = b->density[k];
  for (int64_t j = 0; j < a->n; j++) {
    double at[3] = {a->x[j], a->y[j], a->z[j]}, f[FMM_PAIR_MAX_VALUES] = {0};
    sum->pair->reference(at, b->n, b->target[0], b->target[1], b->target[2], no_normal, density, sum->params, 1, sum->gradient, f);
    for (int v = 0; v < b->n_values; v++) back->sums[v][j] = f[v];
  }
}

static void add_all(const fmm_pair_sum *sum, const fmm_pair_block *b, const fmm_pair_back *back, const fmm_pair_crowd *crowd, const fmm_pair_side *a) {
  const fmm_pair_array_kernels *arrays = fmm_pair_arrays();
  for (int v = 0; v < b->n_values; v++) {
    int derivative = sum->gradient && v % 4;
    int64_t at = 0;
    arrays->add(a->n, back->factor[derivative], back->sums[v], a->value + v * a->value_stride + a->begin);
    for (int k = 0; k < crowd->n; at += crowd->part[k++].n) {
      const fmm_pair_side *part = &crowd->part[k];
      arrays->add(part->n, back->block_factor[derivative], b->sums[v] + at, part->value + v * part->value_stride + part->begin);
    }
  }
}

/* The crowd with a, in single, or in double, or by the reference where some sum is not finite. */
static void both_crowd(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_crowd *crowd, const fmm_pair_side *a, fmm_pair_block *b, fmm_pair_back *back) {
  if (!sum->single_kernels || !fmm_pair_both_single(sum, store, crowd, a, b, back) || !fmm_pair_rows_finite(b->sums, b->n_values, b->n) ||
      !back_finite(back, b->n_values, a->n)) {
    if (!both_double(sum, crowd, b, a, back)) both_reference(sum, crowd, b, a, back);
    back->factor[0] = back->factor[1] = back->block_factor[0] = back->block_factor[1] = 1;
  }
  add_all(sum, b, back, crowd, a);
}

/* The crowd with all points of a; then it is empty. */
static void both_pieces(const fmm_pair_sum *sum, const fmm_pair_store *store, fmm_pair_crowd *crowd, const fmm_pair_side *a, fmm_pair_block *b) {
  fmm_pair_back back;
  for (int64_t begin = 0; crowd->n && begin < a->n; begin += FMM_PAIR_BACK) {
    fmm_pair_side piece = *a;
    piece.begin += begin, piece.n = a->n - begin < FMM_PAIR_BACK ? a->n - begin : FMM_PAIR_BACK;
    both_crowd(sum, store, crowd, &piece, b, &back);
  }
  crowd->n = 0, crowd->n_points = 0;
}

static void start_block(const fmm_pair_sum *sum, fmm_pair_block *block, fmm_pair_row *rows) {
  block->sums = rows;
  block->column = 0, block->n_columns = 1, block->form = FMM_PAIR_COLUMNS_1;
  block->n_values = sum->pair->info->outputs * (sum->gradient ? 4 : 1);
}

__attribute__((noinline)) void fmm_pair_sum_add_both(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_side *a, int64_t n_others, const fmm_pair_side *others) {
  const int64_t most = FMM_PAIR_BLOCK;
  alignas(64) fmm_pair_row rows[FMM_PAIR_MAX_VALUES];
  fmm_pair_block block;
  fmm_pair_crowd crowd;
  start_block(sum, &block, rows);
  crowd.n = 0, crowd.n_points = 0;
  for (int64_t r = 0; r < n_others; r++)
    for (int64_t begin = 0; begin < others[r].n;) {
      int64_t room = most - crowd.n_points, left = others[r].n - begin, n = left < room ? left : room;
      fmm_pair_side *part = &crowd.part[crowd.n++];
      *part = others[r];
      part->begin += begin, part->n = n;
      crowd.n_points += n, begin += n;
      if (crowd.n_points == most || crowd.n == FMM_PAIR_PARTS) both_pieces(sum, store, &crowd, a, &block);
    }
  both_pieces(sum, store, &crowd, a, &block);
}

/* All by fmm_pair_sum_add, where a block and a piece of single precision do not hold them or do not suffice. */
static void add_own_guarded(const fmm_pair_sum *sum, const fmm_pair_side *a) {
  fmm_pair_sources sources = sources_of(a);
  fmm_pair_targets targets = {.n = a->n, .x = sources.x, .y = sources.y, .z = sources.z, .value = a->value + a->begin, .value_stride = a->value_stride};
  sources.may_coincide = 1;
  fmm_pair_sum_add(sum, &targets, 1, &sources);
}

static fmm_pair_side part_of(const fmm_pair_side *a, int64_t begin, int64_t n) {
  fmm_pair_side part = *a;
  part.begin += begin, part.n = n;
  return part;
}

/* In double: pieces of about OWN_PIECE onto themselves, which is dear, and in both directions with all that follow. */
static void add_own_double(const fmm_pair_sum *sum, const fmm_pair_side *a) {
  const int64_t pieces = (a->n + OWN_PIECE / 2) / OWN_PIECE, size = pieces > 1 ? (a->n + pieces - 1) / pieces : a->n;
  for (int64_t begin = 0; begin < a->n; begin += size) {
    const int64_t n = a->n - begin < size ? a->n - begin : size;
    const fmm_pair_side piece = part_of(a, begin, n), rest = part_of(a, begin + n, a->n - begin - n);
    add_own_guarded(sum, &piece);
    if (rest.n) fmm_pair_sum_add_both(sum, NULL, &piece, 1, &rest);
  }
}

/* In single; 0, having added nothing, when all must go by fmm_pair_sum_add. */
__attribute__((noinline)) static int add_own_single(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_side *a) {
  alignas(64) fmm_pair_row rows[FMM_PAIR_MAX_VALUES];
  fmm_pair_block block;
  double factor[2];
  start_block(sum, &block, rows);
  if (a->n < 1 || a->n > FMM_PAIR_BLOCK || !fmm_pair_own_single(sum, store, a, &block, factor)) return 0;
  for (int v = 0; v < block.n_values; v++) fmm_pair_arrays()->add(a->n, factor[sum->gradient && v % 4], block.sums[v], a->value + v * a->value_stride + a->begin);
  return 1;
}

void fmm_pair_sum_add_own(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_side *a) {
  if (!sum->single_kernels) add_own_double(sum, a);
  else if (!add_own_single(sum, store, a)) add_own_guarded(sum, a);
}
