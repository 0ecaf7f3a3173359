/* Shared by the tests of schedules: recorded machines, and analytic counts of a uniform tree. */
#ifndef FMM_TEST_MACHINES_H
#define FMM_TEST_MACHINES_H
#include <math.h>
#include "kernels/harmonics_cost.h"
#include "recorded_machine.h"
#include "sched/sched.h"

extern const fmm_pair_info fmm_info_laplace, fmm_info_stokes;

/* n points in a full octree of 8^depth leaves: pairs of points by eq. 2 of Choi et al. 2014, pairs of parents and products a box as in
 * kernels/PHASE/PHASE_cost.c. */
static inline fmm_counts full_tree(double n, int depth, int order) {
  fmm_count_case what = {.pair = &fmm_info_laplace, .order = order, .n_columns = 1};
  fmm_box_work box = fmm_box_work_of(&what);
  fmm_vlist_work v = fmm_vlist_work_of(&what);
  fmm_counts c = {.order = order, .n_columns = 1, .n_surface = fmm_surface_size(order), .n_levels = depth + 1, .n_sources = (int64_t)n,
                  .n_targets = (int64_t)n, .n_leaves = (int64_t)1 << 3 * depth};
  double leaves = (double)c.n_leaves, edge = 3 * (double)(1 << depth) - 2, pairs = edge * edge * edge * (n / leaves) * (n / leaves);
  c.level[FMM_PHASE_ULIST][depth] = (fmm_work){.pairs = pairs, .flops = 11 * pairs, .bytes = 64 * n, .entries = edge * edge * edge};
  c.level[FMM_WORK_ULIST_GPU][depth] = depth ? c.level[FMM_PHASE_ULIST][depth] : fmm_ulist_gpu_direct(what.pair, 0, 1, (int64_t)n, (int64_t)n);
  for (int l = 0; l <= depth; l++) {
    double boxes = exp2(3 * l), parents = 3 * exp2(l - 1) - 2, entries = parents * parents * parents - boxes / 8;
    c.n_boxes += (int64_t)boxes;
    if (l < 2) continue;
    c.level[FMM_PHASE_VLIST][l] = (fmm_work){.flops = entries * v.block_flops + 2 * boxes * v.transform_flops, .other = 2 * boxes * v.transform_flops, .entries = 2 * boxes / 8 * v.spectrum_values,
                                             .bytes = 4 * boxes * v.spectrum_bytes};
    fmm_vlist_gpu_work g = fmm_vlist_gpu_work_of(&what);
    double all = boxes / 8; /* parents: sources and targets; 26 directions of each eight */
    c.level[FMM_WORK_VLIST_GPU][l] = (fmm_work){.flops = 2 * all * g.parent_flops + 26 * ceil(all / 8) * g.product_flops, .other = 2 * all * g.parent_flops, .entries = 2 * all, .bytes = 2 * all * g.parent_bytes};
    double surface = l == depth ? n * c.n_surface : 0, harmonics = l == depth ? n * fmm_point_form_of(&what, 0, 1).with_a_point : 0;
    double products = boxes * (l == depth ? box.leaf_flops / 2 + 2 * fmm_harmonic_entries(&what) : box.parent_flops); /* a leaf has one with its surface, one with its harmonics */
    c.level[FMM_PHASE_UP][l] = (fmm_work){.pairs = harmonics, .flops = products + 10 * harmonics, .other = products, .bytes = boxes * box.box_bytes, .entries = boxes};
    c.level[FMM_PHASE_DOWN][l] = c.level[FMM_PHASE_UP][l];
    double dense = 2.0 * c.n_surface * c.n_surface; /* one product on the GPU */
    c.level[FMM_WORK_UP_GPU][l] = c.level[FMM_WORK_DOWN_GPU][l] = (fmm_work){.pairs = surface, .bytes = boxes * box.box_bytes, .entries = boxes};
    c.level[FMM_WORK_UP_GPU][l].flops = 11 * surface + boxes * (l == depth ? 2 : 9) * dense;
    c.level[FMM_WORK_DOWN_GPU][l].flops = 11 * surface + fmax(boxes, 512) * (l == 2 ? 1 : 2) * dense + (l == depth) * boxes * dense;
    const int up_and_down[] = {FMM_WORK_UP_GPU, FMM_WORK_DOWN_GPU};
    for (int i = 0; i < 2; i++) c.level[up_and_down[i]][l].other = c.level[up_and_down[i]][l].flops - 11 * surface;
  }
  fmm_counts_add_up(&c);
  return c;
}
#endif
