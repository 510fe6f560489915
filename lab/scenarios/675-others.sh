#!/bin/sh
# Goal mixed with a given flow on drivers that support neither rules nor moderation by queue, or accept them and do nothing; and
# XPS by receive queue. What is possible is applied, the rest is reported, and all of it is rolled back.
# hosts: router16 small2
# kernels: 6.12 newest
# timeout: 600
. /h/lib.sh
. /h/state.sh
case $HOST in
router16) devs="eth0 eth2" ;;
*) devs="eth0 eth1" ;;
esac
everything() {
	state $1
	ethtool -x $1 2>&1
	ethtool -c $1 2>&1
	ethtool -n $1 2>&1
	cat /sys/class/net/$1/queues/tx-*/xps_rxqs 2>&1
}
driver() { basename "$(readlink /sys/class/net/$1/device/driver)"; }
queues() { ls -d /sys/class/net/$1/queues/rx-* | wc -l; }
for dev in $devs; do
	export RINGWISE_STATE_DIR=/tmp/rw67o.$dev
	what="$(driver $dev)"
	ip link set $dev up
	links $dev
	[ "$(queues $dev)" -gt 1 ] || continue
	cat >/tmp/mixed.toml <<END
version = 1
[[interface]]
match = { name = "$dev" }
goal = "mixed"
[[interface.group]]
name = "latency"
policy = "latency"
queues = 1
flows = ["udp4 dst-port 9"]
END
	everything $dev >/tmp/before
	ringwise plan $dev --config /tmp/mixed.toml >/tmp/out 2>/tmp/err
	grep '^x' /tmp/out
	# The settings that the driver refuses are left out by a new plan in the same run.
	status "$what: mixed, as far as it can be had" 0 ringwise apply --yes $dev --config /tmp/mixed.toml
	cat /tmp/out /tmp/err
	links $dev
	same "$what: without rules every queue stays in the table" "$(ethtool -x $dev 2>/dev/null |
		awk -v n="$(queues $dev)" '/^ *[0-9]+:/ { s = 1; for (i = 2; i <= NF; i++) if (!q[$i]++) k++ } END { print s ? k : n }')" "$(queues $dev)"
	status "$what: verify" 0 ringwise verify
	status "$what: nothing to do a second time" 0 ringwise plan $dev --config /tmp/mixed.toml --exit-code
	cat /tmp/out
	status "$what: rollback" 0 ringwise rollback --yes 0
	links $dev
	everything $dev >/tmp/after
	unchanged "$what: as before" /tmp/before /tmp/after

	# --- XPS by receive queue
	export RINGWISE_STATE_DIR=/tmp/rw67x.$dev
	cat >/tmp/xps.toml <<END
version = 1
[[interface]]
match = { name = "$dev" }
xps_rxqs = { "0" = "0", "1" = "0-1" }
END
	status "$what: XPS by receive queue" 0 ringwise apply --yes $dev --config /tmp/xps.toml
	cat /tmp/err
	same "$what: the kernel has it" "$(cat /sys/class/net/$dev/queues/tx-0/xps_rxqs /sys/class/net/$dev/queues/tx-1/xps_rxqs | sed 's/^0*//' | tr '\n' ' ')" "1 3 "
	check "$what: show tells it" sh -c "ringwise show -j $dev 2>/dev/null | tr -d ' \n' | grep -q 'xps_rxqs.:{.known.:.0,1'"
	status "$what: nothing to do for XPS a second time" 0 ringwise plan $dev --config /tmp/xps.toml --exit-code
	sed -i 's/"0-1"/"0-99"/' /tmp/xps.toml
	status "$what: a receive queue that is not there is refused" 1 ringwise plan $dev --config /tmp/xps.toml
	says "$what: with its number" "99"
	status "$what: XPS back" 0 ringwise rollback --yes 0
	everything $dev >/tmp/after
	unchanged "$what: as before XPS" /tmp/before /tmp/after
done
