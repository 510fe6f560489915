#!/bin/sh
# The service: after resets the layout is right again; what a person changes stays; people decide; nothing is written without a reason.
# hosts: router3
# kernels: 6.12 newest 5.10
# areas: daemon
# timeout: 1500
# long: 4500
. /h/lib.sh
. /h/state.sh
. /h/daemon.sh

devs="eth0 eth1 eth2"
links $devs

layout >/tmp/first
table() {
	ethtool -x "$1" | grep -v '^RX flow' | md5sum
}
# With a table and a NAPI setting, so that the service keeps these, too.
defer=/sys/class/net/eth1/napi_defer_hard_irqs
status "the layout is applied" 0 ringwise apply --yes --goal forward --set 'eth2.rss.table=equal 8' --set eth1.napi.defer_hard_irqs=2 $devs
same "with the NAPI setting" "$(cat $defer)" 2
spread=$(table eth2)
layout >/tmp/planned
serve --config none
hear
same "it writes nothing where everything is as applied" "$(journals)" 1
status "a second one is refused" 6 ringwise daemon

# A reset: the driver sets up the device again.
pci=$(basename "$(pci_of eth1)")
driver=$(readlink -f /sys/bus/pci/devices/$pci/driver)

# again: the driver lets the device go and sets it up again.
again() {
	echo $pci >$driver/unbind
	echo $pci >$driver/bind
	ip link set eth1 up
	links $devs
}

again
back "the driver was bound again" /tmp/planned $notified
check "and the log says why" logged "because the driver or the kernel had reset settings"
soon "the NAPI setting, too" $notified grep -qx 2 $defer
check "rtnetlink and uevents reported it" sh -c "[ $(heard links) -gt 0 ] && [ $(heard uevents) -gt 0 ]"

# Another number of queues by a person stays; affinity and XPS are laid out again.
# Each of the four queues has one CPU, and every CPU sends through one of them.
four() {
	masks=0
	for n in 0 1 2 3; do
		case $(asked "$(irq_of "eth0-TxRx-$n")") in *[-,]*) return 1 ;; esac
		masks=$((masks | 0x$(cat "/sys/class/net/eth0/queues/tx-$n/xps_cpus")))
	done
	[ $masks = 255 ]
}
# Transactions of the service are at least 10 s apart.
sleep 11
ethtool -L eth0 combined 4
links $devs
soon "each of the four queues has one CPU, and every CPU a queue" $notified four
same "the new number of queues stays" "$(ethtool -l eth0 | awk '/Combined/ { n = $2 } END { print n }')" 4
sleep 11
ethtool -L eth0 combined 8
links $devs
back "and with the earlier number it is as before" /tmp/planned $notified

# A change by a person stays, and is reported once.
irq=$(irq_of eth2-TxRx-3)
was=$(asked $irq)
echo 0 >/proc/irq/$irq/smp_affinity_list
check "a manual change is reported" logged "manual change, which stays: eth2"
quiet 25 "and nothing is written because of it"
same "it stays" "$(asked $irq)" 0
same "it is reported once" "$(grep -c 'manual change, which stays: eth2' $log)" 1
echo "$was" >/proc/irq/$irq/smp_affinity_list

# The same with a table.
ethtool -X eth2 equal 4
quarter=$(table eth2)
check "a table that was set by hand is reported" logged "manual change, which stays: eth2 RSS table"
quiet 15 "and nothing is written because of it"
same "the table stays" "$(table eth2)" "$quarter"
ethtool -X eth2 equal 8
same "and is as applied again" "$(table eth2)" "$spread"

# Since Linux 6.17 the kernel reports a table that is written. The alias makes the service look, so the next comparison is 10 s later.
case $(uname -r) in
5.* | 6.[0-9].* | 6.1[0-6].*) ;;
*)
	ip link set eth2 alias looked
	sleep 4
	n=$(heard ethtool)
	echo "# notifications of ethtool so far: $n"
	ethtool -X eth2 equal 2
	check "a table is found by its notification, before the comparison" logged_times 2 "manual change, which stays: eth2 RSS table" 6
	ethtool -X eth2 equal 8
	soon "ethtool reported it" $notified more ethtool "$n"
	;;
esac

# Nothing reports a NAPI setting: the comparison finds it.
echo 0 >$defer
soon "a NAPI setting that was set by hand is reported" $compared logged_once "manual change, which stays: eth1 "
same "it stays" "$(cat $defer)" 0
echo 2 >$defer

# netdev reports new devices, since Linux 6.6. rtnetlink reports them, too; the counter shows that this source works alone.
case $(uname -r) in
5.*) ;;
*)
	n=$(heard netdev)
	modprobe veth
	/usr/bin/ip link add veth0 type veth peer name veth1
	soon "netdev notifications arrive" $notified more netdev "$n"
	ip link del veth0
	;;
esac

# A CPU that goes offline, and comes back.
one_cpu_each() {
	for i in $(awk '/TxRx/ { sub(":", "", $1); print $1 }' /proc/interrupts); do
		case $(asked "$i") in *[-,]*) return 1 ;; esac
	done
}
echo 0 >/sys/devices/system/cpu/cpu3/online
soon "its queues have other CPUs" $notified one_cpu_each
sleep 11
echo 1 >/sys/devices/system/cpu/cpu3/online
back "the queues come home" /tmp/planned $notified
sleep 11

