/* Pair sums between points and surfaces of lattice points: blocks of points and chunks of columns to the kernels (pair_kernel_lattice.h), in
 * double. Sums that are not finite are made again by the plain C reference (pair_sums.c says why); single precision, and pairs that have no such
 * kernels, take the way of any other points.
 * In double points are taken from the surface's centre, which is exact near it: a surface's own points would be rounded by as much as the whole extent's last place, which is 1e-9 of a box twenty
 * levels down, and inverses amplify that some hundred times. */
#include "kernels/pair/pair_block.h"
#include "kernels/pair/pair_lattice.h"

enum { BLOCK = 128 /* points of a call */, MOST_SUMS = FMM_MOST_SURFACE_POINTS }; /* surface points times columns of a chunk */

static const int chunk_columns[] = {1, 2, 4};

/* The largest chunk of at most `left` columns, as a place in chunk_columns. */
static int chunk_of(int left) { return left >= 4 ? 2 : left >= 2 ? 1 : 0; }

/* What both directions' calls share, from the centre. plane: 3 * order. */
static fmm_pair_lattice_call call_of(const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, double *plane) {
  const fmm_surface *s = lattice->surface;
  for (int i = 0; i < 3 * s->order; i++) plane[i] = lattice->radius * fmm_surface_plane(s->order, i % s->order);
  return (fmm_pair_lattice_call){.order = s->order, .n_rows = s->n_rows, .n_surface = s->n_points, .row = s->row, .plane = plane, .params = sum->params};
}

static const double origin[3];

static void fill_planes(const fmm_pair_lattice *lattice, const double center[3]) {
  int n = lattice->surface->n_points;
  fmm_surface_planes(n, lattice->surface->xyz, center, lattice->radius, lattice->planes, lattice->planes + n, lattice->planes + 2 * n);
}

static fmm_pair_sources sources_of(const fmm_pair_lattice *lattice, const double center[3]) {
  int n = lattice->surface->n_points;
  const double *planes = lattice->planes;
  fill_planes(lattice, center);
  return (fmm_pair_sources){.n = n, .x = planes, .y = planes + n, .z = planes + 2 * n, .density = lattice->density,
                            .component_stride = lattice->component_stride, .column_stride = lattice->column_stride};
}

/* One surface onto the block's sums. */
static void onto_block(const fmm_pair_sum *sum, fmm_pair_block *b, int chunk, const fmm_pair_lattice *lattice) {
  alignas(64) double plane[3 * FMM_MAX_ORDER], point[3][FMM_PAIR_BLOCK];
  fmm_pair_lattice_call call = call_of(sum, lattice, plane);
  const int padded = (b->n + FMM_PAIR_MAX_LANES - 1) / FMM_PAIR_MAX_LANES * FMM_PAIR_MAX_LANES;
  call.n_points = b->n;
  for (int axis = 0; axis < 3; axis++) {
    for (int i = 0; i < padded; i++) point[axis][i] = b->target[axis][i] - lattice->center[axis];
    call.point[axis] = point[axis];
  }
  for (int c = 0; c < b->n_columns; c++) call.density[c] = lattice->density + (b->column + c) * lattice->column_stride;
  for (int k = 0; k < b->n_values * b->n_columns; k++) call.sums[k] = b->sums[k];
  sum->lattice_kernels->onto_points[sum->gradient][chunk](&call);
}

static void onto_block_reference(const fmm_pair_sum *sum, fmm_pair_block *b, int n, const fmm_pair_lattice *lattices) {
  fmm_pair_rows_clear(b->sums, b->n_values * b->n_columns, b->n);
  for (int l = 0; l < n; l++) {
    const fmm_pair_sources sources = sources_of(&lattices[l], lattices[l].center);
    fmm_pair_range_reference(sum, b, &sources);
  }
}

/* One after the other, each from its centre. */
static void from_any_surface(const fmm_pair_sum *sum, const fmm_pair_targets *targets, const fmm_pair_lattice *lattice) {
  double point[3][FMM_PAIR_BLOCK];
  const double *const plane[3] = {targets->x, targets->y, targets->z};
  const fmm_pair_sources sources = sources_of(lattice, origin);
  for (int64_t begin = 0; begin < targets->n; begin += FMM_PAIR_BLOCK) {
    fmm_pair_targets block = {.n = targets->n - begin < FMM_PAIR_BLOCK ? targets->n - begin : FMM_PAIR_BLOCK, .x = point[0], .y = point[1], .z = point[2], .value = targets->value + begin,
                              .value_stride = targets->value_stride, .column_stride = targets->column_stride};
    for (int axis = 0; axis < 3; axis++)
      for (int64_t i = 0; i < block.n; i++) point[axis][i] = plane[axis][begin + i] - lattice->center[axis];
    fmm_pair_sum_add(sum, &block, 1, &sources);
  }
}

