/* Threads bound one to a core while a plan works, so that none moves away from its caches and from the memory that it touched first; afterwards
 * every thread has its own mask back. Cores by hwloc; begin and end allocate nothing. Bound only where that takes nothing from anybody:
 *   - no variable of the OpenMP environment asks for a binding, or for none, and all threads of the team have the calling thread's mask, so that
 *     nobody has placed them;
 *   - the mask holds as many cores, or as many hardware threads, as the team has threads: a smaller team shares its mask with others, who might
 *     choose the same cores;
 *   - no other plan is bound in this process, and the call does not come from a parallel region.
 * Bits of results never depend on it. Reference: Broquedis et al., hwloc, PDP 2010. */
#ifndef FMM_BINDING_H
#define FMM_BINDING_H
#include "status.h"

typedef struct fmm_binding fmm_binding;

/* For teams of this many threads. Nothing is bound yet. */
fmm_status fmm_binding_create(fmm_binding **binding, int threads);
void fmm_binding_destroy(fmm_binding **binding);

/* Binds the team, or does nothing. The calling thread, which is one of the team, stays unbound unless bind_caller is set: whatever threads it
 * starts (a device driver's) inherit its mask; it goes to its place and is free again once the others are at theirs, one of which may have been bound where it ran. NULL is allowed. Both are called by the same thread, and between them no team of another size but 1 runs. */
void fmm_binding_begin(fmm_binding *binding, int bind_caller);
void fmm_binding_end(fmm_binding *binding);

/* Of the latest begin: NULL when it bound, else why it did not, for people. */
const char *fmm_binding_refusal(const fmm_binding *binding);
#endif
