/* Work of the V list, M2L in Fourier space on the lattice of L = 2p-1 points an edge, children of a parent together (kernels/vlist/vlist_kernels.h):
 *   each source box with a product:  one forward transform a component and column, by cosines axis by axis
 *   each pair of parents:            27 complex multiply-adds a frequency and pair of components, 8 flops each, absent and adjacent children
 *                                    included (an 8x8 matrix, as the GPU's tensor units do it, has 64)
 *   each target box with a product:  one inverse transform
 *   each parent of either kind:      every value of its spectrum taken apart into the 27 sums of its children, or put together of them: an entry
 * On surfaces, where a parent has few neighbours, the last takes as long as the products (two Zen 5 cores: some 10 ns of a core a value): without it V of an ellipsoid was foretold a sixth too short where that of a cube was right.
 * `pairs` are the true M2L pairs (not adjacent, with sources and targets). All on the children's level.
 * Bytes: densities read, spectra written and read once on either side, check potentials written, operators once a level.
 * Reference: Ying, Biros, Zorin 2004, section 3.3; blocking by siblings: Malhotra & Biros, Commun. Comput. Phys. 18 (2015) 808. */
#include "runtime/counts.h"

#include <math.h>

/* Multiply-adds of one box's transform: slice by slice (p of them), 4 sums over the pairs of points around the centre of an axis for each frequency but 0,
 * p lines along y, then L along x (p of them when kz = 0); z: every surface point off the centre twice a slice. */
static double transform_multiply_adds(double p, double surface) {
  double grid = 2 * p - 1, pairs = floor(p / 2), line = 4 * pairs * (p - 1), centres = p - 2 * pairs; /* p odd: of the 4 (p-1) rows along an edge */
  return p * (p + grid) * line + p * (surface - 4 * (p - 1) * centres);
}

fmm_vlist_work fmm_vlist_work_of(const fmm_count_case *what) {
  double p = what->order, components = what->pair->equivalent_components, columns = what->n_columns, grid = 2 * p - 1;
  double frequencies = grid * grid * (p - 1) + grid * p; /* of a real lattice: half, and a little of kz = 0 */
  double offsets = what->pair->parity == FMM_PARITY_NONE ? 343 : 64; /* box offsets kept, kernels/operators.h */
  return (fmm_vlist_work){.frequencies = frequencies,
                          .transform_flops = 2 * transform_multiply_adds(p, fmm_surface_size(what->order)) * components * columns,
                          .block_flops = 8.0 * 27 * frequencies * components * components * columns,
                          .spectrum_values = frequencies * components * columns,
                          .spectrum_bytes = 16 * frequencies * components * columns,
                          .operator_bytes = 16 * offsets * grid * grid * p * components * components};
}

/* One group: its eight boxes' points and some slices of their spectra. */
static double group_bytes(const fmm_count_case *what, size_t real_bytes, int slices) {
  double grid = 2 * what->order - 1;
  return (double)real_bytes * what->n_columns * what->pair->equivalent_components * (8.0 * fmm_surface_size(what->order) + 16 * grid * grid * slices);
}

/* Threads wait for one another twice a step, of one slice or some, and share out (2p - 1)^2 frequencies a slice, 49 at order 4. Slices with 64 frequencies for each thread beyond two make a step, all steps as even as can be;
 * V on 16 threads gains 10 to 28 % at orders 4 and 5, 1 to 10 at order 7. Two threads gain little, and spectra are memory to clear and to keep. */
int fmm_vlist_slices(int order, int threads) {
  const int more = 64 * (threads - 2), frequencies = (2 * order - 1) * (2 * order - 1), wanted = more > 0 ? (more + frequencies - 1) / frequencies : 1;
  const int steps = (order + wanted - 1) / wanted;
  return (order + steps - 1) / steps;
}

/* A third of the groups of eight boxes, of targets and sources together, that fit into 112 MB with one slice, which the problem alone decides: of few threads slices stay in outer caches,
 * memory is bounded. A slab of a whole tree has as many sources as targets, one of many up to twice as many and more: those are transformed several times. */
int64_t fmm_vlist_slab_rows(const fmm_count_case *what, size_t real_bytes) {
  const double most_bytes = 112 << 20;
  return (int64_t)fmax(32, fmin(4096, floor(most_bytes / (3 * group_bytes(what, real_bytes, 1)))));
}

