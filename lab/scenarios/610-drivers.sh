#!/bin/sh
# Failures during a transaction on real drivers: the kernel refuses one step, and the start is completely restored.
# hosts: router16 small2
# kernels: 5.10 6.12 newest
# except: router16@6.12
# timeout: 900
. /h/lib.sh
. /h/state.sh

devs=$(awk '{ print $2 }' /h/nics | while read -r d; do [ -e /sys/class/net/$d ] && echo $d; done)
cpu=/sys/devices/system/cpu

# begin NAME: uses a state directory of its own, and records the state before.
begin() {
	export RINGWISE_STATE_DIR=/tmp/rw61.$1
	links $devs >/dev/null
	state $devs >/tmp/before
}
as_before() {
	links $devs >/dev/null
	state $devs >/tmp/after
	unchanged "$1" /tmp/before /tmp/after
}

# crowd DEV: interrupts on CPU 0 and transmit queues for CPUs 0 and 1, so that a plan has a step for each queue.
crowd() {
	for n in $(dev_irqs $1); do
		[ -n "$(irq_name $n)" ] && echo 0 >/proc/irq/$n/smp_affinity_list 2>/dev/null
	done
	for f in "/sys/class/net/$1"/queues/tx-*/xps_cpus; do
		echo 3 2>/dev/null >$f
	done
	for f in "/sys/class/net/$1"/queues/rx-*/rps_flow_cnt; do
		echo 64 2>/dev/null >$f
	done
}

# sealed FILE COMMAND...: the command gets EROFS when it writes this one file.
sealed() {
	_file=$(readlink -f $1)
	shift
	unshare -m sh -c 'mount -o bind $0 $0 && mount -o remount,bind,ro $0 && exec "$@"' $_file "$@"
}

# refused NAME FILE COMMAND...: the command fails at that file and is rolled back.
refused() {
	_title=$1 _at=$2
	shift 2
	begin seal
	status "$_title: fails and is put back" 4 sealed $_at "$@"
	says "$_title: the errno is named" EROFS
	as_before "$_title: as before"
}

# --- the first, a middle and the last file of each device
for dev in $devs; do
	# One device of each driver.
	case $HOST:$dev in router16:eth1 | *:mq[1-9]) continue ;; esac
	links $dev
	crowd $dev
	irqs=$(for n in $(dev_irqs $dev); do
		case "$(irq_name $n)" in
		*TxRx-* | *rxtx-* | *-rx-* | *input.*) echo $n ;;
		esac
	done)
	xps=$(ls -d /sys/class/net/$dev/queues/tx-*/xps_cpus)
	for n in $(echo $irqs | awk '{ print $2; if (NF > 3) print $(NF) }'); do
		refused "$dev: interrupt $(irq_name $n)" /proc/irq/$n/smp_affinity_list ringwise apply --yes $dev
	done
	for f in $(echo $xps | awk '{ print $1; if (NF > 1) print $NF }'); do
		cat $f >/dev/null 2>&1 || continue
		refused "$dev: $(echo $f | cut -d/ -f7-)" $f ringwise apply --yes $dev
	done
done

# --- during a channel change that also resets a user's table, moderation and masks
change() {
	_dev=$1 _n=$2
	case $_dev in
	mq0) ethtool -C $_dev rx-usecs 33 tx-usecs 17 && ethtool -G $_dev rx 1024 ;;
	esac
	[ $_n = 4 ] && ethtool -X $_dev weight 5 1 1 1 0 0 0 0
	links $_dev
	refused "$_dev: --queues $_n, $3" /sys/class/net/$_dev/queues/$3 \
		ringwise apply --yes $_dev --queues $_n --allow-disruption
}
if [ "$HOST" = router16 ]; then
	change eth0 4 tx-2/xps_cpus
	ethtool -X eth0 default
	if [ -e /sys/class/net/mq0 ]; then
		change mq0 4 tx-3/xps_cpus
		ethtool -X mq0 default
	fi
fi

# --- a CPU of the plan goes offline between plan and apply
offline() {
	_dev=$1
	shift
	crowd $_dev
	links $_dev >/dev/null
	rm -f /tmp/plan61
	ringwise plan $_dev "$@" --out /tmp/plan61 >/dev/null 2>/tmp/err || cat /tmp/err
	# A CPU that a later interrupt step requests, and that no other setting uses now.
	want=$(tr -d ' \n' </tmp/plan61 | sed 's/"setting"/\n&/g' |
		awk '/^"setting":[{][^}]*"knob":"irq_cpus"/ && match($0, /"cpus":"[0-9]+"/) {
			print substr($0, RSTART + 8, RLENGTH - 9) }' | grep -v '^0$' | tail -1)
	[ -n "$want" ] || {
		not_ok "$_dev $*: the plan has a CPU to take away" "$(tr -d ' \n' </tmp/plan61 | cut -c1-600)"
		return
	}
	echo 0 >$cpu/cpu$want/online
	begin offline
	status "$_dev $*: CPU $want is offline: fails and is put back" 4 ringwise apply --yes --plan /tmp/plan61
	says "$_dev $*: the errno is named" EINVAL
	as_before "$_dev $*: as before"
	echo 1 >$cpu/cpu$want/online
}
if [ "$HOST" = router16 ]; then
	offline eth0
	offline eth0 --queues 4 --allow-disruption
	offline eth2
	[ -e /sys/class/net/mq0 ] && offline mq0 --queues 6 --allow-disruption
fi

# --- drivers whose number of queues is fixed: e1000e reports no count, and neither does vmxnet3 on 5.10; later it reports one
# and refuses another
begin fixed
for dev in $devs; do
	case $(driver_of $dev):$(ethtool -l $dev 2>/dev/null | grep -c Current) in
	e1000e:0 | vmxnet3:0)
		status "$dev: a plan with two queues" 0 ringwise plan $dev --queues 2 --allow-disruption
		says "$dev: it is said" "the driver does not support changing the number of channels; the interface has"
		;;
	vmxnet3:1)
		status "$dev: two queues fail and are put back" 4 ringwise apply --yes $dev --queues 2 --allow-disruption
		says "$dev: with the errno and its meaning" "EOPNOTSUPP (Operation not supported): the driver does not support it"
		as_before "$dev: as before"
		status "$dev: the next plan" 0 ringwise plan $dev --queues 2 --allow-disruption
		says "$dev: it knows why" "refused before on this kernel"
		;;
	esac
done
as_before "fixed: as before"

# --- virtio-net: its driver rewrites affinity and XPS with each change
for dev in $devs; do
	[ $(driver_of $dev) = virtio_net ] || continue
	begin virtio
	status "$dev: apply --queues 1" 0 ringwise apply --yes $dev --queues 1 --allow-disruption
	same "$dev: one queue" "$(ethtool -l $dev | awk '/^Combined/ { v = $2 } END { print v }')" 1
	status "$dev: verify" 0 ringwise verify
	status "$dev: rollback" 0 ringwise rollback --yes 1
	as_before "$dev: as before"
done
