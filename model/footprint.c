/* See footprint.h: sizes of arrays by the shapes that their headers state. */
#include "model/footprint.h"

#include "kernels/harmonics_cost.h"
#include "kernels/level_cost.h"

#include <math.h>

#include "kernels/pair/pair_both.h"
#include "kernels/pair/pair_tiles.h"
#include "kernels/ulist/ulist_groups.h"

enum { BYTES_A_BOX = 8 + 1 + 4 + 4 + 1 + 1 + 4 * 8 + 3 * 8 + 4, BYTES_A_LEAF = 4, BYTES_A_ROW = 4 + 8, BLOCKS_A_THREAD = 11, LANES = 16 };

static double point_bytes(const fmm_counts *c, const fmm_pair_info *pair) {
  double source = 3 * 8 + 4 + (pair->takes_normals ? 3 * 8 : 0), target = 3 * 8 + 4;
  return source * (double)c->n_sources + (c->same_points ? 0 : target * (double)c->n_targets);
}

static double rows_bytes(double entries, double most_rows, double entry_bytes) {
  return entries * entry_bytes + fmin(entries, most_rows) * BYTES_A_ROW;
}

static double list_bytes(const fmm_counts *c, const fmm_count_case *what) {
  const double leaves = (double)c->n_leaves, boxes = (double)c->n_boxes;
  const fmm_work *of = c->total;
  return rows_bytes(of[FMM_PHASE_ULIST].entries, leaves, 4) + rows_bytes(fmm_vlist_parent_pairs(what, &of[FMM_PHASE_VLIST]), boxes - leaves, 5) + rows_bytes(of[FMM_PHASE_WLIST].entries, leaves, 4) +
         rows_bytes(of[FMM_PHASE_XLIST].entries, boxes, 4);
}

static int has_far_field(const fmm_counts *c) {
  return c->total[FMM_PHASE_VLIST].entries + c->total[FMM_PHASE_WLIST].entries + c->total[FMM_PHASE_XLIST].entries > 0;
}

/* ---- on the GPU (runtime/gpu/gpu_plan.cu) ---- */

enum { DEVICE_BYTES_A_BOX = 3 * 8 + 8 + 3 * 8, DEVICE_BYTES_AN_ENTRY = 16 + 4, DEVICE_BYTES_A_PARENT = 8 * 4 + 8 * 4 + (27 + 1) * 4 /* lines of neighbours, row */ };

static double pad(double n, double to) { return ceil(n / to) * to; }

/* Operators by parity blocks, their rows to 8, or dense ones, rows to 32 and columns to 16; transforms of all 343 offsets. */
static double device_operators(const fmm_counts *c, const fmm_pair_info *pair, double n, const double gpu[FMM_N_PHASES]) {
  const double block = fmm_gpu_parity_block(pair, c->order), matrix = 8 * (block > 0 ? FMM_MIRRORS * pad(block, 8) * block : pad(n, 32) * pad(n, 16)), grid = 2 * c->order - 1, components = pair->equivalent_components;
  double sets = pair->has_degree ? 1 : fmax(c->n_levels - 2, 0), one = 10 * matrix * ((gpu[FMM_PHASE_UP] > 0) + (gpu[FMM_PHASE_DOWN] > 0));
  if (gpu[FMM_PHASE_VLIST] > 0) one += 16 * 343 * c->order * grid * grid * components * components;
  return sets * one;
}

/* Mates, places and halos of the U list (kernels/ulist/ulist_groups.h), a record a leaf, and in single precision a store a thread (kernels/ulist/ulist_cpu.c), for the largest group and its
 * halo, which is that of the first along the curve: all of the layer around it. Leaves that fill d dimensions have 3^d neighbours; a group of m^d leaves
 * has half of the layer around it in its halo, the layer being thinner by those groups that lie at the border. */
static double ulist_bytes(const fmm_counts *c, const fmm_pair_info *pair, int threads, fmm_precision precision) {
  enum { LEAF_RECORD = 120 };
  double entries = c->total[FMM_PHASE_ULIST].entries, leaves = (double)c->n_leaves, points = (double)c->n_targets;
  if (!c->same_points || !fmm_pair_prefers_both(pair, c->gradient, c->n_columns)) return 0;
  double store = precision == FMM_PRECISION_DOUBLE ? 0 : 4 * (3 + pair->components) * (double)threads;
  if (entries < 2 * leaves) return 8 * entries + LEAF_RECORD * leaves + store * points;
  const double first = (double)fmm_ulist_group_points(c->n_targets, 0), last = (double)fmm_ulist_group_points(c->n_targets, c->n_targets), small = 1.0 / FMM_SMALL_GROUPS;
  double groups = fmax(1, fmin(leaves, (1 - small) * points / first + small * points / last)), d = log(entries / leaves) / log(3);
  double edge = pow(leaves / groups, 1 / d), layer = pow(1 + 2 * (1 - pow(groups, -1 / d)) / edge, d) - 1;
  double halos = 0.5 * layer * points, group = fmin(points, first), most = group + fmin(points - group, 2 * halos / groups);
  return 8 * entries + LEAF_RECORD * leaves + 8 * pair->outputs * (c->gradient ? 4 : 1) * halos + store * most;
}

