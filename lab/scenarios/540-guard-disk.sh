#!/bin/sh
# No space for the journal, and no program any more: the guard rolls back all the same.
# hosts: remote
# kernels: 6.12
# timeout: 1200
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

devs="eth2"
far_up
state $devs >/tmp/before
small=/mnt/small
mkdir -p $small
back() {
	check "$1: the guard ends by itself" wait_for 180 guard_gone $2
	state $devs >/tmp/after
	unchanged "$1: as before" /tmp/before /tmp/after
}
fill() {
	dd if=/dev/zero of=$J/full bs=4k 2>/dev/null
	! (echo more >$J/more) 2>/dev/null
}
change="--yes --allow-disruption --queues 2 eth2"

# A state directory of its own, too small for a copy of the program.
J=$small
export RINGWISE_STATE_DIR=$J
mount -t tmpfs -o size=256k,mode=700 small $J
check "the disk is full" fill
status "no room for a journal: refused" 6 ringwise apply $change --confirm 10s
cat /tmp/err
state $devs >/tmp/after
unchanged "and nothing was touched" /tmp/before /tmp/after
rm -f $J/full $J/more

status "no room for the guard's copy: it runs from /run" 0 ringwise apply $change --confirm 15s
check "on trial" on_trial
check "no copy in the directory" sh -c "! ls $J/guard-* 2>/dev/null"
check "one in /run" sh -c "ls /run/ringwise/guard-*"
check "the disk is full while it is on trial" fill
ls -l $J
back "full on trial" 1
rm -f $J/full $J/more
ls -l $J
# The host was rolled back, but this could not be recorded, so the user has to be informed.
status "the end that is not in the journal is asked for" 3 ringwise
says "with the command" "ringwise recover"
status "recover with room again" 0 ringwise recover --yes
cat /tmp/out /tmp/err
status "then nothing is left to do" 0 ringwise

id=$(($(last_id) + 1))
mount -t tmpfs -o size=1m,noexec,mode=755 noexec /run/ringwise
status "no room and a noexec /run: it runs from memory" 0 ringwise apply $change --confirm 15s
says "and says that it cannot be restarted" "cannot be restarted"
same "nor is it" "$(systemctl show -P Restart ringwise-trial-$id.service)" no
back "from memory" $id
umount /run/ringwise

id=$(($(last_id) + 1))
ringwise apply $change --confirm 15s >/tmp/out 2>/tmp/err </dev/null &
pid=$!
while kill -0 $pid 2>/dev/null && ! [ -e $J/tx-$(printf %04d $id).jsonl ]; do :; done
check "the disk is full while it is applied" fill
wait $pid
rc=$?
cat /tmp/out /tmp/err
check "put back, or on trial and then put back (status $rc)" test $rc = 4 -o $rc = 0
back "full at work" $id
rm -f $J/full $J/more
status "recover" 0 ringwise recover --yes
cat /tmp/out /tmp/err
state $devs >/tmp/after
unchanged "still as before" /tmp/before /tmp/after
umount $J

# ------------------------------------------------------------------ an upgrade during a trial
J=/var/lib/ringwise
unset RINGWISE_STATE_DIR
cp /h/ringwise /usr/local/bin/ringwise
program=/usr/local/bin/ringwise
for how in removed replaced; do
	id=$(($(last_id) + 1))
	status "apply on trial" 0 $program apply $change --confirm 15s
	check "on trial" on_trial
	same "its guard is the installed program" "$(readlink /proc/$(systemctl show -P MainPID ringwise-trial-$id.service)/exe)" $program
	rm -f $program
	[ $how = replaced ] && printf '#!/bin/sh\nexit 1\n' >$program && chmod 755 $program
	back "the program is $how" $id
	cp /h/ringwise $program
done
rm -f $program
check "no copy of it stays" sh -c "! ls $J/guard-* 2>/dev/null"

# The guard itself is killed: systemd starts it again, and it continues from the state on disk.
id=$(($(last_id) + 1))
status "apply on trial" 0 ringwise apply $change --confirm 20s
first=$(systemctl show -P MainPID ringwise-trial-$id.service)
kill -9 $first
again() {
	_pid=$(systemctl show -P MainPID ringwise-trial-$id.service)
	[ "$_pid" != 0 ] && [ "$_pid" != $first ]
}
check "a killed guard is started again" wait_for 60 again
back "the guard was killed" $id
