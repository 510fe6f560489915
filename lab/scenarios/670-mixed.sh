#!/bin/sh
# Groups of queues from a file: contexts, rules, moderation by queue and the table, with counted packets. They are made smaller,
# removed and rolled back. By port, VLAN, DSCP and a program. Also goal mixed alone, on the test NIC and on igb.
# hosts: router16
# kernels: 6.12
# timeout: 600
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw67
dev=mq1
ip link set mq0 up
ip link set mq1 up
links mq0 mq1

# send WORD...: 1000 packets of 64 addresses from mq0 to mq1; each word is a pktgen option
send() {
	modprobe pktgen || return
	_pg_empty
	_pg kpktgend_${PG_CPU:-0} "add_device mq0"
	for _w in "count 1000" "clone_skb 0" "pkt_size 80" "delay 0" "dst 10.1.1.1" \
		"dst_mac $(cat /sys/class/net/mq1/address)" "src_min 10.9.0.1" "src_max 10.9.0.64" \
		"udp_src_min 1024" "udp_src_max 1024" "ratep 5000" "flag IPSRC_RND" "$@"; do
		_pg mq0 "$_w"
	done
	_pg_run 20
	sleep 1
}
# got WORD...: sends, and prints `FIRST TWO, THE OTHERS` of the packets that arrived in queues
got() {
	_before=$(rx_packets $dev)
	send "$@" >/dev/null 2>&1
	echo "$_before $(rx_packets $dev)" | awk '{ n = NF / 2
		for (i = 1; i <= n; i++) if (i < 3) a += $(n + i) - $i; else b += $(n + i) - $i
		print (a >= 950 ? "all" : a <= 20 ? "none" : a), (b >= 950 ? "all" : b <= 20 ? "none" : b) }'
}
usecs() {
	for _q in 0 1 2 3 4 5 6 7; do
		ethtool --per-queue $dev queue_mask $(printf 0x%x $((1 << _q))) --show-coalesce 2>/dev/null |
			awk '/^rx-usecs:/ { printf "%s ", $2 }'
	done
}
rules() { ethtool -n $dev 2>/dev/null | grep -c '^Filter:'; }
context() { ethtool -x $dev context 1 2>/dev/null | awk '/^ *[0-9]+:/ { for (i = 2; i <= NF; i++) n[$i]++ }
	END { for (q = 0; q < 64; q++) if (q in n) printf "%s%d:%d", s++ ? " " : "", q, n[q] }'; }
table() { ethtool -x $dev | awk '/^ *[0-9]+:/ { for (i = 2; i <= NF; i++) n[$i]++ } END { for (q = 0; q < 64; q++) if (q in n) printf "%d ", q }'; }
json() { ringwise show -j $dev 2>/dev/null | tr -d ' \n'; }
everything() {
	state "$@"
	for _d in "$@"; do
		ethtool -x $_d context 1 2>&1
		ethtool -n $_d 2>&1
		ethtool -k $_d | grep ntuple
		ethtool -c $_d
	done
	usecs
}
ln -sf "$(readlink -f /bin/busybox)" /tmp/nc
listen() {
	/tmp/nc -l -p 7000 </dev/null >/dev/null 2>&1 &
	nc=$!
	for _i in $(seq 100); do
		grep -q ':1B58 ' /proc/net/tcp /proc/net/tcp6 2>/dev/null && return
		sleep 0.1
	done
}

# --- goal mixed without flows
everything $dev >/tmp/before
ringwise plan $dev --goal mixed --config none >/tmp/out 2>/tmp/err
says "mixed: what it cannot know" "Workload unknown? Keep adaptive moderation"
says "mixed: how to resize the groups" "Resize them with --latency-queues N"
says "mixed: no flows are steered to the groups" "no flows are steered to groups yet"
says "mixed: where programs do best" "CPUAffinity="
status "mixed: applied" 0 ringwise apply --yes $dev --goal mixed --config none
cat /tmp/err
same "mixed: a third of the queues for latency" "$(usecs)" "5 5 62 62 62 62 62 62 "
status "mixed: nothing to do a second time" 0 ringwise plan $dev --goal mixed --config none --exit-code
status "mixed: resized" 0 ringwise apply --yes $dev --goal mixed --latency-queues 3 --config none
same "mixed: three" "$(usecs)" "5 5 5 62 62 62 62 62 "
status "mixed: back" 0 ringwise rollback --yes 0
everything $dev >/tmp/after
unchanged "mixed: as before" /tmp/before /tmp/after

# --- goal mixed by a sample of the traffic and of the CPUs
export RINGWISE_STATE_DIR=/tmp/rw67.sample
# The CPUs of the queues are on the other node.
PG_CPU=14
# load WORD...: sends until unload, at most for 20 s
load() {
	send "count 0" "ratep 3000" "$@" >/dev/null 2>&1 &
	load=$!
	sleep 2
}
unload() {
	echo stop >/proc/net/pktgen/pgctrl
	wait $load
}
mixed="ringwise plan $dev --goal mixed --config none"
status "sample: no traffic" 0 $mixed --sample 1s
says "sample: nothing is decided, with the reason" "--sample does not decide about the sizes and policies of the groups"
load
status "sample: planned" 0 $mixed --sample 3s --out /tmp/sample.plan
unload
says "sample: the size of frames" "frames with a mean of 66 bytes"
says "sample: the load of the CPUs" "% busy in the sample of 3"
status "sample: the reviewed plan is applied" 0 ringwise apply --yes /tmp/sample.plan
cat /tmp/err
same "sample: small frames, more queues for latency" "$(usecs)" "5 5 5 5 5 5 5 62 "
cpu=$($mixed --latency-queues 7 -j 2>/dev/null | tr -d ' \n' | sed 's/.*"name":"bulk","cpus":"\([0-9]*\)".*/\1/')
taskset $(printf %x $((1 << cpu))) sh -c 'while :; do :; done' &
busy=$!
load
status "sample: the CPU of the bulk queue is busy" 0 ringwise apply --yes $dev --goal mixed --config none --sample 3s
unload
cat /tmp/err
kill $busy
wait $busy 2>/dev/null
same "sample: busy CPUs, policy cpu" "$(usecs)" "5 5 5 5 5 5 5 125 "
load "pkt_size 1514"
status "sample: full frames" 0 ringwise apply --yes $dev --goal mixed --config none --sample 3s
unload
cat /tmp/err
same "sample: full frames, more queues for bulk" "$(usecs)" "5 62 62 62 62 62 62 62 "
status "sample: back" 0 ringwise rollback --yes 0
everything $dev >/tmp/after
unchanged "sample: as before" /tmp/before /tmp/after
PG_CPU=0

# --- from a file
export RINGWISE_STATE_DIR=/tmp/rw67.file
cat >/tmp/two.toml <<END
version = 1
[[interface]]
match = { name = "mq1" }
goal = "mixed"
[[interface.group]]
name = "latency"
policy = "latency"
queues = 2
flows = ["udp4 dst-port 9", "udp4 vlan 7", "udp4 tos 184", { program = "nc" }]
END
status "a program that does not run: refused" 1 ringwise apply --yes $dev --config /tmp/two.toml
says "with its name" 'group latency: program "nc": not running'
everything $dev >/tmp/after
unchanged "and nothing was touched" /tmp/before /tmp/after
listen
want=4
grep -q ':1B58 ' /proc/net/tcp6 2>/dev/null && want=5
same "before: packets of the port go anywhere" "$(got "udp_dst_min 9" "udp_dst_max 9" | grep -c none)" 0
status "groups: applied" 0 ringwise apply --yes $dev --config /tmp/two.toml
cat /tmp/err
same "groups: moderation by queue" "$(usecs)" "5 5 62 62 62 62 62 62 "
same "groups: in show -j too" "$(json | sed 's/.*"queue_coalesce"://' | grep -o '"rx-usecs":[0-9]*' | head -8 | cut -d: -f2 | tr '\n' ' ')" \
	"5 5 62 62 62 62 62 62 "
same "groups: a context over the two queues" "$(context)" "0:64 1:64"
same "groups: a rule for each flow" "$(rules)" $want
same "groups: the port of the program" "$(ethtool -n $dev | grep -c 'Dest port: 7000 ')" $((want - 3))
same "groups: in show -j too, the rules" "$(json | grep -o '"dst-port":"7000"' | wc -l)" $((want - 3))
same "groups: other flows stay off their queues" "$(table)" "2 3 4 5 6 7 "
status "groups: verify" 0 ringwise verify
status "groups: nothing to do a second time" 0 ringwise plan $dev --config /tmp/two.toml --exit-code
same "packets to the port: the latency queues alone" "$(got "udp_dst_min 9" "udp_dst_max 9")" "all none"
same "packets to another port: the others" "$(got "udp_dst_min 99" "udp_dst_max 99")" "none all"
same "packets of the VLAN: the latency queues alone" "$(got "udp_dst_min 99" "udp_dst_max 99" "vlan_id 7")" "all none"
same "packets of another VLAN: the others" "$(got "udp_dst_min 99" "udp_dst_max 99" "vlan_id 8")" "none all"
same "packets with the DSCP: the latency queues alone" "$(got "udp_dst_min 99" "udp_dst_max 99" "tos b8")" "all none"

# --- smaller: no context is needed, and two flows less
everything $dev >/tmp/laid
sed 's/^queues = 2/queues = 1/; s/"udp4 vlan 7", "udp4 tos 184", //' /tmp/two.toml >/tmp/one.toml
ringwise plan $dev --config /tmp/one.toml >/tmp/out 2>/tmp/err
says "shrunk: why the rules go" "no group uses this flow any more; transaction 1 added the rule"
status "shrunk: applied" 0 ringwise apply --yes $dev --config /tmp/one.toml
cat /tmp/err
same "shrunk: the context is gone" "$(context)" ""
same "shrunk: two rules are gone" "$(rules)" $((want - 2))
same "shrunk: one queue of latency" "$(usecs)" "5 62 62 62 62 62 62 62 "
status "shrunk: nothing to do a second time" 0 ringwise plan $dev --config /tmp/one.toml --exit-code
same "shrunk: packets of the VLAN go where others go" "$(got "udp_dst_min 99" "udp_dst_max 99" "vlan_id 7" | cut -d' ' -f2 | grep -c none)" 0
status "shrunk: rollback" 0 ringwise rollback --yes 2
everything $dev >/tmp/after
unchanged "shrunk: as it was laid, context and rules too" /tmp/laid /tmp/after

# --- a rule of the user beside them; then no group at all
ethtool -N $dev flow-type udp4 dst-port 22 action 6 loc 40 >/dev/null
status "no groups: applied" 0 ringwise apply --yes $dev --config none
cat /tmp/err
same "no groups: the context is gone" "$(context)" ""
same "no groups: somebody's rule alone is there" "$(rules) $(ethtool -n $dev | grep -c '^Filter: 40')" "1 1"
same "no groups: every queue takes part" "$(table)" "0 1 2 3 4 5 6 7 "
status "no groups: nothing to do a second time" 0 ringwise plan $dev --config none --exit-code
ethtool -N $dev delete 40
status "rollback 0" 0 ringwise rollback --yes 0
everything $dev >/tmp/after
unchanged "everything as before" /tmp/before /tmp/after

# --- at boot a program may start later
kill $nc
wait $nc 2>/dev/null
export RINGWISE_STATE_DIR=/tmp/rw67.boot
status "at boot: the rest is laid down" 0 ringwise apply --yes --boot $dev --config /tmp/two.toml
says "at boot: what is left out, and what to run" "its flows are skipped: run ringwise apply when it listens"
same "at boot: three rules and the context" "$(rules) $(context)" "3 0:64 1:64"
listen
status "when it listens" 0 ringwise apply --yes $dev --config /tmp/two.toml
same "its rules are there too" "$(rules)" $want
kill $nc
wait $nc 2>/dev/null
status "once more at boot, and it is gone: nothing is taken away" 0 ringwise apply --yes --boot $dev --config /tmp/two.toml
same "its rules stay" "$(rules)" $want
status "rollback of both" 0 ringwise rollback --yes 0
everything $dev >/tmp/after
unchanged "as before all that" /tmp/before /tmp/after

# --- igb: no contexts, no rules of this kind, no moderation by queue
export RINGWISE_STATE_DIR=/tmp/rw67.igb
links eth0
dev=eth0
everything eth0 >/tmp/before
sed 's/mq1/eth0/; s/, { program = "nc" }//' /tmp/two.toml >/tmp/igb.toml
ringwise plan eth0 --config /tmp/igb.toml >/tmp/out 2>/tmp/err
says "igb: which moderation there is not" "eth0 moderation of single queues"
grep '^x' /tmp/out | head
status "igb: rules that it refuses are planned without in the same run" 0 ringwise apply --yes eth0 --config /tmp/igb.toml
cat /tmp/out /tmp/err
says "igb: it names them" "flow rule"
says "igb: with the errno" EOPNOTSUPP
links eth0
status "igb: a second run has nothing to do" 0 ringwise plan eth0 --config /tmp/igb.toml --exit-code
same "igb: moderation of the larger group, without tx-usecs" "$(ethtool -c eth0 | awk '/^[rt]x-usecs:/ { printf "%s ", $2 }')" "62 0 "
same "igb: nothing of it was refused" "$(grep -c 'moderation.*EINVAL' /tmp/out)" 0
same "igb: and no queue is left out of the table" "$(ethtool -x eth0 | awk '/^ *[0-9]+:/ { for (i = 2; i <= NF; i++) if (!q[$i]++) n++ } END { print n }')" 8
status "igb: back" 0 ringwise rollback --yes 0
links eth0
everything eth0 >/tmp/after
unchanged "igb: as before" /tmp/before /tmp/after

# --- igb: goal mixed alone, and values that it refuses
export RINGWISE_STATE_DIR=/tmp/rw67.igb2
usecs_of() { ethtool -c $1 | awk '/^[rt]x-usecs:/ { printf "%s ", $2 }'; }
status "igb: mixed alone" 0 ringwise apply --yes eth0 --goal mixed --config none
cat /tmp/out /tmp/err
same "igb: mixed alone is moderated" "$(usecs_of eth0)" "62 0 "
status "igb: mixed alone a second time" 0 ringwise plan eth0 --goal mixed --config none --exit-code
status "igb: mixed alone, back" 0 ringwise rollback --yes 0
ringwise plan eth0 --config none --set eth0.coalesce.rx-usecs=5 >/tmp/out 2>/tmp/err
says "igb: 5 us as asked, with a word" "igb is known to refuse it"
status "igb: beside what is refused" 0 ringwise apply --yes eth0 --config none --set 'eth0.coalesce={rx-usecs=62,tx-usecs=20}'
says "igb: it is told with the kernel's word" EINVAL
same "igb: the rest is laid down" "$(usecs_of eth0)" "62 0 "
status "igb: a second plan still lacks what was refused" 3 ringwise plan eth0 --config none --set 'eth0.coalesce={rx-usecs=62,tx-usecs=20}' --exit-code
says "igb: there is nothing else to do" "nothing to change"
says "igb: and says why" "refused before on this kernel"
status "igb: back again" 0 ringwise rollback --yes 0
links eth0
everything eth0 >/tmp/after
unchanged "igb: as before all that" /tmp/before /tmp/after

# --- two busy queues that share a core get cores of their own
export RINGWISE_STATE_DIR=/tmp/rw67.busy
dev=mq1
core_of() { cat "/sys/devices/system/cpu/cpu$(asked "$(queue_irq $dev "TxRx-$1")")/topology/thread_siblings_list"; }
balanced="ringwise apply --yes $dev --goal balanced --config none"
# The table that the test leaves is the kernel's default, not the driver's own.
ethtool -X $dev default
everything $dev >/tmp/before
status "busy queues: balanced" 0 $balanced
other=
for q in 1 2 3 4 5 6 7; do
	[ "$(core_of $q)" != "$(core_of 0)" ] || other=$q
done
check "busy queues: two queues share a core" [ -n "$other" ]
# shellcheck disable=SC2046 # one weight for each queue
ethtool -X $dev weight $(for q in 0 1 2 3 4 5 6 7; do case $q in 0 | "$other") echo 1 ;; *) echo 0 ;; esac; done)
status "busy queues: no traffic" 0 ringwise plan $dev --goal balanced --config none --sample 1s
says "busy queues: nothing is decided, with the reason" "--sample does not decide about the CPUs of the queues"
load
status "busy queues: planned by the sample" 0 ringwise plan $dev --goal balanced --config none --sample 3s --out /tmp/busy.plan
unload
says "busy queues: what is gained" "times as much of this traffic before a core is full"
status "busy queues: applied" 0 ringwise apply --yes /tmp/busy.plan
cat /tmp/err
check "busy queues: they have cores of their own" [ "$(core_of 0)" != "$(core_of $other)" ]
load
status "busy queues: sampled again" 0 ringwise plan $dev --goal balanced --config none --sample 3s --exit-code
unload
cat /tmp/out
status "busy queues: back" 0 ringwise rollback --yes 0
ethtool -X $dev default
everything $dev >/tmp/after
unchanged "busy queues: as before" /tmp/before /tmp/after
