#!/bin/sh
# Packs what gpu-suite.sh needs on a GPU machine without a package manager: the installed Debian packages that the build uses (no static libraries,
# no documentation) and Meson, as .carry/suite/carry.tar.xz. Run where the project builds; .carry is ignored by git.
set -eu
cd "$(dirname "$0")/.."
out=.carry/suite
mkdir -p "$out"
packages="libfftw3-dev libfftw3-double3 libfftw3-single3 liblapacke-dev liblapacke libopenblas-dev libopenblas-pthread-dev libopenblas0-pthread
libhwloc-dev libhwloc15 libjansson-dev libjansson4 libcmocka-dev libcmocka0 libgfortran5 libquadmath0 liblapack3 libblas3 libtmglib3
libudev1 libcap2 libxnvctrl0 pkgconf pkgconf-bin libpkgconf3"
list=$(mktemp)
for p in $packages; do
  dpkg -L "$p" 2>/dev/null || echo "gpu-carry: $p is not installed, left out" >&2
done | grep -vE '\.a$|/share/(doc|man|lintian|locale)' | while read -r f; do
  if [ -f "$f" ]; then echo "$f"; fi
done | sort -u >"$list"
# Links of Debian's alternatives lead nowhere there: their targets are named directly.
for l in libblas.so.3 liblapack.so.3 libopenblas.so.0 libopenblas.so; do
  [ -e "/usr/lib/x86_64-linux-gnu/$l" ] && echo "/usr/lib/x86_64-linux-gnu/$l" >>"$list"
done
tree=$(mktemp -d)
tar chf - -T "$list" 2>/dev/null | tar xf - -C "$tree"
"${MESON_PYTHON:-/usr/bin/python3}" - "$tree" <<'PY'
import mesonbuild, pathlib, shutil, sys
shutil.copytree(pathlib.Path(mesonbuild.__file__).parent, sys.argv[1] + "/meson/mesonbuild", ignore=shutil.ignore_patterns("__pycache__"))
PY
printf '%s\n' 'import sys' 'from mesonbuild import mesonmain' 'sys.exit(mesonmain.main())' >"$tree/meson/meson.py"
tar cf - -C "$tree" . | xz -T0 -2 >"$out/carry.tar.xz"
rm -rf "$tree" "$list"
ls -l "$out/carry.tar.xz"