/* In single precision, whose orders amplify little, all at once. */
static void from_any_surfaces(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int n, const fmm_pair_lattice *lattices) {
  fmm_pair_sources sources[FMM_PAIR_MOST_LATTICES];
  for (int l = 0; l < n && !sum->single_kernels; l++) from_any_surface(sum, targets, &lattices[l]);
  if (!sum->single_kernels) return;
  for (int l = 0; l < n; l++) sources[l] = sources_of(&lattices[l], lattices[l].center);
  fmm_pair_sum_add(sum, targets, n, sources);
}

void fmm_pair_sum_from_lattices(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int n, const fmm_pair_lattice *lattices) {
  fmm_pair_block b;
  if (!sum->lattice_kernels) {
    from_any_surfaces(sum, targets, n, lattices);
    return;
  }
  b.n_values = sum->pair->info->outputs * (sum->gradient ? 4 : 1);
  for (int64_t begin = 0; begin < targets->n; begin += fmm_pair_block_size(targets->n)) {
    fmm_pair_load_targets(sum, &b, targets, begin);
    for (b.column = 0; b.column < sum->n_columns; b.column += b.n_columns) {
      int chunk = chunk_of(sum->n_columns - b.column);
      b.n_columns = chunk_columns[chunk];
      fmm_pair_rows_clear(b.sums, b.n_values * b.n_columns, b.n);
      for (int l = 0; l < n; l++) onto_block(sum, &b, chunk, &lattices[l]);
      if (!fmm_pair_rows_finite(b.sums, b.n_values * b.n_columns, b.n)) onto_block_reference(sum, &b, n, lattices);
      fmm_pair_add_to_targets(&b, targets, begin);
    }
  }
}

/* Points gathered from the ranges, as sources. */
typedef struct gathered {
  alignas(64) double point[3][BLOCK];
  alignas(64) double density[FMM_PAIR_MAX_COLUMNS][BLOCK];
  alignas(64) unsigned char lanes[MOST_SUMS * 64];
  double sums[MOST_SUMS]; /* [column][surface point] */
  int n;
} gathered;

/* Adds what was gathered; the lanes beyond it have no density and lie where the last point does. */
static void add_gathered(const fmm_pair_sum *sum, gathered *g, int chunk, fmm_pair_lattice_call *call) {
  if (!g->n) return;
  for (int i = g->n; i < BLOCK && i % FMM_PAIR_MAX_LANES; i++) {
    for (int axis = 0; axis < 3; axis++) g->point[axis][i] = g->point[axis][g->n - 1];
    for (int c = 0; c < chunk_columns[chunk]; c++) g->density[c][i] = 0;
  }
  call->n_points = g->n;
  sum->lattice_kernels->onto_surface[chunk](call);
  g->n = 0;
}

static void gather(gathered *g, const fmm_pair_lattice *lattice, const fmm_pair_sources *s, int64_t begin, int n, int column, int n_columns) {
  const double *const point[3] = {s->x + begin, s->y + begin, s->z + begin};
  for (int axis = 0; axis < 3; axis++)
    for (int i = 0; i < n; i++) g->point[axis][g->n + i] = point[axis][i] - lattice->center[axis];
  for (int c = 0; c < n_columns; c++) memcpy(g->density[c] + g->n, s->density + (column + c) * s->column_stride + begin, (size_t)n * sizeof(double));
  g->n += n;
}

/* Columns [column, column + chunk's) of all ranges into g->sums. */
static void sum_chunk(const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, gathered *g, int column, int chunk, fmm_pair_lattice_call *call, int64_t n_ranges,
                      const fmm_pair_sources *ranges) {
  int n_columns = chunk_columns[chunk];
  for (int axis = 0; axis < 3; axis++) call->point[axis] = g->point[axis];
  for (int c = 0; c < n_columns; c++) call->density[c] = g->density[c], call->sums[c] = g->sums + c * call->n_surface;
  call->lanes = g->lanes;
  memset(g->sums, 0, (size_t)n_columns * (size_t)call->n_surface * sizeof *g->sums);
  g->n = 0;
  for (int64_t r = 0; r < n_ranges; r++)
    for (int64_t begin = 0, n; begin < ranges[r].n; begin += n) {
      n = ranges[r].n - begin < BLOCK - g->n ? ranges[r].n - begin : BLOCK - g->n;
      gather(g, lattice, &ranges[r], begin, (int)n, column, n_columns);
      if (g->n == BLOCK) add_gathered(sum, g, chunk, call);
    }
  add_gathered(sum, g, chunk, call);
}

