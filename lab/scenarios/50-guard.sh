#!/bin/sh
# The guard without systemd: whatever becomes of the applier and of its session, the host ends as before or as
# confirmed.
# hosts: small2
# kernels: 6.12
# timeout: 1200
. /h/lib.sh
. /h/state.sh
. /h/guard.sh
export RINGWISE_STATE_DIR=/tmp/rw50
S=$RINGWISE_STATE_DIR
devs="eth0 eth1"
apply="ringwise apply --yes --allow-disruption --queues 1 $devs"
links $devs
state $devs >/tmp/before

# 1. Killed, from the first write to the last: the channel change of igb takes seconds.
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
same "no guard and no copy is left" "$(ls $S | grep guard; ps | grep '[_]_guard')" ""

# 2. Nobody confirms.
status "a trial of 3 s" 0 $apply --confirm 3s
says "it says until when" "ON TRIAL until"
says "and how to keep it" "ringwise confirm"
as_before "the trial has ended"
check "history says who did it" sh -c "ringwise history | sed -n 2p | grep -q 'undone by timer'"
status "too late" 4 ringwise confirm
says "it says so" "too late"

# 3. Somebody does.
status "a trial of 40 s" 0 $apply --confirm 40s -j
until=$(sed -n 's/.*"until_boot_ms": \([0-9]*\).*/\1/p' /tmp/out)
state $devs >/tmp/applied
check "it is not as before" sh -c '! cmp -s /tmp/before /tmp/applied'
check "the guard holds the lock" wait_until 20 is_guard
g=$(guard_pid)
same "it is in a session of its own" "$(cut -d' ' -f6 /proc/$g/stat | grep -cx "$(cut -d' ' -f6 /proc/self/stat)")" 0
same "its parent is the first process" "$(sed -n 's/^PPid:\t//p' /proc/$g/status)" 1
same "it runs from a copy" "$(readlink /proc/$g/exe)" "$S/guard-$(printf %04d $(sed -n 's/.*"transaction": \([0-9]*\).*/\1/p' /tmp/out | head -1))"
same "the last to go for want of memory" "$(cat /proc/$g/oom_score_adj)" -1000
status "the first screen wants somebody" 3 ringwise
says "and says what for" "ON TRIAL"
status "a second apply meanwhile" 6 $apply
says "it hears of the trial" "on trial"
says "and of who holds it" "$g"
status "a rollback meanwhile" 6 ringwise rollback --yes 0
status "reading waits for nobody" 3 ringwise verify
status "confirm" 0 ringwise confirm
check "the guard is gone" let_go
status "once more" 0 ringwise confirm
wait_until 120 sh -c "[ \$(awk '{ print int(\$1 * 1000) }' /proc/uptime) -gt $((until + 2000)) ]"
state $devs >/tmp/after
unchanged "it stays after the deadline" /tmp/applied /tmp/after
clean_up
status "nothing is on trial" 6 ringwise confirm

# 4. A health command decides.
status "--health true" 0 $apply --health true
clean_up
status "--health that fails" 4 $apply --health 'echo no way out; exit 7'
says "its status is told" "status 7"
says "and its last words" "no way out"
as_before "vetoed"
check "history says who" sh -c "ringwise history | sed -n 2p | grep -q 'undone by health command'"
status "--health that does not end" 4 $apply --confirm 3s --health 'echo still; sleep 1000'
as_before "a health command that hangs"
check "and is killed" wait_until 20 sh -c '! ps | grep -q "[s]leep 1000"'

# 5. The session goes: its process group by a signal, its control group as a whole.
n=$(ls $S/*.jsonl | wc -l)
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
else
	skip "control groups" "this kernel has none"
fi
clean_up

# 6. The guard is killed: with a transaction under way that is put back, in a trial it is said.
status "a trial" 0 $apply --confirm 600s
check "its guard is at work" wait_until 20 is_guard
kill -9 $(guard_pid)
check "the lock is free" wait_until 20 let_go
status "the first screen wants somebody again" 3 ringwise
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
check "it is kept" sh -c "ringwise history | sed -n 2p | grep -q 'in force'"
clean_up
