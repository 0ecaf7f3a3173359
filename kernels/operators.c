/* Making the translation operators: kernel matrices in the regrouped basis, SVD of the check-to-equivalent blocks, M2M and L2L.
 * See operators.h for the shapes. LAPACK and BLAS run one thread each inside our own team, so that bits never depend on threads. */
#include "kernels/operators.h"

#include <math.h>
#include <string.h>

#include "kernels/operators_parts.h"
#include "runtime/counts.h"

/* What is being made for one level and one direction (transposed: the pair with its arguments exchanged). */
typedef struct builder {
  const fmm_operators *o;
  fmm_level_operators *set;
  double half_width;
  int transposed, translations, n, threads; /* translations: M2M and L2L too */
  double *first;  /* blocks m x m, row-major, at offset[chi]: S^-1 U^T */
  double *second; /* likewise: V */
  double *child;  /* n x n: K(parent's outer, inner of the child in an octant) in the regrouped orthonormal basis */
  int64_t offset[FMM_MIRRORS + 1];
} builder;

static int block_size(const fmm_parity_map *map, int chi) { return map->begin[chi + 1] - map->begin[chi]; }

/* K between an outer and an inner point: block[outer component][inner component]. */
static void kernel_block(const builder *b, const double outer[3], const double inner[3], double *block) {
  double plain[9];
  int c = b->o->parity.n_components;
  if (!b->transposed) {
    b->o->pair->matrix(outer, inner, b->o->params, block);
    return;
  }
  b->o->pair->matrix(inner, outer, b->o->params, plain);
  for (int i = 0; i < c; i++)
    for (int j = 0; j < c; j++) block[i * c + j] = plain[j * c + i];
}

static void place(const fmm_operators *o, int point, double radius, double center, double at[3]) {
  for (int a = 0; a < 3; a++) at[a] = center + radius * o->surface[3 * point + a];
}

/* Column `in` of component l over rows of the check-to-equivalent blocks: sums over the inner orbit with signs (see surface.h). */
static void fill_block_entries(const builder *b, int outer_orbit, int inner_orbit, double *blocks) {
  const fmm_operators *o = b->o;
  const fmm_parity_map *map = &o->parity;
  int nc = map->n_components, n_orbits = o->shape.n_orbits;
  double k[FMM_MIRRORS][9], outer[3], inner[3];
  place(o, o->shape.orbit[FMM_MIRRORS * outer_orbit], o->outer_radius * b->half_width, 0, outer);
  for (int g = 0; g < FMM_MIRRORS; g++) {
    place(o, o->shape.orbit[FMM_MIRRORS * inner_orbit + g], FMM_INNER_RADIUS * b->half_width, 0, inner);
    kernel_block(b, outer, inner, k[g]);
  }
  for (int i = 0; i < nc; i++)
    for (int j = 0; j < nc; j++)
      for (int chi = 0; chi < FMM_MIRRORS; chi++) {
        int row = map->slot[(i * n_orbits + outer_orbit) * FMM_MIRRORS + chi], column = map->slot[(j * n_orbits + inner_orbit) * FMM_MIRRORS + chi];
        if (row < 0 || column < 0) continue;
        int psi = fmm_component_parity(o->pair->info->parity, chi, j);
        double sum = 0;
        for (int g = 0; g < FMM_MIRRORS; g++) sum += fmm_mirror_sign(psi, g) * k[g][i * nc + j];
        int m = block_size(map, chi);
        blocks[b->offset[chi] + (int64_t)(row - map->begin[chi]) * m + column - map->begin[chi]] = map->weight[row] * map->weight[column] / FMM_MIRRORS * sum;
      }
}

