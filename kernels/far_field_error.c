/* The accuracy of an order, measured on the operators themselves: sources in two children of one box, targets in two children of each of two
 * boxes of its V list, one face away at the least distance and one askew, through the whole chain and directly; for interactions that
 * differ along the axes, in two more, faces away along y and z. Points and densities are pseudo-random (splitmix64) and always the same.
 * Plain C: about n^2 operations a translation. */
#include <math.h>
#include <string.h>

#include "kernels/operators_parts.h"

enum { POINTS = 24, MAX_VALUES = 12, N_SOURCE_CHILDREN = 2, N_TARGET_CHILDREN = 2, N_TARGET_BOXES = 4, N_ISOTROPIC_BOXES = 2, MAX_BLOCK = 16 };

typedef struct cloud { double x[POINTS], y[POINTS], z[POINTS], density[9][POINTS]; } cloud;

typedef struct chain {
  fmm_operators o; /* level 0: the larger boxes; level 1: their children, when the pair is not homogeneous */
  const fmm_level_operators *parent, *child;
  double half_width;
  double *check, *coefficients, *equivalent, *scratch; /* n, n, n, 2n */
  double *sx, *sy, *sz;                                /* n_surface each */
  double sum_error, sum_reference, worst; /* squares of the present boxes; largest relative error of one box */
} chain;

