/* hybridfmm: fast N-body sums f(x_i) = sum_j K(x_i, y_j) s(y_j) on CPU cores and a GPU.
 *
 * The one public header. Life cycle (as in FINUFFT: plan, set points, execute, destroy):
 *   fmm_options_init -> fmm_plan_create -> fmm_plan_set_points -> fmm_plan_execute* -> fmm_plan_destroy
 * Every fallible function returns fmm_status and leaves its outputs untouched on failure; fmm_last_error()
 * then says what, with which values, and what to do (thread-local text). The library never exits, aborts or
 * prints. The caller owns every array it passes; set_points copies what it needs.
 * Threads: one plan is used by one thread at a time; different plans by different threads at once. A thread that calls
 * the library needs 1 MB of stack, and so do those of OpenMP (OMP_STACKSIZE, where it is set).
 */
#ifndef HYBRIDFMM_FMM_H
#define HYBRIDFMM_FMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define FMM_API
#else
#define FMM_API __attribute__((visibility("default")))
#endif

/* One list makes the enum, the names and the reference table: code, name, exit code of the commands, meaning. */
#define FMM_STATUS_LIST(X)                                                                        \
  X(FMM_OK, "ok", 0, "done")                                                                      \
  X(FMM_ERR_ARGUMENT, "argument", 2, "an option or argument has an impossible value")             \
  X(FMM_ERR_INPUT, "input", 3, "input data cannot be used (not finite, malformed, wrong shape)")  \
  X(FMM_ERR_PROFILE, "profile", 4, "a machine profile is damaged, foreign, of another schema or missing")     \
  X(FMM_ERR_DEVICE, "device", 5, "a device asked for is absent or failed")                        \
  X(FMM_ERR_MEMORY, "memory", 6, "host or device memory is not enough")                           \
  X(FMM_ERR_FILE, "file", 6, "a file could not be written or a disk is full")                     \
  X(FMM_ERR_INTERRUPTED, "interrupted", 130, "stopped by the caller or a signal")                 \
  X(FMM_ERR_INTERNAL, "internal", 1, "a fault of the library itself: please report it")

typedef enum fmm_status {
#define FMM_STATUS_ENUM(code, name, exit_code, meaning) code,
  FMM_STATUS_LIST(FMM_STATUS_ENUM)
#undef FMM_STATUS_ENUM
} fmm_status;

/* Arithmetic. DOUBLE: all. SINGLE: pairs, solid harmonics, and V's transforms and products in float (sums of many pairs are added up in double, and surfaces are double from order 6 on). MIXED: the same, but V and the harmonics in double
 * where V in float would not keep the tolerance (docs/howto-choose-accuracy.md). A phase of a plan may be in double while others are mixed or single. */
typedef enum fmm_precision { FMM_PRECISION_AUTO, FMM_PRECISION_DOUBLE, FMM_PRECISION_MIXED, FMM_PRECISION_SINGLE } fmm_precision;
/* Which phases a GPU takes: none (CPU), all (GPU), U (HYBRID1), all but U (HYBRID2), all but up and V (HYBRID3). */
typedef enum fmm_schedule_kind {
  FMM_SCHEDULE_AUTO, FMM_SCHEDULE_CPU, FMM_SCHEDULE_GPU, FMM_SCHEDULE_HYBRID1, FMM_SCHEDULE_HYBRID2, FMM_SCHEDULE_HYBRID3
} fmm_schedule_kind;
typedef enum fmm_phase { FMM_PHASE_UP, FMM_PHASE_ULIST, FMM_PHASE_VLIST, FMM_PHASE_WLIST, FMM_PHASE_XLIST, FMM_PHASE_DOWN, FMM_N_PHASES } fmm_phase;
typedef enum fmm_device { FMM_DEVICE_CPU, FMM_DEVICE_GPU, FMM_N_DEVICES } fmm_device;
typedef enum fmm_memory_space { FMM_MEMORY_HOST, FMM_MEMORY_DEVICE } fmm_memory_space;
typedef enum fmm_boundary { FMM_BOUNDARY_OPEN } fmm_boundary;
/* What the caller knows of the densities before they come: cancelling (signed) ones need a higher order. NONNEGATIVE: none is negative, and no few
 * outweigh the rest (one alone errs up to 70 times as much in the potential; (sum s)^2 / sum s^2 at least 10,000 or n / 4, those in one place added up first). */
typedef enum fmm_density_sign { FMM_DENSITY_SIGNED, FMM_DENSITY_NONNEGATIVE } fmm_density_sign;

enum { FMM_MAX_PARAMS = 8, FMM_MAX_LEVELS = 22 };

