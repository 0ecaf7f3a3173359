/* Sorts against the C library's: networks of every size, keys and items of every kind of input, with the vectors of every processor. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/simd.h"
#include "runtime/memory.h"
#include "runtime/sort.h"
#include "runtime/sort_network.h"
#include "tests/random.h"
#include "tests/test.h"

static uint64_t random_bits(int n) { return n ? (uint64_t)(uniform() * 0x1p53) << 11 >> (64 - n) | (n > 53 ? (uint64_t)(uniform() * 0x1p11) : 0) : 0; }

static int compare_keys(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* By key, then as they were. */
static int compare_items(const void *a, const void *b) {
  const fmm_sort_item *x = a, *y = b;
  return x->key != y->key ? compare_keys(&x->key, &y->key) : compare_keys(&x->row, &y->row);
}

/* Zeros and ones tell whether a network sorts at all (Knuth, vol. 3, 5.3.4); others whether it keeps what it sorts. The greatest key fills up rows. */
static uint64_t a_key(int kind) {
  switch (kind) {
    case 0: return random_bits(1);
    case 1: return uniform() < 0.1;
    case 2: return uniform() < 0.9 ? UINT64_MAX : UINT64_MAX - 1;
    case 3: return random_bits(3) << 61;
    default: return random_bits(64);
  }
}

enum { KINDS = 5, MOST = 128, GUARD = 16 };

static void networks_sort(void **state) {
  (void)state;
  int most_of_all = 0;
  const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  char *page = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(page != MAP_FAILED && !mprotect(page + page_bytes, page_bytes, PROT_NONE));
  for (int simd = 0; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    const int most = fmm_sort_network_most();
    assert_true(most <= MOST);
    if (most > most_of_all) most_of_all = most;
    for (int n = 1; n <= most; n++)
      for (int trial = 0; trial < 40 * KINDS; trial++) {
        uint64_t to[MOST + GUARD], sorted[MOST];
        uint64_t *from = (uint64_t *)(page + page_bytes) - n; /* nothing can be read past its end */
        for (int i = 0; i < n; i++) from[i] = sorted[i] = a_key(trial % KINDS);
        memset(to, 0x5a, sizeof to);
        qsort(sorted, (size_t)n, sizeof *sorted, compare_keys);
        fmm_sort_network(from, to, n);
        assert_memory_equal(to, sorted, (size_t)n * sizeof *sorted);
        for (int i = n; i < n + GUARD; i++) assert_true(to[i] == 0x5a5a5a5a5a5a5a5au);
        fmm_sort_network(from, from, n);
        assert_memory_equal(from, sorted, (size_t)n * sizeof *sorted);
      }
  }
  fmm_simd_cap(FMM_SIMD_AVX512);
  munmap(page, 2 * page_bytes);
  if (!most_of_all) skip();
}

/* Columns of 16 rows at most: one column of all zeros and ones at once, the others ones, so that the merges have nothing to mend. */
static void columns_of_all_zeros_and_ones_are_sorted(void **state) {
  (void)state;
  if (!fmm_sort_network_most()) skip();
  for (int simd = FMM_SIMD_AVX2; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    const int n = fmm_sort_network_most(), lanes = n / 16;
    for (unsigned bits = 0; n && bits < 1u << 16; bits++) {
      uint64_t keys[MOST];
      int ones = 0;
      for (int i = 0; i < n; i++) keys[i] = 1;
      for (int row = 0; row < 16; row++) keys[row * lanes + bits % (unsigned)lanes] = bits >> row & 1;
      for (int i = 0; i < n; i++) ones += keys[i] == 1;
      fmm_sort_network(keys, keys, n);
      for (int i = 0; i < n; i++) assert_true(keys[i] == (uint64_t)(i >= n - ones));
    }
  }
  fmm_simd_cap(FMM_SIMD_AVX512);
}

