#!/bin/sh
# 1,000 writes of an RSS table under traffic, as the service makes them: no packet is lost, and none is overtaken by more packets of its flow than a ring holds.
# hosts: router16
# kernels: 5.10 6.12 newest
# areas: daemon
# timeout: 900
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh

# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
cost_pair
echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6
echo 1 >/proc/sys/net/ipv6/conf/eth1/disable_ipv6
wait_link eth0
wait_link eth1
# The queue that has four eleventh of the packets is busy for most of the time, so that packets wait when its entries move.
cost_load mq0 eth0

# numbers SRC DST: packets that SRC has sent and DST has received, and those that DST and its driver have dropped
numbers() {
	look _sent "/sys/class/net/$1/statistics/tx_packets"
	look _received "/sys/class/net/$2/statistics/rx_packets"
	_dropped=0
	for _counter in rx_dropped rx_missed_errors rx_fifo_errors; do
		look _n "/sys/class/net/$2/statistics/$_counter"
		_dropped=$((_dropped + _n))
	done
	_backlog=0
	while read -r _ _n _; do
		_backlog=$((_backlog + 0x$_n))
	done </proc/net/softnet_stat
}

# of NAME: a line of the last account of `order`
of() {
	awk -v name="$1" '$1 == name { print $2 }' /tmp/order
}

# writes SRC DST RATE NS: 1,000 writes of DST's table in four parts, because pktgen sends for 60 s at most
writes() {
	src=$1 dst=$2
	for q in 0 1 2 3 4 5 6 7; do
		echo $q >/proc/irq/$(queue_irq $dst TxRx-$q)/smp_affinity_list
	done
	check "$dst: the table is even at first" ethtool -X $dst equal 8
	ring=$(ethtool -g $dst | awk '/^RX:/ { n = $2 } END { print n }')
	made=0 failed=0 sent=0 received=0 counted=0 dropped=0 late=0 extent=0 taps=0
	for part in 1 2 3 4; do
		numbers $src $dst
		_sent0=$_sent _received0=$_received _dropped0=$((_dropped + _backlog))
		order $dst 4 >/tmp/order &
		order=$!
		sleep 0.5
		send $src $dst $3 "dst 10.1.1.1" "src_min 10.9.0.1" "src_max 10.9.0.32" "flag IPSRC_RND"
		cost_on $4 100 100
		n=0
		while [ $n -lt 125 ]; do
			ethtool -X $dst weight 4 1 1 1 1 1 1 1 || failed=$((failed + 1))
			ethtool -X $dst equal 8 || failed=$((failed + 1))
			made=$((made + 2)) n=$((n + 1))
		done
		look _during "/sys/class/net/$src/statistics/tx_packets"
		sleep 0.5
		numbers $src $dst
		check "$dst: part $part was written under traffic" test "$_sent" -gt "$_during"
		send_end
		wait $order
		numbers $src $dst
		sent=$((sent + _sent - _sent0)) received=$((received + _received - _received0))
		dropped=$((dropped + _dropped + _backlog - _dropped0))
		counted=$((counted + $(of received))) taps=$((taps + $(of tap_drops))) late=$((late + $(of late)))
		[ "$(of extent)" -le $extent ] || extent=$(of extent)
	done
	echo "# $dst: $made writes, $sent packets sent, $received received, $counted of them of pktgen, $late late, extent $extent, ring $ring"
	same "$dst: each write succeeded" $failed 0
	same "$dst: 1,000 writes" $made 1000
	check "$dst: packets were sent" test $sent -gt 5000
	same "$dst: each packet was received" $received $sent
	same "$dst: none was dropped" $dropped 0
	same "$dst: all of them were counted" "$counted $taps" "$sent 0"
	check "$dst: none is behind more packets of its flow than the ring holds" test $extent -le "$ring"
	ethtool -X $dst default
}

writes mq1 mq0 1000 1500000
writes eth1 eth0 500 1500000
cost_unload
