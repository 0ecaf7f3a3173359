#!/bin/bash
# Builds the project on a machine with a GPU, runs the GPU suite, the sanitizers and the benchmarks, and writes a dated result file.
#   tools/gpu-suite.sh OUT_DIR [full|quick] [all|tests|sanitizers|times]     quick: no sanitizers; times: benchmarks, calibration, contests of schedules
# The machine needs a C and C++ compiler, ninja, python3 and nvcc; libraries and Meson that it lacks come from .carry/suite/carry.tar.xz (gpu-carry.sh).
# COMMIT names the commit where the tree has no .git; BUILD a folder that is built already, with -Dcuda=enabled -Dgpu_arch=90. The result is OUT_DIR/gpu-results.md (of a part -tests.md and so on); docs/results/ keeps the newest, parts one behind the other.
# LIMIT: seconds after which nothing more is begun and what runs is cut off, where a machine may be used for so long only; what was left out is named at the end, and the exit code is then 1. TOOLS, CASES: which of
# compute-sanitizer's tools, and an expression that its cases match.
set -u
cd "$(dirname "$0")/.." || exit 1
out=$(mkdir -p "$1" && cd "$1" && pwd)
mode=${2:-full}
part=${3:-all}
case "$mode $part" in full\ all | full\ tests | full\ sanitizers | full\ times | quick\ all | quick\ tests | quick\ times) ;; *)
  echo "gpu-suite: '$mode $part' is not known; [full|quick] [all|tests|sanitizers|times]"
  exit 1
  ;;
esac
report=$out/gpu-results$([ "$part" = all ] || echo "-$part").md
began=$(date +%s)
work=${TMPDIR:-/tmp}/hybridfmm-suite
mkdir -p "$work"
meson=meson
if [ -f .carry/suite/carry.tar.xz ]; then
  tar xJf .carry/suite/carry.tar.xz -C "$work"
  lib=$work/usr/lib/x86_64-linux-gnu
  export PKG_CONFIG_SYSROOT_DIR=$work PKG_CONFIG_PATH=$lib/pkgconfig:$lib/openblas-pthread/pkgconfig:$work/usr/share/pkgconfig
  export LIBRARY_PATH=$lib:$lib/openblas-pthread:${LIBRARY_PATH:-} CPATH=$work/usr/include:$work/usr/include/x86_64-linux-gnu:${CPATH:-}
  export LD_LIBRARY_PATH=$lib:$lib/openblas-pthread:${LD_LIBRARY_PATH:-}
  command -v pkg-config >/dev/null || export PKG_CONFIG=$work/usr/bin/pkgconf
  command -v meson >/dev/null || meson="python3 $work/meson/meson.py"
fi
export OMP_WAIT_POLICY=passive
build=$work/build
cpu_tests="tests/test_pair_lattice tests/test_pair_sums tests/test_pair_apart tests/test_pair_near tests/test_far_phases tests/test_list_phases tests/test_allocation" # for hosts with AVX-512
programs="tests/test_gpu_phases tests/test_gpu_levels tests/test_gpu_plan tests/test_gpu_arrays tests/test_gpu_devices tests/test_gpu_rows tests/test_sequences $cpu_tests tools/bench-gpu tools/bench-cpu tools/bench-schedules tools/fmm-run tools/fmm-calibrate"
start=$(date +%s)
if [ -n "${BUILD:-}" ]; then
  build=$(cd "$BUILD" && pwd) || exit 1 # ready: with the programs below
  for t in $programs; do
    [ -x "$build/$t" ] || { echo "gpu-suite: $build/$t cannot be run; build it, or leave BUILD out"; exit 1; }
  done
elif ! { $meson setup "$build" -Dcuda=enabled -Dgpu_arch=90 && ninja -C "$build" $programs; } >"$out/build.log" 2>&1; then
  tail -40 "$out/build.log"
  echo "gpu-suite: the build failed"
  exit 1
fi
built=$(($(date +%s) - start))

