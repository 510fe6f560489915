#!/bin/sh
# The values that ringwise reads are those that a shell reads.
# hosts: all small2-arm64
# kernels: all
# quick: router16@6.12
# timeout: 300
. /h/lib.sh
. /h/state.sh

status "show runs" 0 ringwise show
status "show -j runs" 0 ringwise show -j
check "show -j is one JSON document with a schema" grep -q '"schema": *"ringwise.snapshot"' /tmp/out

for dev in $(awk '{ print $2 }' /h/nics); do
	[ -e /sys/class/net/$dev ] || continue
	links $dev
	ringwise show -v $dev >/tmp/show.$dev 2>/tmp/err
	same "show $dev ends well" "$?" 0
	driver=$(basename $(readlink /sys/class/net/$dev/device/driver))
	check "$dev: the driver is $driver" grep -q "$driver" /tmp/show.$dev
	# Every interrupt that is named after a queue is assigned to that queue.
	n=0
	for irq in $(dev_irqs $dev); do
		case "$(irq_name $irq)" in
		*TxRx-* | *rxtx-* | *-rx-* | *input.*) n=$((n + 1)) ;;
		esac
	done
	rx=$(ls -d /sys/class/net/$dev/queues/rx-* | wc -l)
	ringwise show -j $dev >/tmp/show.json 2>/tmp/err
	mapped=$(tr -d ' \n' </tmp/show.json | grep -o '"role":{"queues":{"rx":\[[0-9]' | wc -l)
	same "$dev: receive queues tied to an interrupt" "$mapped" "$n"
	[ $n -gt 0 ] && same "$dev: as many as queue directories" "$n" "$rx"
done

# As a user other than root.
status "show without root" 0 as_nobody ringwise show
status "show eth0 without root" 0 as_nobody ringwise show eth0
status "an unknown device" 1 ringwise show nosuch0
says "an unknown device is named with those that exist" nosuch0
env -i PATH= /h/ringwise show >/tmp/out 2>/tmp/err
same "show with an empty PATH" "$?" 0
