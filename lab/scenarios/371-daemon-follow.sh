#!/bin/sh
# The service follows the load: under the cost model, a queue with too many table entries is found, and a better table is reported. Nothing is written. With RPS, and with --follow off, no table is proposed.
# hosts: router16
# kernels: 5.10 6.12 newest
# areas: daemon
# timeout: 900
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/daemon.sh

# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
# Linux 5.10 counts the filter's counters as locked memory.
# shellcheck disable=SC3045 # busybox has it
ulimit -l 65536
uneven_pair

# load: packets of which queue 0 has four eleventh
load() {
	flows 1500 1200000
}


serve --config none
_t=$(ticks $service)
sleep 20
echo "# CPU time in 20 s without load: $(($(ticks $service) - _t)) ticks of 10 ms"
check "without load nothing is found" sh -c "! grep -q 'mq0: ' $log"

load
check "the uneven load is found" logged "mq0: uneven load: CPU 0 " 40
check "a better table is found" logged "mq0: another RSS table would be better: " 15
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
check "the load is even again" logged "mq0: the load is even again" 60
memory
status "stop" 0 ringwise daemon stop
wait $service

# Counting packets by table entry is what the unit has CAP_BPF for, where programs without it may not load filters.
echo "# kernel.unprivileged_bpf_disabled = $(cat /proc/sys/kernel/unprivileged_bpf_disabled)"
ringwise __units /tmp/units371
caps=$(sed -n 's/^CapabilityBoundingSet=\(.\)/\1/p' /tmp/units371/usr/lib/systemd/system/ringwise-daemon.service | sed 's/CAP_//g' | tr 'A-Z\n' 'a-z ')
echo "# capabilities of the unit: $caps"
# counts REFUSED CAPABILITY...: starts the service with these, and whether the kernel refuses the count of packets
counts() {
	_refused=$1
	shift
	# shellcheck disable=SC2034 # for serve
	as="/usr/bin/setpriv --bounding-set -all$(printf ',+%s' "$@")"
	serve --config none
	# shellcheck disable=SC2034
	as=
	load
	check "the uneven load is found" logged "mq0: uneven load: CPU 0 " 40
	case $_refused in
	yes)
		check "without CAP_BPF the count is refused" logged "CAP_BPF is needed" 15
		grep -F "CAP_BPF is needed" $log | head -n 2
		check "with EPERM" grep -q "EPERM.*CAP_BPF is needed" $log
		;;
	no)
		check "with all capabilities of the unit a better table is found" logged "mq0: another RSS table would be better: " 15
		check "and nothing is refused" sh -c "! grep -q CAP_BPF $log"
		;;
	esac
	send_end
	status "stop" 0 ringwise daemon stop
	wait $service
}
# shellcheck disable=SC2086 # a list of names
counts no $caps
# shellcheck disable=SC2046 # a list of names
counts yes $(echo "$caps" | tr ' ' '\n' | grep -vx bpf)

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
