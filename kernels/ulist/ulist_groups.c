/* Groups of rows by number of points, the mates of their entries, and the halos' lay-out. */
#include "kernels/ulist/ulist_groups.h"

#include <stdlib.h>

#include "runtime/team_loop.h"

static int64_t points_of(const fmm_tree *tree, const fmm_rows *u, int32_t row) {
  return tree->target_end[u->row[row]] - tree->target_begin[u->row[row]];
}

/* First rows of the groups; returns how many there are. begin: n_rows + 1. */
static int32_t cut_groups(int32_t *begin, const fmm_tree *tree, const fmm_rows *u) {
  int64_t points = 0, before = 0;
  int32_t n = 0;
  for (int32_t row = 0; row < u->n_rows; row++) {
    if (row == 0 || points >= fmm_ulist_group_points(tree->targets.n, before)) begin[n++] = row, points = 0;
    points += points_of(tree, u, row), before += points_of(tree, u, row);
  }
  begin[n] = u->n_rows;
  return n;
}

/* Where targets are the sources, two leaves hold one another or neither the other (lists.h). Returns how many entries have none. */
static int64_t find_mates(fmm_ulist_groups *groups, const fmm_rows *u, const int32_t *row_of_box, int32_t row) {
  int64_t without = 0;
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
    const int32_t other = row_of_box[u->entry[e]];
    groups->mate[e] = other != row ? other : -1;
    without += other < 0;
  }
  return without;
}

typedef struct mating { fmm_ulist_groups *groups; const fmm_rows *u; const int32_t *row_of_box; int64_t without; } mating;

static void find_mates_of_piece(void *context, int64_t begin, int64_t end) {
  mating *m = context;
  int64_t without = 0;
  for (int64_t row = begin; row < end; row++) without += find_mates(m->groups, m->u, m->row_of_box, (int32_t)row);
  fmm_join_begin();
  m->without += without;
  fmm_join_end();
}

/* A walker's: the last group, or on the second walk n_groups + the last group, in which it met a row, and the row's place in that group's halo. Walkers take groups in turn, always the same ones, whatever
 * threads there are; they are few, as each has a meeting for each row. */
enum { MOST_WALKERS = 16 };
typedef struct meeting { int32_t group, place; } meeting;

/* Places of the leaves outside that a group reaches, in the order in which it does; in [g + 1] how many points and rows its halo has. */
static void place_halo(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u, int32_t g, meeting *met) {
  int64_t points = 0, rows = 0;
  for (int64_t e = u->offset[groups->begin[g]]; e < u->offset[groups->begin[g + 1]]; e++) {
    const int32_t mate = groups->mate[e];
    groups->place[e] = -1;
    if (mate < groups->begin[g + 1]) continue;
    if (met[mate].group != g) met[mate] = (meeting){g, (int32_t)points}, points += points_of(tree, u, mate), rows++;
    groups->place[e] = met[mate].place;
  }
  groups->halo_begin[g + 1] = points, groups->halo_row_begin[g + 1] = rows;
}

/* Walkers at work. */
typedef struct walk { fmm_ulist_groups *groups; const fmm_tree *tree; const fmm_rows *u; meeting *met; int walkers; } walk;

static void place_halos(void *context, int64_t begin, int64_t end) {
  const walk *k = context;
  for (int64_t w = begin; w < end; w++) {
    meeting *own = k->met + w * k->u->n_rows;
    for (int32_t row = 0; row < k->u->n_rows; row++) own[row].group = -1;
    for (int32_t g = (int32_t)w; g < k->groups->n_groups; g += k->walkers) place_halo(k->groups, k->tree, k->u, g, own);
  }
}

