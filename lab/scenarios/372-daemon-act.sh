#!/bin/sh
# The service changes the RSS table where the user requested it: under the cost model, entries leave the busy queue, and no packet is lost by the writes. When it is killed, its guard restores the table; a restart hands over; a table that a user writes stays.
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

# table: the indirection table.
table() {
	ethtool -x mq0 | sed -n '/indirection/,/hash key/p'
}

# lost: packets that mq1 has sent and mq0 has not received, and those that the host has dropped from the queues of its CPUs
lost() {
	look _sent /sys/class/net/mq1/statistics/tx_packets
	look _received /sys/class/net/mq0/statistics/rx_packets
	echo $((_sent - _received))
	cut -d' ' -f2 /proc/net/softnet_stat
}

# turns FILE SECONDS: waits until the table is that of the file; the time that it took is in /tmp/took.
turns() {
	read -r _from _ </proc/uptime
	_n=0
	while [ $_n -lt $(($2 * 20)) ]; do
		table >/tmp/now
		if cmp -s "$1" /tmp/now; then
			read -r _to _ </proc/uptime
			awk "BEGIN { print $_to - $_from }" >/tmp/took
			echo "$_to" >/tmp/at
			return 0
		fi
		sleep 0.05
		_n=$((_n + 1))
	done
	return 1
}

# guards: how many transactions are those of a guard.
guards() {
	ringwise history --all | grep -c ' guard '
}

# moved NAME: the table is not the base.
moved() {
	table >/tmp/now
	check "$1" sh -c "! cmp -s /tmp/base /tmp/now"
}

table >/tmp/base
lost >/tmp/lost
_sent_before=$_sent

serve --config none --act mq0
load
check "the service changes the table" logged "mq0: changed the RSS table: " 60
moved "entries have moved"
# 5 s later the change is judged. In emulation loads are noisy, so it may be taken back.
sleep 30
grep -F 'mq0: ' $log
send_end
sleep 2
lost >/tmp/now
unchanged "no packet was lost" /tmp/lost /tmp/now
check "packets were sent meanwhile" test "$((_sent - _sent_before))" -gt 10000
status "the host is as applied" 0 ringwise verify
status "each change is a transaction" 0 sh -c "ringwise history --all | grep -q 'balance mq0'"
ringwise history --all | head -6
memory
status "stop" 0 ringwise daemon stop
wait $service
check "after an end the table is restored" turns /tmp/base 60
echo "# restored after $(cat /tmp/took) s"
free || not_ok "the guard ends" "the lock is still held"

# Killed without warning: its guard restores the table.
serve --config none --act mq0
load
check "the next service changes it, too" logged "mq0: changed the RSS table: " 90
moved "entries have moved again"
read -r _killed _ </proc/uptime
kill -KILL $service
wait $service 2>/dev/null
check "its guard restores the table" turns /tmp/base 10
echo "# restored $(awk "BEGIN { print $(cat /tmp/at) - $_killed }") s after the kill"
free || not_ok "the guard ends" "the lock is still held"
status "as recorded" 0 ringwise verify
ringwise history --all | sed -n 2p

# A restart hands over, also to another file of the program, as an upgrade installs it.
serve --config none --act mq0
load
check "the next service changes it again" logged "mq0: changed the RSS table: " 90
table >/tmp/moved
by_guard=$(guards)
cp /usr/bin/ringwise /usr/bin/ringwise.new
mv /usr/bin/ringwise.new /usr/bin/ringwise
kill -TERM $service
wait $service
table >/tmp/now
unchanged "its end changes nothing at first" /tmp/moved /tmp/now
serve --config none --act mq0
table >/tmp/now
unchanged "the next service continues with the table" /tmp/moved /tmp/now
load
sleep 20
grep -F 'mq0: ' $log
same "no guard restores it" "$(guards)" "$by_guard"
status "stop" 0 ringwise daemon stop
wait $service
check "an end without a next service restores it" turns /tmp/base 60
free || not_ok "the guard ends" "the lock is still held"

# A table that a user writes stays, also when the service is killed.
serve --config none --act mq0
load
check "the service changes the table once more" logged "mq0: changed the RSS table: " 90
ethtool -X mq0 equal 4
table >/tmp/mine
read -r _from _ </proc/uptime
check "a change by a user is noticed" logged "mq0: nothing is moved at present: " 20
read -r _to _ </proc/uptime
echo "# noticed after $(awk "BEGIN { print $_to - $_from }") s"
sleep 30
table >/tmp/now
unchanged "it stays" /tmp/mine /tmp/now
kill -KILL $service
wait $service 2>/dev/null
sleep 5
table >/tmp/now
unchanged "it stays when the service is killed" /tmp/mine /tmp/now
send_end
# The service of the last part has moved entries before; a rollback restores what was found first.
status "everything is put back" 0 ringwise rollback --yes 0
table >/tmp/now
unchanged "the table is as first found" /tmp/base /tmp/now
ethtool -X mq0 default
cost_unload
