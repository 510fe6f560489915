#!/bin/sh
# The service changes the RPS mask of a NIC with one receive queue where the user requested it: a CPU that a program takes leaves the mask, and RPS is switched on while packets fill the queue's CPU. When it is killed, its guard restores the mask; a mask that a user sets stays.
# hosts: router16
# kernels: 5.10 6.12 newest
# areas: daemon
# timeout: 1200
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/daemon.sh

own_state
cost_pair
status "one queue" 0 ethtool -L mq0 combined 1
wait_link mq0
status "the layout is applied" 0 ringwise apply --yes --goal forward mq0

mask=/sys/class/net/mq0/queues/rx-0/rps_cpus
look base $mask
check "the plan has switched RPS on ($base)" test "$((0x$(echo "$base" | tr -d ,)))" != 0

# load NS: packets that cost that much each
load() {
	flows 800 "$1"
}

# has CPU: whether the mask has this CPU
has() {
	look _mask $mask
	[ $((0x$(echo "$_mask" | tr -d ,) & (1 << $1))) != 0 ]
}

left() {
	! has "$1"
}

# restored SECONDS: waits until the mask is the base.
restored() {
	_n=0
	while [ $_n -lt $(($1 * 20)) ]; do
		look _now $mask
		[ "$_now" = "$base" ] && return 0
		sleep 0.05
		_n=$((_n + 1))
	done
	return 1
}

# A CPU of the mask that is not one of the queue's core.
cpu=2
while ! has $cpu; do
	cpu=$((cpu + 1))
done
program $cpu

# Without the request of the user it only reports. Six CPUs share the packets: each gets about 20 %.
serve --config none
before=$(journals)
load 1500000
check "another mask is proposed" logged "mq0: it would be better to change the RPS mask of receive queue 0 from CPUs " 60
same "nothing was written" "$(journals)" "$before"
status "stop" 0 ringwise daemon stop
wait $service

serve --config none --act mq0
load 1500000
check "the service changes the mask" logged "mq0: changed the RPS mask of receive queue 0 from CPUs " 60
check "the CPU with the program has left it" left $cpu
# 5 s later the change is judged. In emulation loads are noisy, so it may be taken back.
sleep 20
grep -F 'mq0: ' $log
status "the host is as applied" 0 ringwise verify
status "each change is a transaction" 0 sh -c "ringwise history --all | grep -q 'balance mq0'"
kill -KILL $service
wait $service 2>/dev/null
check "killed: its guard restores the mask" restored 10
free || not_ok "the guard ends" "the lock is still held"
send_end
status "as recorded" 0 ringwise verify

# A user sets a mask: it stays.
serve --config none --act mq0
load 1500000
check "the next service changes it, too" logged "mq0: changed the RPS mask of receive queue 0 from CPUs " 90
echo 4 >$mask
check "a change by a user is noticed" logged "mq0: nothing is moved at present: " 90
kill -KILL $service
wait $service 2>/dev/null
sleep 5
look now $mask
same "it stays when the service is killed" "$((0x$(echo "$now" | tr -d ,)))" 4
program_end
send_end
free || not_ok "the guard ends" "the lock is still held"

# A mask that only the user has set is never changed.
serve --config none --act mq0
before=$(journals)
load 1000000
sleep 40
same "a mask of a user is not changed" "$(journals)" "$before"
status "stop" 0 ringwise daemon stop
wait $service
send_end

# RPS is off: the driver's layout without the mask was adopted.
echo 0 >$mask
status "RPS off is accepted" 0 ringwise adopt --yes mq0
look base $mask
serve --config none --act mq0
load 1000000
check "RPS is switched on" logged "mq0: changed the RPS mask of receive queue 0 from off to CPUs " 60
sleep 15
grep -F 'mq0: ' $log
grep -v writes $log | tail -n 6
check "it helps" sh -c "! grep -q 'mq0: restored the RPS mask' $log"
look now $mask
check "several CPUs share the packets ($now)" test "$now" != "$base"
kill -KILL $service
wait $service 2>/dev/null
check "killed: its guard switches RPS off" restored 10
send_end
free || not_ok "the guard ends" "the lock is still held"

status "everything is put back" 0 ringwise rollback --yes 0
ethtool -L mq0 combined 8
wait_link mq0
cost_unload
