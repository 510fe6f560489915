#!/bin/sh
# Abilities of the test NIC, tested with ethtool and traffic alone: contexts, rules, steering, hashing, moderation, quirks.
# hosts: router16
# kernels: 5.10 6.1 6.12 newest
# timeout: 180
# needs: mqnic
. /h/lib.sh

# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }
param=/sys/module/mqnic/parameters
quirk() { echo $1 >$param/quirk; }
modprobe pktgen
# Packets of the network stack itself would also be counted.
for dev in mq0 mq1; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done
mac=$(cat /sys/class/net/mq0/address)
[ -n "$mac" ] || { not_ok "mq0 is there" "$(ls /sys/class/net | tr "\n" " ")"; exit; }

# grew PATTERN: the increase of mq0's counters of that name since the last `send` began, one number for each
grew() {
	ethtool -S mq0 >/tmp/t.after
	awk -v p="^ *$1:" 'NR == FNR { a[$1] = $2; next } $0 ~ p { printf "%s ", $2 - a[$1] }' /tmp/t.before /tmp/t.after | sed 's/ $//'
}

# arrived: packets by queue, including those that a full ring lost
arrived() {
	ethtool -S mq0 >/tmp/t.after
	awk 'NR == FNR { a[$1] = $2; next } /rx_queue_[0-9]+_(packets|drops)/ { split($1, n, "_"); q[n[3] + 0] += $2 - a[$1]; m = n[3] + 0 > m ? n[3] + 0 : m }
		END { for (i = 0; i <= m; i++) printf "%s%d", i ? " " : "", q[i] }' /tmp/t.before /tmp/t.after
}
total() { arrived | tr ' ' '\n' | awk '{ s += $1 } END { print s }'; }

# `send COUNT WANTED WORD...`: UDP from mq1 to mq0 with these pktgen options, until WANTED packets have arrived
send() {
	_n=$1 _wanted=$2
	shift 2
	_pg_empty
	_pg kpktgend_0 "add_device mq1"
	for _w in "count $_n" "clone_skb 0" "pkt_size 100" "delay 0" "dst_mac $mac" "ratep 20000" "$@"; do
		_pg mq1 "$_w"
	done
	ethtool -S mq0 >/tmp/t.before
	echo start >/proc/net/pktgen/pgctrl
	for _i in $(seq 50); do
		[ "$(total)" -ge $_wanted ] && return
		sleep 0.1
	done
}
many() {
	send 256 256 "dst 10.1.1.1" "src_min 10.9.0.1" "src_max 10.9.0.250" "flag IPSRC_RND" \
		"udp_dst_min 9" "udp_dst_max 9" "udp_src_min 1024" "udp_src_max 1024"
}
# used: the queues that received packets
used() { arrived | tr ' ' '\n' | awk '$1 { printf "%s%d", s, NR - 1; s = " " }'; }
# refuses NAME TEXT COMMAND...
refuses() {
	_name=$1 _text=$2
	shift 2
	_out=$("$@" 2>&1)
	case $_out in
	*"$_text"*) ok "$_name" ;;
	*) not_ok "$_name" "no '$_text' in: $(echo "$_out" | tr '\n' ' ')" ;;
	esac
}
table() { ethtool -x mq0 $1 | awk -F: '/^ *[0-9]+: / { n = split($2, a, " "); for (i = 1; i <= n; i++) u[a[i]] = 1 } END { for (i = 0; i < 64; i++) if (i in u) printf "%s%d", s, i; for (i in u) s = "" }' | sed 's/./& /g; s/ $//'; }

# --- RSS contexts
refuses "a context is made" "New RSS context is 1" ethtool -X mq0 context new start 4 equal 4
same "its table" "$(table "context 1")" "4 5 6 7"
ethtool -K mq0 ntuple on
ethtool -N mq0 flow-type udp4 dst-port 9 context 1 loc 3 >/dev/null
many
same "a rule with a context spreads over its table" "$(used)" "4 5 6 7"
same "the rule counts" "$(grew rule_3_hits)" 256
check "the rule reads back with its context" sh -c "ethtool -n mq0 rule 3 | grep -q 'RSS Context ID: 1'"
refuses "a context that a rule uses stays" "busy" ethtool -X mq0 context 1 delete
ethtool -X mq0 context 1 start 2 equal 2
ethtool -N mq0 flow-type udp4 dst-port 9 context 1 action 1 loc 3 >/dev/null
many
same "changed, with the rule's queue as an offset" "$(used)" "3 4"
ethtool -X mq0 context 1 start 6 equal 2
refuses "fewer channels than a context's table needs" "nvalid argument" ethtool -L mq0 combined 4
ethtool -N mq0 delete 3
check "the context goes" ethtool -X mq0 context 1 delete
refuses "and is gone" "No such file" ethtool -x mq0 context 1
many
same "without the rule, all queues" "$(used)" "0 1 2 3 4 5 6 7"

