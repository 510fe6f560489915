#!/bin/sh
# The service requested to write RSS tables: it writes none if the device does not hash, if RPS or a rule selects the queue, or if packets have no hash (MPLS, PPPoE). Where the driver reports no hash, sampled headers replace it. A step that does not help as predicted is restored. A NIC that sets itself up again for a write is skipped afterwards.
# hosts: router16
# kernels: 6.12
# areas: daemon
# timeout: 900
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/daemon.sh

own_state
uneven_pair

# load: packets of which queue 0 has four eleventh
load() {
	flows 1500 1400000
}

# reason NAME TEXT [LOAD...]: under load the service gives this reason, and does not write.
reason() {
	_case=$1 _why=$2
	shift 2
	serve --config none --act mq0
	_written=$(journals)
	"${@:-load}"
	check "$_case: the reason is given" logged "; no better table: $_why" 60
	sleep 10
	touch /tmp/enough
	send_end
	grep -F 'mq0: ' $log
	same "$_case: no transaction" "$(journals)" "$_written"
	ethtool -x mq0 >/tmp/now
	unchanged "$_case: the table is as before" /tmp/table /tmp/now
	status "stop" 0 ringwise daemon stop
	wait $service
}

ethtool -K mq0 rxhash off
reason "hash off" "the device does not hash packets"
ethtool -K mq0 rxhash on

# All eight queues do their work on two CPUs, so these are busier than the mean.
for q in 0 1 2 3 4 5 6 7; do
	echo $((1 << (q & 1))) >/sys/class/net/mq0/queues/rx-$q/rps_cpus
done
reason "RPS" "RPS is configured"
for q in 0 1 2 3 4 5 6 7; do
	echo 0 >/sys/class/net/mq0/queues/rx-$q/rps_cpus
done

ethtool -K mq0 ntuple on
ethtool -N mq0 flow-type udp4 dst-port 9 action 2 >/dev/null
reason "a rule" "rules select the queue of flows"
for r in $(ethtool -n mq0 | awk '/^Filter:/ { print $2 }'); do
	ethtool -N mq0 delete "$r"
done

# Frames that the device does not parse: queue 0 gets all of them. The cost is that of the driver's poll.
unparsed() {
	[ -z "$sender" ] || send_end
	send mq1 mq0 1500 "mpls 00010140"
	echo 600000 >/sys/module/mqnic/parameters/poll_ns
}
reason "MPLS" "100.0 % of the packets have no hash" unparsed

# One PPPoE session. The start of the program takes a third of a second, so it sends many frames.
pppoe() {
	[ -z "$sender" ] || send_end
	rm -f /tmp/enough
	while [ ! -e /tmp/enough ]; do
		frames mq1 mq0 pppoe 3000
	done &
	sender=$!
	echo 1000000 >/sys/module/mqnic/parameters/poll_ns
}
reason "PPPoE" "100.0 % of the packets have no hash" pppoe

# The driver does not report the hash that the device uses.
echo 4194304 >/sys/module/mqnic/parameters/quirk
# Where other work disturbs the measured loads, a good step may be restored: one of three is kept.
for try in 1 2 3; do
	serve --config none --act mq0
	load
	check "without a reported hash the headers are sampled, and the table is changed ($try)" \
		logged "mq0: changed the RSS table: " 60
	sleep 15
	send_end
	grep -F 'mq0: ' $log
	if [ "$try" = 3 ] || ! grep -q 'mq0: restored the entries' $log; then
		break
	fi
	status "stop ($try)" 0 ringwise daemon stop
	wait $service
done
check "the step is kept" sh -c "! grep -q 'mq0: restored the entries' $log"
memory
status "stop" 0 ringwise daemon stop
wait $service
ethtool -x mq0 >/tmp/now
n=0
while ! cmp -s /tmp/table /tmp/now && [ $n -lt 100 ]; do
	sleep 0.2
	ethtool -x mq0 >/tmp/now
	n=$((n + 1))
done
unchanged "after its end the table is restored" /tmp/table /tmp/now
echo 0 >/sys/module/mqnic/parameters/quirk

# The device accepts a table and does not use it, so the prediction is wrong.
serve --config none --act mq0
load
echo 16777216 >/sys/module/mqnic/parameters/quirk
check "the table is changed" logged "mq0: changed the RSS table: " 90
read -r _from _ </proc/uptime
check "a step that does not help is restored" logged "mq0: restored the entries of the last change of the RSS table: " 30
read -r _to _ </proc/uptime
echo "# restored after $(awk "BEGIN { print $_to - $_from }") s"
check "within 10 s" test "$(awk "BEGIN { print int($_to - $_from) }")" -lt 10
ethtool -x mq0 >/tmp/now
unchanged "the table is as before" /tmp/table /tmp/now
send_end
grep -F 'mq0: ' $log
status "stop" 0 ringwise daemon stop
wait $service
echo 0 >/sys/module/mqnic/parameters/quirk

# The device sets itself up again for each write of the table.
echo 8388608 >/sys/module/mqnic/parameters/quirk
look from /sys/class/net/mq0/carrier_changes
serve --config none --act mq0
load
check "the first write takes the link down: the log names the cause" \
	logged "mq0: writing the RSS table took the link down. " 90
check "no further one" \
	logged "mq0: nothing is moved at present: the link went down right after a step was written" 90
sleep 30
send_end
grep -F 'mq0: ' $log
look to /sys/class/net/mq0/carrier_changes
# The write and its restoration, each off and on.
same "the link went down and up twice" "$((to - from))" 4
ethtool -x mq0 >/tmp/now
unchanged "the table is as before" /tmp/table /tmp/now
status "stop" 0 ringwise daemon stop
wait $service
# Another service knows it.
ringwise learned
check "it is recorded" sh -c "ringwise learned mq0 | grep -q 'the link went down'"
reason "after a restart" "the driver resets the device when the table is written"
look again /sys/class/net/mq0/carrier_changes
same "after a restart: the link stays up" "$((again - to))" 0
status "it can be forgotten" 0 ringwise learned --forget mq0
echo 0 >/sys/module/mqnic/parameters/quirk
status "nothing is left" 0 ringwise verify
ethtool -X mq0 default
cost_unload
