/* The error of results by direct sums at a few targets; see sampled_error.h. */
#include "sampled_error.h"

#include <math.h>
#include <string.h>

#include "direct.h"
#include "generate.h"
#include "kernels/pair/pair_sums.h"

enum { SEED = 1, MOST_BLOCKS = 256, CHUNK = 4096 }; /* of sources: a chunk's planes stay in the cache, a block's sums in one place */

/* What is held against direct sums: gradient NULL where there is none. */
typedef struct results { const double *densities, *potential, *gradient; } results;

/* All results of one column in units of the largest of them, so that squares neither overflow nor vanish. */
typedef struct size { double unit, squares; } size;

/* Some targets: their rows, their sorted coordinates as planes, and values as the pair sums leave them, [(output * stride + k) * columns + column][target]. */
typedef struct samples {
  int64_t n, *row;
  double *x, *y, *z; /* one allocation */
  double *weight;    /* a sum over all targets is about the sum over these times their weights */
  double *planes;    /* densities, sorted */
  double *values;
  size *sizes;       /* of the potentials' columns, then of the gradients' */
  double level_part[FMM_MAX_LEVELS]; /* of each target in a leaf of this level */
} samples;

static void free_samples(samples *s) {
  FMM_FREE(&s->row);
  FMM_FREE(&s->x);
  FMM_FREE(&s->weight);
  FMM_FREE(&s->planes);
  FMM_FREE(&s->values);
  FMM_FREE(&s->sizes);
}

/* n rows of results of which every columns'th is the column's; blocks are summed apart, so that the number of threads changes no bit. */
static fmm_status measure_column(int64_t n, int columns, int column, const double *values, int threads, size *s) {
  enum { VALUES = 1 << 14 };
  const int64_t n_blocks = (n + VALUES - 1) / VALUES;
  double unit = 0, *block = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&block, n_blocks, "squares of results"));
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : unit)
  for (int64_t i = 0; i < n; i++) unit = fmax(unit, fabs(values[i * columns + column]));
  unit = unit > 0 ? unit : 1;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t b = 0; b < n_blocks; b++)
    for (int64_t i = b * VALUES; i < (b + 1) * VALUES && i < n; i++) {
      const double f = values[i * columns + column] / unit;
      block[b] += f * f;
    }
  *s = (size){.unit = unit};
  for (int64_t b = 0; b < n_blocks; b++) s->squares += block[b];
  FMM_FREE(&block);
  return FMM_OK;
}

static fmm_status measure_sizes(const fmm_plan *plan, const results *r, size *sizes) {
  const int columns = plan->setup->state.n_columns;
  const int64_t n = plan->setup->tree.targets.n_input * plan->setup->state.pair->info->outputs;
  for (int c = 0; c < columns; c++) {
    FMM_TRY(measure_column(n, columns, c, r->potential, plan->threads, &sizes[c]));
    if (r->gradient) FMM_TRY(measure_column(3 * n, columns, c, r->gradient, plan->threads, &sizes[columns + c]));
  }
  return FMM_OK;
}

/* `width` values of a row, those of a column `columns` apart: their part of all squares. */
static double part_of(const double *values, int64_t width, int columns, const size *sizes) {
  double part = 0;
  for (int c = 0; c < columns; c++) {
    double squares = 0;
    for (int64_t k = 0; k < width; k++) {
      const double f = values[k * columns + c] / sizes[c].unit;
      squares += f * f;
    }
    if (sizes[c].squares > 0) part += squares / sizes[c].squares;
  }
  return part / columns;
}

/* Targets in small leaves are near to what the far field's errors come from: those of potentials are taken to go as the inverse of the leaf's side, those of gradients as its square. */
static void measure_levels(const fmm_plan *plan, samples *s) {
  const fmm_tree *t = &plan->setup->tree;
  const fmm_points *p = &t->targets;
  const int shift = plan->setup->state.gradient ? 4 : 2;
  double all = 0;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) s->level_part[l] = ldexp(1, shift * (l - FMM_MAX_LEVELS));
  for (int32_t k = 0; k < t->n_leaves; k++) {
    const int64_t begin = t->target_begin[t->leaf[k]], end = t->target_end[t->leaf[k]];
    all += (double)(p->first ? p->first[end] - p->first[begin] : end - begin) * s->level_part[t->level[t->leaf[k]]];
  }
  for (int l = 0; l < FMM_MAX_LEVELS; l++) s->level_part[l] /= all;
}

