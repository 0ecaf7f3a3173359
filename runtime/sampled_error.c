/* The error of results by direct sums at a few targets; see sampled_error.h. */
#include "sampled_error.h"

#include <math.h>
#include <string.h>

#include "direct.h"
#include "error_samples.h"
#include "kernels/pair/pair_sums.h"

enum { LEAST_BLOCKS = 16, MOST_BLOCKS = 256, CHUNK = 4096, MOST_VALUES = 1 << 22 }; /* of sources: a chunk's planes stay in the cache, a block's sums in one place; values: of all blocks, where many columns have many */

static void sum_chunk(const fmm_plan *plan, const fmm_pair_sum *sum, const fmm_error_samples *s, int64_t begin, int64_t end, double *values) {
  const fmm_points *p = &plan->setup->tree.sources;
  const int64_t columns = sum->n_columns;
  fmm_pair_sources range = {.n = end - begin, .x = p->x + begin, .y = p->y + begin, .z = p->z + begin, .density = s->density + begin, .component_stride = columns * p->n, .column_stride = p->n, .may_coincide = 1};
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

/* values: [(output * stride + k) * columns + column][target]. How blocks are cut depends on the numbers of sources and values alone. */
static fmm_status sum_directly(const fmm_plan *plan, const fmm_error_samples *s, double *values) {
  const fmm_setup *setup = plan->setup;
  const int64_t n = setup->tree.sources.n, width = setup->n_result_planes * s->n, chunks = (n + CHUNK - 1) / CHUNK;
  const int64_t fit = MOST_VALUES / (width + 1), most = fit < LEAST_BLOCKS ? LEAST_BLOCKS : fit < MOST_BLOCKS ? fit : MOST_BLOCKS, in_block = (chunks + most - 1) / most;
  const int64_t n_blocks = in_block ? (chunks + in_block - 1) / in_block : 0;
  double *blocks = NULL;
  fmm_pair_sum sum;
  fmm_pair_sum_prepare(&sum, plan->pair, setup->params, setup->state.n_columns, setup->state.gradient, FMM_PRECISION_DOUBLE, 1e-14);
  FMM_TRY(FMM_ALLOCATE_ZERO(&blocks, n_blocks * width, "direct sums at sampled targets"));
#pragma omp parallel for num_threads(plan->threads) schedule(dynamic, 1)
  for (int64_t b = 0; b < n_blocks; b++)
    for (int64_t c = b * in_block; c < (b + 1) * in_block && c < chunks; c++) sum_chunk(plan, &sum, s, c * CHUNK, (c + 1) * CHUNK < n ? (c + 1) * CHUNK : n, blocks + b * width);
  add_blocks(n_blocks, width, blocks, values);
  FMM_FREE(&blocks);
  return FMM_OK;
}

/* NaN, which is not known, is the worst. */
static double worse(double a, double b) { return isnan(a) || b <= a ? a : b; }

static double relative(double error2, double size2) { return isnan(error2) || isnan(size2) ? NAN : error2 == 0 ? 0 : size2 > 0 ? sqrt(error2 / size2) : INFINITY; }

/* All results are 0 where direct sums are not, as where densities are so small that single precision, or what gradients are made of, holds none of them. Squares of such errors are 0 as well. */
static int is_lost(const fmm_results_size *size, int direct_is) { return size->squares == 0 && direct_is; }

/* One column's errors at the samples. */
static void compare_column(const fmm_plan *plan, const fmm_error_samples *s, const fmm_error_results *r, const double *values, int column, fmm_sampled_error *error) {
  const fmm_setup *setup = plan->setup;
  const int64_t outputs = setup->state.pair->info->outputs, columns = setup->state.n_columns, stride = setup->state.gradient ? 4 : 1;
  const fmm_results_size *of_potential = &s->sizes[column], *of_gradient = &s->sizes[columns + column];
  double potential = 0, gradient = 0;
  int potential_is = 0, gradient_is = 0; /* not 0, by direct sums */
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t o = 0; o < outputs; o++) {
      const double *value = values + (o * stride * columns + column) * s->n + i;
      const double e = r->potential[(s->row[i] * outputs + o) * columns + column] / of_potential->unit - setup->factor * *value / of_potential->unit;
      potential += s->weight[i] * e * e, potential_is |= setup->factor * *value != 0;
      for (int64_t k = 0; r->gradient && k < 3; k++) {
        const double exact = setup->gradient_factor * value[(1 + k) * columns * s->n], g = r->gradient[((s->row[i] * outputs + o) * 3 + k) * columns + column] / of_gradient->unit - exact / of_gradient->unit;
        gradient += s->weight[i] * g * g, gradient_is |= exact != 0;
      }
    }
  error->potential = worse(error->potential, is_lost(of_potential, potential_is) ? 1 : relative(potential, of_potential->squares));
  error->gradient = worse(error->gradient, is_lost(of_gradient, gradient_is) ? 1 : relative(gradient, of_gradient->squares));
}

