#!/bin/sh
# The guard without systemd: a trial that expires, one that is confirmed, and one that a health command decides.
# hosts: small2
# kernels: 6.12
# quick: small2@6.12
# timeout: 600
. /h/lib.sh
. /h/state.sh
. /h/guard.sh
export RINGWISE_STATE_DIR=/tmp/rw502
S=$RINGWISE_STATE_DIR
devs="eth0 eth1"
apply="ringwise apply --yes --allow-disruption --queues 1 $devs"
links $devs
state $devs >/tmp/before

# The trial is not confirmed.
status "a trial of 3 s" 0 $apply --confirm 3s
says "it says until when" "ON TRIAL until"
says "and how to keep it" "ringwise confirm"
as_before "the trial has ended"
check "history says who did it" sh -c "ringwise history | sed -n 2p | grep -q 'undone by timer'"
status "too late" 4 ringwise confirm
says "it says so" "too late"

# The user confirms.
status "a trial that lasts as long as this takes" 0 $apply --confirm 600s -j
state $devs >/tmp/applied
check "it is not as before" sh -c '! cmp -s /tmp/before /tmp/applied'
check "the guard holds the lock" wait_until 20 is_guard
g=$(guard_pid)
same "it is in a session of its own" "$(cut -d' ' -f6 /proc/$g/stat | grep -cx "$(cut -d' ' -f6 /proc/self/stat)")" 0
same "its parent is the first process" "$(sed -n 's/^PPid:\t//p' /proc/$g/status)" 1
same "it runs from a copy" "$(readlink /proc/$g/exe)" "$S/guard-$(printf %04d $(sed -n 's/.*"transaction": \([0-9]*\).*/\1/p' /tmp/out | head -1))"
same "the last to go for want of memory" "$(cat /proc/$g/oom_score_adj)" -1000
status "status asks for attention" 3 ringwise
says "and says what for" "ON TRIAL"
status "a second apply meanwhile" 6 $apply
says "it hears of the trial" "on trial"
says "and of who holds it" "$g"
status "a rollback meanwhile" 6 ringwise rollback --yes 0
status "verify does not wait" 3 ringwise verify
status "confirm" 0 ringwise confirm
check "the guard is gone" let_go
status "once more" 0 ringwise confirm
state $devs >/tmp/after
unchanged "it stays" /tmp/applied /tmp/after
clean_up
# The trial expires.
status "a trial of 12 s" 0 $apply --confirm 12s -j
until=$(sed -n 's/.*"until_boot_ms": \([0-9]*\).*/\1/p' /tmp/out)
status "it is confirmed" 0 ringwise confirm
state $devs >/tmp/applied
check "it is not as before either" sh -c '! cmp -s /tmp/before /tmp/applied'
wait_until 120 sh -c "[ \$(awk '{ print int(\$1 * 1000) }' /proc/uptime) -gt $((until + 2000)) ]"
state $devs >/tmp/after
unchanged "it stays after the deadline" /tmp/applied /tmp/after
clean_up
status "nothing is on trial" 6 ringwise confirm

# A health command decides.
status "--health true" 0 $apply --health true
clean_up
status "--health that fails" 4 $apply --health 'echo no way out; exit 7'
says "its exit status is reported" "status 7"
says "and its last words" "no way out"
as_before "vetoed"
check "history says who" sh -c "ringwise history | sed -n 2p | grep -q 'undone by health command'"
status "--health that does not end" 4 $apply --confirm 3s --health 'echo still; sleep 1000'
as_before "a health command that hangs"
check "and is killed" wait_until 20 sh -c '! ps | grep -q "[s]leep 1000"'