/* How likely a row is to be a sample: a third of that is the same for all rows, a third is by the row's part of all squares, for few loud targets may have all the field and all the error, a third by its leaf. */
static double likelihood(const fmm_plan *plan, const results *r, const samples *s, int64_t row, int level) {
  const int64_t n = plan->setup->tree.targets.n_input, outputs = plan->setup->state.pair->info->outputs;
  const int columns = plan->setup->state.n_columns;
  double part = part_of(r->potential + row * outputs * columns, outputs, columns, s->sizes);
  if (r->gradient) part = (part + part_of(r->gradient + row * outputs * 3 * columns, 3 * outputs, columns, s->sizes + columns)) / 2;
  return (1 / (double)n + part + s->level_part[level]) / 3;
}

/* The sorted point that the k-th of the rows in sorted order belongs to. */
static int64_t point_of(const fmm_points *p, int64_t k) {
  if (!p->first) return k;
  int64_t low = 0, high = p->n;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (p->first[middle] <= k) low = middle;
    else high = middle;
  }
  return low;
}

static void take(const fmm_points *p, samples *s, int64_t k, int64_t at, double weight) {
  const int64_t point = point_of(p, at);
  s->row[k] = p->input_row[at], s->weight[k] = weight;
  s->x[k] = p->x[point], s->y[k] = p->y[point], s->z[k] = p->z[point];
}

enum { ROWS = 256 }; /* whose likelihoods are added up before any of them is looked at */

/* Rows in sorted order, one after the other, with the leaves that they are in. */
typedef struct walk { const fmm_tree *tree; int64_t at, point; int32_t leaf; } walk;

/* At the given row, which is not beyond the last. */
static walk walk_from(const fmm_tree *t, int64_t at) {
  walk w = {t, at, point_of(&t->targets, at), 0};
  int32_t low = 0, high = t->n_leaves;
  while (high - low > 1) { /* the last leaf that begins at the point or before it; those after it that are empty begin there too, and none has it */
    const int32_t middle = low + (high - low) / 2;
    if (t->target_begin[t->leaf[middle]] <= w.point) low = middle;
    else high = middle;
  }
  w.leaf = low;
  return w;
}

static int level_of(const walk *w) { return w->tree->level[w->tree->leaf[w->leaf]]; }

static void step(walk *w) {
  const fmm_points *p = &w->tree->targets;
  w->at++;
  w->point = !p->first || w->at >= p->first[w->point + 1] ? w->point + 1 : w->point;
  while (w->leaf + 1 < w->tree->n_leaves && w->point >= w->tree->target_end[w->tree->leaf[w->leaf]]) w->leaf++;
}

/* A sample in each of as many equal parts of all likelihood, in the order in which points are sorted, and so in space. */
static void draw(const fmm_plan *plan, const results *r, const double *block, double total, samples *s) {
  const fmm_points *p = &plan->setup->tree.targets;
  double before = 0; /* of the blocks before b */
  int64_t b = 0;
  for (int64_t k = 0; k < s->n; k++) {
    const double middle = ((double)k + (double)(fmm_split_mix(SEED, (uint64_t)k) >> 11) * 0x1p-53) * total / (double)s->n;
    while ((b + 1) * ROWS < p->n_input && before + block[b] <= middle) before += block[b++];
    double sum = before, chance = 0;
    int64_t at = b * ROWS;
    for (walk w = walk_from(&plan->setup->tree, at); w.at < (b + 1) * ROWS && w.at < p->n_input; step(&w)) {
      at = w.at, chance = likelihood(plan, r, s, p->input_row[at], level_of(&w)), sum += chance;
      if (sum > middle) break;
    }
    take(p, s, k, at, total / (chance * (double)s->n));
  }
}

static fmm_status choose(const fmm_plan *plan, const results *r, samples *s) {
  const fmm_points *p = &plan->setup->tree.targets;
  const int64_t n_blocks = (p->n_input + ROWS - 1) / ROWS;
  double *block = NULL, total = 0;
  if (s->n == p->n_input) {
    for (int64_t k = 0; k < s->n; k++) take(p, s, k, k, 1);
    return FMM_OK;
  }
  FMM_TRY(FMM_ALLOCATE_ZERO(&block, n_blocks, "likelihoods of targets"));
  measure_levels(plan, s);
#pragma omp parallel for num_threads(plan->threads) schedule(static)
  for (int64_t b = 0; b < n_blocks; b++)
    for (walk w = walk_from(&plan->setup->tree, b * ROWS); w.at < (b + 1) * ROWS && w.at < p->n_input; step(&w)) block[b] += likelihood(plan, r, s, p->input_row[w.at], level_of(&w));
  for (int64_t b = 0; b < n_blocks; b++) total += block[b];
  draw(plan, r, block, total, s);
  FMM_FREE(&block);
  return FMM_OK;
}

