/* The registry of the pair interactions' GPU code, from the generated list. */
#include "runtime/gpu/gpu_cuda.h"

#define FMM_PAIR_INFO(name) static constexpr fmm_pair_info info_##name
#define FMM_PAIR_INFO_PASS
extern "C" {
#include "kernels/fmm_pair_list.h"
}
#undef FMM_PAIR_INFO_PASS

#define DECLARE(name)                       \
  extern "C" fmm_cuda_pair_launch fmm_cuda_pair_##name; \
  extern "C" int fmm_cuda_most_##name(int gradient, int points, int columns);
FMM_PAIR_LIST(DECLARE)

static const struct { const char *name; fmm_cuda_pair_launch *launch; int (*most)(int gradient, int points, int columns); } pairs[] = {
#define ENTRY(pair) {info_##pair.name, fmm_cuda_pair_##pair, fmm_cuda_most_##pair},
    FMM_PAIR_LIST(ENTRY)};

fmm_cuda_pair_launch *fmm_cuda_pair_find(const fmm_pair_info *info) {
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (!strcmp(pairs[i].name, info->name)) return pairs[i].launch;
  return NULL;
}

int fmm_cuda_pair_most(const fmm_gpu_plan *plan, fmm_cuda_sum sum) {
  int to_points = sum != FMM_SUM_P2M && sum != FMM_SUM_X;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (!strcmp(pairs[i].name, plan->info->name)) return pairs[i].most(plan->gradient && to_points, sum == FMM_SUM_U, plan->columns);
  return 1;
}
