/* The adaptive octree over sources and targets, as flat arrays (structure of arrays) that CPU and GPU read alike.
 *
 * Points are scaled by a power of two and shifted exactly (points.h), so that the root cube's side is between 1 and 4; keys are
 * Morton, 21 bits a dimension; boxes are ordered by level, then by key, so a level is contiguous and so are the children of a box, and
 * every box, leaf or not, owns one contiguous range of the sorted sources and one of the sorted targets. A box with more than q sources
 * or more than q targets is split, down to level 21. Boxes with neither sources nor targets do not exist (the root always does).
 * In finest cells that are still overfull exactly coincident points are merged (densities summed, results copied; with normals, only
 * where these are equal too). Groups of cells that stay overfull, and whose direct sums would be costly, become clusters
 * (cluster.h): leaves whose pairs with each other the U list leaves out and a nested plan over the cluster's own points adds. So more than q
 * points are only in leaves of level 21 and in those of clusters.
 * Reference: Ying, Biros, Zorin, J. Comput. Phys. 196 (2004) 591; Lashuk et al. 2009. */
#ifndef FMM_TREE_H
#define FMM_TREE_H
#include "memory.h"
#include "filling.h"

/* One sorted set of unique points. Planes, not triples: x[i], y[i], z[i]. */
typedef struct fmm_points {
  int64_t n;               /* unique points, sorted by key, or by as much of it as tells leaves, then by row */
  int64_t n_input;         /* rows of the caller's array */
  double *x, *y, *z;       /* n each, scaled coordinates (see fmm_tree.scale) */
  double *normal[3];       /* n each, or NULL */
  uint32_t *input_row;     /* n_input: input rows in sorted order; unique point i has rows input_row[first[i] .. first[i+1]) */
  int64_t *first;          /* n + 1; NULL when nothing was merged (then n == n_input and first[i] would be i) */
} fmm_points;

typedef struct fmm_tree {
  double scale, shift[3];  /* scaled coordinate = scale * (input coordinate - shift[axis]), without rounding; scale is a power of two */
  double root_lo[3], root_side; /* root cube, in scaled coordinates */
  int leaf_size;           /* q asked for */
  double root_scale;       /* root side over bounding cube's side */
  int coincident;          /* all points at one place: one leaf, and no pair contributes */
  int same_points;         /* targets are the sources: then targets shares the arrays of sources */
  fmm_points sources, targets;
  fmm_filling filling;     /* of the sources, where their coordinates are not there to tell (estimate.h) */

  int n_levels;            /* deepest level + 1 */
  int32_t n_boxes;
  int32_t level_begin[FMM_MAX_LEVELS + 1]; /* boxes of level l: level_begin[l] .. level_begin[l+1]) */
  int32_t n_leaves;
  int32_t *leaf;           /* n_leaves: box of each leaf in Morton order of the points (depth first) */

  /* per box */
  uint64_t *key;           /* Morton key of the box at its own level (3*level bits) */
  uint8_t *level;
  int32_t *parent;         /* -1 for the root */
  int32_t *first_child;    /* -1 for a leaf; children are first_child .. first_child + n_children) by ascending octant */
  uint8_t *n_children;
  uint8_t *octant;         /* position in the parent, bit 0 x, bit 1 y, bit 2 z */
  int64_t *source_begin, *source_end; /* into sources */
  int64_t *target_begin, *target_end; /* into targets */
  double *center_x, *center_y, *center_z; /* scaled coordinates */
  int32_t *cluster;        /* -1, or the number of the cluster this leaf is in */

  /* clusters: leaves of cluster k are cluster_leaf[cluster_first[k] .. cluster_first[k+1]), mutually adjacent, one level */
  int32_t n_clusters;
  int32_t *cluster_first;  /* n_clusters + 1 */
  int32_t *cluster_leaf;   /* boxes, ascending in a cluster */
} fmm_tree;

enum { FMM_PARALLEL_MINIMUM = 1024 }; /* loops over fewer boxes or points are not worth waking a team */

/* The smallest box around finite points: they are checked where it is made (points.h). */
typedef struct fmm_bounds { double lo[3], hi[3], least; } fmm_bounds; /* least: the least coordinate's magnitude but zero; infinite: none */

