#!/bin/sh
# The guest matches the machine that the host file describes.
# hosts: all small2-arm64
# kernels: all
# quick: small2@6.12 router16@6.12 router16@newest remote@6.12
# timeout: 60
. /h/lib.sh

cpu=/sys/devices/system/cpu
same "number of CPUs" "$(ls -d $cpu/cpu[0-9]* | wc -l)" "$CPUS"
# shellcheck disable=SC2116 # one blank between words
same "offline CPUs" "$(cat $cpu/offline)" "$(echo $OFFLINE)"

# Threads of a core, and CPUs that share an L3.
same "threads of a core" "$(cpus_in $cpu/cpu0/topology/thread_siblings_list)" "$THREADS"
l3=$cpu/cpu0/cache/index3/shared_cpu_list
if [ "$L3" = none ]; then
	check "no L3 is described" [ ! -e $l3 ]
elif [ -e $l3 ]; then
	case $L3 in
	core) want=$THREADS ;;
	package) want=$((CORES * THREADS)) ;;
	esac
	same "CPUs that share an L3" "$(cpus_in $l3)" "$want"
else
	not_ok "CPUs that share an L3" "no L3 is shown"
fi

n=0
for want in $NODE_CPUS; do
	same "CPUs of node $n" "$(expand $(cat /sys/devices/system/node/node$n/cpulist))" \
		"$(expand_online "$want")"
	n=$((n + 1))
done
n=0
for want in $NODE_DISTANCES; do
	same "distances of node $n" "$(tr ' ' , </sys/devices/system/node/node$n/distance)" "$want"
	n=$((n + 1))
done

# Every NIC of the host file exists, on its node, with its driver.
while read -r mac name driver queues node _; do
	if [ "$driver" = mqnic ] && [ "$HAVE_MQNIC" = 0 ]; then
		continue
	fi
	dev=/sys/class/net/$name
	[ -e $dev ] || {
		not_ok "$name is there" "$(ls /sys/class/net | tr '\n' ' ')"
		continue
	}
	same "$name: address" "$(cat $dev/address)" "$mac"
	same "$name: driver" "$(driver_of $name)" "$driver"
	same "$name: node" "$(cat $(pci_of $name)/numa_node)" "$node"
	case $driver in
	igb | vmxnet3)
		# One queue for each CPU that was online when the driver was loaded.
		want=$(cpus_in $cpu/online)
		[ "$want" -gt 8 ] && want=8
		;;
	e1000e) want=1 ;;
	*) want=$queues ;;
	esac
	same "$name: receive queues" "$(ls -d $dev/queues/rx-* | wc -l)" "$want"
	check "$name: link" wait_link $name
done <$H/nics

# QEMU before 11.1 loses MMIO writes of other CPUs while the memory map changes, as it does when drivers load. A CPU that
# lost a write to its local APIC has no timer any more, and its heartbeat stops. xtask then ends this guest.
counts() {
	# One number for each online CPU, while no other scenario runs.
	tr ' ' '\n' <$H/results/heartbeat | grep '^[0-9]'
}
# stands: the CPUs whose number is still the one in /tmp/before
stands() {
	counts >/tmp/now
	[ "$(wc -l </tmp/now)" = "$(wc -l </tmp/before)" ] || return
	paste /tmp/before /tmp/now | awk '$2 < $1 + 2 { n++ } END { exit n > 0 }'
}
# A function without a driver that scenarios do not use: the NVMe controller on the root bus.
for function in /sys/bus/pci/devices/0000:00:*; do
	look class $function/class
	[ "$class" = 0x010802 ] && break
done
changes=$(mapchange $function/config 10000)
counts >/tmp/before
for _ in $(seq 30); do
	sleep 0.5
	stands && break
done
if stands; then
	ok "every CPU serves its timer after $changes changes of the memory map"
else
	not_ok "every CPU serves its timer after $changes changes of the memory map" "counts $(tr '\n' ' ' </tmp/before), later $(tr '\n' ' ' </tmp/now)"
	# Waits until xtask sees it.
	sleep 20
fi
