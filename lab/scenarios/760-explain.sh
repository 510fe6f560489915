#!/bin/sh
# `ringwise explain`: for thousands of random flows it predicts the queue on which the packet arrives,
# and the CPU. `lands` sends one packet of each and learns from the kernel, packet by packet, where it arrived (lab/tools/lands.c).
# hosts: router16 small2
# kernels: 6.12 newest
# areas: flow
# timeout: 1200
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw76
# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }

# said DEV [WORDS]: writes predictions for /tmp/flows to /tmp/said
said() {
	_dev=$1
	shift
	ringwise explain - $_dev --plain "$@" </tmp/flows 2>/tmp/err | grep -v '^#' >/tmp/said
	cat /tmp/err
}
# agree COLUMN: `RIGHT right, WRONG wrong, UNKNOWN unknown, LOST lost` of /tmp/said against /tmp/came
agree() {
	awk -v c=$1 'NR == FNR { q[$1] = $c; next }
		$2 == "lost" || $2 == "none" { lost++; next }
		q[$1] == "unknown" { unknown++; next }
		q[$1] == $2 { right++; next }
		{ wrong++; if (wrong < 6) print "# " $1 ": said " q[$1] ", came by " $2 >"/dev/stderr" }
		END { printf "%d right, %d wrong, %d unknown, %d lost\n", right, wrong, unknown, lost }' /tmp/said /tmp/came
}
# queues NAME SEED COUNT RECV SEND QUEUES [MAC]: new flows, their prediction, and packets
queues() {
	lands -g $2 $3 >/tmp/flows
	said $4
	lands $5 $4 $6 $7 </tmp/flows >/tmp/came
	same "$1: $3 flows" "$(agree 2)" "$3 right, 0 wrong, 0 unknown, 0 lost"
	check "$1: over more than one queue" [ "$(awk '{ print $2 }' /tmp/came | sort -u | wc -l)" -gt 1 ]
}

case $HOST in
small2)
	# The tap sends back packets for its own address (lab/tap.sh).
	queues "virtio-net" 1 10000 eth0 eth0 2 02:6c:61:62:00:fe
	check "the hash comes from the device's own key" sh -c "ringwise explain 10.0.0.1:5-192.0.2.1:80/tcp eth0 | grep -q \"the device's key\""
	exit 0
	;;
esac

links eth0 eth1 mq0 mq1
for dev in eth0 eth1 mq0 mq1; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done

# --- igb: the key is that of the host
queues "igb" 1 10000 eth0 eth1 8
ringwise explain 10.0.0.1:5-192.0.2.1:80/tcp eth0 >/tmp/out 2>/tmp/err
case $KERNEL in
6.12) says "igb: the key is the host's" "net.core.netdev_rss_key" ;;
esac
ethtool -N eth0 rx-flow-hash udp4 sdfn && ethtool -N eth0 rx-flow-hash udp6 sdfn
queues "igb, UDP with ports" 2 1500 eth0 eth1 8
ethtool -N eth0 rx-flow-hash udp4 sd && ethtool -N eth0 rx-flow-hash udp6 sd
ethtool -X eth0 weight 1 2 3 4 0 0 1 1
queues "igb, a table by weights" 3 1000 eth0 eth1 8
ethtool -X eth0 default
# Other numbers of queues: the driver assigns its entries in blocks again.
lands -g 10 600 >/tmp/flows
said eth0 --what-if channels.combined=4
ethtool -L eth0 combined 4
wait_link eth0
lands eth1 eth0 8 </tmp/flows >/tmp/came
same "igb, what if it had four queues" "$(agree 2)" "600 right, 0 wrong, 0 unknown, 0 lost"
ethtool -L eth0 combined 8
wait_link eth0

# --- vmxnet3 in QEMU accepts a table and puts everything on queue 0
links eth2 eth3
lands -g 11 1000 >/tmp/flows
# Several packets share an interrupt: more are sent until there are enough to judge.
for _ in $(seq 20); do
	lands eth3 eth2 16 </tmp/flows >/tmp/came
	[ "$(irq_counts $(irq_of eth2-rxtx-0) | awk '{ for (i = 1; i <= NF; i++) s += $i; print s }')" -gt 300 ] && break
