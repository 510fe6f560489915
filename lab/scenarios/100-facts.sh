#!/bin/sh
# Values that drivers and the kernel reset, refuse, round and delay. This proves each behaviour of the simulated host.
# hosts: router16 small2
# kernels: all
# quick: router16@newest
# timeout: 180
. /h/lib.sh

q() { echo /sys/class/net/$1/queues; }
table() { ethtool -x $1 2>/dev/null | awk '/^ *[0-9]+:/ { for (i = 2; i <= NF; i++) printf "%s ", $i }'; }
affinities() { irqs $1 | grep -- - | while read -r n _; do asked $n; done | sort | uniq -c | tr -s ' \n' ' '; }
queue_irq() { irqs $1 | awk -v q="$2" '$2 ~ "-" q "$" { print $1; exit }'; }
# hex FILE: a mask without commas and leading zeros; nothing for no CPU
hex() { tr -d , <$1 | sed 's/^0*//'; }
kernel=$(uname -r)
old() { # old A.B: is this kernel older than that?
	_m=${1%.*} _n=${1#*.}
	_k=${kernel%%.*} _r=${kernel#*.}
	_r=${_r%%.*}
	[ "$_k" -lt "$_m" ] || { [ "$_k" = "$_m" ] && [ "$_r" -lt "$_n" ]; }
}
last=$((CPUS - 1))

# --- igb: a channel change gives new vectors, and the table back to equal
igb=$(awk '$3 == "igb" { print $2; exit }' nics)
many=$(ls -d $(q $igb)/rx-* | wc -l)
wait_link $igb
if [ $many = 8 ]; then
	n=$(irq_of $igb-TxRx-0)
	echo 1 >/proc/irq/$n/smp_affinity_list
	fresh=$(asked $(irq_of $igb-TxRx-7))
	ethtool -X $igb weight 5 1 1 1 0 0 0 0
	before=$(table $igb)
	echo 2 >$(q $igb)/rx-0/rps_cpus
	echo 4 >$(q $igb)/rx-7/rps_cpus
	echo 8 >$(q $igb)/tx-0/xps_cpus
	echo 8 >$(q $igb)/tx-7/xps_cpus
	check "igb: -L to fewer queues than the table uses is refused" sh -c "! ethtool -L $igb combined 2"
	check "igb: -L 4" ethtool -L $igb combined 4
	wait_link $igb
	same "igb: -L resets affinity" "$(asked $(queue_irq $igb 0))" "$fresh"
	check "igb: -L resets a table that was set manually" [ "$(table $igb)" != "$before" ]
	same "igb: after -L the table is equal" "$(table $igb | tr ' ' '\n' | sort | uniq -c | awk '$2 != "" { print $1 }' | tr '\n' ' ')" "32 32 32 32 "
	same "igb: 4 queues have separate vectors" "$(irqs $igb | grep -c -e "$igb-rx-" -e "$igb-tx-")" 8
	same "RPS of a queue that stays is kept by -L" "$(hex $(q $igb)/rx-0/rps_cpus)" 2
	same "a removed queue has no directory" "$(ls -d $(q $igb)/rx-7 2>/dev/null)" ""
	ethtool -L $igb combined 8
	wait_link $igb
	same "RPS of a queue that was removed is gone" "$(hex $(q $igb)/rx-7/rps_cpus)" ""
	same "XPS of a queue that stays is kept by -L" "$(hex $(q $igb)/tx-0/xps_cpus)" 8
	same "XPS of a queue that was removed is gone" "$(hex $(q $igb)/tx-7/xps_cpus)" ""
	same "igb: 8 queues have TxRx vectors" "$(irqs $igb | grep -c "$igb-TxRx-")" 8
	n=$(irq_of $igb-TxRx-1)
	echo 2 >/proc/irq/$n/smp_affinity_list
	ethtool -X $igb weight 3 1 0 0 0 0 0 0
	before=$(table $igb)
	ethtool -G $igb rx 500
	wait_link $igb
	same "igb: -G rounds up to a multiple of 8" "$(ethtool -g $igb | awk '/^RX:/ { v = $2 } END { print v }')" 504
	same "igb: -G keeps affinity" "$(asked $(irq_of $igb-TxRx-1))" 2
	same "igb: -G keeps the table" "$(table $igb)" "$before"
	ip link set $igb down
	ip link set $igb up
	wait_link $igb
	same "igb: down and up keep affinity" "$(asked $(irq_of $igb-TxRx-1))" 2
	same "igb: down and up keep the table" "$(table $igb)" "$before"
	ethtool -X $igb default
fi

# --- vmxnet3: the number of queues is fixed, and -G resets the table
if [ -e /sys/class/net/eth2 ] && [ "$HOST" = router16 ]; then
	check "vmxnet3: -L is refused" sh -c "! ethtool -L eth2 combined 4"
	ethtool -X eth2 weight 3 1 0 0 0 0 0 0
	before=$(table eth2)
	ethtool -G eth2 rx 100
	wait_link eth2
	check "vmxnet3: -G resets the table" [ "$(table eth2)" != "$before" ]
	# shellcheck disable=SC2002 # its own message, not the shell's
	same "e1000e: one queue has no xps_cpus to read" "$(cat $(q eth3)/tx-0/xps_cpus 2>&1 | sed 's/.*: //')" "No such file or directory"
fi

# --- virtio-net: a channel change rewrites affinity and XPS
vio=$(awk '$3 == "virtio_net" { print $2; exit }' nics)
if [ -n "$vio" ]; then
	id=$(basename $(readlink -f /sys/class/net/$vio/device))
	n=$(irq_of $id-input.0)
	preset=$(asked $n)
	echo 1 >/proc/irq/$n/smp_affinity_list
	check "virtio: -L 1" ethtool -L $vio combined 1
	ethtool -L $vio combined 2
	same "virtio: -L rewrites affinity" "$(asked $(irq_of $id-input.0))" "$preset"
	check "virtio: the driver presets XPS" [ -n "$(hex $(q $vio)/tx-0/xps_cpus)" ]
fi

# --- the kernel's refusals
n=$(queue_irq $igb 0)
list=/proc/irq/$n/smp_affinity_list mask=/proc/irq/$n/smp_affinity
echo 0 >$list
same "affinity: no CPU" "$(errno_of 0 $mask)" "Invalid argument"
same "affinity: an empty list" "$(errno_of '' $list)" "Invalid argument"
same "affinity: a CPU beyond the possible ones, as a list" "$(errno_of 9999 $list)" "Numerical result out of range"
same "affinity: beyond, as a mask" "$(errno_of 1,00000000,00000000,00000000 $mask)" "Value too large for defined data type"
same "affinity: garbage" "$(errno_of zz $mask)" "Invalid argument"
same "rps_cpus: beyond" "$(errno_of 1,00000000,00000000,00000000 $(q $igb)/rx-0/rps_cpus)" "Value too large for defined data type"
same "rps_cpus: garbage" "$(errno_of zz $(q $igb)/rx-0/rps_cpus)" "Invalid argument"
same "xps_cpus: beyond" "$(errno_of 1,00000000,00000000,00000000 $(q $igb)/tx-0/xps_cpus)" "Value too large for defined data type"
echo 1000 >$(q $igb)/rx-0/rps_flow_cnt
same "rps_flow_cnt is rounded up to a power of two" "$(cat $(q $igb)/rx-0/rps_flow_cnt)" 1024
echo 1000 >/proc/sys/net/core/rps_sock_flow_entries
same "rps_sock_flow_entries too" "$(cat /proc/sys/net/core/rps_sock_flow_entries)" 1024
echo 0 >$(q $igb)/rx-0/rps_flow_cnt
echo 0 >/proc/sys/net/core/rps_sock_flow_entries

# --- an offline CPU
echo $last >$list
echo 0 >/sys/devices/system/cpu/cpu$last/online
check "offline: the interrupt leaves the CPU" [ "$(effective $n)" != $last ]
moved=$(asked $n)
same "affinity: an offline CPU alone" "$(errno_of $last $list)" "Invalid argument"
same "rps_cpus accepts an offline CPU" "$(errno_of $(printf %x $((1 << last))) $(q $igb)/rx-0/rps_cpus)" ok
same "rps_cpus drops an offline CPU" "$(hex $(q $igb)/rx-0/rps_cpus)" ""
both=$(printf %x $(((1 << last) | 1)))
echo $both >$(q $igb)/rx-0/rps_cpus
same "rps_cpus keeps the CPUs beside it" "$(hex $(q $igb)/rx-0/rps_cpus)" 1
echo 0 >$(q $igb)/rx-0/rps_cpus
xps=$(q $igb)/tx-0/xps_cpus
was=$(cat $xps)
echo $both >$xps
same "xps_cpus drops an offline CPU" "$(hex $xps)" 1
same "affinity keeps an offline CPU beside another" "$(errno_of 0,$last $list; cat $list)" "ok
$([ $last = 1 ] && echo 0-1 || echo 0,$last)"
echo $moved >$list
echo 1 >/sys/devices/system/cpu/cpu$last/online
echo $was >$xps
same "offline: it does not come back" "$(asked $n)" "$moved"

# --- the test NIC
[ "$HAVE_MQNIC" = 1 ] && [ -e /sys/class/net/mq0 ] || exit 0
for i in 0 1 2 3 4 5 6 7; do
	echo 0 >/proc/irq/$(irq_of mq0-TxRx-$i)/smp_affinity_list
done
traffic mq1 mq0
n=$(irq_of mq0-TxRx-3)
same "an interrupt that came is on the CPU it was set to" "$(effective $n)" 0
echo 5 >/proc/irq/$n/smp_affinity_list
same "a new affinity reads back at once" "$(asked $n)" 5
same "but takes effect only at the next interrupt" "$(effective $n)" 0
a=$(irq_counts $n | cut -d' ' -f6)
traffic mq1 mq0
same "then it has moved" "$(effective $n)" 5
check "and is counted there" [ "$(irq_counts $n | cut -d' ' -f6)" -gt "$a" ]
echo 4-5 >/proc/irq/$n/smp_affinity_list
traffic mq1 mq0
same "a widened mask moves nothing" "$(effective $n)" 5

refusal="Operation not permitted"
old 6.12 && refusal="Input/output error"
same "managed vectors refuse" "$(errno_of 0 /proc/irq/$(irq_of mq3-TxRx-0)/smp_affinity_list)" "$refusal"
same "its event vector does not" "$(errno_of 0 /proc/irq/$(irq_of mq3-event)/smp_affinity_list)" ok

quirk=/sys/module/mqnic/parameters/quirk
channels() { ethtool -l $1 | awk '/^Combined/ { v = $2 } END { print v }'; }
same "mqnic: -L keeps affinity" "$(ethtool -L mq0 combined 4 && asked $(irq_of mq0-TxRx-3))" 4-5
ethtool -L mq0 combined 8
echo 64 >$quirk
ethtool -L mq0 combined 4
check "quirk 64: -L loses affinity" [ "$(asked $(irq_of mq0-TxRx-3))" != 4-5 ]
echo 0 >$quirk
ethtool -L mq0 combined 8
echo 2 >$quirk
check "quirk 2: -L is refused as busy" sh -c "ethtool -L mq0 combined 4 2>&1 | grep -q 'resource busy'"
echo 32 >$quirk
check "quirk 32: no vector is left" sh -c "ethtool -L mq0 combined 6 2>&1 | grep -q 'No space left'"
check "quirk 32: fewer are fine" ethtool -L mq0 combined 4
echo 256 >$quirk
ethtool -L mq0 combined 8
same "quirk 256: -L is accepted and ignored" "$(channels mq0)" 4
echo 1 >$quirk
ethtool -C mq0 rx-usecs 33
same "quirk 1: coalescing is accepted and ignored" "$(ethtool -c mq0 | awk '/^rx-usecs:/ { print $2 }')" 50
echo 8 >$quirk
ethtool -C mq0 rx-usecs 33
same "quirk 8: microseconds are rounded" "$(ethtool -c mq0 | awk '/^rx-usecs:/ { print $2 }')" 32
echo 128 >$quirk
echo 2 >/sys/module/mqnic/parameters/hang
t0=$(cut -d. -f1 /proc/uptime)
ethtool -l mq0 >/dev/null
t1=$(cut -d. -f1 /proc/uptime)
check "quirk 128: the device hangs for a time" [ $((t1 - t0)) -ge 2 ]
echo 0 >$quirk
ethtool -L mq0 combined 8
ethtool -C mq0 rx-usecs 50
same "without quirks it obeys" "$(channels mq0)" 8

# Linux 7.3 leaves them out of an answer without the statistics of address families.
check "the counters of an interface are read" sh -c 'ringwise watch mq0 -j --once | grep -q "\"rx\":{\"packets\":[0-9]"'
