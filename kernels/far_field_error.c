/* The accuracy of an order, measured on the operators themselves and carried over to a whole evaluation.
 *
 * Measured: random sources in the eight children of one box, targets in children of a box of each kind of offset in its V list, through the
 * whole chain P2M, M2M, M2L, L2L, L2P and directly: mean squares of error and of field, weighted by how often the offset occurs. Points are always the same (splitmix64).
 * Of charges of both signs one set is no measure: the net charge of so few varies as much as it is large, and with it the field (12 sets differed by 10 at order 6). So
 * there are COLUMNS sets, which share the sums between surfaces.
 * Points are summed with surfaces here, also of pairs that go by solid harmonics on CPU cores (kernels/harmonics.h), which err alike.
 * Only the check-to-equivalent maps are made, which decide the error and cost most; for a few vectors M2M, M2L and L2L are sums over surfaces' points.
 * Carried over, with L levels of V boxes (189 a level; a level up, 8 times the sources at twice the distance):
 *   signed       contributions are independent, squares add: error^2 / (near^2 + field^2), near: the field of the 27 nearest boxes, of sources on a
 *                lattice of NEAR points an edge, which leaves out the closest pairs. Potentials of degree -1 are far field in the end, and the coarsest of few
 *                levels has few such boxes: twice that, which is within 20 % of what 30,000 random points err by at orders 4 to 11; gradients are mostly near field.
 *   nonnegative  fields add in phase, and so may errors: the ratio of one is the ratio of all.
 *   alone        one charge at the outer corner of a box and of its child, the worst place there is, and no other that would dilute its error;
 *                carried over as signed ones.
 *   salt,        charges of both signs in turn on a lattice, moved off it or not (charge_lattice.h), of several spacings. What is left of a box's charge comes from its surface: a level
 *   crystal      up, 4 times as much at twice the distance, so that potentials err as much by every level. The whole field is that inside an endless lattice, a
 *                seventh of what random charges make there, and no field at all dilutes the error further.
 * tests/exec/test_order.c holds it against whole evaluations of the standard cases. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/charge_lattice.h"
#include "kernels/operators_parts.h"
#include "kernels/pair/pair_sums.h"
#include "kernels/shell_field.h"

enum { POINTS = 12, MOST = 48, OUTPUTS = 12, LEVELS = 4, NEAR = 4, COMPONENTS = 4, COLUMNS = 16, TOGETHER = FMM_MOST_VECTORS /* of them in one chain */, MOST_CHAINS = 3 * COLUMNS / TOGETHER + 2 };

typedef struct cloud { int n; double at[3][MOST], density[COMPONENTS][MOST]; } cloud;

/* What a thread works with: n values a column each, planes 3 n_surface each, all of one allocation that begins with check. */
typedef struct desk { double *check, *equivalent, *down, *coefficients, *scratch, *planes, *source_planes; } desk;

typedef struct chain {
  const fmm_operators *o; /* level 0: the larger boxes; level 1: their children, when the pair is not homogeneous */
  const fmm_level_operators *parent, *child;
  double half_width;
  int kind; /* fmm_density_sign, or FMM_DENSITY_ALONE .. */
  int first, columns; /* of the kind's independent sets of points, which share the sums between surfaces: number of the first, and how many */
  fmm_pair_sum surface_sum, potential_sum, value_sum; /* of all columns; of one, without and with the gradient */
  fmm_charge_lattice lattice[TOGETHER];
  cloud sources[TOGETHER][8];
  uint64_t random[TOGETHER]; /* states of splitmix64 */
  double *up, *density;      /* n a column each, of one allocation that begins with up */
  double error2[2], field2[2]; /* of potentials and gradients: sums over the V list of mean squares over target values, over near2 */
  double near2[TOGETHER][2];   /* on lattices: mean squares of the whole field, which the spacing decides; else 1 */
} chain;

/* A chain's way down through the boxes of one kind of offset: a job of its own, with its part of the chain's sums. */
typedef struct branch {
  const chain *c;
  int offset; /* which of the kinds below */
  uint64_t random[TOGETHER];
  cloud targets;
  double box_shell[TOGETHER][COMPONENTS], child_shell[TOGETHER][COMPONENTS]; /* shell fields of a target box and its child (shell_field.h) */
  double error2[2], field2[2];
} branch;

