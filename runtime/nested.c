/* Clusters below the finest cell: each gets a plan of its own over its points, whose results are added to the outer ones. The outer U
 * list leaves the pairs inside a cluster out, so every pair is counted once. Nesting ends (tree.h) and is bounded all the same; a nested
 * plan's coordinates are the outer tree's scaled ones, so its results are in the outer plan's units (its scale is 1). */
#include <string.h>

#include "plan.h"

static fmm_status set_points(fmm_nested *c, const fmm_tree *tree, int32_t number) {
  double *sources = NULL, *targets = NULL, *normals = NULL;
  fmm_status status;
  int same = tree->same_points;
  FMM_CHECK(FMM_ALLOCATE(&sources, 3 * c->n_sources, "a cluster's sources"));
  if (tree->sources.normal[0]) FMM_CHECK(FMM_ALLOCATE(&normals, 3 * c->n_sources, "a cluster's normals"));
  if (!same) FMM_CHECK(FMM_ALLOCATE(&targets, 3 * c->n_targets, "a cluster's targets"));
  FMM_CHECK(FMM_ALLOCATE(&c->source, c->n_sources, "a cluster's source positions"));
  if (!same) FMM_CHECK(FMM_ALLOCATE(&c->target, c->n_targets, "a cluster's target positions"));
  fmm_cluster_gather(tree, number, sources, c->source, normals, targets, c->target);
  FMM_CHECK(fmm_plan_set_points(c->plan, c->n_sources, sources, normals, same ? 0 : c->n_targets, targets));
done:
  FMM_FREE(&sources);
  FMM_FREE(&targets);
  FMM_FREE(&normals);
  return status;
}

static fmm_status create_one(fmm_nested *c, fmm_setup *s, const fmm_plan *plan, int32_t number) {
  fmm_cluster_size(&s->tree, number, &c->n_sources, &c->n_targets);
  if (plan->nesting + 1 > FMM_MAX_NESTING)
    return FMM_FAIL(FMM_ERR_INPUT, "%lld points are clustered over more than %d x 21 octaves; spread or merge them", (long long)c->n_sources, FMM_MAX_NESTING);
  FMM_TRY(fmm_plan_create_nested(&c->plan, plan, s));
  FMM_TRY(set_points(c, &s->tree, number));
  int64_t values = s->n_result_planes / (plan->options.gradient ? 4 : 1);
  FMM_TRY(FMM_ALLOCATE_ZERO(&c->density, c->n_sources * s->n_density_planes, "a cluster's densities"));
  FMM_TRY(FMM_ALLOCATE_ZERO(&c->potential, c->n_targets * values, "a cluster's potentials"));
  return plan->options.gradient ? FMM_ALLOCATE_ZERO(&c->gradient, c->n_targets * values * 3, "a cluster's gradients") : FMM_OK;
}

fmm_status fmm_nested_create(fmm_setup *s, const fmm_plan *plan) {
  if (!s->tree.n_clusters) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE_ZERO(&s->nested, s->tree.n_clusters, "clusters"));
  s->n_nested = s->tree.n_clusters;
  for (int32_t k = 0; k < s->n_nested; k++) FMM_TRY(create_one(&s->nested[k], s, plan, k));
  return FMM_OK;
}

void fmm_nested_destroy(fmm_setup *s) {
  for (int32_t k = 0; k < s->n_nested; k++) {
    fmm_nested *c = &s->nested[k];
    fmm_plan_destroy(&c->plan);
    FMM_FREE(&c->source);
    FMM_FREE(&c->target);
    FMM_FREE(&c->density);
    FMM_FREE(&c->potential);
    FMM_FREE(&c->gradient);
  }
  FMM_FREE(&s->nested);
}

size_t fmm_nested_bytes(const fmm_setup *s) {
  size_t bytes = fmm_memory_bytes(s->nested);
  for (int32_t k = 0; k < s->n_nested; k++) {
    const fmm_nested *c = &s->nested[k];
    bytes += c->plan->setup->info.host_bytes + fmm_memory_bytes(c->source) + fmm_memory_bytes(c->target) + fmm_memory_bytes(c->density) +
             fmm_memory_bytes(c->potential) + fmm_memory_bytes(c->gradient);
  }
  return bytes;
}

double fmm_nested_predicted_s(const fmm_setup *s) {
  double seconds = 0;
  for (int32_t k = 0; k < s->n_nested; k++) seconds += s->nested[k].plan->setup->info.predicted_s;
  return seconds;
}

static void add_results(fmm_setup *s, const fmm_nested *c) {
  const int64_t *target = s->tree.same_points ? c->source : c->target;
  int columns = s->state.n_columns, outputs = s->state.pair->info->outputs, parts = s->state.gradient ? 4 : 1;
  int64_t n = s->tree.targets.n;
  for (int64_t i = 0; i < c->n_targets; i++)
    for (int o = 0; o < outputs; o++)
      for (int k = 0; k < columns; k++)
        for (int part = 0; part < parts; part++) {
          double value = part ? c->gradient[((i * outputs + o) * 3 + part - 1) * columns + k] : c->potential[(i * outputs + o) * columns + k];
          s->potential[((o * parts + part) * columns + k) * n + target[i]] += value;
        }
}

fmm_status fmm_nested_add(fmm_setup *s) {
  for (int32_t k = 0; k < s->n_nested; k++) {
    fmm_nested *c = &s->nested[k];
    for (int64_t i = 0; i < c->n_sources; i++)
      for (int p = 0; p < s->n_density_planes; p++) c->density[i * s->n_density_planes + p] = s->density[p * s->tree.sources.n + c->source[i]];
    FMM_TRY(fmm_plan_execute(c->plan, c->density, c->potential, c->gradient));
    add_results(s, c);
  }
  return FMM_OK;
}
