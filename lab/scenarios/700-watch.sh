#!/bin/sh
# watch shows exactly the packets that were sent and the kernel's own counts; losses are shown by place.
# hosts: router16 small2
# kernels: 6.12
# areas: watch
# timeout: 600
# needs: mqnic
. /h/lib.sh
. /h/state.sh
. /h/watch.sh
quiet_net

if [ "$HOST" = small2 ]; then
	# Given transmit queues: the kernel counts those exactly, whichever queue receives the packets.
	ip link set eth0 up
	ip link set eth1 up
	wait_link eth0
	wait_link eth1
	record
	send eth0 137 "dst 10.1.1.1" "dst_mac 02:00:00:00:00:01" "queue_map_min 1" "queue_map_max 1"
	send eth1 41 "dst 10.1.1.1" "dst_mac 02:00:00:00:00:01" "queue_map_min 0" "queue_map_max 0"
	told
	cp /tmp/w.json /tmp/w.both
	of eth0
	same "virtio_net: 137 packets on transmit queue 1" "$(queue tx 1)" 137
	check "virtio_net is asked by qstats" grep -q '"source":"qstats"' /tmp/w.json
	mv /tmp/w.both /tmp/w.json
	of eth1
	same "igb: 41 packets on transmit queue 0" "$(queue tx 0)" 41
	check "igb is asked by ethtool -S" grep -q '"source":"ethtool"' /tmp/w.json
	ringwise watch --once --interval 500ms >/tmp/w.page 2>&1
	same "the page ends well" $? 0
	cat /tmp/w.page
	same "and fits in 80 columns" "$(awk 'length($0) > 80' /tmp/w.page)" ""
	exit
fi

ip link set mq0 up
ip link set mq1 up
wait_link mq0
wait_link mq1
mac=$(cat /sys/class/net/mq0/address)
to="dst_mac $mac"
ethtool -K mq0 ntuple on
queue_of mq0 1001 1
queue_of mq0 1003 3

# Counted packets to chosen queues.
irq1=$(queue_irq mq0 mq0-TxRx-1 || queue_irq mq0 -1)
count1() { tr , '\n' </sys/kernel/irq/$irq1/per_cpu_count | awk '{ s += $1 } END { printf "%d", s }'; }
irqs=$(count1) bytes=$(stat_of mq0 rx_bytes)
record mq0 mq1
send mq1 200 "dst 10.1.1.1" "$to" "udp_dst_min 1001" "udp_dst_max 1001"
send mq1 53 "dst 10.1.1.1" "$to" "udp_dst_min 1003" "udp_dst_max 1003"
told
of mq0
same "200 packets on queue 1" "$(queue rx 1)" 200
same "53 packets on queue 3" "$(queue rx 3)" 53
same "none on the others" "$(($(queue rx 0) + $(queue rx 2) + $(queue rx 4) + $(queue rx 5) + $(queue rx 6) + $(queue rx 7)))" 0
same "253 packets on the interface" "$(sum '"rx":{"packets":')" 253
same "bytes as the kernel's file" "$(sum '"rx_bytes":')" "$(($(stat_of mq0 rx_bytes) - bytes))"
check "from qstats" grep -q '"source":"qstats"' /tmp/w.json
same "interrupts of queue 1 as counted" "$(queue rx 1 interrupts)" "$(($(count1) - irqs))"
check "and there were some" [ "$(count1)" -gt "$irqs" ]
check "the hot queue is marked" grep -q '"queue":1,"packets":[0-9]*,"bytes":[0-9]*,[^}]*"mark":"hot"' /tmp/w.json

# A ring that overflows: the NIC waits before it interrupts.
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
wait_link mq0

# A backlog that overflows: packets go to another CPU, whose queue is short.
backlog=$(cat /proc/sys/net/core/netdev_max_backlog)
echo 5 >/proc/sys/net/core/netdev_max_backlog
echo 8 >/sys/class/net/mq0/queues/rx-1/rps_cpus
dropped=$(softnet 2) stack=$(stat_of mq0 rx_dropped) in=$(snmp snmp Ip InReceives)
missed=$(stat_of mq0 rx_missed_errors)
record mq0
send mq1 2000 "dst 10.1.1.1" "$to" "udp_dst_min 1001" "udp_dst_max 1001"
told
lost=$(($(softnet 2) - dropped))
check "the backlog ran over ($lost of 2000)" [ $lost -gt 0 ]
same "lost at the backlog" "$(sum '"softnet_dropped":')" $lost
same "by CPU 3, whose it is" "$(sed -n 's/.*"3":{"node":\(.*\)"4":{"node".*/\1/p' /tmp/w.json | grep -o '"softnet_dropped":[0-9]*' | awk -F: '{ s += $2 } END { printf "%d", s }')" $lost
same "and told of the interface as well" "$(sum '"stack":')" "$(($(stat_of mq0 rx_dropped) - stack))"
# A slow guest's ring may overflow as well.
nic=$(($(stat_of mq0 rx_missed_errors) - missed))
same "what reached IP and what was lost ($nic of it at the NIC) are what was sent" "$(($(snmp snmp Ip InReceives) - in + lost + nic))" 2000
echo 0 >/sys/class/net/mq0/queues/rx-1/rps_cpus
echo $backlog >/proc/sys/net/core/netdev_max_backlog

