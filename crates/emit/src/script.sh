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