fmm_status fmm_sample_error(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, int64_t n, fmm_sampled_error *error) {
  const fmm_error_results r = {densities, potential, gradient};
  fmm_error_samples s;
  double *values = NULL;
  fmm_status status;
  FMM_TRY(fmm_setup_host_points(plan->setup));
  FMM_CHECK(fmm_error_samples_pick(plan, &r, n, &s));
  FMM_CHECK(FMM_ALLOCATE(&values, plan->setup->n_result_planes * s.n, "direct sums at sampled targets"));
  FMM_CHECK(sum_directly(plan, &s, values));
  *error = (fmm_sampled_error){.samples = s.n};
  for (int c = 0; c < plan->setup->state.n_columns; c++) compare_column(plan, &s, &r, values, c, error);
done:
  fmm_error_samples_free(&s);
  FMM_FREE(&values);
  return status;
}

/* Of one column. magnitudes: rows of [(output * stride + k) * columns + column]. */
static void reach_of_column(const fmm_plan *plan, const fmm_error_samples *s, const double *magnitudes, int column, fmm_sampled_error *reach) {
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
  const fmm_error_results r = {densities, potential, gradient};
  const fmm_setup *setup = plan->setup;
  const fmm_points *p = &setup->tree.sources;
  fmm_error_samples s;
  double *targets = NULL, *values = NULL, *magnitudes = NULL;
  fmm_status status;
  FMM_TRY(fmm_setup_host_points(plan->setup));
  FMM_CHECK(fmm_error_samples_pick(plan, &r, n, &s));
  FMM_CHECK(FMM_ALLOCATE(&targets, 3 * s.n, "sampled targets"));
  FMM_CHECK(FMM_ALLOCATE(&values, setup->n_result_planes * s.n, "direct sums at sampled targets"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&magnitudes, setup->n_result_planes * s.n, "direct sums at sampled targets"));
  for (int64_t i = 0; i < s.n; i++) targets[3 * i] = s.x[i], targets[3 * i + 1] = s.y[i], targets[3 * i + 2] = s.z[i];
  const fmm_direct_case what = {.pair = plan->pair, .params = setup->params, .n_columns = setup->state.n_columns, .gradient = setup->state.gradient, .n_sources = p->n, .x = p->x, .y = p->y, .z = p->z,
                                .normal = p->normal[0] ? (const double *const *)p->normal : NULL, .density = s.density, .density_stride = p->n};
  fmm_direct_sums(&what, s.n, targets, plan->threads, values, magnitudes);
  *reach = (fmm_sampled_error){.samples = s.n};
  for (int c = 0; c < setup->state.n_columns; c++) reach_of_column(plan, &s, magnitudes, c, reach);
done:
  fmm_error_samples_free(&s);
  FMM_FREE(&targets);
  FMM_FREE(&values);
  FMM_FREE(&magnitudes);
  return status;
}
