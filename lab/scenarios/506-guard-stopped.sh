#!/bin/sh
# An applier that is stopped and never continues: its guard restores the host.
# hosts: small2
# kernels: 6.12
# timeout: 400
. /h/lib.sh
. /h/state.sh
. /h/guard.sh
export RINGWISE_STATE_DIR=/tmp/rw506
S=$RINGWISE_STATE_DIR
devs="eth0 eth1"
apply="ringwise apply --yes --allow-disruption --queues 1 $devs"
links $devs
state $devs >/tmp/before

# The guard takes over after a limit, which is 50 s here.
j=$S/tx-0001.jsonl
$apply >/tmp/out 2>/tmp/err </dev/null &
pid=$!
i=0
while [ "$(cat $j 2>/dev/null | wc -l)" -lt 2 ] && [ -d /proc/$pid ] && [ $i -lt 6000 ]; do
	sleep 0.01
	i=$((i + 1))
done
kill -STOP $pid
check "stopped: the guard puts back" wait_until 240 sh -c "ringwise history | sed -n 2p | grep -q 'failed, restored'"
check "it says why" sh -c "ringwise history $(ls $S/*.jsonl | wc -l) | tr -s ' \n' ' ' | grep -q 'applied it ($pid) has been stopped'"
state $devs >/tmp/after
unchanged "stopped: the host is as before" /tmp/before /tmp/after
status "stopped: it holds the lock" 6 $apply
says "and is named" "$pid"
kill -CONT $pid
wait $pid
same "it learns of that when it goes on" $? 4
as_before "it went on"
clean_up

# shellcheck disable=SC2009 # no pgrep that lists arguments
same "no guard and no copy is left" "$(ls $S | grep guard; ps | grep '[_]_guard')" ""
