/* Work of up and down in the form of the GPU: by surfaces, but for potentials of many leaves downward (how upward moments of many are priced, model/cost.c says): pairs and bytes as on the CPU without harmonics, and products
 *   by parity blocks (kernels/parity_cuda.cu), all padded to one length: two factors a leaf (one, where they come from its moments or go to its harmonics), and at a box with children one and translations that are as much as eight;
 *   or dense (kernels/product_cuda.cu):
 *     up:   two products a leaf, eight translations and one product a box with children
 *     down: a translation and a product a box, children of one octant together and their number rounded up to the 64 of a tile; one more a leaf. The first
 *           level has no translation. */
#include "kernels/harmonics_cost.h"
#include "kernels/level_cost.h"
#include "kernels/pair/pair_both.h"
#include "kernels/pair/pair_tiles.h"

/* Multiply-adds of one operator, twice. */
static double product_flops(const fmm_count_case *what) {
  double n = fmm_count_unknowns(what), block = fmm_gpu_parity_block(what->pair, what->order);
  return 2 * (block > 0 ? FMM_MIRRORS * block * block : n * n) * what->n_columns;
}

static void set_flops(const fmm_count_case *what, int gradient, double products, fmm_work *work) {
  work->other = products * product_flops(what);
  work->flops = work->pairs * fmm_pair_flops(what->pair, gradient, what->n_columns) + work->other;
}

/* Leaves of all, of which the tree stands for a part. */
static double all_leaves(const fmm_tree *tree, const fmm_count_case *what) {
  return (what->all_targets ? (double)what->all_targets / (double)tree->targets.n : 1) * (double)tree->n_leaves;
}

/* Products of a level's boxes of which a box with children takes nine. */
static double products_of(const fmm_tree *tree, const int64_t *begin, const int64_t *end, int level, int of_leaf) {
  double products = 0;
  for (int32_t box = tree->level_begin[level]; box < tree->level_begin[level + 1]; box++)
    if (end[box] > begin[box]) products += tree->first_child[box] < 0 ? of_leaf : 9;
  return products;
}

fmm_status fmm_up_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  const fmm_level_walk walk = fmm_up_walk(tree, what);
  const int of_leaf = fmm_moments_on_gpu(what->pair, what->order, what->n_columns, (int64_t)all_leaves(tree, what)) ? 1 : 2;
  fmm_level_cost_add(tree, what, &walk, level);
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++) set_flops(what, 0, products_of(tree, tree->source_begin, tree->source_end, l, of_leaf), &level[l]);
  return FMM_OK;
}

static double dense_down_products(const fmm_tree *tree, int level) {
  int64_t in_octant[8] = {0}, columns = 0, leaves = 0;
  for (int32_t box = tree->level_begin[level]; box < tree->level_begin[level + 1]; box++) {
    if (tree->target_end[box] == tree->target_begin[box]) continue;
    in_octant[tree->octant[box]]++;
    leaves += tree->first_child[box] < 0;
  }
  for (int o = 0; o < 8; o++) columns += (in_octant[o] + FMM_GPU_TILE_BOXES - 1) / FMM_GPU_TILE_BOXES * FMM_GPU_TILE_BOXES;
  return (double)((level > FMM_FIRST_FAR_LEVEL ? 2 : 1) * columns + leaves);
}

/* Potentials of many leaves go by solid harmonics (kernels/down/down_leaves_cuda.cu; gradients in single too, which is not counted): of a pair with a point of the surface so much. */
static double harmonics_share(const fmm_tree *tree, const fmm_count_case *what) {
  enum { OF_SURFACE = 6 /* instructions a pair of a point and a lattice's point */ };
  if (what->gradient || !fmm_has_harmonics(what->pair) || !fmm_pair_lattice_on_gpu(what->pair, what->order, what->n_columns, what->third_order)) return 1;
  if (!(all_leaves(tree, what) >= FMM_LEAVES_MANY)) return 1;
  return (double)fmm_harmonic_pairs(fmm_harmonic_degree(what->order)) * fmm_harmonic_instructions(0) / (OF_SURFACE * fmm_surface_size(what->order));
}

fmm_status fmm_down_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  const int blocks = fmm_gpu_parity_block(what->pair, what->order);
  const fmm_level_walk walk = fmm_down_walk(tree, what);
  const double share = harmonics_share(tree, what);
  const int of_leaf = share < 1 ? 1 : 2;
  fmm_level_cost_add(tree, what, &walk, level);
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++) {
    level[l].pairs *= share;
    set_flops(what, what->gradient, blocks ? products_of(tree, tree->target_begin, tree->target_end, l, of_leaf) : dense_down_products(tree, l), &level[l]);
  }
  return FMM_OK;
}
