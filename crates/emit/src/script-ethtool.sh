
# Converts the output of ethtool to words with values: "rx-usecs:5", "adaptive-rx:off", "tx-tcp-segmentation:on" with
# "tx-tcp-segmentation.wish:off" if another value is requested, "table:0,1,0,1,", "key:6d:5a", "fields:sdfn".
# Prints the words of $expect that do not match, or "all" if all match. A value may be a|b (either), a..b (from, to),
# a~b (b only if nothing is written), * (any), - (no such line). If a line has a requested and an actual value, the
# actual value is compared.
look='
/^Current hardware settings/ { split("", has); next }
/^Adaptive RX:/ { has["adaptive-rx"] = $3; has["adaptive-tx"] = $5; next }
/^CQE mode RX:/ { has["cqe-mode-rx"] = $4; has["cqe-mode-tx"] = $6; next }
$1 ~ /^[0-9]+:$/ { for (i = 2; i <= NF; i++) table = table $i ","; next }
NF == 1 && /^[0-9a-fA-F][0-9a-fA-F]:[0-9a-fA-F:]*$/ { has["key"] = tolower($1); next }
$1 ~ /:$/ {
  name = substr($1, 1, length($1) - 1)
  sub(/^rx-frame-/, "rx-frames-", name); sub(/^tx-frame-/, "tx-frames-", name)
  has[name] = $2
  if ($3 == "[requested") has[name ".wish"] = substr($4, 1, length($4) - 1)
  next
}
# Of ring parameters, "RX Buf Len: 2048" is the word RX-Buf-Len.
/^[A-Z][A-Za-z]* [A-Za-z ]*:[ \t]+[^ \t]/ {
  at = index($0, ":"); name = substr($0, 1, at - 1); gsub(" ", "-", name)
  has[name] = $NF
  next
}
/^L2DA/ { fields = fields "m" }
/^VLAN tag/ { fields = fields "v" }
/^L3 proto/ { fields = fields "t" }
/^IP SA/ { fields = fields "s" }
/^IP DA/ { fields = fields "d" }
/^L4 bytes 0/ { fields = fields "f" }
/^L4 bytes 2/ { fields = fields "n" }
/^GTP TEID/ { fields = fields "e" }
/[Ff]low [Ll]abel/ { fields = fields "l" }
/discarded on RX/ { fields = fields "r" }
END {
  if (table != "") has["table"] = table
  if (fields != "") has["fields"] = fields
  n = split(expect, words, " ")
  for (i = 1; i <= n; i++) {
    at = index(words[i], ":"); name = substr(words[i], 1, at - 1); value = substr(words[i], at + 1)
    if (mode == "check") gsub("~", "|", value); else sub("~.*", "", value)
    got = (name in has) ? has[name] "" : "-"
    same = 0
    for (j = split(value, each, "|"); j > 0; j--) {
      if (each[j] "" == got || each[j] == "*" && got != "-") same = 1
      if (split(each[j], range, "[.][.]") == 2 && got + 0 >= range[1] + 0 && got + 0 <= range[2] + 0) same = 1
    }
    if (!same) out = out words[i] " "
  }
  print (out == "" ? "all" : out)
}'

# Whether the output of ethtool matches $expect now. Words that do not match -> $missing
holds() {
  missing=$(ethtool $ask "$dev" $more 2>/dev/null | awk -v mode="$mode" -v expect="$expect" "$look")
  [ "$missing" = all ]
}

tell() {
  if why=$(ethtool $tell "$dev" "$@" 2>&1 >/dev/null); then why=; else why=${why:-no reason}; fi
}

# Checks the result after the last call of ethtool. $1: the requested setting.
came() {
  if holds; then say "$1"; return 0; fi
  if [ -n "$why" ]; then why="ethtool reports: $why"; else why="ethtool accepted it, but reads back another value"; fi
  wrong "$1: not done; $why (missing: $missing)"; stop=$halt
}

