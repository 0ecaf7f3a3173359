/* Host tables of the V list on the GPU (kernels/vlist/vlist_cuda.cu): children of sources and targets, rows in the order of the products, and for each warp of the products the
 * directions in which its rows have neighbours, and where these are. */
#include <stdlib.h>

#include "runtime/gpu/gpu_cuda.h"
#include "runtime/gpu/team_loop_cuda.h"

namespace {
/* Those that have points, octant o at place_of[o]. */
void list_children(const fmm_tree *tree, int32_t box, int targets, const int place_of[8], int32_t child[8]) {
  const int64_t *begin = targets ? tree->target_begin : tree->source_begin, *end = targets ? tree->target_end : tree->source_end;
  for (int o = 0; o < 8; o++) child[o] = -1;
  for (int i = 0; i < tree->n_children[box]; i++) {
    const int32_t c = tree->first_child[box] + i;
    if (end[c] > begin[c]) child[place_of[tree->octant[c]]] = c;
  }
}

/* Where octants are: of a target's row and of a source's slot. A lane of the products has octants t and t + 4: in single they lie side by side; in double the halves change places in slots of colour 1, of which two
 * read by eight lanes would else lie in the same banks. */
constexpr int AS_THEY_ARE[8] = {0, 1, 2, 3, 4, 5, 6, 7}, TURNED[8] = {4, 5, 6, 7, 0, 1, 2, 3}, SIDE_BY_SIDE[8] = {0, 2, 4, 6, 1, 3, 5, 7};
int is_turned(const fmm_gpu_plan *p, const fmm_tree *tree, int32_t box) { return !p->v_single && fmm_vlist_colour(tree, box); }
const int *places_of(const fmm_gpu_plan *p, const fmm_tree *tree, int32_t box) { return p->v_single ? SIDE_BY_SIDE : is_turned(p, tree, box) ? TURNED : AS_THEY_ARE; }

/* From 1 for a source to the number of its slot, -1 for no source; how many slots there are. In single, where two slots are a line of the cache, those of colour 1 have odd numbers instead, and some are left empty. */
int64_t number_slots(const fmm_gpu_plan *p, const fmm_tree *tree, int32_t *slot) {
  int64_t next[2] = {0, 0};
  for (int32_t b = 0; b < tree->n_boxes; b++) {
    const int odd = p->v_single && slot[b] && fmm_vlist_colour(tree, b);
    slot[b] = slot[b] ? (int32_t)(p->v_single ? 2 * next[odd]++ + odd : next[0]++) : -1;
  }
  if (!p->v_single) return next[0];
  return next[0] > next[1] ? 2 * next[0] - 1 : 2 * next[1];
}

/* Rows of one operator set: all, or a level's; each starts a window of its own. */
void group_rows(fmm_gpu_plan *p, const fmm_tree *tree, const fmm_rows *v) {
  int64_t windows = 0;
  for (int64_t begin = 0; begin < p->v_rows; begin = p->v_group[p->n_v_groups++].end) {
    auto *group = &p->v_group[p->n_v_groups];
    group->begin = begin, group->end = fmm_vlist_operators_end(tree, v, begin, p->n_operator_levels == 1);
    group->level = tree->level[v->row[begin]] + 1; /* operators of the children's level */
    group->first_window = windows;
    windows += (group->end - begin + FMM_V_WINDOW - 1) / FMM_V_WINDOW;
  }
  p->v_positions = windows * FMM_V_WINDOW;
}

/* The neighbours of one warp's rows, of which there are n in their order: a line a direction in which there are any, then one of zeros. */
void list_neighbors(const fmm_gpu_plan *p, const fmm_tree *tree, const fmm_rows *v, const int32_t *slot, const int32_t *row, int n, fmm_cuda_v_line *line) {
  const uint32_t slot_bytes = 8 * (p->v_single ? sizeof(float2) : sizeof(double2)), empty = (uint32_t)p->v_slots * slot_bytes;
  fmm_cuda_v_line of[FMM_V_DIRECTIONS];
  unsigned groups[FMM_V_DIRECTIONS] = {0};
  for (fmm_cuda_v_line &l : of)
    for (uint32_t &place : l.place) place = empty;
  for (int i = 0; i < n; i++)
    for (int64_t k = v->offset[row[i]]; k < v->offset[row[i] + 1]; k++) {
      const int d = v->direction[k] < 13 ? v->direction[k] : v->direction[k] - 1;
      const int32_t box = v->entry[k];
      of[d].place[fmm_cuda_v_place(i)] = (uint32_t)slot[box] * slot_bytes | (is_turned(p, tree, box) ? 4u * (uint32_t)sizeof(double2) : 0u);
      groups[d] |= 1u << i / FMM_V_TOGETHER;
    }
  for (int d = 0; d < FMM_V_DIRECTIONS; d++)
    if (groups[d]) *line++ = fmm_cuda_v_line_of(&of[d], groups[d], d);
}

/* A window's rows in their order, and their neighbours. */
void make_window(const fmm_gpu_plan *p, const fmm_cuda_tables *t, const fmm_tree *tree, const fmm_rows *v, const int32_t *slot, int64_t window) {
  int group = 0;
  while (group + 1 < p->n_v_groups && p->v_group[group + 1].first_window <= window) group++;
  const int64_t begin = p->v_group[group].begin + (window - p->v_group[group].first_window) * FMM_V_WINDOW, position = window * FMM_V_WINDOW;
  const int64_t end = begin + FMM_V_WINDOW < p->v_group[group].end ? begin + FMM_V_WINDOW : p->v_group[group].end;
  uint64_t key[FMM_V_WINDOW];
  int32_t *const row = t->v_row + position;
  fmm_cuda_v_line *const line = t->v_line + position / FMM_V_A_WARP * FMM_V_LINES;
  memset(line, 0, FMM_V_WINDOW / FMM_V_A_WARP * FMM_V_LINES * sizeof *line); /* where there are no neighbours */
  fmm_vlist_order_window(tree, v, begin, end, key);
  for (int64_t n = 0; n < FMM_V_WINDOW; n++) row[n] = n < end - begin ? (int32_t)(begin + (int64_t)(key[n] & (FMM_V_WINDOW - 1))) : -1;
  for (int64_t n = 0; n < end - begin; n += FMM_V_A_WARP)
    list_neighbors(p, tree, v, slot, row + n, end - begin - n < FMM_V_A_WARP ? (int)(end - begin - n) : (int)FMM_V_A_WARP, line + n / FMM_V_A_WARP * FMM_V_LINES);
}
}

