/* Drawing targets for an estimate of the error; see error_samples.h. A third of a target's chance is the same for all, a third goes by its part of the squares of all results, and a third by what its leaf is exposed to: the squares of
 * the densities that its field comes from, over the square of the distance at which they are expanded or summed (fourth power for gradients). */
#include "error_samples.h"

#include <math.h>

#include "column_units.h"
#include "generate.h"

enum { SEED = 1 };

/* n values of which every columns'th is the column's; blocks are summed apart, so that the number of threads changes no bit. */
static fmm_status measure_column(int64_t n, int columns, int column, const double *values, int threads, fmm_results_size *s) {
  enum { VALUES = 1 << 14 };
  const int64_t n_blocks = (n + VALUES - 1) / VALUES;
  double unit = 0, *block = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&block, n_blocks, "squares of results"));
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : unit)
  for (int64_t i = 0; i < n; i++) {
    const double f = fabs(values[i * columns + column]);
    unit = f > unit ? f : unit;
  }
  unit = unit > 0 ? unit : 1;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t b = 0; b < n_blocks; b++)
    for (int64_t i = b * VALUES; i < (b + 1) * VALUES && i < n; i++) {
      const double f = values[i * columns + column] / unit; /* of an infinite one NaN */
      block[b] += f * f;
    }
  *s = (fmm_results_size){.unit = unit};
  for (int64_t b = 0; b < n_blocks; b++) s->squares += block[b];
  FMM_FREE(&block);
  return FMM_OK;
}

static fmm_status measure_sizes(const fmm_plan *plan, const fmm_error_results *r, fmm_results_size *sizes) {
  const int columns = plan->setup->state.n_columns;
  const int64_t n = plan->setup->tree.targets.n_input * plan->setup->state.pair->info->outputs;
  for (int c = 0; c < columns; c++) {
    FMM_TRY(measure_column(n, columns, c, r->potential, plan->threads, &sizes[c]));
    if (r->gradient) FMM_TRY(measure_column(3 * n, columns, c, r->gradient, plan->threads, &sizes[columns + c]));
  }
  return FMM_OK;
}

/* Squares of the densities in each box, a column's in units of about its largest. */
static fmm_status add_up_densities(const fmm_plan *plan, const double *density, double *squares) {
  const fmm_setup *s = plan->setup;
  const fmm_tree *t = &s->tree;
  const int64_t n = t->sources.n;
  int *exponent = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&exponent, s->state.n_columns, "units of densities"));
  fmm_column_exponents(density, s->n_density_planes, n, s->state.n_columns, exponent, plan->threads);
#pragma omp parallel for num_threads(plan->threads) schedule(static) if (n > FMM_PARALLEL_MINIMUM)
  for (int32_t k = 0; k < t->n_leaves; k++)
    for (int plane = 0; plane < s->n_density_planes; plane++) {
      const double to_unit = ldexp(1, -exponent[plane % s->state.n_columns]);
      for (int64_t i = t->source_begin[t->leaf[k]]; i < t->source_end[t->leaf[k]]; i++) {
        const double q = density[plane * n + i] * to_unit;
        squares[t->leaf[k]] += q * q;
      }
    }
  for (int32_t b = t->n_boxes - 1; b > 0; b--) squares[t->parent[b]] += squares[b]; /* children come after their parents */
  FMM_FREE(&exponent);
  return FMM_OK;
}

/* By what squares are multiplied that are expanded at the size of a box of this level. */
static double at_level(const fmm_plan *plan, int level) { return ldexp(1, (plan->setup->state.gradient ? 4 : 2) * level); }

typedef enum expanded { AT_ROW, AT_CHILDREN, AT_ENTRY } expanded;

