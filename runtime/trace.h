/* The timeline of one execution: spans on tracks, in preallocated room, written as Chrome trace JSON (Perfetto opens it). */
#ifndef FMM_TRACE_H
#define FMM_TRACE_H
#include "status.h"

enum { FMM_TRACE_SPANS = 256, FMM_TRACE_NAME = 32 };

typedef struct fmm_span { char name[FMM_TRACE_NAME], track[FMM_TRACE_NAME]; double begin_s, end_s; } fmm_span;
typedef struct fmm_trace { int n; fmm_span span[FMM_TRACE_SPANS]; } fmm_trace;

double fmm_now_s(void); /* monotonic clock, seconds */
void fmm_trace_clear(fmm_trace *trace);
/* Times on the clock of fmm_now_s; spans beyond the room are dropped. */
void fmm_trace_add(fmm_trace *trace, const char *track, const char *name, double begin_s, double end_s);
/* Text of the JSON, zero-terminated, to be released with FMM_FREE. Tracks become threads, named. */
fmm_status fmm_trace_json(const fmm_trace *trace, char **text, size_t *length);
#endif
