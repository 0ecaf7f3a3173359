/* e^{2 pi i j / L} as constants of the code, so that V's transforms (vlist_fixed_cuda.h) read none: by the series, of an angle brought to at most an eighth of a turn. */
#ifndef FMM_VLIST_TURNS_CUDA_H
#define FMM_VLIST_TURNS_CUDA_H

namespace {
template <int L>
struct turn {
  static constexpr double PI = 3.14159265358979323846;
  static constexpr double series(double x, int first) { /* cos from 0 on, sin from 1 on */
    double term = first ? x : 1, sum = 0;
    for (int n = first + 1; n < 24; n += 2) sum += term, term *= -x * x / (n * (n + 1));
    return sum;
  }
  static constexpr double eighths(int j) { return 8.0 * j / L; }
  /* first 0: cos, 1: sin, of x eighths of a turn, 0 <= x < 8 */
  static constexpr double value(double x, int first) {
    if (x > 4) return (first ? -1 : 1) * value(8 - x, first);
    if (x > 2) return (first ? 1 : -1) * value(4 - x, first);
    return x > 1 ? series((2 - x) * PI / 4, !first) : series(x * PI / 4, first);
  }
  static constexpr double cos(int j) { return value(eighths(j), 0); }
  static constexpr double sin(int j) { return value(eighths(j), 1); }
};
template <int L>
struct turns {
  double cos[L], sin[L];
  constexpr turns() : cos(), sin() {
    for (int j = 0; j < L; j++) cos[j] = turn<L>::cos(j), sin[j] = turn<L>::sin(j);
  }
};
template <int L> __device__ constexpr turns<L> all_turns{};
}
#endif
