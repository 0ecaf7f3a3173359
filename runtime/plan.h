/* The plan from inside. A plan is its checked options, the machine it prices with, and one `setup`: everything that
 * set_points makes. A new setup is built whole beside the old one and then takes its place, so a failure loses nothing; but points that move (move.c) give up the old one first. */
#ifndef FMM_PLAN_H
#define FMM_PLAN_H
#include "kernels/phase.h"
#include "model/model.h"
#include "runtime/binding.h"
#include "runtime/choose_order.h"
#include "runtime/gpu.h"
#include "runtime/gpu_rows.h"
#include "runtime/operator_pool.h"
#include "runtime/trace.h"
#include "sched/sched.h"

/* Points of one cluster below the finest cell, evaluated by a plan of their own (nested.c). */
typedef struct fmm_nested {
  fmm_plan *plan;
  int64_t n_sources, n_targets;
  int64_t *source, *target;            /* sorted positions in the outer tree; target is source when the points are the same */
  double *density, *potential, *gradient; /* arrays in the public layout */
} fmm_nested;

/* Parts of set_points whose seconds are kept, in their order. */
typedef enum fmm_setup_part {
  FMM_PART_ORDER, FMM_PART_CHOICE, FMM_PART_TREE, FMM_PART_LISTS, FMM_PART_OPERATORS, FMM_PART_PRICES, FMM_PART_MEMORY, FMM_PART_REST, FMM_N_SETUP_PARTS
} fmm_setup_part;
extern const char *const fmm_setup_part_names[FMM_N_SETUP_PARTS]; /* setup.c */

typedef struct fmm_setup {
  fmm_tree tree;
  fmm_lists lists;
  fmm_counts counts;
  const fmm_operators *operators;      /* of the pool; NULL without a far field */
  size_t operator_bytes;               /* of those that were made for this set-up */
  fmm_operator_pool pool;              /* the outermost plan's: also its clusters' */
  double params[FMM_MAX_PARAMS];       /* in scaled coordinates */
  double factor, gradient_factor;      /* scaled results -> the caller's units */
  fmm_cost_table costs;
  fmm_precision_sets precisions;       /* of which schedules take the best for them */
  fmm_assignment assignment;
  fmm_makespan makespan;
  fmm_state state;                     /* CPU arrays and workspaces */
  double *density, *potential, *up_equivalent, *down_check;
  const double **potential_plane, **gradient_plane; /* planes of `potential` in the order of the caller's rows */
  fmm_gpu_plan *gpu;                   /* NULL when no phase runs there */
  char no_gpu[256];                    /* why `auto` took none though there is one: its memory, a failure; "" */
  int64_t gpu_rows[FMM_N_PHASES];      /* the GPU's rows of each phase are the first so many */
  double *gpu_potential, *gpu_check;   /* what comes back from the GPU to be added; NULL when not needed */
  int registered;                      /* arrays that cross the bus are page-locked */
  double *host_density, *host_potential, *host_gradient; /* copies of the caller's device arrays where the CPU takes part */
  fmm_nested *nested;
  int32_t n_nested;
  int far_field;                       /* nonzero: some V, W or X pair exists; else there are no operators and only U runs */
  double cancelled;                    /* as in fmm_state */
  double expected_error;               /* of the order chosen; NaN when none was */
  fmm_regularity regularity;           /* of the points, where the order was chosen for it */
  double foretold_s;                   /* the makespan for all cores, whatever the number of threads */
  int kept_choice;                     /* leaf size and root scale are those of earlier points */
  int n_density_planes, n_result_planes;
  int *column_exponent;                /* of this evaluation (column_units.h); NULL where columns are not scaled */
  double part_s[FMM_N_SETUP_PARTS];
  fmm_plan_info info;
} fmm_setup;

/* A leaf size and root scale, and for what they were chosen. */
typedef struct fmm_choice {
  fmm_tree_options tree;
  int order;
  int64_t n_sources, n_targets;
  double point_s; /* foretold a point, by all cores; NaN: not by the constants that the plan has now */
} fmm_choice;

