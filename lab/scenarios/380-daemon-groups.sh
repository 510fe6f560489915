#!/bin/sh
# The groups of goal mixed follow the traffic where the user requested it: with short frames the latency group gets more queues, and policy cpu is tried while a program keeps the CPUs of the bulk queues busy. When the service is killed, its guard restores the groups; what it changed is in effect for verify.
# hosts: router16
# kernels: 5.10 6.12 newest
# areas: daemon
# timeout: 1500
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/daemon.sh

own_state
cost_pair
status "the layout is applied" 0 ringwise apply --yes --goal mixed mq0

# meanwhile SECONDS TEXT: short frames are sent until the text is in the log
meanwhile() {
	_until=$1 _text=$2
	read -r _begun _ </proc/uptime
	while read -r _now _ </proc/uptime && [ $((${_now%.*} - ${_begun%.*})) -lt "$_until" ]; do
		flows 400 300000
		logged "$_text" 55 >/dev/null && return 0
	done
	tail -n 5 $log
	return 1
}

# returns SECONDS: waits until the moderation of the queues is as it was applied; the time since boot is in /tmp/at.
returns() {
	_n=0
	while [ $_n -lt $(($1 * 5)) ]; do
		theirs mq0 >/tmp/now
		read -r _to _ </proc/uptime
		if cmp -s /tmp/base /tmp/now; then
			echo "$_to" >/tmp/at
			return 0
		fi
		sleep 0.2
		_n=$((_n + 1))
	done
	return 1
}

theirs mq0 >/tmp/base
tr "\n" ";" </tmp/base
echo

# Without the request of the user it only reports.
serve --config none
before=$(journals)
check "other sizes are proposed" meanwhile 150 "mq0: other groups of queues would suit the traffic: 7 of 8 queues for latency instead of 2"
same "nothing was written" "$(journals)" "$before"
status "stop" 0 ringwise daemon stop
wait $service

serve --config none --act mq0
check "the service changes the groups" meanwhile 150 "mq0: changed the groups of queues: 7 of 8 queues for latency instead of 2"
theirs mq0 >/tmp/changed
check "more queues have the policy of the latency group" sh -c "! cmp -s /tmp/base /tmp/changed"
# 5 s later the change is judged.
sleep 15
check "it stays" sh -c "! grep -q 'mq0: restored the groups' $log"
status "the host is as applied" 0 ringwise verify
status "the change is a transaction" 0 sh -c "ringwise history --all | grep -q 'balance mq0'"
ringwise history --all | head -4
grep -v writes $log | grep -F 'mq0: '
memory
read -r _killed _ </proc/uptime
kill -KILL $service
wait $service 2>/dev/null
check "killed: its guard restores the groups" returns 10
echo "# restored $(awk "BEGIN { print $(cat /tmp/at) - $_killed }") s after the kill"
free || not_ok "the guard ends" "the lock is still held"
status "as recorded" 0 ringwise verify

# The only bulk queue left has a CPU that a program keeps busy.
serve --config none --act mq0
check "the next service changes them, too" meanwhile 150 "mq0: changed the groups of queues: 7 of 8 queues for latency instead of 2"
bulk=$(theirs mq0 | awk '$2 == 62 { print $1 }')
look cpu "/proc/irq/$(queue_irq mq0 "TxRx-$bulk")/smp_affinity_list"
program "$cpu"
check "policy cpu for the bulk queues" meanwhile 400 "policy cpu for the bulk queues instead of bulk, whose CPUs are busy for "
sleep 15
# Whether it saves interrupts depends on the machine; otherwise it is taken back.
grep -v writes $log | grep -F 'mq0: '
program_end
status "the host is as applied" 0 ringwise verify
# A check has started the sender.
cost_off
echo stop >/proc/net/pktgen/pgctrl
status "stop" 0 ringwise daemon stop
wait $service
check "after an end the groups are as applied" returns 60
free || not_ok "the guard ends" "the lock is still held"
status "everything is put back" 0 ringwise rollback --yes 0
cost_unload