# --- rules: all at once; each packet matches the one that is meant for it
n=20
rule() {
	ethtool -N mq0 flow-type "$@" loc $n >/dev/null || not_ok "rule: $*" "refused"
	n=$((n + 1))
}
rule udp4 src-ip 10.9.0.1 dst-ip 10.1.1.1 src-port 1024 dst-port 9 tos 8 action 1
rule udp4 src-ip 10.9.1.0 m 0.0.0.255 action 2
rule udp4 dst-port 4096 m 0x0fff action 3
rule ip4 dst-ip 10.1.1.2 l4proto 17 action 4
rule udp6 dst-ip fd00::2 dst-port 9 action 5
rule ip6 src-ip fd00::5 action 6
rule udp4 dst-port 77 vlan 100 m 0xf000 action 7
rule udp4 src-port 2000 user-def 0xbe9b action 1
rule ether dst $mac proto 0x86dd action 3
rule udp4 dst-port 99 action -1
rule tcp4 dst-port 80 action 1
rule sctp4 dst-port 80 action 1
rule tcp6 dst-port 80 action 1
rule ah4 spi 7 action 1
rule esp6 spi 7 action 1
same "all rules are listed" "$(ethtool -n mq0 | grep -c '^Filter:')" 15

# meets RULE QUEUE NAME WORD...: eight packets match the rule, and no other one
meets() {
	_rule=$1 _queue=$2 _name=$3 _all=8
	shift 3
	[ $_queue = none ] && _all=0
	send 8 $_all "$@"
	if [ $_queue = none ]; then
		same "$_name: dropped" "$(total)" 0
	else
		same "$_name: queue $_queue" "$(used)" $_queue
	fi
	_hits=$(grew 'rule_[0-9]+_hits' | tr ' ' '\n' | awk '$1 { printf "%s%d:%d", s, NR - 1, $1; s = " " }')
	if [ $_rule = none ]; then
		same "$_name: no rule" "$_hits" ""
	else
		same "$_name: rule $_rule" "$_hits" $_rule:8
	fi
}
p="udp_src_min 1024"
P="udp_src_max 1024"
d="udp_dst_min 9"
D="udp_dst_max 9"
meets 20 1 "udp4, five fields and tos" "dst 10.1.1.1" "src_min 10.9.0.1" "src_max 10.9.0.1" "$p" "$P" "$d" "$D" "tos 08"
meets 21 2 "udp4, a network" "dst 10.1.1.1" "src_min 10.9.1.77" "src_max 10.9.1.77" "$p" "$P" "$d" "$D"
meets 22 3 "udp4, a range of ports" "dst 10.1.1.1" "src_min 10.9.0.2" "src_max 10.9.0.2" "$p" "$P" "udp_dst_min 5000" "udp_dst_max 5000"
meets 23 4 "ip4" "dst 10.1.1.2" "src_min 10.9.0.2" "src_max 10.9.0.2" "$p" "$P" "$d" "$D"
meets 24 5 "udp6" "dst6 fd00::2" "src6 fd00::1" "$p" "$P" "$d" "$D"
meets 25 6 "ip6" "dst6 fd00::2" "src6 fd00::5" "$p" "$P" "udp_dst_min 11" "udp_dst_max 11"
meets 26 7 "VLAN, its priority masked" "dst 10.1.1.1" "src_min 10.9.0.2" "src_max 10.9.0.2" "$p" "$P" "udp_dst_min 77" "udp_dst_max 77" "vlan_id 100" "vlan_p 3"
meets 27 1 "user-def" "dst 10.1.1.1" "src_min 10.9.0.2" "src_max 10.9.0.2" "udp_src_min 2000" "udp_src_max 2000" "$d" "$D"
meets 28 3 "ether" "dst6 fd00::3" "src6 fd00::1" "$p" "$P" "$d" "$D"
meets 29 none "drop" "dst 10.1.1.1" "src_min 10.9.0.2" "src_max 10.9.0.2" "$p" "$P" "udp_dst_min 99" "udp_dst_max 99"
send 8 8 "dst 10.1.1.1" "src_min 10.9.0.2" "src_max 10.9.0.2" "$p" "$P" "udp_dst_min 77" "udp_dst_max 77" "vlan_id 9999"
same "what no rule means meets none" "$(grew 'rule_[0-9]+_hits' | tr -d '0 ')" ""
refuses "fewer channels than a rule needs" "nvalid argument" ethtool -L mq0 combined 4
ethtool -K mq0 ntuple off
same "without the feature there are no rules" "$(ethtool -n mq0 | grep -c '^Filter:')" 0
refuses "and no new one" "not supported" ethtool -N mq0 flow-type udp4 dst-port 9 action 1 loc 1

