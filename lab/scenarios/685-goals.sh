#!/bin/sh
# The settings of each goal besides queues and CPUs: moderation, offloads, pause frames, wake-up time of CPUs; the settings that a
# driver does not support; and the rollback of all of it.
# hosts: router16 small2
# kernels: 6.12 newest
# timeout: 900
. /h/lib.sh
. /h/state.sh

cpu=/sys/devices/system/cpu
devs=$(awk '{ print $2 }' /h/nics | while read -r d; do [ -e /sys/class/net/$d ] && echo $d; done)
# moderation DEV: `ADAPTIVE-RX ADAPTIVE-TX RX-USECS TX-USECS`, a dash for what the driver does not have
moderation() {
	ethtool -c $1 2>/dev/null | awk '/^Adaptive/ { a = $3; b = $5 } /^rx-usecs:/ { r = $2 } /^tx-usecs:/ { t = $2 }
		END { print a, b, r, t }' | sed 's,n/a,-,g'
}
feature() {
	ethtool -k $1 | awk -v n="$2:" '$1 == n { print $2 }'
}
pause() {
	ethtool -a $1 | awk '$1 ~ /^(Autonegotiate|RX|TX):$/ { printf "%s ", $2 }'
}
all() {
	state $devs
	for _x in $devs; do
		ethtool -k $_x 2>/dev/null
		ethtool -a $_x 2>/dev/null
	done
	grep . $cpu/cpu*/power/pm_qos_resume_latency_us
}
# begin NAME DEV...: uses a state directory of its own, and records the state before.
begin() {
	name=$1
	shift
	on=$*
	RINGWISE_STATE_DIR=/tmp/rw68.$(echo $name | tr ' ' -)
	export RINGWISE_STATE_DIR
	links $devs >/dev/null
	all >/tmp/before
}
# goal WORDS...: it is applied, verify finds no difference, and nothing is left to do.
goal() {
	status "$name: apply" ${applies:-0} ringwise apply --yes --goal "$@" $on
	cat /tmp/out /tmp/err
	links $on >/dev/null
	status "$name: verify" 0 ringwise verify
	status "$name: nothing is left to do" 0 ringwise plan --exit-code --goal "$@" $on
	cat /tmp/out
}
back() {
	status "$name: rollback" 0 ringwise rollback --yes 0
	links $devs >/dev/null
	all >/tmp/after
	unchanged "$name: everything as before" /tmp/before /tmp/after
}
# queue_cpus DEV...: the CPUs on which their queues' interrupts may run
queue_cpus() {
	for _x in "$@"; do
		for _n in $(dev_irqs $_x); do
			look _a /sys/kernel/irq/$_n/actions
			case $_a in
			*TxRx-* | *rxtx-* | *-rx-* | *-tx-* | *input.* | *output.*) expand "$(cat /proc/irq/$_n/smp_affinity_list)" | tr ' ' '\n' | grep . ;;
			esac
		done
	done | sort -un
}
# awake WANTED DEV...: the CPUs with this limit are those of the queues
awake() {
	_want=$1
	shift
	queue_cpus "$@" >/tmp/cpus
	for _c in $(ls -d $cpu/cpu[0-9]* | sed 's,.*/cpu,,' | sort -n); do
		look _l $cpu/cpu$_c/power/pm_qos_resume_latency_us
		[ "$_l" = $_want ] && echo $_c
	done >/tmp/limited
	unchanged "$name: $_want us on the CPUs of the queues and no other" /tmp/cpus /tmp/limited
}

