#!/bin/sh
# apply, confirm and rollback work while softirqs take most of the time of every CPU.
# hosts: router16
# kernels: 6.12
# timeout: 300
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
. /h/overload.sh
export RINGWISE_STATE_DIR=/tmp/rw350

links eth0 eth1
ip() { /usr/bin/ip "$@"; }
quiet=$(work)
modprobe pktgen
for dev in mq0 mq1; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
	wait_link $dev
done
for queue in /sys/class/net/mq1/queues/rx-*; do echo ffff >$queue/rps_cpus; done
cost_load mq1
_pg_empty
_pg kpktgend_0 "add_device mq0"
for word in "count 0" "clone_skb 0" "pkt_size 100" "delay 0" "ratep 2400" "dst_mac $(cat /sys/class/net/mq1/address)" \
	"src_min 10.9.0.1" "src_max 10.9.3.250" "flag IPSRC_RND" "dst 10.9.9.9" \
	"udp_src_min 1024" "udp_src_max 1024" "udp_dst_min 9" "udp_dst_max 9"; do
	_pg mq0 "$word"
done
_pg_run 200 &
sender=$!
sleep 1
# The load is the same everywhere: a CPU that spends all of its time in interrupts would run no program at all.
cost_on 4000000 100 100
sleep 2
cost_reset
sleep 3
for cpu in $cpus; do
	share=$(($(charged ns $cpu) / ($(cost_elapsed) * 10000)))
	echo "CPU $cpu is in softirqs for $share % of the time"
	check "CPU $cpu has hardly any time left" [ "$share" -ge 40 ]
done
slower "$quiet" 150
there_and_back eth0 eth1
cost_off
echo stop >/proc/net/pktgen/pgctrl
wait $sender
