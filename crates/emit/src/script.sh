# Each line of a list above is one setting. $mode decides what happens to it:
# check: compare it with the host.   set: write it, and read it back.
# Values are compared in one form: the kernel prints lists in one form only; commas and leading zeros
# of masks and tabs between words are removed.
mode=check
bad=0
stop=0
# 1: stop after the first failure.
halt=0
changed=0

say() { [ "$mode" = check ] || echo "$*"; }
wrong() { bad=$((bad + 1)); echo "$*" >&2; }

# Finds the interrupt whose action has one of these names. It is looked up now, because numbers change with the
# channels, and some drivers name an interrupt differently when it serves both directions.
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

# Puts $1, which is a mask, list or number, into one form -> $norm
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

# Arguments: description, file, kind of the value, value.
value() {
  [ "$stop" = 0 ] || return 0
  got=
  if ! got=$(cat "$2" 2>/dev/null); then
    wrong "$1: cannot be read: $2"; [ "$mode" = check ] || stop=$halt; return 0
  fi
  normal "$4" "$3"; want=$norm
  normal "$got" "$3"
  if [ "$norm" = "$want" ]; then say "$1: $4 already"; return 0; fi
  if [ "$mode" = check ]; then wrong "$1: is $got, expected $4"; return 0; fi
  changed=1
  if ! why=$( { echo "$4" > "$2"; } 2>&1); then
    wrong "$1: the kernel refused $4 ($2): ${why##*: }"; stop=$halt; return 0
  fi
  got=
  got=$(cat "$2" 2>/dev/null)
  normal "$got" "$3"
  if [ "$norm" = "$want" ]; then say "$1: $4"; return 0; fi
  wrong "$1: wrote $4, reads back as $got ($2)"; stop=$halt
}

# No common tool can talk to the socket of irqbalance. This is reported once per interface and is not an error.
told=
by_hand() {
  [ "$mode" = set ] || return 0
  case " $told " in *" $1 "*) return 0 ;; esac
  told="$told $1"
  echo "$1: this script cannot configure irqbalance, which will move these interrupts: ban them yourself" >&2
  echo "  (options --banirq= or --policyscript= of irqbalance; ringwise apply uses its socket)" >&2
}

# Arguments: device, possible names of the action, CPU list.
irq_cpus() {
  [ "$stop" = 0 ] || return 0
  if find_irq "$1" "$2"; then
    value "$1 interrupt CPU $2" "/proc/irq/$irq/smp_affinity_list" list "$3"
  else
    wrong "$1: no interrupt is named $2"; [ "$mode" = check ] || stop=$halt
  fi
}

