#!/bin/sh
# watch --per-flow: classes of traffic that the device cannot spread by ports, counted exactly; what RPS does for PPPoE, QinQ, GRE and
# IP in IP, and a flow rule for ESP; and the gain of hashing the ports of UDP, predicted and then measured.
# hosts: router16
# kernels: 6.12
# areas: flow watch
# timeout: 600
# needs: mqnic
. /h/lib.sh
. /h/state.sh
. /h/watch.sh
quiet_net

# class_on QUEUE CLASS: sampled packets of the class on this queue, over all intervals
class_on() {
	awk -v q="\"queue\":$1," -v c="\"class\":\"$2\",\"looked_at\":" '{
		n = split($0, part, "[{]\"queue\":")
		for (i = 2; i <= n; i++) {
			if (index("\"queue\":" part[i], q) != 1) continue
			if (at = index(part[i], c)) s += substr(part[i], at + length(c)) + 0
		}
	} END { printf "%d", s }' /tmp/f.json
}
# class CLASS: of all queues
class() {
	grep -o "\"class\":\"$1\",\"hashed_by\":\"[a-z_]*\",\"looked_at\":[0-9]*" /tmp/f.json | awk -F: '{ s += $NF } END { printf "%d", s }'
}
# queues CLASS: the queues on which it arrived
queues() {
	for _q in $(seq 0 7); do
		[ "$(class_on $_q $1)" = 0 ] || echo $_q
	done
}
# queues_of CLASS: the number of these queues
queues_of() {
	queues $1 | wc -l
}
# rps_cpus: CPUs on which packets arrived by RPS (column 10 of softnet_stat), with the number of them
rps_cpus() {
	awk '$10 != "00000000" { print NR ":" $10 }' /proc/net/softnet_stat
}

ip link set mq0 up
ip link set mq1 up
links mq0 mq1
to="dst_mac $(cat /sys/class/net/mq0/address)"
ethtool -N mq0 rx-flow-hash udp4 sdfn

# --- each class is counted, by queue
listen mq0 --sample 1
send mq1 120 "dst 10.1.1.1" "$to" "vlan_id 7" "svlan_id 100"
send mq1 30 "dst 10.1.1.1" "$to" "vlan_id 7"
frames mq1 mq0 pppoe 200
frames mq1 mq0 lcp 5
frames mq1 mq0 gre 64
frames mq1 mq0 ipip 45
frames mq1 mq0 esp 50
frames mq1 mq0 frag 40
frames mq1 mq0 mpls 20
frames mq1 mq0 vxlan 256
frames mq1 mq0 wireguard 25
heard
tail -3 /tmp/f.json | head -1 | cut -c1-600
for n in qinq:120 ports:30 pppoe_ipv4:200 pppoe_control:5 gre:64 ip_in_ip:45 esp:50 fragment:40 mpls:20 vxlan:256 wireguard:25; do
	same "${n#*:} frames of class ${n%:*}" "$(class ${n%:*})" "${n#*:}"
done
same "nothing else" "$(all looked_at)" 855
same "nothing was lost" "$(grep -o '"lost":[0-9]*' /tmp/f.json | awk -F: '{ s += $2 } END { printf "%d", s }')" 0
# The test NIC skips any number of tags, and hashes neither PPPoE nor MPLS.
for class in pppoe_ipv4 gre ip_in_ip esp fragment mpls wireguard; do
	same "$class arrives on one queue" "$(queues_of $class)" 1
done
esp=$(queues esp)
check "VXLAN arrives on several queues ($(queues_of vxlan)): its source port differs by flow" [ "$(queues_of vxlan)" -gt 2 ]
same "the NIC puts frames without a hash on queue 0" "$(class_on 0 pppoe_ipv4)" 200

# --- what is proposed
listen mq0 --sample 1
frames mq1 mq0 pppoe 300
heard
check "RPS on queue 0 is proposed" grep -q '"command":"ringwise plan --goal GOAL --set mq0.rps_cpus.0=' /tmp/f.json
check "as not in effect" grep -q '"remedy":"rps","dev":"mq0","queue":0,"in_effect":false' /tmp/f.json

# --- RPS spreads PPPoE by the flow inside
rps_cpus >/tmp/rps.before
echo f0 >/sys/class/net/mq0/queues/rx-0/rps_cpus
listen mq0 --sample 1
frames mq1 mq0 pppoe 400
heard
rps_cpus >/tmp/rps.after
diff /tmp/rps.before /tmp/rps.after >/tmp/rps
cat /tmp/rps
check "packets of one PPPoE session arrive on several CPUs" [ "$(grep -c '^+[0-9]' /tmp/rps)" -ge 2 ]
same "they are still counted at queue 0" "$(class_on 0 pppoe_ipv4)" 400
check "RPS is in effect" grep -q '"remedy":"rps","dev":"mq0","queue":0,"in_effect":true,"command":null' /tmp/f.json
echo 0 >/sys/class/net/mq0/queues/rx-0/rps_cpus