# --- hashing: the published test vectors of Toeplitz; the queue is the lowest three bits of the hash
default_key=$(ethtool -x mq0 | grep '^..:..:..:')
ethtool -X mq0 equal 8 hkey 6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa
hashed() {
	_name=$1 _queue=$2
	shift 2
	send 4 4 "$@"
	same "$_name" "$(used)" $_queue
}
for type in udp4 udp6; do
	ethtool -N mq0 rx-flow-hash $type sdfn
done
hashed "hash 51ccc178" 0 "src_min 66.9.149.187" "src_max 66.9.149.187" "dst 161.142.100.80" \
	"udp_src_min 2794" "udp_src_max 2794" "udp_dst_min 1766" "udp_dst_max 1766"
hashed "hash afc7327f" 7 "src_min 38.27.205.30" "src_max 38.27.205.30" "dst 209.142.163.6" \
	"udp_src_min 48228" "udp_src_max 48228" "udp_dst_min 2217" "udp_dst_max 2217"
hashed "hash 40207d3d" 5 "src6 3ffe:2501:200:1fff::7" "dst6 3ffe:2501:200:3::1" \
	"udp_src_min 2794" "udp_src_max 2794" "udp_dst_min 1766" "udp_dst_max 1766"
hashed "hash 02d1feef" 7 "src6 3ffe:1900:4545:3:200:f8ff:fe21:67cf" "dst6 fe80::200:f8ff:fe21:67cf" \
	"udp_src_min 44251" "udp_src_max 44251" "udp_dst_min 38024" "udp_dst_max 38024"
for type in udp4 udp6; do
	ethtool -N mq0 rx-flow-hash $type sd
done
hashed "hash d2d0a5de, without ports" 6 "src_min 24.19.198.95" "src_max 24.19.198.95" "dst 12.22.207.184" "$p" "$P" "$d" "$D"
hashed "hash 0f0c461c, without ports" 4 "src6 3ffe:501:8::260:97ff:fe40:efab" "dst6 ff02::1" "$p" "$P" "$d" "$D"
# In two calls: older kernels look for the key behind a whole table.
ethtool -X mq0 hkey $default_key equal 8
ethtool -X mq0 default

# --- transmit moderation
tx_irqs() { ethtool -S mq1 | awk '/tx_queue_[0-9]+_irqs/ { s += $2 } END { print s }'; }
# sent USECS FRAMES: interrupts for 60 packets, one millisecond apart
sent() {
	ethtool -C mq1 tx-usecs $1 tx-frames $2
	_a=$(tx_irqs)
	send 60 60 "dst 10.1.1.1" "src_min 10.9.0.1" "src_max 10.9.0.1" "$p" "$P" "$d" "$D" "ratep 1000"
	echo $(($(tx_irqs) - _a))
}
# The sender's CPU is used, so that no other CPU must wake up first. A guest that gets no CPU may still be late: then it is
# tried again.
tx_irq=$(irq_of mq1-TxRx-0)
tx_cpus=$(asked $tx_irq)
echo 0 >/proc/irq/$tx_irq/smp_affinity_list
for _ in 1 2 3 4 5 6; do
	at_once=$(sent 0 0)
	late=$(sent 8000 0)
	two=$(sent 8000 2)
	[ $at_once -gt $((2 * late)) ] && [ $two -gt $late ] && [ $at_once -gt $two ] && break
