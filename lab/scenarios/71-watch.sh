#!/bin/sh
# What watch tells is what was sent, to the packet, and what the kernel's own files count; losses are named by place.
# hosts: small2
# kernels: 6.12
# timeout: 600
# needs: mqnic
. /h/lib.sh
. /h/state.sh
ip() { /usr/bin/ip "$@"; }
rec=/tmp/w71.rec
export RINGWISE_DEVICE_DEADLINE_MS=20000

# record DEV...: from now on; `told` ends it
record() {
	rm -f $rec
	ringwise watch "$@" --interval 300ms --record $rec >/tmp/w71.lines 2>/tmp/w71.err &
	_w=$!
	samples 1
}
# samples N: until that many are in the recording
samples() {
	for _i in $(seq 300); do
		_c=$(grep -c '^sample ' $rec 2>/dev/null)
		[ ${_c:-0} -ge $1 ] && return
		sleep 0.1
	done
	echo "no $1 samples: $(cat /tmp/w71.err)"
}
# told: two samples more, then the whole of it as JSON lines
told() {
	samples $(($(grep -c '^sample ' $rec) + 2))
	kill $_w
	wait $_w 2>/dev/null
	ringwise watch --replay $rec -o json >/tmp/w71.json
}
# sum PATTERN: the numbers behind it, added up over all intervals
sum() {
	grep -o "$1[0-9]*" /tmp/w71.json | awk -F: '{ s += $NF } END { printf "%d", s }'
}
queue() {
	sum "\"dir\":\"$1\",\"queue\":$2,\"packets\":"
}
# snmp FILE GROUP NAME: a counter of /proc/net
snmp() {
	awk -v g="$2:" -v n="$3" '$1 == g && !h { for (i = 2; i <= NF; i++) if ($i == n) h = i; next } $1 == g { print $h; exit }' /proc/net/$1
}
# softnet COLUMN: of all CPUs together
softnet() {
	awk -v c=$1 'function hex(s,  i, n) { for (i = 1; i <= length(s); i++) n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return n }
		{ s += hex($c) } END { printf "%d", s }' /proc/net/softnet_stat
}
stat_of() {
	cat /sys/class/net/$1/statistics/$2
}
# send SRC COUNT WORD...: with pktgen, to the end
send() {
	_src=$1 _n=$2
	shift 2
	_pg_empty
	_pg kpktgend_0 "add_device $_src"
	for _w2 in "count $_n" "clone_skb 0" "pkt_size 60" "delay 0" "udp_src_min 1024" "udp_src_max 1024" "$@"; do
		_pg $_src "$_w2"
	done
	echo start >/proc/net/pktgen/pgctrl
	_pg_empty
}
modprobe pktgen
for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do
	echo 1 >$f
done

if [ "$HOST" = small2 ]; then
	# Chosen transmit queues: the kernel counts those exactly, whoever takes the packets.
	ip link set eth0 up
	ip link set eth1 up
	wait_link eth0
	wait_link eth1
	record
	send eth0 137 "dst 10.1.1.1" "dst_mac 02:00:00:00:00:01" "queue_map_min 1" "queue_map_max 1"
	send eth1 41 "dst 10.1.1.1" "dst_mac 02:00:00:00:00:01" "queue_map_min 0" "queue_map_max 0"
	told
	grep -o '"eth0":{"driver":"virtio_net".*' /tmp/w71.json | sed 's/,"eth1":{.*//' >/tmp/w71.eth0
	grep -o '"eth1":{"driver":"igb".*' /tmp/w71.json | sed 's/},"gone":.*//' >/tmp/w71.eth1
	cp /tmp/w71.eth0 /tmp/w71.json
	same "virtio_net: 137 packets on transmit queue 1" "$(queue tx 1)" 137
	check "virtio_net is asked by qstats" grep -q '"source":"qstats"' /tmp/w71.json
	cp /tmp/w71.eth1 /tmp/w71.json
	same "igb: 41 packets on transmit queue 0" "$(queue tx 0)" 41
	check "igb is asked by ethtool -S" grep -q '"source":"ethtool"' /tmp/w71.json
	ringwise watch --once --interval 500ms >/tmp/w71.page 2>&1
	same "the page ends well" $? 0
	cat /tmp/w71.page
	same "and fits in 80 columns" "$(awk 'length($0) > 80' /tmp/w71.page)" ""
	exit
