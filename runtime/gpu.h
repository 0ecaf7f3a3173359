/* One GPU as a plain C interface: opened, queried, given a plan's data once, then fed asynchronously. Two implementations: the files of runtime/gpu/
 * (CUDA) and runtime/gpu_none.c (built without nvcc), so that nothing else in the library knows CUDA.
 *
 * Life: fmm_gpu_plan_create uploads points, lists and operators and reserves everything (the only allocations). An execution is
 *   begin -> any order of run / send / fetch that respects the phases' dependencies -> results or fetch -> finish.
 * All calls between begin and finish return at once (begin copies densities that are not page-locked, by the whole team): work is enqueued on the plan's streams, copies are from
 * and to pinned memory; `finish` (and `wait`, for one fetched array) is where the host waits. Phases that depend on each other (up -> V, W; V, X -> down) are ordered by
 * events inside; only what crosses the bus must be asked for with send and fetch.
 * Densities are in the caller's units and results come in them. What is fetched or sent is in those of its column, where columns have units of their own (runtime/column_units.h).
 * A plan is used by one thread at a time; different plans by different threads at once.
 * Errors: FMM_ERR_DEVICE (absent, failed), FMM_ERR_MEMORY (device memory or the cap is not enough; says how much was needed). */
#ifndef FMM_GPU_H
#define FMM_GPU_H
#include "kernels/phase.h"
#include "model/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fmm_gpu_info {
  int present;           /* 0: `reason` says why; no driver, an old driver and no device are treated alike */
  char reason[256];      /* one line */
  char name[128], uuid[64], driver[32];
  int sms;               /* multiprocessors */
  int compute_capability;/* 10 * major + minor */
  size_t memory_bytes;
} fmm_gpu_info;

/* Looks at device `ordinal`. Never fails: what is wrong is in the reason. Costs a context's creation the first time. */
void fmm_gpu_query(int ordinal, fmm_gpu_info *info);

/* Page-locked memory of a plan that is given up, for the next one: locking it takes a tenth of what making a plan for points that moved does. memory NULL: none. */
typedef struct fmm_gpu_stage {
  char *memory;
  size_t bytes;
  int device, allocated, registered; /* the library's own, and locked; else the driver's */
  int exact;                         /* only for a plan that needs as much: what is more counts against a cap */
} fmm_gpu_stage;

/* Operators on the device of a plan that is given up, for the next one: sending them again takes threads and calls of the driver. memory NULL: none. */
typedef struct fmm_gpu_operators {
  void *memory;
  size_t bytes;
  int device;
  const fmm_operators *of; /* the host's, which must not have been released since */
  int form[8];             /* what else their arrays depend on */
} fmm_gpu_operators;

/* What a plan that is given up leaves to the next, which takes what suits it; the rest is released by it or by fmm_gpu_spare_free. All zero: nothing. */
enum { FMM_GPU_BLOCK_POINTS, FMM_GPU_BLOCK_REST, FMM_GPU_N_BLOCKS };
typedef struct fmm_gpu_spare {
  fmm_gpu_stage stage;
  fmm_gpu_operators operators;
  struct fmm_cuda_queues *queues;                                 /* streams and events */
  struct { void *memory; size_t bytes; } block[FMM_GPU_N_BLOCKS]; /* of the device's memory, for what is not kept */
  int device;
} fmm_gpu_spare;

/* What a plan wants of the GPU. The state is read during create only, except tree, lists and operators (host), which must outlive the plan's
 * creation only. Of the state: tree, lists, pair, params, operators, n_columns, gradient, precision, tolerance. */
typedef struct fmm_gpu_request {
  const fmm_state *state;
  int device;            /* CUDA ordinal */
  int sms;               /* limit to this many multiprocessors by a green context (0: all); rounded up to what the hardware offers */
  unsigned phases;       /* bit (1u << phase) of every phase that may be run */
  size_t memory_cap;     /* bytes the plan may hold on the device (0: what is free) */
  void *stream;          /* caller's cudaStream_t, ordered with begin and results when arrays are on the device (NULL: the legacy default stream) */
  int threads;           /* host threads for staging copies */
  fmm_memory_space densities_space, results_space; /* where begin's and results' arrays will be (0: host) */
  fmm_gpu_spare *spare;  /* of an earlier plan, or a stage that was made before; NULL: there is nothing */
  size_t least_stage;    /* bytes that page-locked memory is to have at least, for rows to come by way of it */
  struct fmm_gpu_rows *rows; /* of the same points, sources first, on the device already and settled (gpu_rows.h), whose memory there is given back; NULL: points are sent */
  int64_t most_entries;  /* of a U list whose pairs are summed in both directions at once, and chunks of its tiles; 0: as many as the device's tables hold. For tests */
  int64_t halves_from;   /* work (fmm_cuda_v_halves) from which on V's products in single precision are made of halves; 0: as measured. For tests */
} fmm_gpu_request;