fmm_status fmm_cuda_v_build(fmm_gpu_plan *p, fmm_cuda_tables *t, const fmm_tree *tree, const fmm_rows *v) {
  int32_t *slot = NULL;
  int64_t windows;
  fmm_status status = FMM_OK;
  if (p->v_rows == 0) return FMM_OK;
  FMM_CHECK(FMM_ALLOCATE_ZERO(&slot, tree->n_boxes, "V slots"));
  for (int64_t i = 0; i < v->n_entries; i++) slot[v->entry[i]] = 1;
  p->v_slots = number_slots(p, tree, slot);
  if (p->v_slots >= FMM_V_MOST_SLOTS) {
    status = FMM_FAIL(FMM_ERR_DEVICE, "%lld boxes with children in V are too many for one GPU; choose schedule cpu or auto, or a larger leaf size", (long long)p->v_slots);
    goto done;
  }
  FMM_CHECK(DESK_TAKE(&p->desk, &t->slot_child, 8 * (p->v_slots + 1), "V source children"));
  FMM_CHECK(DESK_TAKE(&p->desk, &t->row_child, 8 * p->v_rows, "V target children"));
  for (int64_t i = 0; i < 8 * (p->v_slots + 1); i++) t->slot_child[i] = -1;
  for (int32_t b = 0; b < tree->n_boxes; b++)
    if (slot[b] >= 0) list_children(tree, b, 0, places_of(p, tree, b), t->slot_child + 8 * (int64_t)slot[b]);
  for (int64_t r = 0; r < p->v_rows; r++) list_children(tree, v->row[r], 1, AS_THEY_ARE, t->row_child + 8 * r);
  group_rows(p, tree, v);
  windows = p->v_positions / FMM_V_WINDOW;
  FMM_CHECK(DESK_TAKE(&p->desk, &t->v_row, p->v_positions, "V rows in order"));
  FMM_CHECK(DESK_TAKE(&p->desk, &t->v_line, fmm_cuda_v_lines(p), "V neighbours"));
  fmm_cuda_for_each(windows, 1, [=](int64_t w) { make_window(p, t, tree, v, slot, w); });
done:
  FMM_FREE(&slot);
  return status;
}
