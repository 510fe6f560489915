#!/bin/sh
# The cost model charges what it promises: one CPU, six, two threads of a core, a remote node, RPS, segments, programs.
# hosts: router16
# kernels: 5.10 6.1 6.12 newest
# timeout: 240
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/cost-model.sh

# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
# The generator and this script have CPUs that are never charged: cores 6 and 7.
PG_CPU=14
taskset -p 1000 $$ >/dev/null
PACKET=3000000 FAR=100 POLL=0 SECONDS_EACH=2
modprobe pktgen
for dev in mq0 mq1 eth2 eth3; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
	wait_link $dev
done
same "two threads of a core are CPUs 0 and 1" "$(cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list)" 0-1

# near NAME GOT WANTED
near() {
	if is_near $2 $3; then
		ok "$1: $2 of $3"
	else
		not_ok "$1" "got $2, expected $3 within 10 %"
	fi
}

many="src_min 10.9.0.1"
many_to="src_max 10.9.3.250"

# place DEV CPU...: moves queue 0 to the first CPU, queue 1 to the second; packets go to these queues alone
place() {
	_dev=$1
	shift
	[ $_dev = mq0 ] && ethtool -X mq0 equal $#
	_q=0
	for _cpu in "$@"; do
		echo $_cpu >/proc/irq/$(irq_of ${_dev}-TxRx-$_q)/smp_affinity_list
		_q=$((_q + 1))
	done
}

# rate NAME WANTED [COLUMN]: what is charged per second. A guest that gets no CPU is late: it is measured again, and each attempt
# is printed.
rate() {
	for _try in 1 2 3; do
		_got=$(charged_rate $SECONDS_EACH ${3:-packets})
		is_near $_got $2 && break
		[ $_try = 3 ] || echo "$1: $_got of $2, measured again"
	done
	near "$1" $_got $2
}

# cost: sets the cost of a packet. Before that, packets are sent that cost nothing, because an interrupt moves to its new CPU only
# when it is raised, and a queue that is never empty raises none.
cost() {
	cost_on $PACKET $FAR
	echo $POLL >/sys/module/mqnic/parameters/poll_ns
	sleep 0.5
}
# used: the CPUs that were charged
used() {
	awk '$1 ~ /^[0-9]+$/ && $2 + $4 { printf "%s%d", s, $1; s = " " }' /proc/labcost
}

check "the module loads" cost_load mq0 eth3
same "the cost is off" "$(cat $COST/packet_ns)" 0
same "a cost above 100 ms" "$(errno_of 100000001 $COST/packet_ns)" "Invalid argument"
same "a factor below 100 %" "$(errno_of 99 $COST/far_percent)" "Invalid argument"
same "an occupation above 100 ms" "$(errno_of 100001 /dev/labcost)" "Invalid argument"
same "the interfaces that are charged" "$(cat $COST/devices)" "mq0,eth3"

for irq in $(irqs mq1 | cut -d' ' -f1); do
	echo $PG_CPU >/proc/irq/$irq/smp_affinity_list
done

# --- packets
place mq0 2
send mq1 mq0 600 "dst 10.1.1.1" "$many" "$many_to" "flag IPSRC_RND"
cost
rate "one CPU, packets/s" 333.3
same "one CPU: which" "$(used)" 2
same "one CPU: its factors" "$(charged sibling) $(charged far)" "0 0"
# All values are from one reading, because time passes between two.
set -- $(awk '$1 == "elapsed_ns" { t = $2 / 1e6 } $1 == 2 { printf "%.0f %.0f", $8 / 1e6, t }' /proc/labcost)
near "one CPU: the time charged, ms" $1 $2
echo eth3 >$COST/devices
cost_reset
sleep 0.5
same "an interface without a cost" "$(charged)" 0
echo mq0,eth3 >$COST/devices
send_end

place mq0 8
send mq1 mq0 500 "dst 10.1.1.1" "$many" "$many_to" "flag IPSRC_RND"
FAR=130
cost
rate "a remote node at 130 %, packets/s" 256.4
same "a remote node: which CPU" "$(used)" 8
send_end

place mq0 2 3
send mq1 mq0 900 "dst 10.1.1.1" "$many" "$many_to" "flag IPSRC_RND"
FAR=100
cost
rate "two threads of a core, packets/s" 444.4
same "two threads: which CPUs" "$(used)" "2 3"
send_end

place mq0 0 2 4 6 8 10
send mq1 mq0 1800 "dst 10.1.1.1" "$many" "$many_to" "flag IPSRC_RND"
PACKET=6000000
cost
rate "six CPUs, 6 ms, packets/s" 1000
same "six CPUs: which" "$(used)" "0 2 4 6 8 10"
send_end

echo 0 >/proc/sys/net/ipv6/conf/mq0/disable_ipv6
place mq0 4
send mq1 mq0 600 "dst6 fd00::2" "src6 fd00::1"
PACKET=3000000
cost
rate "IPv6, packets/s" 333.3
send_end
echo 1 >/proc/sys/net/ipv6/conf/mq0/disable_ipv6

