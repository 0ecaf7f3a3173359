/* make-molecule: writes a protein-like blob of charged atoms as .pqr on standard output, so that the quick start and the
 * tutorial need no data from elsewhere. Not chemistry: atoms sit near the points of a cubic lattice at the atom density of
 * proteins (one in 10 cubic angstrom), two and two along a serpentine chain drawn together as by bonds, so that they are no more even than real ones', fill a bumpy ellipsoid, and are named along the chain by residues whose
 * partial charges have the size and the sums (0, +1, -1) that force fields use. The same arguments give the same file.
 *   make-molecule [ATOMS [SEED]]        (10000 atoms, seed 1) */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/memory.h"

enum { MAX_ATOMS = 1000000 };
static const double spacing = 2.15; /* angstrom: the cube root of 10 cubic angstrom an atom */
static const double bond = 0.45;    /* that each of two chain neighbours is moved towards the other */
static const double jitter = 0.2;   /* at most, each way, so that no two atoms are closer than 0.85 angstrom, some of them 1.25 */
static const double semi_axes[3] = {1.0, 1.2, 1.5};

typedef struct template_atom { const char *name; double charge, radius; } template_atom;
typedef struct residue { const char *name; int n_atoms; template_atom atoms[12]; } residue;
typedef struct site { double shape; int cell[3]; } site;

#define BACKBONE {"N", -0.40, 1.85}, {"H", 0.30, 1.00}, {"CA", 0.10, 1.91}, {"C", 0.60, 1.91}, {"O", -0.60, 1.66}
static const residue residues[] = {
  {"GLY", 5, {BACKBONE}},
  {"ALA", 6, {BACKBONE, {"CB", 0.00, 1.91}}},
  {"SER", 8, {BACKBONE, {"CB", 0.20, 1.91}, {"OG", -0.65, 1.72}, {"HG", 0.45, 1.00}}},
  {"LEU", 9, {BACKBONE, {"CB", -0.05, 1.91}, {"CG", 0.15, 1.91}, {"CD1", -0.05, 1.91}, {"CD2", -0.05, 1.91}}},
  {"ASP", 9, {BACKBONE, {"CB", -0.10, 1.91}, {"CG", 0.70, 1.91}, {"OD1", -0.80, 1.66}, {"OD2", -0.80, 1.66}}},
  {"LYS", 12, {BACKBONE, {"CB", 0.00, 1.91}, {"CG", 0.00, 1.91}, {"CD", 0.00, 1.91}, {"CE", 0.25, 1.91}, {"NZ", -0.30, 1.85},
               {"HZ1", 0.50, 1.00}, {"HZ2", 0.55, 1.00}}},
};
enum { N_RESIDUES = sizeof residues / sizeof *residues };