/* Two spectra (sources, targets) of the eight children of every parent, for `planes` of the order's frequencies kz; sums between slabs where these are not all. */
static double device_spectra(const fmm_counts *c, const fmm_pair_info *pair, double complex_bytes, double planes) {
  double grid = 2 * c->order - 1, parents = (double)(c->n_boxes - c->n_leaves), parts = c->n_columns * pair->equivalent_components;
  double between = planes < c->order ? 8 * parents * 8 * parts * c->n_surface : 0;
  return 2 * complex_bytes * 8 * planes * grid * grid * parts * parents + between + parents * DEVICE_BYTES_A_PARENT;
}

/* Whether sums from surfaces onto points are those of lattices (kernels/pair/pair_lattice_cuda.cu), whose lanes have two targets and a record each. */
static int on_lattices(const fmm_counts *c, const fmm_pair_info *pair, fmm_precision precision) {
  return fmm_pair_lattice_on_gpu(pair, c->order, c->n_columns, c->third_order) && (precision == FMM_PRECISION_DOUBLE || c->order > FMM_MOST_ORDER_OF_CHEAP_SUMS);
}

enum { UNIT_RECORD = 16 };

/* W's tiles that are cut (runtime/gpu/gpu_tables.cu): an order and a record a tile, and sums of their own for each part. A part has a fair share of all pairs of
 * target and box, or its tile's boxes are too few; of lattices it has two boxes. An entry's targets are in one tile, as the leaves beside small boxes are small. */
static double device_w_parts(const fmm_counts *c, const fmm_pair_info *pair, const fmm_precision precision[FMM_N_PHASES], const double gpu[FMM_N_PHASES]) {
  enum { RECORD = 4 + 24, MOST_TARGETS = 160 };
  const fmm_work *w = &c->total[FMM_WORK_WLIST_GPU];
  if (!(gpu[FMM_PHASE_WLIST] > 0) || !(w->entries > 0)) return 0;
  double pairs_of_boxes = w->pairs / c->n_surface, share = fmax(pairs_of_boxes / FMM_W_SHARES, FMM_W_LEAST_SHARE), parts = fmin(pairs_of_boxes / share, w->entries);
  double targets = fmin(pairs_of_boxes / w->entries, MOST_TARGETS), values = pair->outputs * (c->gradient ? 4 : 1) * c->n_columns, units = 0;
  if (on_lattices(c, pair, precision[FMM_PHASE_WLIST])) parts = w->entries / FMM_LATTICE_BOXES, units = UNIT_RECORD * targets / FMM_LATTICE_TARGETS;
  return parts * (8 * targets * values + units + RECORD);
}

/* U on a GPU: values of a point, and whether it is in single. */
static int values_of_part(const fmm_counts *c) { return c->gradient ? 4 : 1; }
static int in_single(const fmm_precision precision[FMM_N_PHASES]) { return precision[FMM_PHASE_ULIST] != FMM_PRECISION_DOUBLE; }

/* P2M or L2P in one launch with the leaves' products (kernels/leaves_cuda.h), which then have no check potentials, or equivalent densities, in memory. */
static int leaves_in_one(const fmm_counts *c, const fmm_pair_info *pair, const fmm_precision precision[FMM_N_PHASES], const double gpu[FMM_N_PHASES], fmm_phase phase) {
  const int together = gpu[FMM_PHASE_UP] > 0 && gpu[FMM_PHASE_ULIST] > 0 && gpu[FMM_PHASE_VLIST] > 0 && gpu[FMM_PHASE_DOWN] > 0;
  const int one_way = !c->same_points || !fmm_pair_both_on_gpu(pair, c->gradient, c->n_columns, c->third_order, in_single(precision));
  const int beside_u = together && one_way && in_single(precision) && c->n_columns == 1 && !c->gradient && !(c->total[FMM_PHASE_WLIST].entries > 0);
  const double points = (double)(phase == FMM_PHASE_UP ? c->n_sources : c->n_targets), leaves = fmin((double)c->n_leaves, points); /* at most so many have any */
  if (phase == FMM_PHASE_UP) return !beside_u && fmm_moments_on_gpu(pair, c->order, c->n_columns, (int64_t)leaves);
  return leaves >= FMM_LEAVES_MANY && !beside_u && on_lattices(c, pair, precision[phase]);
}

