/* Numbers in text: decimal point whatever the locale says, correctly rounded, no allocation, no need of a terminating 0. */
#ifndef FMM_IO_NUMBER_H
#define FMM_IO_NUMBER_H
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* The number that fills [begin, end) wholly; nonzero when it is one. Decimal notation with optional exponent, or nan, inf, infinity
 * (any case, signed); too large gives infinity, too small zero. */
int fmm_parse_number(const char *begin, const char *end, double *value);
/* A non-negative decimal integer that fills [begin, end); zero when it is none or exceeds INT64_MAX. */
int fmm_parse_count(const char *begin, const char *end, int64_t *value);
/* snprintf and vsnprintf whose numbers have decimal points whatever the locale. */
int fmm_format_arguments(char *text, size_t size, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));
int fmm_format(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* %.17g with a decimal point whatever the locale; returns the length, fewer than 32 characters. */
int fmm_format_number(char text[32], double value);
#endif
