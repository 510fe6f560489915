#!/bin/sh
# A queue that is never empty stays on the CPU that polls it, whatever the affinity of its interrupt.
# hosts: router16
# kernels: 6.12
# timeout: 240
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
export RINGWISE_STATE_DIR=/tmp/rw347

links eth0 eth1
ip() { /usr/bin/ip "$@"; }
taskset -p 1000 $$ >/dev/null
modprobe pktgen
for dev in eth0 eth1; do echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6; done
cost_load eth0
# shellcheck disable=SC2034 # _pg_empty reads it
PG_CPU=14
_pg_empty
_pg kpktgend_14 "add_device eth1"
for word in "count 0" "clone_skb 0" "pkt_size 100" "delay 0" "ratep 600" "dst_mac $(cat /sys/class/net/eth0/address)" \
	"src_min 10.9.0.1" "src_max 10.9.0.1" "dst 10.9.9.9" "udp_src_min 1024" "udp_src_max 1024" "udp_dst_min 9" "udp_dst_max 9"; do
	_pg eth1 "$word"
done
_pg_run 200 &
sender=$!
sleep 1
cost_on 5000000
sleep 1
# polls: the CPU that received the most packets in two seconds
polls() {
	cost_reset
	sleep 2
	awk '$1 == "elapsed_ns" || $1 == "cpu" { next } $2 > n { n = $2; cpu = $1 } END { print cpu }' /proc/labcost
}
from=$(polls)
echo "the queue is polled on CPU $from"
state eth0 >/tmp/before

# Not goal forward: for eight queues on seven CPUs it changes the RSS table, and the flow would move to another queue.
status "apply to other CPUs" 0 ringwise apply --yes --exclude-cpus "$from" eth0
cat /tmp/err /tmp/out
same "the queue stays where it is polled" "$(polls)" "$from"
ringwise verify --for 3s >/tmp/out 2>/tmp/err
cat /tmp/out
says "verify says so" "still polled on CPU $from"

# Switching threaded NAPI on and off does not help, because the thread only takes over at the next interrupt.
echo 1 >/sys/class/net/eth0/threaded
same "threaded NAPI does not move it" "$(polls)" "$from"
echo 0 >/sys/class/net/eth0/threaded
same "nor does switching it off again" "$(polls)" "$from"

cost_on 200000
sleep 1
to=$(polls)
check "with less load it moves (to CPU $to)" [ "$to" != "$from" ]
cost_off
echo stop >/proc/net/pktgen/pgctrl
wait $sender
status "rollback" 0 ringwise rollback --yes 0
state eth0 >/tmp/after
unchanged "as before" /tmp/before /tmp/after
