#!/bin/sh
# The guard without systemd: whatever becomes of the applier, of its session and of the disk, the host ends as before
# or as confirmed.
# hosts: small2
# kernels: 6.12
# timeout: 900
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw50
S=$RINGWISE_STATE_DIR
devs="eth0 eth1"

# wait_until SECONDS COMMAND...: succeeds as soon as the command does
wait_until() {
	_end=$(($(cut -d. -f1 /proc/uptime) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $(cut -d. -f1 /proc/uptime) -lt $_end ] || return 1
		sleep 0.1
	done
}

# let_go: nobody holds the lock
let_go() {
	! grep -q " FLOCK .*:$(stat -c %i $S/lock) " /proc/locks
}

# guard_pid: from the second line of the lock file
guard_pid() {
	sed -n '2s/.*"pid":\([0-9]*\).*/\1/p' $S/lock
}

# is_guard: what the lock file names is a guard by now
is_guard() {
	_g=$(guard_pid)
	[ -n "$_g" ] && tr '\0' ' ' </proc/$_g/cmdline | grep -q __guard
}

# ending: the state column of the last transaction
ending() {
	ringwise history | sed -n 2p
}

as_before() {
	check "$1: the guard lets go" wait_until 120 let_go
	state $devs >/tmp/after
	unchanged "$1: the host is as before" /tmp/before /tmp/after
}

# clean_up: for what comes next
clean_up() {
	wait_until 120 let_go
	ringwise recover --yes >/dev/null 2>&1
	ringwise rollback --yes 0 >/dev/null 2>&1
	links $devs >/dev/null
}

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
	wait_until 120 let_go
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

# 7. The disk is full: refused, or put back.
seen=
mkdir -p /tmp/full
for free in 0 8 16 24 40 200; do
	mount -t tmpfs -o size=512k full /tmp/full
	fill=$((512 - free - 4))
	dd if=/dev/zero of=/tmp/full/fill bs=1k count=$fill 2>/dev/null
	S=/tmp/full
	$apply --state-dir $S --confirm 3s >/tmp/out 2>/tmp/err </dev/null
	rc=$?
	seen="$seen$rc "
	if [ $rc = 0 ]; then
		check "with $free KiB free it is on trial" wait_until 20 is_guard
	fi
	as_before "with $free KiB free (status $rc)"
	check "it can be unmounted" wait_until 20 umount /tmp/full
done
check "a full disk refuses or puts back (statuses: $seen)" sh -c "echo '$seen' | grep -q 6 && ! echo '$seen' | grep -q '[1235]'"

# 8. No copy can be run from the state directory.
mount -t tmpfs -o size=32m,noexec noexec /tmp/full
status "a noexec state directory" 0 $apply --state-dir /tmp/full --confirm 3s
as_before "with a guard from memory"
was=$(cat /proc/sys/vm/memfd_noexec)
echo 2 >/proc/sys/vm/memfd_noexec
status "and none from memory either" 6 $apply --state-dir /tmp/full
says "it says why" "noexec"
same "no journal is left of it" "$(ls /tmp/full | grep -c 'tx-0002')" 0
state $devs >/tmp/after
unchanged "and nothing was touched" /tmp/before /tmp/after
echo $was >/proc/sys/vm/memfd_noexec
umount /tmp/full

# 9. A terminal behind a cut network takes nothing any more.
S=$RINGWISE_STATE_DIR
mkfifo /tmp/stuck
(
	exec 3<>/tmp/stuck
	dd if=/dev/zero bs=4096 count=16 >&3 2>/dev/null
	$apply >/tmp/out 2>&3 </dev/null
	echo $? >/tmp/stuck.rc
) &
stuck=$!
check "nobody reads what it says, and it ends" wait_until 240 test -s /tmp/stuck.rc
kill $stuck 2>/dev/null
same "as if nothing were" "$(cat /tmp/stuck.rc)" 0
rm /tmp/stuck
clean_up
state $devs >/tmp/after
unchanged "as before" /tmp/before /tmp/after

# 10. The undo itself fails.
status "a trial of 6 s" 0 ringwise apply --yes --confirm 6s eth1
locked=
for f in $(for n in $(dev_irqs eth1); do echo /proc/irq/$n/smp_affinity_list; done) /sys/class/net/eth1/queues/tx-*/xps_cpus; do
	mount --bind $f $f && mount -o remount,bind,ro $f && locked="$locked $f"
done
check "the guard gives up in the end" wait_until 120 let_go
check "history says how far it came" sh -c "ringwise history | sed -n 2p | grep -q 'NOT fully undone by timer'"
status "the first screen wants somebody" 3 ringwise
status "too late, and not fully put back" 5 ringwise confirm
says "it names what is left" "by hand"
umount $locked
status "recover does the rest" 0 ringwise recover --yes
as_before "recovered after a failed undo"
