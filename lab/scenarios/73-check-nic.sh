#!/bin/sh
# check on the test NIC: broken in ways that the emulated drivers cannot show, or under traffic; exactly the rules that were
# foreseen are raised.
# hosts: router16
# kernels: 6.12
# timeout: 900
# needs: mqnic
. /h/lib.sh
. /h/state.sh
. /h/watch.sh
quiet_net

export RINGWISE_STATE_DIR=/tmp/rw73n
dev=mq0
for d in /sys/class/net/*; do
	d=${d##*/}
	case $d in
	lo | mq0 | mq1) ip link set $d up ;;
	*) ip link set $d down ;;
	esac
done
links mq0 mq1
mac=$(cat /sys/class/net/mq0/address)

# ids [ARGUMENTS]: errors and warnings about mq0, with what stands under them, in one line
ids() {
	ringwise check $dev --fail-on never "$@" 2>/tmp/err >/tmp/check
	awk '/^(ERROR|WARNING|INFO)$/ { on = $1 != "INFO"; next } /^[A-Z]/ || /^$/ { on = 0 }
		on && /^  [A-Z]/ { print $1
			if (match($0, /\(also [^)]*\)/)) { n = split(substr($0, RSTART + 6, RLENGTH - 7), a, " "); for (i = 1; i <= n; i++) print a[i] } }' \
		/tmp/check | sort -u | tr '\n' ' ' | sed 's/ $//'
}
broken() {
	_name=$1 _want=$2
	shift 2
	_got=$(ids "$@")
	same "$_name: exactly $_want" "$_got" "$_want"
	[ "$_got" = "$_want" ] || cat /tmp/check /tmp/err
}
mend() {
	ringwise apply --yes --take-over "$@" >/tmp/out 2>/tmp/err </dev/null || cat /tmp/out /tmp/err
	links mq0 mq1
}
# busy WORD...: packets to mq0 while something is counted; `quiet` ends it
busy() {
	_pg_empty
	_pg kpktgend_0 "add_device mq1"
	for _w2 in "count 0" "clone_skb 0" "pkt_size 60" "delay 20000" "dst_mac $mac" "dst 10.1.1.1" "$@"; do
		_pg mq1 "$_w2"
	done
	echo start >/proc/net/pktgen/pgctrl &
	sleep 0.5
}
quiet() {
	echo stop >/proc/net/pktgen/pgctrl
	wait
	_pg_empty
}

status "apply" 0 ringwise apply --yes
links mq0 mq1
broken "tuned" ""

# A CPU of the other node, which only sends here.
echo 0 >/sys/devices/system/cpu/cpu15/online
broken "a CPU goes offline that XPS names" "A09 Q15"
echo 1 >/sys/devices/system/cpu/cpu15/online

key=$(ethtool -x mq0 | grep -E '^([0-9a-f]{2}:)+[0-9a-f]{2}$' | head -1)
ethtool -X mq0 hkey $(printf '00:%.0s' $(seq 39))00
broken "a key of zeros" "Q25"
ethtool -X mq0 hkey $key

# Four queues on four cores, and then two of them on the threads of one.
mend --queues 4 --allow-disruption
broken "tuned with four queues" ""
a=$(asked $(queue_irq mq0 TxRx-0))
sibling=$(expand "$(cat /sys/devices/system/cpu/cpu$a/topology/thread_siblings_list)" | tr ' ' '\n' | grep -v "^$a\$" | head -1)
echo "# queue 0 on CPU $a, its sibling is $sibling"
echo $sibling >/proc/irq/$(queue_irq mq0 TxRx-1)/smp_affinity_list
send mq1 400 "dst 10.1.1.1" "dst_mac $mac" "src_min 10.9.0.1" "src_max 10.9.0.250" "flag IPSRC_RND"
broken "two queues on the threads of one core" "A04 A16"
mend --queues 8 --allow-disruption

ip addr add 10.1.1.1/24 dev mq0
busy "delay 300000" "src_min 10.1.1.9" "src_max 10.1.1.9" "flag UDPSRC_RND" "udp_src_min 1" "udp_src_max 60000"
broken "UDP without ports" "Q18 Q23"
quiet
ip addr del 10.1.1.1/24 dev mq0

ethtool -G mq0 rx 64
links mq0 mq1
ethtool -C mq0 rx-usecs 8000 rx-frames 0 2>/dev/null || ethtool -C mq0 rx-usecs 8000
busy "delay 0"
broken "a ring of 64 with bursts" "A14 D04 M08"
quiet
ethtool -C mq0 rx-usecs 0
ethtool -G mq0 rx 1024
links mq0 mq1

status "rollback 0" 0 ringwise rollback --yes 0
