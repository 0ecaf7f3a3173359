#!/bin/sh
# fmm-calibrate as a process: a quick calibration ends, is kept, shows, loads and seals; bad use is refused with the promised exit codes.
#   check-calibrate.sh BUILD_ROOT
set -eu
calibrate=$1/tools/fmm-calibrate
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset FMM_PROFILE
XDG_STATE_HOME=$scratch/state
export XDG_STATE_HOME
fail() { printf 'fmm-calibrate: %s\n' "$*" >&2; exit 1; }
# refuses CODE TEXT ARGUMENTS...: ends with CODE and says TEXT in one line on standard error, nothing on standard output
refuses() {
  code=$1 text=$2
  shift 2
  got=0
  "$calibrate" "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
  [ "$got" = "$code" ] || fail "'$*' ended with $got, not $code: $(cat "$scratch/err")"
  grep -q -- "$text" "$scratch/err" || fail "'$*' does not say '$text': $(cat "$scratch/err")"
  [ ! -s "$scratch/out" ] || fail "'$*' wrote to standard output"
}

refuses 4 'there is no profile of this machine' --show
refuses 2 'none of quick|standard|thorough' --effort fast
refuses 2 'unknown option' --efort quick
refuses 2 'stands alone' --seal x --show
refuses 2 'leave out --effort' --seal x --effort quick
refuses 2 'leave out --effort' --show --effort quick
refuses 6 'absent/p.json: .*directory must exist' --effort quick --profile "$scratch/absent/p.json"
refuses 6 'no-such-device' --effort quick --profile /proc/no-such-device/p.json

# Kept at the user's path by fingerprint, as a table that names rates, constants and errors.
"$calibrate" --effort quick >"$scratch/table" 2>"$scratch/said" || fail "quick calibration failed: $(cat "$scratch/said")"
for word in 'Laplace pair sum, double' 'memory, triad' 'one parallel region' ulist vlist 'held-out runs' median; do
  grep -q "$word" "$scratch/table" || fail "the table has no '$word': $(cat "$scratch/table")"
done
profile=$(ls "$scratch"/state/hybridfmm/*.json)
grep -q "written to $profile" "$scratch/said" || fail "does not say where the profile is"

# It loads again: shown as table and as JSON, which is the file.
"$calibrate" --show >"$scratch/shown"
grep -q 'effort      quick' "$scratch/shown" || fail "--show shows another profile: $(cat "$scratch/shown")"
"$calibrate" --show --json >"$scratch/shown.json"
python3 -c 'import json, sys; a, b = (json.load(open(f, encoding="utf-8")) for f in sys.argv[1:]); sys.exit(a != b)' "$scratch/shown.json" "$profile" ||
  fail "--show --json is not the profile"
python3 - "$profile" <<'EOF' || fail "the profile's contents are not as promised"
import json, math, sys
profile = json.load(open(sys.argv[1], encoding="utf-8"))
def numbers(node):
    if isinstance(node, dict): node = list(node.values())
    if isinstance(node, list):
        for item in node: yield from numbers(item)
    elif isinstance(node, (int, float)): yield node
assert all(math.isfinite(x) for x in numbers(profile))
assert "quick" in json.dumps(profile) and "checksum" in profile
EOF

# A part of a GPU that is not there makes no profile, and takes no minutes to be missed.
CUDA_VISIBLE_DEVICES='' refuses 5 'no part of a GPU' --effort thorough --gpu-sms 8 --profile "$scratch/part.json"
grep -q measuring "$scratch/err" && fail "measured before it looked for the GPU"
[ ! -e "$scratch/part.json" ] || fail "a profile of a part of no GPU was written"

# A profile edited by hand is damaged until it is sealed.
cp "$profile" "$scratch/edited.json"
sed -i 's/"effort": "quick"/"effort": "hand"/' "$scratch/edited.json"
cmp -s "$scratch/edited.json" "$profile" && fail "the edit changed nothing"
refuses 4 'checksum' --show --profile "$scratch/edited.json"
"$calibrate" --seal "$scratch/edited.json" 2>/dev/null
"$calibrate" --show --profile "$scratch/edited.json" | grep -q 'effort      hand' || fail "a sealed profile does not show"
printf '{' >"$scratch/broken.json"
refuses 4 'broken.json' --seal "$scratch/broken.json"