/* The rows of a group's halo in the order of their places. */
static void list_halo(fmm_ulist_groups *groups, const fmm_rows *u, int32_t g, meeting *met) {
  int32_t *row = groups->halo_row + groups->halo_row_begin[g];
  for (int64_t e = u->offset[groups->begin[g]]; e < u->offset[groups->begin[g + 1]]; e++) {
    const int32_t mate = groups->mate[e];
    if (mate >= groups->begin[g + 1] && met[mate].group != groups->n_groups + g) met[mate].group = groups->n_groups + g, *row++ = mate;
  }
}

static void list_halos(void *context, int64_t begin, int64_t end) {
  const walk *k = context;
  for (int64_t w = begin; w < end; w++)
    for (int32_t g = (int32_t)w; g < k->groups->n_groups; g += k->walkers) list_halo(k->groups, k->u, g, k->met + w * k->u->n_rows);
}

/* From numbers to their sums. */
static void add_up(int64_t *sums, int32_t n) {
  sums[0] = 0;
  for (int32_t i = 0; i < n; i++) sums[i + 1] += sums[i];
}

/* Each row's parts, one of each halo that it is in, by ascending group: from the last group and the back of each row on, part_offset[row + 1] being the first place that is taken. */
static void deal_parts(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u) {
  const int64_t parts = groups->halo_row_begin[groups->n_groups];
  for (int64_t k = 0; k < parts; k++) groups->part_offset[groups->halo_row[k] + 1]++;
  add_up(groups->part_offset, u->n_rows);
  for (int32_t g = groups->n_groups - 1; g >= 0; g--) {
    int64_t place = 0;
    for (int64_t k = groups->halo_row_begin[g]; k < groups->halo_row_begin[g + 1]; k++) {
      const int32_t row = groups->halo_row[k];
      groups->part[--groups->part_offset[row + 1]] = (fmm_ulist_part){g, (int32_t)place};
      place += points_of(tree, u, row);
    }
  }
  for (int32_t row = 0; row < u->n_rows; row++) groups->part_offset[row] = groups->part_offset[row + 1]; /* begins now: one down */
  groups->part_offset[u->n_rows] = parts;
}

static fmm_status make_halos(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u, int threads) {
  const int walkers = threads < MOST_WALKERS ? threads : MOST_WALKERS;
  meeting *met = NULL;
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&groups->halo_begin, groups->n_groups + 1, "U list halos"));
  FMM_CHECK(FMM_ALLOCATE(&groups->halo_row_begin, groups->n_groups + 1, "U list halos"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&groups->part_offset, (int64_t)u->n_rows + 1, "U list halos"));
  FMM_CHECK(FMM_ALLOCATE(&groups->place, u->n_entries, "U list halos"));
  FMM_CHECK(FMM_ALLOCATE(&met, (int64_t)walkers * u->n_rows, "U list halos"));
  walk all = {groups, tree, u, met, walkers};
  fmm_team_loop(walkers, 1, place_halos, &all, threads);
  add_up(groups->halo_begin, groups->n_groups);
  add_up(groups->halo_row_begin, groups->n_groups);
  const int64_t parts = groups->halo_row_begin[groups->n_groups];
  FMM_CHECK(FMM_ALLOCATE(&groups->part, parts, "U list halos"));
  FMM_CHECK(FMM_ALLOCATE(&groups->halo_row, parts, "U list halos"));
  fmm_team_loop(walkers, 1, list_halos, &all, threads);
  deal_parts(groups, tree, u);
done:
  FMM_FREE(&met);
  return status;
}

/* Pairs of points, by what they take: both directions at once some 1.6 times as long as one (docs/notes-cpu-trials.md). */
static double work_of(const fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u, int32_t g) {
  const double one = 1, both = 1.6;
  double work = 0;
  for (int32_t row = groups->begin[g]; row < groups->begin[g + 1]; row++) {
    double a_target = 0;
    for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
      int32_t box = u->entry[e], mate = groups->mate ? groups->mate[e] : -1;
      if (mate >= 0 && mate < row) continue; /* the other row's */
      a_target += (mate < 0 ? one : both) * (double)(tree->source_end[box] - tree->source_begin[box]);
    }
    work += a_target * (double)points_of(tree, u, row);
  }
  return work;
}