# Whether $1 needs to be set. While checking, a difference is reported.
due() {
  if holds; then say "$1 already"; return 1; fi
  if [ "$mode" = check ]; then wrong "differs: $1"; return 1; fi
  changed=1
}

# A restart of the device takes its link down, and some drivers then write settings again when the link is back.
# link_back waits for that, at most half a minute. Call read_link before the change and link_back after it.
read_link() { up=0; { read -r up < "/sys/class/net/$dev/carrier"; } 2>/dev/null || up=0; }
link_back() {
  [ "$up" = 1 ] || return 0
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    read_link
    [ "$up" = 0 ] || return 0
    sleep 1
  done
}

# Arguments: device, show option of ethtool and its arguments after the device, set option, $expect, arguments to set.
by_ethtool() {
  again=
  ordered "$@"
}

ordered() {
  [ "$stop" = 0 ] || return 0
  dev=$1 ask=$2 more=$3 tell=$4 expect=$5; shift 5
  due "$dev $*" || return 0
  read_link
  tell "$@"
  link_back
  if [ -n "$again" ] && ! holds && $again; then ask=-l more= tell=-L; tell "$@"; link_back; fi
  came "$dev $*"
}

# Arguments: number of queues afterwards, RSS contexts that may exist, then as above. The kernel refuses to remove a
# queue that a configured table names. Such a table is reset to the default of the driver; the table of a context is
# spread over the remaining queues.
channels() {
  left=$1 contexts=$2; shift 2
  again=make_way
  ordered "$@"
}

make_way() {
  wanted=$expect made=1 expect= tell=-X ask=-x
  for c in 0 $contexts; do
    words=$(ethtool -x "$dev" $( [ "$c" = 0 ] || echo context "$c" ) 2>/dev/null | awk -v left="$left" -v context="$c" '
      $1 ~ /^[0-9]+:$/ { for (i = 2; i <= NF; i++) { if ($i >= left) doomed = 1; t[n++] = $i % left } }
      END {
        if (!doomed) exit
        if (context == 0) { print "default"; exit }
        for (i = 0; i < n; i++) { if (i == 0 || t[i] < low) low = t[i]; if (t[i] > high) high = t[i] }
        for (i = 0; i < n; i++) if (t[i] != low + i % (high - low + 1)) { low = 0; high = left - 1 }
        print "context", context, "equal", high - low + 1, "start", low
      }')
    [ -n "$words" ] || continue
    tell $words
    made=0
  done
  expect=$wanted
  return $made
}

# Arguments: device, mask of one queue or nothing, each parameter with its value. Only parameters that differ are set.
moderation() {
  [ "$stop" = 0 ] || return 0
  dev=$1 queue=$2 ask=-c more= tell=-C before=; shift 2
  if [ -n "$queue" ]; then
    ask=--per-queue tell=--per-queue more="queue_mask $queue --show-coalesce" before="queue_mask $queue --coalesce"
  fi
  expect=$*
  due "$dev${queue:+ queue mask $queue} $expect" || return 0
  parameters '*'
  # Some drivers refuse times together with adaptive moderation: switch it off first and on last.
  if ! holds; then
    parameters 'adaptive-*:off'
    holds || parameters '[!a]*'
    holds || parameters 'adaptive-*:on'
  fi
  came "$dev${queue:+ queue mask $queue} $expect"
}

# Sets the parameters of $missing that match the pattern $1.
parameters() {
  words=
  for w in $missing; do
    value=${w#*:} value=${value%%[|~]*}
    case ${w%%:*}:$value in $1) words="$words ${w%%:*} $value" ;; esac
  done
  [ -z "$words" ] || tell $before $words
}

# Arguments: device, feature, its name in the output of ethtool, on or off. A request that has no effect is withdrawn.
feature() {
  [ "$stop" = 0 ] || return 0
  dev=$1 ask=-k more= tell=-K expect=$3:$4
  due "$dev $2 $4" || return 0
  expect=$3.wish:$4
  if holds; then asked=1; else asked=; fi
  # When settings are put back, the feature changes together with the feature that it depends on.
  [ -z "$asked" ] || [ "$halt" = 1 ] || return 0
  read_link
  tell "$2" "$4"
  link_back
  expect=$3:$4
  refused=$why
  if [ -z "$asked" ] && ! holds; then
    case $4 in on) tell "$2" off ;; *) tell "$2" on ;; esac
    why=$refused
  fi
  came "$dev $2 $4"
}