fi

ip link set mq0 up
ip link set mq1 up
wait_link mq0
wait_link mq1
mac=$(cat /sys/class/net/mq0/address)
to="dst_mac $mac"
ethtool -K mq0 ntuple on
ethtool -N mq0 flow-type udp4 dst-port 1001 action 1 >/dev/null
ethtool -N mq0 flow-type udp4 dst-port 1003 action 3 >/dev/null
port() {
	echo "udp_dst_min $1"
}

# Counted packets to chosen queues.
irq1=$(queue_irq mq0 mq0-TxRx-1 || queue_irq mq0 -1)
count1() { tr , '\n' </sys/kernel/irq/$irq1/per_cpu_count | awk '{ s += $1 } END { printf "%d", s }'; }
irqs=$(count1) bytes=$(stat_of mq0 rx_bytes)
record mq0 mq1
send mq1 200 "dst 10.1.1.1" "$to" "udp_dst_min 1001" "udp_dst_max 1001"
send mq1 53 "dst 10.1.1.1" "$to" "udp_dst_min 1003" "udp_dst_max 1003"
told
sed 's/,"mq1":{.*//' /tmp/w71.json >/tmp/w71.mq0
cp /tmp/w71.mq0 /tmp/w71.json
same "200 packets on queue 1" "$(queue rx 1)" 200
same "53 packets on queue 3" "$(queue rx 3)" 53
same "none on the others" "$(($(queue rx 0) + $(queue rx 2) + $(queue rx 4) + $(queue rx 5) + $(queue rx 6) + $(queue rx 7)))" 0
same "253 packets on the interface" "$(sum '"rx":{"packets":')" 253
same "bytes as the kernel's file" "$(sum '"rx_bytes":')" "$(($(stat_of mq0 rx_bytes) - bytes))"
check "from qstats" grep -q '"source":"qstats"' /tmp/w71.json
same "interrupts of queue 1 as counted" "$(grep -o '"dir":"rx","queue":1,[^}]*' /tmp/w71.json | grep -o '"interrupts":[0-9]*' | awk -F: '{ s += $2 } END { printf "%d", s }')" "$(($(count1) - irqs))"
check "and there were some" [ "$(count1)" -gt "$irqs" ]
check "the hot queue is marked" grep -q '"queue":1,"packets":[0-9]*,"bytes":[0-9]*,[^}]*"mark":"hot"' /tmp/w71.json

# A ring that runs over: the NIC waits before it interrupts.
ethtool -G mq0 rx 64
wait_link mq0
ethtool -C mq0 rx-usecs 8000 rx-frames 0 2>/dev/null || ethtool -C mq0 rx-usecs 8000
missed=$(stat_of mq0 rx_missed_errors) got=$(stat_of mq0 rx_packets)
record mq0
send mq1 3000 "dst 10.1.1.1" "$to" "udp_dst_min 1001" "udp_dst_max 1001"
told
lost=$(($(stat_of mq0 rx_missed_errors) - missed))
check "the ring ran over ($lost of 3000)" [ $lost -gt 0 ]
same "lost at the NIC" "$(sum '"drops":{"nic":')" $lost
same "arrived and lost are what was sent" "$(($(sum '"rx":{"packets":') + $(sum '"drops":{"nic":')))" 3000
same "arrived as the kernel's file" "$(sum '"rx":{"packets":')" "$(($(stat_of mq0 rx_packets) - got))"
ethtool -C mq0 rx-usecs 0
ethtool -G mq0 rx 1024

