#!/bin/sh
# SIGKILL at many moments of an apply: its guard puts the start back, and leaves nothing for recover to do.
# hosts: router16
# kernels: 5.10 newest
# timeout: 900
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
	# The guard holds the lock until all is as before.
	i=0
	while grep -q " FLOCK .*:$(stat -c %i $RINGWISE_STATE_DIR/lock) " /proc/locks && [ $i -lt 1200 ]; do
		sleep 0.1
		i=$((i + 1))
	done
	last=$(ringwise history | sed -n 2p)
	case $last in
	*"failed, put back"*) cut=$((cut + 1)) ;;
	# Killed while the header was being written: nothing was done.
	*"torn before its first step"*) ;;
	# Complete before the kill came: nothing to put back, but something to undo.
	*"in force"*) ringwise rollback --yes 0 >/tmp/out 2>/tmp/err ;;
	*) not_ok "killed $wait s after the journal appeared" "history says: $last" ;;
	esac
	state $devs >/tmp/after
	unchanged "killed $wait s after the journal appeared, as before" /tmp/before /tmp/after
	status "and nothing is left to recover ($wait s)" 0 ringwise recover --yes
	says "nothing at all ($wait s)" "Nothing to do"
done
if [ $cut -gt 0 ]; then
	ok "some of the kills came in the middle ($cut of 8)"
else
	not_ok "some of the kills came in the middle" "none did"
fi