struct fmm_plan {
  fmm_options options;                 /* its tolerance is the one that is planned for: asked_tolerance / tightened */
  double asked_tolerance, tightened;   /* keep_tolerance.c; 1: not tightened */
  int rounds;                          /* of that, since results kept the tolerance */
  char profile_path[512];
  const fmm_pair *pair;
  double params[FMM_MAX_PARAMS];       /* in the caller's units; 1 where results are divided by the parameter: */
  double divisor;
  fmm_machine machine;
  int threads;
  int nesting;                         /* 0 for the caller's plan, 1 for its clusters' plans, ... */
  fmm_operator_pool *pool;             /* of the outermost plan's set-up; NULL: this is the outermost */
  fmm_operator_pool spare;             /* of the points before, while points are moved; else empty */
  fmm_setup *setup;                    /* NULL before set_points */
  fmm_choice chosen;                   /* leaf size and root scale when they were last chosen */
  int keeps;                           /* nonzero while points are moved that are to keep them */
  size_t kept_memory;                  /* free, for the next move of points (memory.h) */
  fmm_trace trace;
  fmm_binding *binding;                /* NULL: threads are not to be bound (not asked, or a cluster's plan, which runs inside another) */
};

enum { FMM_MAX_NESTING = 64 };

static inline int fmm_plan_may_use_gpu(const fmm_plan *plan) { return plan->machine.device[FMM_DEVICE_GPU].present && plan->options.schedule != FMM_SCHEDULE_CPU; }

/* The caller's points: n x 3 each, row-major. normals: NULL where the kernel takes none; targets: NULL where they are the sources. */
typedef struct fmm_point_rows {
  int64_t n_sources;
  const double *sources, *normals;
  int64_t n_targets;
  const double *targets;
  fmm_bounds bounds; /* by fmm_plan_check_points */
  fmm_regularity regularity; /* of the sources, */
  int knows_regularity;      /* where it was looked for beside */
  fmm_gpu_rows *brought; /* the same, on their way to the GPU; NULL: none */
  fmm_gpu_spare spare;   /* for the GPU's plan of these points; both are released by fmm_plan_points_end */
} fmm_point_rows;

/* plan.c: binds the threads for work on so many points, or not, until fmm_binding_end; see binding.h. */
void fmm_plan_bind(const fmm_plan *plan, int64_t n_sources, int64_t n_targets);
/* move.c: leaf size and root scale were chosen for the points that the plan has now. */
void fmm_plan_note_choice(fmm_plan *plan);
/* plan.c: the plan's own points, if it has any, are given up when those are there. */
fmm_status fmm_plan_replace_points(fmm_plan *plan, fmm_point_rows *points, double begin /* of the call, fmm_now_s */);
/* plan.c: what is wrong with points whose counts are right, or their bounds; then they are on their way to a GPU, and its words of them too (fmm_plan_points_begin, fmm_plan_points_expect). Targets that repeat the sources are left out of *points. */
fmm_status fmm_plan_check_points(const fmm_plan *plan, fmm_point_rows *points);
/* setup_gpu.c: finds the points' bounds (points.h) and beside that begins to bring them to the GPU where that is worth it, and looks how regular they are if that will be asked; sorts them there for the root scale that the tree is likely to have; takes the words for the one that it has, unless *sorted has them (points.h);
 * and ends that, whatever has become of it: the caller's arrays are in use until then. */