typedef struct fmm_tree_options { int leaf_size; double root_scale; } fmm_tree_options;

/* Half the side of a box of this level, scaled coordinates. */
static inline double fmm_half_width(const fmm_tree *tree, int level) { return tree->root_side / (double)((int64_t)2 << level); }
/* Octants (bit mask) of a box's children that have points in [begin, end): tree->source_begin, source_end or those of targets. */
static inline unsigned fmm_children_with_points(const fmm_tree *tree, int32_t box, const int64_t *begin, const int64_t *end) {
  unsigned octants = 0;
  for (int32_t c = tree->first_child[box]; c < tree->first_child[box] + tree->n_children[box]; c++)
    if (end[c] > begin[c]) octants |= 1u << tree->octant[c];
  return octants;
}

/* Builds the tree. sources n_sources x 3 row-major; targets NULL: same as sources. Parallel and independent of the number of
 * threads. FMM_ERR_INPUT names the first row with a coordinate that is not finite. Release with fmm_tree_free. */
fmm_status fmm_tree_build(fmm_tree *tree, int64_t n_sources, const double *sources, const double *normals, int64_t n_targets,
                          const double *targets, const fmm_tree_options *options, int threads);
/* The same of points whose bounds are known (fmm_bounds_of). sorted: NULL, or the rows as they may have been sorted before (points.h), which are taken, or freed where the root scale is another; the caller frees what is left after a failure. */
struct fmm_sorted_rows;
fmm_status fmm_tree_build_within(fmm_tree *tree, const fmm_bounds *bounds, int64_t n_sources, const double *sources, const double *normals, int64_t n_targets,
                                 const double *targets, struct fmm_sorted_rows *sorted, const fmm_tree_options *options, int threads);
void fmm_tree_free(fmm_tree *tree);
/* From the sources' coordinates; without them tree->filling. */
fmm_filling fmm_filling_of_sources(const fmm_tree *tree);
/* The same of a tree without, from the rows that it was built of, none of which were merged. */
fmm_filling fmm_filling_of_rows(const fmm_tree *tree, const double *sources, int threads);
/* Coordinates that were left out of a tree (fmm_sorted_rows.later), from the rows that it was built of; none are left out of a tree of one leaf. */
fmm_status fmm_tree_fill(fmm_tree *tree, const double *sources, const double *targets, int threads);
size_t fmm_tree_bytes(const fmm_tree *tree);

/* The points of cluster k, for a nested plan: how many, and (gather) their scaled coordinates as rows for fmm_tree_build, with the index
 * of each in this tree's sorted sources or targets. normals: n_sources x 3, ignored when the tree has none. With same_points the target
 * arrays are not written (may be NULL): targets are the sources. Nested results are added at target_index. Nesting ends: a nested root is at
 * most a quarter of this one, and points that cannot be told apart are merged or make a `coincident` tree. */
void fmm_cluster_size(const fmm_tree *tree, int32_t k, int64_t *n_sources, int64_t *n_targets);
void fmm_cluster_gather(const fmm_tree *tree, int32_t k, double *sources, int64_t *source_index, double *normals, double *targets,
                        int64_t *target_index);

/* n_planes planes of n values each, one after the other. */
typedef struct fmm_planes { double *values; int64_t n_planes, n; } fmm_planes;

/* Input row order -> sorted order, and zeros into what is cleared on the way (n_cleared may be 0), by one parallel region. planes: n_components*n_columns
 * planes of sources.n (plane k = component*n_columns + column). Returns the largest magnitude of a density: infinite or not a number where one is; the planes
 * are filled either way. */
double fmm_gather_densities(const fmm_points *points, int n_planes, const double *input, double *planes, int n_cleared, const fmm_planes *cleared, int threads);

/* Rows of the caller's: output[row][k] = factor * planes[k][sorted point of the row], n_planes pointers of targets.n each. */
typedef struct fmm_delivery { int n_planes; const double *const *planes; double factor; double *output; } fmm_delivery;
/* Sorted order -> input row order, by one parallel region, if all that is to be delivered is finite: returns -1; else nothing is written, and the
 * first sorted target with a value that is not is returned. */
int64_t fmm_scatter_results(const fmm_points *points, int n, const fmm_delivery *deliveries, int threads);
#endif