# A socket whose reader sleeps: tftp waits for an answer that arrives 500 times.
ip addr add 10.1.1.1/24 dev mq0
ip neigh replace 10.1.1.9 lladdr $(cat /sys/class/net/mq1/address) dev mq0
rmem=$(cat /proc/sys/net/core/rmem_default)
echo 4096 >/proc/sys/net/core/rmem_default
tftp -g -r x -l /tmp/w.x 10.1.1.9 >/dev/null 2>&1 &
reader=$!
sleep 0.5
kill -STOP $reader
port=$((0x$(awk 'NR > 1 { split($2, a, ":"); print a[2]; exit }' /proc/net/udp)))
echo $rmem >/proc/sys/net/core/rmem_default
full=$(snmp snmp Udp RcvbufErrors)
record mq0
send mq1 500 "dst 10.1.1.1" "src_min 10.1.1.9" "src_max 10.1.1.9" "$to" "udp_src_min 69" "udp_src_max 69" "udp_dst_min $port" "udp_dst_max $port"
told
lost=$(($(snmp snmp Udp RcvbufErrors) - full))
check "the socket ran over ($lost of 500)" [ $lost -gt 0 ]
same "lost at the socket" "$(sum '"Udp:RcvbufErrors":')" $lost
kill -KILL $reader
kill -CONT $reader
wait $reader 2>/dev/null
ip addr del 10.1.1.1/24 dev mq0

# A queueing discipline that holds packets back and has room for 20.
modprobe sch_fq
# pktgen sends on CPU 0, and XPS assigns queue 2 to that CPU.
for f in /sys/class/net/mq1/queues/tx-*/xps_cpus; do
	look mask $f
	echo "$f $mask"
	echo 0 >$f
done >/tmp/w.xps
echo 1 >/sys/class/net/mq1/queues/tx-2/xps_cpus
tc qdisc replace dev mq1 root handle 1: mq
tc qdisc replace dev mq1 parent 1:3 handle 30: fq limit 20 flow_limit 20 maxrate 8kbit
record mq1
send mq1 25 "dst 10.1.1.1" "$to" "udp_dst_min 1001" "udp_dst_max 1001" "xmit_mode queue_xmit"
told
lost=$(tc -s qdisc show dev mq1 | grep -A1 'qdisc fq 30:' | sed -n 's/.*dropped \([0-9]*\),.*/\1/p')
check "the queueing discipline ran over ($lost)" [ $lost -gt 0 ]
same "lost there by the interface" "$(sum '"qdisc":')" $lost
same "lost there by transmit queue 2" "$(queue tx 2 qdisc_drops)" $lost
tc qdisc del dev mq1 root
while read -r f mask; do
	echo $mask >$f
done </tmp/w.xps

# Its memory use.
ringwise watch -o json --interval 50ms >/tmp/w.lines 2>/dev/null &
_w=$!
for _i in $(seq 300); do
	[ "$(grep -c . /tmp/w.lines)" -ge 50 ] && break
	sleep 0.2
done
# Memory of its own: pages of the program file are shared, and more of them with a program that is not optimised for size.
own=$(awk '$1 == "RssAnon:" { print $2 }' /proc/$_w/status)
echo "# memory: $(grep -e VmHWM -e RssAnon /proc/$_w/status | tr -s '\t\n' ' ')"
kill $_w
wait $_w 2>/dev/null
check "memory of its own ($own kB) below 10 MB" [ "$own" -lt 10000 ]

# Lines, page, recording.
ringwise watch --count 3 --interval 300ms mq0 mq1 >/tmp/w.lines
same "a line an interface and interval" "$(grep -vc '^#' /tmp/w.lines)" 6
same "of ten words" "$(grep -v '^#' /tmp/w.lines | awk 'NF != 10' | head -1)" ""
ringwise watch --count 1 --interval 300ms --queues mq0 >/tmp/w.lines
same "a line a queue" "$(grep -vc '^#' /tmp/w.lines)" 16
ringwise watch --once --interval 300ms -v >/tmp/w.page 2>/tmp/w.err
same "the page ends well" $? 0
cat /tmp/w.page /tmp/w.err
same "and fits in 80 columns" "$(awk 'length($0) > 80' /tmp/w.page)" ""
check "its own cost" grep -q 'ms of CPU time' /tmp/w.err
for dev in eth1 eth2 eth3 mq0; do
	echo "$dev: $(grep "^QUEUES OF $dev " /tmp/w.page)"
done
check "e1000e has one queue" grep -q '^QUEUES OF eth3 .*own counters' /tmp/w.page
check "vmxnet3 by ethtool -S" grep -q '^QUEUES OF eth2 .*ethtool -S (vmxnet3)' /tmp/w.page
head -c $(($(wc -c <$rec) - 20)) $rec >/tmp/w.torn
ringwise watch --replay /tmp/w.torn -o json >/tmp/w.out 2>/tmp/w.err
same "a torn recording is told" $? 0
check "but for its last line" grep -q 'ends within a line' /tmp/w.err
same "one interval less" "$(wc -l </tmp/w.out)" "$(($(wc -l </tmp/w.json) - 1))"
same "sought" "$(ringwise watch --replay $rec --seek 600ms -o json | wc -l)" "$(ringwise watch --replay $rec -o json | awk 'BEGIN { n = 0 } { match($0, /"seconds":[0-9.]*/); t += substr($0, RSTART + 10, RLENGTH - 10); if (t >= 0.6) n++ } END { print n - 1 }')"
ethtool -N mq0 delete 0 2>/dev/null
ethtool -N mq0 delete 1 2>/dev/null
echo "bytes a sample: $(($(wc -c <$rec) / $(grep -c '^sample ' $rec)))"