static const uint64_t STEP = 0x9e3779b97f4a7c15u; /* from one state to the next */

static double uniform(uint64_t *state) {
  uint64_t z = *state += STEP;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* As if so many clouds had been filled. */
static void skip_clouds(uint64_t *state, int n) { *state += (uint64_t)n * (POINTS * (3 + COMPONENTS)) * STEP; }

static void fill_cloud(cloud *c, const double center[3], double half_width, int kind, uint64_t *state) {
  c->n = POINTS;
  for (int i = 0; i < POINTS; i++) {
    for (int a = 0; a < 3; a++) c->at[a][i] = center[a] + half_width * (2 * uniform(state) - 1);
    for (int k = 0; k < COMPONENTS; k++) c->density[k][i] = uniform(state) - (kind == FMM_DENSITY_SIGNED ? 0.5 : 0);
  }
}

/* One source in all, of the last octant's cloud: at the corner that is its parent's too. */
static void leave_one_alone(cloud *c, const double center[3], double half_width, int octant) {
  memset(c->density, 0, sizeof c->density);
  for (int a = 0; a < 3; a++) c->at[a][0] = center[a] + half_width;
  for (int k = 0; k < COMPONENTS && octant == 7; k++) c->density[k][0] = 1;
}

static int on_lattice(int kind) { return kind == FMM_DENSITY_SALT || kind == FMM_DENSITY_CRYSTAL; }
static int columns_of(int kind) { return kind == FMM_DENSITY_SIGNED || on_lattice(kind) ? COLUMNS : 1; }

/* Of a column: 2 to 4.5 spacings a box, as leaves of some 60 to 100 charges have; anywhere. */
static void lay_lattice(chain *c, int column) {
  fmm_charge_lattice *l = &c->lattice[column];
  l->spacing = 2 * c->half_width / (2 + 2.5 * (c->first + column + 0.5) / COLUMNS);
  l->moved = c->kind == FMM_DENSITY_SALT ? FMM_SALT_MOVED : 0;
  for (int a = 0; a < 3; a++) l->origin[a] = l->spacing * uniform(&c->random[column]);
}

static void fill(const chain *c, cloud *to, int column, const double center[3], double half_width, uint64_t random[TOGETHER]) {
  if (!on_lattice(c->kind)) {
    fill_cloud(to, center, half_width, c->kind, &random[column]);
    return;
  }
  double low[3], *const at[3] = {to->at[0], to->at[1], to->at[2]};
  for (int a = 0; a < 3; a++) low[a] = center[a] - half_width;
  to->n = fmm_charge_lattice_fill(&c->lattice[column], low, 2 * half_width, MOST, at, to->density[0]);
  for (int k = 1; k < COMPONENTS; k++) memcpy(to->density[k], to->density[0], sizeof to->density[0]);
}

static fmm_pair_sources cloud_sources(const cloud *c) {
  return (fmm_pair_sources){.n = c->n, .x = c->at[0], .y = c->at[1], .z = c->at[2], .density = c->density[0], .component_stride = MOST, .column_stride = MOST};
}

static fmm_pair_sources surface_sources(const chain *c, const double *planes, const double *density) {
  int ns = c->o->n_surface;
  return (fmm_pair_sources){.n = ns, .x = planes, .y = planes + ns, .z = planes + 2 * ns, .density = density, .component_stride = ns, .column_stride = c->o->n};
}

static void set_surface(const chain *c, const double center[3], double radius, double *planes) {
  int ns = c->o->n_surface;
  fmm_surface_planes(ns, c->o->surface, center, radius, planes, planes + ns, planes + 2 * ns);
}

static void clear(const chain *c, double *vectors) { memset(vectors, 0, (size_t)c->columns * (size_t)c->o->n * sizeof *vectors); }

/* check += potentials on the surface of planes, of all columns or of one. */
static void add_check(const chain *c, const desk *d, const fmm_pair_sum *sum, const fmm_pair_sources *sources, double *check) {
  int ns = c->o->n_surface;
  fmm_pair_targets targets = {.n = ns, .x = d->planes, .y = d->planes + ns, .z = d->planes + 2 * ns, .value = check, .value_stride = ns, .column_stride = c->o->n};
  fmm_pair_sum_add(sum, &targets, 1, sources);
}

static void sum_values(const branch *b, int n_ranges, const fmm_pair_sources *sources, double values[OUTPUTS][MOST]) {
  memset(values, 0, OUTPUTS * sizeof values[0]);
  fmm_pair_targets targets = {.n = b->targets.n, .x = b->targets.at[0], .y = b->targets.at[1], .z = b->targets.at[2], .value = values[0], .value_stride = MOST,
                              .column_stride = MOST};
  fmm_pair_sum_add(&b->c->value_sum, &targets, n_ranges, sources);
}

static void child_center(const double center[3], double h, int octant, double child[3]) {
  for (int a = 0; a < 3; a++) child[a] = center[a] + (octant >> a & 1 ? h / 2 : -h / 2);
}

/* Check potentials to equivalent densities, every column, these divided by `by`. */
static void invert(const chain *c, const desk *d, const fmm_panels first[8], const fmm_panels second[8], const double *check, double *equivalent, double by) {
  fmm_apply_first(c->o, first, c->columns, check, d->coefficients, d->scratch);
  fmm_apply_second(c->o, second, c->columns, d->coefficients, equivalent, d->scratch);
  for (int i = 0; i < c->columns * c->o->n; i++) equivalent[i] /= by;
}

/* The same downward; the shell fields that the equivalents leave out to shell. */
static void invert_down(const chain *c, const desk *d, const fmm_level_operators *set, const double *check, double *equivalent, double by, double shell[TOGETHER][COMPONENTS]) {
  invert(c, d, set->down_first, set->down_second, check, equivalent, by);
  for (int k = 0; k < c->columns; k++) fmm_shell_parts(c->o, set, d->coefficients + k * c->o->n, shell[k]);
}

/* check += the box's shell fields on the surface of planes, of all columns. */
static void add_shells(const branch *b, const desk *d, const double box[3], double *check) {
  const fmm_operators *o = b->c->o;
  const int ns = o->n_surface;
  for (int k = 0; k < b->c->columns; k++)
    for (int i = 0; i < o->parity.n_components; i++)
      fmm_shell_add(o->shell_decay2, box, b->box_shell[k][i], 0, ns, d->planes, d->planes + ns, d->planes + 2 * ns, check + k * o->n + i * ns, 0);
}

/* P2M of one child's sources, and M2M as far as the parent's check potentials, added to those of its other children. */
static void rise(chain *c, const desk *d, int octant) {
  const double origin[3] = {0, 0, 0};
  double h = c->half_width / 2, center[3];
  child_center(origin, c->half_width, octant, center);
  set_surface(c, center, c->o->outer_radius * h, d->planes);
  clear(c, d->check);
  for (int k = 0; k < c->columns; k++) {
    fill(c, &c->sources[k][octant], k, center, h, c->random);
    if (c->kind == FMM_DENSITY_ALONE) leave_one_alone(&c->sources[k][octant], center, h, octant);
    fmm_pair_sources sources = cloud_sources(&c->sources[k][octant]);
    add_check(c, d, &c->potential_sum, &sources, d->check + k * c->o->n);
  }
  invert(c, d, c->child->up_first, c->child->up_second, d->check, d->equivalent, fmm_operators_scale(c->o, h));
  set_surface(c, center, FMM_INNER_RADIUS * h, d->source_planes);
  set_surface(c, origin, c->o->outer_radius * c->half_width, d->planes);
  fmm_pair_sources equivalent = surface_sources(c, d->source_planes, d->equivalent);
  add_check(c, d, &c->surface_sum, &equivalent, c->up);
}

/* Adds the mean squares over one child's targets, times weight. */
static void compare(branch *b, const desk *d, int column, const double center[3], double weight) {
  const chain *c = b->c;
  double direct[OUTPUTS][MOST], chained[OUTPUTS][MOST];
  fmm_pair_sources sources[8], surface = surface_sources(c, d->planes, d->equivalent + column * c->o->n);
  for (int k = 0; k < 8; k++) sources[k] = cloud_sources(&c->sources[column][k]);
  sum_values(b, 8, sources, direct);
  sum_values(b, 1, &surface, chained);
  for (int i = 0; i < c->o->parity.n_components; i++)
    fmm_shell_add(c->o->shell_decay2, center, b->child_shell[column][i], 1, b->targets.n, b->targets.at[0], b->targets.at[1], b->targets.at[2], chained[4 * i], MOST);
  for (int v = 0; v < 4 * c->o->pair->info->outputs; v++) {
    int gradient = v % 4 != 0, n_values = c->o->pair->info->outputs * (gradient ? 3 : 1);
    double share = weight / (c->near2[column][gradient] * b->targets.n * n_values);
    for (int i = 0; i < b->targets.n; i++) {
      b->error2[gradient] += share * (chained[v][i] - direct[v][i]) * (chained[v][i] - direct[v][i]);
      b->field2[gradient] += share * direct[v][i] * direct[v][i];
    }
  }
}

/* L2L to one child of the box, whose downward equivalent densities are given (d->down, at source_planes), L2P at that child's targets. */
static void fall(branch *b, const desk *d, const double box[3], int octant, double weight) {
  const chain *c = b->c;
  double h = c->half_width, center[3];
  fmm_pair_sources parent = surface_sources(c, d->source_planes, d->down);
  child_center(box, h, octant, center);
  set_surface(c, center, FMM_INNER_RADIUS * h / 2, d->planes);
  clear(c, d->check);
  add_check(c, d, &c->surface_sum, &parent, d->check);
  add_shells(b, d, box, d->check);
  invert_down(c, d, c->child, d->check, d->equivalent, fmm_operators_scale(c->o, h / 2), b->child_shell);
  set_surface(c, center, c->o->outer_radius * h / 2, d->planes);
  for (int k = 0; k < c->columns; k++) {
    fill(c, &b->targets, k, center, h / 2, b->random);
    compare(b, d, k, center, weight / columns_of(c->kind));
  }
}

/* Offsets by kind, with how many of the 189 boxes of a V list are of it (all 98 at distance 2; those at 3, where errors are small, by two
 * representatives), and the children whose targets are taken: the nearest, and one more where distance matters. */
static const struct { int offset[3]; double boxes; int n_octants, octant[2]; } kinds[] = {
    {{2, 0, 0}, 6, 2, {6, 0}}, {{1, -2, 0}, 24, 2, {2, 4}}, {{1, 1, 2}, 24, 2, {0, 1}}, {{0, -2, -2}, 12, 1, {7}}, {{2, 1, -2}, 24, 1, {5}},
    {{-2, 2, 2}, 8, 1, {1}},   {{0, 3, 1}, 45, 1, {0}},     {{-3, 2, -2}, 46, 1, {5}}};
enum { N_OFFSETS = sizeof kinds / sizeof *kinds };

/* Places of the columns, and what their errors are relative to. */
static void begin_columns(chain *c) {
  for (int k = 0; k < c->columns; k++) {
    c->random[k] = 1 + (uint64_t)(c->first + k) * 0x5851f42d4c957f2du;
    if (on_lattice(c->kind)) lay_lattice(c, k);
    for (int gradient = 0; gradient < 2; gradient++)
      c->near2[k][gradient] = on_lattice(c->kind) ? fmm_charge_lattice_square(&c->lattice[k], c->o->pair, c->o->params, gradient) : 1;
  }
}

/* A chain's way up: the parent's upward equivalent densities. */
static void run_chain(chain *c, const desk *d) {
  begin_columns(c);
  clear(c, c->up);
  for (int octant = 0; octant < 8; octant++) rise(c, d, octant);
  invert(c, d, c->parent->up_first, c->parent->up_second, c->up, c->density, 1);
}

/* And over to the boxes of one kind of offset, and down. */
static void run_branch(branch *b, const desk *d) {
  const chain *c = b->c;
  const double origin[3] = {0, 0, 0}, h = c->half_width;
  double box[3];
  int filled = 0; /* clouds of targets, by the branches before */
  for (int k = 0; k < b->offset; k++) filled += kinds[k].n_octants;
  for (int k = 0; k < c->columns; k++) b->random[k] = c->random[k], skip_clouds(&b->random[k], filled);
  for (int a = 0; a < 3; a++) box[a] = 2 * h * kinds[b->offset].offset[a];
  set_surface(c, origin, FMM_INNER_RADIUS * h, d->source_planes);
  set_surface(c, box, FMM_INNER_RADIUS * h, d->planes);
  fmm_pair_sources equivalent = surface_sources(c, d->source_planes, c->density);
  clear(c, d->check);
  add_check(c, d, &c->surface_sum, &equivalent, d->check);
  invert_down(c, d, c->parent, d->check, d->down, 1, b->box_shell);
  set_surface(c, box, c->o->outer_radius * h, d->source_planes);
  for (int t = 0; t < kinds[b->offset].n_octants; t++) fall(b, d, box, kinds[b->offset].octant[t], kinds[b->offset].boxes / kinds[b->offset].n_octants);
}

/* Mean square over a target's values of the field of the 27 nearest boxes, sources of mean square density on a lattice with the target in the
 * middle of a cell, as many a box as the chain has. Gradients by differences of the potential. */
static double near_square(const chain *c, int gradient) {
  int nc = c->o->parity.n_components, side = 3 * NEAR, axes = gradient ? 3 : 1;
  double spacing = 2 * c->half_width / NEAR, step = 1e-4 * spacing, sum = 0;
  for (int i = 0; i < side * side * side; i++) {
    double source[3] = {(i / (side * side) - side / 2 + 0.5) * spacing, (i / side % side - side / 2 + 0.5) * spacing, (i % side - side / 2 + 0.5) * spacing};
    for (int axis = 0; axis < axes; axis++) {
      double plus[9], minus[9] = {0}, at[3] = {0, 0, 0};
      if (gradient) at[axis] = step;
      c->o->pair->matrix(at, source, c->o->params, plus);
      at[axis] = -step;
      if (gradient) c->o->pair->matrix(at, source, c->o->params, minus);
      for (int k = 0; k < nc * nc; k++) {
        double value = gradient ? (plus[k] - minus[k]) / (2 * step) : plus[k];
        sum += value * value;
      }
    }
  }
  const double density2 = 1.0 / 12; /* of uniform densities in [-0.5, 0.5) */
  return sum / (nc * axes) * (c->kind == FMM_DENSITY_ALONE ? 1 : density2 * 8 * POINTS) / (NEAR * NEAR * NEAR);
}

static double carried_over(const chain *c, int gradient) {
  double error2 = c->error2[gradient], field2 = c->field2[gradient];
  if (!(field2 > 0)) return 0;
  const fmm_pair_info *info = c->o->pair->info;
  if (c->kind == FMM_DENSITY_NONNEGATIVE) return sqrt(error2 / (field2 + (info->has_degree ? 0 : near_square(c, gradient)))); /* far fields that die away do not matter */
  double degree = (info->has_degree ? info->degree : -1) - gradient, levels = 0, each = 1;
  for (int l = 0; l < LEVELS; l++, each *= (on_lattice(c->kind) ? 4 : 8) * pow(4, degree)) levels += each;
  if (on_lattice(c->kind)) return sqrt(levels * error2);
  return (gradient || c->kind == FMM_DENSITY_ALONE ? 1 : 2) * sqrt(levels * error2 / (near_square(c, gradient) + levels * field2));
}

/* The maps of boxes of two sizes, one set for both when the pair is homogeneous. */
static fmm_status make_maps(fmm_operators *o, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order, double half_width, int threads) {
  FMM_TRY(fmm_operators_shape(o, pair, params, order));
  FMM_TRY(fmm_level_create_inverses(o, &o->level[0], half_width, threads));
  return pair->info->has_degree ? FMM_OK : fmm_level_create_inverses(o, &o->level[1], half_width / 2, threads);
}

static fmm_status prepare(chain *c, const fmm_operators *o, double half_width, int kind, int first) {
  c->o = o;
  c->half_width = half_width;
  c->kind = kind;
  c->parent = &o->level[0];
  c->child = &o->level[o->pair->info->has_degree ? 0 : 1];
  c->first = first, c->columns = columns_of(kind) < TOGETHER ? columns_of(kind) : TOGETHER;
  FMM_TRY(FMM_ALLOCATE(&c->up, 2 * c->columns * o->n, "chain workspace"));
  c->density = c->up + c->columns * o->n;
  fmm_pair_sum_prepare(&c->surface_sum, o->pair, o->params, c->columns, 0, FMM_PRECISION_DOUBLE, 0);
  fmm_pair_sum_prepare(&c->potential_sum, o->pair, o->params, 1, 0, FMM_PRECISION_DOUBLE, 0);
  fmm_pair_sum_prepare(&c->value_sum, o->pair, o->params, 1, 1, FMM_PRECISION_DOUBLE, 0);
  return FMM_OK;
}

static int matters(int kind, int what) {
  return kind == what || kind == FMM_DENSITY_ALONE || (what == FMM_DENSITY_SALT && kind != FMM_DENSITY_NONNEGATIVE);
}

/* Chains of all kinds that matter, those of one kind in succession. */
static fmm_status prepare_all(chain c[MOST_CHAINS], const fmm_operators *o, double half_width, int what, int *n_chains) {
  *n_chains = 0;
  for (int kind = 0; kind < FMM_DENSITY_KINDS; kind++)
    for (int first = 0; matters(kind, what) && first < columns_of(kind); first += TOGETHER) FMM_TRY(prepare(&c[(*n_chains)++], o, half_width, kind, first));
  return FMM_OK;
}

static void carry_over(chain c[MOST_CHAINS], int n_chains, double error[FMM_DENSITY_KINDS][2]) {
  for (int i = n_chains - 1; i >= 0; i--)
    for (int gradient = 0; gradient < 2; gradient++) {
      if (c[i].first == 0) error[c[i].kind][gradient] = carried_over(&c[i], gradient);
      else c[i - 1].error2[gradient] += c[i].error2[gradient], c[i - 1].field2[gradient] += c[i].field2[gradient];
    }
}

/* The calling thread's desk; each has room for TOGETHER columns. */
static int64_t desk_values(const fmm_operators *o) { return 5 * TOGETHER * (int64_t)o->n + 6 * o->n_surface; }
static desk own_desk(const fmm_operators *o, double *desks) {
  const int64_t n = TOGETHER * (int64_t)o->n;
  double *at = desks + omp_get_thread_num() * desk_values(o), *planes = at + 5 * n;
  return (desk){at, at + n, at + 2 * n, at + 3 * n, at + 4 * n, planes, planes + 3 * o->n_surface};
}

/* All ways up, then all ways down, each a job; sums are added in one order, whoever made them. */
static fmm_status run_all(int n, chain *c, int threads) {
  const fmm_operators *o = c->o;
  double *desks = NULL;
  branch *branches = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&desks, threads * desk_values(o), "chain workspace"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&branches, n * N_OFFSETS, "operator chains"));
  /* The whole team for a few pieces: of a smaller one GNU's runtime ends the other threads, and those made in their place start on the core to which
   * the calling thread is bound (runtime/binding.h). */
