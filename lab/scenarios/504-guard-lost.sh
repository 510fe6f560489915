#!/bin/sh
# The guard without systemd outlives the session in which it was started. If the guard itself is killed, recover and confirm
# still work.
# hosts: small2
# kernels: 6.12
# timeout: 600
. /h/lib.sh
. /h/state.sh
. /h/guard.sh
export RINGWISE_STATE_DIR=/tmp/rw504
S=$RINGWISE_STATE_DIR
devs="eth0 eth1"
apply="ringwise apply --yes --allow-disruption --queues 1 $devs"
links $devs
state $devs >/tmp/before

# The session ends: its process group by a signal, its control group as a whole.
n=$(ls $S/*.jsonl 2>/dev/null | wc -l)
setsid sh -c "exec $apply" >/tmp/out 2>/tmp/err </dev/null &
check "a transaction has begun" wait_until 60 sh -c "[ \$(cat $S/tx-00*$((n + 1)).jsonl | wc -l) -ge 2 ]"
kill -HUP -$! 2>/dev/null
wait $!
same "SIGHUP in the middle ends in putting back" $? 4
as_before "hung up"
status "a trial for the next one" 0 setsid $apply --confirm 600s
check "its guard" wait_until 20 is_guard
for sig in HUP INT TERM; do
	kill -$sig $(guard_pid)
done
check "signals of a session do not end the guard" is_guard
if mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; then
	ringwise confirm >/dev/null
	clean_up
	mkdir /sys/fs/cgroup/session
	status "a trial from within a control group" 0 sh -c "echo 0 >/sys/fs/cgroup/session/cgroup.procs; $apply --confirm 4s"
	check "its guard is there" wait_until 20 is_guard
	same "the guard is in one of its own" "$(sed -n 's/^0:://p' /proc/$(guard_pid)/cgroup | sed 's/[0-9]*$//')" "/ringwise-trial-"
	echo 1 >/sys/fs/cgroup/session/cgroup.kill
	as_before "its group is killed"
	rmdir /sys/fs/cgroup/session
	same "and leaves no group behind" "$(ls -d /sys/fs/cgroup/ringwise* 2>/dev/null)" ""
	umount /sys/fs/cgroup
else
	skip "control groups" "this kernel has none"
fi
clean_up

# The guard is killed. A running transaction is rolled back; during a trial this is reported.
status "a trial" 0 $apply --confirm 600s
check "its guard is at work" wait_until 20 is_guard
kill -9 $(guard_pid)
check "the lock is free" wait_until 20 let_go
status "status asks for attention again" 3 ringwise
says "because the guard is gone" "its guard is gone"
status "nothing else may start" 6 $apply
says "it names both ways out" "ringwise recover"
status "recover" 0 ringwise recover --yes
as_before "recovered"
status "a trial once more" 0 $apply --confirm 600s
wait_until 20 is_guard
kill -9 $(guard_pid)
wait_until 20 let_go
status "confirm without a guard" 0 ringwise confirm
check "it is kept" sh -c "ringwise history | sed -n 2p | grep -q 'in effect'"
clean_up

# The trial expires without a guard.
status "a trial of 15 s" 0 $apply --confirm 15s
wait_until 20 is_guard && kill -9 $(guard_pid)
wait_until 20 let_go
check "it is overdue" wait_until 60 sh -c "ringwise | grep -q OVERDUE"
status "confirm is refused" 6 ringwise confirm
says "it names the way out" "ringwise recover"
status "recover puts it back" 0 ringwise recover --yes
as_before "overdue"

# The guard is stopped.
status "a trial" 0 $apply --confirm 600s
check "its guard" wait_until 20 is_guard
g=$(guard_pid)
kill -STOP $g
status "confirm with a guard that does not answer" 3 ringwise confirm
says "it is kept" "is kept, but its guard (process $g) does not answer"
kill -CONT $g
check "the guard goes" wait_until 60 let_go
status "then all is well" 0 ringwise confirm
clean_up
