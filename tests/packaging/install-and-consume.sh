#!/bin/sh
# Installs the build into an empty folder and builds and runs consumer.c (C and C++) against it with pkg-config alone.
#   install-and-consume.sh BUILD CONSUMER_C PREFIX LIBDIR C_COMPILER...
set -eu

build=$1; consumer=$2; prefix=$3; libdir=$4; shift 4 # what remains is the compiler with its flags
destination=$(mktemp -d "${TMPDIR:-/tmp}/hybridfmm-install.XXXXXX")
trap 'rm -rf "$destination"' EXIT
fail() { printf 'install-and-consume: %s\n' "$*" >&2; exit 1; }

(cd "$build" && meson install --no-rebuild --quiet --destdir "$destination") || fail "meson install failed"

for file in include/hybridfmm/fmm.h "$libdir/libhybridfmm.so" "$libdir/pkgconfig/hybridfmm.pc"; do
  [ -e "$destination$prefix/$file" ] || fail "$file was not installed"
done
headers=$(cd "$destination$prefix/include" && find . -type f | wc -l)
[ "$headers" = 1 ] || fail "$headers headers were installed; one is public"

# The system root makes pkg-config answer with paths inside the folder, as a packager's build does.
export PKG_CONFIG_SYSROOT_DIR="$destination" PKG_CONFIG_PATH="$destination$prefix/$libdir/pkgconfig"
version=$(pkg-config --modversion hybridfmm)
flags=$(pkg-config --cflags --libs hybridfmm)
printf 'pkg-config: version %s\n' "$version"

export LD_LIBRARY_PATH="$destination$prefix/$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# shellcheck disable=SC2086 # flags are words; the temporary folder has no spaces
"$@" -Wall -Wextra -Werror "$consumer" -o "$destination/consumer" $flags -lm || fail "consumer.c does not build"
"$destination/consumer" || fail "the consumer failed"

# The header serves C++ too.
sanitizer=$(printf '%s\n' "$@" | grep '^-fsanitize' || true)
if command -v c++ >/dev/null 2>&1; then
  printf '#include <hybridfmm/fmm.h>\nint main() { fmm_options o; return fmm_options_init(&o) == FMM_OK && fmm_version()[0] ? 0 : 1; }\n' >"$destination/consumer.cpp"
  # shellcheck disable=SC2086
  if ! c++ $sanitizer -Wall -Wextra -Werror "$destination/consumer.cpp" -o "$destination/consumer-cpp" $flags || ! "$destination/consumer-cpp"; then
    fail "the C++ consumer failed"; fi
fi
