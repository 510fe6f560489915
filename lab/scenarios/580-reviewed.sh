#!/bin/sh
# A reviewed plan is applied exactly or not at all; a journal of a later version stops every run.
# hosts: small2
# kernels: 6.12
# timeout: 600
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw59

devs="eth0 eth1"
links $devs
xps=/sys/class/net/eth0/queues/tx-1/xps_cpus
irq() {
	echo /proc/irq/$(queue_irq eth1 rx-1)/smp_affinity_list
}
journals() {
	ls $RINGWISE_STATE_DIR/tx-*.jsonl 2>/dev/null | wc -l
}
echo 3 >$xps
other=0
state $devs >/tmp/first
status "plan --out" 0 ringwise plan --goal forward $devs --out /tmp/edge.plan
state $devs >/tmp/now
unchanged "it changes nothing" /tmp/first /tmp/now
sed 's/"balanced"/"rpc"/;s/"text": "/"text": "x/' /tmp/edge.plan >/tmp/edited.plan
status "an edited one is refused" 6 ringwise apply --yes /tmp/edited.plan
says "by name" "/tmp/edited.plan was edited"
ringwise plan --goal forward $devs -j 2>/dev/null >/tmp/doc.json
sed "s/$(cat /proc/sys/kernel/random/boot_id)/00000000-1111-2222-3333-444444444444/" /tmp/doc.json >/tmp/boot.json
status "one of another boot is refused" 6 ringwise apply --yes /tmp/boot.json
says "both boots are named" "00000000-1111-2222-3333-444444444444; this boot is $(cat /proc/sys/kernel/random/boot_id)"
ringwise plan --goal forward $devs --out /tmp/short.plan --expires 1s >/dev/null 2>&1
sleep 2
status "an expired one is refused" 6 ringwise apply --yes /tmp/short.plan
says "with both times" "expired"
status "without a terminal it needs --yes" 6 ringwise apply /tmp/edge.plan
echo 1 >$xps
echo $other >$(irq)
status "one whose settings have moved is refused" 6 ringwise apply --yes /tmp/edge.plan
cat /tmp/err
says "the queue is named" "eth0 tx-1 xps_cpus: was"
says "the interrupt is named" "eth1 interrupt CPU rx-1: was"
state $devs >/tmp/now
sed 's/.*tx-1.xps_cpus=.*/X/;s/^irq.*-rx-1=.*/X/' /tmp/first >/tmp/a
sed 's/.*tx-1.xps_cpus=.*/X/;s/^irq.*-rx-1=.*/X/' /tmp/now >/tmp/b
unchanged "nothing was written after all" /tmp/a /tmp/b
sed -n "s|^eth0/queues/tx-1/xps_cpus=||p" /tmp/first >$xps
sed -n 's/^irq .*-rx-1=//p' /tmp/first | tail -n 1 >$(irq)
state $devs >/tmp/now
unchanged "as it was planned for" /tmp/first /tmp/now
cd /tmp || exit
status "apply FILE" 0 ringwise apply --yes edge.plan
state $devs >/tmp/now
same "does exactly that: the queue" "$(cat $xps | tr -d 0,)" 2
same "does exactly that: the interrupt" "$(cat $(irq))" 1
status "and nothing else is left to do" 0 ringwise plan --goal forward --exit-code $devs
h=$(journals)
status "a second time there is nothing to do" 0 ringwise apply --yes edge.plan
same "and nothing is written" "$(journals)" "$h"
ringwise history
touch eth0
status "a file named like an interface" 2 ringwise apply --yes eth0
says "how to write it" "./eth0"
rm eth0
status "rollback 0 again" 0 ringwise rollback --yes 0
state $devs >/tmp/now
unchanged "as first found" /tmp/first /tmp/now

# A journal of a later version stops every run, and the message describes how to undo the transaction without ringwise.
status "apply for the journal" 0 ringwise apply --yes --goal forward $devs
j=$(ls $RINGWISE_STATE_DIR/tx-*.jsonl | tail -n 1)
cp $j /tmp/journal
sed -i '1s/"format":2,"tool":"[^"]*"/"format":9,"tool":"9.0"/; 1s/,"crc32":"[0-9a-f]*"}$/}/' $j
status "with a journal of a later version" 6 ringwise apply --yes --goal rpc $devs
says "the version is named" "written by ringwise 9.0 in another format (9)"
says "the file is named" $j
says "its undo commands are there" "/queues/tx-1/xps_cpus"
status "verify says so too" 3 ringwise verify
cp /tmp/journal $j
status "that version puts it back" 0 ringwise rollback --yes 0
state $devs >/tmp/now
unchanged "as first found in the end" /tmp/first /tmp/now
rm -rf $RINGWISE_STATE_DIR