typedef enum shape { UNIFORM, HIGH_BITS, LOW_BITS, FEW, EQUAL, CLUSTERS, ASCENDING, N_SHAPES } shape;

static uint64_t shaped_key(shape s, int64_t i) {
  switch (s) {
    case HIGH_BITS: return random_bits(13) << 51;
    case LOW_BITS: return random_bits(20);
    case FEW: return random_bits(2) * 0x123456789abcdefu;
    case EQUAL: return 42;
    case CLUSTERS: return uniform() < 0.3 ? random_bits(64) : (uint64_t)0xfedcba98 << 32 | random_bits(12);
    case ASCENDING: return (uint64_t)i << 7;
    default: return random_bits(64);
  }
}

/* Keys and items of one shape, on every processor and by one thread and three, in arrays that begin `aside` items from a line of memory. */
static void check_sorts(shape kind, int64_t n, int aside, fmm_simd least) {
  uint64_t *keys, *sorted, *scratch;
  fmm_sort_item *given, *items, *sorted_items, *scratch_items;
  assert_ok(FMM_ALLOCATE(&keys, n + aside, "keys"));
  assert_ok(FMM_ALLOCATE(&sorted, n, "keys"));
  assert_ok(FMM_ALLOCATE(&scratch, n + 2 * aside, "keys"));
  assert_ok(FMM_ALLOCATE(&given, n, "items"));
  assert_ok(FMM_ALLOCATE(&items, n + aside, "items"));
  assert_ok(FMM_ALLOCATE(&sorted_items, n, "items"));
  assert_ok(FMM_ALLOCATE(&scratch_items, n + 2 * aside, "items"));
  for (int64_t i = 0; i < n; i++) given[i] = (fmm_sort_item){shaped_key(kind, i), (uint64_t)i}, sorted[i] = given[i].key, sorted_items[i] = given[i];
  qsort(sorted, (size_t)n, sizeof *sorted, compare_keys);
  qsort(sorted_items, (size_t)n, sizeof *sorted_items, compare_items);
  for (fmm_simd simd = least; simd < FMM_N_SIMD; simd++)
    for (int threads = 1; threads <= 3; threads += 2) {
      fmm_simd_cap(simd);
      for (int64_t i = 0; i < n; i++) keys[aside + i] = given[i].key, items[aside + i] = given[i];
      assert_ok(fmm_sort_keys(keys + aside, scratch + 2 * aside, n, threads));
      assert_memory_equal(keys + aside, sorted, (size_t)n * sizeof *keys);
      if (simd > least) continue; /* items have no vectors */
      assert_ok(fmm_sort_items(items + aside, scratch_items + 2 * aside, n, threads));
      assert_memory_equal(items + aside, sorted_items, (size_t)n * sizeof *items);
    }
  fmm_simd_cap(FMM_SIMD_AVX512);
  FMM_FREE(&keys);
  FMM_FREE(&sorted);
  FMM_FREE(&scratch);
  FMM_FREE(&given);
  FMM_FREE(&items);
  FMM_FREE(&sorted_items);
  FMM_FREE(&scratch_items);
}

static void sorts_agree_with_the_library(void **state) {
  (void)state;
  const int64_t sizes[] = {0, 1, 2, 3, 8, 9, 16, 17, 64, 65, 128, 129, 1000, 8191, 8192, 30000, 200000};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (int s = 0; s < N_SHAPES; s++) check_sorts((shape)s, sizes[k], s % 2, FMM_SIMD_PLAIN);
}

/* Of 8 MB and more keys go by whole lines of memory, and buckets that are too large for one thread from one array to the other and back. */
static void many_are_sorted_by_lines(void **state) {
  (void)state;
  const shape shapes[] = {UNIFORM, CLUSTERS, FEW, HIGH_BITS};
  for (int s = 0; s < 4; s++) check_sorts(shapes[s], 1100003, s, FMM_SIMD_AVX512);
}

