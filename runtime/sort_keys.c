/* The sort of keys alone (sort.h), which moves half of the bytes. */
#include "sort.h"

#define ITEM uint64_t
#define KEY_OF(item) (item)
#define SORT fmm_sort_keys
#include "sort_body.h"
