#!/bin/sh
# With traffic: later interrupts of each queue are counted on the planned CPU and on no other.
# hosts: router16
# kernels: 6.12 newest
# quick: router16@6.12
# timeout: 400
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw40

links eth0 eth1
state eth0 eth1 >/tmp/before
status "apply --goal forward" 0 ringwise apply --yes --goal forward eth0 eth1
# Every queue gets a packet, so that each interrupt moves.
traffic eth0 eth1 1024 4000
traffic eth1 eth0 1024 4000
(
	i=0
	while [ $i -lt 6 ]; do
		traffic eth0 eth1 1024 3000
		traffic eth1 eth0 1024 3000
		i=$((i + 1))
	done
) >/dev/null 2>&1 &
status "verify --for 5s under traffic" 0 ringwise verify --for 5s
cat /tmp/out
cp /tmp/out /tmp/planned
wait
# The same without ringwise: counts grow in one column only.
for dev in eth0 eth1; do
	for q in 0 1 2 3 4 5 6 7; do
		n=$(queue_irq $dev TxRx-$q)
		grep "^ *$n:" /proc/interrupts | tr -s ' ' >/tmp/q.$dev.$q
	done
done
traffic eth0 eth1 1024 8000
for q in 0 1 2 3 4 5 6 7; do
	n=$(queue_irq eth1 TxRx-$q)
	# The planned CPU is used, because the affinity that is set in the kernel may be that of another queue.
	want=$(sed -n "s/^ *eth1 rx-$q  planned CPU \([0-9]*\) .*/\1/p" /tmp/planned)
	got=$(grep "^ *$n:" /proc/interrupts | tr -s ' ' | awk -v old="$(cat /tmp/q.eth1.$q)" '{
		split(old, o, " "); sub(/^ /, "")
		for (i = 2; i <= 17; i++) if ($i != o[i]) printf "%s%d", (c++ ? "," : ""), i - 2 }')
	same "eth1 TxRx-$q interrupts only on CPU $want" "$got" "$want"
done
status "rollback" 0 ringwise rollback --yes 0
state eth0 eth1 >/tmp/after
unchanged "as before" /tmp/before /tmp/after