/* Adds to each row's box what its entries have, expanded at the level of one of them. */
static void expose_rows(const fmm_plan *plan, const fmm_rows *rows, expanded at, const double *squares, double *exposure) {
  const uint8_t *level = plan->setup->tree.level;
  double factor[FMM_MAX_LEVELS + 1];
  for (int l = 0; l <= FMM_MAX_LEVELS; l++) factor[l] = at_level(plan, l);
#pragma omp parallel for num_threads(plan->threads) schedule(static) if (rows->n_rows > FMM_PARALLEL_MINIMUM)
  for (int32_t r = 0; r < rows->n_rows; r++) { /* a box has one row at most */
    double sum = exposure[rows->row[r]];
    for (int64_t e = rows->offset[r]; e < rows->offset[r + 1]; e++)
      sum += factor[at == AT_ENTRY ? level[rows->entry[e]] : level[rows->row[r]] + (at == AT_CHILDREN)] * squares[rows->entry[e]];
    exposure[rows->row[r]] = sum;
  }
}

/* Exposure of each box, its parents' included: by the lists that its far field comes through, and by U, whose sums err by their roots and by rounding. */
static void expose(const fmm_plan *plan, const double *squares, double *exposure) {
  const fmm_tree *t = &plan->setup->tree;
  const fmm_lists *l = &plan->setup->lists;
  expose_rows(plan, &l->v, AT_CHILDREN, squares, exposure);
  for (int32_t r = 0; r < l->v.n_rows; r++) exposure[l->v.row[r]] += at_level(plan, t->level[l->v.row[r]] + 1) * squares[l->v.row[r]]; /* of its children onto one another */
  expose_rows(plan, &l->x, AT_ROW, squares, exposure);
  expose_rows(plan, &l->w, AT_ENTRY, squares, exposure);
  expose_rows(plan, &l->u, AT_ROW, squares, exposure);
  for (int32_t b = 1; b < t->n_boxes; b++) exposure[b] += exposure[t->parent[b]];
}

static int64_t rows_in(const fmm_tree *t, int32_t box) {
  const fmm_points *p = &t->targets;
  const int64_t begin = t->target_begin[box], end = t->target_end[box];
  return p->first ? p->first[end] - p->first[begin] : end - begin;
}

/* part: of each target in a leaf of all exposure; 1 over the number of targets where there is none. */
static fmm_status measure_leaves(const fmm_plan *plan, const double *density, double *part) {
  const fmm_tree *t = &plan->setup->tree;
  double *squares = NULL, *exposure = NULL, all = 0;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE_ZERO(&squares, t->n_boxes, "squares of densities"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&exposure, t->n_boxes, "what boxes are exposed to"));
  FMM_CHECK(add_up_densities(plan, density, squares));
  expose(plan, squares, exposure);
  for (int32_t k = 0; k < t->n_leaves; k++) all += (double)rows_in(t, t->leaf[k]) * exposure[t->leaf[k]];
  for (int32_t k = 0; k < t->n_leaves; k++) part[k] = all > 0 ? exposure[t->leaf[k]] / all : 1 / (double)t->targets.n_input;
done:
  FMM_FREE(&squares);
  FMM_FREE(&exposure);
  return status;
}

