/* Huge pages for large blocks, as long as the system has them soon. */
#ifndef FMM_HUGE_PAGES_H
#define FMM_HUGE_PAGES_H
#include <stddef.h>

#define FMM_HUGE_PAGE ((size_t)2 << 20)

/* Asks for huge pages in a range of the system's memory that begins and ends with one, and touches all of them by a team of so many threads, or, where team is 0, up to three, which tell whether they come soon. Where they
 * do not, the rest of the range comes in small ones, as do those that are asked for in the next seconds. What was in the range is lost where it was touched. */
void fmm_huge_pages_ask(char *first, size_t bytes, int team);
/* Nothing is known of how soon they come: when some seconds have passed, and for tests. */
void fmm_huge_pages_forget(void);
#endif
