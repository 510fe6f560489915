#!/bin/sh
# bench forward with sources in turn, led to queues by rules: every queue gets its part, to the packet's order; and the CPUs are kept awake.
# hosts: router16
# kernels: 6.12
# timeout: 400
# needs: mqnic
. /h/lib.sh
. /h/state.sh
B=/tmp/bench-turn
rm -rf $B
mkdir $B
modprobe pktgen
# The shell's own one knows no namespaces.
ip() { /usr/bin/ip "$@"; }
rules() {
	ethtool -n mq0 2>/dev/null | grep -c '^Filter:'
}
before="$(affinity mq0) $(queues mq0) $(rules)"
ip netns add far
for dev in mq1 mq3; do
	ip link set $dev netns far
	ip -n far link set $dev up
done
sysctl -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.mq0.rp_filter=0 >/dev/null
ip address add 10.77.0.1/24 dev mq2
ip neigh replace 10.77.0.2 lladdr $(ip netns exec far cat /sys/class/net/mq3/address) nud permanent dev mq2
ip route add 198.18.0.0/24 via 10.77.0.2 dev mq2
wait_link mq0
wait_link mq2

ringwise bench forward --in mq0 --out mq2 --netns far --gen mq1 --sink mq3 --peer-cpus 15 --recipe turn --lead --flows 16 --size 20 --rate 2000 \
	--pairs 1 --calibrate 0 --trial 2s --warm 500ms --seed 3 --capture none --yes --results $B/turn.jsonl >$B/out 2>$B/err
same "status" $? 0
[ -s $B/turn.jsonl ] || cat $B/err
check "packets arrive" awk '/"kind":"trial"/ && match($0, /"done_per_s":[0-9.]+/) { n = substr($0, RSTART + 13, RLENGTH - 13) } END { exit n < 100 }' $B/turn.jsonl
# 16 sources over 8 queues: each has an eighth, but for the frames of four that the ends of the window cut.
check "every queue gets its eighth" awk '/"kind":"trial"/ { s = $0
	while (match(s, /"dev":"mq0","queue":[0-9]+,"packets":[0-9]+/)) { t = substr(s, RSTART, RLENGTH); sub(/.*:/, "", t); n++; sum += t; if (t > max) max = t; if (n == 1 || t < min) min = t; s = substr(s, RSTART + RLENGTH) } }
	END { if (n != 8 || min < 0.8 * sum / 8 || max > 1.2 * sum / 8) { print n, min, max, sum; exit 1 } }' $B/turn.jsonl
check "the page says how many rules" grep -q "16 rules" $B/out
check "the end" grep -q '"kind":"end","restored":true' $B/turn.jsonl
same "as found" "$(affinity mq0) $(queues mq0) $(rules)" "$before"
ringwise bench forward --in mq0 --out mq2 --netns far --gen mq1 --sink mq3 --lead --size 20 --rate 2000 --pairs 1 --yes --capture none --results $B/no.jsonl >$B/out 2>$B/err
same "rules for random sources: status" $? 2

ip route del 198.18.0.0/24
ip address del 10.77.0.1/24 dev mq2
for dev in mq1 mq3; do
	ip -n far link set $dev netns 1
	ip link set $dev up
done
ip netns del far