/* Before slabs are cut: with as many source parents as a slab has groups, whose lanes are taken as far as they are on an ellipsoid, where parents lack children. More only where the slab with the most sources is not that with the most
 * targets; scratch is left out. */
double fmm_vlist_workspace_bytes(const fmm_count_case *what, size_t real_bytes, double n_parents, double children_a_parent, int threads) {
  double rows = (double)fmm_vlist_slab_rows(what, real_bytes), sources = fmin(3 * rows, n_parents);
  double channels = (double)what->n_columns * what->pair->equivalent_components, components = what->pair->equivalent_components;
  double expanded = 2 * 32.0 * (double)real_bytes; /* one complex number for each of 27 sums of children, padded */
  const double lanes_taken = 0.85, groups = n_parents * fmin(1, children_a_parent / (8 * lanes_taken));
  const int slices = fmm_vlist_slices(what->order, threads);
  return fmin(3 * rows, 2 * groups) * (group_bytes(what, real_bytes, slices) + channels * 8 * sizeof(double)) + threads * expanded * (sources * channels + 27 * components * components);
}

typedef struct row_count { int64_t pairs; uint64_t used_targets /* bytes, not 0 of children that are in a pair */; } row_count;
typedef struct box_marks { uint8_t sources, targets /* octants of children that have some */, used /* octants of sources' children that are in a pair */; } box_marks;

static uint8_t any_byte(uint64_t v) {
  v |= v >> 32, v |= v >> 16;
  return (uint8_t)(v | v >> 8);
}

/* One row: counts true pairs, marks the sources' octants that are used. */
static row_count count_row(const fmm_rows *v, int32_t r, const uint64_t far[27], box_marks *marks) {
  row_count count = {0};
  const uint64_t targets = fmm_octant_bytes(marks[v->row[r]].targets);
  for (int64_t e = v->offset[r]; e < v->offset[r + 1]; e++) {
    box_marks *source = &marks[v->entry[e]];
    const uint64_t hit = fmm_far_pairs(far[v->direction[e]], targets, source->sources);
    count.pairs += fmm_count_bits(hit);
    count.used_targets |= hit;
    source->used |= any_byte(hit);
  }
  return count;
}

static int count_bytes(uint64_t v) {
  int n = 0;
  for (int t = 0; t < 8; t++) n += (v >> 8 * t & 0xff) != 0;
  return n;
}

/* Boxes of one parent, all as sources or all as targets. */
static void add_boxes(const fmm_vlist_work *w, double n_boxes, double box_bytes, fmm_work *work) {
  work->entries += w->spectrum_values;
  work->flops += n_boxes * w->transform_flops;
  work->other += n_boxes * w->transform_flops;
  work->bytes += n_boxes * (2 * w->spectrum_bytes + box_bytes);
}

fmm_status fmm_vlist_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  fmm_vlist_work w = fmm_vlist_work_of(what);
  double box_bytes = 8 * fmm_count_unknowns(what) * what->n_columns;
  uint64_t far[27];
  box_marks *marks;
  fmm_lists_far(far);
  FMM_TRY(FMM_ALLOCATE(&marks, tree->n_boxes, "marks of V boxes"));
  for (int32_t box = 0; box < tree->n_boxes; box++) {
    const uint8_t sources = (uint8_t)fmm_children_with_points(tree, box, tree->source_begin, tree->source_end);
    marks[box] = (box_marks){sources, tree->same_points ? sources : (uint8_t)fmm_children_with_points(tree, box, tree->target_begin, tree->target_end), 0};
  }
  for (int32_t r = 0; r < lists->v.n_rows; r++) {
    fmm_work *work = &level[tree->level[lists->v.row[r]] + 1];
    row_count count = count_row(&lists->v, r, far, marks);
    work->pairs += (double)count.pairs;
    work->flops += (double)(lists->v.offset[r + 1] - lists->v.offset[r]) * w.block_flops;
    add_boxes(&w, count_bytes(count.used_targets), box_bytes, work);
  }
  for (int l = 0; l + 1 < tree->n_levels; l++)
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++)
      if (marks[box].used) add_boxes(&w, fmm_count_bits(marks[box].used), box_bytes, &level[l + 1]);
  for (int l = 0; l < tree->n_levels; l++)
    if (level[l].entries > 0) level[l].bytes += w.operator_bytes;
  FMM_FREE(&marks);
  return FMM_OK;
}