# --- RPS: a NIC with one queue
rps=/sys/class/net/eth3/queues/rx-0/rps_cpus
old_rps=$(cat $rps)
echo 0055 >$rps
send eth2 eth3 1200 "dst 10.1.1.1" "$many" "$many_to" "flag IPSRC_RND"
PACKET=6000000
cost
rate "RPS to four CPUs, 6 ms, packets/s" 666.7
same "RPS: which CPUs" "$(used)" "0 2 4 6"
send_end
echo $old_rps >$rps

# --- the driver's poll
place mq0 2
send mq1 mq0 900 "dst 10.1.1.1" "$many" "$many_to" "flag IPSRC_RND"
PACKET=1000000 POLL=2000000
cost
rate "2 ms in the poll and 1 ms behind it, packets/s" 333.3 polled
set -- $(awk '$1 ~ /^[0-9]+$/ { p += $2; q += $4 } END { print p, q }' /proc/labcost)
near "both are charged" $1 $2
echo 0010 >/sys/class/net/mq0/queues/rx-0/rps_cpus
rate "the second part on another CPU by RPS, packets/s" 500 polled
same "the poll and RPS: which CPUs" "$(used)" "2 4"
echo 0 >/sys/class/net/mq0/queues/rx-0/rps_cpus
same "mqnic holds the module" "$(rmmod labcost 2>&1 | grep -c -i -e temporarily -e 'in use' -e busy)" 1
send_end
POLL=0
same "no cost" "$(cat /sys/module/mqnic/parameters/poll_ns $COST/packet_ns | tr '\n' ' ')" "0 0 "

# --- programs: writes to the device file
# occupy CPU USECS: occupies the CPU again and again, until occupy_end
occupy() {
	taskset $(printf %x $((1 << $1))) sh -c "while echo $2; do :; done >/dev/labcost" &
	programs="$programs $!"
}
occupy_end() {
	kill $programs
	wait $programs 2>/dev/null
	programs=
}

# writes_took: milliseconds for 40 writes of 25 ms, without starting a process in between
writes_took() {
	taskset 4 sh -c 'i=0; echo 0 >/proc/labcost
		while [ $i -lt 40 ]; do echo 25000; i=$((i + 1)); done >/dev/labcost
		read -r _ ns </proc/labcost; echo ${ns%??????}'
}
for try in 1 2 3; do
	took=$(writes_took)
	is_near $took 1000 && break
	[ $try = 3 ] || echo "40 writes of 25 ms: $took ms, measured again"
done
near "40 writes of 25 ms, ms" $took 1000
same "40 writes: counted" "$(charged writes) $(charged writes 2) $(charged ns)" "40 40 1000000000"
occupy 2 20000
sleep 0.5
rate "a program that writes 20 ms, writes/s" 50 writes
occupy 2 20000
sleep 0.5
rate "two programs on one CPU, writes/s" 50 writes
occupy_end
occupy 2 20000
occupy 3 20000
sleep 0.5
rate "two programs on two threads of a core, writes/s" 66.7 writes
occupy_end
place mq0 2
send mq1 mq0 100 "dst 10.1.1.1" "$many" "$many_to" "flag IPSRC_RND"
PACKET=5000000
cost
occupy 2 20000
sleep 0.5
rate "a program beside packets that take half of its CPU, charged together, ns/s" 1000000000 ns
check "both have their share: $(charged ns) ns, $(charged writes) writes" [ $(charged writes) -gt 35 -a $(charged) -gt 140 ]
occupy_end
send_end

# --- segments: a buffer that TSO joined costs as much as its packets
mkdir -p /var/run
ip netns add far
ip link set mq1 netns far
ip -n far addr add 10.7.0.2/24 dev mq1
ip -n far link set mq1 up
ip addr add 10.7.0.1/24 dev mq0
wait_link mq0
cost_on 200000 100 100
cost_reset
# At the end of its input the reader would close its side at once.
mkfifo /tmp/t.open
exec 7<>/tmp/t.open
nc -l -p 5001 <&7 >/dev/null &
reader=$!
for _ in $(seq 50); do
	grep -q ":1389 .* 0A " /proc/net/tcp /proc/net/tcp6 && break
	sleep 0.1
done
dd if=/dev/zero bs=1k count=500 2>/dev/null | ip netns exec far nc -w 20 10.7.0.1 5001
kill $reader 2>/dev/null
wait $reader
cost_off
packets=$(charged) segments=$(charged segments)
check "$segments segments came in $packets packets" [ $segments -gt $((packets + 20)) ]
same "each segment is charged" "$(charged ns)" $((segments * 200000))
ip addr flush dev mq0
ip -n far link set mq1 netns 1
ip netns del far
ip link set mq1 up
wait_link mq0

place mq0 2
send mq1 mq0 600 "dst 10.1.1.1" "$many" "$many_to" "flag IPSRC_RND"
PACKET=3000000
cost
cost_reset
sleep 0.5
check "packets are being charged" [ $(charged) -gt 50 ]
check "the module unloads in the meantime" rmmod labcost
echo stop >/proc/net/pktgen/pgctrl
wait $sender
for dev in mq0 mq1 eth2 eth3; do
	echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done
ethtool -X mq0 default
