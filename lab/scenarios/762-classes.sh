#!/bin/sh
# Traffic classes of mqprio: their queues are shown, the plan gives each CPU one queue in each class, and `explain` predicts no single
# queue for a packet whose priority is unknown. The kernel's own files say to which class a queue belongs.
# hosts: router16
# kernels: 6.12
# timeout: 600
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw762
# The shell would use its built-in ones.
ip() { /usr/bin/ip "$@"; }
tc() { /usr/bin/tc "$@"; }
modprobe sch_mqprio
links mq0 mq1
echo 1 >/proc/sys/net/ipv6/conf/mq0/disable_ipv6
Q=/sys/class/net/mq0/queues

# classes: the class of each transmit queue, according to the kernel
classes() { cat $Q/tx-*/traffic_class 2>/dev/null | tr '\n' ' '; }
# mqprio RANGE...: three classes with these queues
mqprio() {
	# mqprio cannot be changed in place. The kernel's own root discipline cannot be removed.
	# shellcheck disable=SC2317 # called by check
	tc qdisc del dev mq0 root 2>/dev/null
	# shellcheck disable=SC2317 # called by check
	tc qdisc add dev mq0 root handle 100: mqprio num_tc 3 map 0 0 0 0 1 1 1 1 2 2 2 2 2 2 2 2 queues "$@" hw 0
}

check "mqprio" mqprio 2@0 2@2 4@4
same "the classes according to the kernel" "$(classes)" "0 0 1 1 2 2 2 2 "
ringwise show -v mq0 >/tmp/out 2>/tmp/err
says "show -v: class 0" "0: tx 0-1 (priority 0-3)"
says "show -v: class 1" "1: tx 2-3 (priority 4-7)"
says "show -v: class 2" "2: tx 4-7 (priority 8-15)"
ringwise check mq0 -j --fail-on never >/tmp/out 2>/tmp/err
says "F19 names the queues" "(0: tx 0-1, 1: tx 2-3, 2: tx 4-7)"

# --- every CPU has one queue in each class
state mq0 >/tmp/before
status "apply" 0 ringwise apply --yes mq0 --config none
# covers FIRST LAST: the union of the masks, and their sum, which is larger if a CPU is in several
covers() {
	_union=0 _sum=0
	for _q in $(seq $1 $2); do
		_mask=$((0x$(cat $Q/tx-$_q/xps_cpus)))
		_union=$((_union | _mask)) _sum=$((_sum + _mask))
	done
	printf '%x %x' $_union $_sum
}
for range in "0 1" "2 3" "4 7"; do
	same "queues $range: every CPU once" "$(covers $range)" "ffff ffff"
done
status "verify" 0 ringwise verify

# --- sent from CPU 5 with priority 0: class 0
ip addr add 10.7.0.1/24 dev mq0
ip neigh replace 10.7.0.2 lladdr 02:00:00:00:00:99 nud permanent dev mq0
mkfifo /tmp/go
exec 8<>/tmp/go
: >/tmp/sent
taskset 20 datagrams 4005 10.7.0.2 10000 500 </tmp/go >/tmp/sent &
program=$!
for _ in $(seq 100); do
	grep -q ":0FA5 " /proc/net/udp && break
	sleep 0.1
done
# queue_of FIRST LAST: the queue whose mask has CPU 5
queue_of() {
	for _q in $(seq $1 $2); do
		[ $((0x$(cat $Q/tx-$_q/xps_cpus) & 0x20)) != 0 ] && echo $_q
	done
}
want="$(queue_of 0 1) $(queue_of 2 3) $(queue_of 4 7)"
ringwise explain 10.7.0.1:4005-10.7.0.2:10000/udp -j 2>/tmp/err | tr -d ' \n' >/tmp/doc
check "explain: the class decides" grep -q '"decision":"traffic_class"' /tmp/doc
same "explain: one queue of each class" "$(sed 's/.*"sending":{//; s/"why_not".*//; s/.*"may_be":\[\([0-9,]*\)\].*/\1/' /tmp/doc | tr , ' ')" "$want"
# sent_by: packets of each transmit queue
sent_by() { ethtool -S mq0 | awk '/tx_queue_[0-9]+_packets/ { print $2 }'; }
sent_by >/tmp/sent.before
echo >&8
for _ in $(seq 200); do
	grep -q sent /tmp/sent && break
	sleep 0.1
done
sent_by >/tmp/sent.after
same "counted: the queue of class 0 alone" "$(paste /tmp/sent.before /tmp/sent.after | awk '$1 != $2 { print NR - 1, $2 - $1 }')" "${want%% *} 500"
kill $program
wait $program 2>/dev/null
exec 8>&-
ip neigh del 10.7.0.2 dev mq0
ip addr flush dev mq0

# --- fewer queues than the classes have
ringwise plan mq0 --config none --allow-disruption --set mq0.channels.combined=4 >/tmp/out 2>/tmp/err
says "fewer queues: the plan refuses XPS" "its traffic classes need 8 transmit queues"
status "rollback" 0 ringwise rollback --yes 0
state mq0 >/tmp/after
unchanged "rolled back, the device is as before" /tmp/before /tmp/after

# --- a queue that belongs to no class accepts no mask, and the plan has none for it
check "mqprio without the last queue" mqprio 2@0 2@2 3@4
same "the kernel refuses its mask" "$(errno_of 1 $Q/tx-7/xps_cpus)" "Invalid argument"
ringwise plan mq0 --config none -j >/tmp/doc 2>/tmp/err
tr -d ' \n' </tmp/doc | grep -o '"knob":"xps_cpus","dev":"mq0","queue":[0-9]*' | sort -u >/tmp/masks
sed 's/^/# /' /tmp/masks
check "the plan has masks of other queues" grep -q '"queue":6$' /tmp/masks
check "the plan has no mask of this queue" sh -c '! grep -q "\"queue\":7$" /tmp/masks'

tc qdisc del dev mq0 root
ringwise show -v mq0 >/tmp/out 2>/tmp/err
check "without mqprio no classes are shown" sh -c '! grep -q "tx 0-1 (priority" /tmp/out'
echo 0 >/proc/sys/net/ipv6/conf/mq0/disable_ipv6
exit 0
