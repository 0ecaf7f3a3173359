/* Pair sums between points and surfaces of lattice points: blocks of points and chunks of columns to the kernels (pair_kernel_lattice.h). Sums that
 * are not finite are made again by the plain C reference (pair_sums.c says why); pairs that have no such kernels take the way of any other points.
 * Points are taken from the surface's centre, which is exact near it: a surface's own points would be rounded by as much as the whole extent's last place, which is 1e-9 of a box twenty
 * levels down, and inverses amplify that some hundred times.
 * In single lengths are multiplied by a power of two that makes the radius 1 to 2, and densities by one that makes them floats (pair_sums_single.c). Coordinates are rounded to floats, so
 * that a distance errs by some 1e-7 of the larger of the radius and the point's distance from the centre: phases sum points with surfaces that are not nearer than half of that. */
#include <math.h>

#include "kernels/pair/pair_block.h"
#include "kernels/pair/pair_lattice.h"

enum { BLOCK = 128 /* points of a call */, MOST_SUMS = FMM_MOST_SURFACE_POINTS }; /* surface points times columns of a chunk */

static const int chunk_columns[] = {1, 2, 4};

/* The largest chunk of at most `left` columns, as a place in chunk_columns. */
static int chunk_of(int left) { return left >= 4 ? 2 : left >= 2 ? 1 : 0; }

/* A surface as its kernel sees it: from the centre; lengths times `scale`, densities times density_factor. */
typedef struct view {
  fmm_pair_lattice_call call;
  double plane[3 * FMM_MAX_ORDER], params[FMM_MAX_PARAMS], scale, density_factor;
} view;

/* largest: magnitude of the sources' densities; wanted in single only. */
static void view_surface(view *v, const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, double largest) {
  const fmm_surface *s = lattice->surface;
  v->scale = v->density_factor = 1;
  v->call = (fmm_pair_lattice_call){.order = s->order, .n_rows = s->n_rows, .n_surface = s->n_points, .row = s->row, .plane = v->plane, .params = sum->params, .factor = {1, 1}};
  if (sum->single_kernels) {
    const int exponent = -ilogb(lattice->radius);
    v->scale = fmm_power_of_two(exponent), v->density_factor = fmm_pair_density_factor(largest);
    memset(v->params, 0, sizeof v->params);
    fmm_pair_params_in(sum->pair->info, sum->params, exponent, v->params);
    fmm_pair_factors_in(sum->pair->info, exponent, v->density_factor, v->call.factor);
    v->call.params = v->params;
  }
  for (int i = 0; i < s->order; i++) v->plane[i] = v->plane[s->order + i] = v->plane[2 * s->order + i] = v->scale * lattice->radius * fmm_surface_plane(s->order, i);
}

