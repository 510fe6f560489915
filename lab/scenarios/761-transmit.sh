#!/bin/sh
# `ringwise explain`: the transmit queue that it predicts, against the driver's counters of each transmit queue. Each class that the
# kernel can choose by (`netdev_pick_tx` in net/core/dev.c) is checked: XPS by CPU, XPS by the receive queue of a socket, the
# recorded receive queue of forwarded packets; and where a hash with a random key decides, no queue may be predicted.
# hosts: router16
# kernels: 6.12 newest
# areas: flow
# timeout: 1200
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw761
# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
modprobe pktgen
links mq0 mq1 mq2 mq3
for dev in mq0 mq1 mq2 mq3; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done

# tx_packets DEV: sent packets of each transmit queue
tx_packets() {
	ethtool -S "$1" | awk '/tx_queue_[0-9]+_packets/ { split($1, a, "_"); q[a[3] + 0] = $2; if (a[3] + 0 > m) m = a[3] + 0 }
		END { for (i = 0; i <= m; i++) printf "%s ", q[i] }'
}
# sent_since BEFORE DEV: the same, since the counters were BEFORE
sent_since() {
	echo "$1; $(tx_packets "$2")" | awk -F';' '{ split($1, a, " "); n = split($2, b, " "); for (i = 1; i <= n; i++) printf "%d ", b[i] - a[i] }'
}
# total < COUNTS, queues_in < COUNTS: the sum; the queues that are not 0
total() { awk '{ for (i = 1; i <= NF; i++) s += $i; printf "%d", s }'; }
queues_in() { awk '{ for (i = 1; i <= NF; i++) if ($i) printf "%s%d", s++ ? " " : "", i - 1 }'; }

# predict OUT FLOW [DEV]: `QUEUE DECISION` of the path by which the flow leaves OUT; the queue is `null` if it is not predicted
predict() {
	_out=$1
	shift
	ringwise explain "$@" -j 2>/tmp/err | tr -d ' \n' | sed "s/.*\"departure\":{\"dev\":\"$_out\",//; s/\"why_not\".*//
		s/.*\"decision\":\"\([a-z_]*\)\".*\"queue\":\([a-z0-9]*\),.*/\2 \1/"
}
# xps FILE DEV MASK...: writes the masks of queue 0, 1, ...
xps() {
	_file=$1 _dev=$2 _q=0
	shift 2
	for _mask in "$@"; do
		echo "$_mask" >/sys/class/net/$_dev/queues/tx-$_q/$_file
		_q=$((_q + 1))
	done
}

# --- forwarded: mq1 sends to mq0, the host forwards through mq2; mq3 drops the packets, because they
# have another MAC address
N=10000
echo 1 >/proc/sys/net/ipv4/ip_forward
for dev in all mq0; do
	echo 0 >/proc/sys/net/ipv4/conf/$dev/rp_filter
done
ip addr add 10.7.0.1/24 dev mq0
ip addr add 10.8.0.1/24 dev mq2
ip neigh replace 10.8.0.2 lladdr 02:00:00:00:00:99 nud permanent dev mq2
ip route add 10.1.1.0/24 via 10.8.0.2 dev mq2
# pktgen counts its source addresses upwards, so that each flow is sent once.
awk -v n=$N 'BEGIN { for (i = 1; i <= n; i++) printf "10.9.%d.%d:1024-10.1.1.1:9/udp\n", int(i / 256), i % 256 }' >/tmp/flows
# One CPU for each receive queue.
for q in 0 1 2 3 4 5 6 7; do
	echo $((2 * q)) >/proc/irq/$(irq_of mq0-TxRx-$q)/smp_affinity_list
done
# send_flows: sends a packet of each flow
send_flows() {
	_pg_empty
	_pg kpktgend_0 "add_device mq1"
	for _w in "count $N" "clone_skb 0" "pkt_size 60" "delay 0" "dst 10.1.1.1" "dst_mac $(cat /sys/class/net/mq0/address)" \
		"src_min 10.9.0.1" "src_max 10.9.$((N / 256)).$((N % 256))" \
		"udp_src_min 1024" "udp_src_max 1024" "udp_dst_min 9" "udp_dst_max 9" "ratep 4000"; do
		_pg mq1 "$_w"
	done
	_pg_run 120
	sleep 0.5
}
# An interrupt moves to its new CPU when it is raised.
send_flows

