#!/bin/sh
# 8 -> 4 channels on igb and back, with user's values for everything that the change destroys.
# hosts: router16
# kernels: all
# quick: router16@6.12
# timeout: 400
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw32

dev=eth0
links $dev
ethtool -X $dev weight 5 1 1 1 0 0 0 0
for q in 0 1 2 3 4 5 6 7; do
	echo $(((q + 3) % 16)) >/proc/irq/$(queue_irq $dev TxRx-$q)/smp_affinity_list
	printf '%x\n' $((1 << q)) >/sys/class/net/$dev/queues/tx-$q/xps_cpus
	printf '%x\n' $((2 << q)) >/sys/class/net/$dev/queues/rx-$q/rps_cpus
	echo 256 >/sys/class/net/$dev/queues/rx-$q/rps_flow_cnt
done
state $dev >/tmp/before

usecs() {
	ethtool -c $dev | awk '/^(rx|tx)-usecs:/ { printf "%s%s", c, $2; c = " " }'
}
reads=$(usecs | cut -d' ' -f1)

status "plan with fewer queues leaves the change out" 0 ringwise plan $dev --queues 4
says "it is named with the flag that allows it" --allow-disruption
status "apply 8 -> 4" 0 ringwise apply --yes $dev --queues 4 --allow-disruption
cat /tmp/err
same "four channels" "$(ethtool -l $dev | awk '/Combined/ { n = $2 } END { print n }')" 4
# A driver with one interrupt for both directions reports 0, and this value must not be requested now.
same "transmission is moderated as the driver does" "$(usecs)" "$reads $reads"
status "verify" 0 ringwise verify
status "nothing to do a second time" 0 ringwise plan $dev --queues 4 --allow-disruption --exit-code
status "rollback" 0 ringwise rollback --yes 1
cat /tmp/err
links $dev
state $dev >/tmp/after
unchanged "queues, table, affinity, XPS and RPS set by hand are back" /tmp/before /tmp/after

# An `ethtool -L` outside ringwise wipes the affinity.
status "apply" 0 ringwise apply --yes $dev
ethtool -L $dev combined 4
ethtool -L $dev combined 8
links $dev
status "verify reports what ethtool -L wiped" 3 ringwise verify
cat /tmp/out
status "a second apply mends it" 0 ringwise apply --yes $dev
status "verify is content" 0 ringwise verify
status "rollback 0" 0 ringwise rollback --yes 0
links $dev
state $dev >/tmp/after
unchanged "as first found" /tmp/before /tmp/after

# As the driver has left it, for the following scenarios.
for f in "/sys/class/net/$dev"/queues/*/xps_cpus "/sys/class/net/$dev"/queues/*/rps_cpus "/sys/class/net/$dev"/queues/*/rps_flow_cnt; do
	echo 0 >$f
done
ethtool -X $dev default
ethtool -C $dev rx-usecs 20
same "igb: pairs tell no tx-usecs" "$(usecs)" "20 0"
ethtool -L $dev combined 4
links $dev
same "igb: tx-usecs begin with rx-usecs" "$(usecs)" "20 20"

# From one interrupt for each direction to one for both, which has no tx-usecs and refuses any value.
export RINGWISE_STATE_DIR=/tmp/rw32.pairs
ethtool -C $dev rx-usecs 20 tx-usecs 122
same "igb: a time for each direction" "$(usecs)" "20 122"
ethtool -L $dev combined 3
ethtool -L $dev combined 4
links $dev
same "igb: other channels without pairs keep it" "$(usecs)" "20 122"
status "apply 4 -> 8" 0 ringwise apply --yes $dev --queues 8 --allow-disruption
cat /tmp/err
same "eight channels" "$(ethtool -l $dev | awk '/Combined/ { n = $2 } END { print n }')" 8
same "igb: rx-usecs as before" "$(usecs | cut -d' ' -f1)" 20
status "verify" 0 ringwise verify
status "rollback" 0 ringwise rollback --yes 1
cat /tmp/err
same "igb: both as before" "$(usecs)" "20 122"
ethtool -C $dev rx-usecs $reads tx-usecs $reads
ethtool -L $dev combined 8
links $dev
