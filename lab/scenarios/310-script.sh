#!/bin/sh
# The shell script of a plan configures the same state as apply, and the undo of the script restores the first state: for the CPUs
# of queues, and for the settings of ethtool, files and sysctls. The script does not rely on ethtool's exit status, or on its presence.
# hosts: router16 small2
# kernels: 6.12
# timeout: 1800
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw31

devs=$(awk '{ print $2 }' /h/nics)
links $devs
state $devs >/tmp/before
# First learn what cannot be moved: a script refuses as a whole what apply would report and skip.
# If the kernel places interrupts itself, some settings stay refused (status 3).
ringwise apply --yes >/tmp/out 2>/tmp/err
rc=$?
check "apply, to learn (status $rc)" [ $rc = 0 -o $rc = 3 ]
status "and back" 0 ringwise rollback --yes 0
ringwise plan -o sh >/tmp/plan.sh 2>/tmp/err
same "plan -o sh" "$?" 0
status "the script applies" 0 sh /tmp/plan.sh apply
state $devs >/tmp/by-script
status "the script undoes" 0 sh /tmp/plan.sh undo
state $devs >/tmp/after
unchanged "undone, the host is as before" /tmp/before /tmp/after
status "apply" 0 ringwise apply --yes
state $devs >/tmp/by-apply
unchanged "script and apply end in the same state" /tmp/by-script /tmp/by-apply
if cmp -s /tmp/before /tmp/by-apply; then
	not_ok "there was something to do" "the plan was empty"
else
	ok "there was something to do"
fi
status "rollback" 0 ringwise rollback --yes 0
state $devs >/tmp/after
unchanged "rolled back" /tmp/before /tmp/after

# --- settings of ethtool, files and sysctls
# more DEV...: the settings that `state` does not show.
more() {
	state "$@"
	for _m in "$@"; do
		ethtool -k $_m 2>/dev/null | sed 's/ \[fixed\]//'
		ethtool -a $_m 2>/dev/null
		ethtool -c $_m 2>/dev/null
		ethtool -x $_m 2>&1
		ethtool -x $_m context 1 2>&1
		ethtool -n $_m 2>&1
		for _f in tcp4 udp4; do ethtool -n $_m rx-flow-hash $_f 2>&1; done
		ethtool --per-queue $_m queue_mask 0xf --show-coalesce 2>&1
		grep . /sys/class/net/$_m/napi_defer_hard_irqs /sys/class/net/$_m/gro_flush_timeout
	done
	grep . /proc/sys/net/core/netdev_budget* /proc/sys/net/core/flow_limit_cpu_bitmap \
		/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us
}
# both TITLE DEV FILE: by script and its undo, by apply and rollback
both() {
	links $2
	more $2 >/tmp/before
	ringwise plan $2 -o sh --config $3 --allow-disruption >/tmp/plan.sh 2>/tmp/err
	same "$1: plan -o sh" "$?$(cat /tmp/err)" 0
	status "$1: the script applies" 0 sh /tmp/plan.sh apply
	cat /tmp/out /tmp/err
	links $2
	more $2 >/tmp/by-script
	status "$1: a second time there is nothing to do" 0 sh /tmp/plan.sh apply
	says "$1: and that is said" "nothing to do"
	status "$1: the script undoes" 0 sh /tmp/plan.sh undo
	cat /tmp/err
	links $2
	more $2 >/tmp/after
	unchanged "$1: undone, all is as before" /tmp/before /tmp/after
	status "$1: apply" 0 ringwise apply --yes $2 --config $3 --allow-disruption
	links $2
	more $2 >/tmp/by-apply
	unchanged "$1: script and apply end in the same state" /tmp/by-script /tmp/by-apply
	status "$1: rollback" 0 ringwise rollback --yes 0
	links $2
	more $2 >/tmp/after
	unchanged "$1: rolled back" /tmp/before /tmp/after
}
igb=$(awk '$3 == "igb" { print $2; exit }' /h/nics)
export RINGWISE_STATE_DIR=/tmp/rw31.igb
cat >/tmp/igb.toml <<END
version = 1
[host]
sysctl = { "net.core.netdev_budget" = 600, "net.core.flow_limit_cpu_bitmap" = "3" }
cpu_latency = { "0" = 20 }
[[interface]]
match = { name = "$igb" }
features = { gro = false, tx-checksum-ip-generic = false }
pause = { autoneg = false, rx = false, tx = false }
rings = { rx = 500, tx = 512 }
coalesce = { rx-usecs = 33 }
napi = { defer_hard_irqs = 2, gro_flush_timeout_ns = 20000 }
rss = { table = "weight 3 1", fields = { udp4 = "sdfn" } }
END
both "$igb" $igb /tmp/igb.toml
check "$igb: something of each kind was changed" sh -c "
	grep -q 'generic-receive-offload: off' /tmp/by-apply && grep -q 'Autonegotiate:.*off' /tmp/by-apply &&
	grep -q 'rx-usecs:.*33' /tmp/by-apply && grep -q '^rings.* RX: 504 ' /tmp/by-apply && grep -q 'netdev_budget:600' /tmp/by-apply &&
	grep -q 'defer_hard_irqs:2' /tmp/by-apply && grep -q 'us:20' /tmp/by-apply"

