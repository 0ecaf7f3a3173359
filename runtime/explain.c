/* What a plan chose and why, as text for people: tree, order, precision, every phase's prediction and limit, every schedule. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "arithmetic.h"
#include "io/number.h"
#include "plan.h"

typedef struct text { char *buffer; size_t capacity, used; } text;

static void __attribute__((format(printf, 2, 3))) say(text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int n = fmm_format_arguments(t->buffer ? t->buffer + (t->used < t->capacity ? t->used : t->capacity) : NULL, t->used < t->capacity ? t->capacity - t->used : 0,
                    format, arguments);
  va_end(arguments);
  if (n > 0) t->used += (size_t)n;
}

static const char *precision_name(fmm_precision p) {
  static const char *const names[] = {"auto", "double", "mixed", "single"};
  return names[p];
}

static void say_phases(text *t, const fmm_setup *s) {
  say(t, "phase   device  precision  predicted s  measured s  hardware limit s\n");
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    const fmm_plan_info *i = &s->info;
    say(t, "%-7s %-7s %-9s %12.3e %11.3e %17.3e\n", fmm_phase_names[phase], i->device[phase] == FMM_DEVICE_GPU ? "gpu" : "cpu", precision_name(i->precision[phase]),
        i->phase_predicted_s[phase], i->phase_measured_s[phase], i->phase_limit_s[phase]);
  }
  if (s->n_nested) say(t, "%d cluster%s after them, on the cpu: predicted %.3e s, measured %.3e s\n", s->info.n_clusters, s->n_nested == 1 ? "" : "s", s->info.clusters_predicted_s, s->info.clusters_measured_s);
}

static void say_schedules(text *t, const fmm_setup *s) {
  fmm_schedule_outcome outcome[FMM_MAX_SCHEDULES];
  const int n = fmm_schedule_evaluate_all(&s->costs, &s->precisions, outcome);
  for (int k = 0; k < n; k++) {
    const fmm_schedule *schedule = outcome[k].schedule;
    const int chosen = schedule->kind == s->assignment.kind;
    const fmm_makespan *makespan = chosen ? &s->makespan : &outcome[k].makespan;
    if (makespan->feasible) say(t, "schedule %-8s %.3e s%s\n", schedule->name, makespan->seconds, chosen ? "  <- chosen" : "");
    else say(t, "schedule %-8s cannot run: %s\n", schedule->name, makespan->reason ? makespan->reason : "no device");
  }
}

fmm_status fmm_plan_explain(const fmm_plan *plan, char *buffer, size_t capacity, size_t *needed) {
  FMM_OWN_ARITHMETIC();
  if (!plan || (!buffer && capacity)) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_explain: %s is NULL", plan ? "buffer" : "plan");
  if (!plan->setup) return FMM_FAIL(FMM_ERR_ARGUMENT, "this plan has no points; call fmm_plan_set_points first");
  const fmm_setup *s = plan->setup;
  const fmm_plan_info *i = &s->info;
  text t = {capacity ? buffer : NULL, capacity, 0};
  char order[80] = "direct sums only, no order";
  if (i->order && isnan(i->expected_error)) fmm_format(order, sizeof order, "order %d (%d surface points)", i->order, fmm_surface_size(i->order));
  else if (i->order) fmm_format(order, sizeof order, "order %d (%d surface points, error of about %.1e expected)", i->order, fmm_surface_size(i->order), i->expected_error);
  say(&t, "plan %s: kernel %s, tolerance %g, %s\n", i->plan_id, plan->pair->info->name, plan->asked_tolerance,
      plan->options.gradient ? "potential and gradient" : "potential");
  if (plan->tightened > 1) say(&t, "planned for %.1e, since results of a plan for less did not keep the tolerance\n", plan->options.tolerance);
  say(&t, "%lld sources, %lld targets; %s; leaf size %d, root scale %.4g%s: %lld leaves, %lld boxes, %d levels%s\n", (long long)i->n_sources,
      (long long)i->n_targets, order, i->leaf_size, i->root_scale, s->kept_choice ? " (kept since the points moved)" : "", (long long)i->n_leaves, (long long)i->n_boxes, i->n_levels,
      s->n_nested ? ", clusters below the finest cell" : "");
  int works = fmm_dispatch_uses(plan->setup, FMM_DEVICE_CPU) || plan->setup->n_nested;
  const char *refusal = !works && s->gpu ? "all phases run on the GPU" : plan->binding ? fmm_binding_refusal(plan->binding) : "that was not asked";
  say(&t, "%d threads, %s%s%s; %.1f MB on the host; machine profile: %s\n", i->threads, refusal ? "not bound (" : "bound one to a core while it works",
      refusal ? refusal : "", refusal ? ")" : "", (double)i->host_bytes / 1e6,
      i->profile_path[0] ? i->profile_path : "none, nominal rates (fmm-calibrate measures this machine)");
  if (s->regularity != FMM_POINTS_IRREGULAR)
    say(&t, "points %s: errors there add up, so order and precision are chosen for that\n", s->regularity == FMM_POINTS_ON_LATTICE ? "about as even as a lattice's" : "along curves");
  say_phases(&t, s);
  say_schedules(&t, s);
  say(&t, "predicted %.3e s%s\n", i->predicted_s, i->last_evaluation_s > 0 ? "" : ", not run yet");
  if (i->last_evaluation_s > 0) say(&t, "latest evaluation %.3e s\n", i->last_evaluation_s);
  if (needed) *needed = t.used + 1;
  return FMM_OK;
}