/* K(outer, inner of a box with this center) on natural unknowns, row-major n x n; rows split over the team. */
static void fill_dense(const builder *b, double inner_half_width, const double center[3], double *matrix) {
  const fmm_operators *o = b->o;
  int ns = o->n_surface, nc = o->parity.n_components, n = b->n;
#pragma omp parallel for num_threads(b->threads) schedule(static)
  for (int i = 0; i < ns; i++) {
    double outer[3], inner[3], block[9];
    place(o, i, o->outer_radius * b->half_width, 0, outer);
    for (int j = 0; j < ns; j++) {
      for (int a = 0; a < 3; a++) inner[a] = center[a] + FMM_INNER_RADIUS * inner_half_width * o->surface[3 * j + a];
      kernel_block(b, outer, inner, block);
      for (int k = 0; k < nc; k++)
        for (int l = 0; l < nc; l++) matrix[(int64_t)(k * ns + i) * n + l * ns + j] = block[k * nc + l];
    }
  }
}

static void fill_blocks(const builder *b, double *blocks) {
  if (b->o->parity.n_blocks == 1) {
    fill_dense(b, b->half_width, (const double[3]){0, 0, 0}, blocks);
    return;
  }
#pragma omp parallel for num_threads(b->threads) schedule(static)
  for (int i = 0; i < b->o->shape.n_orbits; i++)
    for (int j = 0; j < b->o->shape.n_orbits; j++) fill_block_entries(b, i, j, blocks);
}

/* Singular values below this part of the largest are cut. Two reasons: rounding of the entries, 4 eps; and what a surface of order p cannot
 * resolve: its edges' circumference of 4(p-1) points carries harmonics up to degree 2(p-1), whose singular value is (inner/outer)^2(p-1), while
 * modes far below it are artefacts of the points. Stokes has such modes at every order, from densities along the normal, which make no flow: kept,
 * they cost three digits at order 7; between 1e-4 and 1e-1 of the resolved value its error varies by less than 3. One component has few of them, and
 * modes of corners below the resolved value that are worth keeping, most of all where charges cancel. Whole evaluations, Laplace, potential of 30,000 random charges /
 * 27,000 of a salt / 8,000 of a crystal, with 1e-3, 1e-4, 3e-5 and 1e-5:
 *   order 6   2.0e-6 4.8e-6 3.0e-6 |  1.9e-6 4.6e-6 1.3e-6 |  1.9e-6 4.6e-6 1.3e-6 |  1.9e-6 4.6e-6 1.4e-6
 *   order 7   3.0e-7 1.1e-6 6.6e-7 |  2.3e-7 6.1e-7 1.9e-7 |  2.2e-7 6.0e-7 7.3e-8 |  2.2e-7 5.9e-7 7.2e-8
 *   order 8   3.8e-8 1.3e-7 1.7e-7 |  3.0e-8 8.3e-8 1.0e-7 |  3.0e-8 8.2e-8 1.1e-7 |  6.4e-8 1.6e-7 5.9e-7 (an artefact)
 *   order 12  5.7e-11 1.7e-10 1.3e-10 |  2.7e-11 8.6e-11 6.5e-11 |  as before |  as before
 * Surfaces whose sums may be in single precision lose by it: at order 5, 4.2e-5 for 1.9e-5 with 3e-5. */
static double cut_of(const fmm_operators *o) {
  double of_resolved = o->n > o->n_surface || o->order <= FMM_MOST_ORDER_OF_CHEAP_SUMS ? 1e-3 : o->order < 8 ? 3e-5 : 1e-4;
  return fmax(4 * 2.220446049250313e-16, of_resolved * pow(FMM_INNER_RADIUS / o->outer_radius, 2 * (o->order - 1)));
}

/* The classical radius is 2.95, just short of the nearest far sources at 3. But a field of sources beyond 3 is as well given by densities farther
 * out, as far as p points an edge resolve it, and their aliases fall faster. Measured on the operators (far_field_error.c; laplace, order 6,
 * nonnegative / signed): 6.7e-7 / 4.3e-6 at 2.95, 1.5e-7 / 2.6e-6 at 3.8, 8.4e-8 / 2.3e-6 at 5, 7.8e-8 / 2.2e-6 at 6. Inner radii from 1 to 1.1 differ by
 * less than a tenth in these. Two limits:
 *   the resolved harmonics' smallest singular value, (inner/outer)^2(p-1), is kept above 1e-11, or rounding takes over: at order 12, signed, the
 *   error has its minimum 3e-11 at 3.4 and is 1.2e-10 at 4.5, 9e-10 at 6;
 *   beyond 5 little is gained, and noise of the arithmetic is amplified more (kernels/phase.h).
 * Kernels without a degree may die away exponentially, which makes the corners of a far surface blind: they keep 2.95. */
