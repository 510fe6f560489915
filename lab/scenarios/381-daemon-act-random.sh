#!/bin/sh
# The service writes on load while load, programs, faults and users come at random, for five minutes, or an hour with --long: after each kill the guard restores the table, entries move within their limit, memory does not grow, and at the end the layout is the base.
# hosts: router16
# kernels: 6.12
# areas: daemon
# timeout: 1200
# long: 5400
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/daemon.sh

own_state
# shellcheck disable=SC2034 # daemon.sh reads it
devs=mq0
cost_pair
status "the layout is applied" 0 ringwise apply --yes --goal forward mq0
status "the table is uneven" 0 ethtool -X mq0 weight 4 1 1 1 1 1 1 1

# table: the indirection table.
table() {
	ethtool -x mq0 | sed -n '/indirection/,/hash key/p'
}

# is_base: whether the host is as before the service moved anything: the table, the affinities and the XPS masks.
is_base() {
	{
		table
		layout
	} >/tmp/now
	cat /tmp/mine /tmp/layout >/tmp/base
	cmp -s /tmp/base /tmp/now
}

# returns NAME: waits until the host is as before the service moved anything.
returns() {
	_n=0
	until is_base; do
		if [ $_n = 150 ]; then
			not_ok "$1" "$(diff /tmp/base /tmp/now | grep '^[-+<>][^-+]' | head -6 | tr '\n' ';') $(tail -n 3 $log | tr '\n' ' ')"
			return
		fi
		sleep 0.2
		_n=$((_n + 1))
	done
	ok "$1"
}

# accept: a user accepts what is there, as soon as no transaction is running.
accept() {
	_n=0
	until ringwise adopt --yes mq0 >/tmp/out 2>&1; do
		if [ $_n = 50 ]; then
			not_ok "a user accepts the layout ($events)" "$(tail -n 3 /tmp/out)"
			return
		fi
		sleep 0.5
		_n=$((_n + 1))
	done
}

# moved_entries: entries that this process of the service has moved, as last published.
moved_entries() {
	sed -n 's/.*"moved_entries": \([0-9]*\).*/\1/p' $RINGWISE_STATE_DIR/daemon.json
}

# within_limit: adds this process to the sum, and checks its limit of 60 entries an hour.
within_limit() {
	read -r _now _ </proc/uptime
	_moved=$(moved_entries)
	sum=$((sum + _moved))
	_most=$((60 * ((${_now%.*} - began) / 3600 + 1)))
	[ "$_moved" -le $_most ] || not_ok "entries move within the limit" "$_moved in $((${_now%.*} - began)) s, at most $_most"
}

start() {
	serve --config none --act mq0 >/dev/null
	read -r _now _ </proc/uptime
	began=${_now%.*}
	seen=0 early=
}

events=0 sum=0
table >/tmp/mine
layout >/tmp/layout
accept
start
sleep 5
memory
minutes=5
[ -z "$LONG" ] || minutes=60
read -r _now _ </proc/uptime
end=$((${_now%.*} + minutes * 60))
half=$((${_now%.*} + minutes * 30))
seed=${SEED:-$$}
echo "# seed $seed, $minutes minutes"

program=
while read -r _now _ </proc/uptime && [ ${_now%.*} -lt $end ]; do
	pick 11
	case $_p in
	0 | 1 | 2)
		# Many flows, of which queue 0 gets a part as large as its part of the table.
		pick 8
		flows $((800 + _p * 100)) 1200000
		;;
	3)
		# One flow.
		[ -z "$sender" ] || send_end
		pick 200
		send mq1 mq0 500 "dst 10.1.1.1" "src_min 10.9.0.$_p" "src_max 10.9.0.$_p"
		cost_on 1200000 100 100
		;;
	4)
		# Frames without a hash.
		[ -z "$sender" ] || send_end
		send mq1 mq0 500 "mpls 00010140"
		echo 600000 >/sys/module/mqnic/parameters/poll_ns
		;;
	5)
		[ -z "$sender" ] || send_end
		sender=
		;;
	6)
		# A program comes or goes.
		if [ -n "$program" ]; then
			program_end
			program=
		else
			pick 8
			program $_p
		fi
		;;
	7)
		# A user writes a table while entries may have moved, and accepts it.
		pick 4
		ethtool -X mq0 weight $((1 + _p)) 1 2 1 1 $((4 - _p)) 1 1
		table >/tmp/mine
		pick 10
		sleep $_p
		table >/tmp/now
		cmp -s /tmp/mine /tmp/now || not_ok "the table of a user stays ($events)" "$(diff /tmp/mine /tmp/now | head -4 | tr '\n' ';')"
		accept
		;;
	8)
		kill -STOP $service
		pick 15
		sleep $_p
		kill -CONT $service
		;;
	9)
		# The service sees the state of the link, and each reset.
		pick 3
		i=0
		while [ $i -le $_p ]; do
			ip link set mq0 down
			ip link set mq0 up
			i=$((i + 1))
		done
		wait_link mq0
		;;
	10)
		# A crash. Only in the first half, so that one process sees many events.
		[ ${_now%.*} -lt $half ] || continue
		within_limit
		kill -KILL $service
		wait $service 2>/dev/null
		returns "killed: what was moved is restored ($events)"
		free || not_ok "the guard ends" "the lock is still held"
		pick 2
		[ $_p = 0 ] || sleep 4
		start
		;;
	esac
	events=$((events + 1))
	seen=$((seen + 1))
	pick 20
	sleep $_p
	[ $seen != 10 ] || early=$(anon)
done
[ -z "$program" ] || program_end
[ -z "$sender" ] || send_end
echo "# $events events, $(journals) journals"
grep -e 'mq0: changed' -e 'mq0: moved' -e 'mq0: restored' -e 'mq0: nothing is moved' $log | tail -n 20
memory
same_memory $seen "$early"
check "the service still runs" test -d /proc/$service
status "the host is as applied" 0 ringwise verify
cat /tmp/out
within_limit
check "entries were moved ($sum)" test "$sum" -gt 0
status "stop" 0 ringwise daemon stop
wait $service
returns "after $events events and the end of the service, the layout is the base"
free || not_ok "the guard ends" "the lock is still held"
status "nothing is left" 0 ringwise verify
status "everything is put back" 0 ringwise rollback --yes 0
ethtool -X mq0 default
cost_unload
