#!/bin/sh
# SIGKILL at given points of an apply: its guard restores the start, and leaves nothing for recover to do.
# hosts: router16
# kernels: 5.10 newest
# timeout: 900
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw33

devs="eth0 eth1 eth2"
links $devs
state $devs >/tmp/before
for point in "-b begin:1" begin:1 step:1 done:1 step:2 done:7 step:20 "-b end:1" end:1; do
	# shellcheck disable=SC2086 # an option and the point
	status "killed at $point" 137 killat $point tx- ringwise apply --yes $devs
	# The guard holds the lock until everything is restored.
	i=0
	while grep -q " FLOCK .*:$(stat -c %i $RINGWISE_STATE_DIR/lock) " /proc/locks && [ $i -lt 1200 ]; do
		sleep 0.1
		i=$((i + 1))
	done
	last=$(ringwise history | sed -n 2p)
	case $point:$last in
	*"failed, restored"*) ;;
	# Before the header was complete: nothing was changed.
	*begin:1:*"breaks off before its first step"*) ;;
	# Its end is recorded: nothing to restore, but a rollback is possible.
	end:1:*"in effect"*) ringwise rollback --yes 0 >/tmp/out 2>/tmp/err ;;
	*) not_ok "killed at $point: put back" "history says: $last" ;;
	esac
	state $devs >/tmp/after
	unchanged "killed at $point: as before" /tmp/before /tmp/after
	status "and nothing is left to recover ($point)" 0 ringwise recover --yes
	says "nothing at all ($point)" "Nothing to do"
done
