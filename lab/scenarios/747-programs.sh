#!/bin/sh
# check finds a busy program on the other hardware thread of an interrupt's core (A05), and a busy real-time program on the CPU itself (H21).
# verify compares a listening program with the CPUs that goal rpc proposes.
# hosts: router16 remote
# kernels: 6.12
# areas: check
# timeout: 300
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw747

case $HOST in
router16) src=mq1 dst=mq0 both="mq0 mq1" ;;
*) src=far0 dst=eth0 both=eth0 ;;
esac
# Only these two interfaces are up. The others come up again at the end, because later scenarios need them.
downed=
for d in $(awk '{ print $2 }' /h/nics); do
	case " $src $dst " in
	*" $d "*) ip link set $d up ;;
	*)
		case "$(ip link show $d 2>/dev/null)" in
		*,UP[,\>]*)
			ip link set $d down
			downed="$downed $d"
			;;
		esac
		;;
	esac
done
wait_link $src
wait_link $dst

# Sources at random, so that every queue of the receiver has packets.
stream() {
	modprobe pktgen
	_pg_empty
	_pg kpktgend_0 "add_device $src"
	for _w in "count 0" "clone_skb 0" "pkt_size 60" "delay 0" "dst 10.1.1.1" "dst_mac $(cat /sys/class/net/$dst/address)" \
		"src_min 10.9.0.1" "src_max 10.9.3.250" "flag IPSRC_RND" "ratep 4000"; do
		_pg $src "$_w"
	done
	echo start >/proc/net/pktgen/pgctrl
}

# busy CPU [COMMAND…]: a program that never sleeps, until idle; its number is $busy
busy() {
	_cpu=$1
	shift
	taskset $(printf %x $((1 << _cpu))) "$@" sh -c 'while :; do :; done' &
	busy=$!
	sleep 1
}
idle() {
	kill $busy
	wait $busy 2>/dev/null
}

# judged: /tmp/c.json has the findings while the stream and the program run
judged() {
	ringwise check -j --for 3s --fail-on never >/tmp/c.json 2>/tmp/err || cat /tmp/err
}
# has RULE: it has a finding about the busy program
has() {
	grep -q "\"rule\": \"$1\"" /tmp/c.json && grep -q "\"tid\": $busy\b" /tmp/c.json
}
hasnt() {
	grep -q '"schema": "ringwise.check"' /tmp/c.json && ! grep -q "\"rule\": \"$1\"" /tmp/c.json
}

status "the queues use two CPUs" 0 ringwise apply --yes --cpus 0,2 $both
stream >/tmp/stream.log 2>&1 &
sleep 2

judged
check "without a busy program: no A05" hasnt A05
check "and no H21" hasnt H21

if [ $HOST = router16 ]; then
	busy 1
	judged
	check "a program on the other thread of the core: A05" has A05
	check "the recommended CPUs are on cores without interrupts" grep -q "taskset -pc [4-7][4-7,-]* $busy" /tmp/c.json
	idle
	busy 4
	judged
	check "on a core without interrupts: none" hasnt A05
	idle
else
	busy 2 chrt -f 10
	judged
	check "a real-time program on a CPU of interrupts: H21" has H21
	check "the command keeps interrupts off this CPU" grep -q "exclude-cpus 2" /tmp/c.json
	idle
	busy 2
	judged
	check "with a normal policy: none" hasnt H21
	idle
	busy 1 chrt -f 10
	judged
	check "on another CPU: none" hasnt H21
	idle
fi
echo stop >/proc/net/pktgen/pgctrl
wait
cat /tmp/stream.log
status "everything is put back" 0 ringwise rollback --yes 0

if [ $HOST = router16 ]; then
	export RINGWISE_STATE_DIR=/tmp/rw747-rpc
	# busybox chooses what it does by the name of its file.
	ln -sf "$(readlink -f /bin/busybox)" /tmp/nc
	status "goal rpc" 0 ringwise apply --yes --goal rpc $dst
	/tmp/nc -l -p 7000 </dev/null >/dev/null 2>&1 &
	listener=$!
	sleep 1
	status "verify with a program on every CPU: no finding" 0 ringwise verify
	grep "^ *nc (pid $listener) may run on" /tmp/out >/tmp/line
	check "it shows the program and the proposed CPUs" grep -q "proposed for $dst: [0-9]" /tmp/line
	cpus=$(sed 's/.*proposed for '$dst': \([0-9,-]*\).*/\1/' /tmp/line)
	taskset -p -c "$cpus" $listener >/dev/null
	status "verify with the program on these CPUs" 0 ringwise verify
	check "it is as proposed" grep -q "nc (pid $listener) may run on CPUs* $cpus only, as proposed" /tmp/out
	ringwise verify -j | tr -d ' \n' | sed 's/"allowed"/\n&/g' | grep -F "\"pids\":[$listener]" >/tmp/line
	check "and in the document" grep -q '"as_proposed":true' /tmp/line
	kill $listener
	wait $listener 2>/dev/null
	status "without the program" 0 ringwise verify
	check "there is no line about it" sh -c '! grep -q "(pid $0)" /tmp/out' $listener
	status "goal rpc is put back" 0 ringwise rollback --yes 0
fi
for d in $downed; do
	ip link set $d up
done
for d in $downed; do
	check "$d is up again" wait_link $d
done
