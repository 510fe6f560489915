# Sourced after lib.sh and state.sh: recordings of ringwise watch, and the kernel's own counters to compare with them.
ip() { /usr/bin/ip "$@"; }
tc() { /usr/bin/tc "$@"; }
rec=/tmp/w.rec

# record WORD...: starts `ringwise watch WORD...`; `told` ends it
record() {
	rm -f $rec
	ringwise watch "$@" --interval 300ms --record $rec >/tmp/w.lines 2>/tmp/w.err &
	_w=$!
	samples 1
}
taken() {
	cat $rec 2>/dev/null | grep -c '^sample '
}
# samples N: waits until the recording has that many
samples() {
	for _i in $(seq 600); do
		[ "$(taken)" -ge "$1" ] && return
		[ -d "/proc/$_w" ] || break
		sleep 0.1
	done
	not_ok "$1 samples" "$(taken) of them: $(cat /tmp/w.err)"
}
# `told`: waits for two more samples, then writes the recording as JSON lines to /tmp/w.json
told() {
	samples $(($(taken) + 2))
	kill "$_w"
	wait "$_w" 2>/dev/null
	ringwise watch --replay $rec -o json >/tmp/w.json
}
# of DEV: reduces /tmp/w.json to this interface
of() {
	sed -n "s/.*\"$1\":{\"driver\"/{\"driver\"/p" /tmp/w.json | sed 's/},"[^"]*":{"driver".*//; s/},"gone":.*//' >/tmp/w.of
	mv /tmp/w.of /tmp/w.json
}
# sum PATTERN: the sum of the numbers behind it over all intervals
sum() {
	grep -o "$1[0-9]*" /tmp/w.json | awk -F: '{ s += $NF } END { printf "%d", s }'
}
# queue DIR N [MEMBER]
queue() {
	grep -o "\"dir\":\"$1\",\"queue\":$2,[^}]*" /tmp/w.json | grep -o "\"${3:-packets}\":[0-9]*" | awk -F: '{ s += $2 } END { printf "%d", s }'
}
# above N: the first of the numbers of packets that are larger
above() {
	grep -oE '"(packets|[rt]x_packets|softnet_processed)":[0-9]*' /tmp/w.json | awk -F: -v n="$1" '$2 > n' | head -1
}
# snmp FILE GROUP NAME: a counter of /proc/net
snmp() {
	awk -v g="$2:" -v n="$3" '$1 == g && !h { for (i = 2; i <= NF; i++) if ($i == n) h = i; next } $1 == g { print $h; exit }' "/proc/net/$1"
}
# softnet COLUMN: the sum over all CPUs
softnet() {
	awk -v c="$1" 'function hex(s,  i, n) { for (i = 1; i <= length(s); i++) n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return n }
		{ s += hex($c) } END { printf "%d", s }' /proc/net/softnet_stat
}
stat_of() {
	cat "/sys/class/net/$1/statistics/$2"
}
# send SRC COUNT WORD...: sends with pktgen
send() {
	_src=$1 _n=$2
	shift 2
	_pg_empty
	_pg kpktgend_0 "add_device $_src"
	for _w2 in "count $_n" "clone_skb 0" "pkt_size 60" "delay 0" "udp_src_min 1024" "udp_src_max 1024" "$@"; do
		_pg "$_src" "$_w2"
	done
	_pg_run 60
}
# quiet_net: only the scenario sends packets from now on
quiet_net() {
	modprobe pktgen
	for _f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do
		echo 1 >"$_f"
	done
}
# queue_of DEV PORT QUEUE: UDP to this port is sent to that queue
queue_of() {
	ethtool -N "$1" flow-type udp4 dst-port "$2" action "$3" >/dev/null
}
# listen WORD...: one interval of `ringwise watch --per-flow WORD... -o json`, until heard. INTERVAL: its length
listen() {
	: >/tmp/f.json
	ringwise watch --per-flow "$@" --interval "${INTERVAL:-500ms}" -o json >/tmp/f.json 2>/tmp/f.err &
	_w=$!
	for _i in $(seq 300); do
		[ -s /tmp/f.json ] && return
		sleep 0.1
	done
	not_ok "it listens" "$(cat /tmp/f.err)"
}
# heard: two intervals more, and the end
heard() {
	_n=$(($(wc -l </tmp/f.json) + 2))
	for _i in $(seq 300); do
		[ "$(wc -l </tmp/f.json)" -ge $_n ] && break
		sleep 0.1
	done
	kill "$_w"
	wait "$_w" 2>/dev/null
}
# all MEMBER: the sum of a member of the whole sample over all intervals
all() {
	grep -o "\"$1\":[0-9]*,\"lost\"" /tmp/f.json | awk -F'[:,]' '{ s += $2 } END { printf "%d", s }'
}
