#!/bin/sh
# bench forward and search: packets through the host, the rates without loss, the size of the table; the host is restored at the end.
# hosts: remote
# kernels: 6.12
# areas: bench
# timeout: 1500
. /h/lib.sh
. /h/remote.sh
. /h/state.sh

far_up
B=/tmp/bench-forward
rm -rf $B
mkdir $B
modprobe pktgen
for dev in eth0 eth1; do
	wait_link $dev
done
PORTS="--in eth0,eth1 --out eth2 --netns far --gen far0,far1 --sink far2 --peer-cpus 3"
SHORT="--yes --seed 5 --calibrate 0 --trial 1s --warm 500ms --capture none"
queues() { ls /sys/class/net/$1/queues; }
before=$(for dev in eth0 eth1 eth2; do affinity $dev; queues $dev; done)

# value FILE MEMBER: of the first trial
value() {
	awk -v m="\"$2\":" '/"kind":"trial"/ && match($0, m "[0-9.]+") { print substr($0, RSTART + length(m), RLENGTH - length(m)); exit }' $1
}
lines() {
	grep -c "\"kind\":\"$2\"" $1
}

sysctl -w net.ipv4.ip_forward=0 >/dev/null
ringwise bench forward $PORTS $SHORT --size 20 --rate 2000 --pairs 1 --results $B/off.jsonl >$B/out 2>$B/err
same "a host that does not forward: status" $? 1
check "a host that does not forward: said" grep -q ip_forward $B/err
sysctl -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0 net.ipv4.conf.eth1.rp_filter=0 >/dev/null

ringwise bench forward $PORTS $SHORT --size 20 --rate 2000 --pairs 1 --results $B/nowhere.jsonl >$B/out 2>$B/err
same "no route: status" $? 1
check "no route: what to look at" grep -q "no packet arrived.*route" $B/err

ip route add 198.18.0.0/24 via 10.2.0.2 dev eth2
ip neigh replace 10.2.0.2 lladdr $(far cat /sys/class/net/far2/address) nud permanent dev eth2
ringwise bench forward $PORTS $SHORT --size 20,500 --rate 2000 --pairs 2 --state "tuned=--goal forward" --results $B/two.jsonl >$B/two.out 2>$B/two.err
same "two states: status" $? 0
same "two states: trials" "$(lines $B/two.jsonl trial)" 8
check "two states: packets arrive" awk -v n="$(value $B/two.jsonl done_per_s)" 'BEGIN { exit n < 200 }'
check "two states: what was sent is near what was offered, or it is said" sh -c "awk -v n='$(value $B/two.jsonl sent_per_s)' 'BEGIN { exit n < 1900 }' || grep -q generator $B/two.out"
check "two states: loss is known" [ -n "$(value $B/two.jsonl lost_percent)" ]
check "two states: the end" grep -q '"kind":"end","restored":true' $B/two.jsonl

ringwise bench forward $PORTS $SHORT --size 20 --rate 1000 --pairs 1 --routes 0,300 --interfaces 1,2 --results $B/axes.jsonl >$B/axes.out 2>$B/axes.err &
RUN=$!
check "the table grows" wait_for 60 sh -c '[ $(ip route show proto 251 | wc -l) = 300 ]'
wait $RUN
same "axes: status" $? 0
same "axes: trials" "$(lines $B/axes.jsonl trial)" 4
same "axes: no route is left" "$(ip route show proto 251 | wc -l)" 0

ringwise bench forward $PORTS $SHORT --size 20 --rate 8000 --pairs 1 --find-rate --results $B/rate.jsonl >$B/rate.out 2>$B/rate.err
same "rates: status" $? 0
same "rates: without loss and with half a per cent" "$(lines $B/rate.jsonl rate)" 2
check "rates: more with loss than without" awk '/"kind":"rate"/ { f = match($0, /"found_per_s":[0-9.]+/) ? substr($0, RSTART + 14, RLENGTH - 14) + 0 : 0; if (/"loss_percent":0\.0/) zero = f; else half = f } END { exit !(half >= zero) }' $B/rate.jsonl

ringwise bench search eth2 --netns far --workload rr --among moderation --budget 15m --size 64 --threads 1 --yes --seed 5 --trial 500ms --warm 200ms \
	--capture none --results $B/search.jsonl --save $B/found.toml >$B/search.out 2>$B/search.err
same "search: status" $? 0
check "search: it says what was dropped, and the proof" sh -c "grep -q 'round 1:' $B/search.out && grep -q 'proof:' $B/search.out"
check "search: a file that is sound, or none is better" sh -c "grep -q 'No candidate is better' $B/search.out || ringwise config check $B/found.toml"
check "search: the end" grep -q '"kind":"end","restored":true' $B/search.jsonl
same "everything is as found" "$(for dev in eth0 eth1 eth2; do affinity $dev; queues $dev; done)" "$before"
check "nothing is on trial" sh -c '! ls /var/lib/ringwise/trial-*.json'
ip route del 198.18.0.0/24
