#!/bin/sh
# A queue that is never empty stays on the CPU that polls it, whatever its interrupt's affinity says.
# hosts: router16
# kernels: 6.12
# timeout: 240
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
export RINGWISE_STATE_DIR=/tmp/rw345

links eth0 eth1
ip() { /usr/bin/ip "$@"; }
taskset -p 1000 $$ >/dev/null
modprobe pktgen
for dev in eth0 eth1; do echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6; done
cost_load eth0
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
# polls: the CPU that has received most packets in two seconds, and how many
polls() {
	cost_reset
	sleep 2
	awk '$1 == "elapsed_ns" || $1 == "cpu" { next } $2 > n { n = $2; cpu = $1 } END { print cpu, n }' /proc/labcost
}
set -- $(polls)
from=$1
# The queue: whose interrupt is there and counts.
for n in $(irqs eth0); do echo "irq $n $(irq_name $n 2>/dev/null) asked $(asked $n) effective $(effective $n)"; done
echo "polled on CPU $from: $2 packets in 2 s"
n=$(for i in $(irqs eth0); do [ "$(effective $i)" = "$from" ] && echo $i; done | tail -1)
to=$(((from + 2) % 8))
echo "interrupt $n to CPU $to"
echo $to >/proc/irq/$n/smp_affinity_list
echo "after the write: $(polls)  effective $(effective $n)"
echo "later:           $(polls)  effective $(effective $n)"
d0=$(cat /sys/class/net/eth0/statistics/rx_missed_errors)
echo 1 >/sys/class/net/eth0/threaded
echo "threaded:        $(polls)  effective $(effective $n)"
ps -eo pid,psr,comm 2>/dev/null | grep napi | head -12
echo 0 >/sys/class/net/eth0/threaded
echo "not threaded:    $(polls)  effective $(effective $n)"
echo "later:           $(polls)  effective $(effective $n)"
# Busy: deferred
echo "gro_flush $(cat /sys/class/net/eth0/gro_flush_timeout) defer $(cat /sys/class/net/eth0/napi_defer_hard_irqs)"
cost_on 1000000
echo "at a fifth of the cost: $(polls)  effective $(effective $n)"
cost_off
echo stop >/proc/net/pktgen/pgctrl
wait $sender