typedef struct fmm_gpu_plan fmm_gpu_plan;

/* Bytes a plan would hold at least (V in the smallest slabs) and at best, before anything is allocated: counted as the plan counts, for the tests of the model's footprint. 0 without CUDA. */
void fmm_gpu_plan_predict(const fmm_gpu_request *request, size_t *least_bytes, size_t *best_bytes);
fmm_status fmm_gpu_plan_create(fmm_gpu_plan **plan, const fmm_gpu_request *request);
void fmm_gpu_plan_destroy(fmm_gpu_plan **plan);
/* Before a plan is destroyed, which is all that may be done with it then: what it can leave. *spare has nothing, but perhaps a stage, which stays. */
void fmm_gpu_plan_give(fmm_gpu_plan *plan, fmm_gpu_spare *spare);
void fmm_gpu_spare_free(fmm_gpu_spare *spare);
/* How often plans of this process have taken an earlier one's operators, queues and blocks so far. For tests. */
typedef struct fmm_gpu_taken { int64_t operators, queues, blocks; } fmm_gpu_taken;
fmm_gpu_taken fmm_gpu_spare_taken(void);
/* While no execution runs: its page-locked memory, for other uses; it stays the plan's. */
void fmm_gpu_plan_lend_stage(fmm_gpu_plan *plan, char **memory, size_t *bytes);
/* Such memory before there is a plan: what one needs for arrays of so many bytes on the host, and so much, touched by a team. */
size_t fmm_gpu_stage_size(size_t densities_bytes, size_t results_bytes);
fmm_status fmm_gpu_stage_make(fmm_gpu_stage *stage, int device, int threads, size_t bytes);
void fmm_gpu_stage_free(fmm_gpu_stage *stage);
size_t fmm_gpu_plan_device_bytes(const fmm_gpu_plan *plan);
size_t fmm_gpu_plan_host_bytes(const fmm_gpu_plan *plan); /* pinned */
/* What its making was made of, in seconds since that began; parts that ran beside one another overlap. Returns how many; they belong to the plan. */
enum { FMM_GPU_MOST_PARTS = 24 };
typedef struct fmm_gpu_part { const char *name; double begin_s, end_s; } fmm_gpu_part;
int fmm_gpu_plan_parts(const fmm_gpu_plan *plan, const fmm_gpu_part **parts);
/* A set's coordinates (0: sources, 1: targets), scaled as in the tree, planes of as many as it has. */
fmm_status fmm_gpu_plan_points(fmm_gpu_plan *plan, int set, double *const at[3]);
int fmm_gpu_plan_sms(const fmm_gpu_plan *plan);           /* real number of multiprocessors used */
/* Nonzero where U's pairs would be summed in both directions at once, but there is no room for the parts: one way then, other bits. */
int fmm_gpu_plan_falls_back(const fmm_gpu_plan *plan);

/* Starts an execution: densities in the caller's layout (n_input x components x columns, in input order, host or device memory) are
 * uploaded and sorted on the device; results are zeroed. Host memory may be reused when the call returns, page-locked memory, which is read without
 * staging, after finish. */
fmm_status fmm_gpu_begin(fmm_gpu_plan *plan, const double *densities, fmm_memory_space space);

/* Enqueues rows [row_begin, row_end) of a phase's list (u, v, w, x rows; boxes for up and down: always all of them). Inputs must be there or
 * enqueued: up's results by run(UP) or send(UP_EQUIVALENT), V's and X's by run or send(DOWN_CHECK). */
fmm_status fmm_gpu_run(fmm_gpu_plan *plan, fmm_phase phase, int64_t row_begin, int64_t row_end);

/* Arrays that may cross the bus, host layouts as in fmm_state. */
typedef enum fmm_gpu_array { FMM_GPU_UP_EQUIVALENT, FMM_GPU_DOWN_CHECK, FMM_GPU_POTENTIAL, FMM_GPU_N_ARRAYS } fmm_gpu_array;

/* Host -> device, boxes [box_begin, box_end). UP_EQUIVALENT overwrites; DOWN_CHECK is added to what V and X leave there (send it once an
 * execution). The host array must be registered (fmm_gpu_register) to overlap, and stay untouched until finish. */