typedef struct weighed { double work; int32_t group; } weighed;

static int by_falling_work(const void *a, const void *b) {
  const weighed *x = a, *y = b;
  return x->work != y->work ? (x->work < y->work ? 1 : -1) : (x->group > y->group) - (x->group < y->group);
}

typedef struct weighing { const fmm_ulist_groups *groups; const fmm_tree *tree; const fmm_rows *u; weighed *all; } weighing;

static void weigh_piece(void *context, int64_t begin, int64_t end) {
  const weighing *w = context;
  for (int64_t g = begin; g < end; g++) w->all[g] = (weighed){work_of(w->groups, w->tree, w->u, (int32_t)g), (int32_t)g};
}

static fmm_status order_groups(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u, int threads) {
  weighed *all;
  FMM_TRY(FMM_ALLOCATE(&groups->order, groups->n_groups, "U list groups"));
  FMM_TRY(FMM_ALLOCATE(&all, groups->n_groups, "U list groups"));
  fmm_team_loop_uneven(groups->n_groups, 1, weigh_piece, &(weighing){groups, tree, u, all}, threads);
  qsort(all, (size_t)groups->n_groups, sizeof *all, by_falling_work);
  for (int32_t k = 0; k < groups->n_groups; k++) groups->order[k] = all[k].group;
  FMM_FREE(&all);
  return FMM_OK;
}

fmm_status fmm_ulist_groups_create(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u, int with_mates, int threads) {
  int32_t *row_of_box = NULL;
  fmm_status status = FMM_OK;
  *groups = (fmm_ulist_groups){.n_groups = 0};
  FMM_CHECK(FMM_ALLOCATE(&groups->begin, u->n_rows + 1, "U list groups"));
  groups->n_groups = cut_groups(groups->begin, tree, u);
  if (!with_mates) {
    FMM_CHECK(order_groups(groups, tree, u, threads));
    goto done;
  }
  FMM_CHECK(FMM_ALLOCATE(&groups->mate, u->n_entries, "U list mates"));
  FMM_CHECK(FMM_ALLOCATE(&row_of_box, tree->n_boxes, "rows of boxes"));
  for (int32_t box = 0; box < tree->n_boxes; box++) row_of_box[box] = -1;
  for (int32_t row = 0; row < u->n_rows; row++) row_of_box[u->row[row]] = row;
  mating m = {groups, u, row_of_box, 0};
  fmm_team_loop_uneven(u->n_rows, FMM_PARALLEL_MINIMUM / 16, find_mates_of_piece, &m, threads);
  groups->all_have_mates = !m.without;
  FMM_CHECK(make_halos(groups, tree, u, threads));
  FMM_CHECK(order_groups(groups, tree, u, threads));
done:
  FMM_FREE(&row_of_box);
  if (status != FMM_OK) fmm_ulist_groups_free(groups);
  return status;
}

void fmm_ulist_groups_free(fmm_ulist_groups *groups) {
  FMM_FREE(&groups->begin);
  FMM_FREE(&groups->order);
  FMM_FREE(&groups->mate);
  FMM_FREE(&groups->place);
  FMM_FREE(&groups->halo_begin);
  FMM_FREE(&groups->halo_row);
  FMM_FREE(&groups->halo_row_begin);
  FMM_FREE(&groups->part_offset);
  FMM_FREE(&groups->part);
}

size_t fmm_ulist_groups_bytes(const fmm_ulist_groups *groups) {
  return fmm_memory_bytes(groups->begin) + fmm_memory_bytes(groups->order) + fmm_memory_bytes(groups->mate) + fmm_memory_bytes(groups->place) + fmm_memory_bytes(groups->halo_begin) +
         fmm_memory_bytes(groups->halo_row) + fmm_memory_bytes(groups->halo_row_begin) + fmm_memory_bytes(groups->part_offset) + fmm_memory_bytes(groups->part);
}
