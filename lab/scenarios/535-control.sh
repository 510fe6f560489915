#!/bin/sh
# Over ssh on a VLAN on an 802.3ad bond: the control path is reported, cut only by force and on trial, and then member by
# member, so that the session survives. The last member that carries traffic is never interrupted.
# hosts: remote
# kernels: 6.12
# timeout: 600
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

export RINGWISE_STATE_DIR=/tmp/rw55
fewer="--queues 2 --allow-disruption"
channels() { ethtool -l $1 | awk '/^Combined/ { v = $2 } END { print v }'; }

# one NAME WANTED COMMAND...: like status, but the command is typed into the session
one() {
	_what=$1 _want=$2
	shift 2
	session_run one "RINGWISE_STATE_DIR=/tmp/rw55 /h/$*" >/tmp/out
	_got=$?
	: >/tmp/err
	if [ $_got = $_want ]; then
		ok "$_what"
	else
		not_ok "$_what" "status $_got, wanted $_want; $(tail -n 6 /tmp/out | tr '\n' ' ')"
	fi
}

check "a VLAN on a bond of two igb" bond_up
check "a session over it" session_open one
session_run one 'stty cols 400'
way="10.100.0.2 over bond0.100 -> bond0 -> eth0 eth1"
state eth0 eth1 eth2 >/tmp/before

# --- the kernel's files of a bond (the simulated host has the same)
same "bond: its mode" "$(cat /sys/class/net/bond0/bonding/mode)" "802.3ad 4"
same "bond: its members" "$(cat /sys/class/net/bond0/bonding/slaves)" "eth0 eth1"
b=/sys/class/net/bond0/bonding
for dev in eth0 eth1; do
	m=/sys/class/net/$dev/bonding_slave
	same "bond: $dev has link" "$(cat $m/mii_status)" up
	same "bond: $dev is in the aggregator in use" "$(cat $m/ad_aggregator_id)" "$(cat $b/ad_aggregator)"
	same "bond: $dev collects and distributes" "$(($(cat $m/ad_actor_oper_port_state) & 48)) $(($(cat $m/ad_partner_oper_port_state) & 48))" "48 48"
done

# --- reported
one "plan in the session" 0 ringwise plan eth0 eth1 $fewer
says "it names the session and its way" "Control path: your ssh session ($way)"
says "and the steps that would cut it" "would interrupt your ssh session ($way)"
session_run one "env -i RINGWISE_DEVICE_DEADLINE_MS=60000 /h/ringwise plan eth0 eth1 $fewer" >/tmp/out
says "it is found by its ancestors" "your ssh session ($way)"
status "plan from elsewhere" 0 ringwise plan eth0 eth1 $fewer
says "every session that sshd holds counts" "an ssh session ($way)"
session_run one "COLUMNS=200 setsid --fork /h/ringwise plan eth0 eth1 $fewer >/tmp/detached 2>&1"
wait_for 60 grep -q . /tmp/detached
check "as a detached process in the session" wait_for 60 grep -qF "ssh session ($way)" /tmp/detached
status "as a program reads it" 0 ringwise plan -j eth0 eth1 $fewer
says "the path" '"bond0.100"'

# --- refused
one "refused without --force and --confirm" 6 ringwise apply --yes eth0 eth1 $fewer
says "with the session and the way out" "--force and --confirm"
one "refused with --force alone" 6 ringwise apply --yes --force eth0 eth1 $fewer
state eth0 eth1 eth2 >/tmp/now
unchanged "nothing was touched" /tmp/before /tmp/now
check "no journal" sh -c '! ls /tmp/rw55/tx-* 2>/dev/null'
status "a device that is not on the way needs neither" 0 ringwise apply --yes eth2 $fewer
same "it has two queues" "$(channels eth2)" 2
status "and back" 0 ringwise rollback --yes 0
check "its link is back" wait_link eth2
one "what interrupts nothing needs neither" 0 ringwise apply --yes eth0 eth1
one "and back" 0 ringwise rollback --yes 0

# --- the default route
ip route add default via 10.2.0.2
status "plan with a default route" 0 ringwise plan eth2 $fewer
says "it is named" "the default route (10.2.0.2 over eth2)"
status "its device is refused, too" 6 ringwise apply --yes eth2 $fewer
ip route del default

# --- by force, member by member
# One file with both members, because a slow guest would otherwise mix two points in time.
(
	while :; do
		cat /proc/net/bonding/bond0
		echo END
	done >/tmp/watched
) &
watcher=$!
one "by force and on trial" 0 ringwise apply --yes --force --confirm 600s eth0 eth1 $fewer
cat /tmp/out
same "both have two queues" "$(channels eth0) $(channels eth1)" "2 2"
check "the session lives" session_alive one
one "kept" 0 ringwise confirm
kill $watcher
awk '/^Slave Interface:/ { dev = $3 }
	/^MII Status:/ { up[dev] = $3 == "up" }
	/^details actor/ { actor = 1 }
	/port state:/ { if (actor) carries[dev] = int($3 / 16) % 4 == 3; actor = 0 }
	/^END/ { n++; a = up["eth0"] && carries["eth0"]; b = up["eth1"] && carries["eth1"]
		if (!a) down0 = 1; if (!b) down1 = 1; if (!a && !b) both++; dev = "" }
	END { print down0 + 0, down1 + 0, both + 0, (n > 100 ? "" : "only " n " looks") }' /tmp/watched | sed 's/ *$//' >/tmp/sum
same "each member was out, and never both" "$(cat /tmp/sum)" "1 1 0"
check "the aggregate is whole" lacp_up

one "rolling back interrupts as well" 6 ringwise rollback --yes 0
one "by force and on trial" 0 ringwise rollback --yes --force --confirm 600s 0
one "kept" 0 ringwise confirm
check "the session lives" session_alive one
check "the aggregate is whole" wait_lacp
state eth0 eth1 eth2 >/tmp/after
unchanged "as before" /tmp/before /tmp/after

# --- the last member that carries traffic
status "a plan from before" 0 ringwise plan eth0 eth1 $fewer --out /tmp/p55
ip link set eth1 down
check "the other member loses its link" wait_for 60 sh -c '[ "$(cat /sys/class/net/eth1/bonding_slave/mii_status)" = down ]'
status "plan leaves it out" 0 ringwise plan eth0 $fewer
says "with the reason" "eth0 is the only member that carries traffic of bond0"
status "apply refuses it, whatever was given" 6 ringwise apply --yes --force --confirm 600s /tmp/p55
says "by name" "eth0 is the last member of bond0 that carries traffic"
check "the session lives" session_alive one
ip link set eth1 up
check "the aggregate is whole again" wait_lacp

session_close one
bond_down
