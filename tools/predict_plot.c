/* The picture of a prediction: an SVG of its own making. Above, the seconds of every phase on every device; below, one timeline a schedule
 * (CPU and GPU lanes) on a common scale. Layout: a column of labels at the left, bars from LEFT to LEFT + WIDTH. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predict.h"
#include "runtime/file.h"

enum { LEFT = 110, WIDTH = 620, RIGHT = 170, LANE = 16, GAP = 6, TITLE = 26 };

static const char *const colours[FMM_N_PHASES] = {"#4878a8", "#d1605e", "#6a9f58", "#e7ca60", "#a87c9f", "#85b6b2"};
static const char *const device_labels[FMM_N_DEVICES] = {"cpu", "gpu"};

typedef struct plot { fmm_replacement file; double y, scale; } plot; /* scale: pixels a second */

/* Text inside an element: the five characters of XML, and nothing below a blank. */
static void escape(const char *from, char *to, size_t capacity) {
  size_t used = 0;
  for (; *from && used + 8 < capacity; from++) {
    const char *entity = *from == '&' ? "&amp;" : *from == '<' ? "&lt;" : *from == '>' ? "&gt;" : *from == '"' ? "&quot;" : NULL;
    if (entity) used += (size_t)snprintf(to + used, capacity - used, "%s", entity);
    else to[used++] = (unsigned char)*from < ' ' || (unsigned char)*from > 126 ? '?' : *from;
  }
  to[used] = 0;
}

static fmm_status label(plot *p, double x, const char *anchor, const char *weight, const char *text) {
  char safe[1024];
  escape(text, safe, sizeof safe);
  return fmm_replace_printf(&p->file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-weight=\"%s\">%s</text>\n", x, p->y + LANE - 4, anchor, weight, safe);
}

static fmm_status bar(plot *p, double begin_s, double end_s, int phase) {
  double width = fmax((end_s - begin_s) * p->scale, 0.5);
  return fmm_replace_printf(&p->file, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>%s %.4g s</title></rect>\n",
                            LEFT + begin_s * p->scale, p->y, width, LANE - 2, colours[phase], fmm_phase_names[phase], end_s - begin_s);
}

static double phase_seconds(const fmm_predicted *p, int phase, int device) {
  double s, interval[2];
  fmm_forecast_phase(&p->forecast, (fmm_phase)phase, (fmm_device)device, &s, interval);
  return s;
}

static fmm_status draw_phases(plot *p, const fmm_predicted *predicted) {
  double most = 0;
  char text[64];
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int d = 0; d < FMM_N_DEVICES; d++) most = fmax(most, phase_seconds(predicted, phase, d)); /* fmax passes NaN over */
  p->scale = most > 0 ? WIDTH / most : 0;
  FMM_TRY(label(p, 0, "start", "bold", "Phases on each device"));
  p->y += TITLE;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int d = 0; d < FMM_N_DEVICES; d++) {
      double s = phase_seconds(predicted, phase, d);
      if (isnan(s)) continue;
      snprintf(text, sizeof text, "%s, %s", fmm_phase_names[phase], device_labels[d]);
      FMM_TRY(label(p, LEFT - GAP, "end", "normal", text));
      FMM_TRY(bar(p, 0, s, phase));
      snprintf(text, sizeof text, "%.3g s", s);
      FMM_TRY(label(p, LEFT + s * p->scale + GAP, "start", "normal", text));
      p->y += LANE;
    }
  p->y += TITLE;
  return FMM_OK;
}

static fmm_status draw_timeline(plot *p, const fmm_schedule_outcome *o, int chosen) {
  const fmm_makespan *m = &o->makespan;
  char text[128];
  snprintf(text, sizeof text, m->feasible ? "%.4g s%s" : "cannot run", m->seconds, chosen ? ", chosen" : "");
  FMM_TRY(label(p, 0, "start", "bold", o->schedule->name));
  FMM_TRY(label(p, LEFT + (m->feasible ? m->seconds * p->scale : 0) + GAP, "start", chosen ? "bold" : "normal", text));
  for (int d = 0; d < FMM_N_DEVICES && m->feasible; d++) {
    if (!(m->device_busy_s[d] > 0)) continue;
    FMM_TRY(label(p, LEFT - GAP, "end", "normal", device_labels[d]));
    for (int phase = 0; phase < FMM_N_PHASES; phase++)
      if (!isnan(m->phase_start_s[phase][d])) FMM_TRY(bar(p, m->phase_start_s[phase][d], m->phase_end_s[phase][d], phase));
    p->y += LANE;
  }
  p->y += m->feasible ? GAP : LANE + GAP;
  return FMM_OK;
}

static fmm_status draw_schedules(plot *p, const fmm_forecast *f) {
  double most = 0;
  for (int i = 0; i < f->n_schedules; i++)
    if (f->schedule[i].makespan.feasible) most = fmax(most, f->schedule[i].makespan.seconds);
  p->scale = most > 0 ? WIDTH / most : 0;
  FMM_TRY(label(p, 0, "start", "bold", "Schedules"));
  p->y += TITLE;
  for (int i = 0; i < f->n_schedules; i++) FMM_TRY(draw_timeline(p, &f->schedule[i], f->schedule[i].schedule->kind == f->tuned.assignment.kind));
  return FMM_OK;
}

static fmm_status draw_legend(plot *p) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    FMM_TRY(fmm_replace_printf(&p->file, "<rect x=\"%d\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", LEFT + 90 * phase, p->y + 2, colours[phase]));
    FMM_TRY(label(p, LEFT + 90 * phase + 18, "start", "normal", fmm_phase_names[phase]));
  }
  p->y += TITLE;
  return FMM_OK;
}

static fmm_status draw(plot *p, const fmm_prediction_run *run) {
  const fmm_predicted *predicted = &run->predicted;
  const fmm_device_rates *cpu = &predicted->machine.device[FMM_DEVICE_CPU], *gpu = &predicted->machine.device[FMM_DEVICE_GPU];
  char title[512], name[32];
  int rows = FMM_N_PHASES * FMM_N_DEVICES + 2 * predicted->forecast.n_schedules, height = 6 * TITLE + rows * LANE + predicted->forecast.n_schedules * (GAP + LANE);
  const fmm_case_options *o = &run->options.c;
  snprintf(title, sizeof title, "%s, %lld points of %s, %.2g asked, on %s%s%s", run->data.pair->name, (long long)run->data.n_points,
           o->file ? o->file : fmm_cli_choice(FMM_DISTRIBUTIONS, o->generate, name), fmm_case_tolerance(o), cpu->name, gpu->present ? " and " : "",
           gpu->present ? gpu->name : "");
  FMM_TRY(fmm_replace_printf(&p->file,
                             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                             "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", LEFT + WIDTH + RIGHT, height));
  p->y = GAP;
  FMM_TRY(label(p, 0, "start", "normal", title));
  p->y += TITLE;
  FMM_TRY(draw_legend(p));
  FMM_TRY(draw_phases(p, predicted));
  FMM_TRY(draw_schedules(p, &predicted->forecast));
  return fmm_replace_printf(&p->file, "</svg>\n");
}

fmm_status fmm_predict_plot(const fmm_prediction_run *run, const char *path) {
  plot p = {.y = 0};
  FMM_TRY(fmm_replace_begin(&p.file, path));
  fmm_status status = draw(&p, run);
  if (status == FMM_OK) return fmm_replace_commit(&p.file);
  fmm_replace_abandon(&p.file);
  return status;
}
