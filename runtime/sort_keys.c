/* The sort of keys alone (sort.h), which moves half of the bytes and ends with a network where the processor has vectors for it. */
#include "sort.h"
#include "sort_network.h"

#define ITEM uint64_t
#define KEY_OF(item) (item)
#define SORT fmm_sort_keys
#define NETWORK_MOST fmm_sort_network_most()
#define NETWORK fmm_sort_network
#define BY_LINES 1
#include "sort_body.h"
