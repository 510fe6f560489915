#!/bin/sh
# The service moves the interrupt of a queue where the user requested it: away from a program that takes the queue's CPU, and from a CPU that serves two queues while the table may not be written. XPS follows. When it is killed, its guard moves the interrupt back; a restart hands over; an interrupt that a user moves stays.
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
status "the layout is applied" 0 ringwise apply --yes --goal forward mq0

# affinity_of QUEUE: the file with the CPUs of its interrupt
affinity_of() {
	echo "/proc/irq/$(queue_irq mq0 "TxRx-$1")/smp_affinity_list"
}

# load: packets of which each queue takes an eighth, 12 % of a CPU
load() {
	flows 800 1200000
}

# goes FILE CPU SECONDS: waits until the file has this CPU; the time since boot is in /tmp/at.
goes() {
	_n=0
	while [ $_n -lt $(($3 * 20)) ]; do
		look _now "$1"
		read -r _to _ </proc/uptime
		if [ "$_now" = "$2" ]; then
			echo "$_to" >/tmp/at
			return 0
		fi
		sleep 0.05
		_n=$((_n + 1))
	done
	return 1
}

# moved NAME: the interrupt of queue 0 is not on its first CPU.
moved() {
	look _now "$file"
	check "$1" test "$_now" != "$base"
}

# xps: the XPS masks of mq0
xps() {
	cat /sys/class/net/mq0/queues/tx-*/xps_cpus
}

file=$(affinity_of 0)
look base "$file"
xps >/tmp/xps
program "$base"

# Without the request of the user it only reports.
serve --config none
before=$(journals)
load
check "another CPU is proposed" logged "mq0: it would be better to move the interrupt of receive queue 0 from CPU $base to " 60
same "nothing was written" "$(journals)" "$before"
status "stop" 0 ringwise daemon stop
wait $service

serve --config none --act mq0
load
check "the service moves the interrupt" logged "mq0: moved the interrupt of receive queue 0 from CPU $base to " 60
moved "the interrupt has moved"
# 5 s later the move is judged. In emulation loads are noisy, so it may be taken back.
sleep 30
grep -F 'mq0: ' $log
send_end
status "the host is as applied" 0 ringwise verify
status "each move is a transaction" 0 sh -c "ringwise history --all | grep -q 'balance mq0'"
ringwise history --all | head -4
status "stop" 0 ringwise daemon stop
wait $service
check "after an end the interrupt is back" goes "$file" "$base" 60
free || not_ok "the guard ends" "the lock is still held"

# Killed without warning: its guard moves the interrupt back.
serve --config none --act mq0
load
check "the next service moves it, too" logged "mq0: moved the interrupt of receive queue 0 from CPU $base to " 90
moved "the interrupt has moved again"
look now "$file"
look own /sys/class/net/mq0/queues/tx-0/xps_cpus
check "XPS has followed it: CPU $now sends through queue 0 ($own)" test "$((0x$(echo "$own" | tr -d ,) & (1 << now)))" != 0
read -r _killed _ </proc/uptime
kill -KILL $service
wait $service 2>/dev/null
check "its guard moves the interrupt back" goes "$file" "$base" 10
xps >/tmp/now
unchanged "the XPS masks are back, too" /tmp/xps /tmp/now
echo "# moved back $(awk "BEGIN { print $(cat /tmp/at) - $_killed }") s after the kill"
free || not_ok "the guard ends" "the lock is still held"
status "as recorded" 0 ringwise verify

# A restart hands over.
serve --config none --act mq0
load
check "the next service moves it again" logged "mq0: moved the interrupt of receive queue 0 from CPU $base to " 90
look there "$file"
kill -TERM $service
wait $service
look now "$file"
same "its end changes nothing at first" "$now" "$there"
serve --config none --act mq0
look now "$file"
same "the next service continues with it" "$now" "$there"

# A user moves it.
load
echo "$base" >"$file"
check "a change by a user is noticed" logged "mq0: nothing is moved at present: " 90
sleep 20
look now "$file"
same "it stays" "$now" "$base"
kill -KILL $service
wait $service 2>/dev/null
sleep 5
look now "$file"
same "it stays when the service is killed" "$now" "$base"
program_end
send_end
free || not_ok "the guard ends" "the lock is still held"

# Two queues with half of the packets share a CPU. A rule selects the queue of some flows, so the table is not written.
status "the layout is applied again" 0 ringwise apply --yes --take-over --goal forward mq0
status "queues 0 and 1 have most entries" 0 ethtool -X mq0 weight 3 3 1 1 1 1 1 1
ethtool -K mq0 ntuple on
ethtool -N mq0 flow-type tcp4 dst-port 80 action 2 >/dev/null
look base "$file"
other=$(affinity_of 1)
echo "$base" >"$other"
status "they are accepted" 0 ringwise adopt --yes mq0
serve --config none --act mq0
flows 1300 1200000
check "one of them moves" logged "mq0: moved the interrupt of receive queue" 60
grep -F 'mq0: ' $log
same "no table was written" "$(grep -c 'changed the RSS table' $log)" 0
kill -KILL $service
wait $service 2>/dev/null
check "its guard moves the interrupt back, too" goes "$file" "$base" 10
check "that of queue 1, too" goes "$other" "$base" 10
send_end
free || not_ok "the guard ends" "the lock is still held"

ethtool -n mq0 | awk '/^Filter:/ { print $2 }' | while read -r r; do
	ethtool -N mq0 delete "$r"
done
status "everything is put back" 0 ringwise rollback --yes 0
ethtool -X mq0 default
cost_unload