done
check "tx-usecs: $at_once interrupts at 0, $late at 8000" [ $at_once -gt $((2 * late)) ]
check "tx-frames 2: $two interrupts" [ $two -gt $late -a $two -lt $at_once ]
echo $tx_cpus >/proc/irq/$tx_irq/smp_affinity_list
ethtool -C mq1 adaptive-tx on tx-usecs 50 tx-frames 64
check "adaptive-tx" sh -c "ethtool -c mq1 | grep -q 'TX: on'"
ethtool -C mq1 adaptive-tx off

# --- separate channels
refuses "separate channels are not offered by default" "exceeds maximum" ethtool -L mq0 combined 0 rx 4 tx 2
same "so there are combined ones" "$(ethtool -l mq0 | awk '/^Combined/ { v = $2 } END { print v }')" 8
echo 1 >$param/separate
ethtool -L mq0 combined 0 rx 4 tx 2
same "separate channels" "$(ethtool -l mq0 | sed -n '/Current/,$p' | awk '/^(RX|TX|Combined)/ { printf "%s ", $2 }')" "4 2 0 "
same "a vector for each" "$(irqs mq0 | awk '{ printf "%s ", $2 }')" "mq0-event mq0-rx-0 mq0-rx-1 mq0-rx-2 mq0-rx-3 mq0-tx-0 mq0-tx-1 "
many
same "receive queues of their own" "$(used)" "0 1 2 3"
traffic mq0 mq1 16 200
check "transmit interrupts of their own" [ "$(irq_counts $(irq_of mq0-tx-0) | awk '{ for (i = 1; i <= NF; i++) s += $i; print s }')" -gt 0 ]
ethtool -L mq0 combined 2 rx 2 tx 1
same "mixed" "$(irqs mq0 | awk '{ printf "%s ", $2 }')" "mq0-event mq0-TxRx-0 mq0-TxRx-1 mq0-rx-2 mq0-rx-3 mq0-tx-2 "
ethtool -L mq0 combined 8 rx 0 tx 0
echo 0 >$param/separate
many
same "combined again" "$(used)" "0 1 2 3 4 5 6 7"

# --- accelerated RFS: a stream follows its reader
mkdir -p /var/run
ip netns add far
# Many packets, not few large ones.
ethtool -K mq1 tso off gso off
ip link set mq1 netns far
ip -n far addr add 10.7.0.2/24 dev mq1
ip -n far link set mq1 up
ip addr add 10.7.0.1/24 dev mq0
wait_link mq0
echo 4096 >/proc/sys/net/core/rps_sock_flow_entries
for q in 0 1 2 3 4 5 6 7; do
	echo 512 >/sys/class/net/mq0/queues/rx-$q/rps_flow_cnt
	old_cpus="$old_cpus $(asked $(irq_of mq0-TxRx-$q))"
	echo $q >/proc/irq/$(irq_of mq0-TxRx-$q)/smp_affinity_list
done
ethtool -K mq0 ntuple on
# At the end of its input the reader would close its side at once, and the sender would stop in the middle.
mkfifo /tmp/t.open
exec 7<>/tmp/t.open
# By chance a connection's own port may lead it to its reader's queue, and then there is nothing to steer.
for _ in 1 2 3 4 5 6; do
	ethtool -S mq0 >/tmp/t.before
	for cpu in 5 3; do
		taskset $(printf %x $((1 << cpu))) nc -l -p 500$cpu <&7 >/dev/null &
		reader=$!
		for _ in $(seq 50); do
			grep -q ":$(printf %04X 500$cpu) .* 0A " /proc/net/tcp /proc/net/tcp6 && break
			sleep 0.1
		done
		dd if=/dev/zero bs=1k count=1000 2>/dev/null | ip netns exec far nc -w 20 10.7.0.1 500$cpu
		kill $reader 2>/dev/null
		wait $reader
	done
	[ "$(grew arfs_hits)" -ge 1 ] && break
done
echo "arrived: $(arrived); filters $(grew 'arfs_[a-z]+')"
check "the stack steers flows" [ "$(grew arfs_added)" -ge 1 ]
check "and packets follow" [ "$(grew arfs_hits)" -ge 1 ]
check "to the reader's queue" sh -c "set -- $(arrived); [ \$((\$6 + \$4)) -gt \$((\$1 + \$2 + \$3 + \$5 + \$7 + \$8)) ]"
for q in 0 1 2 3 4 5 6 7; do
	echo 0 >/sys/class/net/mq0/queues/rx-$q/rps_flow_cnt