# A rename, and a reset under the new name.
ip link set eth1 down
ip link set eth1 name wan0
ip link set wan0 up
ethtool -L wan0 combined 4
ethtool -L wan0 combined 8
devs="eth0 wan0 eth2"
links $devs
sed 's/eth1/wan0/g' /tmp/planned | sort >/tmp/renamed
back "it is laid out under its new name" /tmp/renamed $notified
ip link set wan0 down
ip link set wan0 name eth1
ip link set eth1 up
devs="eth0 eth1 eth2"
ethtool -L eth1 combined 4
ethtool -L eth1 combined 8
links $devs
back "renamed and back" /tmp/planned 30

# A storm of flaps: at most one transaction in ten seconds. Emulated, igb takes a second for each.
flaps=60
[ -z "$LONG" ] || flaps=1000
sleep 11
n=$(journals)
read -r _begin _ </proc/uptime
echo $pci >$driver/unbind
echo $pci >$driver/bind
ip link set eth1 up
i=0
while [ $i -lt $flaps ]; do
	ip link set eth2 down
	ip link set eth2 up
	i=$((i + 1))
done
links $devs
back "after $i flaps" /tmp/planned 40
now=$(journals)
read -r _to _ </proc/uptime
most=$(((${_to%.*} - ${_begin%.*}) / 10 + 2))
check "they are few transactions ($((now - n)), at most $most)" test $((now - n)) -ge 1 -a $((now - n)) -le $most

# A person changes something in the middle of a reset: that stays, and the rest is right again.
again
irq=$(irq_of eth1-TxRx-2)
echo 1 >/proc/irq/$irq/smp_affinity_list
sleep 12
same "a manual change in the middle of a reset stays" "$(asked $irq)" 1
layout | grep -v "eth1-TxRx-2=" >/tmp/rest
grep -v "eth1-TxRx-2=" /tmp/planned >/tmp/wanted
unchanged "and the rest is as planned" /tmp/wanted /tmp/rest
sed -n 's/.*eth1-TxRx-2=//p' /tmp/planned | head -1 >/proc/irq/$irq/smp_affinity_list
back "set by hand to the planned value, it is no change any more" /tmp/planned 40

# People decide.
status "paused" 0 ringwise daemon pause eth1
again
quiet 15 "a paused interface is left alone"
status "resumed" 0 ringwise daemon resume eth1
back "and then kept again" /tmp/planned 40
sleep 11
status "a person applies something else on trial" 0 ringwise apply --yes --goal balanced --reserve 0 --confirm 600s $devs
layout >/tmp/balanced
check "it is something else" sh -c '! cmp -s /tmp/planned /tmp/balanced'
again
quiet 15 "during the trial nothing is written"
status "confirmed" 0 ringwise confirm
back "what was lost meanwhile is written again" /tmp/balanced $compared
quiet 25 "the service accepts it"
layout >/tmp/now
unchanged "and does not change it" /tmp/balanced /tmp/now
status "the host is as applied" 0 ringwise verify
cat /tmp/out
status "status" 0 ringwise
cat /tmp/out
status "the history" 0 ringwise history
cat /tmp/out

# Another network namespace, and back: the interface is forgotten and found again.
unshare -n sleep 600 &
away=$!
sleep 1
ip link set eth1 netns $away
sleep 5
check "the interface is away" test ! -e /sys/class/net/eth1
nsenter -t $away -n ethtool -L eth1 combined 4
nsenter -t $away -n ethtool -L eth1 combined 8
# With the last process of a namespace its physical interfaces come back.
kill $away
n=0
while [ ! -e /sys/class/net/eth1 ] && [ $n -lt 100 ]; do
	sleep 0.2
	n=$((n + 1))
done
ip link set eth1 up
links $devs
back "after a visit to another network namespace" /tmp/balanced 40

# Virtual functions appear and go; nothing was requested for them. Transactions of the service are at least 10 s apart.
sleep 11
n=$(journals)
if echo 2 >/sys/bus/pci/devices/$pci/sriov_numvfs 2>/tmp/err; then
	sleep 15
	echo 0 >/sys/bus/pci/devices/$pci/sriov_numvfs
	links $devs
	back "after virtual functions" /tmp/balanced 40
else
	echo "# no virtual functions: $(cat /tmp/err)"
fi

# Nothing happens: nothing is written, not even a file.
sleep 15
_w=$(written)
_t=$(ticks $service)
_r=$(awk '/rchar/ { print $2 }' /proc/$service/io)
rest=60
[ -z "$LONG" ] || rest=600
sleep $rest
same "in $rest quiet seconds it writes nothing" "$(written)" "$_w"
_t=$((($(ticks $service) - _t) * 10 / rest))
echo "# CPU time in 10 of $rest s: $_t ticks of 10 ms, $(($(awk '/rchar/ { print $2 }' /proc/$service/io) - _r)) bytes read in all"
# children: CPU time of the programs that this shell has waited for, in ticks of 10 ms
children() {
	awk '{ print $16 + $17 }' /proc/$$/stat
}
_s=$(children)
for _ in 1 2 3 4 5; do ringwise >/dev/null; done
_s=$((($(children) - _s) / 5))
check "ten seconds of it cost at most as much as one ringwise status ($_t and $_s ticks)" test $_t -le $_s

# Stopped for a while, for a minute with --long: it hears everything afterwards.
kill -STOP $service
again
stopped=3
[ -z "$LONG" ] || stopped=60
sleep $stopped
kill -CONT $service
back "after a stop of the process" /tmp/balanced 40

memory
cat $log
status "stop" 0 ringwise daemon stop
wait $service
same "its status" $? 0
layout >/tmp/now
unchanged "settings stay" /tmp/balanced /tmp/now
serve --config none
status "stop, and restore everything" 0 ringwise daemon stop --restore
wait $service
same "its status" $? 0
tail -n 1 $log
layout >/tmp/now
unchanged "everything is as first found" /tmp/first /tmp/now
