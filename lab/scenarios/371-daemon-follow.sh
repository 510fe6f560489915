#!/bin/sh
# The service follows the load: under the cost model, a queue with too many table entries is found, and a better table is reported. Nothing is written. With RPS, and with --follow off, no table is proposed.
# hosts: router16
# kernels: 5.10 6.12 newest
# areas: daemon
# timeout: 600
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/daemon.sh

# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
# The generator and this script have CPUs that are never charged: cores 6 and 7.
PG_CPU=14
taskset -p 1000 $$ >/dev/null
# Linux 5.10 counts the filter's counters as locked memory.
# shellcheck disable=SC3045 # busybox has it
ulimit -l 65536
modprobe pktgen
for dev in mq0 mq1; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
	wait_link $dev
done
cost_load mq0
for irq in $(dev_irqs mq1); do
	echo $PG_CPU >/proc/irq/$irq/smp_affinity_list
done
for q in 0 1 2 3 4 5 6 7; do
	echo $q >/proc/irq/$(queue_irq mq0 TxRx-$q)/smp_affinity_list
done

# load: 1,500 packets/s of many flows; each costs 1.2 ms, and queue 0 has four eleventh of the table.
load() {
	send mq1 mq0 1500 "dst 10.1.1.1" "src_min 10.9.0.1" "src_max 10.9.3.250" "flag IPSRC_RND"
	cost_on 1200000 100 100
}

# found SECONDS TEXT
found() {
	_n=0
	while [ $_n -lt $(($1 * 5)) ]; do
		grep -qF -- "$2" $log && return 0
		sleep 0.2
		_n=$((_n + 1))
	done
	tail -n 5 $log
	return 1
}

status "the table is uneven" 0 ethtool -X mq0 weight 4 1 1 1 1 1 1 1
ethtool -x mq0 >/tmp/table

serve --config none
_t=$(ticks $service)
sleep 20
echo "# CPU time in 20 s without load: $(($(ticks $service) - _t)) ticks of 10 ms"
check "without load nothing is found" sh -c "! grep -q 'mq0: ' $log"

load
check "the uneven load is found" found 40 "mq0: uneven load: CPU 0 "
check "a better table is found" found 15 "mq0: another RSS table would be better: "
_t=$(ticks $service)
sleep 5
echo "# CPU time in 5 s with load: $(($(ticks $service) - _t)) ticks of 10 ms"
grep -F 'mq0: ' $log
check "entries of queue 0 would move" grep -q 'with entry [0-9]* from queue 0 to [1-7]' $log
status "ringwise shows it" 0 sh -c "ringwise | grep -q '^load  *mq0: '"
ringwise -j | tr ',' '\n' | grep -A1 -F 'would_move' | head -3
send_end
ethtool -x mq0 >/tmp/now
unchanged "the table is as before" /tmp/table /tmp/now
check "the load is even again" found 60 "mq0: the load is even again"
memory
status "stop" 0 ringwise daemon stop
wait $service

# RPS moves the work to other CPUs: the table does not decide where it is done.
echo 30 >/sys/class/net/mq0/queues/rx-0/rps_cpus
serve --config none
load
sleep 30
send_end
check "with RPS no table is proposed" sh -c "! grep -q 'another RSS table' $log"
echo 0 >/sys/class/net/mq0/queues/rx-0/rps_cpus
status "stop" 0 ringwise daemon stop
wait $service

serve --config none --follow off
load
sleep 20
send_end
check "with --follow off nothing is found" sh -c "! grep -q 'mq0: ' $log"
status "stop" 0 ringwise daemon stop
wait $service
ethtool -X mq0 default
cost_unload
