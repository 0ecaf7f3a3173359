#!/bin/sh
# make-molecule: exact number of atoms, the same file for the same arguments, charges that nearly cancel, no two atoms too close,
# clear refusal of impossible numbers.
#   check-molecule.sh MAKE_MOLECULE
set -eu

make=$1
scratch=$(mktemp -d "${TMPDIR:-/tmp}/hybridfmm-molecule.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
fail() { printf 'check-molecule: %s\n' "$*" >&2; exit 1; }

for atoms in 0 1 2 7 1000; do
  "$make" "$atoms" >"$scratch/a"
  [ "$(grep -c '^ATOM' "$scratch/a" || true)" = "$atoms" ] || fail "asked $atoms atoms, got $(grep -c '^ATOM' "$scratch/a")"
done
"$make" 1000 >"$scratch/b"
"$make" 1000 2 >"$scratch/c"
cmp -s "$scratch/a" "$scratch/b" || fail "the same arguments gave two files"
cmp -s "$scratch/a" "$scratch/c" && fail "two seeds gave the same file"

# 0.85 angstrom is the lattice spacing less twice the jitter and the pull of bonds (tools/make_molecule.c), 0.002 what rounding to 3 places may add;
# an atom's nearest is as near beside its sixth as in proteins (0.45 of its distance; lattices have 0.65 and more, which plans take for crystals); residues have net charges 0 and +-1, so the sum of |charge| is far above the net charge.
awk '/^ATOM/ { n++; x[n] = $6; y[n] = $7; z[n] = $8; net += $9; gross += $9 < 0 ? -$9 : $9 }
  END {
    for (i = 1; i <= n; i++) {
      for (k = 1; k <= 6; k++) near[k] = 1e9
      for (j = 1; j <= n; j++) if (j != i) {
        d2 = (x[i]-x[j])^2 + (y[i]-y[j])^2 + (z[i]-z[j])^2
        if (d2 < (0.85 - 0.002)^2) { print "atoms " i " and " j " are " sqrt(d2) " apart"; exit 1 }
        for (k = 6; k > 0 && d2 < near[k]; k--) { if (k < 6) near[k + 1] = near[k]; near[k] = d2 }
      }
      ratio += sqrt(near[1] / near[6]) / n
    }
    if (ratio > 0.55) { print "nearest atoms at " ratio " of the sixth"; exit 1 }
    if (gross < 0.2 * n || net > 0.2 * gross || net < -0.2 * gross) { print "net charge " net ", gross " gross ", " n " atoms"; exit 1 }
  }' "$scratch/a" || fail "not a plausible molecule"

for arguments in -1 1.5 x 1000001 "10 -1" "10 1 1"; do
  status=0
  # shellcheck disable=SC2086 # words on purpose
  "$make" $arguments >"$scratch/out" 2>"$scratch/error" || status=$?
  if [ "$status" != 2 ] || [ -s "$scratch/out" ] || ! grep -q 'error:' "$scratch/error"; then fail "'$arguments' was not refused (exit code $status)"; fi
done
