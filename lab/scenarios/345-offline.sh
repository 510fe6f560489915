#!/bin/sh
# A rollback while a CPU of the earlier values is offline: the rest is restored, and recover restores this value later.
# hosts: router16
# kernels: 6.12
# timeout: 300
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw345

links eth1
cpu=/sys/devices/system/cpu/cpu5
queues=/sys/class/net/eth1/queues
n=$(queue_irq eth1 TxRx-3)
echo 5 >/proc/irq/$n/smp_affinity_list
echo 20 >$queues/tx-2/xps_cpus
echo 60 >$queues/rx-2/rps_cpus
state eth1 >/tmp/before

for id in 0 1; do
	status "apply without CPU 5" 0 ringwise apply --yes --goal forward --exclude-cpus 5 eth1
	id=$((id * $(ls $RINGWISE_STATE_DIR/tx-*.jsonl | wc -l)))
	echo 0 >$cpu/online
	status "rollback $id while it is offline" 3 ringwise rollback --yes $id
	says "it names the setting" "rx-3"
	says "and why" "CPU 5 is offline"
	says "and what to do later" "ringwise recover"
	cat /tmp/out
	status "there is nothing to do as long as it is offline" 0 ringwise
	says "but it is named" "when CPU 5 is online again"
	status "recover has nothing to do either" 3 ringwise recover --yes
	echo 1 >$cpu/online
	status "once it is online somebody is needed" 3 ringwise
	says "for recover" "ringwise recover"
	status "recover" 0 ringwise recover --yes
	state eth1 >/tmp/after
	unchanged "all is as before" /tmp/before /tmp/after
	status "nothing is left" 0 ringwise
done
