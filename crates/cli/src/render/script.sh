# Each line of a list below is one setting; $mode says what to do with it:
# check: is it so?   set: make it so, and read it back.
# Values are compared as sets: the kernel prints lists in one form only, masks lose their commas and
# leading zeros first, words their tabs.
mode=check
bad=0
stop=0
# 1: nothing after the first failure.
halt=0
changed=0

say() { [ "$mode" = check ] || echo "$*"; }
wrong() { bad=$((bad + 1)); echo "$*" >&2; }

# The interrupt whose action has one of these names, looked up now: numbers change with the
# channels, and some drivers name an interrupt differently when it serves one direction or both.
find_irq() {
  irq=
  for dir in "/sys/class/net/$1/device/msi_irqs" "/sys/class/net/$1/device/../msi_irqs"; do
    [ -d "$dir" ] || continue
    for n in "$dir"/*; do
      n=${n##*/}
      names=
      { read -r names < "/sys/kernel/irq/$n/actions"; } 2>/dev/null
      for name in $2; do
        case ",$names," in *",$name,"*) irq=$n; return 0 ;; esac
      done
    done
  done
  while read -r n names; do
    case $n in *[!0-9:]*|'') continue ;; esac
    for name in $2; do
      case " $names," in *" $name,"*) irq=${n%:}; return 0 ;; esac
    done
  done < /proc/interrupts
  return 1
}

# $1 as mask, list or number in one form -> $norm
normal() {
  norm=$1
  case $2 in
    words) norm=$(echo $1); return 0 ;;
    mask) norm=${1:-0} ;;
    *) return 0 ;;
  esac
  joined=
  while :; do
    case $norm in
      *,*) joined=$joined${norm%%,*}; norm=${norm#*,} ;;
      *) norm=$joined$norm; break ;;
    esac
  done
  while :; do
    case $norm in 0?*) norm=${norm#0} ;; *) break ;; esac
  done
}

# What it is about, its file, the kind of its value, the value.
value() {
  [ "$stop" = 0 ] || return 0
  got=
  if ! got=$(cat "$2" 2>/dev/null); then
    wrong "$1: cannot be read: $2"; [ "$mode" = check ] || stop=$halt; return 0
  fi
  normal "$4" "$3"; want=$norm
  normal "$got" "$3"
  if [ "$norm" = "$want" ]; then say "$1: $4, so already"; return 0; fi
  if [ "$mode" = check ]; then wrong "$1: is $got, not $4"; return 0; fi
  changed=1
  if ! why=$( { echo "$4" > "$2"; } 2>&1); then
    wrong "$1: $4 is refused ($2): ${why##*: }"; stop=$halt; return 0
  fi
  got=
  got=$(cat "$2" 2>/dev/null)
  normal "$got" "$3"
  if [ "$norm" = "$want" ]; then say "$1: $4"; return 0; fi
  wrong "$1: written $4, reads back as $got ($2)"; stop=$halt
}

# No program that is everywhere speaks to irqbalance's socket: said once, and not counted.
told=
by_hand() {
  [ "$mode" = set ] || return 0
  case " $told " in *" $1 "*) return 0 ;; esac
  told="$told $1"
  echo "$1: irqbalance is not told by this script and will move these interrupts: ban them yourself" >&2
  echo "  (its options --banirq= or --policyscript=; ringwise apply does it over its socket)" >&2
}

# Device, names of the action, CPU list.
irq_cpus() {
  [ "$stop" = 0 ] || return 0
  if find_irq "$1" "$2"; then
    value "$1 interrupt CPU $2" "/proc/irq/$irq/smp_affinity_list" list "$3"
  else
    wrong "$1: no interrupt is named $2"; [ "$mode" = check ] || stop=$halt
  fi
}

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