double fmm_outer_radius(const fmm_pair_info *info, int order) {
  const double least = 2.95, most = 5, smallest_singular_value = 1e-11;
  if (!info->has_degree) return least;
  return fmin(most, fmax(least, FMM_INNER_RADIUS * pow(smallest_singular_value, -0.5 / (order - 1))));
}

/* Where kernels die away exponentially: of coarse boxes, of whose densities nothing but roundings of subnormal numbers would come elsewhere, nothing is to come. */
static const double least_singular_value = 1e-200;

/* first = S^-1 U^T, second = V from the blocks; sigma is n of workspace. */
static fmm_status factorize(builder *b, double *blocks, double *sigma, double *vt) {
  const fmm_parity_map *map = &b->o->parity;
  fmm_block_outcome block[FMM_MIRRORS];
  double largest = 0, cut = cut_of(b->o);
#pragma omp parallel for num_threads(b->threads) schedule(dynamic, 1)
  for (int chi = 0; chi < map->n_blocks; chi++)
    fmm_block_note(&block[chi], fmm_small_svd(block_size(map, chi), blocks + b->offset[chi], b->first + b->offset[chi], sigma + map->begin[chi], vt + b->offset[chi]));
  FMM_TRY(fmm_blocks_join(map->n_blocks, block));
  for (int chi = 0; chi < map->n_blocks; chi++)
    if (block_size(map, chi) > 0) largest = fmax(largest, sigma[map->begin[chi]]);
  for (int chi = 0; chi < map->n_blocks; chi++) {
    int m = block_size(map, chi);
    double *u = b->first + b->offset[chi], *v = b->second + b->offset[chi];
    for (int i = 0; i < m; i++) { /* u holds U^T by rows */
      double s = sigma[map->begin[chi] + i], inverse = s > cut * largest && s > least_singular_value ? 1 / s : 0;
      for (int j = 0; j < m; j++) {
        u[(int64_t)i * m + j] *= inverse;
        v[(int64_t)j * m + i] = inverse > 0 ? vt[b->offset[chi] + (int64_t)i * m + j] : 0;
      }
    }
  }
  return FMM_OK;
}

/* The n x n matrix regrouped on both sides to the orthonormal basis, through scratch of the same size. */
static void regroup_matrix(const builder *b, double *matrix, double *scratch) {
  const fmm_operators *o = b->o;
  const fmm_parity_map *map = &o->parity;
  int n = b->n, n_orbits = o->shape.n_orbits, ns = o->n_surface;
  if (map->n_blocks == 1) return;
#pragma omp parallel for num_threads(b->threads) schedule(static)
  for (int i = 0; i < n; i++) {
    fmm_regroup(o, matrix + (int64_t)i * n, scratch + (int64_t)i * n);
    for (int j = 0; j < n; j++) scratch[(int64_t)i * n + j] *= map->weight[j] / FMM_MIRRORS;
  }
#pragma omp parallel for num_threads(b->threads) schedule(static)
  for (int ko = 0; ko < map->n_components * n_orbits; ko++) {
    const int32_t *orbit = o->shape.orbit + FMM_MIRRORS * (ko % n_orbits);
    int k = ko / n_orbits;
    for (int chi = 0; chi < FMM_MIRRORS; chi++) {
      int row = map->slot[ko * FMM_MIRRORS + chi], psi = fmm_component_parity(o->pair->info->parity, chi, k);
      if (row < 0) continue;
      double *out = matrix + (int64_t)row * n, w = map->weight[row] / FMM_MIRRORS;
      for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int g = 0; g < FMM_MIRRORS; g++) sum += fmm_mirror_sign(psi, g) * scratch[(int64_t)(k * ns + orbit[g]) * n + j];
        out[j] = w * sum;
      }
    }
  }
}