#pragma omp parallel num_threads(threads)
  {
    const desk own = own_desk(o, desks);
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < n; i++) run_chain(&c[i], &own);
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < n * N_OFFSETS; i++) {
      branches[i].c = &c[i / N_OFFSETS], branches[i].offset = i % N_OFFSETS;
      run_branch(&branches[i], &own);
    }
  }
  for (int i = 0; i < n * N_OFFSETS; i++)
    for (int gradient = 0; gradient < 2; gradient++)
      c[i / N_OFFSETS].error2[gradient] += branches[i].error2[gradient], c[i / N_OFFSETS].field2[gradient] += branches[i].field2[gradient];
done:
  FMM_FREE(&branches);
  FMM_FREE(&desks);
  return status;
}

static fmm_status measure(fmm_operators *o, chain c[MOST_CHAINS], double half_width, int what, int threads, double error[FMM_DENSITY_KINDS][2]) {
  int n_chains;
  FMM_TRY(prepare_all(c, o, half_width, what, &n_chains));
  FMM_TRY(run_all(n_chains, c, threads));
  carry_over(c, n_chains, error);
  return FMM_OK;
}

fmm_status fmm_far_field_errors(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order, double half_width, int what, int threads,
                                double error[FMM_DENSITY_KINDS][2]) {
  struct { fmm_operators o; chain c[MOST_CHAINS]; } *w = NULL;
  if (pair->info->has_degree) half_width = 1;
  FMM_TRY(FMM_ALLOCATE_ZERO(&w, 1, "operator chains"));
  fmm_status status = fmm_blas_single_thread_begin(threads);
  if (status == FMM_OK) {
    status = make_maps(&w->o, pair, params, order, half_width, threads);
    fmm_blas_single_thread_end();
  }
  if (status == FMM_OK) status = measure(&w->o, w->c, half_width, what, threads, error);
  for (int i = 0; i < MOST_CHAINS; i++) FMM_FREE(&w->c[i].up);
  fmm_operators_clear(&w->o);
  FMM_FREE(&w);
  return status;
}
