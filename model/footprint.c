/* See footprint.h: sizes of arrays by the shapes that their headers state. */
#include "model/footprint.h"

#include <math.h>

enum { BYTES_A_BOX = 8 + 1 + 4 + 4 + 1 + 1 + 4 * 8 + 3 * 8 + 4, BYTES_A_LEAF = 4, BYTES_A_ROW = 4 + 8, BLOCKS_A_THREAD = 11, LANES = 16 };

static double point_bytes(const fmm_counts *c, const fmm_pair_info *pair) {
  double source = 3 * 8 + 8 + (pair->takes_normals ? 3 * 8 : 0), target = 3 * 8 + 8;
  return source * (double)c->n_sources + (c->same_points ? 0 : target * (double)c->n_targets);
}

static double rows_bytes(const fmm_counts *c, fmm_phase phase, double most_rows, double entry_bytes) {
  double entries = c->total[phase].entries;
  return entries * entry_bytes + fmin(entries, most_rows) * BYTES_A_ROW;
}

static double list_bytes(const fmm_counts *c) {
  double leaves = (double)c->n_leaves, boxes = (double)c->n_boxes;
  return rows_bytes(c, FMM_PHASE_ULIST, leaves, 4) + rows_bytes(c, FMM_PHASE_VLIST, boxes - leaves, 5) + rows_bytes(c, FMM_PHASE_WLIST, leaves, 4) +
         rows_bytes(c, FMM_PHASE_XLIST, boxes, 4);
}

static int has_far_field(const fmm_counts *c) {
  return c->total[FMM_PHASE_VLIST].entries + c->total[FMM_PHASE_WLIST].entries + c->total[FMM_PHASE_XLIST].entries > 0;
}

/* On the GPU: spectra of the level with most boxes, sources all at once. */
static double spectra_bytes(const fmm_counts *c, const fmm_vlist_work *v) {
  double most = 0;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) most = fmax(most, c->level[FMM_PHASE_UP][l].entries);
  return most * v->spectrum_bytes;
}

void fmm_footprint_of(const fmm_counts *c, const fmm_pair_info *pair, int threads, const double gpu_fraction[FMM_N_PHASES], fmm_footprint *footprint) {
  fmm_footprint f = {0};
  fmm_count_case what = {.pair = pair, .order = c->order, .n_columns = c->n_columns, .gradient = c->gradient};
  fmm_box_work box = fmm_box_work_of(&what);
  fmm_vlist_work v = fmm_vlist_work_of(&what);
  f.points = point_bytes(c, pair);
  f.tree = (double)c->n_boxes * BYTES_A_BOX + (double)c->n_leaves * BYTES_A_LEAF;
  f.lists = list_bytes(c);
  f.planes = (double)c->n_sources * (fmm_source_bytes(&what) - 24) + (double)c->n_targets * (fmm_target_bytes(&what) - 24);
  if (has_far_field(c)) {
    int sets = pair->has_degree ? 1 : c->n_levels;
    f.expansions = 3 * (double)c->n_boxes * box.box_bytes;
    f.operators = sets * (2 * (box.leaf_operator_bytes / 2 + box.parent_operator_bytes) + v.operator_bytes);
    f.workspace = fmm_vlist_workspace_bytes(&what, sizeof(double), (double)(c->n_boxes - c->n_leaves), threads) + 2.0 * threads * BLOCKS_A_THREAD * LANES * 8 * fmm_count_unknowns(&what);
  }
  f.host = f.points + f.tree + f.lists + f.planes + f.expansions + f.operators + f.workspace;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (gpu_fraction[phase] > 0) f.device = f.points + f.tree + f.lists + f.planes + f.expansions + f.operators + spectra_bytes(c, &v);
  *footprint = f;
}
