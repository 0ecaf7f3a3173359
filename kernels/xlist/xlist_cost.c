/* Work of the X list, P2L: every source of the row's coarser leaves with every point of the box's downward check surface, or with the harmonics inside the box, for which a row has a product.
 * On a GPU a row is a warp's, or four warps' (kernels/pair/pair_lattice_cuda.cu), and rows are few and unequal: the longest runs on when all others have ended.
 * Bytes: check potentials read and written once a row; an entry's sources once an entry.
 * Reference: Ying, Biros, Zorin 2004, section 3.2 (dual of W). */
#include "kernels/harmonics_cost.h"
#include "kernels/pair/pair_tiles.h"

/* The pairs that the longest row's warp makes; a row with more than so small a part of all is four warps'. */
enum { WARPS_OF_LONG_ROWS = 4, PARTS_OF_LONG_ROWS = 2 * FMM_LATTICE_MANY_ROWS };
typedef struct longest_row { double pairs, all; int level; } longest_row;

static void see_row(longest_row *l, double pairs, int level) {
  l->all += pairs;
  if (pairs > l->pairs) l->pairs = pairs, l->level = level;
}

static double of_a_warp(const longest_row *l) { return l->pairs * PARTS_OF_LONG_ROWS > l->all ? l->pairs / WARPS_OF_LONG_ROWS : l->pairs; }

static fmm_status add(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, int harmonics, longest_row *longest, fmm_work level[FMM_MAX_LEVELS]) {
  const fmm_point_form point = fmm_point_form_of(what, 0, harmonics);
  double box_bytes = 8 * fmm_count_unknowns(what) * what->n_columns, product = harmonics ? 2 * fmm_harmonic_entries(what) * what->n_columns : 0;
  for (int32_t r = 0; r < lists->x.n_rows; r++) {
    fmm_work *work = &level[tree->level[lists->x.row[r]]];
    double sources = 0;
    for (int64_t e = lists->x.offset[r]; e < lists->x.offset[r + 1]; e++) {
      int32_t s = lists->x.entry[e];
      sources += (double)(tree->source_end[s] - tree->source_begin[s]);
    }
    double pairs = sources * point.with_a_point;
    see_row(longest, pairs, tree->level[lists->x.row[r]]);
    work->pairs += pairs;
    work->flops += pairs * point.flops + product;
    work->other += product;
    work->entries += (double)(lists->x.offset[r + 1] - lists->x.offset[r]);
    work->bytes += sources * fmm_source_bytes(what) + 2 * box_bytes;
  }
  return FMM_OK;
}

fmm_status fmm_xlist_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  longest_row unused = {0};
  return add(tree, lists, what, fmm_has_harmonics(what->pair), &unused, level);
}

fmm_status fmm_xlist_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  longest_row longest = {0};
  FMM_TRY(add(tree, lists, what, 0, &longest, level));
  level[longest.level].longest = of_a_warp(&longest);
  return FMM_OK;
}