/* L2P's lanes; half of the leaves have an odd number of targets. */
static double device_units(const fmm_counts *c, const fmm_pair_info *pair, const fmm_precision precision[FMM_N_PHASES], const double gpu[FMM_N_PHASES]) {
  if (!(gpu[FMM_PHASE_DOWN] > 0) || !on_lattices(c, pair, precision[FMM_PHASE_DOWN]) || leaves_in_one(c, pair, precision, gpu, FMM_PHASE_DOWN)) return 0;
  return UNIT_RECORD * ((double)c->n_targets / FMM_LATTICE_TARGETS + 0.5 * (double)c->n_leaves / FMM_LATTICE_TARGETS);
}

/* Tiles of a leaf, by the shapes that they will have (kernels/pair/pair_tiles.h): the mean over numbers of points as a Poisson distribution gives them, to two deviations. */
static double tiles_a_leaf(const fmm_counts *c) {
  enum { STEPS = 16 };
  double mean = (double)c->n_targets / (double)c->n_leaves, sum = 0, weights = 0;
  int cap = fmm_pair_tile_cap(c->n_targets);
  for (int i = -STEPS; i <= STEPS; i++) {
    double t = 2.0 * i / STEPS, weight = exp(-0.5 * t * t);
    int64_t points = llround(mean + t * sqrt(mean)), tiles = 1;
    int lanes_log2, per_lane;
    fmm_pair_shape_tiles(points > 1 ? points : 1, cap, FMM_TILE_TARGETS_A_LANE(values_of_part(c), 1), &tiles, &lanes_log2, &per_lane);
    sum += weight * (double)tiles, weights += weight;
  }
  return sum / weights;
}

/* Pairs of leaves of which a GPU sums both directions at once, those with a tile of one; 0 where it sums one way: other interactions, too many entries. */
static double tiles_of_pairs(const fmm_counts *c, const fmm_pair_info *pair, const fmm_precision precision[FMM_N_PHASES], const double gpu[FMM_N_PHASES]) {
  double entries = c->total[FMM_PHASE_ULIST].entries, pairs = 0.5 * (entries - (double)c->n_leaves);
  int both = gpu[FMM_PHASE_ULIST] > 0 && c->same_points && entries <= INT32_MAX &&
             fmm_pair_both_on_gpu(pair, c->gradient, c->n_columns, c->third_order, in_single(precision));
  return both && pairs > 0 ? pairs * tiles_a_leaf(c) : 0;
}

/* U's parts where both directions of a pair are summed at once (runtime/gpu/gpu_both.cu): for each tile and leaf the values of a point of the latter, and a record. What a plan in single keeps free beside, for parts in
 * double, is not counted. */
static double bytes_of_part(const fmm_counts *c, const fmm_precision precision[FMM_N_PHASES]) { return values_of_part(c) * (in_single(precision) ? 4 : 8); }
static double device_u_parts(const fmm_counts *c, const fmm_precision precision[FMM_N_PHASES], double tiles_of_pairs) {
  enum { RECORD = 24 };
  return tiles_of_pairs * (bytes_of_part(c, precision) * (double)c->n_targets / (double)c->n_leaves + RECORD);
}

/* A leaf that is the whole tree, summed so (runtime/gpu/gpu_direct.cu): a record for each tile and one that it sums, which the host has too while the plan is made, and what tiles give to one another. */
typedef struct circle { double records, parts; } circle;
static circle circle_of(const fmm_counts *c, const fmm_precision precision[FMM_N_PHASES], const double gpu[FMM_N_PHASES]) {
  enum { RECORD = 24 };
  int64_t tiles;
  int lanes_log2, per_lane;
  if (c->n_leaves != 1 || !c->both_on_gpu[in_single(precision)] || !(gpu[FMM_PHASE_ULIST] > 0)) return (circle){0};
  fmm_pair_shape_tiles(c->n_targets, fmm_pair_tile_cap(c->n_targets), FMM_TILE_TARGETS_A_LANE(values_of_part(c), 1), &tiles, &lanes_log2, &per_lane);
  const double mates = (double)fmm_pair_direct_mates(c->n_targets, tiles), all = (double)tiles;
  return (circle){RECORD * all * (all - mates), bytes_of_part(c, precision) * mates * (double)c->n_targets};
}

