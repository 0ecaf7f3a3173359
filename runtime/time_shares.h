/* What work that ran beside other work on one device took of it. Streams of a GPU show from when to when a phase had the device for itself or shared it, and a phase that waits behind another one's
 * blocks shows their time too: up beside U's 3.5 ms shows 3.5 ms for its 0.2. So the time in which several are under way is shared out among them, all of it, as near as can be to what is foretold for each:
 * so that the shares that are most above what is foretold are as little above as possible, then those that follow. All shares together are the time in which anything is under way. */
#ifndef FMM_TIME_SHARES_H
#define FMM_TIME_SHARES_H

enum { FMM_MOST_UNDER_WAY = 12 }; /* works: all their sets are looked at */

/* From when to when it was under way (end <= begin: it was not), and how long it is foretold to take alone; units of one's own. */
typedef struct fmm_under_way { double begin, end, foretold; } fmm_under_way;

/* share[i]: what work i of n, FMM_MOST_UNDER_WAY at most, took of the device. Of a time in which something is under way of which nothing is foretold (not above 1e-200, not finite), all that is under way has equal shares. */
void fmm_time_shares(int n, const fmm_under_way *work, double *share);
#endif
