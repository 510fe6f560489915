#!/bin/sh
# Two threads of a core under the cost model: packets/s at overload, and the highest rate that a layout can process. On four
# cores: one queue per core, one per thread, six queues with three tables (even, the same share for each core, by what each
# CPU carries). On six cores: six queues, eight with an even table, eight by what each CPU carries. One queue with RPS to
# three other cores: one thread of each, and both.
# hosts: router16
# kernels: 6.12
# lane: benchmark
# timeout: 900
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh

# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
# The generator and this script have CPUs that are never charged: cores 6 and 7.
PG_CPU=14
taskset -p 1000 $$ >/dev/null
PACKET=3000000
modprobe pktgen
for dev in mq0 mq1; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
	wait_link $dev
done
cost_load mq0
for irq in $(dev_irqs mq1); do
	echo $PG_CPU >/proc/irq/$irq/smp_affinity_list
done

# layout QUEUES TABLE CPU...: that many queues, with queue 0 on the first CPU
layout() {
	ethtool -X mq0 default
	ethtool -L mq0 combined $1
	wait_link mq0
	# shellcheck disable=SC2086 # words
	ethtool -X mq0 $2
	shift 2
	_q=0
	for _cpu in "$@"; do
		echo $_cpu >/proc/irq/$(queue_irq mq0 TxRx-$_q)/smp_affinity_list
		_q=$((_q + 1))
	done
}

# offered RATE: packets sent and charged per second in the last three of four seconds
offered() {
	send mq1 mq0 $1 "dst 10.1.1.1" "src_min 10.9.0.1" "src_max 10.9.3.250" "flag IPSRC_RND"
	cost_on $PACKET 100
	sleep 1
	look _sent0 /sys/class/net/mq1/statistics/tx_packets
	cost_reset
	sleep 3
	look _sent1 /sys/class/net/mq1/statistics/tx_packets
	_ms=$(cost_elapsed)
	_done=$(charged)
	send_end
	sleep 1
	got=$((_done * 1000 / _ms))
	sent=$(((_sent1 - _sent0) * 1000 / _ms))
}

# highest LOW HIGH: the highest rate that the layout can process: 98 of 100 packets sent are charged
highest() {
	low=$1 high=$2
	while [ $((high - low)) -gt 50 ]; do
		offered $(((low + high) / 2))
		if [ $((got * 100)) -ge $((sent * 98)) ]; then low=$(((low + high) / 2)); else high=$(((low + high) / 2)); fi
	done
}

measure() {
	offered 2600
	overload=$got
	highest 600 2500
	echo "$1: at overload $overload packets/s (of $sent offered last), keeps up with $low"
	results="$results$1 $overload $low;"
}

layout 4 "equal 4" 0 2 4 6
measure "one-a-core"
layout 8 "equal 8" 0 2 4 6 1 3 5 7
measure "one-a-thread"
layout 6 "equal 6" 0 2 4 6 1 3
measure "six-even"
layout 6 "weight 1 1 2 2 1 1" 0 2 4 6 1 3
measure "six-by-core"
layout 6 "weight 2 2 3 3 2 2" 0 2 4 6 1 3
measure "six-by-thread"
layout 6 "equal 6" 0 2 4 6 8 10
measure "six-cores"
layout 8 "equal 8" 0 2 4 6 8 10 1 3
measure "eight-even"
layout 8 "weight 2 2 3 3 3 3 2 2" 0 2 4 6 8 10 1 3
measure "eight-by-thread"
layout 1 "equal 1" 0
rps=/sys/class/net/mq0/queues/rx-0/rps_cpus
echo 54 >$rps
measure "rps-a-core"
echo fc >$rps
measure "rps-a-thread"
echo 0 >$rps
echo "$results" | tr ';' '\n' | grep . >/h/results/threads.txt
cost_off
check "ten layouts were measured" [ "$(wc -l </h/results/threads.txt)" = 10 ]
ethtool -X mq0 default
ethtool -L mq0 combined 8
