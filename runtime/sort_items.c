/* The sort of keys with rows (sort.h). */
#include "sort.h"

#define ITEM fmm_sort_item
#define KEY_OF(item) ((item).key)
#define SORT fmm_sort_items
#define NETWORK_MOST 0
#define BY_LINES 0 /* gains nothing */
#define NETWORK(from, to, n) ((void)0)
#include "sort_body.h"

void fmm_sort_items_serial(fmm_sort_item *items, fmm_sort_item *scratch, int64_t n) { sort_bucket(items, scratch, n, 0, 0); }