done
same "vmxnet3: one queue gets all" "$(awk '$2 != "lost" { print $2 }' /tmp/came | sort -u | tr '\n' ' ')" "0 "
echo "# interrupts: $(irqs eth2 | while read -r n name; do echo $name $(irq_counts $n | awk '{ for (i = 1; i <= NF; i++) s += $i; print s }'); done | tr '\n' ' ')"
ringwise explain 10.0.0.1:5-192.0.2.1:80/tcp eth2 >/tmp/out 2>/tmp/err
sed 's/^/# /' /tmp/out | head -12
says "vmxnet3: it is said" "ignores its table"

# --- the test NIC
queues "test NIC" 4 10000 mq0 mq1 8
for d in mq0 mq1; do ethtool -N $d rx-flow-hash udp4 sdfn; done
check "symmetric-xor" sh -c "ringwise apply --yes mq0 --config none --set mq0.rss.symmetric=symmetric-xor --set 'mq0.rss.table=\"equal 8\"' >/tmp/out 2>&1"
queues "test NIC, symmetric-xor" 5 1000 mq0 mq1 8
ringwise rollback --yes 0 >/tmp/out 2>&1
ethtool -K mq0 ntuple on
ethtool -N mq0 flow-type tcp4 dst-port 80 m 0xfff0 action 3 >/dev/null
ethtool -N mq0 flow-type udp6 action 5 >/dev/null
ethtool -X mq0 context new equal 2 start 6 >/dev/null
ethtool -N mq0 flow-type ip4 l4proto 50 context 1 >/dev/null
lands -g 6 1500 >/tmp/flows
said mq0
lands mq1 mq0 8 </tmp/flows >/tmp/came
# Whether a device hashes fragments of UDP packets as UDP depends on the device: this is reported, and not guessed.
pieces=$(grep -c '^2001.*/udp/frag' /tmp/flows)
same "test NIC, with rules and a context: 1500 flows" "$(agree 2)" "$((1500 - pieces)) right, 0 wrong, $pieces unknown, 0 lost"
check "rules took some" [ "$(ethtool -S mq0 | awk '/rule_[0-9]+_hits/ { n += $2 } END { print n + 0 }')" -gt 100 ]
ethtool -K mq0 ntuple off
ethtool -X mq0 context 1 delete

# --- what-if, before the change is made
lands -g 7 800 >/tmp/flows
said mq0 --what-if 'rss.table="equal 3 start 2"'
ethtool -X mq0 equal 3 start 2
lands mq1 mq0 8 </tmp/flows >/tmp/came
same "what if the table were another" "$(agree 2)" "800 right, 0 wrong, 0 unknown, 0 lost"
ethtool -X mq0 default

# --- the CPU: that of the interrupt, then that of RPS
for f in udp4 udp6; do ethtool -N mq0 rx-flow-hash $f sdfn; done
lands -g 8 500 >/tmp/flows
lands -c mq1 mq0 $CPUS </tmp/flows >/tmp/came
said mq0
same "the CPU of the interrupt" "$(agree 4)" "500 right, 0 wrong, 0 unknown, 0 lost"
for q in /sys/class/net/mq0/queues/rx-*; do echo 0f3c >$q/rps_cpus; done
said mq0
lands -c mq1 mq0 $CPUS </tmp/flows >/tmp/came
# For flows without ports the kernel uses its own hash, which is unknown.
without=$(grep -c -e /esp -e /frag -e /sctp /tmp/flows)
same "the CPU that RPS takes" "$(agree 4)" "$((500 - without)) right, 0 wrong, $without unknown, 0 lost"
for q in /sys/class/net/mq0/queues/rx-*; do echo 0 >$q/rps_cpus; done

