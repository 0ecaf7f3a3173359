/* Whole lines of memory written past the caches, where the processor can: what is read much later need not be read from memory before it is written, nor push out what is needed now. */
#ifndef FMM_PAST_CACHES_H
#define FMM_PAST_CACHES_H
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { FMM_LINE_BYTES = 64 };

/* to: best a line's begin, at least a multiple of 16; line: anywhere. */
static inline void fmm_write_line(void *to, const void *line) {
#ifdef __SSE2__
  for (int i = 0; i < FMM_LINE_BYTES / 16; i++) _mm_stream_si128((__m128i *)to + i, _mm_loadu_si128((const __m128i *)line + i));
#else
  memcpy(to, line, FMM_LINE_BYTES);
#endif
}

/* By who wrote them, before others read. */
static inline void fmm_lines_written(void) {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

/* to: a multiple of 16, best a line's begin. A device that reads memory by the bus reads so written sooner than what a core still holds. */
static inline void fmm_copy_past_caches(char *to, const char *from, size_t bytes) {
  for (; bytes >= FMM_LINE_BYTES; to += FMM_LINE_BYTES, from += FMM_LINE_BYTES, bytes -= FMM_LINE_BYTES) fmm_write_line(to, from);
  fmm_lines_written();
  memcpy(to, from, bytes);
}
#endif
