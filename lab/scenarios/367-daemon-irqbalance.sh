#!/bin/sh
# The service beside irqbalance: a restart that forgets the bans is corrected once; if it happens again, the service names irqbalance and pauses. The costs of both.
# hosts: router3
# kernels: 6.12
# areas: daemon
# timeout: 900
# needs: irqbalance
. /h/lib.sh
. /h/state.sh
. /h/irqbalance.sh
. /h/daemon.sh

devs="eth0 eth1 eth2"
links $devs
# Its own default interval, for the comparison of costs.
start --interval=10
# It moves the interrupts without a queue, which nothing pins, in its first rounds.
sleep 25
running "irqbalance runs for 25 s"
status "the layout is applied" 0 ringwise apply --yes --goal forward $devs
layout >/tmp/planned
serve --config none
n=$(journals)

sleep 15
_s=$(ticks $service) _i=$(ticks $pid)
sleep 60
echo "# CPU time in 60 s, ticks of 10 ms: service $(($(ticks $service) - _s)), irqbalance with its default interval of 10 s $(($(ticks $pid) - _i))"
running "irqbalance still runs"
same "beside irqbalance nothing is written" "$(journals)" "$n"

stop
start
check "a restart of irqbalance is noticed" logged "because irqbalance was restarted"
back "and the layout is right" /tmp/planned 40
same "in one transaction" "$(journals)" $((n + 1))
for _ in 1 2; do
	stop
	start
	sleep 25
done
check "a program that moves back twice is named" logged "irqbalance moved settings of eth0 back twice"
n=$(journals)
stop
start
quiet 25 "and the service pauses"
status "the service says so" 0 sh -c "ringwise -j | grep -q competing || ringwise | grep -q irqbalance"
stop
status "stop" 0 ringwise daemon stop
wait $service
cat $log | grep -v writes
status "everything is put back" 0 ringwise rollback --yes 0
