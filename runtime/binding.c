/* Binding of a team's threads (binding.h). The topology is read once a process; a plan keeps its threads' places and, while it is bound, their
 * masks of before. Masks are in the system's form, all of one length, made when the binding is created: nothing allocates later, as hwloc's own
 * calls would. */
#include "binding.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static hwloc_topology_t topology; /* NULL when threads cannot be bound here */
static atomic_flag busy = ATOMIC_FLAG_INIT;

struct fmm_binding {
  int threads, bound;
  const char *refusal;
  size_t bytes;         /* of a mask */
  char *mask;           /* the calling thread's, for which places were chosen; empty: none were. The start of all masks' memory */
  char *place, *saved;  /* a thread each */
  char *core, *pu;      /* the topology's cores and hardware threads, in its order, in which neighbours share caches and memory */
  int n_cores, n_pus;
};

static cpu_set_t *nth(const fmm_binding *b, char *masks, int n) { return (cpu_set_t *)(void *)(masks + (size_t)n * b->bytes); }

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

/* Bytes of a mask that the kernel accepts, at least those of a cpu_set_t. */
static fmm_status find_mask_bytes(size_t *bytes) {
  enum { MOST_CPUS = 1 << 20 };
  for (int cpus = CPU_SETSIZE; cpus <= MOST_CPUS; cpus *= 2) {
    cpu_set_t *mask = NULL;
    *bytes = CPU_ALLOC_SIZE(cpus);
    FMM_TRY(fmm_allocate_bytes((void **)&mask, 1, *bytes, "a mask of cores"));
    int refused = sched_getaffinity(0, *bytes, mask);
    fmm_free_bytes(mask);
    if (!refused || errno != EINVAL) break;
  }
  return FMM_OK;
}

static void copy_objects(const fmm_binding *b, hwloc_obj_type_t type, int n, char *masks) {
  for (int i = 0; i < n; i++) hwloc_cpuset_to_glibc_sched_affinity(topology, hwloc_get_obj_by_type(topology, type, (unsigned)i)->cpuset, nth(b, masks, i), b->bytes);
}

static int count_objects(hwloc_obj_type_t type) {
  int n = topology ? hwloc_get_nbobjs_by_type(topology, type) : 0;
  return n > 0 ? n : 0;
}

static fmm_status allocate_masks(fmm_binding *b) {
  FMM_TRY(find_mask_bytes(&b->bytes));
  b->n_cores = count_objects(HWLOC_OBJ_CORE);
  b->n_pus = count_objects(HWLOC_OBJ_PU);
  FMM_TRY(fmm_allocate_zero_bytes((void **)&b->mask, (size_t)(1 + 2 * b->threads + b->n_cores + b->n_pus), b->bytes, "masks of threads"));
  b->place = (char *)nth(b, b->mask, 1);
  b->saved = (char *)nth(b, b->place, b->threads);
  b->core = (char *)nth(b, b->saved, b->threads);
  b->pu = (char *)nth(b, b->core, b->n_cores);
  copy_objects(b, HWLOC_OBJ_CORE, b->n_cores, b->core);
  copy_objects(b, HWLOC_OBJ_PU, b->n_pus, b->pu);
  return FMM_OK;
}

fmm_status fmm_binding_create(fmm_binding **binding, int threads) {
  fmm_binding *b = NULL;
  pthread_once(&once, load_topology);
  FMM_TRY(FMM_ALLOCATE_ZERO(&b, 1, "the binding of threads"));
  b->threads = threads;
  b->refusal = "the points are too few to gain by it"; /* fmm_plan_bind then never begins */
  fmm_status status = allocate_masks(b);
  if (status != FMM_OK) fmm_binding_destroy(&b);
  else *binding = b;
  return status;
}

void fmm_binding_destroy(fmm_binding **binding) {
  if (!*binding) return;
  FMM_FREE(&(*binding)->mask);
  FMM_FREE(binding);
}

static int intersects(const fmm_binding *b, const cpu_set_t *x, const cpu_set_t *y) {
  for (size_t i = 0; i < b->bytes; i++)
    if (((const char *)x)[i] & ((const char *)y)[i]) return 1;
  return 0;
}

