#!/bin/sh
# Accelerated RFS as goal rpc configures it, with streams: each arrives in a queue whose interrupt is on its reader's CPU.
# hosts: router16
# kernels: 6.12
# timeout: 300
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw67
# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
links mq0 mq1
for dev in mq0 mq1; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done
state mq0 >/tmp/before

status "goal rpc" 0 ringwise apply --yes mq0 --config none --goal rpc
cat /tmp/err
check "ntuple is on" sh -c "ethtool -k mq0 | grep -q '^ntuple-filters: on'"
check "the host has a table" [ "$(cat /proc/sys/net/core/rps_sock_flow_entries)" -gt 0 ]
check "each queue has its part" [ "$(cat /sys/class/net/mq0/queues/rx-*/rps_flow_cnt | awk '$1 > 0' | wc -l)" = 8 ]
status "verify" 0 ringwise verify
status "nothing to do a second time" 0 ringwise plan mq0 --config none --goal rpc --exit-code

# of_cpu CPU: the queues whose interrupt is on it
of_cpu() {
	for _q in 0 1 2 3 4 5 6 7; do
		[ "$(asked $(irq_of mq0-TxRx-$_q))" = $1 ] && echo $_q
	done
}
counter() { ethtool -S mq0 | awk -v n="$1:" '$1 == n { print $2 }'; }

mkdir -p /var/run
ip netns add far
# Many packets, not few large ones.
ethtool -K mq1 tso off gso off
ip link set mq1 netns far
ip -n far addr add 10.7.0.2/24 dev mq1
ip -n far link set mq1 up
ip addr add 10.7.0.1/24 dev mq0
wait_link mq0
added=$(counter arfs_added)
# At the end of its input the reader would close its side at once, and the sender would stop in the middle.
mkfifo /tmp/t.held
exec 7<>/tmp/t.held
# stream CPU PORT: sets `share`, the per cent of the packets that arrived in queues whose interrupt is on the reader's CPU
stream() {
	_was=$(rx_packets mq0)
	taskset $(printf %x $((1 << $1))) nc -l -p $2 <&7 >/dev/null &
	_reader=$!
	for _i in $(seq 100); do
		grep -q ":$(printf %04X $2) .* 0A " /proc/net/tcp /proc/net/tcp6 && break
		sleep 0.1
	done
	dd if=/dev/zero bs=1k count=1500 2>/dev/null | ip netns exec far nc -w 20 10.7.0.1 $2
	kill $_reader 2>/dev/null
	wait $_reader 2>/dev/null
	share=$(echo "$_was ; $(rx_packets mq0) ; $(of_cpu $1 | tr '\n' ' ')" | awk -F';' '{
		k = split($1, a, " "); split($2, b, " "); m = split($3, q, " ")
		for (i = 1; i <= k; i++) all += b[i] - a[i]
		for (i = 1; i <= m; i++) mine += b[q[i] + 1] - a[q[i] + 1]
		printf "%d", all ? 100 * mine / all : 0 }')
	echo "# reader on CPU $1, queues there $(of_cpu $1 | tr '\n' ' '), $share % arrived there"
}
n=0
for cpu in $(for q in 6 1 3; do asked $(irq_of mq0-TxRx-$q); done); do
	n=$((n + 1))
	# A slow guest steers late: most of a short stream has been sent by then.
	for try in 1 2 3; do
		stream $cpu 50$n$try
		[ $share -gt 50 ] && break
	done
	check "stream $n arrives where its reader runs" [ $share -gt 50 ]
done
check "the device was told of flows" [ $(counter arfs_added) -gt $added ]
check "and steered by that" [ $(counter arfs_hits) -gt 0 ]

ip addr flush dev mq0
ip -n far link set mq1 netns 1
ip netns del far
ip link set mq1 up
wait_link mq0
ethtool -K mq1 tso on gso on
status "rollback" 0 ringwise rollback --yes 0
cat /tmp/err
check "ntuple is off" sh -c "ethtool -k mq0 | grep -q '^ntuple-filters: off'"
same "no flow is left in the device" "$(counter arfs_filters)" 0
state mq0 >/tmp/after
unchanged "as before" /tmp/before /tmp/after
for dev in mq0 mq1; do
	echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done
