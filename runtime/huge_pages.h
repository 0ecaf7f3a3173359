/* Huge pages for large blocks, as long as the system has them soon. */
#ifndef FMM_HUGE_PAGES_H
#define FMM_HUGE_PAGES_H
#include <stddef.h>

#define FMM_HUGE_PAGE ((size_t)2 << 20)

/* Asks for huge pages in a range that begins and ends with one, of blocks that nobody uses yet, and touches all of them by a team of so many threads, or, where team is 0, one to three, which tell whether they come
 * soon. Where they do not, the rest of the range is left to the system, and so are those that are asked for in the next seconds; a range of the caller's own mapping (is_mapped) is told to come in small pages then. */
void fmm_huge_pages_ask(char *first, size_t bytes, int team, int is_mapped);
/* Forgets how soon they came: when that is some seconds old, and for tests. */
void fmm_huge_pages_forget(void);
#endif
