/* What the node is made of, by hwloc: packages, cores, caches, NUMA nodes, memory. For people (fmm-calibrate --show) and for choosing array sizes
 * of the memory benchmark; the fingerprint itself is runtime/identity.h. */
#ifndef FMM_TOPOLOGY_H
#define FMM_TOPOLOGY_H
#include "runtime/identity.h"

typedef struct fmm_topology {
  fmm_identity identity;
  int packages, numa_nodes;
  int cores, hardware_threads;       /* of the node; identity.cores are those this process may use */
  int64_t l1_bytes, l2_bytes;        /* data cache of one core, 0: not known */
  int64_t l3_bytes, last_level_bytes;/* one L3; all last-level caches together */
  int64_t memory_bytes;              /* installed */
  int64_t available_bytes;           /* free for a new allocation now, as the system (or the process's cgroup) says */
  char why_cores[160];               /* what limits identity.cores */
} fmm_topology;

fmm_status fmm_topology_read(fmm_topology *topology);
/* A few lines of text, at most capacity bytes with the end. */
void fmm_topology_text(const fmm_topology *topology, char *text, size_t capacity);
#endif