# --- many flows: recorded, predicted from the file, replayed and counted
lands -g 9 400 | awk '{ n = int(300 / NR) + 1; for (i = 0; i < n; i++) print }' >/tmp/flows
lands -w /tmp/flows.pcap </tmp/flows
ringwise explain --pcap /tmp/flows.pcap mq0 -j >/tmp/out 2>/tmp/err
cat /tmp/err
predicted=$(tr -d ' \n' </tmp/out | sed 's/.*"now":{//; s/"queues_used".*//; s/.*"queues":\[\([^]]*\)\].*/\1/' | grep -o '"packets":[0-9]*' | cut -d: -f2 | tr '\n' ' ')
lands mq1 mq0 8 </tmp/flows >/tmp/came
counted=$(awk '{ q[$2]++ } END { for (i = 0; i < 8; i++) printf "%d ", q[i] }' /tmp/came)
same "packets of each queue, predicted and counted" "$predicted" "$counted"
ringwise explain --pcap /tmp/flows.pcap mq0 --balance 1.1 >/tmp/out 2>/tmp/err
sed 's/^/# /' /tmp/out | cut -c1-160 | head -40
says "a better table is proposed" "Next: ringwise plan --goal GOAL mq0 --set"
# The proposed change is planned, predicted from its plan, applied and counted.
# per_queue COLUMN: `N N ...` packets of each queue in that spread of the document /tmp/doc
per_queue() {
	tr -d ' \n' </tmp/doc | sed "s/.*\"$1\":{//; s/\"queues_used\".*//; s/.*\"queues\":\[\([^]]*\)\].*/\1/" | grep -o '"packets":[0-9]*' | cut -d: -f2 | tr '\n' ' '
}
# max_to_mean < `N N ...`, in thousandths
max_to_mean() { awk '{ for (i = 1; i <= NF; i++) { s += $i; if ($i > m) m = $i }; printf "%d\n", m * NF * 1000 / s }'; }
# proposed NAME RATIO: the last proposal in /tmp/out, for /tmp/flows and /tmp/flows.pcap
proposed() {
	sed -n 's/^Next: ringwise plan --goal GOAL mq0 //p' /tmp/out >/tmp/words
	eval "status '$1: planned' 0 ringwise plan mq0 --config none --out /tmp/better.plan $(cat /tmp/words)"
	ringwise explain --pcap /tmp/flows.pcap mq0 --what-if /tmp/better.plan -j >/tmp/doc 2>/tmp/err
	cat /tmp/err
	_then=$(per_queue as_if)
	status "$1: applied" 0 ringwise apply --yes /tmp/better.plan
	lands mq1 mq0 8 </tmp/flows >/tmp/came
	_came=$(awk '{ q[$2]++ } END { for (i = 0; i < 8; i++) printf "%d ", q[i] }' /tmp/came)
	same "$1: packets of each queue, predicted by the plan and counted" "$_then" "$_came"
	echo "# before: $2 $(echo $2 | max_to_mean), after: $_came $(echo $_came | max_to_mean) thousandths of the mean"
	check "$1: more even than before" [ "$(echo $_came | max_to_mean)" -lt "$(echo $2 | max_to_mean)" ]
}
before=$counted
ringwise explain --pcap /tmp/flows.pcap mq0 --balance 1.1 >/tmp/out 2>/tmp/err
proposed "a better table" "$before"
ringwise rollback --yes 0 >/tmp/out 2>&1
# One flow is larger than the share of a queue: a rule and a queue of its own.
lands -g 12 300 | grep -e /tcp -e "/udp$" | awk '{ n = NR == 1 ? 900 : int(90 / NR) + 1; for (i = 0; i < n; i++) print }' >/tmp/flows
lands -w /tmp/flows.pcap </tmp/flows
lands mq1 mq0 8 </tmp/flows >/tmp/came
before=$(awk '{ q[$2]++ } END { for (i = 0; i < 8; i++) printf "%d ", q[i] }' /tmp/came)
ringwise explain --pcap /tmp/flows.pcap mq0 --balance 1.1 >/tmp/out 2>/tmp/err
sed 's/^/# /' /tmp/out | cut -c1-160 | tail -8
says "a rule for the heaviest is proposed" "mq0.rule="
heavy=$(head -1 /tmp/flows)
aside=$(awk -v f="$heavy" '$1 == f && $2 == "->" { print $4 }' /tmp/out)
proposed "a rule for the heaviest" "$before"
same "the heaviest has its queue for itself" "$(awk -v q=$aside '$2 == q { print $1 }' /tmp/came | sort -u)" "$heavy"
ringwise rollback --yes 0 >/tmp/out 2>&1
lands mq1 mq0 8 </tmp/flows >/tmp/came
same "put back" "$(awk '{ q[$2]++ } END { for (i = 0; i < 8; i++) printf "%d ", q[i] }' /tmp/came)" "$before"

