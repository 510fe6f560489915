# Arguments: a required program, and a word that its help must contain.
need() {
  command -v "$1" >/dev/null 2>&1 || { echo "$1 is needed but not installed; nothing was touched" >&2; exit 6; }
  [ -z "${2:-}" ] || "$1" --help 2>&1 | grep -qF -e "$2" || {
    echo "this $1 is too old: it does not support $2; nothing was touched" >&2
    exit 6
  }
}

# A setting that the script may disturb and cannot restore. It is reported when the script puts settings back.
unable() {
  [ "$mode" = set ] || return 0
  unable="${unable:+$unable, }$1"
}
unable=

# Arguments: device, and paths one of which exists if it is still the same device.
same_device() {
  for there in $2; do
    [ -e "$there" ] && return 0
  done
  echo "$1 is not the device that this script was made for (looked for $2); nothing was touched" >&2
  exit 6
}

# Lists the settings of the plan that a script cannot write, before anything else and again at the end.
leaves_out() { left_out | sed 's/^/  /' >&2; exit 3; }

apply() {
  tools
  devices
  if [ -n "$(left_out)" ] && [ "${PARTIAL:-}" != 1 ]; then
    echo "nothing was touched: no common tool can write these settings (ringwise apply can); PARTIAL=1 applies the rest" >&2
    left_out | sed 's/^/  /' >&2
    exit 6
  fi
  mode=check
  halt=0
  if all_so planned; then
    [ -z "$(left_out)" ] || { echo "nothing to do, except what this script cannot write:" >&2; leaves_out; }
    echo "nothing to do"
    exit 0
  fi
  if ! all_so found && [ "${FORCE:-}" != 1 ]; then
    found
    echo "The host changed since this script was made; nothing was touched. FORCE=1 applies it anyway." >&2
    exit 6
  fi
  bad=0; stop=0; mode=set; halt=1
  planned
  if [ "$bad" = 0 ]; then
    mode=check
    planned
    if [ "$bad" = 0 ]; then
      echo "applied; undo with: $0 undo"
      [ -z "$(left_out)" ] || { echo "applied, except what this script cannot write:" >&2; leaves_out; }
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

# Whether the host matches every setting of this list. Prints nothing.
all_so() { (bad=0; "$1"; [ "$bad" = 0 ]) 2>/dev/null; }

# $1: the exit status if everything could be put back.
put_back() {
  bad=0; stop=0; mode=set; halt=0
  before
  mode=check; bad=0
  before
  [ -z "$unable" ] || echo "not checked, because no common tool can put it back: $unable" >&2
  if [ "$bad" = 0 ]; then
    echo "the host is as before"
    exit "$1"
  fi
  echo "NOT fully put back: $bad settings, listed above" >&2
  exit 5
}

case ${1:-} in
  apply) apply ;;
  undo) tools; devices; put_back 0 ;;
  *) echo "usage: $0 apply|undo" >&2; exit 2 ;;
esac