static double uniform(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static void child_center(const double center[3], double h, int octant, double child[3]) {
  for (int a = 0; a < 3; a++) child[a] = center[a] + (octant >> a & 1 ? h / 2 : -h / 2);
}

static void fill_cloud(cloud *c, const double center[3], double half_width, int components, fmm_density_sign sign, uint64_t *state) {
  for (int i = 0; i < POINTS; i++) {
    c->x[i] = center[0] + half_width * (2 * uniform(state) - 1);
    c->y[i] = center[1] + half_width * (2 * uniform(state) - 1);
    c->z[i] = center[2] + half_width * (2 * uniform(state) - 1);
    for (int k = 0; k < components; k++) c->density[k][i] = uniform(state) - (sign == FMM_DENSITY_SIGNED ? 0.5 : 0);
  }
}

/* Surface planes of the chain around a centre. */
static void set_surface(chain *c, const double center[3], double radius) {
  for (int i = 0; i < c->o.n_surface; i++) {
    c->sx[i] = center[0] + radius * c->o.surface[3 * i];
    c->sy[i] = center[1] + radius * c->o.surface[3 * i + 1];
    c->sz[i] = center[2] + radius * c->o.surface[3 * i + 2];
  }
}

/* Potentials (and gradient) at one target of n sources; density plane k at density + k * stride. */
static void evaluate(const chain *c, const double target[3], int64_t n, const double *x, const double *y, const double *z, const double *density,
                     int64_t stride, int gradient, double *values) {
  const double *planes[9], *normal[3] = {NULL};
  for (int k = 0; k < 9; k++) planes[k] = density + k * stride;
  memset(values, 0, MAX_VALUES * sizeof *values);
  c->o.pair->reference(target, n, x, y, z, normal, planes, c->o.params, 1, gradient, values);
}

/* check[component][point] on the chain's surface of n sources. */
static void evaluate_check(chain *c, int64_t n, const double *x, const double *y, const double *z, const double *density, int64_t stride, double *check) {
  double values[MAX_VALUES];
  for (int i = 0; i < c->o.n_surface; i++) {
    evaluate(c, (const double[3]){c->sx[i], c->sy[i], c->sz[i]}, n, x, y, z, density, stride, 0, values);
    for (int k = 0; k < c->o.parity.n_components; k++) check[k * c->o.n_surface + i] = values[k];
  }
}

static void scale_values(double *values, int n, double factor) {
  for (int i = 0; i < n; i++) values[i] *= factor;
}

/* Adds one child's sources to the parent's upward coefficients. */
static void rise(chain *c, const cloud *sources, const double center[3], int octant, double *parent_coefficients) {
  double h = c->half_width / 2;
  set_surface(c, center, FMM_OUTER_RADIUS * h);
  evaluate_check(c, POINTS, sources->x, sources->y, sources->z, sources->density[0], POINTS, c->check);
  fmm_apply_first(&c->o, c->child->up_first, c->check, c->coefficients, c->scratch);
  fmm_apply_second(&c->o, c->child->up_second, c->coefficients, c->equivalent, c->scratch);
  scale_values(c->equivalent, c->o.n, 1 / fmm_operators_scale(&c->o, h));
  fmm_apply_m2m(&c->o, c->parent, octant, c->equivalent, parent_coefficients, c->scratch);
}

/* From the parent's downward coefficients to one child's targets; adds up squares of errors and references. */
static void fall(chain *c, const double *parent_coefficients, const double center[3], int octant, const cloud *targets, const cloud *sources, int gradient) {
  double h = c->half_width / 2, direct[MAX_VALUES], chained[MAX_VALUES], part[MAX_VALUES];
  memset(c->check, 0, (size_t)c->o.n * sizeof *c->check);
  fmm_apply_l2l(&c->o, c->parent, octant, parent_coefficients, c->check, c->scratch);
  fmm_apply_first(&c->o, c->child->down_first, c->check, c->coefficients, c->scratch);
  fmm_apply_second(&c->o, c->child->down_second, c->coefficients, c->equivalent, c->scratch);
  scale_values(c->equivalent, c->o.n, 1 / fmm_operators_scale(&c->o, h));
  set_surface(c, center, FMM_OUTER_RADIUS * h);
  int stride = gradient ? 4 : 1;
  for (int i = 0; i < POINTS; i++) {
    const double at[3] = {targets->x[i], targets->y[i], targets->z[i]};
    evaluate(c, at, c->o.n_surface, c->sx, c->sy, c->sz, c->equivalent, c->o.n_surface, gradient, chained);
    memset(direct, 0, sizeof direct);
    for (int s = 0; s < N_SOURCE_CHILDREN; s++) {
      evaluate(c, at, POINTS, sources[s].x, sources[s].y, sources[s].z, sources[s].density[0], POINTS, gradient, part);
      for (int v = 0; v < MAX_VALUES; v++) direct[v] += part[v];
    }
    for (int v = 0; v < c->o.pair->info->outputs * stride; v++) {
      if (gradient && v % stride == 0) continue;
      c->sum_error += (chained[v] - direct[v]) * (chained[v] - direct[v]);
      c->sum_reference += direct[v] * direct[v];
    }
  }
}

static const int source_octants[N_SOURCE_CHILDREN] = {5, 0}, target_octants[N_TARGET_CHILDREN] = {0, 6};
static const int box_offsets[N_TARGET_BOXES][3] = {{2, 0, 0}, {-1, 2, 1}, {0, 2, 0}, {0, 0, 2}}; /* in box units */

/* Boxes to measure: the first ones will do when K is as large along one axis as along another. */
static int n_target_boxes(const chain *c) {
  double size[3] = {0}, block[MAX_BLOCK];
  int n = c->o.pair->info->equivalent_components;
  for (int axis = 0; axis < 3; axis++) {
    double target[3] = {0};
    const double source[3] = {0};
    target[axis] = 2 * c->half_width;
    c->o.pair->matrix(target, source, c->o.params, block);
    for (int i = 0; i < n * n; i++) size[axis] += block[i] * block[i];
  }
  double rounding = 1e-12 * size[0];
  return fabs(size[1] - size[0]) <= rounding && fabs(size[2] - size[0]) <= rounding ? N_ISOTROPIC_BOXES : N_TARGET_BOXES;
}

/* Directions that differ count apart: most boxes of a V list may lie in the worst one. */
static void finish_boxes(chain *c) {
  if (c->sum_reference > 0) c->worst = fmax(c->worst, sqrt(c->sum_error / c->sum_reference));
  c->sum_error = c->sum_reference = 0;
}

static fmm_status run_chain(chain *c, fmm_density_sign sign, int gradient) {
  cloud *clouds = NULL;
  double *sx = NULL;
  int n = c->o.n, ns = c->o.n_surface;
  FMM_TRY(FMM_ALLOCATE_ZERO(&clouds, N_SOURCE_CHILDREN + 1, "sample points"));
  fmm_status status = FMM_ALLOCATE(&sx, 3 * ns + 3 * n, "sample surfaces");
  if (status == FMM_OK) {
    uint64_t state = 1;
    double *up = sx + 3 * ns, *density = up + n, *down = density + n, center[3];
    const double origin[3] = {0, 0, 0};
    memset(up, 0, (size_t)n * sizeof *up);
    for (int s = 0; s < N_SOURCE_CHILDREN; s++) {
      child_center(origin, c->half_width, source_octants[s], center);
      fill_cloud(&clouds[s], center, c->half_width / 2, c->o.pair->info->components, sign, &state);
      rise(c, &clouds[s], center, source_octants[s], up);
    }
    fmm_apply_second(&c->o, c->parent->up_second, up, density, c->scratch);
    for (int b = 0, n_boxes = n_target_boxes(c); b < n_boxes; b++) {
      double box[3];
      for (int a = 0; a < 3; a++) box[a] = 2 * c->half_width * box_offsets[b][a];
      set_surface(c, origin, FMM_INNER_RADIUS * c->half_width);
      memcpy(sx, c->sx, (size_t)(3 * ns) * sizeof *sx);
      set_surface(c, box, FMM_INNER_RADIUS * c->half_width);
      evaluate_check(c, ns, sx, sx + ns, sx + 2 * ns, density, ns, c->check);
      fmm_apply_first(&c->o, c->parent->down_first, c->check, down, c->scratch);
      for (int t = 0; t < N_TARGET_CHILDREN; t++) {
        child_center(box, c->half_width, target_octants[t], center);
        fill_cloud(&clouds[N_SOURCE_CHILDREN], center, c->half_width / 2, 0, sign, &state);
        fall(c, down, center, target_octants[t], &clouds[N_SOURCE_CHILDREN], clouds, gradient);
      }
      if (n_boxes > N_ISOTROPIC_BOXES || b == n_boxes - 1) finish_boxes(c);
    }
  }
  FMM_FREE(&sx);
  FMM_FREE(&clouds);
  return status;
}

static fmm_status prepare(chain *c, double half_width, int threads) {
  int n = c->o.n, homogeneous = c->o.pair->info->has_degree;
  c->half_width = homogeneous ? 1 : half_width;
  FMM_TRY(fmm_level_create(&c->o, &c->o.level[0], c->half_width, threads));
  if (!homogeneous) FMM_TRY(fmm_level_create(&c->o, &c->o.level[1], c->half_width / 2, threads));
  c->parent = &c->o.level[0];
  c->child = &c->o.level[homogeneous ? 0 : 1];
  FMM_TRY(FMM_ALLOCATE(&c->check, 5 * n + 3 * c->o.n_surface, "chain workspace"));
  c->coefficients = c->check + n;
  c->equivalent = c->check + 2 * n;
  c->scratch = c->check + 3 * n;
  c->sx = c->check + 5 * n;
  c->sy = c->sx + c->o.n_surface;
  c->sz = c->sy + c->o.n_surface;
  return FMM_OK;
}

fmm_status fmm_far_field_error(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order, double half_width, fmm_density_sign sign,
                               int gradient, int threads, double *error) {
  chain *c = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&c, 1, "operator chain"));
  fmm_blas_single_thread_begin();
  fmm_status status = fmm_operators_shape(&c->o, pair, params, order);
  if (status == FMM_OK) status = prepare(c, half_width, threads);
  fmm_blas_single_thread_end();
  if (status == FMM_OK) status = run_chain(c, sign, gradient);
  if (status == FMM_OK) *error = c->worst;
  fmm_operators_clear(&c->o);
  FMM_FREE(&c->check);
  FMM_FREE(&c);
  return status;
}
