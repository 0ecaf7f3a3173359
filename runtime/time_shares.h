/* What work that ran beside other work on one device took of it. Streams of a GPU show from when to when a phase had the device for itself or shared it, and a phase that waits behind another one's
 * blocks shows their time too: up beside U's 3.5 ms shows 3.5 ms for its 0.2. So the time in which several are under way is shared out among them as it is foretold for each, and all shares together are the time
 * in which any is. */
#ifndef FMM_TIME_SHARES_H
#define FMM_TIME_SHARES_H

/* From when to when it was under way (end <= begin: it was not), and how long it is foretold to take alone; units of one's own. */
typedef struct fmm_under_way { double begin, end, foretold; } fmm_under_way;

/* share[i]: what work i took of the device. Where some of what is under way together has nothing foretold (not positive, not finite), all of it have equal shares. */
void fmm_time_shares(int n, const fmm_under_way *work, double *share);
#endif
