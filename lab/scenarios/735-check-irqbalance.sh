#!/bin/sh
# check beside irqbalance: reports that it runs without ringwise's bans, and which configured interrupts it moves.
# hosts: router16
# kernels: 6.12
# areas: check
# timeout: 600
# needs: irqbalance
. /h/lib.sh
. /h/state.sh
. /h/check.sh
. /h/irqbalance.sh

export RINGWISE_STATE_DIR=/tmp/rw73r
on="eth0 eth1"
for d in $(awk '{ print $2 }' /h/nics); do
	case " $on " in
	*" $d "*) ip link set $d up ;;
	*) [ -e /sys/class/net/$d ] && ip link set $d down ;;
	esac
done
links $on
for d in /proc/irq/[0-9]*; do
	look m $d/smp_affinity
	echo "$d $m"
done >/tmp/masks

# It may use only one CPU of the second node, because its choice among several is not predictable.
export IRQBALANCE_BANNED_CPULIST=0-7,9-15
# moved: waits until all queues of eth1 have their requested CPU there
moved() {
	for _i in $(seq 100); do
		_n=$(affinity eth1 | grep TxRx- | grep -vc '=8$')
		[ $_n = 0 ] && return
		traffic eth0 eth1 256 1000
		traffic eth1 eth0 256 1000
	done
	echo "$_n interrupts were not moved: $(affinity eth1 | tr '\n' ' ')"
}

# As they will be after irqbalance has moved them, so that the same plan results.
for irq in $(dev_irqs eth1); do
	echo 8 >/proc/irq/$irq/smp_affinity_list
done
moved
status "apply" 0 ringwise apply --yes
settled $on
foreseen "tuned" ""

start
moved
settled eth1
foreseen "irqbalance has moved all queues to one CPU" "A01 A06 A16" eth1
under A01 A16
status "apply puts it back, and tells irqbalance" 0 ringwise apply --yes --take-over
settled $on
foreseen "told" ""
stop
status "rollback" 0 ringwise rollback --yes 0
while read -r d m; do
	look now $d/smp_affinity
	[ "$now" != "" ] && [ "$now" != "$m" ] && echo $m >$d/smp_affinity
done </tmp/masks
true
