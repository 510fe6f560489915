#!/bin/sh
# A rollback restores the CPU that served each interrupt, not only the mask.
# hosts: router16
# kernels: 6.12 newest
# timeout: 240
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw355

links eth0 eth1
modprobe pktgen
for dev in eth0 eth1; do echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6; done
# steady SECONDS: 600 packets/s of 250 flows to eth1, in the background
steady() {
	_pg_empty
	_pg kpktgend_0 "add_device eth0"
	for word in "count 0" "clone_skb 0" "pkt_size 100" "delay 0" "ratep 600" "dst_mac $(cat /sys/class/net/eth1/address)" \
		"src_min 10.9.0.1" "src_max 10.9.0.250" "flag IPSRC_RND" "dst 10.9.9.9" "udp_src_min 1024" "udp_src_max 1024" \
		"udp_dst_min 9" "udp_dst_max 9"; do
		_pg eth0 "$word"
	done
	_pg_run "$1" &
	sender=$!
	sleep 1
}
rest() {
	echo stop >/proc/net/pktgen/pgctrl
	wait $sender
}
# places: the CPU that serves each queue's interrupt, and its mask
places() {
	irqs eth1 | while read -r n name; do
		look on /proc/irq/$n/effective_affinity_list
		look mask /proc/irq/$n/smp_affinity_list
		# shellcheck disable=SC2154 # look sets them
		echo "$name $on $mask"
	done
}
# Every CPU may serve each queue, and the last four CPUs do.
for q in 0 1 2 3; do
	n=$(queue_irq eth1 TxRx-$q)
	echo $((12 + q)) >/proc/irq/$n/smp_affinity_list
done
steady 120
for q in 0 1 2 3; do
	n=$(queue_irq eth1 TxRx-$q)
	same "queue $q is served by CPU $((12 + q))" "$(effective $n)" $((12 + q))
	echo 0-15 >/proc/irq/$n/smp_affinity_list
done
sleep 1
places >/tmp/places
cat /tmp/places
state eth1 >/tmp/before
for id in 0 1; do
	status "apply to other CPUs" 0 ringwise apply --yes --goal forward --exclude-cpus 12-15 eth1
	sleep 1
	places >/tmp/now
	same "no queue is left on CPUs 12-15" "$(awk '/TxRx/ && $2 >= 12' /tmp/now | wc -l)" 0
	id=$((id * $(ls $RINGWISE_STATE_DIR/tx-*.jsonl | wc -l)))
	status "rollback $id" 0 ringwise rollback --yes $id
	cat /tmp/out
	sleep 1
	places >/tmp/now
	unchanged "rollback $id: each is served by the CPU it was on" /tmp/places /tmp/now
	state eth1 >/tmp/after
	unchanged "rollback $id: and all is as before" /tmp/before /tmp/after
done
rest