static fmm_status pick(const fmm_plan *plan, const results *r, int64_t most, samples *s) {
  const fmm_setup *setup = plan->setup;
  const int64_t targets = setup->tree.targets.n_input;
  s->n = most < targets ? most : targets;
  FMM_TRY(FMM_ALLOCATE(&s->row, s->n, "sampled targets"));
  FMM_TRY(FMM_ALLOCATE(&s->x, 3 * s->n, "sampled targets"));
  FMM_TRY(FMM_ALLOCATE(&s->weight, s->n, "sampled targets"));
  FMM_TRY(FMM_ALLOCATE_ZERO(&s->sizes, 2 * setup->state.n_columns, "sizes of results"));
  FMM_TRY(FMM_ALLOCATE(&s->planes, setup->n_density_planes * setup->tree.sources.n, "sorted densities"));
  FMM_TRY(FMM_ALLOCATE_ZERO(&s->values, setup->n_result_planes * s->n, "direct sums at sampled targets"));
  s->y = s->x + s->n, s->z = s->y + s->n;
  FMM_TRY(measure_sizes(plan, r, s->sizes));
  FMM_TRY(choose(plan, r, s));
  fmm_gather_densities(&setup->tree.sources, setup->n_density_planes, r->densities, s->planes, 0, NULL, plan->threads);
  return FMM_OK;
}

static void sum_chunk(const fmm_plan *plan, const fmm_pair_sum *sum, const samples *s, int64_t begin, int64_t end, double *values) {
  const fmm_points *p = &plan->setup->tree.sources;
  const int64_t columns = sum->n_columns;
  fmm_pair_sources range = {.n = end - begin, .x = p->x + begin, .y = p->y + begin, .z = p->z + begin, .density = s->planes + begin, .component_stride = columns * p->n, .column_stride = p->n, .may_coincide = 1};
  for (int axis = 0; axis < 3 && p->normal[0]; axis++) range.normal[axis] = p->normal[axis] + begin;
  const fmm_pair_targets targets = {.n = s->n, .x = s->x, .y = s->y, .z = s->z, .value = values, .value_stride = columns * s->n, .column_stride = s->n};
  fmm_pair_sum_add(sum, &targets, 1, &range);
}

/* blocks: rows of n values each, which are added up with compensation (Neumaier, ZAMM 54 (1974) 39) in their order. */
static void add_blocks(int64_t n_blocks, int64_t n, const double *blocks, double *values) {
  for (int64_t v = 0; v < n; v++) {
    double sum = 0, error = 0;
    for (int64_t b = 0; b < n_blocks; b++) {
      const double x = blocks[b * n + v], t = sum + x;
      error += fabs(sum) >= fabs(x) ? (sum - t) + x : (x - t) + sum;
      sum = t;
    }
    values[v] = sum + error;
  }
}

/* How blocks are cut depends on the number of sources alone. */
static fmm_status sum_directly(const fmm_plan *plan, samples *s) {
  const fmm_setup *setup = plan->setup;
  const int64_t n = setup->tree.sources.n, width = setup->n_result_planes * s->n, chunks = (n + CHUNK - 1) / CHUNK, in_block = (chunks + MOST_BLOCKS - 1) / MOST_BLOCKS;
  const int64_t n_blocks = in_block ? (chunks + in_block - 1) / in_block : 0;
  double *blocks = NULL;
  fmm_pair_sum sum;
  fmm_pair_sum_prepare(&sum, plan->pair, setup->params, setup->state.n_columns, setup->state.gradient, FMM_PRECISION_DOUBLE, 1e-14);
  FMM_TRY(FMM_ALLOCATE_ZERO(&blocks, n_blocks * width, "direct sums at sampled targets"));
#pragma omp parallel for num_threads(plan->threads) schedule(dynamic, 1)
  for (int64_t b = 0; b < n_blocks; b++)
    for (int64_t c = b * in_block; c < (b + 1) * in_block && c < chunks; c++) sum_chunk(plan, &sum, s, c * CHUNK, (c + 1) * CHUNK < n ? (c + 1) * CHUNK : n, blocks + b * width);
  add_blocks(n_blocks, width, blocks, s->values);
  FMM_FREE(&blocks);
  return FMM_OK;
}

/* NaN, which is not known, is the worst. */
static double worse(double a, double b) { return isnan(a) || b <= a ? a : b; }

static double relative(double error2, double size2) { return error2 == 0 ? 0 : size2 > 0 ? sqrt(error2 / size2) : INFINITY; }

