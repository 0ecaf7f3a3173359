#!/bin/sh
# Rules of CONTRIBUTING.md that reading the sources can check: files of at most 500 lines that open with what they are; memory
# and files only through their seams; no global OpenMP state; no atomics, which would make floating-point sums depend on timing.
#   check-sources.sh SOURCE
set -eu

cd "$1"
problems=0
problem() { printf 'sources: %s\n' "$*" >&2; problems=$((problems + 1)); }
# forbid WHY PATTERN EXCEPTED_FILE...: no library or command source may match (comments of one line aside).
forbid() {
  why=$1; pattern=$2; shift 2
  # shellcheck disable=SC2086 # no path of the project has spaces
  hits=$(grep -nE "$pattern" $sources /dev/null | grep -vE '^[^:]*:[0-9]+: *(//|/?\*)' || true)
  for excepted in "$@"; do hits=$(printf '%s\n' "$hits" | grep -v "^$excepted:" || true); done
  [ -z "$hits" ] || problem "$why:
$hits"
}

sources=$(find runtime kernels model sched calib tools -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort)
for file in $sources $(find tests -name '*.[ch]'); do
  lines=$(wc -l <"$file")
  [ "$lines" -le 500 ] || problem "$file has $lines lines; at most 500, one concept a file"
  case $(head -c 2 "$file") in '/*' | '//') ;; *) problem "$file does not open with what it is" ;; esac
done


{
  forbid "memory is allocated through runtime/memory.h" '(^|[^_[:alnum:]])(malloc|calloc|realloc|aligned_alloc|posix_memalign)\(' runtime/memory.c
  forbid "files are written through runtime/file.h (reading the system's own, mode \"re\", is allowed)" \
    '(^|[^_[:alnum:]])(creat|fdopen|mkstemp)\(|(^|[^_[:alnum:]])fopen\([^)]*"[wa]' runtime/file.c
  forbid "the caller's OpenMP settings stay as they are" 'omp_set_(num_threads|dynamic|nested|schedule)'
  forbid "no atomics on data: blocks that the tree fixes give the same bits for any number of threads" '#pragma omp atomic|atomicAdd'
}

[ "$problems" = 0 ] || exit 1
printf 'sources: %s files checked\n' "$(printf '%s\n' "$sources" | wc -l)"