/* in: factor on sums over orbits; out: factor on what is spread. */
static fmm_status pack_factors_of(const builder *b, int chi, const double *in, const double *out, int up, int down) {
  fmm_level_operators *set = b->set;
  const int m = block_size(&b->o->parity, chi), at = b->o->parity.begin[chi];
  const double *f = b->first + b->offset[chi], *s = b->second + b->offset[chi];
  if (up) {
    FMM_TRY(fmm_panels_pack(&set->up_first[chi], m, m, f, m, 1, NULL, in + at));
    FMM_TRY(fmm_panels_pack(&set->up_second[chi], m, m, s, m, 1, out + at, NULL));
  }
  if (down) { /* first = second_up^T, second = first_up^T */
    FMM_TRY(fmm_panels_pack(&set->down_first[chi], m, m, s, 1, m, NULL, in + at));
    FMM_TRY(fmm_panels_pack(&set->down_second[chi], m, m, f, 1, m, out + at, NULL));
  }
  return FMM_OK;
}

static fmm_status pack_factors(builder *b, const double *in, const double *out, int up, int down) {
  fmm_block_outcome block[FMM_MIRRORS];
#pragma omp parallel for num_threads(b->threads) schedule(dynamic, 1)
  for (int chi = 0; chi < b->o->parity.n_blocks; chi++) fmm_block_note(&block[chi], pack_factors_of(b, chi, in, out, up, down));
  return fmm_blocks_join(b->o->parity.n_blocks, block);
}

/* Rows of block chi of first * child, packed as M2M's and, as columns, into all blocks of L2L. */
static fmm_status pack_rows(const builder *b, int octant, int chi, const double *in, const double *out, int up, int down) {
  const fmm_parity_map *map = &b->o->parity;
  const int n = b->n, whole = map->n_blocks == 1, m = block_size(map, chi), at = map->begin[chi];
  double *rows = NULL;
  FMM_TRY(FMM_ALLOCATE(&rows, (int64_t)m * n, "rows of M2M"));
  fmm_small_product(m, n, m, b->first + b->offset[chi], b->child + (int64_t)at * n, rows);
  if (up) fmm_panels_fill(&b->set->m2m[whole ? octant : chi], 0, n, rows, n, 1, NULL, whole ? NULL : in);
  for (int other = 0; down && other < map->n_blocks; other++)
    fmm_panels_fill(&b->set->l2l[whole ? octant : other], at, m, rows + map->begin[other], 1, n, whole ? NULL : out + map->begin[other], NULL);
  FMM_FREE(&rows);
  return FMM_OK;
}

/* M2M, L2L: first * K(parent's outer, inner of the child in this octant), and its transpose. */
static fmm_status translate_child(builder *b, int octant, double *scratch, const double *in, const double *out, int up, int down) {
  const fmm_parity_map *map = &b->o->parity;
  const double h = b->half_width / 2, center[3] = {octant & 1 ? h : -h, octant & 2 ? h : -h, octant & 4 ? h : -h};
  fmm_block_outcome block[FMM_MIRRORS];
  for (int chi = 0; chi < map->n_blocks; chi++) {
    const int place = map->n_blocks == 1 ? octant : chi;
    if (up) FMM_TRY(fmm_panels_reserve(&b->set->m2m[place], block_size(map, chi), b->n));
    if (down) FMM_TRY(fmm_panels_reserve(&b->set->l2l[place], block_size(map, chi), b->n));
  }
  fill_dense(b, h, center, b->child);
  regroup_matrix(b, b->child, scratch);
#pragma omp parallel for num_threads(b->threads) schedule(dynamic, 1)
  for (int chi = 0; chi < map->n_blocks; chi++) fmm_block_note(&block[chi], pack_rows(b, octant, chi, in, out, up, down));
  return fmm_blocks_join(map->n_blocks, block);
}

