#!/bin/sh
# The guard without systemd: when the applier is killed, from the first write to the last, the host ends as before.
# hosts: small2
# kernels: 6.12
# quick: small2@6.12
# timeout: 600
. /h/lib.sh
. /h/state.sh
. /h/guard.sh
export RINGWISE_STATE_DIR=/tmp/rw500
S=$RINGWISE_STATE_DIR
devs="eth0 eth1"
apply="ringwise apply --yes --allow-disruption --queues 1 $devs"
links $devs
state $devs >/tmp/before

# Killed, from the first write to the last: the channel change of igb takes seconds.
cut=0
for lines in 1 2 3 4 6 9; do
	n=$(ls $S/*.jsonl 2>/dev/null | wc -l)
	j=$S/tx-000$((n + 1)).jsonl
	$apply >/tmp/out 2>/tmp/err </dev/null &
	pid=$!
	i=0
	while [ "$(cat $j 2>/dev/null | wc -l)" -lt $lines ] && [ -d /proc/$pid ] && [ $i -lt 6000 ]; do
		sleep 0.01
		i=$((i + 1))
	done
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	check "killed after $lines lines: the guard ends" wait_until 120 let_go
	case "$(ending)" in
	*"failed, put back"*)
		cut=$((cut + 1))
		as_before "killed after $lines lines of the journal"
		same "killed after $lines lines: nothing is left to do" "$(ringwise recover --yes)" "Nothing to do. Nothing was written.
note: no transaction of this boot was cut short or is on trial"
		;;
	esac
	clean_up
done
check "some of the kills came in the middle ($cut of 6)" [ $cut -ge 3 ]

# shellcheck disable=SC2009 # no pgrep that lists arguments
same "no guard and no copy is left" "$(ls $S | grep guard; ps | grep '[_]_guard')" ""
