#!/bin/sh
# The session ends with all its processes, sshd stops, the link fails: the guard stays, and rolls back.
# hosts: remote
# kernels: 6.12
# quick: remote@6.12
# timeout: 1200
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

devs="eth0 eth1 eth2"
check "a bond to work over" bond_up
state $devs >/tmp/before

# back NAME ID: the guard ends by itself, and everything is as before
back() {
	check "$1: the guard ends by itself" wait_for 180 guard_gone $2
	state $devs >/tmp/after
	unchanged "$1: as before" /tmp/before /tmp/after
}
# tuned NAME: eth2 has two queues, and is on trial
tuned() {
	same "$1: eth2 is tuned" "$(ls -d /sys/class/net/eth2/queues/rx-* | wc -l)" 2
	check "$1: on trial" on_trial
}
apply="ringwise apply --yes --allow-disruption --queues 2 eth2"

check "a session" session_open work
id=$(($(last_id) + 1))
session_send work "$apply >/tmp/apply 2>&1"
check "the applier is at work" wait_for 120 test -e $J/tx-$(printf %04d $id).jsonl
scope_pids work | tr '\n' ' '
session_kill work
check "its whole scope is killed" wait_for 60 sh -c '! pgrep -x ringwise'
back "scope killed at work" $id
session_close work

check "a session" session_open work
id=$(($(last_id) + 1))
check "apply on trial" session_run work "$apply --confirm 15s"
tuned "scope killed on trial"
check "the guard is a unit outside of the session" systemctl -q is-active ringwise-trial-$id.service
session_kill work
check "the session is gone" wait_for 60 sh -c "! systemctl -q is-active $(session_scope work)"
back "scope killed on trial" $id
check "who undid it is in the journal" grep -q '"trial_over","by":"timer"' $(journal $id)
session_close work

check "a session" session_open work
id=$(($(last_id) + 1))
check "apply on trial" session_run work "$apply --confirm 300s"
session_kill work
session_close work
check "another session" session_open other
check "confirms" session_run other "ringwise confirm"
check "the guard leaves" wait_for 60 guard_gone $id
state $devs >/tmp/after
check "it is kept" sh -c '! cmp -s /tmp/before /tmp/after'
status "a second confirm says that it was" 0 ringwise confirm
status "put back by hand" 0 ringwise rollback $id --yes
state $devs >/tmp/after
unchanged "as before" /tmp/before /tmp/after

id=$(($(last_id) + 1))
check "apply on trial" session_run other "$apply --confirm 15s"
tuned "sshd gone"
sshd_stop
check "nobody can log in" sh -c '! ip netns exec far ssh -o ConnectTimeout=5 root@10.100.0.1 true'
back "sshd gone" $id
sshd_start
session_close other

# eth2 is now the only control path. Its channels change, and then its link partner stays down.
check "a session over eth2 alone" session_open plain 10.2.0.1
if session_run plain "$apply" >/tmp/out; then _rc=0; else _rc=$?; fi
same "without --force it is refused" $_rc 6
same "with --force and without --confirm as well" "$(session_run plain "$apply --force >/dev/null 2>&1; echo \$?" | tail -n 1)" 6
state $devs >/tmp/after
unchanged "and nothing was touched" /tmp/before /tmp/after
id=$(($(last_id) + 1))
check "with both it is done" session_run plain "$apply --force --confirm 15s"
far ip link set far2 down
tuned "line cut"
check "nobody is there to confirm" sh -c '! ip netns exec far ssh -o ConnectTimeout=5 root@10.2.0.1 true'
check "line cut: the guard ends by itself" wait_for 180 guard_gone $id
far ip link set far2 up
wait_link eth2
state $devs >/tmp/after
unchanged "line cut: as before" /tmp/before /tmp/after
check "and the way in is open" session_open again 10.2.0.1
session_close plain
session_close again
status "nothing is left to do" 0 ringwise
