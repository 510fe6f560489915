#!/bin/sh
# What the service costs on a host with 95 queues, beside irqbalance and beside one ringwise status. Emulated; a fixed loop gives the scale.
# hosts: big64
# kernels: 6.12
# areas: daemon
# timeout: 600
# needs: irqbalance
# needs: mqnic
. /h/lib.sh
. /h/state.sh
. /h/irqbalance.sh
. /h/daemon.sh

devs="mq0 mq1"
links $devs
# Its own default interval.
start --interval=10
sleep 25
running "irqbalance runs for 25 s"
status "the layout is applied" 0 ringwise apply --yes --goal balanced $devs
tail -n 3 /tmp/out
running "irqbalance runs after the layout was applied"
# minute OPTION...: CPU time of the service in a minute
minute() {
	serve --config none "$@"
	n=$(journals)
	sleep 15
	_s=$(ticks $service) _i=$(ticks $pid)
	sleep 60
	_s=$(($(ticks $service) - _s)) _i=$(($(ticks $pid) - _i))
	same "nothing is written" "$(journals)" "$n"
	status "stop" 0 ringwise daemon stop
	wait $service
}
minute
echo "# CPU time in 60 s, ticks of 10 ms: service $_s, with load; irqbalance with its default interval of 10 s $_i"
minute --follow off
echo "# CPU time in 60 s, ticks of 10 ms: service $_s, without load; irqbalance $_i"
running "irqbalance still runs"
children() {
	awk '{ print $16 + $17 }' /proc/$$/stat
}
_c=$(children)
for _ in 1 2 3 4 5; do ringwise >/dev/null; done
_c=$((($(children) - _c) / 5))
echo "# $(ls -d /sys/class/net/mq[01]/queues/rx-* | wc -l) receive queues, $(grep -c 'mq[01]-TxRx' /proc/interrupts) interrupts"
echo "# CPU time of one ringwise status: $_c ticks of 10 ms"
check "ten seconds of the service cost at most as much as one status" test $((_s / 6)) -le $_c
# On the machine that runs the lab: busybox sh -c '…' with the same loop.
_c=$(children)
sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'
echo "# 300,000 rounds of a shell's loop: $(($(children) - _c)) ticks of 10 ms"
stop
status "everything is put back" 0 ringwise rollback --yes 0
