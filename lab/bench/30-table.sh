# The table of requests and responses: a NIC with one receive queue without steering, with RPS, with RPS and RFS; XPS on a
# NIC with eight.
# hosts: pair
# kernels: all
# needs: mqnic
# timeout: 300
. /h/lib.sh
. /h/bench.sh

far_up far0 mq1
ip address add 192.0.2.1/24 dev eth0
ip -n far address add 192.0.2.2/24 dev far0
ip address add 192.0.3.1/24 dev mq0
ip -n far address add 192.0.3.2/24 dev mq1
wait_link eth0
wait_link mq0

load="--netns far --size 64 --threads 4 --trial 3s --warm 500ms --cpus 0-3 --peer-cpus 4-7"
measured table rr eth0 $load --pairs $(pick 8 2) --calibrate 2 \
	--state 'rps=--set eth0.rps_cpus="0-3"' \
	--state 'rfs=--set eth0.rps_cpus="0-3" --set eth0.rps_flow_cnt=4096 --set host.rfs_entries=32768'
for f in /sys/class/net/mq0/queues/tx-*/xps_cpus; do
	echo 0 >$f
done
each=$(seq 0 7 | awk '{ printf "%s\"%d\" = \"%d\"", (NR > 1 ? ", " : ""), $1, $1 }')
measured table-xps rr mq0 $load --pairs $(pick 8 2) --calibrate 2 --state "xps=--set 'mq0.xps_cpus={ $each }'"
