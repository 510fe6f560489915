#!/bin/sh
# watch --per-flow: flows of known size on known queues, counted exactly; with its limits, and its refusal without the capability.
# hosts: router16 small2
# kernels: 6.12
# areas: flow watch
# timeout: 600
# needs: mqnic
. /h/lib.sh
. /h/state.sh
. /h/watch.sh
quiet_net

# flow QUEUE PORT [MEMBER]: of packets to this port on this queue, over all intervals
flow() {
	awk -v q="\"queue\":$1," -v p="\"to_port\":$2," -v m="\"${3:-looked_at}\":" '{
		n = split($0, part, "[{]\"queue\":")
		for (i = 2; i <= n; i++) {
			if (index("\"queue\":" part[i], q) != 1) continue
			k = split(part[i], f, "[{]\"protocol\":")
			for (j = 2; j <= k; j++)
				if (index(f[j], p) && match(f[j], m "[0-9]+")) s += substr(f[j], RSTART + length(m), RLENGTH - length(m))
		}
	} END { printf "%d", s }' /tmp/f.json
}

if [ "$HOST" = small2 ]; then
	# A driver with one queue reports no queue, and the queue is certain.
	ip link set lo up
	listen lo --sample 1
	nc -w 1 127.0.0.1 9 </dev/null 2>/dev/null
	heard
	check "lo: a connection that is refused" [ "$(flow 0 9)" -ge 1 ]
	as_nobody ringwise watch --per-flow eth0 --once >/tmp/out 2>/tmp/err
	same "without rights: status" $? 1
	says "without rights: who may" "CAP_NET_RAW"
	exit
fi

ip link set mq0 up
ip link set mq1 up
links mq0 mq1
to="dst_mac $(cat /sys/class/net/mq0/address)"
ethtool -K mq0 ntuple on
for port in 1001:1 1002:1 1003:3 1004:7; do
	queue_of mq0 ${port%:*} ${port#*:}
done
flows() { grep -c ' 0003 ' /proc/net/packet; }
before=$(flows)
listen mq0 --sample 1
same "a socket for each queue, and one" "$(($(flows) - before))" 9
for n in 1001:200 1002:53 1003:7 1004:1; do
	send mq1 ${n#*:} "dst 10.1.1.1" "$to" "udp_dst_min ${n%:*}" "udp_dst_max ${n%:*}"
done
send mq0 91 "dst 10.1.1.1" "dst_mac 02:00:00:00:00:01" "udp_dst_min 1001" "udp_dst_max 1001"
heard
tail -3 /tmp/f.json | head -1 | cut -c1-600
same "200 packets of a flow on queue 1" "$(flow 1 1001)" 200
same "53 of another" "$(flow 1 1002)" 53
same "7 on queue 3" "$(flow 3 1003)" 7
same "1 on queue 7" "$(flow 7 1004)" 1
same "none anywhere else, and none of those that were sent" "$(all looked_at)" 261
same "bytes of a flow" "$(flow 1 1001 bytes)" 12000
same "nothing had no room" "$(grep -o '"lost":[0-9]*' /tmp/f.json | awk -F: '{ s += $2 } END { print s }')" 0
same "the sockets are gone" "$(flows)" "$before"

# More flows than the sketch holds: the large flow among many small ones is listed, and no count is too small. The NIC's ring or the
# sampling socket may overflow with so many packets: both report how many they lost.
missed=$(stat_of mq0 rx_missed_errors)
listen mq0 --sample 1 --top 64
send mq1 3000 "dst 10.1.1.1" "$to" "flag IPSRC_RND" "src_min 10.9.0.1" "src_max 10.9.3.250" "udp_dst_min 1002" "udp_dst_max 1002"
send mq1 700 "dst 10.1.1.1" "$to" "src_min 10.8.0.1" "src_max 10.8.0.1" "udp_dst_min 1001" "udp_dst_max 1001"
heard
check "the elephant ($(flow 1 1001))" [ "$(flow 1 1001)" -ge 700 ]
same "flows of a queue are at most 64" "$(tr '{' '\n' </tmp/f.json | awk '/^"queue"/ { n = 0 } /^"protocol"/ { if (++n > m) m = n } END { print (m > 64) }')" 0
missed=$(($(stat_of mq0 rx_missed_errors) - missed))
lost=$(grep -o '"lost":[0-9]*' /tmp/f.json | awk -F: '{ s += $2 } END { printf "%d", s }')
echo "# looked at $(all looked_at), no room for $lost, missed by the NIC $missed"
same "all packets are in the sums" "$(($(all looked_at) + lost + missed))" 3700

# One in eight, at random: 4000 packets make 500; fewer than 300 or more than 700 occurs once in 10^20 tries.
listen mq0 --sample 8
send mq1 4000 "dst 10.1.1.1" "$to" "udp_dst_min 1001" "udp_dst_max 1001"
heard
n=$(all looked_at)
check "a sample of one in eight ($n of 4000)" [ $n -gt 300 ] && check "and not more" [ $n -lt 700 ]

ringwise watch --per-flow mq0 --interval 300ms --count 2 >/tmp/f.lines 2>/tmp/f.err
same "lines end well" $? 0
cat /tmp/f.lines
check "with its own cost" grep -q '^# mq0 0 packets sampled (each); own cost' /tmp/f.lines
status "an interface that is down" 1 sh -c 'ip link set mq3 down; ringwise watch --per-flow mq3 --once'
says "is said to be" "mq3 is down"
for port in 0 1 2 3; do
	ethtool -N mq0 delete $port 2>/dev/null
done
exit 0
