#!/bin/sh
# SIGKILL to the service at given points of a change of the RSS table: its guard restores the table, and nothing is left to recover.
# hosts: router16
# kernels: 6.12
# areas: daemon
# timeout: 1200
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/daemon.sh

# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
uneven_pair

for point in "-b begin:1" begin:1 "-b step:1" step:1 "-b done:1" done:1 "-b end:1" end:1; do
	rm -rf $RINGWISE_STATE_DIR
	# shellcheck disable=SC2086 # an option and the point
	killat $point tx- ringwise -v daemon --config none --act mq0 2>$log &
	traced=$!
	check "at $point: the service starts" logged "started"
	flows 1500 1200000
	n=0
	while [ -d /proc/$traced ] && [ $n -lt 600 ]; do
		sleep 0.2
		n=$((n + 1))
	done
	wait $traced
	same "at $point: it is killed" $? 137
	send_end
	read -r killed _ </proc/uptime
	n=0
	ethtool -x mq0 >/tmp/now
	while ! cmp -s /tmp/table /tmp/now && [ $n -lt 100 ]; do
		sleep 0.1
		ethtool -x mq0 >/tmp/now
		n=$((n + 1))
	done
	read -r back _ </proc/uptime
	unchanged "at $point: the table is as before" /tmp/table /tmp/now
	awk "BEGIN { printf \"# at $point: as before %.1f s after the end of traffic\\n\", $back - $killed }"
	# The guard holds the lock until everything is restored.
	free
	status "at $point: nothing is left to recover" 0 ringwise recover --yes
	says "at $point: nothing at all" "Nothing to do"
	status "at $point: as recorded" 0 ringwise verify
	# That of the tables ends when it has seen that they are restored.
	n=0
	while ls -l /proc/[0-9]*/exe 2>/dev/null | grep -q "/guard-" && [ $n -lt 100 ]; do
		sleep 0.2
		n=$((n + 1))
	done
	same "at $point: no guard is left" "$(ls -l /proc/[0-9]*/exe 2>/dev/null | grep "/guard-")" ""
done
ethtool -X mq0 default
cost_unload
