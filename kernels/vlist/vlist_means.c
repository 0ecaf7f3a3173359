/* See vlist_means.h. */
#include "kernels/vlist/vlist_means.h"

void fmm_vlist_mean_matrices_fill(const fmm_operators *operators, const fmm_level_operators *set, int out, int in, fmm_vlist_mean_matrices *m) {
  double full[343][2];
  fmm_m2l_gather(operators, set, 0, 0, 0, out, in, full);
  for (int direction = 0; direction < FMM_DIRECTIONS; direction++)
    for (int s = 0; s < 8; s++)
      for (int t = 0; t < 8; t++) {
        const int x = 2 * (direction % 3) + 1 + (s & 1) - (t & 1), y = 2 * (direction / 3 % 3) + 1 + (s >> 1 & 1) - (t >> 1 & 1), z = 2 * (direction / 9) + 1 + (s >> 2) - (t >> 2);
        m->of[direction][s][t] = full[(x * 7 + y) * 7 + z][0];
      }
}

void fmm_vlist_mean_sources(int n, const double *const box[FMM_VLIST_LANES], double factor, double mean[FMM_VLIST_LANES]) {
  for (int lane = 0; lane < FMM_VLIST_LANES; lane++) {
    double sum[4] = {0};
    int i = 0;
    for (; box[lane] && i + 4 <= n; i += 4)
      for (int k = 0; k < 4; k++) sum[k] += box[lane][i + k];
    for (; box[lane] && i < n; i++) sum[0] += box[lane][i];
    mean[lane] = factor * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

void fmm_vlist_mean_multiply(const fmm_vlist_mean_product *p, const fmm_vlist_mean_matrices *m, int64_t row, const double *source, double *target, int add) {
  const fmm_vlist_place *to = &p->slabs->target_place[row];
  double sum[8] = {0};
  const fmm_vlist_entry *entry = p->slabs->entry + fmm_vlist_row_begin(p->rows->offset, row);
  for (int64_t e = 0; e < p->rows->offset[row + 1] - p->rows->offset[row]; e++) {
    const fmm_vlist_place *from = &p->slabs->source_place[p->slab->source_begin + fmm_vlist_source_of(entry[e])];
    const double(*matrix)[8] = m->of[fmm_vlist_direction_of(entry[e])], *mean = source + from->group * p->pitch;
    for (int s = 0; s < 8; s++) {
      if (from->lane[s] == FMM_VLIST_NONE) continue;
      const double x = mean[from->lane[s]];
      for (int t = 0; t < 8; t++) sum[t] += matrix[s][t] * x;
    }
  }
  for (int t = 0; t < 8; t++)
    if (to->lane[t] != FMM_VLIST_NONE) {
      double *place = &target[to->group * p->pitch + to->lane[t]];
      *place = add ? *place + sum[t] : sum[t];
    }
}