/* Parts of the mask by these objects; returns how many there are, and when fill is set makes them the places. */
static int split_mask(const fmm_binding *b, const cpu_set_t *mask, char *objects, int n_objects, int fill) {
  int n = 0;
  for (int i = 0; i < n_objects; i++) {
    if (!intersects(b, nth(b, objects, i), mask)) continue;
    if (fill) CPU_AND_S(b->bytes, nth(b, b->place, n), nth(b, objects, i), mask);
    n++;
  }
  return n;
}

/* Places for the calling thread's mask as it is now, left in saved[0]; nonzero when there is one a thread. */
static int choose_places(fmm_binding *b) {
  const cpu_set_t *mask = nth(b, b->saved, 0);
  if (CPU_EQUAL_S(b->bytes, mask, nth(b, b->mask, 0))) return 1;
  int by_core = split_mask(b, mask, b->core, b->n_cores, 0) == b->threads, n_objects = by_core ? b->n_cores : b->n_pus;
  char *objects = by_core ? b->core : b->pu;
  if (split_mask(b, mask, objects, n_objects, 0) != b->threads) return 0;
  split_mask(b, mask, objects, n_objects, 1);
  memcpy(b->mask, mask, b->bytes);
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
  if (omp_get_level() > 0) return "the call comes from a parallel region"; /* of one thread too, whose teams are made anew, where their maker is bound */
  if (omp_get_dynamic()) return "OpenMP may change the number of threads (OMP_DYNAMIC)"; /* by the mask of the one that asks: one that is bound would get itself alone, and not the others to be freed */
  if (openmp_wish() || omp_get_proc_bind() != omp_proc_bind_false) return "the OpenMP environment places threads";
  if (sched_getaffinity(0, b->bytes, nth(b, b->saved, 0))) return "the calling thread's mask cannot be read";
  if (!choose_places(b)) return "there are not as many threads as cores";
  return NULL;
}

static int bind_to(const fmm_binding *b, char *masks, int t) { return sched_setaffinity(0, b->bytes, nth(b, masks, t)) == 0; }

/* A barrier that lets others run: a thread that was just made may be on the core of the one that made it, which one that spins would keep from it for the rest of its time (4 ms were seen, twice in a first loop). */
static void meet(atomic_int *there, int n) {
  atomic_fetch_add(there, 1);
  while (atomic_load(there) < n) sched_yield();
}

/* A calling thread that is not to be bound goes to its place too, and is free again when all are at theirs: left where it was, it would share the core of a thread that was bound there and
 * spins between loops, until the system moves it (4 to 72 ms were seen).
 * Every thread keeps its mask and, when all have the same, goes to its place. The team's threads exist before any of them moves, so none
 * inherits a place. Returns the refusal, or NULL; *moved: some thread may have been bound. */
static const char *bind_team(fmm_binding *b, int bind_caller, int *moved) {
  atomic_int team = 0, strangers = 0, failures = 0, told = 0, placed = 0;
#pragma omp parallel num_threads(b->threads)
  {
    const int t = omp_get_thread_num(), n = omp_get_num_threads();
    atomic_fetch_add(&team, 1);
    if (sched_getaffinity(0, b->bytes, nth(b, b->saved, t)) || !CPU_EQUAL_S(b->bytes, nth(b, b->saved, t), nth(b, b->mask, 0))) atomic_fetch_add(&strangers, 1);
    meet(&told, n);
    const int place = atomic_load(&team) == b->threads && !atomic_load(&strangers), bind = t || bind_caller;
    if (place && !bind_to(b, b->place, t) && bind) atomic_fetch_add(&failures, 1);
    meet(&placed, n);
    if (place && !bind && !bind_to(b, b->saved, t)) atomic_fetch_add(&failures, 1);
  }
  *moved = team == b->threads && !strangers;
  if (team != b->threads) return "OpenMP gave fewer threads";
  if (strangers) return "the threads' masks differ: the caller has placed them";
  return failures ? "the system refused" : NULL;
}

static void restore_team(fmm_binding *b) {
#pragma omp parallel num_threads(b->threads)
  bind_to(b, b->saved, omp_get_thread_num());
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
