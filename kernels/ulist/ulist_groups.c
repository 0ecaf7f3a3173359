/* Groups of rows by number of points, and the mates of their entries. */
#include "kernels/ulist/ulist_groups.h"

/* Enough groups for tens of threads; enough points that most neighbours are inside (a cube of m^3 leaves holds ((3m-2)/3m)^3 of its pairs). */
enum { MOST_GROUPS = 128, LEAST_POINTS = 2048 };

static void cut_groups(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u) {
  int64_t limit = tree->targets.n / MOST_GROUPS, points = 0;
  if (limit < LEAST_POINTS) limit = LEAST_POINTS;
  groups->n_groups = 0;
  for (int32_t row = 0; row < u->n_rows; row++) {
    if (row == 0 || points >= limit) groups->begin[groups->n_groups++] = row, points = 0;
    points += tree->target_end[u->row[row]] - tree->target_begin[u->row[row]];
  }
  groups->begin[groups->n_groups] = u->n_rows;
}

static int has_entry(const fmm_rows *u, int32_t row, int32_t box) {
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++)
    if (u->entry[e] == box) return 1;
  return 0;
}

static void find_mates(fmm_ulist_groups *groups, const fmm_rows *u, const int32_t *row_of_box, int32_t group) {
  int32_t begin = groups->begin[group], end = groups->begin[group + 1];
  for (int32_t row = begin; row < end; row++)
    for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
      int32_t other = row_of_box[u->entry[e]];
      if (other >= begin && other < end && other != row && has_entry(u, other, u->row[row])) groups->mate[e] = other;
    }
}

fmm_status fmm_ulist_groups_create(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u, int threads) {
  int32_t *row_of_box = NULL;
  fmm_status status = FMM_OK;
  *groups = (fmm_ulist_groups){.n_groups = 0};
  FMM_CHECK(FMM_ALLOCATE(&groups->begin, u->n_rows + 1, "U list groups"));
  FMM_CHECK(FMM_ALLOCATE(&groups->mate, u->n_entries, "U list mates"));
  FMM_CHECK(FMM_ALLOCATE(&row_of_box, tree->n_boxes, "rows of boxes"));
  cut_groups(groups, tree, u);
  for (int64_t e = 0; e < u->n_entries; e++) groups->mate[e] = -1;
  for (int32_t box = 0; box < tree->n_boxes; box++) row_of_box[box] = -1;
  for (int32_t row = 0; row < u->n_rows; row++) row_of_box[u->row[row]] = row;
  if (tree->same_points) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int32_t group = 0; group < groups->n_groups; group++) find_mates(groups, u, row_of_box, group);
  }
done:
  FMM_FREE(&row_of_box);
  if (status != FMM_OK) fmm_ulist_groups_free(groups);
  return status;
}

void fmm_ulist_groups_free(fmm_ulist_groups *groups) {
  FMM_FREE(&groups->begin);
  FMM_FREE(&groups->mate);
}

size_t fmm_ulist_groups_bytes(const fmm_rows *u) { return ((size_t)u->n_entries + (size_t)u->n_rows + 1) * sizeof(int32_t); }