# predict_flows: from the receive queue of each flow, and the prediction for one flow of each receive queue:
# /tmp/by_queue with `RECEIVE-QUEUE TRANSMIT-QUEUE DECISION`, and sets `want` to the packets of each transmit queue
predict_flows() {
	ringwise explain - mq0 --plain </tmp/flows 2>/tmp/err | grep -v '^#' >/tmp/said
	awk '!seen[$2]++ { print $2, $1 }' /tmp/said | while read -r _rx _flow; do
		echo "$_rx $(predict mq2 "$_flow" mq0)"
	done | sort >/tmp/by_queue
	sed 's/^/# receive queue, transmit queue, decision: /' /tmp/by_queue
	want=$(awk 'NR == FNR { to[$1] = $2; next } { n[to[$2]]++ } END { for (i = 0; i < 8; i++) printf "%d ", n[i] }' /tmp/by_queue /tmp/said)
}
# forwarded NAME DECISIONS: predicts all flows, sends them and counts
forwarded() {
	predict_flows
	same "$1: the decisions" "$(awk '{ print $3 }' /tmp/by_queue | sort -u | tr '\n' ' ')" "$2 "
	same "$1: every flow has a queue" "$(echo "$want" | total)" $N
	_before=$(tx_packets mq2)
	send_flows
	same "$1: $N flows, predicted and counted" "$(sent_since "$_before" mq2)" "$want"
}

xps xps_cpus mq2 0 0 0 0 0 0 0 0
xps xps_rxqs mq2 0 0 0 0 0 0 0 0
forwarded "without XPS" receive_queue
check "without XPS: several queues" [ "$(echo "$want" | queues_in | wc -w)" -gt 4 ]
ethtool -L mq2 combined 3
wait_link mq2
xps xps_cpus mq2 0 0 0
forwarded "with three transmit queues" receive_queue
same "with three transmit queues: all are used" "$(echo "$want" | queues_in)" "0 1 2"
ethtool -L mq2 combined 8
wait_link mq2
# In the reverse order: the number of the receive queue must not be the answer by chance.
xps xps_cpus mq2 c000 3000 c00 300 c0 30 c 3
forwarded "XPS by CPU" xps_cpus
same "XPS by CPU: the first receive queue" "$(awk '$1 == 0 { print $2 }' /tmp/by_queue)" 7
xps xps_cpus mq2 0 0 0 0 0 0 c 3
forwarded "XPS of some CPUs" "receive_queue xps_cpus"
# A forwarded packet has no socket, whose receive queue this file goes by.
xps xps_cpus mq2 0 0 0 0 0 0 0 0
xps xps_rxqs mq2 ff 0 0 0 0 0 0 0
forwarded "XPS by receive queue does not apply" receive_queue
xps xps_rxqs mq2 0 0 0 0 0 0 0 0

# Several queues for a CPU: the packet's hash decides, so that no queue may be predicted.
xps xps_cpus mq2 0 ffff 0 0 0 ffff 0 0
predict_flows
same "XPS with two queues: not predictable" "$(awk '{ print $2, $3 }' /tmp/by_queue | sort -u)" "null xps_cpus"
before=$(tx_packets mq2)
send_flows
counted=$(sent_since "$before" mq2)
same "XPS with two queues: every flow was sent" "$(echo "$counted" | total)" $N
same "XPS with two queues: both are used, and no other" "$(echo "$counted" | queues_in)" "1 5"
ringwise explain "$(head -1 /tmp/flows)" mq0 >/tmp/out 2>/tmp/err
says "XPS with two queues: both are named" "one of tx 1,5"
says "XPS with two queues: why" "not predictable: the kernel chooses by the packet's hash"

# --- sent by a program on each CPU: 16 x 625 flows
EACH=625
mkfifo /tmp/go
exec 8<>/tmp/go
# from_cpu CPU: starts the program there and sets `said` to the prediction for its flows, and `sent` to what was counted
from_cpu() {
	_port=$((4000 + $1))
	: >/tmp/sent
	taskset $(printf %x $((1 << $1))) datagrams $_port 10.8.0.2 10000 $EACH </tmp/go >/tmp/sent &
	_program=$!
	for _i in $(seq 100); do
		grep -q ":$(printf %04X $_port) " /proc/net/udp && break
		sleep 0.1
	done
	said=$(predict mq2 10.8.0.1:$_port-10.8.0.2:10000/udp)
	_before=$(tx_packets mq2)
	echo >&8
	for _i in $(seq 300); do
		grep -q sent /tmp/sent && break
		sleep 0.1
	done
	sleep 0.2
	sent=$(sent_since "$_before" mq2)
	kill $_program
	wait $_program 2>/dev/null
}
# on_queue QUEUE: `N N ...` with all flows of one CPU on this queue
on_queue() { awk -v q="$1" -v n=$EACH 'BEGIN { for (i = 0; i < 8; i++) printf "%d ", i == q ? n : 0 }'; }