# Prints the rules of a device, one per line: location, then the arguments that create it. "end": all were listed.
rules() {
  ethtool -n "$dev" 2>/dev/null | awk '
    function dec(x,  i, n) {
      if (x !~ /^0x/) return x
      for (i = 3; i <= length(x); i++) n = n * 16 + index("0123456789abcdef", substr(x, i, 1)) - 1
      return n + 0
    }
    function wide(x, digits) {
      x = substr(x, 3)
      while (length(x) < digits) x = "0" x
      return "0x" x
    }
    # Bits that are set in a mask are ignored. digits 0: an address.
    function field(name, digits, hex,  v, m, i) {
      for (i = 1; i <= NF; i++) if ($i == "mask:") { v = tolower($(i - 1)); m = tolower($(i + 1)) }
      if (digits ? length(m) == digits + 2 && m ~ /^0xf+$/ : m ~ /^[f:]+$/ && length(m) > 16 || m == "255.255.255.255") return
      if (digits && hex) v = wide(v, digits)
      else if (digits) { v = dec(v); if (v < 0) v += 4294967296 }
      f[name] = v
      if (digits ? m != "0x0" : m !~ /^[0.:]+$/) f[name] = v " m " (digits ? wide(m, digits) : m)
    }
    function flush(  i) {
      if (at == "") return
      out = at " " flow
      for (i = 1; i <= n; i++) if (names[i] in f) out = out " " names[i] " " f[names[i]]
      print out context action
      split("", f); at = context = action = ""
    }
    BEGIN { n = split("dst dst-ip dst-mac dst-port l4data l4proto proto spi src src-ip src-port tclass tos user-def vlan vlan-etype", names, " ") }
    /^Total [0-9]+ rules/ { total = 1 }
    /^Filter:/ { flush(); at = $2 }
    /(Rule|Flow) Type:/ {
      v = /IPv6/ ? 6 : 4
      flow = /SCTP/ ? "sctp" v : /TCP/ ? "tcp" v : /UDP/ ? "udp" v : /AH/ ? "ah" v : /ESP/ ? "esp" v : "unknown"
      if (/Raw/) flow = /Ethernet/ ? "ether" : "ip" v
    }
    /Src IP addr:/ { field("src-ip") }
    /Dest IP addr:/ { field("dst-ip") }
    /TOS:/ { field("tos", 2) }
    /Traffic Class:/ { field("tclass", 2) }
    /Src port:/ { field("src-port", 4) }
    /Dest port:/ { field("dst-port", 4) }
    /SPI:/ { field("spi", 8) }
    /Protocol:/ { field("l4proto", 2) }
    /L4 bytes:/ { field("l4data", 8, 1) }
    /Src MAC addr:/ { field("src") }
    /Dest MAC addr:/ { field(flow == "ether" ? "dst" : "dst-mac") }
    /Ethertype:/ { field("proto", 4, 1) }
    /VLAN EtherType:/ { field("vlan-etype", 4, 1) }
    /VLAN:/ { field("vlan", 4) }
    /User-defined:/ { field("user-def", 16, 1) }
    /RSS Context ID:/ { context = " context " $NF }
    /Action: Drop/ { action = " action -1" }
    /Action: Wake-on-LAN/ { action = " action -2" }
    /Action: Direct to queue/ { action = " action " $5 }
    /Action: Direct to VF/ { action = " vf " $5 " queue " $7 }
    END { flush(); if (total) print "end" }'
}