/* What the host holds while a device's plan is made: records of tiles, ranges and offsets of U, P2M and L2P a leaf, children and neighbours of V a parent, and of U an entry's
 * range, or of both directions its three places and its pair's record. */
static double gpu_set_up(const fmm_counts *c, double tiles_of_pairs) {
  enum { A_LEAF = 3 * (56 + 16 + 16) + 120, A_PARENT = 2 * 32 + (27 + 1) * 4, A_RANGE = 16, PLACES = 3 * 4, RECORD = 24 };
  double entries = c->total[FMM_PHASE_ULIST].entries;
  return (double)c->n_leaves * A_LEAF + (double)(c->n_boxes - c->n_leaves) * A_PARENT + (tiles_of_pairs > 0 ? PLACES * entries + RECORD * tiles_of_pairs : A_RANGE * entries);
}

static double device_bytes(const fmm_counts *c, const fmm_pair_info *pair, const fmm_count_case *what, const fmm_precision precision[FMM_N_PHASES],
                           const double gpu[FMM_N_PHASES], double complex_bytes, double planes) {
  double densities = (double)c->n_sources * (fmm_source_bytes(what) - 24), results = (double)c->n_targets * (fmm_target_bytes(what) - 24);
  double entries = c->total[FMM_PHASE_ULIST].entries + c->total[FMM_PHASE_WLIST].entries + c->total[FMM_PHASE_XLIST].entries;
  double bytes = point_bytes(c, pair) + 4 * (double)c->n_targets + 2 * densities + (c->gradient ? 2 : 3) * results /* potentials are sorted on the device, for arrays of the host */ + (double)c->n_boxes * DEVICE_BYTES_A_BOX + entries * DEVICE_BYTES_AN_ENTRY;
  double far = gpu[FMM_PHASE_UP] + gpu[FMM_PHASE_VLIST] + gpu[FMM_PHASE_WLIST] + gpu[FMM_PHASE_XLIST] + gpu[FMM_PHASE_DOWN];
  if (!has_far_field(c) || !(far > 0)) return bytes;
  const double box_bytes = 8 * fmm_count_unknowns(what) * c->n_columns, kept = 8.0 * FMM_MIRRORS * fmm_gpu_parity_block(pair, c->order) * c->n_columns;
  const int dense = !(kept > 0), up = gpu[FMM_PHASE_UP] > 0, down = gpu[FMM_PHASE_DOWN] > 0;
  const int check = up && !(kept > 0 && leaves_in_one(c, pair, precision, gpu, FMM_PHASE_UP)), equivalent = down && !(kept > 0 && leaves_in_one(c, pair, precision, gpu, FMM_PHASE_DOWN));
  const double expansions = (2 + (1 + dense) * down + equivalent) * box_bytes, shells = 8.0 * pair->equivalent_components * c->n_columns * equivalent;
  bytes += (double)c->n_boxes * (expansions + kept + shells) + (1 + dense) * check * (double)c->n_leaves * box_bytes; /* kept: regrouped ones; check potentials, coefficients */
  bytes += device_w_parts(c, pair, precision, gpu) + device_units(c, pair, precision, gpu);
  if (gpu[FMM_PHASE_VLIST] > 0) bytes += device_spectra(c, pair, complex_bytes, planes);
  return bytes + device_operators(c, pair, fmm_count_unknowns(what), gpu);
}

/* Of a thread: blocks of lanes, and the harmonics of boxes (kernels/phase.h). */
static double lanes_workspace(const fmm_count_case *what, int blocks, int gradient, int threads) {
  const double degree = fmm_harmonic_degree(what->order), outputs = gradient ? FMM_HARMONIC_OUTPUTS : 1;
  const double terms = FMM_HARMONIC_OUTPUTS * (degree + 1) * (degree + 1) + 1 + outputs * (degree + 1) * (degree + 2) * (LANES + 1) / LANES;
  return (double)threads * LANES * 8 * (blocks * fmm_count_unknowns(what) + (fmm_has_harmonics(what->pair) ? terms : 0));
}

/* W's and X's: by surfaces they are small. */
static double lists_workspace(const fmm_counts *c, const fmm_count_case *what, const double gpu[FMM_N_PHASES], int threads) {
  double bytes = 0;
  if (!fmm_has_harmonics(what->pair)) return 0;
  if (gpu[FMM_PHASE_WLIST] < 1 && c->total[FMM_PHASE_WLIST].entries > 0) bytes += lanes_workspace(what, 2, c->gradient, threads);
  if (gpu[FMM_PHASE_XLIST] < 1 && c->total[FMM_PHASE_XLIST].entries > 0) bytes += lanes_workspace(what, 2, 0, threads);
  return bytes;
}