/* One direction: up when up is set, down when down is set (both at once when the pair is symmetric). */
static fmm_status build_direction(builder *b, double *blocks, double *scratch, const double *in, const double *out, int up, int down) {
  fill_blocks(b, blocks);
  FMM_TRY(factorize(b, blocks, scratch, scratch + b->n));
  FMM_TRY(pack_factors(b, in, out, up, down));
  for (int octant = 0; b->translations && octant < (b->o->parity.n_blocks == 1 ? 8 : 1); octant++) FMM_TRY(translate_child(b, octant, scratch, in, out, up, down));
  return FMM_OK;
}

static fmm_status create_level(const fmm_operators *o, fmm_level_operators *set, double half_width, int translations, int threads) {
  builder b = {.o = o, .set = set, .half_width = half_width, .translations = translations, .n = o->n, .threads = threads};
  double *blocks = NULL, *scratch = NULL, *in = NULL, *out = NULL;
  fmm_status status = FMM_OK;
  set->half_width = half_width;
  for (int chi = 0; chi < o->parity.n_blocks; chi++) b.offset[chi + 1] = b.offset[chi] + (int64_t)block_size(&o->parity, chi) * block_size(&o->parity, chi);
  int64_t in_blocks = b.offset[o->parity.n_blocks], nn = translations ? (int64_t)o->n * o->n : in_blocks;
  FMM_CHECK(FMM_ALLOCATE(&blocks, in_blocks, "check-to-equivalent blocks"));
  FMM_CHECK(FMM_ALLOCATE(&b.first, in_blocks, "first factors"));
  FMM_CHECK(FMM_ALLOCATE(&b.second, in_blocks, "second factors"));
  if (translations) FMM_CHECK(FMM_ALLOCATE(&b.child, nn, "child-to-parent matrix"));
  FMM_CHECK(FMM_ALLOCATE(&scratch, nn + o->n, "operator scratch"));
  FMM_CHECK(FMM_ALLOCATE(&in, o->n, "input weights"));
  FMM_CHECK(FMM_ALLOCATE(&out, o->n, "output weights"));
  for (int i = 0; i < o->n; i++) in[i] = o->parity.weight[i] / o->parity.n_blocks, out[i] = 1 / o->parity.weight[i];
  int symmetric = o->pair->info->symmetric;
  FMM_CHECK(build_direction(&b, blocks, scratch, in, out, 1, symmetric));
  b.transposed = 1;
  if (!symmetric) FMM_CHECK(build_direction(&b, blocks, scratch, in, out, 0, 1));
  FMM_CHECK(fmm_shell_create(o, set));
  if (translations) FMM_CHECK(fmm_level_harmonics_create(o, set, threads));
done:
  FMM_FREE(&blocks);
  FMM_FREE(&b.first);
  FMM_FREE(&b.second);
  FMM_FREE(&b.child);
  FMM_FREE(&scratch);
  FMM_FREE(&in);
  FMM_FREE(&out);
  return status;
}

fmm_status fmm_level_create(const fmm_operators *o, fmm_level_operators *set, double half_width, int threads) {
  return create_level(o, set, half_width, 1, threads);
}

fmm_status fmm_level_create_inverses(const fmm_operators *o, fmm_level_operators *set, double half_width, int threads) {
  return create_level(o, set, half_width, 0, threads);
}

fmm_status fmm_operators_shape(fmm_operators *o, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order) {
  const fmm_pair_info *info = pair->info;
  *o = (fmm_operators){.pair = pair, .order = order};
  memcpy(o->params, params, sizeof o->params);
  FMM_TRY(fmm_surface_create(&o->shape, order));
  FMM_TRY(fmm_parity_map_create(&o->parity, &o->shape, info->parity, info->equivalent_components));
  o->surface = o->shape.xyz;
  o->n_surface = o->shape.n_points;
  o->outer_radius = fmm_outer_radius(info, order);
  o->shell_decay2 = pow(fmm_pair_largest_decay(info, params), 2);
  o->n = o->parity.n;
  o->grid = 2 * order - 1;
  o->n_frequencies = o->grid * o->grid * order;
  o->n_offsets = info->parity == FMM_PARITY_NONE ? 343 : 64;
  return FMM_OK;
}

