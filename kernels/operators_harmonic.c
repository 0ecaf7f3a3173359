/* Operators between a box's solid harmonics and its coefficients or surfaces (kernels/harmonics.h). Those of W and X are harmonics at the inner surface; those of leaves are made of the inverses: the field of
 * moments at the upward check points, through up_first and up_second, and what downward equivalent densities make inside, with these through down_second and down_first (the outer factors where fmm_moments_are_whole). Both of these are the same table, weight H(x) / |x|^(2l+1) at the points x of the
 * outer surface, in units of the side. All is even or odd as its harmonic is: one point of each orbit tells the others. */
#include <math.h>
#include <string.h>

#include "kernels/operators_parts.h"

/* At the first point of an orbit: [2 n_pairs] harmonics of the inner surface, and with weights and over powers of the distance of the outer one. */
static void fill_orbit(const fmm_operators *o, int orbit, double *inner, double *outer) {
  const fmm_harmonics *h = &o->harmonics;
  const double *point = o->surface + 3 * o->shape.orbit[orbit * FMM_MIRRORS];
  double at[2][3], power[FMM_MOST_DEGREE + 1], r2 = 0;
  for (int a = 0; a < 3; a++) at[0][a] = FMM_INNER_RADIUS / 2 * point[a], at[1][a] = o->outer_radius / 2 * point[a], r2 += at[1][a] * at[1][a];
  power[0] = 1 / sqrt(r2);
  for (int l = 1; l <= h->degree; l++) power[l] = power[l - 1] / r2;
  fmm_harmonics_at(h, at[0], inner), fmm_harmonics_at(h, at[1], outer);
  for (int m = 0, k = 0; m <= h->degree; m++)
    for (int l = m; l <= h->degree; l++, k++)
      for (int sine = 0; sine < 2; sine++) outer[2 * k + sine] *= h->weight[k] * power[l];
}

/* Rows: orbits that block chi has, in its order; columns: its terms. harmonics: [orbit][2 n_pairs]. */
static void fill_block(const fmm_operators *o, int chi, const double *harmonics, double factor, double *table) {
  const fmm_harmonics *h = &o->harmonics;
  const int n_terms = h->begin[chi + 1] - h->begin[chi];
  for (int i = 0; i < 2 * h->n_pairs; i++) {
    const int term = h->place[i] - h->begin[chi];
    if (term < 0 || term >= n_terms) continue;
    for (int orbit = 0; orbit < o->shape.n_orbits; orbit++) {
      const int slot = o->parity.slot[orbit * FMM_MIRRORS + chi];
      if (slot >= 0) table[(int64_t)(slot - o->parity.begin[chi]) * n_terms + term] = factor * harmonics[(int64_t)orbit * 2 * h->n_pairs + i];
    }
  }
}

static void unpack(const fmm_panels *panels, double *matrix) {
  for (int i = 0; i < panels->rows; i++)
    for (int j = 0; j < panels->columns; j++) matrix[(int64_t)i * panels->columns + j] = fmm_panel_entry(panels, i, j);
}

/* The weights of a block's terms, into `to`. */
static const double *weights_of(const fmm_harmonics *h, int chi, double *to) {
  for (int i = 0; i < 2 * h->n_pairs; i++)
    if (h->place[i] >= h->begin[chi] && h->place[i] < h->begin[chi + 1]) to[h->place[i] - h->begin[chi]] = h->weight[i / 2];
  return to;
}

/* matrix = matrix through the square factor, on its left (rows are the factor's) or right, by way of `work` of its size. */
static void multiply_in(const fmm_panels *factor, int on_left, int rows, int columns, double *matrix, double *square, double *work) {
  unpack(factor, square);
  if (on_left) fmm_small_product(rows, columns, rows, square, matrix, work);
  else fmm_small_product(rows, columns, columns, matrix, square, work);
  memcpy(matrix, work, (size_t)rows * (size_t)columns * sizeof *matrix);
}

/* work: table and its transpose, a product, a square block, factors of rows and of terms. */
static fmm_status make_block(const fmm_operators *o, fmm_level_operators *set, int chi, const double *inner, const double *outer) {
  const fmm_harmonics *h = &o->harmonics;
  const int rows = o->parity.begin[chi + 1] - o->parity.begin[chi], terms = h->begin[chi + 1] - h->begin[chi];
  const int64_t size = (int64_t)rows * terms;
  const int whole = fmm_moments_are_whole(o->order);
  double *table = NULL;
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&table, 3 * size + (int64_t)rows * rows + rows + terms, "operators of harmonics"));
  double *turned = table + size, *product = turned + size, *square = product + size;
  double *factor = square + (int64_t)rows * rows, per_side = 0.5 / set->half_width;
  fill_block(o, chi, outer, per_side, table);
  unpack(&set->up_first[chi], square);
  fmm_small_product(rows, terms, rows, square, table, product);
  for (int64_t i = 0; i < size; i++) product[i] *= FMM_MIRRORS; /* sums over orbits */
  if (whole) multiply_in(&set->up_second[chi], 1, rows, terms, product, square, turned);
  FMM_CHECK(fmm_panels_pack(&set->up_moments[chi], rows, terms, product, terms, 1, NULL, NULL));
  for (int i = 0; i < rows; i++) {
    const double points = o->parity.weight[o->parity.begin[chi] + i] * o->parity.weight[o->parity.begin[chi] + i];
    for (int j = 0; j < terms; j++) turned[(int64_t)j * rows + i] = points * table[(int64_t)i * terms + j];
  }
  unpack(&set->down_second[chi], square);
  fmm_small_product(terms, rows, rows, turned, square, product);
  for (int i = 0; i < rows && chi == 0 && set->shell; i++) product[(int64_t)h->place[0] * rows + i] += set->shell[i];
  if (whole) multiply_in(&set->down_first[chi], 0, terms, rows, product, square, table);
  FMM_CHECK(fmm_panels_pack(&set->down_moments[chi], terms, rows, product, rows, 1, NULL, NULL));
  fill_block(o, chi, inner, 1, table);
  FMM_CHECK(fmm_panels_pack(&set->x_moments[chi], rows, terms, table, terms, 1, NULL, NULL));
  for (int i = 0; i < rows; i++) factor[i] = o->parity.weight[o->parity.begin[chi] + i] * o->parity.weight[o->parity.begin[chi] + i] / FMM_MIRRORS * per_side;
  FMM_CHECK(fmm_panels_pack(&set->w_moments[chi], terms, rows, table, 1, terms, weights_of(h, chi, factor + rows), factor));
done:
  FMM_FREE(&table);
  return status;
}

fmm_status fmm_level_harmonics_create(const fmm_operators *o, fmm_level_operators *set, int threads) {
  const fmm_harmonics *h = &o->harmonics;
  const int n_orbits = o->shape.n_orbits;
  const int64_t all = (int64_t)n_orbits * 2 * h->n_pairs;
  fmm_block_outcome block[FMM_MIRRORS];
  double *inner = NULL;
  if (!h->n_terms) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&inner, 2 * all, "harmonics of surfaces"));
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (int i = 0; i < n_orbits; i++) fill_orbit(o, i, inner + (int64_t)i * 2 * h->n_pairs, inner + all + (int64_t)i * 2 * h->n_pairs);
#pragma omp for schedule(dynamic, 1)
    for (int chi = 0; chi < FMM_MIRRORS; chi++) fmm_block_note(&block[chi], make_block(o, set, chi, inner, inner + all));
  }
  FMM_FREE(&inner);
  return fmm_blocks_join(FMM_MIRRORS, block);
}