/* One column's errors at the samples. */
static void compare_column(const fmm_plan *plan, const samples *s, const results *r, int column, fmm_sampled_error *error) {
  const fmm_setup *setup = plan->setup;
  const int64_t outputs = setup->state.pair->info->outputs, columns = setup->state.n_columns, stride = setup->state.gradient ? 4 : 1;
  const size *of_potential = &s->sizes[column], *of_gradient = &s->sizes[columns + column];
  double potential = 0, gradient = 0;
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t o = 0; o < outputs; o++) {
      const double *value = s->values + (o * stride * columns + column) * s->n + i;
      const double e = r->potential[(s->row[i] * outputs + o) * columns + column] / of_potential->unit - setup->factor * *value / of_potential->unit;
      potential += s->weight[i] * e * e;
      for (int64_t k = 0; r->gradient && k < 3; k++) {
        const double g = r->gradient[((s->row[i] * outputs + o) * 3 + k) * columns + column] / of_gradient->unit - setup->gradient_factor * value[(1 + k) * columns * s->n] / of_gradient->unit;
        gradient += s->weight[i] * g * g;
      }
    }
  error->potential = worse(error->potential, relative(potential, of_potential->squares));
  error->gradient = worse(error->gradient, relative(gradient, of_gradient->squares));
}

fmm_status fmm_sample_error(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, int64_t n, fmm_sampled_error *error) {
  const results r = {densities, potential, gradient};
  samples s = {0};
  fmm_status status;
  FMM_CHECK(pick(plan, &r, n, &s));
  FMM_CHECK(sum_directly(plan, &s));
  *error = (fmm_sampled_error){.samples = s.n};
  for (int c = 0; c < plan->setup->state.n_columns; c++) compare_column(plan, &s, &r, c, error);
done:
  free_samples(&s);
  return status;
}

/* Of one column. magnitudes: rows of [(output * stride + k) * columns + column]. */
static void reach_of_column(const fmm_plan *plan, const samples *s, const double *magnitudes, int column, fmm_sampled_error *reach) {
  const fmm_setup *setup = plan->setup;
  const int64_t outputs = setup->state.pair->info->outputs, columns = setup->state.n_columns, stride = setup->state.gradient ? 4 : 1;
  const double unit = 0x1p-52, factors[2] = {setup->factor, setup->gradient_factor};
  double sums[2] = {0, 0}; /* of potentials, gradients */
  for (int64_t i = 0; i < s->n * outputs; i++)
    for (int64_t k = 0; k < stride; k++) {
      const double m = fabs(factors[k > 0]) * magnitudes[(i * stride + k) * columns + column] / s->sizes[(k > 0) * columns + column].unit;
      sums[k > 0] += s->weight[i / outputs] * m * m;
    }
  reach->potential = worse(reach->potential, unit * relative(sums[0], s->sizes[column].squares));
  reach->gradient = worse(reach->gradient, unit * relative(sums[1], s->sizes[columns + column].squares));
}

fmm_status fmm_sample_reach(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, int64_t n, fmm_sampled_error *reach) {
  const results r = {densities, potential, gradient};
  const fmm_setup *setup = plan->setup;
  const fmm_points *p = &setup->tree.sources;
  samples s = {0};
  double *targets = NULL, *magnitudes = NULL;
  fmm_status status;
  FMM_CHECK(pick(plan, &r, n, &s));
  FMM_CHECK(FMM_ALLOCATE(&targets, 3 * s.n, "sampled targets"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&magnitudes, setup->n_result_planes * s.n, "direct sums at sampled targets"));
  for (int64_t i = 0; i < s.n; i++) targets[3 * i] = s.x[i], targets[3 * i + 1] = s.y[i], targets[3 * i + 2] = s.z[i];
  const fmm_direct_case what = {.pair = plan->pair, .params = setup->params, .n_columns = setup->state.n_columns, .gradient = setup->state.gradient, .n_sources = p->n, .x = p->x, .y = p->y, .z = p->z,
                                .normal = p->normal[0] ? (const double *const *)p->normal : NULL, .density = s.planes, .density_stride = p->n};
  fmm_direct_sums(&what, s.n, targets, plan->threads, s.values, magnitudes);
  *reach = (fmm_sampled_error){.samples = s.n};
  for (int c = 0; c < setup->state.n_columns; c++) reach_of_column(plan, &s, magnitudes, c, reach);
done:
  free_samples(&s);
  FMM_FREE(&targets);
  FMM_FREE(&magnitudes);
  return status;
}
