#!/bin/sh
# Builds and runs every program that the documentation shows: fenced blocks ```c that have a main, and blocks ```sh test, in the
# order of each page and in one folder a page. C is built with the public header and the built library alone.
#   run-doc-programs.sh SOURCE BUILD C_COMPILER...
set -eu

source=$1; build=$2; shift 2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/hybridfmm-docs.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
failures=0
programs=0

# extract PAGE: writes its blocks as NNN.c and NNN.sh, numbered by the line they begin at.
extract() {
  awk '
    /^```/ && inside { close(file); inside = 0; next }
    /^```c$/ { file = sprintf("%05d.c", NR); inside = 1; printf "" >file; next }
    /^```sh test$/ { file = sprintf("%05d.sh", NR); inside = 1; print "set -eu" >file; next }
    /^```/ { file = "/dev/null"; inside = 1; next }
    inside { print >file }' "$1"
}

run_block() {
  case $1 in
    *.c) grep -q 'int main' "$1" || return 0
      "$compiler_words" "$1" ;;
    *.sh) [ ! -x "$build/tools/fmm-run" ] || [ ! -x "$build/tools/fmm-predict" ] || sh "./$1" </dev/null ;;
  esac
}

cat >"$scratch/compile-and-run" <<END
#!/bin/sh
set -eu
$(printf "'%s' " "$@") -Wall -Wextra -Werror -I '$source/runtime' "\$1" -o program -L '$build' -Wl,-rpath,'$build' -lhybridfmm -lm
./program
END
chmod +x "$scratch/compile-and-run"
compiler_words=$scratch/compile-and-run

# No profile of the user is read or written: the first command calibrates quickly, as for a newcomer.
unset FMM_PROFILE
export XDG_STATE_HOME="$scratch/state" PATH="$build/tools:$PATH"

for page in "$source/README.md" "$source"/docs/*.md; do
  name=$(basename "$page" .md)
  mkdir "$scratch/$name"
  cd "$scratch/$name"
  extract "$page"
  for block in *.c *.sh; do
    [ -e "$block" ] || continue
    programs=$((programs + 1))
    if run_block "$block" >output 2>&1; then
      printf 'ok      %s line %s\n' "$name.md" "$(expr "${block%.*}" + 0)"
    else
      printf 'FAILED  %s line %s\n' "$name.md" "$(expr "${block%.*}" + 0)"
      cat output
      failures=$((failures + 1))
    fi
  done
done
[ "$programs" -gt 0 ] || { echo 'no program found in the documentation' >&2; exit 1; }
[ "$failures" = 0 ] || { printf '%s of %s programs of the documentation failed\n' "$failures" "$programs" >&2; exit 1; }
