#!/bin/sh
# The quick start of hybridfmm on Debian 12 and Ubuntu 24.04 (root or sudo; nothing needed beforehand but a shell).
#
#   ./quickstart.sh            installs what is missing, builds, calibrates this node, evaluates a molecule made here, checks it
#   ./quickstart.sh FILE [OPTIONS]   the same with your molecule or points (.pqr, .npy, .csv, .xyz) and options of
#                              fmm-run (--densities signed, where the file has none)
#   ./quickstart.sh test       installs what is missing, builds, runs every test; the last line counts them
#
# Environment: FMM_BUILD_DIR (build folder; default: build beside this script), FMM_MESON_OPTIONS (more words for
# `meson setup`, for example -Dwerror=true). Packages come from apt only, and only those that are missing; with everything in
# place no network is used. Running it again is safe.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
called_from=$(pwd)
build=${FMM_BUILD_DIR:-$here/build}
case $build in /*) ;; *) build=$called_from/$build ;; esac

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
fail() { printf 'quickstart: error: %s\n' "$*" >&2; exit 1; }

usage() { sed -n '2,11s/^# \{0,1\}//p' "$here/quickstart.sh"; }

# ---- what is missing -------------------------------------------------------------------------------------------------

have() { command -v "$1" >/dev/null 2>&1; }

# links_with HEADER LIBRARY...: can the compiler use them?
links_with() {
  header=$1; shift
  printf '#include <%s>\nint main(void) { return 0; }\n' "$header" |
    cc -x c - -o /dev/null "$@" >/dev/null 2>&1
}

# Names of the packages whose content this machine lacks, asked by use, so that other sources of a tool count too.
missing_packages() {
  if ! have cc || ! have make || ! links_with stdio.h -lm; then
    # Without a compiler the libraries cannot be tried: name them all, apt skips those that are there.
    have meson || printf 'meson '
    have ninja || printf 'ninja-build '
    printf 'build-essential pkg-config libjansson-dev libhwloc-dev libfftw3-dev liblapacke-dev libopenblas-dev '
    if [ "$testing" = 1 ]; then printf 'libcmocka-dev '; have valgrind || printf 'valgrind '; fi
    return
  fi
  have meson || printf 'meson '
  have ninja || printf 'ninja-build '
  have pkg-config || printf 'pkg-config '
  links_with jansson.h -ljansson || printf 'libjansson-dev '
  links_with hwloc.h -lhwloc || printf 'libhwloc-dev '
  links_with fftw3.h -lfftw3 || printf 'libfftw3-dev '
  links_with lapacke.h -llapacke || printf 'liblapacke-dev '
  links_with stdio.h -lopenblas || printf 'libopenblas-dev '
  if [ "$testing" = 0 ]; then return; fi
  printf '#include <setjmp.h>\n#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <cmocka.h>\nint main(void) { return 0; }\n' |
    cc -x c - -o /dev/null -lcmocka >/dev/null 2>&1 || printf 'libcmocka-dev '
  have valgrind || printf 'valgrind ' # counts instructions of small cases
}

install_missing() {
  step "Looking for compiler, build tools and libraries"
  missing=$(missing_packages)
  if [ -z "$missing" ]; then
    say "Everything is there; nothing to install."
    return
  fi
  have apt-get || fail "missing: $missing- and there is no apt-get here; install the equivalents of these Debian packages and run this again"
  root=''
  if [ "$(id -u)" != 0 ]; then
    have sudo || fail "missing packages; as root run: apt-get install $missing- then run this again"
    root=sudo
  fi
  say "Installing with apt: $missing"
  # An update that fails for one of several sources may still have brought what is needed: the installation decides.
  $root env DEBIAN_FRONTEND=noninteractive apt-get -q update </dev/null >"$log" 2>&1 ||
    say "(apt-get update reported problems; trying the installation all the same)"
  # shellcheck disable=SC2086 # a list of words on purpose
  $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing </dev/null >>"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    fail "apt could not install: $missing(its last words are above); install them by hand and run this again"
  }
  missing=$(missing_packages)
  [ -z "$missing" ] || fail "still missing after the installation: $missing"
}

# ---- build -----------------------------------------------------------------------------------------------------------

# quietly LOG COMMAND...: its output goes to the log, which is shown only on failure.
quietly() {
  quiet_log=$1; shift
  "$@" </dev/null >"$quiet_log" 2>&1 || { tail -n 60 "$quiet_log" >&2; return 1; }
}

# Builds the GPU side for the GPU that is here; says once when there is none or no compiler for it.
gpu_options() {
  if [ -x /usr/local/cuda/bin/nvcc ] && ! have nvcc; then PATH=$PATH:/usr/local/cuda/bin; export PATH; fi
  gpu_option=''
  if ! have nvcc; then
    say "No CUDA compiler (nvcc) here: building for CPU cores only."
  elif ! capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || [ -z "$capability" ]; then
    gpu_option=-Dgpu_arch=none
    say "No GPU here: building for CPU cores only."
  else
    case $capability in
      75 | 80 | 86 | 89 | 90) gpu_option=-Dgpu_arch=$capability ;;
      10? | 12?) gpu_option=-Dgpu_arch=${capability%?}0; nvcc --list-gpu-code 2>/dev/null | grep -q "sm_${capability%?}0" || gpu_option=-Dgpu_arch=all ;;
      *) gpu_option=-Dgpu_arch=all ;;
    esac
    say "Building for CPU cores and for the GPU here (compute capability $capability)."
  fi
}

configure() {
  options="$gpu_option ${FMM_MESON_OPTIONS:-}"
  if [ "$testing" = 1 ]; then options="$options -Dtests=enabled"; fi
  # shellcheck disable=SC2086 # a list of words on purpose
  if [ ! -f "$build/build.ninja" ]; then
    quietly "$log" meson setup --buildtype=release $options "$build" "$here"
  elif ! meson setup --reconfigure --buildtype=release $options "$build" "$here" </dev/null >"$log" 2>&1; then
    say "The old build folder cannot be used again; making it anew."
    quietly "$log" meson setup --wipe --buildtype=release $options "$build" "$here"
  fi || fail "meson could not configure the build (see above)"
}

# build [TARGET...]: those, or everything.
build() {
  step "Building (release) in $build"
  gpu_options
  configure
  if [ -n "$gpu_option" ] && [ "$gpu_option" != -Dgpu_arch=none ] && grep -qE 'GPU +: none' "$log"; then say "But its CUDA compiler does not work with this source: CPU cores only."; fi
  if [ -n "${FMM_VERBOSE_BUILD:-}" ]; then
    meson compile -C "$build" "$@" </dev/null || fail "the build failed (see above)"
  else
    quietly "$log" meson compile -C "$build" "$@" || fail "the build failed (see above)"
  fi
  say "Done."
}

# ---- test ------------------------------------------------------------------------------------------------------------

# Counts results of one kind in meson's log, a JSON object a line (text that tests printed has its quotes escaped there).
count_results() { grep -c -E "\"result\": \"($1)\"" "$build/meson-logs/testlog.json" || true; }

run_tests() {
  step "Running the tests"
  rm -f "$build/meson-logs/testlog.json"
  status=0
  meson test -C "$build" --no-rebuild --print-errorlogs </dev/null || status=$?
  [ -f "$build/meson-logs/testlog.json" ] || fail "meson test left no log (exit code $status)"
  passed=$(count_results 'OK|EXPECTEDFAIL')
  skipped=$(count_results 'SKIP')
  total=$(wc -l <"$build/meson-logs/testlog.json")
  failed=$((total - passed - skipped))
  say
  say "$passed passed, $failed failed, $skipped skipped"
  [ "$status" = 0 ] && [ "$failed" = 0 ] || exit 1
}

# ---- calibrate and evaluate ------------------------------------------------------------------------------------------

calibrate() {
  step "Calibrating this node (quick; once, kept for later runs)"
  if "$build/tools/fmm-calibrate" --show </dev/null >"$log" 2>&1; then
    say "This node was calibrated before; 'fmm-calibrate --effort quick' does it again."
    return
  fi
  "$build/tools/fmm-calibrate" --effort quick </dev/null >"$log" 2>&1 || { cat "$log" >&2; fail "fmm-calibrate failed (see above)"; }
  # What it measured is data for people too.
  cat "$log"
}

make_molecule() {
  step "Making a molecule: 10000 atoms with charges, in $build/molecule.pqr"
  "$build/tools/make-molecule" 10000 >"$build/molecule.pqr.part"
  mv "$build/molecule.pqr.part" "$build/molecule.pqr"
  say "A protein-like blob, not a real protein; ./quickstart.sh my.pqr takes yours."
}

# evaluate FILE OPTIONS...
evaluate() {
  step "Evaluating $1 with the schedule that the model chooses, checking 1000 targets by direct sums"
  points=$1; shift
  "$build/tools/fmm-run" "$points" --verify 1000 "$@" --json </dev/null >"$build/quickstart-report.json" || {
    status=$?
    say "The command was: $build/tools/fmm-run $points --verify 1000 $* --json" >&2
    exit "$status"
  }
  if python3 "$here/tools/say-report.py" "$build/quickstart-report.json"; then return; fi
  [ $# = 0 ] || fail "the result is less accurate than asked; see docs/howto-choose-accuracy.md"
  fail "the result is less accurate than asked; please report it"
}

# say_next FILE OPTIONS...
say_next() {
  step "What to try next"
  points=$1; shift
  cat <<END
  export PATH="$build/tools:\$PATH"
  fmm-run "$points"${*:+ $*} --digits 9 --gradient --verify 1000 --explain    more digits, forces too, and why the plan is what it is
  fmm-run "$points"${*:+ $*} --output potential.csv                           the results as a file
  fmm-predict --generate uniform --points 1000000               how long a million points would take, without making them
  fmm-calibrate --effort standard                               a more careful calibration of this node
  ./quickstart.sh my.pqr                                        your molecule
  ./quickstart.sh test                                          every test
Then docs/tutorial.md.
END
}

# ---- main ------------------------------------------------------------------------------------------------------------

for word in "$@"; do
  case $word in -h|--help|--version) usage; exit 0 ;; esac
done
case ${1:-} in -*) usage >&2; fail "unknown option $1" ;; esac
case $#:${1:-}:${2:-} in
  0:* | 1:*) ;;
  *:test:*) usage >&2; fail "nothing follows the word test" ;;
  *:*:-*) ;;
  *) usage >&2; fail "'$2' after the point file is no option of fmm-run" ;;
esac

testing=0
if [ "${1:-}" = test ]; then testing=1; fi
log=$(mktemp "${TMPDIR:-/tmp}/hybridfmm-quickstart.XXXXXX")
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

case ${1:-} in
  test)
    install_missing
    build
    run_tests ;;
  *)
    input=${1:-}
    if [ -n "$input" ]; then
      [ -r "$input" ] || fail "cannot read $input"
      case $input in /*) ;; *) input=$called_from/$input ;; esac
    fi
    install_missing
    build fmm-run fmm-predict fmm-calibrate make-molecule
    calibrate
    if [ -z "$input" ]; then make_molecule; input=$build/molecule.pqr; else shift; fi
    evaluate "$input" "$@"
    say_next "$input" "$@" ;;
esac