# $at: the location of the rule, or any if the driver chooses it.
listed() {
  case $at in
    any) rules | sed 's/^[0-9]* //' | grep -qxF -e "$1" ;;
    *) rules | grep -qxF -e "$at $1" ;;
  esac
}

# Arguments: device, location, arguments that create the rule.
rule() {
  [ "$stop" = 0 ] || return 0
  dev=$1 at=$2 tell=-N loc=; shift 2
  if listed "$*"; then say "$dev rule $at: exists already"; return 0; fi
  if [ "$mode" = check ]; then wrong "$dev: rule $at is not $*"; return 0; fi
  changed=1
  [ "$at" = any ] || loc="loc $at"
  tell flow-type "$@" $loc
  if [ "$at" != any ] && ! listed "$*"; then
    # Some drivers replace a rule only after it was deleted.
    refused=$why
    tell delete "$at"
    tell flow-type "$@" $loc
    why=${why:-$refused}
  fi
  if listed "$*"; then say "$dev rule $at: $*"; return 0; fi
  wrong "$dev: rule $at, $*: not done; ${why:-ethtool accepted it, but it is not listed}"; stop=$halt
}

# Arguments: device, location, and the rule itself if the driver chose the location.
no_rule() {
  [ "$stop" = 0 ] || return 0
  dev=$1 at=$2 tell=-N; shift 2
  all=$(rules)
  here=$at
  [ "$at" != any ] || here=$(echo "$all" | awk -v rule="$*" '{ n = $1; sub(/^[0-9]+ /, "") } $0 == rule { print n; exit }')
  if gone; then say "$dev rule $at: deleted already"; return 0; fi
  if [ "$mode" = check ]; then wrong "$dev: rule $here exists, or rules cannot be listed"; return 0; fi
  changed=1
  tell delete "$here"
  all=$(rules)
  if gone; then say "$dev rule $at: deleted"; return 0; fi
  wrong "$dev: rule $at is not deleted; ${why:-ethtool accepted it, but it is still listed}"; stop=$halt
}

gone() {
  case $all in *end) ;; *) return 1 ;; esac
  [ -z "$here" ] || ! echo "$all" | grep -q "^$here "
}

# Arguments: device, number, $expect, arguments to set. A new context gets the lowest free number, so lower numbers are
# occupied by temporary contexts meanwhile.
context() {
  [ "$stop" = 0 ] || return 0
  dev=$1 n=$2 wanted=$3 ask=-x more="context $2" tell=-X; shift 3
  expect=$wanted
  due "$dev context $n $*" || return 0
  expect='table:*'
  if holds; then
    tell context "$n" "$@"
  else
    fillers=
    while :; do
      why=$(ethtool -X "$dev" context new "$@" 2>&1)
      case $why in *'New RSS context is '*) made=${why##*New RSS context is } why= ;; *) break ;; esac
      case $made in *[!0-9]*) break ;; esac
      [ "$made" -lt "$n" ] || break
      fillers="$fillers $made"
    done
    refused=$why
    [ -n "$why" ] || [ "$made" = "$n" ] || fillers="$fillers $made"
    for f in $fillers; do tell context "$f" delete; done
    why=$refused
  fi
  expect=$wanted
  came "$dev context $n $*"
}

# A context is gone if it cannot be read although the table of the device can be read.
no_context() {
  [ "$stop" = 0 ] || return 0
  dev=$1 n=$2 ask=-x tell=-X
  if absent; then say "$dev context $n: deleted already"; return 0; fi
  if [ "$mode" = check ]; then wrong "$dev: context $n exists"; return 0; fi
  changed=1
  tell context "$n" delete
  if absent; then say "$dev context $n: deleted"; return 0; fi
  wrong "$dev: context $n is not deleted; ${why:-ethtool accepted it, but it still exists}"; stop=$halt
}

absent() {
  expect='table:*' more=
  holds || return 1
  more="context $n"
  ! holds
}
