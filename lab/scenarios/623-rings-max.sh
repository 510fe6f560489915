#!/bin/sh
# The largest safe ring: as many descriptors as the memory of the node permits for all receive queues, and the rollback.
# hosts: router3
# kernels: 6.12 newest
# timeout: 300
. /h/lib.sh
. /h/state.sh
. /h/guard.sh

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

# --- on trial
# shellcheck disable=SC2034 # for guard.sh
S=$RINGWISE_STATE_DIR
longer="ringwise apply --yes --allow-disruption eth0 --set eth0.channels.combined=2 --set eth0.rings.rx=max"
# queues: the present number of channels of eth0
queues() {
	ethtool -l eth0 | awk '/^Combined:/ { v = $2 } END { print v }'
}
before="$(queues) queues, ring $(ring)"
# shellcheck disable=SC2086 # a list of words
status "the largest safe ring on trial" 0 $longer --confirm 5s
says "until when" "ON TRIAL until"
check "the trial expires" wait_until 120 let_go
links eth0
same "and restores ring and channels" "$(queues) queues, ring $(ring)" "$before"
status "then it is too late" 4 ringwise confirm
# shellcheck disable=SC2086 # a list of words
status "once more on trial" 0 $longer --confirm 12s -j
until=$(sed -n 's/.*"until_boot_ms": \([0-9]*\).*/\1/p' /tmp/out)
status "it is confirmed" 0 ringwise confirm
check "the deadline is known" test -n "$until"
check "the deadline passes" wait_until 120 sh -c "[ \$(awk '{ print int(\$1 * 1000) }' /proc/uptime) -gt $((until + 2000)) ]"
links eth0
same "the ring stays after the deadline" "$(queues) queues, ring $(ring)" "2 queues, ring $two"
status "and back again" 0 ringwise rollback --yes 0
links eth0
same "ring and channels are as before" "$(queues) queues, ring $(ring)" "$before"
