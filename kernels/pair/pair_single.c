/* Vectorised pair kernels in single precision with double sums, and the conversion of points and densities for them. */
#define FMM_PAIR_VARIANT single
#define FMM_SINGLE
#include "kernels/pair/pair_kernel.h"

/* Rounding to an integer by adding 1.5 * 2^52, which all instruction sets can. */
static void to_quanta(int64_t n, const double *in, double centre, double quanta_per_unit, int32_t *out) {
  for (int64_t i = 0; i < n; i++) out[i] = (int32_t)((in[i] - centre) * quanta_per_unit + 0x1.8p52 - 0x1.8p52);
}

static void to_floats(int64_t n, const double *in, double centre, double quanta_per_unit, float *out) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)((in[i] - centre) * quanta_per_unit);
}

static void to_float(int64_t n, const double *in, double factor, float *out) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)(in[i] * factor);
}

static void widen(int64_t n, const double *in, double range[2]) {
  enum { PARTS = 8 }; /* independent, so that they become vectors */
  double low[PARTS], high[PARTS];
  for (int k = 0; k < PARTS; k++) low[k] = range[0], high[k] = range[1];
  int64_t i = 0;
  for (; i + PARTS <= n; i += PARTS)
    for (int k = 0; k < PARTS; k++) {
      low[k] = in[i + k] < low[k] ? in[i + k] : low[k];
      high[k] = in[i + k] > high[k] ? in[i + k] : high[k];
    }
  for (; i < n; i++) {
    low[0] = in[i] < low[0] ? in[i] : low[0];
    high[0] = in[i] > high[0] ? in[i] : high[0];
  }
  for (int k = 0; k < PARTS; k++) {
    range[0] = low[k] < range[0] ? low[k] : range[0];
    range[1] = high[k] > range[1] ? high[k] : range[1];
  }
}

#define CONVERT_(suffix) fmm_pair_convert_##suffix
#define CONVERT(suffix) CONVERT_(suffix)
const fmm_pair_convert CONVERT(FMM_SIMD_SUFFIX) = {to_quanta, to_floats, to_float, widen};
