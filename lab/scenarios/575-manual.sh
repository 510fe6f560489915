#!/bin/sh
# Manual changes: reported, kept, taken over, adopted.
# hosts: small2
# kernels: 6.12
# timeout: 600
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw58h

devs="eth0 eth1"
links $devs
xps=/sys/class/net/eth0/queues/tx-1/xps_cpus
irq() {
	echo /proc/irq/$(queue_irq eth1 rx-1)/smp_affinity_list
}
journals() {
	ls $RINGWISE_STATE_DIR/tx-*.jsonl | wc -l
}
# The driver's own value is the one that ringwise would write; another value makes sure that ringwise writes it.
echo 3 >$xps
state $devs >/tmp/first
status "apply" 0 ringwise apply --yes --goal forward $devs
state $devs >/tmp/ours
status "as applied" 0 ringwise verify
was_irq=$(cat $(irq))
other=$((1 - was_irq))

# The manual changes.
echo 1 >$xps
echo $other >$(irq)
status "ringwise alone says that somebody is needed" 3 ringwise
says "and how many differ" "2 of"
status "verify" 3 ringwise verify
cat /tmp/out
says "names the queue" "eth0 tx-1 xps_cpus"
says "names the interrupt" "eth1 interrupt CPU rx-1"
says "says when" "changed between"
says "guesses from what it saw" "Likely cause: a manual change or a script"
says "how to keep it" "Keep:     ringwise adopt eth0 eth1"
ringwise verify >/tmp/v1
sleep 2
ringwise verify >/tmp/v2
check "a later look makes the window no wider" cmp /tmp/v1 /tmp/v2
status "plan" 0 ringwise plan --goal forward $devs
cat /tmp/out
says "marks what it would undo" "changed manually between"
says "counts it" "2 of these undo a manual change. Keep it instead: ringwise adopt eth0 eth1"

# Without a terminal: they are kept.
state $devs >/tmp/theirs
h=$(journals)
status "apply --yes keeps it" 0 ringwise apply --yes --goal forward $devs
cat /tmp/out
says "and lists it" "Manual changes and adopted settings that are kept"
state $devs >/tmp/now
unchanged "nothing was written" /tmp/theirs /tmp/now
same "no journal either" "$(journals)" "$h"
# A different request skips them.
status "apply --yes with something else to do" 0 ringwise apply --yes --goal rpc $devs
cat /tmp/out
says "names what it kept" "kept: eth0 tx-1 xps_cpus"
state $devs | grep -v flow_cnt | grep -v ^rfs >/tmp/now
grep -v flow_cnt /tmp/theirs | grep -v ^rfs >/tmp/kept
unchanged "only that was done" /tmp/kept /tmp/now

# Taken over, and changed again.
status "apply --take-over" 0 ringwise apply --yes --take-over --goal forward $devs
state $devs >/tmp/now
unchanged "it is as we had it" /tmp/ours /tmp/now
status "verify after that" 0 ringwise verify
echo 1 >$xps
echo $other >$(irq)
state $devs >/tmp/theirs

# Adopted.
status "adopt -n" 0 ringwise adopt -n eth0 eth1
says "lists it" "eth0 tx-1 xps_cpus"
status "adopt without a terminal and without --yes is refused" 6 ringwise adopt eth0 eth1
status "adopt" 0 ringwise adopt --yes --reason CHG-9 eth0 eth1
cat /tmp/out
says "nothing was written to the host" "nothing was written to the host"
state $devs >/tmp/now
unchanged "the host is as the colleague left it" /tmp/theirs /tmp/now
status "verify after adopt is clean" 0 ringwise verify
status "plan leaves it alone" 0 ringwise plan --goal forward --exit-code $devs
says "and says why" "adopted in transaction"
status "apply leaves it alone" 0 ringwise apply --yes --goal forward $devs
state $devs >/tmp/now
unchanged "still as the colleague left it" /tmp/theirs /tmp/now
id=$(ringwise history | awk '/adopt/ { print $1; exit }')
status "the adopt is rolled back" 0 ringwise rollback --yes $id
state $devs >/tmp/now
unchanged "without a write" /tmp/theirs /tmp/now
status "and it is by hand again" 3 ringwise verify
ringwise adopt --yes --all >/dev/null 2>&1
ringwise history
status "rollback 0" 0 ringwise rollback --yes 0
state $devs >/tmp/now
unchanged "rollback 0 is the very first state" /tmp/first /tmp/now
status "nothing is in force" 0 ringwise verify
rm -rf $RINGWISE_STATE_DIR