typedef struct fmm_param { const char *name; double value; } fmm_param;

/* Everything the commands offer. fmm_options_init fills the defaults; zero or AUTO means "the plan chooses". */
typedef struct fmm_options {
  size_t struct_size;             /* set by fmm_options_init; how the library tells versions apart */
  const char *kernel;             /* pair interaction by name: "laplace" (default), "stokes", "yukawa" */
  fmm_param params[FMM_MAX_PARAMS]; /* its parameters by name, n_params of them: "viscosity" of stokes, 1e-100 .. 1e100 (1); "lambda" of yukawa, an inverse length, 0 .. 1e100 (1) */
  int n_params;
  int n_columns;                  /* density columns evaluated in one pass, 1 .. 1024 (1) */
  int gradient;                   /* nonzero: potential and gradient (0) */
  double tolerance;               /* asked relative L2 error, 1e-14 .. 0.5 (1e-6) */
  double scale;                   /* factor on all results; NaN: the kernel's own, 1/(4 pi) for laplace (NaN) */
  fmm_density_sign density_sign;  /* (FMM_DENSITY_SIGNED, safe for both) */
  int order;                      /* surface order p, points per edge of the equivalent surface, 2 .. 20 (0: from tolerance) */
  int leaf_size;                  /* q, most points in a leaf (0: from the model) */
  double root_scale;              /* root cube's side over the bounding cube's, [1,2] (0: from the model) */
  fmm_precision precision;        /* (AUTO) */
  fmm_schedule_kind schedule;     /* (AUTO) */
  int threads;                    /* CPU threads, at most 4096 (0: every core this process may use) */
  int oversubscribe;              /* nonzero: allow more threads than cores (0) */
  int gpu_device;                 /* CUDA ordinal (0) */
  int gpu_sms;                    /* limit the GPU to this many multiprocessors (0: all) */
  size_t host_memory_cap;         /* bytes the plan may hold on the host (0: no cap) */
  size_t device_memory_cap;       /* bytes the plan may hold on the device (0: what is free) */
  fmm_boundary boundary;          /* (OPEN, the only one for now) */
  fmm_memory_space densities_space, results_space; /* where execute's arrays are (HOST) */
  void *cuda_stream;              /* cudaStream_t that device arrays are ordered with: what is enqueued there before an execution writes densities and reads results first; it must live as long as the plan (NULL: the legacy default stream) */
  const char *profile_path;       /* machine profile (NULL: $FMM_PROFILE, the user's, the system's; with none, nominal rates: see fmm-calibrate) */
  int bind_threads;               /* nonzero: while the plan works its threads are bound one to a core, where that is safe; all is as before afterwards (1) */
  int densities_spread;           /* nonzero: what the caller knows of the densities: in every column (sum |s|)^2 / sum |s|^2 is at least a tenth of the sources. Gradients then have the V list in single precision at lower tolerances;
                                   * without it they have it in double, as those at many points without density among few with it need (0) */
  double executions;              /* how many evaluations the points of a set_points are for, 0 .. 1e12: the fewer, the less time is spent on choosing their leaf size and root scale. Those that move on keep the choice,
                                   * so count their steps (0: unknown; ten, or a second and a half of them if that is more) */
} fmm_options;

typedef struct fmm_plan fmm_plan;

/* What a plan decided and holds; valid after set_points. */
typedef struct fmm_plan_info {
  size_t struct_size;             /* set by the caller to sizeof(fmm_plan_info) */
  char plan_id[17];               /* hash of all that changes the bits of an answer */
  int order;                      /* 0: there is no far field, all sums are direct */
  int leaf_size;
  double root_scale;
  fmm_precision precision[FMM_N_PHASES]; /* of each phase: never AUTO */
  fmm_schedule_kind schedule;     /* the one chosen */
  fmm_device device[FMM_N_PHASES]; /* that has more than half of the phase */
  double gpu_fraction[FMM_N_PHASES]; /* part of the phase's work on the GPU, 0..1 */
  int threads, gpu_sms;           /* of the CPU's team; multiprocessors of the GPU's part, 0: no GPU */
  int64_t n_sources, n_targets, n_leaves, n_boxes; /* rows that were given; boxes of the tree, leaves among them */
  int n_levels;                   /* of the tree, the root's counted */
  double setup_s;                 /* seconds of set_points: tree, lists, operators, upload */
  double predicted_s;             /* of an evaluation, before the first execution: the makespan, then the clusters one after another */
  double phase_predicted_s[FMM_N_PHASES], phase_measured_s[FMM_N_PHASES], phase_limit_s[FMM_N_PHASES]; /* measured: in the latest execute; what phases of one GPU have of it at the same time is shared out as predicted. limit: what the machine's measured rates would allow, without any overhead */
  double last_evaluation_s;       /* seconds of the latest execute */
  size_t host_bytes, device_bytes;/* reserved by this plan */
  char profile_path[512];         /* "" when nominal rates were used */
  double expected_error;          /* relative error expected of the order chosen: above the tolerance when no order is expected to reach it. NaN: none chosen */
  int n_clusters;                 /* groups of points below the finest cell, each with a plan of its own on the CPU, after the phases */
  double clusters_predicted_s, clusters_measured_s; /* all of them; part of predicted_s and last_evaluation_s */
  double tightened;               /* the plan is made for the tolerance over this: 1, or more after fmm_plan_keep_tolerance found it not kept */
} fmm_plan_info;