fmm_status fmm_plan_points_begin(const fmm_plan *plan, fmm_point_rows *points);
void fmm_plan_points_expect(const fmm_plan *plan, const fmm_point_rows *points);
void fmm_plan_points_sorted(const fmm_point_rows *points, double root_scale, fmm_sorted_rows *sorted);
void fmm_plan_points_end(fmm_point_rows *points);
/* setup.c */
fmm_status fmm_setup_create(fmm_setup **setup, const fmm_plan *plan, fmm_point_rows *points);
void fmm_setup_destroy(fmm_setup **setup);
/* recreate.c: another set-up for the plan's points, by the options and machine that it has now. */
fmm_status fmm_setup_recreate(fmm_setup **setup, const fmm_plan *plan);
/* choose_tree.c: leaf size and root scale, from the options, kept (*kept nonzero) or by the tuner on estimated counts. *sorted: zeros; the rows, where the tuner had them sorted, for the tree (points.h). */
fmm_status fmm_choose_tree(const fmm_plan *plan, int order, const fmm_precision_sets *precisions, const fmm_point_rows *points, struct fmm_sorted_rows *sorted, fmm_tree_options *choice, int *kept);
/* precision.c: the arithmetic that the options name, or what keeps the tolerance, of which the model chooses. cancels: whether results do (`cancelled`, choose_order.h). */
void fmm_choose_precisions(const fmm_options *options, const fmm_pair_info *pair, int cancels, double steps, fmm_precision_sets *precisions);
/* nested.c */
fmm_status fmm_nested_create(fmm_setup *setup, const fmm_plan *plan);
void fmm_nested_destroy(fmm_setup *setup);
fmm_status fmm_nested_add(fmm_setup *setup);
size_t fmm_nested_bytes(const fmm_setup *setup);
double fmm_nested_predicted_s(const fmm_setup *setup);
/* call.c: what a call's arrays must be; n_rows of results. */
fmm_status fmm_call_check_plan(const fmm_plan *plan, const char *function);
fmm_status fmm_call_check_arrays(const fmm_plan *plan, int64_t n_rows, const double *densities, const double *potential, const double *gradient);
/* Whether they, or points (doubles of them), lie in memory of the space that is expected: where the plan uses no GPU nobody can tell. */
fmm_status fmm_call_check_spaces(const fmm_plan *plan, int64_t n_rows, const double *densities, const double *potential, const double *gradient, fmm_memory_space densities_space, fmm_memory_space results_space);
fmm_status fmm_call_check_host(const fmm_plan *plan, const char *name, const double *array, int64_t doubles);
fmm_status fmm_call_check_densities(const fmm_plan *plan, const double *densities);
/* dispatch.c: runs an assignment; fills info.phase_measured_s and the trace. The GPU reads the caller's densities, and when all is on the GPU it
 * delivers the results too (delivered nonzero); otherwise they are in setup->potential. */
typedef struct fmm_call {
  const double *densities;
  double *potential, *gradient;
  fmm_memory_space densities_space, results_space;
  int delivered;
} fmm_call;
extern const fmm_phase_impl *const fmm_cpu_phases[FMM_N_PHASES];
fmm_status fmm_dispatch(fmm_setup *setup, fmm_call *call, fmm_trace *trace);
void fmm_dispatch_split(fmm_setup *setup);                             /* gpu_rows from the assignment's fractions */
int fmm_dispatch_uses(const fmm_setup *setup, fmm_device device);      /* nonzero when some phase has rows there */
int fmm_dispatch_on_cpu(const fmm_setup *setup, fmm_phase phase);      /* nonzero when this one has rows on the CPU */
/* setup_gpu.c: the GPU's part of a set-up, and the arrays that cross the bus. */
fmm_status fmm_setup_gpu_create(fmm_setup *setup, const fmm_plan *plan, fmm_point_rows *points);
/* The points' coordinates on the host, from the GPU where that alone has them: for what is asked beside evaluations. */
fmm_status fmm_setup_host_points(fmm_setup *setup);
/* What these will take when they come. */
size_t fmm_setup_absent_bytes(const fmm_setup *setup);
void fmm_setup_gpu_destroy(fmm_setup *setup);
/* plan.c: a plan that prices with a machine already in memory (copied; NULL: the one of options->profile_path or found by the rules). */
fmm_status fmm_plan_create_with(fmm_plan **plan, const fmm_options *options, const fmm_machine *machine);
/* plan.c: a plan for inner use, without a search for profiles. */
fmm_status fmm_plan_create_nested(fmm_plan **plan, const fmm_plan *outer, fmm_setup *setup);
#endif
