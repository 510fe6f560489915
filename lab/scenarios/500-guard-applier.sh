#!/bin/sh
# The guard without systemd: if the applier is killed, from the first write to the last, the host is as before at the end.
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

# The applier is killed from the first write to the last. The channel change of igb takes seconds.
for point in step:1 done:1 step:2 done:2 "-b end:1"; do
	# shellcheck disable=SC2086 # an option and the point
	status "killed at $point" 137 killat $point tx- $apply
	check "killed at $point: the guard ends" wait_until 120 let_go
	check "killed at $point: it puts back" sh -c "ringwise history | sed -n 2p | grep -q 'failed, restored'"
	as_before "killed at $point"
	same "killed at $point: nothing is left to do" "$(ringwise recover --yes)" "Nothing to do. Nothing was written.
note: no transaction of this boot was cut short or is on trial"
	clean_up
done

# shellcheck disable=SC2009 # no pgrep that lists arguments
same "no guard and no copy is left" "$(ls $S | grep guard; ps | grep '[_]_guard')" ""
