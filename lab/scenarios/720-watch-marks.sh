#!/bin/sh
# What is created again, vanishes, appears or does not answer is shown as a mark in watch, never as a number of packets that were not sent.
# hosts: router16
# kernels: 6.12
# areas: watch
# timeout: 900
# needs: mqnic
. /h/lib.sh
. /h/state.sh
. /h/watch.sh
quiet_net
param=/sys/module/mqnic/parameters
ip link set mq0 up
ip link set mq1 up
links eth0 eth1 mq0 mq1

# Channels of an igb: every queue is created again, and half of them vanish.
traffic eth0 eth1 256 2000
record eth1
ethtool -L eth1 combined 4
told
check "channels: a reset is marked" grep -q '"mark":"reset"' /tmp/w.json
check "channels: queues that went are marked" grep -q '"mark":"gone"' /tmp/w.json
same "channels: no number that nobody sent" "$(above 100)" ""
same "channels: the queues are looked at anew" "$(grep '^layout' $rec | tail -1 | tr ' ' '\n' | grep -c '^l/eth1/r/')" 4
wait_link eth1
record eth1
ethtool -L eth1 combined 8
told
check "channels: queues that came are marked" grep -q '"mark":"came"' /tmp/w.json
same "channels: and none has counted what it had not" "$(above 100)" ""
wait_link eth1

# The same by qstats, whose queues keep their counters by number.
send mq1 3000 "dst 10.1.1.1" "dst_mac $(cat /sys/class/net/mq0/address)" "flag IPSRC_RND" "src_min 10.9.0.1" "src_max 10.9.0.250" "udp_dst_min 9" "udp_dst_max 9"
record mq0
ethtool -L mq0 combined 4
samples 6
ethtool -L mq0 combined 8
told
same "qstats: no number that nobody sent" "$(above 100)" ""
check "qstats: it is asked all the time" sh -c "! grep -q '\"source\":\"ethtool\"' /tmp/w.json"
same "qstats: eight queues at the end" "$(tail -1 /tmp/w.json | grep -o '"dir":"rx"' | wc -l)" 8

# A virtual interface that is deleted and created again.
modprobe veth
ip link add w72a type veth peer name w72b
record w72a mq0
ip link del w72a
samples 5
ip link add w72a type veth peer name w72b
told
check "an interface that went is named" grep -q '"gone":\["w72a"\]' /tmp/w.json
check "and when it is back" grep -q '"came":\["w72a"\]' /tmp/w.json
check "in lines too" grep -q '^# [0-9:]* w72a is gone' /tmp/w.lines
ip link del w72a

# A card that is removed and inserted again.
pci=$(pci_of eth1)
record eth1 eth0
echo 1 >$pci/remove
samples 6
check "unplugged: it is gone" [ ! -e /sys/class/net/eth1 ]
echo 1 >/sys/bus/pci/rescan
for _i in $(seq 100); do
	[ -e /sys/class/net/eth1 ] && break
	sleep 0.1
done
ip link set eth1 up
wait_link eth1
told
check "unplugged: named once" [ "$(grep -c '"gone":\["eth1"\]' /tmp/w.json)" = 1 ]
check "unplugged: named when it is back" grep -q '"came":\["eth1"\]' /tmp/w.json
same "unplugged: no number that nobody sent" "$(above 100)" ""
same "unplugged: watched again at the end" "$(tail -1 /tmp/w.json | grep -c '"eth1":{"driver":"igb"')" 1

# CPUs.
record mq0
echo 0 >/sys/devices/system/cpu/cpu5/online
samples 5
echo 1 >/sys/devices/system/cpu/cpu5/online
told
check "a CPU that left" grep -q '"cpus_gone":\[5\]' /tmp/w.json
check "a CPU that is back" grep -q '"cpus_came":\[5\]' /tmp/w.json
same "and no number of it that cannot be" "$(above 1000000)" ""
same "shares of the time are shares" "$(grep -oE '"(softirq|irq|steal|idle|ksoftirqd)_percent":[0-9.e+-]+' /tmp/w.json | awk -F: '$2 > 100 || $2 < 0' | head -1)" ""

# A device that hangs under the network lock: no interface can be read, and CPUs and interrupts are still shown.
unset RINGWISE_DEVICE_DEADLINE_MS
record mq0 eth0
echo 300 >$param/hang
echo 4 >$param/quirk_dev
echo 128 >$param/quirk
ethtool -l mq2 >/dev/null 2>&1 &
hung=$!
for _i in $(seq 200); do
	[ "$(cat $param/hanging)" = 1 ] && break
	sleep 0.1
done
now=$(taken)
samples $((now + 4))
same "hangs: the device still hangs" "$(cat $param/hanging)" 1
echo 0 >$param/quirk
wait $hung
samples $(($(taken) + 6))
told
export RINGWISE_DEVICE_DEADLINE_MS=20000
check "hangs: who does not answer is named" grep -q '"silent":\["eth0","mq0"\]' /tmp/w.json
check "hangs: in lines too" grep -q '^# [0-9:]* mq0 does not answer' /tmp/w.lines
same "hangs: CPUs are told meanwhile" "$(grep '"silent":\["eth0","mq0"\]' /tmp/w.json | grep -c '"15":{"node":1')" "$(grep -c '"silent":\["eth0","mq0"\]' /tmp/w.json)"
same "hangs: nobody is called gone" "$(grep -c '"gone":\["' /tmp/w.json)" 0
same "hangs: nor come" "$(grep -c '"came":\["' /tmp/w.json)" 0
same "hangs: both are told again at the end" "$(tail -1 /tmp/w.json | grep -c '"eth0":{"driver":.*"mq0":{"driver":')" 1
same "hangs: no number that nobody sent" "$(above 100)" ""
