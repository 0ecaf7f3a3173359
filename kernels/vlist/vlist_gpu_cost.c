/* Work of the V list in the form of the GPU (kernels/vlist/vlist_cuda.cu), which is by parents and not by boxes:
 *   each parent that is a source, and each that is a target: the transforms of its eight children together, absent ones included: along each axis
 *                                    plain sums over p points, 15 p^4 multiply-adds a child
 *   each eight target parents and each direction in which one of them has a neighbour: their children's products, 16 x 8 x 16 real multiply-adds a
 *                                    frequency and pair of components, absent parents and children included
 * `entries` are blocks of a window of parents and a frequency, each of which gathers a table of operators; there are no `pairs` (the true ones are counted in
 * vlist_cost.c). Bytes: densities of eight boxes read, their spectra written and read once on either side. All on the children's level; of parents of
 * several levels in one window or product on that of the first. */
#include "kernels/vlist/vlist_windows.h"
#include "runtime/counts.h"
#include "runtime/team_loop.h"

fmm_vlist_gpu_work fmm_vlist_gpu_work_of(const fmm_count_case *what) {
  fmm_vlist_work w = fmm_vlist_work_of(what);
  double p = what->order, components = what->pair->equivalent_components, channels = components * what->n_columns;
  return (fmm_vlist_gpu_work){.parent_flops = 2 * 8 * 15 * p * p * p * p * channels,
                              .parent_bytes = 8 * (2 * w.spectrum_bytes + 8 * fmm_surface_size(what->order) * channels),
                              .product_flops = 2 * 16.0 * 8 * 16 * w.frequencies * components * channels};
}

/* Products of the rows [begin, end) of one window, by levels: added with what another thread may add at once. Whole numbers, so that their order does not matter. */
static void add_window(const fmm_tree *tree, const fmm_rows *v, const fmm_vlist_gpu_work *w, double blocks, int64_t begin, int64_t end, fmm_work level[FMM_MAX_LEVELS]) {
  uint64_t key[FMM_V_WINDOW];
  double flops[FMM_MAX_LEVELS] = {0};
  fmm_vlist_order_window(tree, v, begin, end, key);
  for (int64_t n = 0; n < end - begin; n += FMM_V_TOGETHER) {
    uint64_t any = 0;
    for (int64_t i = n; i < n + FMM_V_TOGETHER && i < end - begin; i++) any |= key[i] >> FMM_V_DIRECTION_BIT;
    int32_t first = v->row[begin + (int64_t)(key[n] & (FMM_V_WINDOW - 1))];
    flops[tree->level[first] + 1] += __builtin_popcountll(any) * w->product_flops;
  }
  fmm_join_begin();
  level[tree->level[v->row[begin]] + 1].entries += blocks;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) level[l].flops += flops[l];
  fmm_join_end();
}

/* Windows of rows [begin, end). */
typedef struct windows { const fmm_tree *tree; const fmm_rows *v; const fmm_vlist_gpu_work *w; double blocks; int64_t begin, end; fmm_work *level; } windows;

static void add_some_windows(void *context, int64_t first, int64_t last) {
  const windows *s = context;
  for (int64_t i = first; i < last; i++) {
    const int64_t begin = s->begin + i * FMM_V_WINDOW, end = begin + FMM_V_WINDOW;
    add_window(s->tree, s->v, s->w, s->blocks, begin, end < s->end ? end : s->end, s->level);
  }
}

/* Shared by the team, where there is one. */
static void add_windows(const windows *all) { fmm_team_loop((all->end - all->begin + FMM_V_WINDOW - 1) / FMM_V_WINDOW, 1, add_some_windows, (void *)all, fmm_team_size()); }

static void add_parent(const fmm_vlist_gpu_work *w, fmm_work *work) {
  work->flops += w->parent_flops, work->other += w->parent_flops;
  work->bytes += w->parent_bytes;
}

fmm_status fmm_vlist_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  const fmm_rows *v = &lists->v;
  const fmm_vlist_work common = fmm_vlist_work_of(what);
  const fmm_vlist_gpu_work w = fmm_vlist_gpu_work_of(what);
  const double blocks = common.frequencies * what->pair->equivalent_components * what->n_columns;
  unsigned char *is_source;
  FMM_TRY(FMM_ALLOCATE_ZERO(&is_source, tree->n_boxes, "marks of V parents"));
  for (int64_t begin = 0, end; begin < v->n_rows; begin = end) {
    end = fmm_vlist_operators_end(tree, v, begin, what->pair->has_degree);
    add_windows(&(windows){tree, v, &w, blocks, begin, end, level});
  }
  for (int32_t r = 0; r < v->n_rows; r++) add_parent(&w, &level[tree->level[v->row[r]] + 1]);
  for (int64_t i = 0; i < v->n_entries; i++) is_source[v->entry[i]] = 1;
  for (int32_t box = 0; box < tree->n_boxes; box++)
    if (is_source[box]) add_parent(&w, &level[tree->level[box] + 1]);
  FMM_FREE(&is_source);
  return FMM_OK;
}
