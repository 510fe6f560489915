#!/bin/sh
# A CPU that serves no timer gets no queue, and a queue that stalls after it was moved is rolled back.
# hosts: router16
# kernels: 6.12
# timeout: 300
# needs: cost
# provokes: NETDEV WATCHDOG
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
export RINGWISE_STATE_DIR=/tmp/rw34

insmod $H/labcost.ko
links eth0 eth1
# deaf CPU MS, in the background
deaf() {
	taskset "$(printf '%x' $((1 << $1)))" sh -c "echo $2 >/dev/labdeaf" &
}
state eth0 eth1 >/tmp/before
# The interrupt of tx-3.
n=$(queue_irq eth1 TxRx-3)

# The proof that a CPU lives is only a sleep.
status "a live CPU" 0 ringwise apply --yes --goal forward eth1
cpu=$(cat /proc/irq/$n/smp_affinity_list)
status "and back" 0 ringwise rollback --yes 0
state eth0 eth1 >/tmp/after
unchanged "as before" /tmp/before /tmp/after

deaf "$cpu" 8000
sleep 0.3
status "a CPU that serves no timer is refused" 6 ringwise apply --yes --goal forward eth1
says "it is named" "timers do not run on CPU $cpu"
wait
state eth0 eth1 >/tmp/after
unchanged "nothing was touched" /tmp/before /tmp/after

# No other process runs there, and its timer interrupts continue.
taskset "$(printf '%x' $((1 << cpu)))" sh -c "echo 8000 >/dev/labbusy" &
sleep 0.3
status "a busy CPU is not refused" 0 ringwise apply --yes --goal forward eth1
says "it is told" "a sleep of 10 ms on CPU $cpu took more than 2 s"
wait
status "and back" 0 ringwise rollback --yes 0

# tx-3 sends all the time, and its CPU stops serving interrupts as soon as the interrupt is sent to it.
modprobe pktgen
sends() {
	_pg_empty
	_pg kpktgend_0 "add_device eth1"
	for _w in "count 0" "clone_skb 0" "pkt_size 60" "delay 0" "ratep 500" "dst 10.1.1.1" "dst_mac $(cat /sys/class/net/eth0/address)" \
		"queue_map_min 3" "queue_map_max 3"; do
		_pg eth1 "$_w"
	done
	_pg_run "$1"
}
was=$(cat /proc/irq/$n/smp_affinity_list)
sends 25 &
sleep 1
sent() {
	ethtool -S eth1 | awk '$1 == "tx_queue_3_packets:" { print $2 }'
}
a=$(sent)
sleep 1
check "tx-3 sends" [ "$(sent)" -gt "$a" ]
(
	i=0
	while [ "$(cat /proc/irq/$n/smp_affinity_list)" != "$cpu" ] && [ $i -lt 600 ]; do
		sleep 0.05
		i=$((i + 1))
	done
	# The next interrupt moves it, so it must come first.
	sleep 0.1
	deaf "$cpu" 12000
	wait
) &
status "a queue on a CPU that serves nothing completes nothing" 4 ringwise apply --yes --watch 8s --goal forward eth1
cat /tmp/out /tmp/err 2>/dev/null
check "the queue and its CPU are named" grep -Eqs "eth1 tx-3 (completed nothing for [0-9]+ s|timed out) after its interrupt was moved to CPU $cpu" /tmp/out /tmp/err
wait
same "its interrupt goes where it went" "$(cat /proc/irq/$n/smp_affinity_list)" "$was"
state eth0 eth1 >/tmp/after
unchanged "as before" /tmp/before /tmp/after
rmmod labcost
