/* Memory of the system in multiples of 2 MB, cut and joined: where memory.c takes blocks from while somebody holds (memory.h). The system clears every page that it gives, and a page that nobody
 * had for a while may have to come from the host of a virtual machine: that takes longer than most uses, so what one step frees serves the next. */
#ifndef FMM_POOL_H
#define FMM_POOL_H
#include <stddef.h>

/* Sizes are multiples of FMM_ALIGNMENT, as places are. NULL: the system has none. */
void *fmm_pool_take(size_t bytes);
/* Back to the pool; whole pages of 2 MB to the system unless somebody holds, or keeps them. */
void fmm_pool_put(void *block, size_t bytes);
void fmm_pool_hold(int threads);
/* What a holder will need in all, where the pool has nothing yet: so much comes at once, and is touched by its team, when it asks next. */
void fmm_pool_expect(size_t bytes);
void fmm_pool_release(void);
/* What is free now. Of what nobody keeps yet at most so many bytes, in whole pages, stay when nobody holds, for the next who do, instead of those that who asks kept before. Returns how many. */
size_t fmm_pool_unused(void);
size_t fmm_pool_keep(size_t before, size_t most);
int fmm_pool_is_held(void);
/* Whole pages that are free go to the system; nonzero if there were any. */
int fmm_pool_give_back(void);
#endif