/* The magnitude of n densities of each of the columns, in single, where it is wanted; `so_far` if that is larger. */
static double largest_of(const fmm_pair_sum *sum, int64_t n, const double *density, int64_t column_stride, int n_columns, double so_far) {
  double range[2] = {-so_far, so_far};
  for (int c = 0; c < n_columns && sum->single_kernels; c++) fmm_pair_arrays()->extent(n, density + c * column_stride, range);
  return fmax(-range[0], range[1]);
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

/* n coordinates along an axis as the kernel sees them, from the i-th place of `to` on: doubles or floats. */
static void view_points(const view *v, const fmm_pair_sum *sum, int64_t n, const double *from, double center, void *to, int64_t i) {
  if (sum->single_kernels) fmm_pair_arrays()->floats(n, from, center, v->scale, (float *)to + i);
  else fmm_pair_arrays()->shifted(n, from, center, (double *)to + i);
}

/* One surface onto the block's sums. */
static void onto_block(const fmm_pair_sum *sum, fmm_pair_block *b, int chunk, const fmm_pair_lattice *lattice) {
  alignas(64) double point[3][FMM_PAIR_BLOCK];
  float single[FMM_PAIR_MAX_COLUMNS][FMM_MOST_SURFACE_POINTS];
  view v;
  const int padded = (b->n + FMM_PAIR_MAX_LANES - 1) / FMM_PAIR_MAX_LANES * FMM_PAIR_MAX_LANES, n = lattice->surface->n_points;
  const double *density = lattice->density + b->column * lattice->column_stride;
  view_surface(&v, sum, lattice, largest_of(sum, n, density, lattice->column_stride, b->n_columns, 0));
  v.call.n_points = b->n;
  for (int axis = 0; axis < 3; axis++) {
    view_points(&v, sum, padded, b->target[axis], lattice->center[axis], point[axis], 0);
    v.call.point[axis] = point[axis];
  }
  for (int c = 0; c < b->n_columns; c++) {
    v.call.density[c] = density + c * lattice->column_stride;
    if (!sum->single_kernels) continue;
    fmm_pair_arrays()->scaled(n, v.call.density[c], v.density_factor, single[c]);
    v.call.density[c] = single[c];
  }
  for (int k = 0; k < b->n_values * b->n_columns; k++) v.call.sums[k] = b->sums[k];
  sum->lattice_kernels->onto_points[sum->gradient][chunk](&v.call);
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

/* Apart from what calls it, so that the other way does not have these arrays on its stack too. */
__attribute__((noinline)) static void from_lattices(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int n, const fmm_pair_lattice *lattices) {
  alignas(64) fmm_pair_row rows[FMM_PAIR_FEW_ROWS]; /* one output (fmm_pair_suits_lattice) */
  fmm_pair_block b;
  b.sums = rows;
  b.n_values = sum->pair->info->outputs * (sum->gradient ? 4 : 1);
  for (int64_t begin = 0; begin < targets->n; begin += fmm_pair_block_size(targets->n)) {
    fmm_pair_load_points(&b, targets, begin);
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

void fmm_pair_sum_from_lattices(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int n, const fmm_pair_lattice *lattices) {
  (sum->lattice_kernels ? from_lattices : from_any_surfaces)(sum, targets, n, lattices);
}

/* Points gathered from the ranges, as sources. */
typedef struct gathered {
  alignas(64) double point[3][BLOCK];
  alignas(64) double density[FMM_PAIR_MAX_COLUMNS][BLOCK]; /* these and the points: in single as many floats */
  alignas(64) unsigned char lanes[MOST_SUMS * 64];
  double sums[MOST_SUMS]; /* [column][surface point] */
  int n;
} gathered;

static void gather(const fmm_pair_sum *sum, gathered *g, const view *v, const fmm_pair_lattice *lattice, const fmm_pair_sources *s, int64_t begin, int n, int column, int n_columns) {
  const double *const point[3] = {s->x + begin, s->y + begin, s->z + begin};
  for (int axis = 0; axis < 3; axis++) view_points(v, sum, n, point[axis], lattice->center[axis], g->point[axis], g->n);
  for (int c = 0; c < n_columns; c++) {
    const double *density = s->density + (column + c) * s->column_stride + begin;
    if (sum->single_kernels) fmm_pair_arrays()->scaled(n, density, v->density_factor, (float *)g->density[c] + g->n);
    else memcpy(g->density[c] + g->n, density, (size_t)n * sizeof(double));
  }
  g->n += n;
}

/* Adds what was gathered; the lanes beyond it are at the centre and have no density. */
static void add_gathered(const fmm_pair_sum *sum, gathered *g, int chunk, fmm_pair_lattice_call *call) {
  const size_t size = sum->single_kernels ? sizeof(float) : sizeof(double), n = (size_t)g->n, empty = (FMM_PAIR_MAX_LANES - n % FMM_PAIR_MAX_LANES) % FMM_PAIR_MAX_LANES;
  if (!n) return;
  for (int axis = 0; axis < 3; axis++) memset((char *)g->point[axis] + n * size, 0, empty * size);
  for (int c = 0; c < chunk_columns[chunk]; c++) memset((char *)g->density[c] + n * size, 0, empty * size);
  call->n_points = g->n;
  sum->lattice_kernels->onto_surface[chunk](call);
  g->n = 0;
}

/* Columns [column, column + chunk's) of all ranges into g->sums. */
static void sum_chunk(const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, gathered *g, int column, int chunk, int64_t n_ranges, const fmm_pair_sources *ranges) {
  int n_columns = chunk_columns[chunk], n = lattice->surface->n_points;
  double largest = 0;
  view v;
  for (int64_t r = 0; r < n_ranges; r++)
    largest = largest_of(sum, ranges[r].n, ranges[r].density + column * ranges[r].column_stride, ranges[r].column_stride, n_columns, largest);
  view_surface(&v, sum, lattice, largest);
  for (int axis = 0; axis < 3; axis++) v.call.point[axis] = g->point[axis];
  for (int c = 0; c < n_columns; c++) {
    v.call.density[c] = g->density[c];
    v.call.sums[c] = g->sums + c * n;
  }
  v.call.lanes = g->lanes;
  memset(g->sums, 0, (size_t)n_columns * (size_t)n * sizeof *g->sums);
  g->n = 0;
  for (int64_t r = 0; r < n_ranges; r++)
    for (int64_t begin = 0, some; begin < ranges[r].n; begin += some) {
      some = ranges[r].n - begin < BLOCK - g->n ? ranges[r].n - begin : BLOCK - g->n;
      gather(sum, g, &v, lattice, &ranges[r], begin, (int)some, column, n_columns);
      if (g->n == BLOCK) add_gathered(sum, g, chunk, &v.call);
    }
  add_gathered(sum, g, chunk, &v.call);
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

__attribute__((noinline)) static void onto_lattice(const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, double *value, int64_t column_stride, int64_t n_ranges, const fmm_pair_sources *ranges) {
  gathered g;
  int n = lattice->surface->n_points;
  for (int column = 0, n_columns; column < sum->n_columns; column += n_columns) {
    int chunk = chunk_of(sum->n_columns - column);
    while (chunk_columns[chunk] * n > MOST_SUMS) chunk--;
    n_columns = chunk_columns[chunk];
    sum_chunk(sum, lattice, &g, column, chunk, n_ranges, ranges);
    if (!fmm_pair_arrays()->finite((int64_t)n_columns * n, g.sums)) sum_chunk_reference(sum, &g, column, n_columns, lattice, n_ranges, ranges);
    for (int c = 0; c < n_columns; c++) fmm_pair_arrays()->add(n, 1, g.sums + c * n, value + (column + c) * column_stride);
  }
}

void fmm_pair_sum_onto_lattice(const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, double *value, int64_t value_stride, int64_t column_stride,
                               int64_t n_ranges, const fmm_pair_sources *ranges) {
  if (sum->lattice_kernels) onto_lattice(sum, lattice, value, column_stride, n_ranges, ranges);
  else onto_any_surface(sum, lattice, value, value_stride, column_stride, n_ranges, ranges);
}
