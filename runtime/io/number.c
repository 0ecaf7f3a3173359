/* Fast path: up to 19 digits whose integer is below 2^53 and a power of ten within 10^22 are exact in double, so one multiplication
 * or division rounds correctly (Clinger, PLDI 1990). Everything else goes to the C library in the "C" locale. */
#include "number.h"

#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;
static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static locale_t the_c_locale(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_c_locale);
  return c_locale;
}

enum { LONGEST_NUMBER = 1100 }; /* a double's exact decimal expansion has fewer than 1,100 characters */

static int slow_number(const char *begin, const char *end, double *value) {
  char text[LONGEST_NUMBER], *stop;
  size_t n = (size_t)(end - begin);
  if (n == 0 || n >= sizeof text || memchr(begin, 0, n)) return 0;
  for (const char *p = begin; p < end; p++) /* no hexadecimal, no "nan(...)", no leading blanks */
    if (*p == 'x' || *p == 'X' || *p == '(' || *p == ' ' || (*p >= '\t' && *p <= '\r')) return 0;
  memcpy(text, begin, n);
  text[n] = 0;
  *value = strtod_l(text, &stop, the_c_locale());
  return stop == text + n;
}

static const double power_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Reads digits into *mantissa, at most 19 in all; *digits counts them. */
static const char *read_digits(const char *p, const char *end, uint64_t *mantissa, int *digits) {
  for (; p < end && *p >= '0' && *p <= '9' && *digits < 20; p++, ++*digits) *mantissa = 10 * *mantissa + (uint64_t)(*p - '0');
  return p;
}

static const char *read_exponent(const char *p, const char *end, int *exponent) {
  int negative = 0, digits = 0, e = 0;
  if (p == end || (*p != 'e' && *p != 'E')) return p;
  if (++p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  for (; p < end && *p >= '0' && *p <= '9' && digits < 5; p++, digits++) e = 10 * e + (*p - '0');
  if (!digits) return NULL;
  *exponent += negative ? -e : e;
  return p;
}

int fmm_parse_number(const char *begin, const char *end, double *value) {
  const char *p = begin;
  int negative = 0, digits = 0, exponent = 0;
  uint64_t mantissa = 0;
  if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  p = read_digits(p, end, &mantissa, &digits);
  if (p < end && *p == '.') {
    int before = digits;
    p = read_digits(p + 1, end, &mantissa, &digits);
    exponent = before - digits;
  }
  p = digits ? read_exponent(p, end, &exponent) : NULL;
  if (p != end || digits > 19 || mantissa > (uint64_t)1 << 53 || exponent < -22 || exponent > 22) return slow_number(begin, end, value);
  double v = exponent < 0 ? (double)mantissa / power_of_ten[-exponent] : (double)mantissa * power_of_ten[exponent];
  *value = negative ? -v : v;
  return 1;
}

int fmm_parse_count(const char *begin, const char *end, int64_t *value) {
  int64_t n = 0;
  if (begin == end) return 0;
  for (const char *p = begin; p < end; p++)
    if (*p < '0' || *p > '9' || __builtin_mul_overflow(n, (int64_t)10, &n) || __builtin_add_overflow(n, (int64_t)(*p - '0'), &n)) return 0;
  *value = n;
  return 1;
}

int fmm_format_arguments(char *text, size_t size, const char *format, va_list arguments) {
  locale_t before = uselocale(the_c_locale());
  int n = vsnprintf(text, size, format, arguments);
  uselocale(before);
  return n;
}

int fmm_format(char *text, size_t size, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int n = fmm_format_arguments(text, size, format, arguments);
  va_end(arguments);
  return n;
}

int fmm_format_number(char text[32], double value) { return fmm_format(text, 32, "%.17g", value); }