xps xps_cpus mq2 c000 3000 c00 300 c0 30 c 3
# By receive queue needs a connected socket.
xps xps_rxqs mq2 ff 0 0 0 0 0 0 0
right=0
for cpu in $(seq 0 15); do
	from_cpu $cpu
	echo "# CPU $cpu: predicted $said, counted $sent"
	[ "${said#* }" = xps_cpus ] && [ "$sent" = "$(on_queue ${said% *})" ] && right=$((right + EACH))
done
same "sent from 16 CPUs, XPS by CPU: 10000 flows, predicted and counted" $right 10000
xps xps_rxqs mq2 0 0 0 0 0 0 0 0

xps xps_cpus mq2 0 0 ff00 0 0 0 ff00 0
from_cpu 9
same "sent, XPS with two queues: not predictable" "$said" "null xps_cpus"
same "sent, XPS with two queues: both are used, and no other" "$(echo "$sent" | queues_in)" "2 6"
from_cpu 2
same "sent, no queue for this CPU: not predictable" "$said" "null packet_hash"
check "sent, no queue for this CPU: several are used" [ "$(echo "$sent" | queues_in | wc -w)" -gt 4 ]
xps xps_cpus mq2 0 0 0 0 0 0 0 0
from_cpu 9
same "sent without XPS: not predictable" "$said" "null packet_hash"
check "sent without XPS: several are used" [ "$(echo "$sent" | queues_in | wc -w)" -gt 4 ]
exec 8>&-
ip route del 10.1.1.0/24
ip neigh del 10.8.0.2 dev mq2
ip addr flush dev mq2
ip addr flush dev mq0
echo 0 >/proc/sys/net/ipv4/ip_forward

# --- a connection: its answers leave by the transmit queue that is mapped to the receive queue of its socket
mkdir -p /var/run
ip netns add far
ip link set mq1 netns far
ip -n far addr add 10.7.0.2/24 dev mq1
ip -n far link set mq1 up
ip addr add 10.7.0.1/24 dev mq0
wait_link mq0
# Requests for addresses have no socket and would count as well.
ip neigh replace 10.7.0.2 lladdr $(ip netns exec far cat /sys/class/net/mq1/address) nud permanent dev mq0
ip -n far neigh replace 10.7.0.1 lladdr $(cat /sys/class/net/mq0/address) nud permanent dev mq1
xps xps_cpus mq0 ffff 0 0 0 0 0 0 0
xps xps_rxqs mq0 80 40 20 10 8 4 2 1
mkfifo /tmp/t.held
exec 7<>/tmp/t.held
nc -l -p 5001 <&7 >/dev/null &
reader=$!
for _i in $(seq 100); do
	grep -q ":1389 .* 0A " /proc/net/tcp /proc/net/tcp6 && break
	sleep 0.1
done
(while sleep 0.1; do echo some bytes; done) | ip netns exec far nc 10.7.0.1 5001 &
sender=$!
for _i in $(seq 100); do
	port=$(cat /proc/net/tcp /proc/net/tcp6 | awk '$2 ~ /:1389$/ && $4 == "01" { split($3, a, ":"); print a[2]; exit }')
	[ -n "$port" ] && break
	sleep 0.1
done
check "a connection" [ -n "$port" ]
flow=10.7.0.2:$(printf %d 0x$port)-10.7.0.1:5001/tcp
rx=$(ringwise explain "$flow" mq0 --plain | awk '!/^#/ { print $2 }')
said=$(predict mq0 "$flow" mq0)
same "a connection: the queue mapped to its receive queue" "$said" "$((7 - rx)) xps_rxqs"
before=$(tx_packets mq0)
sleep 3
same "a connection: its answers leave by the predicted queue alone" "$(sent_since "$before" mq0 | queues_in)" "${said% *}"
kill $sender $reader 2>/dev/null
wait $sender 2>/dev/null
wait $reader 2>/dev/null
exec 7>&-
xps xps_rxqs mq0 0 0 0 0 0 0 0 0
xps xps_cpus mq0 0 0 0 0 0 0 0 0
ip neigh del 10.7.0.2 dev mq0
ip addr flush dev mq0
ip -n far link set mq1 netns 1
ip netns del far
ip link set mq1 up
wait_link mq0
for dev in mq0 mq1 mq2 mq3; do
	echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done
exit 0