/* Buckets of the first pass of just so many items as are sorted in pieces with others, by one thread alone, or by the team once more, and one more and one less; the others are small. */
enum { BOUND_ITEMS = 160000 };
static void fill_by_bounds(uint64_t *key) {
  const int64_t sizes[] = {1 << 14, (1 << 14) + 1, (1 << 14) - 1, BOUND_ITEMS / 4, BOUND_ITEMS / 4 + 1, 1 << 13};
  int64_t n = 0;
  for (uint64_t b = 0; b < sizeof sizes / sizeof *sizes; b++)
    for (int64_t i = 0; i < sizes[b]; i++) key[n++] = (3 * b + 1) << 53 | random_bits(53);
  while (n < BOUND_ITEMS) key[n++] = (1024 + random_bits(10)) << 53 | random_bits(53);
  for (int64_t i = n - 1; i > 0; i--) {
    const int64_t k = (int64_t)(uniform() * (double)(i + 1));
    const uint64_t other = key[k];
    key[k] = key[i], key[i] = other;
  }
}

static void buckets_at_the_bounds_are_sorted(void **state) {
  uint64_t *given, *keys, *sorted, *scratch;
  assert_ok(FMM_ALLOCATE(&given, BOUND_ITEMS, "keys"));
  assert_ok(FMM_ALLOCATE(&keys, BOUND_ITEMS, "keys"));
  assert_ok(FMM_ALLOCATE(&sorted, BOUND_ITEMS, "keys"));
  assert_ok(FMM_ALLOCATE(&scratch, BOUND_ITEMS, "keys"));
  fill_by_bounds(given);
  memcpy(sorted, given, BOUND_ITEMS * sizeof *sorted);
  qsort(sorted, BOUND_ITEMS, sizeof *sorted, compare_keys);
  for (int threads = 1; threads <= 16; threads *= 2) {
    memcpy(keys, given, BOUND_ITEMS * sizeof *keys);
    assert_ok(fmm_sort_keys(keys, scratch, BOUND_ITEMS, threads));
    assert_memory_equal(keys, sorted, BOUND_ITEMS * sizeof *keys);
  }
  FMM_FREE(&given);
  FMM_FREE(&keys);
  FMM_FREE(&sorted);
  FMM_FREE(&scratch);
}

/* Whatever allocation fails is told, and nothing of the sort's own memory stays. */
static void a_sort_without_memory_says_so(void **state) {
  uint64_t *keys, *scratch;
  assert_ok(FMM_ALLOCATE(&keys, BOUND_ITEMS, "keys"));
  assert_ok(FMM_ALLOCATE(&scratch, BOUND_ITEMS, "keys"));
  const size_t before = fmm_memory_now();
  fmm_status status = FMM_ERR_MEMORY;
  int failed = 0;
  for (int nth = 1; status != FMM_OK; nth++) {
    fill_by_bounds(keys);
    for (int64_t i = 0; i < BOUND_ITEMS; i++) keys[i] >>= i % 3 ? 30 : 0; /* most in one bucket, so that there are several passes */
    fmm_memory_fail_at(nth);
    status = fmm_sort_keys(keys, scratch, BOUND_ITEMS, 4);
    fmm_memory_fail_at(0);
    assert_int_equal(fmm_memory_now(), before);
    if (status != FMM_OK) assert_int_equal(status, FMM_ERR_MEMORY), failed++;
  }
  assert_true(failed > 8); /* of each pass its parts, histograms, ends, large buckets and the next pass's segments */
  FMM_FREE(&keys);
  FMM_FREE(&scratch);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(buckets_at_the_bounds_are_sorted), cmocka_unit_test(a_sort_without_memory_says_so), cmocka_unit_test(networks_sort), cmocka_unit_test(columns_of_all_zeros_and_ones_are_sorted), cmocka_unit_test(sorts_agree_with_the_library), cmocka_unit_test(many_are_sorted_by_lines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
