#!/bin/sh
# check: no findings on a tuned host; on a host with one fault exactly the expected rules have findings
# (consequences are listed under their cause); a capture gives the same result as the host.
# hosts: router16 small2
# kernels: 6.12
# areas: check
# timeout: 1200
. /h/lib.sh
. /h/state.sh
. /h/check.sh
# The shell would use its built-in one.
tc() { /usr/bin/tc "$@"; }

export RINGWISE_STATE_DIR=/tmp/rw73
devs=$(awk '{ print $2 }' /h/nics | while read -r d; do [ -e /sys/class/net/$d ] && echo $d; done)

# broken NAME "RULES" [ARGUMENTS]: exactly these have findings, then the fault is repaired
broken() {
	foreseen "$@"
	mend
}

mend() {
	ringwise apply --yes --take-over >/tmp/out 2>/tmp/err </dev/null || cat /tmp/out /tmp/err
	links $on >/dev/null
}

untouched
on="eth0 eth1"
for d in $on; do
	ip link set $d up
done
links $on >/dev/null
for d in $devs; do
	case " $on " in
	*" $d "*) ;;
	*) ip link set $d down ;;
	esac
done

# The virtio-net of this host has an interrupt for each direction, whose rate depends on the use of its queue.
ringwise check --fail-on never >/tmp/out 2>/tmp/err </dev/null
cat /tmp/out /tmp/err
check "untuned: something is found" grep -q '^WARNING$\|^ERROR$' /tmp/out
status "untuned: errors and warnings are a status" 3 ringwise check --fail-on warning
status "a rule is explained" 0 ringwise check --explain A03
says "with its source" "kernel documentation"
status "what this kernel can do" 0 ringwise check --capabilities
cat /tmp/out
check "it has RPS" grep -q '^RPS, RFS .*yes' /tmp/out

status "apply" 0 ringwise apply --yes
links $on >/dev/null
[ $HOST = small2 ] || settled $on
got=$(ids)
same "tuned: no error and no warning" "$got" ""
[ "$got" = "" ] || cat /tmp/check
status "tuned: so says the status" 0 ringwise check --fail-on warning
[ $_got = 0 ] || cat /tmp/out

if [ $HOST = router16 ]; then
	all() {
		for q in 0 1 2 3 4 5 6 7; do
			"$@" $q
		done
	}
	on_0() { irq eth0 $1 0; }
	all on_0
	broken "all interrupts on one CPU" "A01 A16"
	under A01 A16
	settled $on

	irq eth0 2 9
	broken "one on the far node" "A03 A16"
	settled $on

	echo 0-7 >/proc/irq/$(queue_irq eth0 TxRx-2)/smp_affinity_list
	broken "an interrupt that may wander" "A02 A16"

	rps() { echo ff >/sys/class/net/eth0/queues/rx-$1/rps_cpus; }
	all rps
	broken "RPS over RSS" "A16 Q05 Q08"
	under Q05 Q08

	rps_far() { echo ff00 >/sys/class/net/eth0/queues/rx-$1/rps_cpus; }
	all rps_far
	broken "RPS on the far node" "A16 Q05 Q07"

	ethtool -X eth0 weight 1 1 1 0 1 1 1 1
	broken "a table without queue 3" "Q20"
	ethtool -X eth0 equal 8

	ethtool -X eth0 weight 6 1 1 1 1 1 1 1
	broken "an uneven table" "Q19"
	ethtool -X eth0 equal 8

	xps() { echo 0 >/sys/class/net/eth0/queues/tx-$1/xps_cpus; }
	all xps
	broken "no XPS" "A16 Q14"

	a=$(cat /sys/class/net/eth0/queues/tx-0/xps_cpus)
	b=$(cat /sys/class/net/eth0/queues/tx-1/xps_cpus)
	echo $b >/sys/class/net/eth0/queues/tx-0/xps_cpus
	echo $a >/sys/class/net/eth0/queues/tx-1/xps_cpus
	broken "XPS of two queues exchanged" "A16 Q15"
fi

# With a queue pair for each CPU, a host of two CPUs has only these findings.
echo 32768 >/proc/sys/net/core/rps_sock_flow_entries
broken "RFS half configured: only the host's table" "Q10"
echo 0 >/proc/sys/net/core/rps_sock_flow_entries

echo 1024 >/sys/class/net/eth1/queues/rx-0/rps_flow_cnt
broken "RFS half configured: only a queue's table" "Q10"
echo 0 >/sys/class/net/eth1/queues/rx-0/rps_flow_cnt

echo 50 >/proc/sys/net/core/busy_read
broken "busy polling for all sockets" "M07"
echo 0 >/proc/sys/net/core/busy_read

ethtool -K eth1 gro off
broken "GRO off" "M10"
ethtool -K eth1 gro on

ethtool -K eth1 tx-nocache-copy on
broken "sent data bypasses the cache" "M21"
ethtool -K eth1 tx-nocache-copy off

echo 100 >/sys/class/net/eth1/napi_defer_hard_irqs
broken "interrupt deferral half configured" "M05"
echo 0 >/sys/class/net/eth1/napi_defer_hard_irqs

tc qdisc replace dev eth1 root pfifo
broken "one queueing discipline for all queues" "M16"
tc qdisc del dev eth1 root

same "mended: no error and no warning" "$(ids)" ""

# A capture gives the same result as the host; rules about rates need samples.
status "capture" 0 ringwise capture /tmp/rw73.tar --for 1s
echo 50 >/proc/sys/net/core/busy_read
echo 1 >/sys/class/net/eth0/queues/rx-0/rps_cpus
status "capture of a broken host" 0 ringwise capture /tmp/rw73b.tar
live=$(ids)
# It also contains what was applied.
same "it is broken" "$live" "A16 M07 Q05"
same "a capture of it says the same" "$(ids --from /tmp/rw73b.tar)" "$live"
under Q05 A16
echo 0 >/sys/class/net/eth0/queues/rx-0/rps_cpus
check "rates are not evaluated without samples" sh -c 'ringwise check --fail-on never -v --from /tmp/rw73b.tar 2>/dev/null | tr "\n" " " | grep -q "Not evaluated, needs two samples.*D04"'
ringwise check --fail-on never -v --from /tmp/rw73.tar >/tmp/out 2>&1
check "with samples they are" sh -c '! grep -q "Not evaluated" /tmp/out'
ringwise check --fail-on never --from /tmp/rw73.tar /tmp/rw73b.tar >/tmp/out 2>&1
cat /tmp/out
same "two captures: a line each, worst first" "$(grep -o '/tmp/rw73b*\.tar$' /tmp/out | tr '\n' ' ')" "/tmp/rw73b.tar /tmp/rw73.tar /tmp/rw73b.tar "
status "accepted" 0 ringwise check --accept M07 --reason "a test" --until 2099-01-01 --baseline /tmp/rw73.json
status "and no finding any more" 0 ringwise check --fail-on warning --baseline /tmp/rw73.json
says "but listed" "a test"
status "JSON" 0 ringwise check --fail-on never -j
check "is a document" grep -q '"schema": "ringwise.check"' /tmp/out
status "SARIF" 0 ringwise check --fail-on never -o sarif
check "names its rule" grep -q '"ruleId": "M07"' /tmp/out
status "JUnit" 0 ringwise check --fail-on never -o junit
check "has a failed case only from errors up" grep -q 'failures="0"' /tmp/out
echo 0 >/proc/sys/net/core/busy_read
status "nothing is written by looking" 0 ringwise verify
status "rollback 0" 0 ringwise rollback --yes 0