done
for _ in $(seq 100); do
	left=$(ethtool -S mq0 | awk '/arfs_filters/ { print $2 }')
	[ $left = 0 ] && break
	sleep 0.1
done
same "a flow that ended gives its filter back" $left 0
ethtool -K mq0 ntuple off
echo 0 >/proc/sys/net/core/rps_sock_flow_entries
q=0
for cpus in $old_cpus; do
	echo $cpus >/proc/irq/$(irq_of mq0-TxRx-$q)/smp_affinity_list
	q=$((q + 1))
done
ip addr flush dev mq0
ip -n far link set mq1 netns 1
ip netns del far
ip link set mq1 up
wait_link mq0
ethtool -K mq1 tso on gso on

# --- quirks
quirk 512
refuses "quirk 512: no table" "not supported" ethtool -X mq0 equal 4
quirk 1024
refuses "quirk 1024: no key" "not supported" ethtool -X mq0 hkey $default_key
quirk 2048
refuses "quirk 2048: one context" "New RSS context is 1" ethtool -X mq0 context new equal 2
refuses "quirk 2048: and no more" "No space left" ethtool -X mq0 context new equal 2
ethtool -X mq0 context 1 delete
ethtool -K mq0 ntuple on
quirk 4096
refuses "quirk 4096: no rules" "not supported" ethtool -N mq0 flow-type udp4 dst-port 9 action 1 loc 1
quirk 8192
ethtool -N mq0 flow-type udp4 dst-port 9 action 1 loc 1
ethtool -N mq0 flow-type udp4 dst-port 10 action 1 loc 2
refuses "quirk 8192: two rules and no more" "No space left" ethtool -N mq0 flow-type udp4 dst-port 11 action 1 loc 4
quirk 16384
ethtool -N mq0 flow-type udp4 dst-port 4096 m 0x0fff action 3 loc 5
check "quirk 16384: a mask becomes full" sh -c "ethtool -n mq0 rule 5 | grep -q 'Dest port: 4096 mask: 0x0$'"
quirk 524288
refuses "quirk 524288: the driver chooses" "Added rule with ID 0" ethtool -N mq0 flow-type udp4 dst-port 12 action 1
quirk 131072
ethtool -K mq0 ntuple off >/dev/null 2>&1
check "quirk 131072: features stay" sh -c "ethtool -k mq0 | grep -q '^ntuple-filters: on'"
quirk 1048576
ethtool -X mq0 context new equal 2 >/dev/null
ethtool -L mq0 combined 6
same "quirk 1048576: rules go with a channel change" "$(ethtool -n mq0 | grep -c '^Filter:')" 0
refuses "quirk 1048576: and contexts" "No such file" ethtool -x mq0 context 1
quirk 0
ethtool -L mq0 combined 8
# What was requested under the quirk stays requested, though it is not in effect. Only another request changes that.
ethtool -K mq0 ntuple on
ethtool -K mq0 ntuple off
quirk 2097152
ethtool -K mq0 ntuple on
ethtool -L mq0 combined 4
check "quirk 2097152: a rule to a queue that is not in use" ethtool -N mq0 flow-type udp4 dst-port 9 action 6 loc 3
same "quirk 2097152: it is told as it is" "$(ethtool -n mq0 rule 3 2>/dev/null | sed -n 's/.*Direct to queue //p')" 6
ethtool -N mq0 delete 3
ethtool -K mq0 ntuple off
ethtool -L mq0 combined 8
quirk 32768
ethtool -G mq0 rx 32 tx 1000
same "quirk 32768: rings are clamped" "$(ethtool -g mq0 | sed -n '/Current/,$p' | awk '/^(RX|TX):/ { printf "%s ", $2 }')" "64 512 "
quirk 0
ethtool -G mq0 rx 512 tx 512
quirk 65536
ethtool -C mq0 rx-usecs 9999
same "quirk 65536: microseconds are clamped" "$(ethtool -c mq0 | awk '/^rx-usecs:/ { print $2 }')" 8191
quirk 0
ethtool -C mq0 rx-usecs 50
quirk 262144
ethtool -N mq0 rx-flow-hash udp4 sdfn
check "quirk 262144: hash fields stay" sh -c "! ethtool -n mq0 rx-flow-hash udp4 | grep -q 'L4 bytes'"
quirk 0
for dev in mq0 mq1; do
	echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
done