# --- and QinQ, GRE and IP in IP. QinQ: as on a device that hashes nothing behind two tags, which puts all of it on queue 0
# rps_spreads CLASS COMMAND...: sends with RPS on every queue of mq0
rps_spreads() {
	_class=$1
	shift
	for _f in /sys/class/net/mq0/queues/rx-*/rps_cpus; do echo f0 >"$_f"; done
	rps_cpus >/tmp/rps.before
	listen mq0 --sample 1
	"$@"
	heard
	rps_cpus >/tmp/rps.after
	for _f in /sys/class/net/mq0/queues/rx-*/rps_cpus; do echo 0 >"$_f"; done
	diff /tmp/rps.before /tmp/rps.after >/tmp/rps
	cat /tmp/rps
	same "$_class with RPS: one queue" "$(queues_of $_class)" 1
	check "$_class with RPS: several CPUs" [ "$(grep -c '^+[0-9]' /tmp/rps)" -ge 2 ]
}
rps_spreads gre frames mq1 mq0 gre 200
rps_spreads ip_in_ip frames mq1 mq0 ipip 200
ethtool -X mq0 equal 1
echo 4194304 >/sys/module/mqnic/parameters/quirk # the hash of packets is not reported
rps_spreads qinq send mq1 200 "dst 10.1.1.1" "$to" "vlan_id 7" "svlan_id 100" "udp_src_max 1223"
echo 0 >/sys/module/mqnic/parameters/quirk
ethtool -X mq0 default

# --- a flow rule by SPI: frames sends SPI 256 to 305, and the rule matches 256 to 287
ethtool -K mq0 ntuple on
ethtool -N mq0 flow-type esp4 spi 256 m 0x1f action $((esp ^ 1)) loc 9
listen mq0 --sample 1
frames mq1 mq0 esp 50
heard
same "ESP packets of the rule arrive on its queue" "$(class_on $((esp ^ 1)) esp)" 32
same "the others stay on theirs" "$(class_on "$esp" esp)" 18
ethtool -K mq0 ntuple off

# --- UDP hashed by addresses: the prediction, and what then happens
# udp_sample: sends 1000 packets until all of them are in one interval, whose line is then in /tmp/line
udp_sample() {
	for _try in 1 2 3 4 5; do
		INTERVAL=3s listen mq0 --sample 1
		frames mq1 mq0 udp 1000
		heard
		grep '"looked_at":1000,"lost":0,' /tmp/f.json >/tmp/line && return
	done
	not_ok "1000 packets in one interval" "$(all looked_at)"
}
# busiest: packets of the busiest queue in /tmp/line
busiest() {
	tr '{' '\n' </tmp/line | awk -F'[:,]' '/^"queue":[0-9]/ { if ($4 > m) m = $4 } END { printf "%d", m }'
}
# predicted MEMBER: of udp_ports, in packets of the sample
predicted() {
	grep -o "\"$1\":[0-9.]*" /tmp/line | awk -F: '{ printf "%d", $2 * 10 + 0.5 }'
}
ethtool -N mq0 rx-flow-hash udp4 sd
udp_sample
same "by addresses one queue gets all" "$(busiest)" 1000
same "and the document agrees" "$(predicted now_percent)" 1000
will=$(predicted with_ports_percent)
check "with ports it would be much less ($will of 1000)" [ "$will" -lt 500 ]
check "with the command" grep -q '"command":"ringwise plan --goal GOAL --set mq0.rss.fields.udp4=sdfn' /tmp/line
ethtool -N mq0 rx-flow-hash udp4 sdfn
udp_sample
same "with ports the busiest queue gets what was predicted" "$(busiest)" "$will"
check "and nothing is proposed any more" grep -q '"udp_ports":null' /tmp/line

# --- the text
ringwise watch --per-flow mq0 --sample 1 --interval 3s --count 2 >/tmp/f.lines 2>/tmp/f.err &
w=$!
sleep 4
frames mq1 mq0 pppoe 100
wait $w
cat /tmp/f.lines
check "the block" grep -q '^# not spread by flow: 100.0 % of the sample' /tmp/f.lines
check "the class" grep -q '^# 100.0%  PPPoE with IPv4 .* nothing .* 0 (100.0%)' /tmp/f.lines
exit 0
