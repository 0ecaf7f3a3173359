#!/bin/sh
# Runs the two quick-start commands each in a clean root of Debian 12, so that no missing set-up step hides.
#
#   tools/test-in-clean-root.sh [FOLDER]       as root; FOLDER (default: a new one in /tmp) needs about 3 GB
#
# Needs debootstrap and unshare (util-linux). The package mirror is the one this machine's apt uses for Debian 12; on another
# system name one in FMM_DEBIAN_MIRROR. Tests what is committed (a clone of HEAD), not the working tree. Exit code 0: both passed.
# FMM_CLEAN_ROOT_COMMANDS: what to run, one command a line (default: `./quickstart.sh` and `./quickstart.sh test`).
# FMM_CLEAN_ROOT_SUITE=noble makes it Ubuntu 24.04; FMM_DEBIAN_MIRROR must then name an Ubuntu mirror. Without Ubuntu's keyring on
# this machine the packages' signatures are not checked.
set -eu

suite=${FMM_CLEAN_ROOT_SUITE:-bookworm}
commands=${FMM_CLEAN_ROOT_COMMANDS:-'./quickstart.sh
./quickstart.sh test'}

fail() { printf 'test-in-clean-root: error: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "needs root (debootstrap and chroot)"
for tool in debootstrap unshare chroot git; do
  command -v "$tool" >/dev/null 2>&1 || fail "needs $tool"
done

# Mounts below are made in a name space of their own, so that nothing is left mounted whatever happens.
if [ "${FMM_CLEAN_ROOT_INNER:-}" != 1 ]; then
  FMM_CLEAN_ROOT_INNER=1 exec unshare --mount --propagation private "$0" "$@"
fi

source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
folder=${1:-}
if [ -z "$folder" ]; then folder=$(mktemp -d /tmp/hybridfmm-clean-root.XXXXXX); fi
mkdir -p "$folder"
base=$folder/base

# The mirror, as apt on this machine is configured.
mirror() {
  if [ -n "${FMM_DEBIAN_MIRROR:-}" ]; then printf '%s\n' "$FMM_DEBIAN_MIRROR"; return; fi
  apt-get indextargets --format '$(REPO_URI)|$(CODENAME)|$(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -F'|' -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }'
}

make_base() {
  [ ! -f "$base/.complete" ] || return 0
  from=$(mirror)
  [ -n "$from" ] || fail "this machine's apt names no mirror of $suite; set FMM_DEBIAN_MIRROR=URL"
  printf 'Making a clean root (%s) in %s\n' "$suite" "$base"
  set -- --variant=minbase
  case $from in https:*) set -- "$@" --include=ca-certificates ;; esac
  scripts=''
  if [ "$suite" = noble ]; then
    set -- "$@" --components=main,universe
    [ -f /usr/share/keyrings/ubuntu-archive-keyring.gpg ] || set -- "$@" --no-check-gpg
    # An older debootstrap does not know the name; all Ubuntu releases use one script.
    [ -f /usr/share/debootstrap/scripts/noble ] || scripts=/usr/share/debootstrap/scripts/gutsy
  fi
  debootstrap "$@" "$suite" "$base" "$from" ${scripts:+"$scripts"} >"$folder/debootstrap.log" 2>&1 ||
    { tail -n 20 "$folder/debootstrap.log" >&2; fail "debootstrap failed"; }
  touch "$base/.complete"
}

# enter ROOT COMMAND: runs it in the clone inside, with a bare environment, no standard input, this machine's proxies if any.
enter() {
  root=$1; inside=$2
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
  status=0
  chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
    sh -c "cd '/root/a clone' && $inside" </dev/null || status=$?
  umount "$root/proc" "$root/sys"
  return $status
}

make_base
failures=0
number=0
# The commands come on descriptor 3, out of reach of what they run.
while IFS= read -r command <&3; do
  [ -n "$command" ] || continue
  number=$((number + 1))
  root=$folder/root$number
  rm -rf --one-file-system "$root"
  cp -a "$base" "$root"
  git -c safe.directory='*' clone -q --no-hardlinks "$source" "$root/root/a clone"
  printf '\n#### in a clean root: %s\n' "$command"
  start=$(date +%s)
  if enter "$root" "$command"; then verdict=passed; else verdict=FAILED; failures=$((failures + 1)); fi
  printf '#### %s: %s after %s s\n' "$command" "$verdict" "$(($(date +%s) - start))"
  rm -rf --one-file-system "$root"
done 3<<END
$commands
END

[ -n "${1:-}" ] || rm -rf --one-file-system "$folder"
[ "$failures" = 0 ] || fail "$failures of $number commands failed"