/* All of one set: leaves', W's and X's, each up and down. */
static double harmonic_operators(const fmm_count_case *what) { return fmm_has_harmonics(what->pair) ? 4 * 8 * fmm_harmonic_entries(what) : 0; }

/* Parents whose boxes may be in a slab of V: all, or, of kernels without a degree, those of the fullest level. */
static double parents_of_slabs(const fmm_counts *c, const fmm_pair_info *pair) {
  double all = 0, most = 0;
  for (int l = 0; l < FMM_MAX_LEVELS && !pair->has_degree; l++) {
    const double entries = c->level[FMM_PHASE_VLIST][l].entries;
    all += entries, most = entries > most ? entries : most;
  }
  return (double)(c->n_boxes - c->n_leaves) * (all > 0 ? most / all : 1);
}

void fmm_footprint_of(const fmm_counts *c, const fmm_pair_info *pair, int threads, const fmm_precision precision[FMM_N_PHASES],
                      const double gpu_fraction[FMM_N_PHASES], fmm_footprint *footprint) {
  fmm_footprint f = {0};
  fmm_count_case what = {.pair = pair, .order = c->order, .n_columns = c->n_columns, .gradient = c->gradient};
  fmm_box_work box = fmm_box_work_of(&what);
  fmm_vlist_work v = fmm_vlist_work_of(&what);
  f.points = point_bytes(c, pair);
  f.tree = (double)c->n_boxes * BYTES_A_BOX + (double)c->n_leaves * BYTES_A_LEAF;
  f.lists = list_bytes(c, &what);
  f.planes = (double)c->n_sources * (fmm_source_bytes(&what) - 24) + (double)c->n_targets * (fmm_target_bytes(&what) - 24);
  int v_single = precision[FMM_PHASE_VLIST] == FMM_PRECISION_SINGLE;
  if (gpu_fraction[FMM_PHASE_ULIST] < 1) f.workspace += ulist_bytes(c, pair, threads, precision[FMM_PHASE_ULIST]);
  if (has_far_field(c)) {
    int sets = pair->has_degree ? 1 : c->n_levels;
    f.expansions = 2 * (double)c->n_boxes * box.box_bytes;
    f.operators = sets * (2 * (box.leaf_operator_bytes / 2 + box.parent_operator_bytes) + harmonic_operators(&what) + v.operator_bytes);
    if (gpu_fraction[FMM_PHASE_VLIST] < 1) f.workspace += fmm_vlist_workspace_bytes(&what, v_single ? sizeof(float) : sizeof(double), parents_of_slabs(c, pair), (double)c->n_boxes / fmax(1, (double)(c->n_boxes - c->n_leaves)), threads);
    f.workspace += lists_workspace(c, &what, gpu_fraction, threads);
    if (gpu_fraction[FMM_PHASE_UP] < 1) f.workspace += lanes_workspace(&what, BLOCKS_A_THREAD, 0, threads);
    if (gpu_fraction[FMM_PHASE_DOWN] < 1) f.workspace += lanes_workspace(&what, BLOCKS_A_THREAD, c->gradient, threads) + (fmm_has_harmonics(pair) ? 0 : 8.0 * (double)c->n_boxes * pair->equivalent_components * c->n_columns); /* shell fields */
  }
  double on_gpu = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) on_gpu += gpu_fraction[phase];
  if (on_gpu == FMM_N_PHASES) f.expansions = 0; /* the device alone has them; planes are then the page-locked memory of densities and results */
  f.host = f.points + f.tree + f.lists + f.planes + f.expansions + f.operators + f.workspace;
  if (on_gpu > 0) {
    double complex_bytes = v_single ? 2 * sizeof(float) : 2 * sizeof(double);
    double tiles = tiles_of_pairs(c, pair, precision, gpu_fraction);
    const circle direct = circle_of(c, precision, gpu_fraction);
    f.device = device_u_parts(c, precision, tiles) + direct.records + direct.parts + device_bytes(c, pair, &what, precision, gpu_fraction, complex_bytes, c->order);
    f.device_least = device_bytes(c, pair, &what, precision, gpu_fraction, complex_bytes, 1);
    f.set_up = gpu_set_up(c, tiles) + direct.records;
    f.host += f.set_up;
  }
  *footprint = f;
}