if [ $HOST = small2 ]; then
	# igb with an interrupt for each direction, and a driver that supports none of it.
	begin "stream" eth0 eth1
	goal stream
	same "stream: igb with two queues has both times" "$(moderation eth1)" "- - 62 122"
	ringwise plan --goal stream $on >/tmp/out 2>/tmp/err
	says "stream: virtio refuses, and the next plan says so" "refused before on this kernel (EOPNOTSUPP)"
	back
	begin "latency" eth0 eth1
	goal latency
	same "latency: igb has the least fixed times" "$(moderation eth1)" "- - 10 10"
	awake 5 eth0 eth1
	status "latency: and stream after it" 0 ringwise apply --yes --goal stream $on
	status "latency: then rpc" 0 ringwise apply --yes --goal rpc $on
	same "latency: igb adapts again by its own mode" "$(moderation eth1)" "- - 3 3"
	back
	exit 0
fi

# --- forward: changes that interrupt traffic need --allow-disruption
lro=$(awk '$3 == "vmxnet3" { print $2; exit }' /h/nics)
ethtool -K $lro lro on >/dev/null 2>&1
same "LRO: it is on to begin with" "$(feature $lro large-receive-offload)" on
begin "LRO" $lro
# Its driver refuses another number of queues.
n=$(ls -d /sys/class/net/$lro/queues/rx-* | wc -l)
status "LRO: without the word" 0 ringwise apply --yes --goal forward --queues $n $on
ringwise plan --goal forward --queues $n $on >/tmp/out 2>/tmp/err
cat /tmp/out
says "LRO: it is left out" "rx-lro on -> off"
says "LRO: with the command" "ringwise plan $lro --goal forward --queues $n --allow-disruption"
same "LRO: it is as it was" "$(feature $lro large-receive-offload)" on
goal forward --queues $n --allow-disruption
same "LRO: it is off" "$(feature $lro large-receive-offload)" off
same "LRO: GRO stays" "$(feature $lro generic-receive-offload)" on
back

# --- igb: one interrupt for both directions, or one for each
ethtool -C eth0 rx-usecs 20
same "igb: pairs tell no tx-usecs" "$(moderation eth0)" "- - 20 0"
# A table that names queues 4 to 7 would prevent the channel change.
ethtool -X eth0 default
ethtool -L eth0 combined 4
links eth0 >/dev/null
same "igb: tx-usecs begin with rx-usecs" "$(moderation eth0)" "- - 20 20"
ethtool -C eth0 tx-usecs 5 2>/dev/null
same "igb: of tx-usecs too" "$(moderation eth0)" "- - 20 20"
ethtool -C eth0 tx-usecs 122
ethtool -L eth0 combined 8
links eth0 >/dev/null
same "igb: pairs tell none after that either" "$(moderation eth0)" "- - 20 0"
ethtool -C eth0 rx-usecs 3
ethtool -X eth0 default 2>/dev/null

ethtool -A mq0 rx on tx on
begin "forward" eth0 eth3 mq0
status "forward: without the word" 0 ringwise apply --yes --goal forward $on
ringwise plan --goal forward $on >/tmp/out 2>/tmp/err
says "forward: pause frames are left out" "pause frames autoneg off rx on tx on -> rx off tx off"
same "forward: they are as they were" "$(pause mq0 | cut -d' ' -f2-)" "on on "
goal forward --allow-disruption
same "forward: no pause frames on mq0" "$(pause mq0)" "off off off "
same "forward: nor on igb" "$(pause eth0 | cut -d' ' -f2-)" "off off "
back
ethtool -A mq0 rx off tx off

# --- pause frames that the link partner decides too: off, and negotiated again after the rollback
ethtool -A eth0 autoneg on rx on tx on 2>/dev/null
links eth0 >/dev/null
echo "# igb with autonegotiation: $(pause eth0)"
begin "forward negotiated" eth0
goal forward --allow-disruption
same "forward: igb sends and heeds none" "$(pause eth0 | cut -d' ' -f2-)" "off off "
back
ethtool -A eth0 autoneg off rx off tx off 2>/dev/null
links eth0 >/dev/null

