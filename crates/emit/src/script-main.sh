# A program that is needed, and a word that its help must have.
need() {
  command -v "$1" >/dev/null 2>&1 || { echo "$1 is needed and not installed; nothing was touched" >&2; exit 6; }
  [ -z "${2:-}" ] || "$1" --help 2>&1 | grep -qF -e "$2" || {
    echo "this $1 is too old: it does not know $2; nothing was touched" >&2
    exit 6
  }
}

# Beside what is written, and not to be had without ringwise: said once where things are put back.
unable() {
  [ "$mode" = set ] || return 0
  unable="${unable:+$unable, }$1"
}
unable=

# Device and what must exist if it is still the same one.
same_device() {
  for there in $2; do
    [ -e "$there" ] && return 0
  done
  echo "$1 is not the device that this was made for (looked for $2)" >&2
  exit 6
}

# What of the plan a script cannot write: before anything else, and again at the end.
leaves_out() { left_out | sed 's/^/  /' >&2; exit 3; }

apply() {
  tools
  devices
  if [ -n "$(left_out)" ] && [ "${PARTIAL:-}" != 1 ]; then
    echo "nothing was touched: no common tool writes these (ringwise apply does); PARTIAL=1 does all else" >&2
    left_out | sed 's/^/  /' >&2
    exit 6
  fi
  mode=check
  halt=0
  if all_so planned; then
    [ -z "$(left_out)" ] || { echo "nothing to do but what this cannot write:" >&2; leaves_out; }
    echo "nothing to do"
    exit 0
  fi
  if ! all_so found && [ "${FORCE:-}" != 1 ]; then
    found
    echo "Changed since this was made; nothing was touched. FORCE=1 applies it all the same." >&2
    exit 6
  fi
  bad=0; stop=0; mode=set; halt=1
  planned
  if [ "$bad" = 0 ]; then
    mode=check
    planned
    if [ "$bad" = 0 ]; then
      echo "applied; undo with: $0 undo"
      [ -z "$(left_out)" ] || { echo "but for what this cannot write:" >&2; leaves_out; }
      exit 0
    fi
  fi
  if [ "$changed" = 0 ]; then
    echo "failed; nothing was changed" >&2
    exit 1
  fi
  echo "failed; putting back" >&2
  put_back 4
}

# In silence: is everything in this list so?
all_so() { (bad=0; "$1"; [ "$bad" = 0 ]) 2>/dev/null; }

# $1: the status when all is back.
put_back() {
  bad=0; stop=0; mode=set; halt=0
  before
  mode=check; bad=0
  before
  [ -z "$unable" ] || echo "not looked at, as no common tool can put it back: $unable" >&2
  if [ "$bad" = 0 ]; then
    echo "the host is as before"
    exit "$1"
  fi
  echo "NOT fully put back: $bad settings, named above" >&2
  exit 5
}

case ${1:-} in
  apply) apply ;;
  undo) tools; devices; put_back 0 ;;
  *) echo "usage: $0 apply|undo" >&2; exit 2 ;;
esac
