#!/bin/sh
# The first screen shows what is applied, by whom and why, what is pending and what changed; the system's log has it with fields.
# hosts: remote
# kernels: 6.12
# timeout: 400
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

wait_for 60 sh -c 'systemctl is-system-running | grep -qE "running|degraded"'
far_up
links eth0 eth1 eth2

status "nothing is applied yet" 0 ringwise
# Either nothing in this boot, or nothing any more after the scenarios before.
says "and it says so" "applied     nothing"

# --- applied, by whom and why, and in the journal
since=$(date +%s)
status "apply with a reason" 0 ringwise apply --yes --reason CHG-4711
id=$(last_id)
status "status" 0 ringwise
says "it names the transaction" "transaction $id, goal balanced"
says "who and why" "by root (CHG-4711)"
says "that all holds" "settings as applied"
says "that it does not outlive a reboot" "settings are lost at reboot"
says "that nothing waits" "no transaction is on trial or unfinished"
wait_for 30 sh -c "journalctl -q -o json RINGWISE_TRANSACTION=$id RINGWISE_OUTCOME=applied | grep -q MESSAGE"
# Scenarios with another state directory also had a transaction with this number.
journalctl -q -o json --since "@$since" RINGWISE_TRANSACTION=$id >/tmp/lines
check "the journal has its beginning with the reason" grep -q '"RINGWISE_REASON":"CHG-4711"' /tmp/lines
written=$(grep -c '"RINGWISE_OUTCOME":"written"' /tmp/lines)
same "a line for each setting" "$written" "$(grep -c '"record":"done"' "$(journal $id)")"
check "with device and setting" sh -c "grep '\"RINGWISE_DEVICE\":\"eth2\"' /tmp/lines | grep -q '\"RINGWISE_SETTING\":\"eth2 '"
check "and its end" grep -q '"RINGWISE_OUTCOME":"applied"' /tmp/lines
same "under one name" "$(journalctl -q -t ringwise RINGWISE_TRANSACTION=$id -o cat | wc -l)" "$(wc -l </tmp/lines)"

# --- a manual change of a queue
n=$(queue_irq eth2 rx-0 || queue_irq eth2 TxRx-0)
was=$(cat /proc/irq/$n/smp_affinity_list)
other=$([ "$was" = 3 ] && echo 2 || echo 3)
echo $other >/proc/irq/$n/smp_affinity_list
status "a queue moved by hand" 3 ringwise
says "is counted" "settings differ"
says "and shown at its interface" "queue"
echo $was >/proc/irq/$n/smp_affinity_list

# --- over ssh, with the login uid
check "a session" session_open one 10.2.0.1
session_run one 'ringwise' >/tmp/out 2>/tmp/err
says "its way in is named" "your ssh session"
session_run one 'ringwise apply --goal latency --yes --reason over-ssh' >/tmp/out 2>&1
id=$(last_id)
wait_for 30 sh -c "journalctl -q -o json RINGWISE_TRANSACTION=$id RINGWISE_OUTCOME=applied | grep -q MESSAGE"
check "the login uid is in the journal" sh -c "journalctl -q -o json RINGWISE_TRANSACTION=$id | grep -q '\"RINGWISE_LOGINUID\":\"0\"'"
session_close one

# --- on trial
status "apply on trial" 0 ringwise apply --goal forward --yes --confirm 300s
status "a trial needs somebody" 3 ringwise
says "it is named with its end" "ON TRIAL until"
says "and what to type" "ringwise confirm"
status "confirm" 0 ringwise confirm
status "then nobody is needed" 0 ringwise

# --- for a developer
rm -f /tmp/s.tar
status "support" 0 ringwise support /tmp/s.tar
says "it lists the kernel's lines" "fs/support/kernel.log"
check "and a journal" grep -q 'fs/support/state/tx-' /tmp/out
for dev in eth0 eth1 eth2; do
	mac=$(cat /sys/class/net/$dev/address)
	same "no address of $dev is in it" "$(grep -c -a -e $mac -e $(echo $mac | tr -d :) /tmp/s.tar)" 0
done
same "nor its address" "$(grep -c -a -w '10.2.0.1' /tmp/s.tar)" 0
same "nor the host's name" "$(tar xOf /tmp/s.tar fs/support/status.txt | grep -c -w "$(hostname)")" 0
status "it opens as a capture" 0 ringwise show --from /tmp/s.tar
says "with its interfaces" eth2
status "it is not overwritten" 1 ringwise support /tmp/s.tar

status "put back" 0 ringwise rollback 0 --yes
