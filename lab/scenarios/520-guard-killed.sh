#!/bin/sh
# The applier, run in a session of sshd, is killed at many steps: its guard restores everything at once.
# hosts: remote
# kernels: 6.12
# timeout: 1200
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

devs="eth0 eth1 eth2"
check "a bond to work over" bond_up
state $devs >/tmp/before
check "a session" session_open work

for point in step:1 done:1 step:2 done:2 step:3; do
	id=$(($(last_id) + 1))
	journal=$J/tx-$(printf %04d $id).jsonl
	rm -f /tmp/killed
	apply="ringwise apply --yes --confirm 10s --allow-disruption --queues 2 eth2"
	session_send work "killat $point tx- $apply >/tmp/apply 2>&1; echo \$? >/tmp/killed"
	check "killed at $point: it ends" wait_for 120 test -s /tmp/killed
	same "killed at $point" "$(cat /tmp/killed)" 137
	check "its guard ends by itself" wait_for 120 guard_gone $id
	sed -n 's/^{"record":"\([a-z_]*\)".*/\1/p' $journal | tr '\n' ' '
	echo
	check "killed at $point: it puts back" grep -q '^{"record":"put_back","why":"the process that applied it' $journal
	state $devs >/tmp/after
	unchanged "killed at $point: as before" /tmp/before /tmp/after
done
status "nothing is left to do" 0 ringwise
cat /tmp/out
status "the history says why" 0 ringwise history $id
says "with who died" "the process that applied it"
cat /tmp/out
check "the session lives" session_alive work
session_close work
