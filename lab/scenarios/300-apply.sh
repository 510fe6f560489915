#!/bin/sh
# Plan, apply, verify, apply again, roll back: on every NIC of the host at once.
# hosts: all small2-arm64
# kernels: all
# quick: small2@6.12 router16@newest
# timeout: 500
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw30

devs=$(awk '{ print $2 }' /h/nics)
links $devs
state $devs >/tmp/before
status "plan" 0 ringwise plan
cat /tmp/out
state $devs >/tmp/after
unchanged "a plan changes nothing" /tmp/before /tmp/after

status "apply without a terminal and without --yes is refused" 6 ringwise apply
state $devs >/tmp/after
unchanged "and changes nothing" /tmp/before /tmp/after

# The kernel manages the interrupts of one test NIC: these steps are refused, and the rest is planned again without them.
if [ -n "$MQNIC_MANAGED" ] && [ "$MQNIC_MANAGED" != -1 ] && [ -e "/sys/class/net/mq$MQNIC_MANAGED" ]; then
	status "apply, without what was refused" 3 ringwise apply --yes
	cat /tmp/err
	says "what the kernel manages itself is refused, with its errno" "cannot be moved"
else
	status "apply" 0 ringwise apply --yes
	cat /tmp/err
fi
status "plan --exit-code has nothing to do" 0 ringwise plan --exit-code

for goal in balanced rpc forward stream latency; do
	status "apply --goal $goal" 0 ringwise apply --yes --goal $goal
	cat /tmp/err
	status "verify after $goal" 0 ringwise verify
	status "plan --exit-code after $goal has nothing to do" 0 ringwise plan --goal $goal --exit-code
	h=$(ls /tmp/rw30/*.jsonl 2>/dev/null | wc -l)
	status "a second apply --goal $goal" 0 ringwise apply --yes --goal $goal
	same "the second apply wrote no journal" "$(ls /tmp/rw30/*.jsonl 2>/dev/null | wc -l)" "$h"
done
# The comparison at the end proves nothing if `state` does not show the changes.
state $devs >/tmp/applied
for kind in '^irq ' 'xps_cpus='; do
	grep "$kind" /tmp/before >/tmp/kind.before
	grep "$kind" /tmp/applied >/tmp/kind.applied
	check "the dump has seen that it changed: $kind" sh -c '! cmp -s /tmp/kind.before /tmp/kind.applied'
done
check "and has a value for every setting of a queue" sh -c "! grep -E '^irq .*=\$|(rps_cpus|rps_flow_cnt)=\$' /tmp/applied"
ringwise history
status "rollback 0" 0 ringwise rollback --yes 0
cat /tmp/err
state $devs >/tmp/after
unchanged "rollback 0 is the host as first found" /tmp/before /tmp/after