/* Counter-based uniform number in [0,1): the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) of seed and counter. */
static double uniform(uint64_t seed, uint64_t counter) {
  uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15u + counter * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Smaller is deeper inside the bumpy ellipsoid. */
static double shape(const int cell[3]) {
  double x = cell[0] / semi_axes[0], y = cell[1] / semi_axes[1], z = cell[2] / semi_axes[2];
  double r = sqrt(x * x + y * y + z * z);
  if (r == 0) return 0;
  return r / (1 + 0.12 * sin(5 * x / r + 1) * sin(4 * y / r) + 0.10 * cos(6 * z / r + 2 * x / r));
}

static int by_shape(const void *a, const void *b) {
  const site *p = a, *q = b;
  if (p->shape != q->shape) return p->shape < q->shape ? -1 : 1;
  for (int d = 0; d < 3; d++) if (p->cell[d] != q->cell[d]) return p->cell[d] < q->cell[d] ? -1 : 1;
  return 0;
}

/* Serpentine: planes in order, rows to and fro, columns to and fro, so that neighbours in the chain are neighbours in space. */
static int by_serpentine(const void *a, const void *b) {
  const site *p = a, *q = b;
  if (p->cell[2] != q->cell[2]) return p->cell[2] < q->cell[2] ? -1 : 1;
  int odd_plane = p->cell[2] & 1;
  if (p->cell[1] != q->cell[1]) return (p->cell[1] < q->cell[1]) != odd_plane ? -1 : 1;
  int odd_row = p->cell[1] & 1;
  if (p->cell[0] != q->cell[0]) return (p->cell[0] < q->cell[0]) != odd_row ? -1 : 1;
  return 0;
}

/* The n innermost lattice sites in chain order. */
static fmm_status make_sites(int n, site **sites) {
  int half = (int)ceil(1.25 * semi_axes[2] * cbrt(3.0 * n / (4 * M_PI * semi_axes[0] * semi_axes[1] * semi_axes[2]))) + 2;
  size_t edge = 2 * (size_t)half + 1, count = 0;
  FMM_TRY(FMM_ALLOCATE(sites, edge * edge * edge, "lattice sites"));
  for (int z = -half; z <= half; z++)
    for (int y = -half; y <= half; y++)
      for (int x = -half; x <= half; x++) {
        site s = {0, {x, y, z}};
        s.shape = shape(s.cell);
        (*sites)[count++] = s;
      }
  qsort(*sites, count, sizeof **sites, by_shape);
  qsort(*sites, (size_t)n, sizeof **sites, by_serpentine);
  return FMM_OK;
}

/* Atoms 2k and 2k + 1 of the chain, where their sites are neighbours: by how much one is moved towards the other. */
static double pull(const site *sites, int n, int i, int axis) {
  const int other = i ^ 1;
  int apart = 0;
  if (other >= n) return 0;
  for (int d = 0; d < 3; d++) apart += abs(sites[other].cell[d] - sites[i].cell[d]);
  return apart == 1 ? bond * (sites[other].cell[axis] - sites[i].cell[axis]) : 0;
}

static void print_atoms(const site *sites, int n, uint64_t seed) {
  int residue_number = 0, atom = 0;
  const residue *r = NULL;
  printf("REMARK synthetic protein-like blob of %d atoms, seed %llu (hybridfmm make-molecule)\n", n, (unsigned long long)seed);
  for (int i = 0; i < n; i++, atom++) {
    if (!r || atom == r->n_atoms) {
      r = &residues[(int)(uniform(seed, 4 * (uint64_t)i + 3) * N_RESIDUES)];
      atom = 0;
      residue_number++;
    }
    double x[3];
    for (int d = 0; d < 3; d++) x[d] = spacing * sites[i].cell[d] + pull(sites, n, i, d) + jitter * (2 * uniform(seed, 4 * (uint64_t)i + (uint64_t)d) - 1);
    const template_atom *a = &r->atoms[atom];
    printf("ATOM %6d %-4s %s %5d %9.3f %9.3f %9.3f %7.3f %6.3f\n", i + 1, a->name, r->name, residue_number, x[0], x[1], x[2], a->charge, a->radius);
  }
  printf("END\n");
}

/* A whole number from 0 to most; -1 when it is something else. */
static long long parse(const char *text, long long most) {
  char *end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  return errno || end == text || *end || value < 0 || value > most ? -1 : value;
}

int main(int argc, char **argv) {
  long long n = argc > 1 ? parse(argv[1], MAX_ATOMS) : 10000, seed = argc > 2 ? parse(argv[2], INT64_MAX) : 1;
  if (argc > 3 || n < 0 || seed < 0) {
    fprintf(stderr, "make-molecule: error: usage: make-molecule [ATOMS [SEED]], ATOMS from 0 to %d, SEED from 0\n", MAX_ATOMS);
    return 2;
  }
  site *sites = NULL;
  fmm_status status = make_sites((int)n, &sites);
  if (status == FMM_OK) print_atoms(sites, (int)n, (uint64_t)seed);
  else fprintf(stderr, "make-molecule: error: %s\n", fmm_last_error());
  FMM_FREE(&sites);
  if (status == FMM_OK && fflush(stdout) != 0) {
    fprintf(stderr, "make-molecule: error: cannot write to standard output\n");
    return fmm_status_exit_code(FMM_ERR_FILE);
  }
  return fmm_status_exit_code(status);
}