/* Fills *options with defaults. Pass the macro: fmm_options_init(&o). */
FMM_API fmm_status fmm_options_init_sized(fmm_options *options, size_t struct_size);
#define fmm_options_init(options) fmm_options_init_sized((options), sizeof(fmm_options))

/* Checks the options and makes an empty plan in *plan (owned by the caller; destroy it). Options are copied. Arrays in device memory are
 * FMM_ERR_DEVICE where there is no GPU to use. */
FMM_API fmm_status fmm_plan_create(fmm_plan **plan, const fmm_options *options);

/* Sorts the points, builds tree, lists and operators, chooses order, leaf size, precision and schedule, and reserves
 * all memory. sources: n_sources x 3, targets: n_targets x 3, row-major double, host memory, any finite values.
 * At most 4,294,967,295 sources and as many targets. targets NULL (with n_targets 0), or the sources once more, row by row: the targets are the sources. normals: n_sources x 3 for kernels that take them, else NULL.
 * FMM_ERR_INPUT names the first row that is not finite, or an extent of the coordinates, as above about 1e154 or below 1e-154 with gradient,
 * whose powers in the results double precision cannot hold, or a source and a target that are not at one place, but nearer than about 1e-153 of the
 * extent, whose squared distance it cannot hold beside that (mostly a coordinate far out, a mark for a missing value). Calling it again replaces the points; on failure the old remain,
 * so that both are held while it works, on a GPU too: where that is too much, destroy the plan first, or let fmm_plan_move_points give them up. */
FMM_API fmm_status fmm_plan_set_points(fmm_plan *plan, int64_t n_sources, const double *sources, const double *normals,
                                       int64_t n_targets, const double *targets);

/* Points that moved, for simulations in steps: as fmm_plan_set_points, which it is for a plan without points, with two differences.
 * Leaf size and root scale stay as they were chosen for earlier points while those are alike: as many within a factor of 1.5, of the same order, and foretold to take as long a point within a
 * tenth (a tree of one leaf has nothing to keep). What is foretold is known when the points are there, so it is the call after that which chooses anew. (Clusters below the finest cell have plans of their own, which choose.) So
 * the bits of an answer, though not its accuracy, depend on earlier points too; the plan_id tells.
 * The points before are given up first, and their memory serves again; what of it is free in the end is kept for the next call, at most 16 bytes a point, and is in host_bytes (not with a host_memory_cap).
 * Arguments, and coordinates that are not finite or too near one another, are refused before that; any later failure leaves the plan without points. */
FMM_API fmm_status fmm_plan_move_points(fmm_plan *plan, int64_t n_sources, const double *sources, const double *normals,
                                        int64_t n_targets, const double *targets);

/* Evaluates for one set of densities. densities: n_sources x components x columns; potential: n_targets x outputs x
 * columns; gradient (NULL unless asked in the options): n_targets x outputs x 3 x columns. Row-major double.
 * Host arrays that are page-locked (cudaHostAlloc, cudaHostRegister) are read and written by a GPU without staging.
 * Results are overwritten only on success; a GPU that fails while they are on their way, all else having ended well, may
 * leave some of them written. Nothing uses the arrays after the return. Allocates nothing. Where the plan may use a GPU, or has arrays on one, device arrays for host ones, and for device ones what its GPU cannot
 * reach (pageable host arrays, another GPU's), are FMM_ERR_ARGUMENT, here and wherever else arrays are given; other plans cannot know. */
FMM_API fmm_status fmm_plan_execute(fmm_plan *plan, const double *densities, double *potential, double *gradient);

/* n zeros in *array, for densities or results: page-locked where the plan may use a GPU, which then reads and writes them without a copy on the host (what the system will not lock
 * serves as well as any other memory). 64-byte aligned; the caller's, for any plan, also after this one's end: release it with fmm_array_destroy, which sets *array to NULL and to which
 * NULL may be given. Not bounded by the plan's caps. On failure *array stays as it was. */
