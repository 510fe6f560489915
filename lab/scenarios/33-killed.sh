#!/bin/sh
# SIGKILL at many moments of an apply; the next run finds the journal and recover puts the start back.
# hosts: router16
# kernels: 5.10 6.12 newest
# timeout: 600
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw33

devs="eth0 eth1 eth2"
links $devs
state $devs >/tmp/before
cut=0
for wait in 0 0.02 0.05 0.1 0.15 0.2 0.3 0.5; do
	n=$(ls $RINGWISE_STATE_DIR/*.jsonl 2>/dev/null | wc -l)
	ringwise apply --yes $devs >/tmp/out 2>/tmp/err </dev/null &
	pid=$!
	# The journal comes before the first write: from then on.
	i=0
	while [ "$(ls $RINGWISE_STATE_DIR/*.jsonl 2>/dev/null | wc -l)" = $n ] && [ $i -lt 2000 ]; do
		sleep 0.01
		i=$((i + 1))
	done
	sleep $wait
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	state $devs >/tmp/half
	cmp -s /tmp/before /tmp/half || cut=$((cut + 1))
	ringwise recover --yes >/tmp/out 2>/tmp/err
	rc=$?
	# Complete before the kill came: nothing to recover, but something to undo.
	ringwise rollback --yes 0 >>/tmp/out 2>>/tmp/err
	state $devs >/tmp/after
	unchanged "killed $wait s after the journal appeared, put back (recover: status $rc)" /tmp/before /tmp/after
done
if [ $cut -gt 0 ]; then
	ok "some of the kills came after a write ($cut of 8)"
else
	not_ok "some of the kills came after a write" "all came before the first one"
fi
