#!/bin/sh
# What the libraries may reference and export, read from their symbols by nm.
#   check-layering.sh BUILD HEADER ARCHIVE_PATHS...     archives by layer: core=A.a model=B.a sched=C.a exec=D.a,E.a calib=F.a
# 1. No layer references a symbol that only a later layer defines (core <- model <- sched <- exec <- calib).
# 2. core, model and sched reference nothing of CUDA; nothing references a CUDA library at load time.
# 3. The library never exits, aborts or prints.
# 4. The shared library exports exactly the functions that the public header declares.
set -eu

build=$1; header=$2; shift 2
layers=''
scratch=$(mktemp -d "${TMPDIR:-/tmp}/hybridfmm-layering.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
problems=0
problem() { printf 'layering: %s\n' "$*" >&2; problems=$((problems + 1)); }

cd "$build"
for word in "$@"; do
  layer=${word%%=*}
  layers="$layers $layer"
  printf '%s\n' "${word#*=}" | tr ',' '\n' >"$scratch/$layer.archives"
  : >"$scratch/$layer.defined"
  : >"$scratch/$layer.undefined"
  while IFS= read -r archive; do
    nm --defined-only --extern-only "$archive" 2>/dev/null | awk 'NF == 3 { print $3 }' >>"$scratch/$layer.defined"
    nm --undefined-only "$archive" 2>/dev/null | awk 'NF == 2 { print $2 }' >>"$scratch/$layer.undefined"
  done <"$scratch/$layer.archives"
  sort -u -o "$scratch/$layer.defined" "$scratch/$layer.defined"
  sort -u -o "$scratch/$layer.undefined" "$scratch/$layer.undefined"
done
[ -s "$scratch/core.defined" ] || problem "nm finds no symbol in the core archive: nothing was checked"

# 1. Each layer against all later ones.
earlier=''
for layer in $layers; do
  for before in $earlier; do
    comm -23 "$scratch/$layer.defined" "$scratch/$before.defined" |
      comm -12 - "$scratch/$before.undefined" >"$scratch/forbidden"
    while IFS= read -r symbol; do problem "$before references $symbol, which $layer defines"; done <"$scratch/forbidden"
  done
  earlier="$earlier $layer"
done

# 2. CUDA.
cuda='^_*(cu[A-Z]|cuda[A-Z]|cudart|cufft|cublas|nvrtc|nvml)'
for layer in core model sched; do
  grep -E "$cuda" "$scratch/$layer.undefined" >"$scratch/forbidden" || true
  while IFS= read -r symbol; do problem "$layer references $symbol of CUDA"; done <"$scratch/forbidden"
done
readelf -d libhybridfmm.so | grep -E 'NEEDED.*(libcuda|libcudart|libcufft|libcublas|libnv)' >"$scratch/forbidden" || true
while IFS= read -r line; do problem "load-time dependency on CUDA: $line"; done <"$scratch/forbidden"

# 3. Exit, abort, print. fprintf and fputs to a file that a caller named are allowed, the standard streams are not.
# __assert_fail: only in debug builds (release builds define NDEBUG).
never='^(exit|_exit|_Exit|quick_exit|abort|raise|printf|__printf_chk|vprintf|__vprintf_chk|puts|putchar|perror|stdout|stderr|psignal|err|errx|warn|warnx|system)$'
for layer in $layers; do
  grep -E "$never" "$scratch/$layer.undefined" >"$scratch/forbidden" || true
  while IFS= read -r symbol; do
    # nvcc gives every device function a host body that exits and is never called: not ours
    [ "$symbol" != exit ] || xargs nm -A --undefined-only <"$scratch/$layer.archives" 2>/dev/null | grep ' U exit$' | grep -qv '\.cu\.o:' || continue
    problem "$layer references $symbol: the library never exits, aborts or prints"
  done <"$scratch/forbidden"
done

# 4. Exports. Names that begin with __ belong to the compiler (sanitizers).
sed -n 's/^FMM_API .*[ *]\(fmm_[a-z0-9_]*\)(.*/\1/p' "$header" | sort -u >"$scratch/declared"
[ -s "$scratch/declared" ] || problem "no declaration found in $header"
nm -D --defined-only libhybridfmm.so | awk 'NF == 3 && $3 !~ /^__/ { print $3 }' | sort -u >"$scratch/exported"
comm -13 "$scratch/declared" "$scratch/exported" >"$scratch/extra"
while IFS= read -r symbol; do problem "exports $symbol, which the header does not declare"; done <"$scratch/extra"
comm -23 "$scratch/declared" "$scratch/exported" >"$scratch/absent"
while IFS= read -r symbol; do problem "does not export $symbol, which the header declares"; done <"$scratch/absent"

[ "$problems" = 0 ] || { printf 'layering: %s problems\n' "$problems" >&2; exit 1; }
printf 'layering: %s layers, %s exported functions, no problem\n' "$#" "$(wc -l <"$scratch/exported")"
