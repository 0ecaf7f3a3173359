/* See parity_block.h. */
#include "kernels/parity_block.h"

/* Orbits of which functions odd along so many axes are not zero everywhere: of odd orders those in these axes' mirror planes are. */
static int orbits_not_in(int odd_axes, int order) {
  const int half = (order + 1) / 2, less = order % 2; /* orbits are the lattice points of an octant, those with no coordinate at its end but one */
  int outer = 1, inner = 1;
  for (int a = 0; a < 3; a++) {
    const int taken = a < odd_axes ? less : 0;
    outer *= half - taken, inner *= half - 1 - taken;
  }
  return outer - inner;
}

int fmm_parity_block_most(fmm_parity parity, int n_components, int order) {
  int most = 0;
  if (parity == FMM_PARITY_NONE) return INT32_MAX;
  for (int chi = 0; chi < FMM_MIRRORS; chi++) {
    int block = 0;
    for (int k = 0; k < n_components; k++) block += orbits_not_in(__builtin_popcount((unsigned)fmm_component_parity(parity, chi, k)), order);
    most = block > most ? block : most;
  }
  return most;
}

int fmm_gpu_parity_block(const fmm_pair_info *pair, int order) {
  static const int block[] = {4, 8, 20, 24, 40, 60, 64, 92, 112};
  const int most = fmm_parity_block_most(pair->parity, pair->equivalent_components, order);
  for (size_t i = 0; i < sizeof block / sizeof *block; i++)
    if (most < block[i]) return block[i];
  return 0;
}
