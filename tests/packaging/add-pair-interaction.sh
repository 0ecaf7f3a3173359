#!/bin/sh
# Adding a pair interaction is one header and one word: does just that in a copy of the sources, for two of them, builds the command and compares
# whole evaluations, potential and gradient, with direct sums. One is symmetric and homogeneous; the other has no symmetry at all.
#   add-pair-interaction.sh SOURCE FOLDER-OF-HEADERS
set -eu

source=$1; headers=$2
copy=$(mktemp -d "${TMPDIR:-/tmp}/hybridfmm-add-pair.XXXXXX")
trap 'rm -rf "$copy"' EXIT
fail() { printf 'add-pair-interaction: %s\n' "$*" >&2; exit 1; }

(cd "$source" && tar -cf - --exclude='./build*' --exclude=./.git --exclude=./tests/packaging .) | (cd "$copy" && tar -xf -)

for pair in anisotropic advected; do
  # The header ...
  cp "$headers/$pair.h" "$copy/kernels/pair/$pair.h"
  # ... and the word.
  sed -i "s/^\(pair_interactions = \[.*\)\]/\1, '$pair']/" "$copy/meson.build"
  grep -q "^pair_interactions = .*'$pair'" "$copy/meson.build" || fail "meson.build has no list pair_interactions to extend"
done

# A debug build with little optimisation is enough for right answers and quick to make; only the command is built.
meson setup -Doptimization=1 -Dcuda=disabled -Dtests=disabled "$copy/build" "$copy" >"$copy/log" 2>&1 || { cat "$copy/log" >&2; fail "cannot configure"; }
ninja -C "$copy/build" tools/fmm-run >"$copy/log" 2>&1 || { tail -n 40 "$copy/log" >&2; fail "does not build"; }

# No profile of the user is read or written.
unset FMM_PROFILE
export XDG_STATE_HOME="$copy/state"

# evaluates ARGUMENTS...: both errors, at all targets, within the tolerance asked (relative L2 of potential and gradient).
evaluates() {
  "$copy/build/tools/fmm-run" --points 5000 --densities signed --digits 6 --leaf-size 60 --gradient --schedule cpu --verify 5000 --json "$@" >"$copy/report.json" ||
    fail "fmm-run $* failed"
  awk -v RS='[,{}]' '
    /"(gradient_)?relative_l2"/ { split($0, field, ":"); n++; value = field[2] + 0; print $0; if (!(value > 0 && value <= 1e-6)) bad = 1 }
    END { exit n == 2 && !bad ? 0 : 1 }' "$copy/report.json" || { cat "$copy/report.json" >&2; fail "$*: an error is missing or above the tolerance 1e-6"; }
}
evaluates --generate ellipsoid --kernel anisotropic --param a=1.5
evaluates --generate uniform --kernel advected --param u=0.1
evaluates --generate ellipsoid --kernel advected --param u=4
