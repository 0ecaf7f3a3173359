/* Whether a profile's predictions are worth anything: other work on a node while it was measured shows in the errors on held-out runs. It does
 * not show in the rates' spreads, which are small where every run was disturbed, and large on any shared host. */
#ifndef FMM_TRUST_H
#define FMM_TRUST_H
#include "model/machine.h"

/* The worst median error on held-out runs, of a phase on a device that had at least three, or as many as any there had; above one half predictions are
 * not to be trusted. Nor are they where sums with gradients or of another accuracy were measured at more than four times, or less than a fourth of, what others take, mostly by a few runs. Nonzero, and `line`
 * (capacity bytes) says which, by how much and what to do. */
int fmm_machine_doubt(const fmm_machine *machine, char *line, size_t capacity);
#endif