# --- rpc
ethtool -C eth0 rx-usecs 62
ethtool -C eth3 rx-usecs 62
begin "rpc" eth0 eth3 mq0
goal rpc
same "rpc: the test NIC adapts" "$(moderation mq0 | cut -d' ' -f1,2)" "on on"
same "rpc: igb by its own mode" "$(moderation eth0 | cut -d' ' -f3)" 3
same "rpc: e1000e too" "$(moderation eth3 | cut -d' ' -f3)" 3
back
ethtool -C eth0 rx-usecs 3
ethtool -C eth3 rx-usecs 3

# --- stream: adaptive moderation is switched off, offloads are switched on
ethtool -C mq0 adaptive-rx on adaptive-tx on
ethtool -K eth0 gro off tso off >/dev/null 2>&1
begin "stream" eth0 eth3 mq0
goal stream
same "stream: the test NIC waits" "$(moderation mq0)" "off off 62 122"
same "stream: every queue of it" "$(ethtool --per-queue mq0 queue_mask 0xff --show-coalesce 2>/dev/null | grep -c '^rx-usecs: 62')" 8
same "stream: igb with one interrupt for both" "$(moderation eth0 | cut -d' ' -f3)" 62
same "stream: e1000e" "$(moderation eth3 | cut -d' ' -f3)" 62
same "stream: GRO comes on" "$(feature eth0 generic-receive-offload)" on
same "stream: TSO not without the word" "$(feature eth0 tx-tcp-segmentation)" off
same "stream: show says the same" "$(ringwise show mq0 2>/dev/null | sed -n 's/^ *moderation  *//p' | head -1 | grep -c 'rx 62 us.*tx 122 us')" 1
goal stream --allow-disruption
same "stream: TSO with the word" "$(feature eth0 tx-tcp-segmentation)" on
back
ethtool -C mq0 adaptive-rx off adaptive-tx off
ethtool -K eth0 gro on tso on >/dev/null 2>&1

# --- latency, also after groups that left their values on single queues
begin "latency" eth0 eth3 mq0
status "latency: mixed before it" 0 ringwise apply --yes --goal mixed $on
goal latency
same "latency: the test NIC interrupts soon" "$(moderation mq0)" "off off 5 10"
same "latency: every queue of it" "$(ethtool --per-queue mq0 queue_mask 0xff --show-coalesce 2>/dev/null | grep -c '^rx-usecs: 5$')" 8
same "latency: igb takes nothing fixed below 10" "$(moderation eth0 | cut -d' ' -f3)" 10
same "latency: nor does e1000e" "$(moderation eth3 | cut -d' ' -f3)" 10
awake 5 $on
back

# --- a knob that the user has set
begin "own" mq0
status "own: apply" 0 ringwise apply --yes --goal latency --set mq0.coalesce.rx-usecs=20 --set 'host.cpu_latency={ "0-15" = 40 }' mq0
same "own: moderation is the user's" "$(moderation mq0 | cut -d' ' -f3)" 20
same "own: so is the wake-up time" "$(cat $cpu/cpu*/power/pm_qos_resume_latency_us | sort -u | tr '\n' ' ')" "40 "
back

# --- drivers that round and ignore
param=/sys/module/mqnic/parameters
echo 1 >$param/quirk_dev
echo 8 >$param/quirk
# The earlier value must be one that it can keep, so that it can be restored.
ethtool -C mq0 rx-usecs 48 tx-usecs 48
begin "rounds" mq0
goal stream
same "rounds: down to a multiple of 8" "$(moderation mq0 | cut -d' ' -f3,4)" "56 120"
back
echo 1 >$param/quirk
begin "ignores" mq0
goal rpc
ringwise plan --goal rpc mq0 >/tmp/out 2>/tmp/err
says "ignores: the next plan says so" "accepted before on this kernel, but without effect"
back
echo 0 >$param/quirk
ethtool -C mq0 rx-usecs 50 tx-usecs 50
echo -1 >$param/quirk_dev
true