static fmm_status build_all(fmm_operators *o, fmm_level_operators *set, double half_width, int threads) {
  FMM_TRY(fmm_level_create(o, set, half_width, threads));
  return fmm_m2l_create(o, set, threads);
}

static fmm_status build(fmm_operators *o, double root_half_width, int n_levels, int threads) {
  if (o->pair->info->has_degree) {
    o->n_levels = 1;
    return build_all(o, &o->level[0], 1, threads);
  }
  o->n_levels = n_levels < 2 ? 2 : n_levels; /* 1 would mean one set for all */
  for (int l = 2; l < n_levels; l++) FMM_TRY(build_all(o, &o->level[l], ldexp(root_half_width, -l), threads));
  return FMM_OK;
}

fmm_status fmm_operators_create(fmm_operators **operators, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order,
                                double root_half_width, int n_levels, int threads) {
  if (order < FMM_MIN_ORDER || order > FMM_MAX_ORDER)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "order is %d; it must be %d .. %d", order, FMM_MIN_ORDER, FMM_MAX_ORDER);
  if (n_levels < 0 || n_levels > FMM_MAX_LEVELS) return FMM_FAIL(FMM_ERR_ARGUMENT, "%d levels; at most %d", n_levels, FMM_MAX_LEVELS);
  fmm_operators *o = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&o, 1, "operators"));
  fmm_status status = fmm_operators_shape(o, pair, params, order);
  if (status == FMM_OK && fmm_has_harmonics(pair->info)) status = fmm_harmonics_create(&o->harmonics, fmm_harmonic_degree(order)); /* not where errors of orders are measured (far_field_error.c) */
  if (status == FMM_OK) status = fmm_blas_single_thread_begin(threads);
  if (status == FMM_OK) {
    status = build(o, root_half_width, n_levels, threads);
    fmm_blas_single_thread_end();
  }
  if (status != FMM_OK) fmm_operators_destroy(&o);
  else *operators = o;
  return status;
}

static void for_each_panels(fmm_level_operators *set, void (*act)(fmm_panels *panels, void *context), void *context) {
  fmm_panels *groups[] = {set->up_first, set->up_second, set->down_first, set->down_second, set->m2m, set->l2l, set->up_moments, set->down_moments, set->w_moments, set->x_moments};
  for (int g = 0; g < 10; g++)
    for (int i = 0; i < 8; i++) act(&groups[g][i], context);
}

static void free_panels(fmm_panels *panels, void *context) { FMM_FREE(&panels->data); }
static void add_bytes(fmm_panels *panels, void *context) { *(size_t *)context += fmm_memory_bytes(panels->data); }

void fmm_operators_clear(fmm_operators *o) {
  for (int l = 0; l < FMM_MAX_LEVELS; l++) {
    for_each_panels(&o->level[l], free_panels, NULL);
    FMM_FREE(&o->level[l].m2l);
    FMM_FREE(&o->level[l].shell);
  }
  fmm_surface_free(&o->shape);
  fmm_parity_map_free(&o->parity);
  fmm_harmonics_free(&o->harmonics);
}

void fmm_operators_destroy(fmm_operators **operators) {
  if (*operators) fmm_operators_clear(*operators);
  FMM_FREE(operators);
}

size_t fmm_operators_bytes(const fmm_operators *operators) {
  size_t bytes = sizeof *operators;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) {
    for_each_panels((fmm_level_operators *)&operators->level[l], add_bytes, &bytes);
    bytes += fmm_memory_bytes(operators->level[l].m2l) + fmm_memory_bytes(operators->level[l].shell);
  }
  return bytes;
}

double fmm_operators_scale(const fmm_operators *o, double half_width) {
  const fmm_pair_info *info = o->pair->info;
  return !info->has_degree ? 1 : info->degree == -1 ? 1 / half_width : pow(half_width, info->degree);
}
