/* Spans of an execution and their Chrome trace text ("Trace Event Format", complete events, times in microseconds). */
#include "trace.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "io/number.h"
#include "memory.h"

double fmm_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fmm_trace_clear(fmm_trace *trace) { trace->n = 0; }

void fmm_trace_add(fmm_trace *trace, const char *track, const char *name, double begin_s, double end_s) {
  if (trace->n >= FMM_TRACE_SPANS) return;
  fmm_span *s = &trace->span[trace->n++];
  snprintf(s->name, sizeof s->name, "%s", name);
  snprintf(s->track, sizeof s->track, "%s", track);
  s->begin_s = begin_s;
  s->end_s = end_s;
}

static int track_number(const fmm_trace *trace, const char *track) {
  for (int i = 0;; i++)
    if (!strcmp(trace->span[i].track, track)) return i + 1; /* the first span of a track numbers it */
}

fmm_status fmm_trace_json(const fmm_trace *trace, char **text, size_t *length) {
  enum { LINE = 256 };
  size_t capacity = (size_t)(2 * trace->n + 2) * LINE, used;
  char *out = NULL;
  FMM_TRY(FMM_ALLOCATE(&out, capacity, "the trace text"));
  used = (size_t)snprintf(out, capacity, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
  double start = trace->n ? trace->span[0].begin_s : 0;
  for (int i = 1; i < trace->n; i++)
    if (trace->span[i].begin_s < start) start = trace->span[i].begin_s;
  for (int i = 0; i < trace->n; i++) {
    const fmm_span *s = &trace->span[i];
    int track = track_number(trace, s->track);
    if (track == i + 1)
      used += (size_t)snprintf(out + used, capacity - used, "%s\n{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"thread_name\", \"args\": {\"name\": \"%s\"}}",
                               i ? "," : "", track, s->track);
    used += (size_t)fmm_format(out + used, capacity - used, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"name\": \"%s\", \"ts\": %.3f, \"dur\": %.3f}", track,
                             s->name, 1e6 * (s->begin_s - start), 1e6 * (s->end_s - s->begin_s));
  }
  used += (size_t)snprintf(out + used, capacity - used, "\n]}\n");
  *text = out;
  *length = used;
  return FMM_OK;
}
