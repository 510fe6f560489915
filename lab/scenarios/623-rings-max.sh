#!/bin/sh
# The largest safe ring: as many descriptors as the memory of the node permits for all receive queues, and the rollback.
# hosts: router3
# kernels: 6.12 newest
# timeout: 300
. /h/lib.sh
. /h/state.sh

export RINGWISE_STATE_DIR=/tmp/rw623
links eth0

# ring: the present receive ring of eth0; ring_max: the driver's maximum
ring() {
	ethtool -g eth0 | awk '/^RX:/ { v = $2 } END { print v }'
}
ring_max() {
	ethtool -g eth0 | awk '/^RX:/ { print $2; exit }'
}
# safe QUEUES: the largest power of two whose buffers of 2 KiB take at most 1/64 of the node's memory, between the present size
# and the maximum
safe() {
	awk -v queues="$1" -v now="$(ring)" -v max="$(ring_max)" '/MemTotal/ {
		for (n = 1; n * 2 * queues * 2 <= $4 / 64; n *= 2) { }
		print (n > max) ? max : (n < now) ? now : n
	}' /sys/devices/system/node/node0/meminfo
}

first=$(ring)
two=$(safe 2)
eight=$(safe 8)
echo "# ring $first, at most $(ring_max); safe with two queues $two, with eight $eight"
check "two queues may have longer rings than now" test "$two" -gt "$first"
check "and longer ones than eight queues" test "$two" -gt "$eight"
check "a plan that interrupts traffic is only listed" sh -c 'ringwise plan eth0 --set eth0.rings.rx=max --set eth0.channels.combined=2 | grep -q allow-disruption'
same "nothing has changed" "$(ring)" "$first"
status "the largest safe ring for two queues" 0 \
	ringwise apply --yes --allow-disruption eth0 --set eth0.channels.combined=2 --set eth0.rings.rx=max
links eth0
same "the driver has it" "$(ring)" "$two"
status "it reads back" 0 ringwise verify
status "a second plan has nothing to do" 0 ringwise plan eth0 --set eth0.channels.combined=2 --set eth0.rings.rx=max --exit-code
status "everything is put back" 0 ringwise rollback --yes 0
links eth0
same "the ring is as before" "$(ring)" "$first"
status "the largest safe ring for eight queues" 0 ringwise apply --yes --allow-disruption eth0 --set eth0.rings.rx=max
links eth0
same "it is never shorter than now" "$(ring)" "$eight"
status "and back" 0 ringwise rollback --yes 0
links eth0
same "as at first" "$(ring)" "$first"
