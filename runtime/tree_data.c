/* What can be done with a tree once built: release, size, the points of a cluster. */
#include "points.h"

/* Every array of the boxes, leaves and clusters, once. */
#define FMM_TREE_ARRAYS(X)                                                                                             \
  X(leaf) X(key) X(level) X(parent) X(first_child) X(n_children) X(octant) X(source_begin) X(source_end) X(target_begin) \
  X(target_end) X(center_x) X(center_y) X(center_z) X(cluster) X(cluster_first) X(cluster_leaf)

void fmm_tree_free(fmm_tree *tree) {
  fmm_points_free(&tree->sources);
  if (!tree->same_points) fmm_points_free(&tree->targets);
#define FMM_TREE_FREE(array) FMM_FREE(&tree->array);
  FMM_TREE_ARRAYS(FMM_TREE_FREE)
#undef FMM_TREE_FREE
  *tree = (fmm_tree){0};
}

static size_t points_bytes(const fmm_points *p) {
  size_t bytes = fmm_memory_bytes(p->x) + fmm_memory_bytes(p->y) + fmm_memory_bytes(p->z) + fmm_memory_bytes(p->input_row) + fmm_memory_bytes(p->first);
  for (int a = 0; a < 3; a++) bytes += fmm_memory_bytes(p->normal[a]);
  return bytes;
}

size_t fmm_tree_bytes(const fmm_tree *tree) {
  size_t bytes = points_bytes(&tree->sources) + (tree->same_points ? 0 : points_bytes(&tree->targets));
#define FMM_TREE_BYTES(array) bytes += fmm_memory_bytes(tree->array);
  FMM_TREE_ARRAYS(FMM_TREE_BYTES)
#undef FMM_TREE_BYTES
  return bytes;
}

void fmm_cluster_size(const fmm_tree *t, int32_t k, int64_t *n_sources, int64_t *n_targets) {
  *n_sources = *n_targets = 0;
  for (int32_t i = t->cluster_first[k]; i < t->cluster_first[k + 1]; i++) {
    int32_t box = t->cluster_leaf[i];
    *n_sources += t->source_end[box] - t->source_begin[box];
    *n_targets += t->target_end[box] - t->target_begin[box];
  }
}

/* Appends the rows of one range; returns the number of rows so far. */
static int64_t copy_rows(const fmm_points *p, int64_t begin, int64_t end, int64_t at, double *rows, int64_t *index, double *normals) {
  for (int64_t i = begin; i < end; i++, at++) {
    rows[3 * at] = p->x[i], rows[3 * at + 1] = p->y[i], rows[3 * at + 2] = p->z[i];
    index[at] = i;
    for (int a = 0; a < 3 && normals && p->normal[0]; a++) normals[3 * at + a] = p->normal[a][i];
  }
  return at;
}

void fmm_cluster_gather(const fmm_tree *t, int32_t k, double *sources, int64_t *source_index, double *normals, double *targets,
                        int64_t *target_index) {
  int64_t s = 0, e = 0;
  for (int32_t i = t->cluster_first[k]; i < t->cluster_first[k + 1]; i++) {
    int32_t box = t->cluster_leaf[i];
    s = copy_rows(&t->sources, t->source_begin[box], t->source_end[box], s, sources, source_index, normals);
    if (!t->same_points) e = copy_rows(&t->targets, t->target_begin[box], t->target_end[box], e, targets, target_index, NULL);
  }
}
