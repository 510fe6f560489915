#!/bin/sh
# check on the test NIC: faults that the emulated drivers cannot show, or under traffic. Exactly the expected rules have
# findings.
# hosts: router16
# kernels: 6.12
# areas: check
# timeout: 900
# needs: mqnic
. /h/lib.sh
. /h/state.sh
. /h/watch.sh
. /h/check.sh
quiet_net

export RINGWISE_STATE_DIR=/tmp/rw73n
dev=mq0
param=/sys/module/mqnic/parameters
for d in /sys/class/net/*; do
	d=${d##*/}
	case $d in
	lo | mq0 | mq1) ip link set $d up ;;
	*) ip link set $d down ;;
	esac
done
links mq0 mq1
untouched
mac=$(cat /sys/class/net/mq0/address)

# broken NAME "RULES": errors and warnings about the device
broken() {
	foreseen "$1" "$2" $dev
}
mend() {
	ringwise apply --yes --take-over "$@" >/tmp/out 2>/tmp/err </dev/null || cat /tmp/out /tmp/err
	links mq0 mq1
}
# busy WORD...: sends packets to mq0 while something is counted; `quiet` ends it
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

# A CPU of the other node, which is only used to send.
echo 0 >/sys/devices/system/cpu/cpu15/online
broken "a CPU goes offline that XPS names" "A09 Q15"
echo 1 >/sys/devices/system/cpu/cpu15/online

echo 8000 >/sys/class/net/mq0/queues/rx-1/rps_cpus
echo 0 >/sys/devices/system/cpu/cpu15/online
broken "RPS to a far CPU that goes offline" "A09 A16 Q05 Q07 Q15"
under Q05 Q07
echo 1 >/sys/devices/system/cpu/cpu15/online
mend

key=$(ethtool -x mq0 | grep -E '^([0-9a-f]{2}:)+[0-9a-f]{2}$' | head -1)
ethtool -X mq0 hkey $(printf '00:%.0s' $(seq 39))00
broken "a key of zeros" "Q25"
ethtool -X mq0 hkey $key

# Four queues on four cores, and then two of them on the threads of one core.
mend --queues 4 --allow-disruption
broken "tuned with four queues" ""
a=$(asked $(queue_irq mq0 TxRx-0))
sibling=$(expand "$(cat /sys/devices/system/cpu/cpu$a/topology/thread_siblings_list)" | tr ' ' '\n' | grep -v "^$a\$" | head -1)
echo "# queue 0 on CPU $a, its sibling is $sibling"
echo $sibling >/proc/irq/$(queue_irq mq0 TxRx-1)/smp_affinity_list
send mq1 400 "dst 10.1.1.1" "dst_mac $mac" "src_min 10.9.0.1" "src_max 10.9.0.250" "flag IPSRC_RND"
broken "two queues on the threads of one core" "A04 A16"
mend --queues 4 --allow-disruption

# A driver that accepts a rule to any of its queues.
echo 1 >$param/quirk_dev
echo 2097152 >$param/quirk
ethtool -K mq0 ntuple on
ethtool -N mq0 flow-type tcp4 dst-port 443 action 6 loc 3
broken "a rule on a dead queue" "Q28"
ethtool -N mq0 delete 3
ethtool -K mq0 ntuple off
echo 0 >$param/quirk
echo -1 >$param/quirk_dev
mend --queues 8 --allow-disruption

# One device alone, with fewer queues than in the layout of both.
status "one interface by itself" 0 ringwise apply mq0 --yes --queues 4 --allow-disruption --take-over
links mq0 mq1
foreseen "one interface by itself" ""
status "capture" 0 ringwise capture /tmp/rw73n.tar
foreseen "one interface by itself, in a capture" "" --from /tmp/rw73n.tar
mend --queues 8 --allow-disruption

ip addr add 10.1.1.1/24 dev mq0
busy "delay 500000" "src_min 10.1.1.9" "src_max 10.1.1.9" "flag UDPSRC_RND" "udp_src_min 1" "udp_src_max 60000"
broken "UDP without ports" "Q18 Q23"
quiet
ip addr del 10.1.1.1/24 dev mq0

ethtool -G mq0 rx 64
links mq0 mq1
ethtool -C mq0 rx-usecs 2000 rx-frames 0 2>/dev/null || ethtool -C mq0 rx-usecs 2000
busy "delay 0"
broken "a ring of 64 with bursts" "A14 D04 M08"
quiet
ethtool -C mq0 rx-usecs 0
ethtool -G mq0 rx 1024
links mq0 mq1

# A host that forwards.
echo 1 >/proc/sys/net/ipv4/ip_forward
ethtool -A mq0 rx on tx on
mend --goal forward --allow-disruption
broken "a router, tuned" ""
ethtool -A mq0 rx on tx on
broken "pause on" "A16 R1.07"
under R1.07 A16
mend --goal forward --allow-disruption

dev=eth2
ip link set eth2 up
links eth2
# Its driver refuses another number of queues.
mend --goal forward
broken "a router with vmxnet3, tuned" ""
ethtool -K eth2 lro on
broken "LRO on a router" "A16 M11"
under M11 A16
ethtool -K eth2 lro off
echo 0 >/proc/sys/net/ipv4/ip_forward

status "rollback 0" 0 ringwise rollback --yes 0
