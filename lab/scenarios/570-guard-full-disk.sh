#!/bin/sh
# The guard in bad conditions: a full disk, no place from which it can run, a terminal that blocks, an undo that fails.
# hosts: small2
# kernels: 6.12
# timeout: 900
. /h/lib.sh
. /h/state.sh
. /h/guard.sh
export RINGWISE_STATE_DIR=/tmp/rw58g
S=$RINGWISE_STATE_DIR
devs="eth0 eth1"

apply="ringwise apply --yes --allow-disruption --queues 1 $devs"
links $devs
state $devs >/tmp/before

# 1. The disk is full: apply is refused, or rolled back.
seen=
mkdir -p /tmp/full
for free in 0 8 16 24 40 200; do
	mount -t tmpfs -o size=512k,mode=700 full /tmp/full
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

# In a directory that is writable for all users there is no file that root uses later.
chmod 1777 /tmp/full
status "a state directory that others can write" 6 $apply --state-dir /tmp/full
says "it says why" "every user can write to /tmp/full"
same "and nothing lies there" "$(ls -A /tmp/full)" ""

# 2. No copy can be run from the state directory.
mount -t tmpfs -o size=32m,noexec,mode=700 noexec /tmp/full
status "a noexec state directory" 0 $apply --state-dir /tmp/full --confirm 45s
# apply ends before the guard has written itself into the lock file.
wait_until 20 is_guard
same "its guard runs from /run" "$(readlink "/proc/$(guard_pid)/exe" | sed 's/guard-.*/guard-N/')" /run/ringwise/guard-N
as_before "with a guard from /run"
same "no copy stays there" "$(ls /run/ringwise | grep guard)" ""
mkdir -p /run/ringwise
mount -t tmpfs -o size=32m,noexec,mode=755 noexec /run/ringwise
status "a noexec /run too" 0 $apply --state-dir /tmp/full --confirm 45s
wait_until 20 is_guard
check "its guard runs from memory" sh -c "readlink /proc/$(guard_pid)/exe | grep -q memfd"
as_before "with a guard from memory"
was=$(cat /proc/sys/vm/memfd_noexec)
echo 2 >/proc/sys/vm/memfd_noexec
before=$(ls /tmp/full)
status "and none from memory either" 6 $apply --state-dir /tmp/full
says "it says why" "noexec"
same "no journal is left of it" "$(ls /tmp/full)" "$before"
state $devs >/tmp/after
unchanged "and nothing was touched" /tmp/before /tmp/after
echo $was >/proc/sys/vm/memfd_noexec
umount /run/ringwise
umount /tmp/full

# 3. A terminal behind a cut network accepts no output any more.
S=$RINGWISE_STATE_DIR
mkfifo /tmp/stuck
(
	exec 3<>/tmp/stuck
	# Enough space for the output before the first write, and for a few more lines.
	dd if=/dev/zero bs=4096 count=15 >&3 2>/dev/null
	dd if=/dev/zero bs=3500 count=1 >&3 2>/dev/null
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

# 4. The undo itself fails.
status "a trial of 6 s" 0 ringwise apply --yes --confirm 6s eth1
locked=
for f in $(for n in $(dev_irqs eth1); do echo /proc/irq/$n/smp_affinity_list; done) /sys/class/net/eth1/queues/tx-*/xps_cpus; do
	f=$(readlink -f $f) # busybox looks it up among the mounts by that name
	mount --bind $f $f && mount -o remount,bind,ro $f && locked="$locked $f"
done
check "the guard gives up in the end" wait_until 120 let_go
check "history says how far it came" sh -c "ringwise history | sed -n 2p | grep -q 'NOT fully undone by timer'"
status "status asks for attention" 3 ringwise
status "too late, and not fully put back" 5 ringwise confirm
says "it names what is left" "manually"
same "none of these files can be written" "$(echo $locked | wc -w)" $(($(dev_irqs eth1 | wc -l) + 2))
umount $locked
status "recover does the rest" 0 ringwise recover --yes
as_before "recovered after a failed undo"