fmm_status fmm_gpu_send(fmm_gpu_plan *plan, fmm_gpu_array array, const double *host, int64_t box_begin, int64_t box_end);
/* Device -> host, the whole array, after everything enqueued so far that writes it. Complete after wait or finish. */
fmm_status fmm_gpu_fetch(fmm_gpu_plan *plan, fmm_gpu_array array, double *host);
fmm_status fmm_gpu_wait(fmm_gpu_plan *plan, fmm_gpu_array array);

/* Results of this execution alone on the GPU: sorts into the caller's layout times the factors and copies. Complete after finish.
 * potential n_targets_input x outputs x columns; gradient (NULL: not asked) n_targets_input x outputs x 3 x columns. */
fmm_status fmm_gpu_results(fmm_gpu_plan *plan, double factor, double gradient_factor, double *potential, double *gradient, fmm_memory_space space);

/* Calls of the driver in an evaluation between host arrays beside those of its phases, counted from gpu_execute.cu and gpu_stage.cu (a test counts them too). */
enum { FMM_GPU_FRAME_CALLS = 24 };

/* Waits for everything of this execution and writes host results, many while others still arrive. FMM_ERR_INPUT, after fmm_gpu_results: a density or a result is not finite (the first
 * row is named). On any failure the caller's results are as they were, but for a device that fails while they are on their way, all else having ended well. */
fmm_status fmm_gpu_finish(fmm_gpu_plan *plan);

/* After a failure of any call since begin: waits for all that was enqueued, whatever has become of it, so that nothing reads or writes the caller's arrays any more. */
void fmm_gpu_abandon(fmm_gpu_plan *plan);

/* Seconds since begin of a phase's first and last work on the device in the finished execution; 0 when it did not run. Copies likewise. */
fmm_status fmm_gpu_phase_span(const fmm_gpu_plan *plan, fmm_phase phase, double *start_s, double *end_s);
typedef enum fmm_gpu_copy { FMM_GPU_COPY_DENSITIES, FMM_GPU_COPY_SEND, FMM_GPU_COPY_FETCH, FMM_GPU_COPY_RESULTS, FMM_GPU_N_COPIES } fmm_gpu_copy;
fmm_status fmm_gpu_copy_span(const fmm_gpu_plan *plan, fmm_gpu_copy copy, double *start_s, double *end_s);

/* Page-locks a host array so that copies overlap; undo before freeing it. */
fmm_status fmm_gpu_register(void *host, size_t bytes);
void fmm_gpu_unregister(void *host);

/* Whether an array of the caller's, called `name`, lies in memory that is of this space, for plans of this device: FMM_ERR_ARGUMENT says where it lies. What the driver cannot tell passes. */
fmm_status fmm_gpu_check_array(int device, const char *name, const void *array, size_t bytes, fmm_memory_space space);

/* Plain device memory, for tests. */
fmm_status fmm_gpu_allocate(int device, void **d_pointer, size_t bytes);
void fmm_gpu_free(void *d_pointer);
/* Copies between any of host and device memory, ordered after what is in the caller's stream of that device (NULL: its default one); complete on return. */
fmm_status fmm_gpu_copy_now(int device, void *to, const void *from, size_t bytes, void *stream);

/* Measured rates of the device, for calibration; sms as in the request. Each takes tens of milliseconds. */
typedef enum fmm_gpu_rate {
  FMM_GPU_RATE_FMA_DOUBLE, FMM_GPU_RATE_FMA_SINGLE,    /* flop/s */
  FMM_GPU_RATE_PAIR_DOUBLE, FMM_GPU_RATE_PAIR_SINGLE,  /* laplace pairs/s */
  FMM_GPU_RATE_MEMORY,                                 /* byte/s, triad */
  FMM_GPU_RATE_H2D, FMM_GPU_RATE_D2H,                  /* byte/s, pinned */
  FMM_GPU_RATE_LAUNCH,                                 /* seconds a launch */
  FMM_GPU_N_RATES
} fmm_gpu_rate;
fmm_status fmm_gpu_measure(int device, int sms, fmm_gpu_rate rate, double *value);

/* The nth CUDA call from now fails (1: the next); 0 switches it off. For tests. Count of calls so far. */
void fmm_gpu_fail_at(int64_t nth);
/* Whether it then fails for want of memory, not for a reason unknown. */
void fmm_gpu_fail_for_memory(int yes);
int64_t fmm_gpu_call_count(void);

#ifdef __cplusplus
}
#endif
#endif
