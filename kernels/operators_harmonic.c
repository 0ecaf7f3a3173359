/* Operators between a leaf's solid harmonics and its coefficients (kernels/harmonics.h), made of the inverses: the field of moments at the upward check points, through up_first, and what
 * downward equivalent densities, down_second, make inside. Both are the same table, weight H(x) / |x|^(2l+1) at the points x of the outer surface, in units of the side, and that is
 * even or odd as its harmonic is: one point of each orbit tells the others. */
#include <math.h>

#include "kernels/operators_parts.h"

/* rows: orbits that block chi has, in its order; columns: its terms. One harmonic of a pair's two at a time would make each again, so `value` has all of a point's. */
static void fill_block(const fmm_operators *o, int chi, double half_width, double *value, double *table) {
  const fmm_harmonics *h = &o->harmonics;
  const int n_terms = h->begin[chi + 1] - h->begin[chi];
  for (int i = 0; i < o->shape.n_orbits; i++) {
    const int slot = o->parity.slot[i * FMM_MIRRORS + chi];
    double at[3], r2 = 0;
    if (slot < 0) continue;
    for (int a = 0; a < 3; a++) at[a] = o->outer_radius / 2 * o->surface[3 * o->shape.orbit[i * FMM_MIRRORS] + a], r2 += at[a] * at[a];
    fmm_harmonics_at(h, at, value);
    for (int m = 0, k = 0; m <= h->degree; m++)
      for (int l = m; l <= h->degree; l++, k++)
        for (int sine = 0; sine <= (m > 0); sine++) {
          const int place = h->place[2 * k + sine] - h->begin[chi];
          if (place >= 0 && place < n_terms) table[(int64_t)(slot - o->parity.begin[chi]) * n_terms + place] = h->weight[k] * value[2 * k + sine] * pow(r2, -l - 0.5) / (2 * half_width);
        }
  }
}

static void unpack(const fmm_panels *panels, double *matrix) {
  for (int i = 0; i < panels->rows; i++)
    for (int j = 0; j < panels->columns; j++) matrix[(int64_t)i * panels->columns + j] = fmm_panel_entry(panels, i, j);
}

/* work: table and its transpose, a square block, a product, harmonics at a point. */
static fmm_status make_block(const fmm_operators *o, fmm_level_operators *set, int chi) {
  const fmm_harmonics *h = &o->harmonics;
  const int rows = o->parity.begin[chi + 1] - o->parity.begin[chi], terms = h->begin[chi + 1] - h->begin[chi];
  const int64_t size = (int64_t)rows * terms;
  double *table = NULL;
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&table, 3 * size + (int64_t)rows * rows + 2 * h->n_pairs, "operators of harmonics"));
  double *turned = table + size, *product = turned + size, *square = product + size;
  fill_block(o, chi, set->half_width, square + (int64_t)rows * rows, table);
  unpack(&set->up_first[chi], square);
  fmm_small_product(rows, terms, rows, square, table, product);
  for (int64_t i = 0; i < size; i++) product[i] *= FMM_MIRRORS; /* sums over orbits */
  FMM_CHECK(fmm_panels_pack(&set->up_moments[chi], rows, terms, product, terms, 1, NULL, NULL));
  for (int i = 0; i < rows; i++) {
    const double points = o->parity.weight[o->parity.begin[chi] + i] * o->parity.weight[o->parity.begin[chi] + i];
    for (int j = 0; j < terms; j++) turned[(int64_t)j * rows + i] = points * table[(int64_t)i * terms + j];
  }
  unpack(&set->down_second[chi], square);
  fmm_small_product(terms, rows, rows, turned, square, product);
  for (int i = 0; i < rows && chi == 0 && set->shell; i++) product[(int64_t)h->place[0] * rows + i] += set->shell[i];
  FMM_CHECK(fmm_panels_pack(&set->down_moments[chi], terms, rows, product, rows, 1, NULL, NULL));
done:
  FMM_FREE(&table);
  return status;
}

fmm_status fmm_level_harmonics_create(const fmm_operators *o, fmm_level_operators *set, int threads) {
  fmm_status status[FMM_MIRRORS] = {FMM_OK};
  if (!o->harmonics.n_terms) return FMM_OK;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int chi = 0; chi < FMM_MIRRORS; chi++) status[chi] = make_block(o, set, chi);
  for (int chi = 0; chi < FMM_MIRRORS; chi++) FMM_TRY(status[chi]);
  return FMM_OK;
}