/* `width` values of a row, those of a column `columns` apart: their part of all squares. */
static double part_of(const double *values, int64_t width, int columns, const fmm_results_size *sizes) {
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

/* What a target's chance is known from. */
typedef struct chances { const fmm_plan *plan; const fmm_error_results *results; const fmm_results_size *sizes; const double *leaf_part; } chances;

static double chance_of(const chances *c, int64_t row, int32_t leaf) {
  const int64_t n = c->plan->setup->tree.targets.n_input, outputs = c->plan->setup->state.pair->info->outputs;
  const int columns = c->plan->setup->state.n_columns;
  double part = part_of(c->results->potential + row * outputs * columns, outputs, columns, c->sizes);
  if (c->results->gradient) part = (part + part_of(c->results->gradient + row * outputs * 3 * columns, 3 * outputs, columns, c->sizes + columns)) / 2;
  return (1 / (double)n + part + c->leaf_part[leaf]) / 3;
}

/* Of rows in sorted order, the parts of all squares, added up: of one column by its reciprocal unit. */
static double parts_of(const double *values, int64_t width, int columns, const fmm_results_size *sizes, int64_t n, const uint32_t *row) {
  enum { ahead = 32 };
  const double to_unit = 1 / sizes[0].unit;
  double sum = 0;
  if (columns > 1 || !isnormal(to_unit)) {
    for (int64_t k = 0; k < n; k++) sum += part_of(values + row[k] * width * columns, width, columns, sizes);
    return sum;
  }
  for (int64_t k = 0; k < n; k++) {
    __builtin_prefetch(values + row[k + ahead < n ? k + ahead : k] * width);
    for (int64_t v = 0; v < width; v++) {
      const double f = values[row[k] * width + v] * to_unit;
      sum += f * f;
    }
  }
  return sizes[0].squares > 0 ? sum / sizes[0].squares : 0;
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

/* Rows in sorted order, one after the other, with the leaves (as numbered in tree->leaf) that they are in. */
typedef struct walk { const fmm_tree *tree; int64_t at, point; int32_t leaf; } walk;

/* At the given row, which is not beyond the last. */
static walk walk_from(const fmm_tree *t, int64_t at) {
  walk w = {t, at, point_of(&t->targets, at), 0};
  int32_t high = t->n_leaves;
  while (high - w.leaf > 1) { /* the last leaf that begins at the point or before it: one without targets would begin where the next does */
    const int32_t middle = w.leaf + (high - w.leaf) / 2;
    if (t->target_begin[t->leaf[middle]] <= w.point) w.leaf = middle;
    else high = middle;
  }
  return w;
}

static void step(walk *w) {
  const fmm_points *p = &w->tree->targets;
  w->at++;
  w->point = !p->first || w->at >= p->first[w->point + 1] ? w->point + 1 : w->point;
  while (w->leaf + 1 < w->tree->n_leaves && w->point >= w->tree->target_end[w->tree->leaf[w->leaf]]) w->leaf++;
}

static void take(const fmm_points *p, fmm_error_samples *s, int64_t k, int64_t at, double weight) {
  const int64_t point = point_of(p, at);
  s->row[k] = p->input_row[at], s->weight[k] = weight;
  s->x[k] = p->x[point], s->y[k] = p->y[point], s->z[k] = p->z[point];
}

enum { ROWS = 256 }; /* whose chances are added up before any of them is looked at */

/* A sample in each of as many equal parts of all chances, in the order in which points are sorted, and so in space. */
static void draw(const chances *c, const double *block, double total, fmm_error_samples *s) {
  const fmm_tree *t = &c->plan->setup->tree;
  double before = 0; /* of the blocks before b */
  int64_t b = 0;
  for (int64_t k = 0; k < s->n; k++) {
    const double wanted = ((double)k + fmm_generate_fraction(SEED, k)) * total / (double)s->n;
    while ((b + 1) * ROWS < t->targets.n_input && before + block[b] <= wanted) before += block[b++];
    double sum = before, chance = 0;
    int64_t at = b * ROWS;
    for (walk w = walk_from(t, at); w.at < (b + 1) * ROWS && w.at < t->targets.n_input; step(&w)) {
      at = w.at, chance = chance_of(c, t->targets.input_row[at], w.leaf), sum += chance;
      if (sum > wanted) break;
    }
    take(&t->targets, s, k, at, total / (chance * (double)s->n));
  }
}

/* Behind the last row of a leaf's points. */
static int64_t rows_end(const fmm_tree *t, int32_t leaf) {
  const int64_t point = t->target_end[t->leaf[leaf]];
  return t->targets.first ? t->targets.first[point] : point;
}

/* The chances of the rows [begin, end), leaf by leaf. */
static double chances_of(const chances *c, int64_t begin, int64_t end) {
  const fmm_tree *t = &c->plan->setup->tree;
  const int64_t outputs = c->plan->setup->state.pair->info->outputs;
  const uint32_t *row = t->targets.input_row + begin;
  const int columns = c->plan->setup->state.n_columns;
  double sum = 0, parts = parts_of(c->results->potential, outputs, columns, c->sizes, end - begin, row);
  if (c->results->gradient) parts = (parts + parts_of(c->results->gradient, 3 * outputs, columns, c->sizes + columns, end - begin, row)) / 2;
  int32_t leaf = walk_from(t, begin).leaf;
  for (int64_t at = begin, next; at < end; at = next) {
    while (leaf + 1 < t->n_leaves && rows_end(t, leaf) <= at) leaf++;
    next = rows_end(t, leaf) < end && rows_end(t, leaf) > at ? rows_end(t, leaf) : end;
    sum += (double)(next - at) * (1 / (double)t->targets.n_input + c->leaf_part[leaf]);
  }
  return (sum + parts) / 3;
}

static fmm_status draw_from_blocks(const chances *c, fmm_error_samples *s) {
  const int64_t n = c->plan->setup->tree.targets.n_input, n_blocks = (n + ROWS - 1) / ROWS;
  double *block = NULL, total = 0;
  FMM_TRY(FMM_ALLOCATE(&block, n_blocks, "chances of targets"));
#pragma omp parallel for num_threads(c->plan->threads) schedule(static)
  for (int64_t b = 0; b < n_blocks; b++) block[b] = chances_of(c, b * ROWS, (b + 1) * ROWS < n ? (b + 1) * ROWS : n);
  for (int64_t b = 0; b < n_blocks; b++) total += block[b];
  draw(c, block, total, s);
  FMM_FREE(&block);
  return FMM_OK;
}

static fmm_status choose(const fmm_plan *plan, const fmm_error_results *r, fmm_error_samples *s) {
  const fmm_tree *t = &plan->setup->tree;
  double *leaf_part = NULL;
  if (s->n == t->targets.n_input) {
    for (int64_t k = 0; k < s->n; k++) take(&t->targets, s, k, k, 1);
    return FMM_OK;
  }
  FMM_TRY(FMM_ALLOCATE(&leaf_part, t->n_leaves, "exposure of leaves"));
  fmm_status status = measure_leaves(plan, s->density, leaf_part);
  if (status == FMM_OK) status = draw_from_blocks(&(chances){plan, r, s->sizes, leaf_part}, s);
  FMM_FREE(&leaf_part);
  return status;
}

fmm_status fmm_error_samples_pick(const fmm_plan *plan, const fmm_error_results *r, int64_t most, fmm_error_samples *s) {
  const fmm_setup *setup = plan->setup;
  const int64_t targets = setup->tree.targets.n_input;
  *s = (fmm_error_samples){.n = most < targets ? most : targets};
  FMM_TRY(FMM_ALLOCATE(&s->row, s->n, "sampled targets"));
  FMM_TRY(FMM_ALLOCATE(&s->x, 3 * s->n, "sampled targets"));
  FMM_TRY(FMM_ALLOCATE(&s->weight, s->n, "sampled targets"));
  FMM_TRY(FMM_ALLOCATE_ZERO(&s->sizes, 2 * setup->state.n_columns, "sizes of results"));
  FMM_TRY(FMM_ALLOCATE(&s->density, setup->n_density_planes * setup->tree.sources.n, "sorted densities"));
  s->y = s->x + s->n, s->z = s->y + s->n;
  fmm_gather_densities(&setup->tree.sources, setup->n_density_planes, r->densities, s->density, 0, NULL, plan->threads);
  FMM_TRY(measure_sizes(plan, r, s->sizes));
  return choose(plan, r, s);
}

void fmm_error_samples_free(fmm_error_samples *s) {
  FMM_FREE(&s->row);
  FMM_FREE(&s->x);
  FMM_FREE(&s->weight);
  FMM_FREE(&s->sizes);
  FMM_FREE(&s->density);
}