/* By the plain C reference, surface point by surface point. */
static void sum_chunk_reference(const fmm_pair_sum *sum, gathered *g, int column, int n_columns, const fmm_pair_lattice *lattice, int64_t n_ranges,
                                const fmm_pair_sources *ranges) {
  int n = lattice->surface->n_points;
  fill_planes(lattice, lattice->center);
  memset(g->sums, 0, (size_t)n_columns * (size_t)n * sizeof *g->sums);
  for (int64_t r = 0; r < n_ranges; r++)
    for (int c = 0; c < n_columns; c++)
      for (int m = 0; m < n; m++) {
        const double at[3] = {lattice->planes[m], lattice->planes[n + m], lattice->planes[2 * n + m]};
        const double *density = ranges[r].density + (column + c) * ranges[r].column_stride;
        sum->pair->reference(at, ranges[r].n, ranges[r].x, ranges[r].y, ranges[r].z, ranges[r].normal, &density, sum->params, 1, 0, g->sums + c * n + m);
      }
}

/* A range of points as the surface's centre sees them, a few at a time. */
static void add_from_centre(const fmm_pair_sum *sum, const double center[3], const fmm_pair_targets *targets, const fmm_pair_sources *range) {
  enum { FEW = 256 };
  double point[3][FEW];
  const double *const plane[3] = {range->x, range->y, range->z};
  for (int64_t begin = 0; begin < range->n; begin += FEW) {
    fmm_pair_sources part = *range;
    part.n = range->n - begin < FEW ? range->n - begin : FEW, part.x = point[0], part.y = point[1], part.z = point[2], part.density += begin;
    for (int axis = 0; axis < 3; axis++) {
      for (int64_t i = 0; i < part.n; i++) point[axis][i] = plane[axis][begin + i] - center[axis];
      if (part.normal[axis]) part.normal[axis] += begin;
    }
    fmm_pair_sum_add(sum, targets, 1, &part);
  }
}

static void onto_any_surface(const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, double *value, int64_t value_stride, int64_t column_stride,
                             int64_t n_ranges, const fmm_pair_sources *ranges) {
  int n = lattice->surface->n_points;
  const double *planes = lattice->planes;
  fill_planes(lattice, sum->single_kernels ? lattice->center : origin);
  const fmm_pair_targets targets = {.n = n, .x = planes, .y = planes + n, .z = planes + 2 * n, .value = value, .value_stride = value_stride,
                                    .column_stride = column_stride};
  if (sum->single_kernels) fmm_pair_sum_add(sum, &targets, n_ranges, ranges);
  else
    for (int64_t r = 0; r < n_ranges; r++) add_from_centre(sum, lattice->center, &targets, &ranges[r]);
}

void fmm_pair_sum_onto_lattice(const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, double *value, int64_t value_stride, int64_t column_stride,
                               int64_t n_ranges, const fmm_pair_sources *ranges) {
  double plane[3 * FMM_MAX_ORDER];
  gathered g;
  if (!sum->lattice_kernels) {
    onto_any_surface(sum, lattice, value, value_stride, column_stride, n_ranges, ranges);
    return;
  }
  fmm_pair_lattice_call call = call_of(sum, lattice, plane);
  int n = call.n_surface;
  for (int column = 0, n_columns; column < sum->n_columns; column += n_columns) {
    int chunk = chunk_of(sum->n_columns - column);
    while (chunk_columns[chunk] * n > MOST_SUMS) chunk--;
    n_columns = chunk_columns[chunk];
    sum_chunk(sum, lattice, &g, column, chunk, &call, n_ranges, ranges);
    if (!fmm_pair_all_finite((int64_t)n_columns * n, g.sums)) sum_chunk_reference(sum, &g, column, n_columns, lattice, n_ranges, ranges);
    for (int c = 0; c < n_columns; c++)
      for (int m = 0; m < n; m++) value[(column + c) * column_stride + m] += g.sums[c * n + m];
  }
}