# --- while packets arrive
flow=$(head -1 /tmp/flows)
(while :; do
	echo $flow | lands mq1 mq0 8 >/dev/null
	sleep 0.1
done) &
sender=$!
status "observe" 0 ringwise explain "$flow" mq0 --observe 2s
sed 's/^/# /' /tmp/out
check "the predicted queue interrupted" grep -Eq 'queue [0-9]+ +interrupts +CPU [0-9]+: [0-9,]+ +<- predicted' /tmp/out
check "its packets came by it" grep -Eq 'packets +[0-9,]+ on queue [0-9]+ +<- predicted' /tmp/out
ringwise explain --per-flow 2s mq0 >/tmp/out 2>/tmp/err
sed 's/^/# /' /tmp/out
check "per flow: as predicted" grep -Eq '([1-9][0-9]*) of \1 flows arrived on the predicted queue' /tmp/out
kill $sender 2>/dev/null
wait $sender 2>/dev/null

# --- behind a given queue, and a tag
ethtool -K mq0 ntuple on
ethtool -N mq0 flow-type tcp4 vlan 5 m 0xf000 action 3 >/dev/null
ethtool -n mq0 | sed 's/^/# /'
status "a rule asks for a tag" 0 ringwise explain 10.0.0.1:5-192.0.2.1:80/tcp mq0
says "not told, it is not decidable" "depending on the VLAN tag"
status "told" 0 ringwise explain 10.0.0.1:5-192.0.2.1:80/tcp mq0 --vlan 5
says "the rule's queue" "-> queue 3"
ethtool -K mq0 ntuple off
status "behind queue 6" 0 ringwise explain 10.0.0.1:5-192.0.2.1:80/tcp mq0 --if-queue 6
says "as asked for" "6, as requested"