# A backlog that runs over: packets go to another CPU, whose queue is short.
backlog=$(cat /proc/sys/net/core/netdev_max_backlog)
echo 5 >/proc/sys/net/core/netdev_max_backlog
echo 8 >/sys/class/net/mq0/queues/rx-1/rps_cpus
dropped=$(softnet 2) stack=$(stat_of mq0 rx_dropped) in=$(snmp snmp Ip InReceives)
record mq0
send mq1 2000 "dst 10.1.1.1" "$to" "udp_dst_min 1001" "udp_dst_max 1001"
told
lost=$(($(softnet 2) - dropped))
check "the backlog ran over ($lost of 2000)" [ $lost -gt 0 ]
same "lost at the backlog" "$(sum '"softnet_dropped":')" $lost
same "by CPU 3, whose it is" "$(grep -o '"3":{"node":0,[^}]*{[^}]*' /tmp/w71.json | grep -o '"softnet_dropped":[0-9]*' | awk -F: '{ s += $2 } END { printf "%d", s }')" $lost
same "and told of the interface as well" "$(sum '"stack":')" "$(($(stat_of mq0 rx_dropped) - stack))"
same "what reached IP and what was lost are what was sent" "$(($(snmp snmp Ip InReceives) - in + lost))" 2000
echo 0 >/sys/class/net/mq0/queues/rx-1/rps_cpus
echo $backlog >/proc/sys/net/core/netdev_max_backlog

record mq0
echo 0 >/sys/devices/system/cpu/cpu5/online
samples 5
echo 1 >/sys/devices/system/cpu/cpu5/online
told
check "a CPU that left" grep -q '"cpus_gone":\[5\]' /tmp/w71.json
check "a CPU that is back" grep -q '"cpus_came":\[5\]' /tmp/w71.json
same "and no number of it that cannot be" "$(grep -o '"softnet_processed":[0-9]*' /tmp/w71.json | awk -F: '$2 > 1000000' | head -1)" ""

# Lines, page, recording.
ringwise watch --count 3 --interval 300ms mq0 mq1 >/tmp/w71.lines
same "a line an interface and interval" "$(grep -vc '^#' /tmp/w71.lines)" 6
same "of ten words" "$(grep -v '^#' /tmp/w71.lines | awk 'NF != 10' | head -1)" ""
ringwise watch --count 1 --interval 300ms --queues mq0 >/tmp/w71.lines
same "a line a queue" "$(grep -vc '^#' /tmp/w71.lines)" 16
ringwise watch --once --interval 300ms -v >/tmp/w71.page 2>/tmp/w71.err
same "the page ends well" $? 0
cat /tmp/w71.page /tmp/w71.err
same "and fits in 80 columns" "$(awk 'length($0) > 80' /tmp/w71.page)" ""
check "its own cost" grep -q 'ms of CPU time' /tmp/w71.err
for dev in eth1 eth2 eth3 mq0; do
	echo "$dev: $(grep "^QUEUES OF $dev " /tmp/w71.page)"
done
check "e1000e has one queue" grep -q '^QUEUES OF eth3 .*own counters' /tmp/w71.page
check "vmxnet3 by ethtool -S" grep -q '^QUEUES OF eth2 .*ethtool -S (vmxnet3)' /tmp/w71.page
head -c $(($(wc -c <$rec) - 20)) $rec >/tmp/w71.torn
ringwise watch --replay /tmp/w71.torn -o json >/tmp/w71.out 2>/tmp/w71.err
same "a torn recording is told" $? 0
check "but for its last line" grep -q 'ends within a line' /tmp/w71.err
same "one interval less" "$(wc -l </tmp/w71.out)" "$(($(wc -l </tmp/w71.json) - 1))"
same "sought" "$(ringwise watch --replay $rec --seek 600ms -o json | wc -l)" "$(ringwise watch --replay $rec -o json | awk 'BEGIN { n = 0 } { match($0, /"seconds":[0-9.]*/); t += substr($0, RSTART + 10, RLENGTH - 10); if (t >= 0.6) n++ } END { print n - 1 }')"
ethtool -N mq0 delete 0 2>/dev/null
ethtool -N mq0 delete 1 2>/dev/null
echo "bytes a sample: $(($(wc -c <$rec) / $(grep -c '^sample ' $rec)))"
