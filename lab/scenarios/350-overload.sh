#!/bin/sh
# On a host that has no time left, apply, confirm and rollback work: it is the one that needs tuning.
# hosts: router16
# kernels: 6.12
# timeout: 600
# needs: mqnic
# needs: cost
. /h/lib.sh
. /h/state.sh
. /h/cost-model.sh
export RINGWISE_STATE_DIR=/tmp/rw35

links eth0 eth1
cpus=$(seq 0 $(($(nproc) - 1)))
centiseconds() { awk '{ printf "%.0f\n", $1 * 100; exit }' /proc/uptime; }
# work: how long a fixed piece of work takes, in hundredths of a second
work() {
	_from=$(centiseconds)
	awk 'BEGIN { for (i = 0; i < 400000; i++) n += i }'
	echo $(($(centiseconds) - _from))
}
quiet=$(work)
# slower NAME PERCENT: so much longer at least than on the quiet host
slower() {
	_busy=$(work)
	echo "$1: the same work took $quiet and takes $_busy hundredths of a second"
	check "$1: programs get little time" [ $((_busy * 100)) -ge $((quiet * $2)) ]
}
# round NAME: a transaction with its trial, and the way back
round() {
	state eth0 eth1 >/tmp/before
	_from=$(centiseconds)
	status "$1: apply" 0 ringwise apply --yes --confirm 300 --goal forward eth0 eth1
	cat /tmp/err
	status "$1: confirm" 0 ringwise confirm
	status "$1: rollback" 0 ringwise rollback --yes 0
	cat /tmp/err
	state eth0 eth1 >/tmp/after
	unchanged "$1: as before" /tmp/before /tmp/after
	echo "$1: $(($(centiseconds) - _from)) hundredths of a second"
}

# --- every CPU is busy with received packets
ip() { /usr/bin/ip "$@"; }
modprobe pktgen
for dev in mq0 mq1; do
	echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
	wait_link $dev
done
for queue in /sys/class/net/mq1/queues/rx-*; do echo ffff >$queue/rps_cpus; done
cost_load mq1
_pg_empty
_pg kpktgend_0 "add_device mq0"
for word in "count 0" "clone_skb 0" "pkt_size 100" "delay 0" "ratep 2600" "dst_mac $(cat /sys/class/net/mq1/address)" \
	"src_min 10.9.0.1" "src_max 10.9.3.250" "flag IPSRC_RND" "dst 10.9.9.9" \
	"udp_src_min 1024" "udp_src_max 1024" "udp_dst_min 9" "udp_dst_max 9"; do
	_pg mq0 "$word"
done
_pg_run 300 &
sender=$!
sleep 1
cost_on 4000000
sleep 2
cost_reset
sleep 3
for cpu in $cpus; do
	share=$(($(charged ns $cpu) / ($(cost_elapsed) * 10000)))
	echo "CPU $cpu is in softirqs for $share % of the time"
	check "CPU $cpu has hardly any time left" [ "$share" -ge 40 ]
done
slower "softirqs" 150
round "softirqs"
cost_off
echo stop >/proc/net/pktgen/pgctrl
wait $sender

# --- the hypervisor gives each CPU a tenth of its time
for cpu in $cpus; do
	taskset "$(printf '%x' $((1 << cpu)))" sh -c 'while [ -e /tmp/steal ]; do echo 90 >/dev/labbusy; sleep 0.01; done' &
done >/tmp/steal
sleep 1
slower "a tenth of the time" 400
round "a tenth of the time"
rm /tmp/steal
wait
