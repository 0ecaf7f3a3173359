#!/bin/sh
# The quick start refuses what it cannot use before it installs or builds anything.
#   check-quickstart.sh QUICKSTART
set -eu

quickstart=$1
fail() { printf 'check-quickstart: %s\n' "$*" >&2; exit 1; }

"$quickstart" --help | grep -q 'quickstart.sh test' || fail "--help does not name its commands"
for arguments in "--unknown" "a b" "test --quiet" "/no/such/file.pqr" "/no/such/file.pqr --densities ones"; do
  # shellcheck disable=SC2086 # words on purpose
  if said=$("$quickstart" $arguments 2>&1); then fail "'$arguments' was accepted"; fi
  printf '%s\n' "$said" | grep -q 'quickstart: error: ' || fail "'$arguments' was refused without a reason: $said"
  if printf '%s\n' "$said" | grep -qE 'Installing|Building'; then fail "'$arguments' was refused only after work had begun"; fi
done