say() { printf "%s\n" "$*" | tee -a "$report"; }
least() { [ "$1" -lt "$2" ] && echo "$1" || echo "$2"; }
left() { echo $((${LIMIT:-1000000} - ($(date +%s) - began))); } # seconds
# title, command...: what is begun within the limit and cut off by it is named apart from what failed. `earlier` and `earlier_check` show what has ended, whenever it is.
block() {
  local title=$1
  shift
  case $1 in
  earlier*) [ -f "$work/later.$2.rc" ] || { skipped="$skipped; $title"; return; } ;;
  *) [ "$(left)" -gt 5 ] || { skipped="$skipped; $title"; return; } ;;
  esac
  say ""
  say "## $title"
  say '```'
  local line=${shown:-${*//$build\//}}
  say "\$ ${line//$out\//OUT/}" # no path of one machine in the report
  if [ "$(type -t "$1")" = function ]; then "$@"; else timeout "$(least 240 "$(left)")" "$@"; fi 2>&1 | sed "s|$out/|OUT/|g" | tail -60 | tee -a "$report"
  local rc=${PIPESTATUS[0]}
  say '```'
  if [ "$rc" -eq 124 ] && [ "$(left)" -le 5 ]; then skipped="$skipped; $title (cut off)"; elif [ "$rc" -ne 0 ]; then failed="$failed; $title (exit $rc)"; fi
}
shown=
# What is not timed runs at once, before all that is: later(NAME, command...) starts it, earlier(NAME) shows it in a block.
later() {
  local name=$1
  shift
  started=
  rm -f "$work/later.$name.rc"
  [ "$(left)" -gt 5 ] || return 0
  { timeout "$(least 400 "$(left)")" "$@" >"$work/later.$name" 2>&1; echo $? >"$work/later.$name.rc"; } &
  started=$!
}
earlier() { cat "$work/later.$1"; return "$(cat "$work/later.$1.rc")"; }
earlier_check() { # but for its times
  earlier "$1" | grep -vE '^ *(set-up|visible after|parts of|last run|together|up|ulist|xlist|vlist|down|wlist|sum) '
  return "$(cat "$work/later.$1.rc")"
}
# Names and own times of the first evaluation's kernels, from the sorting of densities to that of results, and their sum.
kernels_of_one() {
  ncu --clock-control none --csv --metrics gpu__time_duration.sum "$b" "$@" runs=1 samples=0 2>/dev/null | python3 -c '
import csv, re, sys
rows = list(csv.reader(sys.stdin)) # lines of the program among them
rows = rows[next(i for i, r in enumerate(rows) if "Kernel Name" in r):]
name, unit, value = (rows[0].index(k) for k in ("Kernel Name", "Metric Unit", "Metric Value"))
total = {}
scale = {"ns": 1e-3, "us": 1, "ms": 1e3, "nsecond": 1e-3, "usecond": 1, "msecond": 1e3}
inside = False
for r in rows[1:]:
    if len(r) != len(rows[0]): continue
    kernel = re.split("[<(]", re.sub(r"<unnamed>::|\(anonymous namespace\)::|^void ", "", r[name]))[0]
    if kernel == "deliver": break
    if inside:
        n, t = total.get(kernel, (0, 0))
        total[kernel] = (n + 1, t + scale[r[unit]] * float(r[value].replace(",", "")))
    inside = inside or kernel in ("gather", "scatter")
for kernel, (n, t) in total.items(): print("%-20s %3d launches %9.1f us" % (kernel, n, t))
print("all phases           %3d launches %9.1f us" % (sum(n for n, t in total.values()), sum(t for n, t in total.values())))'
}
failed=
skipped=
: >"$report"
say "# GPU results of $(date -u +%Y-%m-%d)$([ "$part" = all ] || echo ": $part")"
say ""
say "Commit ${COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}; $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader);"
say "$(nproc) cores of $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs); $(nvcc --version | grep -o 'release.*'); $([ -n "${BUILD:-}" ] && echo "built before" || echo "built in $built s")."
say "Command: \`tools/gpu-suite.sh OUT${2:+ $2}${3:+ $3}\`. Times: median of 5 after one warm-up; error: relative L2 at 1,000 sampled targets."
b=$build/tools/bench-gpu
tools=${TOOLS:-memcheck racecheck initcheck synccheck}
checks=() # only=NAME CASE: racecheck looks at those kernels alone whose names match, as all would take too long
while read -r case; do
  if [[ $case =~ ${CASES:-.} ]]; then checks+=("$case"); fi
done <<'CASES'
n=2000 leaf=30 order=4 dist=ellipsoid gradient=1 pinned=1
only=by_|merge|split|invert n=9000 leaf=1 order=7 gradient=1 precision=mixed densities=signed
only=by_ n=120000 leaf=40 order=6 dist=plummer
n=2000 leaf=30 order=4 dist=ellipsoid precision=single gradient=1
n=2000 leaf=30 order=6 dist=ellipsoid precision=mixed densities=signed
n=4000 leaf=120 root=1.1 order=5 precision=mixed
n=9000 leaf=8 order=5 precision=mixed densities=signed
n=2000 leaf=30 order=4 dist=ellipsoid columns=3
n=2000 leaf=30 order=4 dist=ellipsoid precision=single columns=3 densities=signed
n=1500 leaf=30 order=6 dist=ellipsoid precision=mixed columns=2
n=1500 leaf=30 order=6 dist=ellipsoid precision=mixed kernel=stokes
n=600 leaf=12 order=4 dist=ellipsoid kernel=stokes
n=400 leaf=8 order=6 columns=24
n=9000 leaf=2 order=3 columns=3
n=5000 leaf=1 order=6
n=3000 leaf=40 order=5 dist=ellipsoid
only=merge|split|invert n=5000 leaf=1 order=5
n=4000 leaf=700
n=4100 leaf=5000
n=4100 leaf=5000 order=2 gradient=1 precision=single
n=300 leaf=4 order=11
n=1500 leaf=2 order=4 gradient=1 sms=8
n=200 leaf=3 order=13 gradient=1
n=600 leaf=12 order=4 dist=ellipsoid kernel=yukawa gradient=1
only=make_words|gather_points rows
CASES
# The command of a check: TOOL CASE BENCH; the case `rows` is of a test's small sets.
check_command() {
  local only="" command="$3 ${2#only=* } runs=1 samples=10"
  case "$1 $2" in "racecheck only="*) only=" --kernel-regex kns=$(expr "$2" : 'only=\([^ ]*\)')" ;; esac
  case "$2" in *" rows") command="${3%tools/bench-gpu}tests/test_gpu_rows few" ;; esac
  echo "compute-sanitizer --tool $1$only --error-exitcode 9 $command"
}
begin_tests() {
  later test_gpu_phases "$build/tests/test_gpu_phases"
  later test_gpu_levels "$build/tests/test_gpu_levels"
  later random_cases env "XDG_STATE_HOME=$work/state" python3 tests/tools/random-cases.py "$build/tools/fmm-run" 60 1 gpu hybrid1 hybrid2 hybrid3
  later test_sequences env "XDG_STATE_HOME=$work/state" "$build/tests/test_sequences" 8 1 4000 gpu
  for t in $cpu_tests; do later "${t#tests/}" "$build/$t"; done
}
run_sanitizers() {
  for tool in $tools; do
    sanitizers=()
    for i in "${!checks[@]}"; do
      later "$tool.$i" $(check_command $tool "${checks[$i]}" "$b")
      [ -z "$started" ] || sanitizers+=("$started")
    done
    wait "${sanitizers[@]}"
  done
}
show_tests() {
  wait
  shown="tests/test_gpu_phases"
  block "Phases against their references" earlier test_gpu_phases
  shown="tests/test_gpu_levels"
  block "Up and down of few and of many leaves" earlier test_gpu_levels
  shown="tests/tools/random-cases.py tools/fmm-run 60 1 gpu hybrid1 hybrid2 hybrid3"
  block "Random cases on every schedule with a GPU" earlier random_cases
  shown="tests/test_sequences 8 1 4000 gpu"
  block "Random sequences of one plan's points and densities" earlier test_sequences
  shown=
  block "Schedules through the plan" "$build/tests/test_gpu_plan"
  block "The caller's arrays" "$build/tests/test_gpu_arrays"
  block "Which memory and which GPU" "$build/tests/test_gpu_devices"
  block "Rows that are there before the tree" "$build/tests/test_gpu_rows"
  say ""
  say "The CPU's kernels on this host ($(grep -m1 -o 'avx512f' /proc/cpuinfo || echo 'no AVX-512'), $(grep -m1 -o 'avx2' /proc/cpuinfo || echo 'no AVX2')), each level that it has against the plain one:"
  for t in $cpu_tests; do
    shown=$t
    block "${t#tests/}" earlier "${t#tests/}"
  done
  shown=
}
show_sanitizers() {
  for tool in $tools; do
    for i in "${!checks[@]}"; do
      shown=$(check_command $tool "${checks[$i]}" tools/bench-gpu)
      block "compute-sanitizer $tool, ${checks[$i]}" earlier_check "$tool.$i"
    done
  done
  shown=
}
run_times() {
  block "Rates" "$b" n=1000 leaf=2000 rates=1 samples=0
  # Leaf sizes and root scales are those that make a case fastest; most_ms and most_error are the 2014 code's (the first five), then the project's goals.
  block "4,194,304 uniform" "$b" n=4194304 leaf=110 root=1.6 pinned=1 most_ms=51.1 most_error=2.2e-7
  block "4,194,304 ellipsoid" "$b" n=4194304 leaf=220 root=1.5 dist=ellipsoid pinned=1 most_ms=41.4 most_error=2.2e-7
  block "1,048,576 uniform" "$b" n=1048576 leaf=110 root=1.3 most_ms=17.4 most_error=1.8e-7
  block "1,048,576 ellipsoid" "$b" n=1048576 leaf=200 root=1.35 dist=ellipsoid most_ms=16.4 most_error=3.8e-7
  block "1,048,576 ellipsoid, order 4" "$b" n=1048576 leaf=128 dist=ellipsoid order=4 most_ms=10.1 most_error=6.0e-5
  block "4,194,304 uniform, order 5" "$b" n=4194304 leaf=110 root=1.6 order=5 most_error=2.2e-7
  block "4,194,304 ellipsoid, order 5" "$b" n=4194304 leaf=150 root=1.25 dist=ellipsoid order=5
  block "4,194,304 uniform, mixed precision, signed" "$b" n=4194304 leaf=220 precision=mixed densities=signed order=7 most_ms=11 most_error=1e-6
  block "4,194,304 uniform, potential and gradient" "$b" n=4194304 leaf=110 root=1.6 gradient=1 most_ms=24
  block "The same, mixed precision, signed" "$b" n=4194304 leaf=110 root=1.6 order=8 gradient=1 precision=mixed densities=signed most_error=1e-6
  block "1,000,000 uniform, order 11" "$b" n=1000000 leaf=512 root=1.3 order=11
  block "1,000,000 ellipsoid, order 10" "$b" n=1000000 leaf=300 root=1.25 dist=ellipsoid order=10
  block "1,048,576 uniform, 4 density columns" "$b" n=1048576 leaf=64 columns=4 samples=200
  block "4,194,304 uniform, Stokes" "$b" n=4194304 leaf=220 kernel=stokes samples=200
  if [ -f .carry/suite/achbp.pqr ]; then block "A protein of 16,090 atoms" "$b" file=.carry/suite/achbp.pqr leaf=64 order=7; fi
  if [ -f .carry/suite/achbp.pqr ]; then block "The same, mixed precision" "$b" file=.carry/suite/achbp.pqr leaf=64 order=7 precision=mixed most_error=1e-6; fi
  block "16,090 uniform" "$b" n=16090 leaf=64
  block "16,090 uniform, one leaf" "$b" n=16090 leaf=20000
  block "Calibration" "$build/tools/fmm-calibrate" --effort standard --profile "$out/profile.json"
  block "4,194,304 uniform by fmm-run, host to host" "$build/tools/fmm-run" --generate uniform --points 4194304 --densities unit --digits 6 --schedule gpu --repeat 5 --verify 1000 --profile "$out/profile.json"
  block "4,194,304 ellipsoid by fmm-run, host to host" "$build/tools/fmm-run" --generate ellipsoid --points 4194304 --densities unit --digits 6 --schedule gpu --repeat 5 --verify 1000 --profile "$out/profile.json"
  for case in uniform ellipsoid; do
    for brought in 1 0; do
      block "4,194,304 $case that move: set-up, rows $([ $brought = 1 ] && echo "brought at once" || echo "sorted by the host")" "$build/tools/bench-cpu" schedule=auto dist=$case n=4194304 digits=6 threads=16 runs=3 moves=7 samples=0 brought=$brought profile="$out/profile.json"
    done
  done
  block "Choice of the schedule, whole GPU" "$build/tools/bench-schedules" profile="$out/profile.json"
  block "Calibration of 8 multiprocessors" "$build/tools/fmm-calibrate" --effort standard --gpu-sms 8 --profile "$out/profile-8.json"
  block "Choice of the schedule, 8 multiprocessors" "$build/tools/bench-schedules" profile="$out/profile-8.json" sms=8
  if command -v ncu >/dev/null; then
    shown="ncu --clock-control none --metrics gpu__time_duration.sum tools/bench-gpu n=1048576 leaf=110 root=1.3 runs=1 samples=0"
    block "Kernels of one evaluation, 1,048,576 uniform" kernels_of_one n=1048576 leaf=110 root=1.3
    shown="ncu --clock-control none --metrics gpu__time_duration.sum tools/bench-gpu n=16090 leaf=64 runs=1 samples=0"
    block "Kernels of one evaluation, 16,090 uniform" kernels_of_one n=16090 leaf=64
    shown=
  fi
  block "100,000,000 uniform" "$b" n=100000000 leaf=100 samples=20 runs=3
}
case $part in all | tests) begin_tests ;; esac
case "$mode $part" in "full all" | *sanitizers) run_sanitizers ;; esac # beside the tests
case $part in all | tests) show_tests ;; esac
case "$mode $part" in "full all" | *sanitizers) show_sanitizers ;; esac
case $part in all | times) run_times ;; esac
say ""
if [ -n "$failed" ]; then say "Failed: ${failed#; }"; elif [ -z "$skipped" ]; then say "All passed."; else say "What was begun passed."; fi
if [ -n "$skipped" ]; then say "Not begun, or cut off, within ${LIMIT:-} s: ${skipped#; }"; fi
[ -z "$failed$skipped" ]
