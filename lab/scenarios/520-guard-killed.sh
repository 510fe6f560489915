#!/bin/sh
# The applier, run in a session of sshd, is killed at many steps: its guard puts everything back at once.
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

cut=0
for lines in 1 2 3 6 9 14; do
	id=$(($(last_id) + 1))
	journal=$J/tx-$(printf %04d $id).jsonl
	rm -f /tmp/pid
	session_send work "sh -c 'echo \$\$ >/tmp/pid; exec ringwise apply --yes --confirm 10s --allow-disruption --queues 2 eth2' >/tmp/apply 2>&1"
	check "killed at line $lines: it begins" wait_for 120 test -e $journal
	# As the line comes, the kill goes out.
	tail -n +1 -f $journal | {
		n=0
		while read -r _; do
			n=$((n + 1))
			[ $n -ge $lines ] && break
		done
		kill -9 $(cat /tmp/pid)
	}
	check "its guard ends by itself" wait_for 120 guard_gone $id
	sed -n 's/^{"record":"\([a-z_]*\)".*/\1/p' $journal | tr '\n' ' '
	echo
	grep -q '^{"record":"put_back","why":"the process that applied it' $journal && cut=$((cut + 1)) && died=$id
	state $devs >/tmp/after
	unchanged "killed at line $lines: as before" /tmp/before /tmp/after
done
status "nothing is left to do" 0 ringwise
cat /tmp/out
status "the history says why" 0 ringwise history $died
says "with who died" "the process that applied it"
cat /tmp/out
check "most were killed at work ($cut of 6)" test $cut -ge 3
check "the session lives" session_alive work
session_close work