# --- without ethtool
mkdir -p /tmp/bare
for t in sh cat echo sed awk grep; do ln -sf /bin/busybox /tmp/bare/$t; done
more $igb >/tmp/before
status "without ethtool nothing is touched" 6 env PATH=/tmp/bare /tmp/bare/sh /tmp/plan.sh apply
says "and it says so" "ethtool is needed"

[ -e /sys/class/net/mq1 ] || exit 0
# --- the test NIC: queues by themselves, key, context, rules, fewer queues
ip link set mq0 up
ip link set mq1 up
links mq0 mq1
echo -1 >/sys/module/mqnic/parameters/quirk_dev
context='context = { 1 = "equal 2 start 2" },'
cat >/tmp/mq.toml <<END
version = 1
[[interface]]
match = { name = "mq1" }
channels = 4
features = { ntuple = true }
coalesce = [{ rx-usecs = 40, adaptive-rx = false }, { queues = [1, 2], rx-usecs = 16, tx-usecs = 24 }]
rss = { table = "weight 1 2 1 0", $context fields = { udp4 = "sdfn" } }
[[interface.rule]]
flow = "udp4 dst-port 9 action 3"
[[interface.rule]]
flow = "tcp4 src-ip 10.0.0.0/8 dst-port 443 action 2"
location = 9
END
export RINGWISE_STATE_DIR=/tmp/rw31.mq
both mq1 mq1 /tmp/mq.toml
same "mq1: four queues, two rules" "$(awk '/^Total/ { r = $2 } /^channels/ { c = $NF } END { print c, r }' /tmp/by-apply)" "4 2"
# Existing rules are removed, and the undo restores them; they name queues that are removed too.
ethtool -K mq1 ntuple on
ethtool -N mq1 flow-type udp4 dst-port 9 action 7 loc 0 >/dev/null
ethtool -N mq1 flow-type tcp6 dst-ip 2001:db8::1 dst-port 80 action -1 loc 63 >/dev/null
ethtool -X mq1 equal 3 start 5
ethtool -X mq1 context new equal 2 start 6 >/dev/null
ethtool --per-queue mq1 queue_mask 0x2 --coalesce rx-usecs 8 >/dev/null
sed -i 's/^flow = "udp4.*/&\nlocation = 0/' /tmp/mq.toml
export RINGWISE_STATE_DIR=/tmp/rw31.mq2
both "mq1 in use" mq1 /tmp/mq.toml
check "mq1 in use: what there was names queues that go" grep -q 'queue 7' /tmp/before

# --- accepted and not done, and a driver that chooses locations
echo 1 >/sys/module/mqnic/parameters/quirk
more mq1 >/tmp/before
ringwise plan mq1 -o sh --config /tmp/mq.toml --allow-disruption >/tmp/plan.sh 2>/tmp/err
status "moderation that is accepted and not done: put back" 4 sh /tmp/plan.sh apply
says "and it is said" "ethtool accepted it, but reads back another value"
more mq1 >/tmp/after
unchanged "all is as before" /tmp/before /tmp/after
echo 524288 >/sys/module/mqnic/parameters/quirk
ethtool -K mq1 ntuple off
ethtool -K mq1 ntuple on
ethtool -X mq1 context 1 delete >/dev/null 2>&1
ethtool -X mq1 default
sed '/^location/d' /tmp/mq.toml >/tmp/any.toml
export RINGWISE_STATE_DIR=/tmp/rw31.any
both "a driver that chooses places" mq1 /tmp/any.toml
echo 0 >/sys/module/mqnic/parameters/quirk
ethtool -K mq1 ntuple off
