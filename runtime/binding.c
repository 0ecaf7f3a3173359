/* Binding of a team's threads (binding.h). The topology is read once a process; a plan keeps its threads' places and, while it is bound, their
 * masks of before. */
#include "binding.h"

#include <hwloc.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "memory.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static hwloc_topology_t topology; /* NULL when threads cannot be bound here */
static atomic_flag busy = ATOMIC_FLAG_INIT;

struct fmm_binding {
  int threads, bound;
  const char *refusal;
  hwloc_bitmap_t mask;           /* the calling thread's, for which places were chosen; empty: none were */
  hwloc_bitmap_t *place, *saved; /* a thread each */
};

static void load_topology(void) {
  hwloc_topology_t t;
  unsigned long flags = 0;
#if HWLOC_API_VERSION >= 0x00020500
  flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
  if (hwloc_topology_init(&t)) return;
  hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_set_flags(t, flags) || hwloc_topology_load(t)) {
    hwloc_topology_destroy(t);
    return;
  }
  const struct hwloc_topology_cpubind_support *can = hwloc_topology_get_support(t)->cpubind;
  if (hwloc_topology_is_thissystem(t) && can->get_thisthread_cpubind && can->set_thisthread_cpubind) topology = t;
  else hwloc_topology_destroy(t);
}

static fmm_status allocate_masks(fmm_binding *b) {
  FMM_TRY(FMM_ALLOCATE_ZERO(&b->place, b->threads, "places of threads"));
  FMM_TRY(FMM_ALLOCATE_ZERO(&b->saved, b->threads, "masks of threads"));
  int complete = (b->mask = hwloc_bitmap_alloc()) != NULL;
  for (int t = 0; t < b->threads; t++) complete &= (b->place[t] = hwloc_bitmap_alloc()) != NULL && (b->saved[t] = hwloc_bitmap_alloc()) != NULL;
  return complete ? FMM_OK : FMM_FAIL(FMM_ERR_MEMORY, "no memory for the masks of %d threads", b->threads);
}

fmm_status fmm_binding_create(fmm_binding **binding, int threads) {
  fmm_binding *b = NULL;
  pthread_once(&once, load_topology);
  FMM_TRY(FMM_ALLOCATE_ZERO(&b, 1, "the binding of threads"));
  b->threads = threads;
  b->refusal = "nothing has run yet";
  fmm_status status = allocate_masks(b);
  if (status != FMM_OK) fmm_binding_destroy(&b);
  else *binding = b;
  return status;
}

void fmm_binding_destroy(fmm_binding **binding) {
  fmm_binding *b = *binding;
  if (!b) return;
  for (int t = 0; t < b->threads; t++) {
    if (b->place) hwloc_bitmap_free(b->place[t]);
    if (b->saved) hwloc_bitmap_free(b->saved[t]);
  }
  hwloc_bitmap_free(b->mask);
  FMM_FREE(&b->place);
  FMM_FREE(&b->saved);
  FMM_FREE(binding);
}

/* Parts of the mask by objects of one type in the topology's order, in which neighbours share caches and memory; returns how many there are. */
static int split_mask(fmm_binding *b, hwloc_const_bitmap_t mask, hwloc_obj_type_t type, int fill) {
  int n = 0;
  for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o));) {
    if (!hwloc_bitmap_intersects(o->cpuset, mask)) continue;
    if (fill) hwloc_bitmap_and(b->place[n], o->cpuset, mask);
    n++;
  }
  return n;
}

/* Places for the calling thread's mask as it is now, left in saved[0]; nonzero when there is one a thread. */
static int choose_places(fmm_binding *b) {
  hwloc_const_bitmap_t mask = b->saved[0];
  if (hwloc_bitmap_isequal(mask, b->mask)) return 1;
  hwloc_obj_type_t type = split_mask(b, mask, HWLOC_OBJ_CORE, 0) == b->threads ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  if (split_mask(b, mask, type, 0) != b->threads) return 0;
  split_mask(b, mask, type, 1);
  hwloc_bitmap_copy(b->mask, mask);
  return 1;
}

static const char *openmp_wish(void) {
  static const char *const names[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
  for (int i = 0; i < 4; i++)
    if (getenv(names[i])) return names[i];
  return NULL;
}

/* What can be told before the team is asked. */
static const char *refusal_of(fmm_binding *b) {
  if (b->threads < 2) return "there is one thread";
  if (!topology) return "hwloc cannot bind threads here";
  if (omp_in_parallel()) return "the call comes from a parallel region";
  if (openmp_wish() || omp_get_proc_bind() != omp_proc_bind_false) return "the OpenMP environment places threads";
  if (hwloc_get_cpubind(topology, b->saved[0], HWLOC_CPUBIND_THREAD)) return "the calling thread's mask cannot be read";
  if (!choose_places(b)) return "there are not as many threads as cores";
  return NULL;
}

static int bind_to(hwloc_const_bitmap_t set) { return hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_THREAD) == 0; }

/* Every thread keeps its mask and, when all have the same, goes to its place. The team's threads exist before any of them moves, so none
 * inherits a place. Returns the refusal, or NULL; *moved: some thread may have been bound. */
static const char *bind_team(fmm_binding *b, int bind_caller, int *moved) {
  atomic_int team = 0, strangers = 0, failures = 0;
#pragma omp parallel num_threads(b->threads)
  {
    int t = omp_get_thread_num();
    atomic_fetch_add(&team, 1);
    if (hwloc_get_cpubind(topology, b->saved[t], HWLOC_CPUBIND_THREAD) || !hwloc_bitmap_isequal(b->saved[t], b->mask)) atomic_fetch_add(&strangers, 1);
#pragma omp barrier
    if (atomic_load(&team) == b->threads && !atomic_load(&strangers) && (t || bind_caller) && !bind_to(b->place[t])) atomic_fetch_add(&failures, 1);
  }
  *moved = team == b->threads && !strangers;
  if (team != b->threads) return "OpenMP gave fewer threads";
  if (strangers) return "the threads' masks differ: the caller has placed them";
  return failures ? "the system refused" : NULL;
}

static void restore_team(fmm_binding *b) {
#pragma omp parallel num_threads(b->threads)
  bind_to(b->saved[omp_get_thread_num()]);
}

void fmm_binding_begin(fmm_binding *b, int bind_caller) {
  int moved = 0;
  if (!b) return;
  if (atomic_flag_test_and_set(&busy)) {
    b->refusal = "another plan of this process has its threads bound";
    return;
  }
  b->refusal = refusal_of(b);
  if (!b->refusal) b->refusal = bind_team(b, bind_caller, &moved);
  if (b->refusal && moved) restore_team(b);
  b->bound = !b->refusal;
  if (b->refusal) atomic_flag_clear(&busy);
}

void fmm_binding_end(fmm_binding *b) {
  if (!b || !b->bound) return;
  restore_team(b);
  b->bound = 0;
  atomic_flag_clear(&busy);
}

const char *fmm_binding_refusal(const fmm_binding *b) { return b->refusal; }
