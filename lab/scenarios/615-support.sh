#!/bin/sh
# Before the first write the kernel reports which calls a driver does not have: nothing is changed for a step that is not possible.
# hosts: router16
# kernels: 5.10 6.1 6.12 newest
# timeout: 240
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw615

links eth0 eth1 eth2
tracing=/sys/kernel/tracing
[ -e $tracing/kprobe_events ] || mount -t tracefs tracefs $tracing
# Counts the calls that reach igb.
for call in channels ringparam coalesce pauseparam; do
	echo "p:lab/$call igb:igb_set_$call" >>$tracing/kprobe_events
	echo 1 >$tracing/events/lab/$call/enable
done
# calls CALL: how often igb was called
calls() {
	awk -v c="$1" '$1 == c { n = $2 } END { print n + 0 }' $tracing/kprobe_profile
}
# value OPTION NAME: from the part of ethtool's output for current settings
value() {
	ethtool "$1" eth0 | awk -v n="$2:" 'index($0, n) == 1 { v = $NF } END { print v }'
}
rx=$(value -g RX)
usecs=$(value -c rx-usecs)
queues=$(value -l Combined)
pause=$(value -a RX)
echo "eth0 has $queues channels, $rx descriptors, rx-usecs $usecs, pause frames $pause"
ethtool -L eth0 combined "$queues"
ethtool -G eth0 rx "$rx"
ethtool -C eth0 rx-usecs "$usecs"
ethtool -A eth0 rx "$pause"
for call in channels ringparam coalesce pauseparam; do
	same "a request for $call that changes nothing does not reach the driver" "$(calls $call)" 0
done
ethtool -C eth0 rx-usecs $((usecs + 1))
same "one that changes something does" "$(calls coalesce)" 1
ethtool -C eth0 rx-usecs "$usecs"
before=$(calls coalesce)
same "vmxnet3: -L is refused" "$(ethtool -L eth2 rx 1 2>&1 | grep -c 'not supported')" 1

carrier() { cat /sys/class/net/$1/carrier_changes; }
state eth0 eth1 eth2 >/tmp/before
was="$(carrier eth0) $(carrier eth1) $(carrier eth2)"
# vmxnet3 of 5.10 reports no channel counts, so the plan knows; later ones report counts that they refuse to change.
if ethtool -l eth2 >/dev/null 2>&1; then
	status "rings of eth0 and channels of eth2, as named" 4 ringwise apply --yes --allow-disruption --set eth0.rings.rx=512 --set eth2.channels.combined=4 eth0 eth2
	cat /tmp/err /tmp/out
	says "it names what is not supported" "eth2 channels"
	says "with the errno" "EOPNOTSUPP"
	same "no link went down" "$(carrier eth0) $(carrier eth1) $(carrier eth2)" "$was"
	for call in channels ringparam; do
		same "igb was not called for $call" "$(calls $call)" 0
	done
	same "nor for moderation" "$(calls coalesce)" "$before"
	state eth0 eth1 eth2 >/tmp/after
	unchanged "all is as before" /tmp/before /tmp/after
else
	status "rings of eth0, and channels that eth2 does not have" 3 ringwise apply --yes --allow-disruption --set eth0.rings.rx=512 --set eth2.channels.combined=4 eth0 eth2
	cat /tmp/err /tmp/out
	line() { grep -n "$1" /tmp/err | head -n 1 | cut -d: -f1; }
	check "the impossible request is named before anything is written" [ "$(line 'x eth2 channels: ')" -lt "$(line 'transaction 1 begins')" ]
	check "and counted at the end" grep -q '1 cannot be set on this host' /tmp/out
	same "the rest is applied" "$(value -g RX)" 512
	status "a second time" 3 ringwise apply --yes --allow-disruption --set eth0.rings.rx=512 --set eth2.channels.combined=4 eth0 eth2
	status "and is put back" 0 ringwise rollback 1 --yes
fi

# A goal that requests more channels: vmxnet3 refuses, and the rest is applied.
ethtool -L eth0 combined 2
links eth0
before=$(calls channels)
status "a goal" 0 ringwise apply --yes --allow-disruption --goal forward eth0 eth2
cat /tmp/err /tmp/out
same "igb was called once for channels" $(($(calls channels) - before)) 1
status "a second run has nothing to do" 0 ringwise apply --yes --allow-disruption --goal forward eth0 eth2
same "and calls nobody" $(($(calls channels) - before)) 1
status "rollback" 0 ringwise rollback --yes $(ls $RINGWISE_STATE_DIR/tx-*.jsonl | wc -l)
ethtool -L eth0 combined "$queues"
for call in channels ringparam coalesce pauseparam; do
	echo 0 >$tracing/events/lab/$call/enable
done
echo >$tracing/kprobe_events
