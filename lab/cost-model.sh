# The cost model (lab/cost), sourced after lib.sh by scenarios with `# needs: cost`. See "The cost model" in lab/README.md.
COST=/sys/module/labcost/parameters
# The interfaces of cost_pair: packets go from the first to the second. A scenario may name others before it sources this file.
: "${PAIR_FROM:=mq1}" "${PAIR_TO:=mq0}"

# cost_load DEV...: loads the module; only packets that these interfaces receive are charged. Without names: all.
cost_load() {
	[ -d "$COST" ] || insmod "$H/labcost.ko" || return
	echo "$*" >$COST/devices
}

# cost_unload: mqnic releases the module first
cost_unload() {
	cost_off
	rmmod labcost
}

# cost_on NS [FAR [SIBLING]]: a packet costs NS nanoseconds; the factors are in percent
cost_on() {
	echo "${2:-130}" >"$COST/far_percent"
	echo "${3:-150}" >"$COST/sibling_percent"
	echo "$1" >"$COST/packet_ns"
}

# cost_off: packets cost nothing, in the IP receive path and in mqnic's poll
cost_off() {
	echo 0 >$COST/packet_ns
	if [ -w /sys/module/mqnic/parameters/poll_ns ]; then
		echo 0 >/sys/module/mqnic/parameters/poll_ns
	fi
}

# cost_reset: sets the counters to 0
cost_reset() {
	echo 0 >/proc/labcost
}

# charged [COLUMN [CPU]]: the sum of a column of /proc/labcost (packets), or its value for one CPU
charged() {
	awk -v name="${1:-packets}" -v cpu="$2" '$1 == "elapsed_ns" { next }
		$1 == "cpu" { for (i = 2; i <= NF; i++) if ($i == name) at = i; next }
		cpu == "" || $1 == cpu { n += $at }
		END { printf "%.0f\n", n }' /proc/labcost
}

# charged_rate SECONDS [COLUMN]: waits, and prints what was charged per second, from one reading of the counters
charged_rate() {
	cost_reset
	sleep "$1"
	awk -v name="${2:-packets}" '$1 == "elapsed_ns" { t = $2 / 1e9; next }
		$1 == "cpu" { for (i = 2; i <= NF; i++) if ($i == name) at = i; next }
		{ n += $at }
		END { printf "%.1f\n", n / t }' /proc/labcost
}

# is_near GOT WANTED: within 10 %
is_near() {
	awk -v g="$1" -v w="$2" 'BEGIN { exit !(g > 0.9 * w && g < 1.1 * w) }'
}

# cost_elapsed: milliseconds since cost_reset
cost_elapsed() {
	awk '{ printf "%.0f\n", $2 / 1000000; exit }' /proc/labcost
}

# send SRC DST RATE WORD...: pktgen sends from SRC to DST until send_end, 60 s at most. Its thread looks for work every 100 ms, and
# `start` waits 125 ms for it. On a busy machine this may be too short; then it is started again.
send() {
	_src=$1 _dst=$2 _rate=$3
	shift 3
	for _attempt in 1 2 3 4 5; do
		_pg_empty
		_pg "kpktgend_$PG_CPU" "add_device $_src"
		for _w in "count $((60 * _rate))" "clone_skb 0" "pkt_size 100" "delay 0" "dst_mac $(cat "/sys/class/net/$_dst/address")" \
			"udp_src_min 1024" "udp_src_max 1024" "udp_dst_min 9" "udp_dst_max 9" "ratep $_rate" "$@"; do
			_pg "$_src" "$_w"
		done
		_pg_run 60 &
		sender=$!
		sends && return
		echo "$_src did not send, started again"
		send_end
	done
	not_ok "$_src sends" "$(tr '\n' ' ' <"/proc/net/pktgen/kpktgend_$PG_CPU")"
}
# sends: succeeds if packets are sent in four spans of 0.2 s, one after the other
sends() {
	_spans=0
	look _before "/sys/class/net/$_src/statistics/tx_packets"
	for _i in $(seq 25); do
		sleep 0.2
		look _now "/sys/class/net/$_src/statistics/tx_packets"
		if [ "$_now" -gt "$_before" ]; then _spans=$((_spans + 1)); else _spans=0; fi
		[ "$_spans" = 4 ] && return
		_before=$_now
	done
	return 1
}
send_end() {
	cost_off
	echo stop >/proc/net/pktgen/pgctrl
	wait "$sender"
}

# cost_pair: PAIR_FROM sends to PAIR_TO, whose packets cost time; the generator and this script have CPUs that are never charged,
# cores 6 and 7
cost_pair() {
	PG_CPU=14
	taskset -p 1000 $$ >/dev/null
	modprobe pktgen
	for _dev in "$PAIR_TO" "$PAIR_FROM"; do
		echo 1 >/proc/sys/net/ipv6/conf/"$_dev"/disable_ipv6
		wait_link "$_dev"
	done
	cost_load "$PAIR_TO"
	for _irq in $(dev_irqs "$PAIR_FROM"); do
		echo $PG_CPU >"/proc/irq/$_irq/smp_affinity_list"
	done
}

# uneven_pair: the same; each queue of PAIR_TO has a CPU of its own, and queue 0 four eleventh of the table, which is saved in
# /tmp/table
uneven_pair() {
	cost_pair
	for _q in 0 1 2 3 4 5 6 7; do
		echo $_q >"/proc/irq/$(queue_irq "$PAIR_TO" TxRx-$_q)/smp_affinity_list"
	done
	status "the table is uneven" 0 ethtool -X "$PAIR_TO" weight 4 1 1 1 1 1 1 1
	ethtool -x "$PAIR_TO" >/tmp/table
}

# flows RATE NS: packets of about 1,000 flows for a minute; each costs NS nanoseconds on every CPU
flows() {
	[ -z "$sender" ] || send_end
	send "$PAIR_FROM" "$PAIR_TO" "$1" "dst 10.1.1.1" "src_min 10.9.0.1" "src_max 10.9.3.250" "flag IPSRC_RND"
	cost_on "$2" 100 100
}

# program CPU: a program takes the time that packets leave on this CPU, until program_end
program() {
	taskset "$(printf '%x' $((1 << $1)))" sh -c 'while :; do :; done' &
	program=$!
}
program_end() {
	kill "$program"
	wait "$program" 2>/dev/null
}

# own_state: for scenarios of the service under load. No transaction of an earlier scenario, after whose rollback the service would only
# observe; the real ip instead of the shell's; and locked memory for the counters of the filter, which Linux 5.10 counts.
own_state() {
	rm -rf "$RINGWISE_STATE_DIR"
	# shellcheck disable=SC2317 # scenarios call it
	ip() { /usr/bin/ip "$@"; }
	# shellcheck disable=SC3045 # busybox has it
	ulimit -l 65536
}