FMM_API fmm_status fmm_array_create(const fmm_plan *plan, int64_t n, double **array);
FMM_API void fmm_array_destroy(double **array);

/* Releases the plan and sets *plan to NULL. NULL is allowed. */
FMM_API void fmm_plan_destroy(fmm_plan **plan);

FMM_API fmm_status fmm_plan_get_info(const fmm_plan *plan, fmm_plan_info *info);

/* Writes what the plan chose and why, as text, into buffer (capacity bytes, always terminated); *needed, if not NULL, is the
 * full length + 1. */
FMM_API fmm_status fmm_plan_explain(const fmm_plan *plan, char *buffer, size_t capacity, size_t *needed);

/* Learns from the measured phase times of this plan: refits its cost constants and, if another choice is then
 * predicted faster, makes it (a new plan_id). *changed, if not NULL, tells. The constants stay the plan's: points that are set
 * later may be served differently than by a new plan. Never done unasked. */
FMM_API fmm_status fmm_plan_adapt(fmm_plan *plan, int *changed);

/* Whether the latest execution keeps the tolerance, and if not, a plan that errs less. The order is chosen before densities are known, for such as cancel one another no more than random ones; of those that do (charges of a
 * conductor, forces on a drop's surface, crystals) the results are so much smaller than their parts that it may not be enough. Arrays in the layout of fmm_plan_execute, all in host memory: the densities that it was called
 * with, and its results. The relative L2 error (of potential and gradient the larger) is estimated by direct sums at 512 targets (64 to 4,096, by what they cost and how near the error is to the tolerance); *error, if not NULL,
 * is the estimate (NaN where sums or results are not finite). Where it is above 0.9 of the tolerance, and of eight times what rounding is expected to leave, and the options name neither an order nor mixed or single precision, the
 * plan is made anew for a tighter tolerance (a new plan_id; info.tightened says how much tighter) and *changed, if not NULL, is 1: execute again, and ask again. Else it is 0 and the plan is as before: so it is after five plans
 * in a row. What is tightened stays so, for points that are set later too; only a new plan begins anew. On failure the plan is as before; both are held while it works. */
FMM_API fmm_status fmm_plan_keep_tolerance(fmm_plan *plan, const double *densities, const double *potential, const double *gradient, double *error, int *changed);

/* Writes the latest execution's timeline as Chrome trace JSON (Perfetto opens it). FMM_ERR_ARGUMENT before points are set, FMM_ERR_FILE where the file cannot be written. */
FMM_API fmm_status fmm_plan_write_trace(const fmm_plan *plan, const char *path);

/* Direct sum in double with compensated accumulation at n_rows chosen targets (rows NULL: the first n_rows): the reference that
 * errors are measured against. Shapes as in execute, with n_rows rows of results, and the same refusals (gradient: NULL unless asked in the
 * options; densities that are not finite). All arrays are in host memory, whatever the plan's memory spaces. Uses the plan's points and options. Where a GPU alone has the points' coordinates they come to the host first, and stay (info.host_bytes counts them from the start); FMM_ERR_DEVICE
 * and FMM_ERR_MEMORY may tell that they could not. */
FMM_API fmm_status fmm_plan_direct(const fmm_plan *plan, const double *densities, int64_t n_rows, const int64_t *rows,
                                   double *potential, double *gradient);

/* Predicted seconds of an evaluation of n points of a named standard distribution ("uniform", "ellipsoid", "sphere",
 * "plummer"), on this machine or the one of options->profile_path, without making them or touching hardware. */
typedef struct fmm_prediction {
  size_t struct_size;             /* set by the caller to sizeof(fmm_prediction) */
  double makespan_s;              /* of an evaluation, by the schedule chosen */
  double phase_s[FMM_N_PHASES][FMM_N_DEVICES]; /* NaN where infeasible */
  fmm_schedule_kind schedule;
  int order, leaf_size;
  double root_scale;
  size_t host_bytes, device_bytes; /* from estimated counts, mostly within a tenth of what a plan takes: no caps */
  double expected_error;          /* as in fmm_plan_info */
} fmm_prediction;
FMM_API fmm_status fmm_predict(const fmm_options *options, const char *distribution, int64_t n_points, fmm_prediction *prediction);

FMM_API const char *fmm_last_error(void);               /* latest failure in this thread; "" when none */
FMM_API const char *fmm_status_name(fmm_status status);
FMM_API int fmm_status_exit_code(fmm_status status);
FMM_API const char *fmm_version(void);                  /* "major.minor.patch" */

#ifdef __cplusplus
}
#endif
#endif
