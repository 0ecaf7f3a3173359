/* Surface points, their mirror orbits, and the regrouping of unknowns by parity. See surface.h. */
#include "kernels/surface.h"

#include <math.h>
#include <string.h>

static int on_boundary(int p, int ix, int iy, int iz) {
  return ix == 0 || iy == 0 || iz == 0 || ix == p - 1 || iy == p - 1 || iz == p - 1;
}

static void fill_points(fmm_surface *s, int32_t *index) {
  int p = s->order, n = 0;
  for (int i = 0; i < p * p * p; i++) {
    int at[3] = {i / (p * p), i / p % p, i % p};
    index[i] = -1;
    if (!on_boundary(p, at[0], at[1], at[2])) continue;
    for (int a = 0; a < 3; a++) {
      s->lattice[3 * n + a] = at[a];
      s->xyz[3 * n + a] = fmm_surface_plane(p, at[a]);
    }
    index[i] = n++;
  }
}

/* Of the numbering above: the two faces of x have p rows along z; a plane between them has one at either end of y, and between these the points
 * at either end of z, in turns, which are two rows along y. */
static void fill_rows(fmm_surface *s) {
  int p = s->order, at = 0, n = 0;
  for (int x = 0; x < p; x++)
    for (int y = 0; y < p; y++) {
      int face = x == 0 || x == p - 1 || y == 0 || y == p - 1, between = p - 2;
      if (face) {
        s->row[n++] = (fmm_surface_row){.fixed = {x, p + y}, .axis = 2, .along = 2 * p, .n = p, .first = at, .stride = 1};
        at += p;
      } else if (y == 1) {
        for (int end = 0; end < 2; end++)
          s->row[n++] = (fmm_surface_row){.fixed = {x, 2 * p + end * (p - 1)}, .axis = 1, .along = p + 1, .n = between, .first = at + end, .stride = 2};
        at += 2 * between;
      }
    }
  s->n_rows = n;
}

static void fill_orbits(fmm_surface *s, const int32_t *index) {
  int p = s->order, n = 0;
  for (int i = 0; i < s->n_points; i++) {
    const int32_t *at = s->lattice + 3 * i;
    if (2 * at[0] > p - 1 || 2 * at[1] > p - 1 || 2 * at[2] > p - 1) continue;
    for (int g = 0; g < FMM_MIRRORS; g++) {
      int x = g & 1 ? p - 1 - at[0] : at[0], y = g & 2 ? p - 1 - at[1] : at[1], z = g & 4 ? p - 1 - at[2] : at[2];
      s->orbit[FMM_MIRRORS * n + g] = index[(x * p + y) * p + z];
    }
    n++;
  }
}

fmm_status fmm_surface_create(fmm_surface *surface, int order) {
  if (order < FMM_MIN_ORDER || order > FMM_MAX_ORDER)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "order is %d; it must be %d .. %d", order, FMM_MIN_ORDER, FMM_MAX_ORDER);
  int half = (order + 1) / 2, inner = half - 1; /* octant's closed surface: half^3 - (half-1)^3 */
  fmm_surface s = {.order = order, .n_points = 6 * (order - 1) * (order - 1) + 2, .n_orbits = half * half * half - inner * inner * inner};
  int32_t *index = NULL;
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&s.xyz, 3 * s.n_points, "surface points"));
  FMM_CHECK(FMM_ALLOCATE(&s.lattice, 3 * s.n_points, "surface lattice"));
  FMM_CHECK(FMM_ALLOCATE(&s.row, 2 * order + 4 * (order - 2), "surface rows"));
  FMM_CHECK(FMM_ALLOCATE(&s.orbit, FMM_MIRRORS * s.n_orbits, "surface orbits"));
  FMM_CHECK(FMM_ALLOCATE(&index, order * order * order, "surface index"));
  fill_points(&s, index);
  fill_rows(&s);
  fill_orbits(&s, index);
  *surface = s;
  memset(&s, 0, sizeof s);
done:
  FMM_FREE(&index);
  fmm_surface_free(&s);
  return status;
}

void fmm_surface_free(fmm_surface *surface) {
  FMM_FREE(&surface->xyz);
  FMM_FREE(&surface->lattice);
  FMM_FREE(&surface->orbit);
  FMM_FREE(&surface->row);
  memset(surface, 0, sizeof *surface);
}

/* Axes (bits) on whose mirror plane the orbit's first point lies: an odd function is zero there. */
static int planes_of(const fmm_surface *s, int orbit) {
  const int32_t *o = s->orbit + FMM_MIRRORS * orbit;
  return (o[1] == o[0]) | (o[2] == o[0]) << 1 | (o[4] == o[0]) << 2;
}

static void fill_map(fmm_parity_map *map, const fmm_surface *s, fmm_parity parity) {
  int place = 0;
  for (int chi = 0; chi < FMM_MIRRORS; chi++) {
    map->begin[chi] = place;
    for (int k = 0; k < map->n_components; k++)
      for (int o = 0; o < s->n_orbits; o++) {
        int planes = planes_of(s, o), zero = planes & fmm_component_parity(parity, chi, k);
        map->slot[(k * s->n_orbits + o) * FMM_MIRRORS + chi] = zero ? -1 : place;
        if (!zero) map->weight[place++] = sqrt((double)(FMM_MIRRORS >> __builtin_popcount((unsigned)planes)));
      }
  }
  map->begin[FMM_MIRRORS] = place;
}

fmm_status fmm_parity_map_create(fmm_parity_map *map, const fmm_surface *surface, fmm_parity parity, int n_components) {
  fmm_parity_map m = {.n = n_components * surface->n_points, .n_components = n_components, .n_blocks = parity == FMM_PARITY_NONE ? 1 : FMM_MIRRORS};
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&m.weight, m.n, "orbit weights"));
  if (m.n_blocks == 1) {
    for (int i = 0; i < m.n; i++) m.weight[i] = 1;
    m.begin[1] = m.n;
  } else {
    FMM_CHECK(FMM_ALLOCATE(&m.slot, n_components * surface->n_orbits * FMM_MIRRORS, "parity slots"));
    fill_map(&m, surface, parity);
  }
  *map = m;
  memset(&m, 0, sizeof m);
done:
  fmm_parity_map_free(&m);
  return status;
}

void fmm_parity_map_free(fmm_parity_map *map) {
  FMM_FREE(&map->slot);
  FMM_FREE(&map->weight);
  memset(map, 0, sizeof *map);
}