# --- a connection: its socket, and the CPU on which its packets arrive
mkdir -p /var/run
ip netns add far
ip link set mq1 netns far
ip -n far addr add 10.7.0.2/24 dev mq1
ip -n far link set mq1 up
ip addr add 10.7.0.1/24 dev mq0
wait_link mq0
# Connection tracking uses its own hooks, with counters, so no firewall rule is needed. The module with the checksum that it needs
# is only a soft dependency, which the modprobe of busybox ignores.
modprobe crc32c_generic 2>/dev/null
modprobe nf_conntrack enable_hooks=1 acct=1
# At the end of its input the reader would close its side at once.
mkfifo /tmp/t.held
exec 7<>/tmp/t.held
nc=$(readlink -f /bin/busybox)
ln -sf $nc /tmp/nc
taskset 20 /tmp/nc -l -p 5001 <&7 >/dev/null &
reader=$!
# in_state HEX: waits until a TCP socket on port 5001 is in this state
in_state() {
	for _i in $(seq 200); do
		cat /proc/net/tcp /proc/net/tcp6 | grep -q ":1389 .* $1 " && return
		sleep 0.1
	done
	not_ok "a socket in state $1" "$(cat /proc/net/tcp)"
}
in_state 0A
(while sleep 0.1; do echo some bytes; done) | ip netns exec far nc 10.7.0.1 5001 &
sender=$!
in_state 01
port=$(cat /proc/net/tcp /proc/net/tcp6 | awk '$2 ~ /:1389$/ && $4 == "01" { split($3, a, ":"); print a[2]; exit }')
flow=10.7.0.2:$(printf %d 0x$port)-10.7.0.1:5001/tcp
status "a connection" 0 ringwise explain $flow
sed 's/^/# /' /tmp/out
says "by the interface of its route" "in on mq0"
says "its program" "connection of nc ($reader)"
status "observe it" 0 ringwise explain $flow --observe 3s --svg /tmp/seen.svg
sed -n '/^This flow/,$ s/^/# /p' /tmp/out
check "its packets by the predicted queue" grep -Eq 'packets +[0-9,]+ on queue [0-9]+ +<- predicted' /tmp/out
check "on the predicted CPU, as its socket says" grep -Eq 'socket +packets last arrived on CPU [0-9]+( \(node [0-9]+\))?, [0-9]+ of 20 times +<- predicted' /tmp/out
check "its program where it is held" grep -Eq 'program  on CPU 5[ ,]' /tmp/out
counted=$(sed -n 's/^ *packets  \([0-9,]*\) on \(queue [0-9]*\).* <- predicted$/\1 packets on \2/p' /tmp/out)
check "packets were counted" test -n "$counted"
check "the drawing has the count: $counted" grep -q "$counted" /tmp/seen.svg
status "connections, where the kernel has no sock_diag" 0 ringwise explain --sockets mq0
says "it is said" "read from /proc/net"
modprobe tcp_diag
modprobe udp_diag
status "connections" 0 ringwise explain --sockets mq0
sed 's/^/# /' /tmp/out
says "with what they received" "packets received since each began"
status "connection tracking" 0 ringwise explain --conntrack mq0
sed 's/^/# /' /tmp/out
says "where from" "connection tracking"
ringwise explain --conntrack mq0 --plain >/tmp/out 2>/tmp/err
grep 5001 /proc/net/nf_conntrack | sed 's/^/# /'
same "the flow, as it is alone" "$(grep "^$flow " /tmp/out)" "$(ringwise explain "$flow" mq0 --plain | grep -v '^#')"
ringwise explain --conntrack mq0 -j | tr -d ' \n' >/tmp/out
check "with the packets that the kernel counts" grep -Eq "\"packets\":([2-9]|[1-9][0-9]+),\"queue\":[0-9]+,\"tuple\":\"$flow\"" /tmp/out
ringwise explain --sockets mq0 -j | tr -d ' \n' >/tmp/out
check "more than one packet" grep -Eq "\"packets\":([2-9]|[1-9][0-9]+),\"queue\":[0-9]+,\"tuple\":\"$flow\"" /tmp/out
kill $sender $reader 2>/dev/null
wait $sender 2>/dev/null
wait $reader 2>/dev/null
exec 7>&-
ip addr flush dev mq0
ip -n far link set mq1 netns 1
ip netns del far
ip link set mq1 up
wait_link mq0
rmmod nf_conntrack 2>/dev/null

# --- forwarded: both directions, through two devices
ip addr add 10.7.0.1/24 dev mq0
ip addr add 10.9.0.1/24 dev eth0
status "sent on" 0 ringwise explain 10.7.0.2:1234-10.9.0.2:80/tcp --svg /tmp/both.svg
sed 's/^/# /' /tmp/out
says "in by one, out by the other" "in on mq0, out on eth0"
says "and the answers back" "in on eth0, out on mq0"
check "where both are worked on" grep -Eq 'process one direction each|processes both directions' /tmp/out
says "it does not forward" "This host does not forward"
# Marks in the text are also in the drawing.
same "crossings drawn" "$(grep -qE ">(L3|node)</text>" /tmp/both.svg && echo some)" "$(grep -q "^Crossing: " /tmp/out && echo some)"
ip addr flush dev mq0
ip addr flush dev eth0

# --- names and messages
status "a drawing" 0 ringwise explain 10.0.0.1:5-192.0.2.1:80/tcp mq0 --svg /tmp/way.svg
check "it is one" grep -q '</svg>' /tmp/way.svg
status "no flow" 2 ringwise explain 10.0.0.1:5-192.0.2.1/icmpx mq0
says "what is wrong with it" "expected a protocol"
head -c 200 /tmp/flows.pcap >/tmp/cut.pcap
status "a capture that is cut off" 0 ringwise explain --pcap /tmp/cut.pcap mq0
says "it is said" "cut off"
for dev in eth0 eth1 mq0 mq1; do
	echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done
