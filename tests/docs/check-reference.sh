#!/bin/sh
# The reference pages against what they describe: every public function and status of the header, every option that the commands' --help
# names, the schema and keys of a profile, and every link between pages.
#   check-reference.sh SOURCE COMMAND_PATHS...
set -eu

source=$1; shift
header=$source/runtime/hybridfmm/fmm.h
api=$source/docs/reference-api.md
commands=$source/docs/reference-commands.md
problems=0
checked=0
problem() { printf 'docs: %s\n' "$*" >&2; problems=$((problems + 1)); }
# mentions PAGE TEXT
mentions() { checked=$((checked + 1)); grep -qF -e "$2" "$1" || problem "$(basename "$1") does not mention $2"; }

for name in $(sed -n 's/^FMM_API .*[ *]\(fmm_[a-z0-9_]*\)(.*/\1/p' "$header"); do mentions "$api" "$name"; done

# X(FMM_ERR_INPUT, "input", 3, "meaning") is the row | `FMM_ERR_INPUT` | input | 3 | meaning |
sed -n 's/^ *X(\(FMM_[A-Z_]*\), "\([a-z]*\)", \([0-9]*\), "\(.*\)").*/| `\1` | \2 | \3 | \4 |/p' "$header" >"${TMPDIR:-/tmp}/hybridfmm-rows.$$"
while IFS= read -r row; do mentions "$api" "$row"; done <"${TMPDIR:-/tmp}/hybridfmm-rows.$$"
rm -f "${TMPDIR:-/tmp}/hybridfmm-rows.$$"

for pair in $(sed -n "s/^pair_interactions = \[\(.*\)\]/\1/p" "$source/meson.build" | tr -d "',"); do mentions "$api" "| \`$pair\` |"; done

profile=$source/docs/reference-profile.md
mentions "$profile" "| \`schema\` | $(sed -n 's/.*FMM_PROFILE_SCHEMA = \([0-9]*\).*/\1/p' "$source/model/machine.h");"
for key in $(grep -ohE '"[a-z0-9_]+":' "$source"/tests/machines/*.json | tr -d '":' | sort -u); do mentions "$profile" "\`$key\`"; done

# Options, both ways.
if [ $# -gt 0 ]; then
  all_help=$(for command in "$@"; do "$command" --help </dev/null; done)
  for option in $(printf '%s\n' "$all_help" | grep -oE -e '--[a-z][a-z-]+' | sort -u); do mentions "$commands" "$option"; done
  for option in $(grep -oE -e '`--[a-z][a-z-]+' "$commands" | tr -d '`' | sort -u); do
    printf '%s\n' "$all_help" | grep -qF -e "$option" || problem "reference-commands.md describes $option, which no --help names"
  done
fi

# Links between pages.
for page in "$source"/*.md "$source"/docs/*.md "$source"/docs/results/*.md; do
  for link in $(grep -oE '\]\([^)# ]+' "$page" | sed 's/^](//' | grep -vE '^[a-z]+:'); do
    checked=$((checked + 1))
    [ -e "$(dirname "$page")/$link" ] || problem "$(basename "$page") links to $link, which is not there"
  done
done

[ "$problems" = 0 ] || exit 1
printf 'docs: %s names and links checked\n' "$checked"
