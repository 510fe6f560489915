#!/bin/sh
# The service follows the load of an interface with a native XDP program. igb reports the hash of packets that the program passes on, so entries of the table are counted and moved as without it.
# hosts: router16
# kernels: 6.12
# areas: daemon
# timeout: 900
# needs: cost
. /h/lib.sh
. /h/state.sh
# The interfaces of cost_pair.
# shellcheck disable=SC2034
PAIR_FROM=eth1 PAIR_TO=eth0
. /h/cost-model.sh
. /h/daemon.sh

own_state
uneven_pair

# An XDP program of two instructions (r0 = XDP_PASS; exit) in the smallest object file for it.
base64 -d <<END | gunzip >/tmp/pass.o
H4sIAAAAAAACA6t39XFjYmRkgAFGhu8MCB4CnEBiO0BJVpBKveKSopLEJCBdmQuiK1IKGHIyk1PzilMZChKLixkIA2YgRAeyQCyEJC4ApbcDMRMQT4Xy3QN8GKgBGMHuwAQOUFoJi3pkwAl1FzrIgNIeSPpA6jigfAkoLQiVY0PTvwHN/zDAgcYXxeGHA1CahYD7AXj3fTwIAgAA
END
status "a native XDP program is attached" 0 ip link set dev eth0 xdpdrv obj /tmp/pass.o sec xdp
wait_link eth0
check "the kernel reports it" sh -c "/usr/bin/ip -d link show dev eth0 | grep -q 'prog/xdp '"
# Attaching it sets the interface up again.
ethtool -x eth0 >/tmp/now
unchanged "the table is kept" /tmp/table /tmp/now
for q in 0 1 2 3 4 5 6 7; do
	echo $q >"/proc/irq/$(queue_irq eth0 TxRx-$q)/smp_affinity_list"
done

serve --config none --act eth0
flows 1500 1400000
check "the uneven load is found" logged "eth0: uneven load: CPU 0 " 60
check "the table is changed" logged "eth0: changed the RSS table: " 90
ethtool -x eth0 >/tmp/changed
check "the device has another table" sh -c '! cmp -s /tmp/table /tmp/changed'
sleep 15
send_end
grep -F 'eth0: ' $log
status "stop" 0 ringwise daemon stop
wait $service
# Its guard waits for the next service first.
n=0
ethtool -x eth0 >/tmp/now
until cmp -s /tmp/table /tmp/now || [ $n = 60 ]; do
	sleep 1
	ethtool -x eth0 >/tmp/now
	n=$((n + 1))
done
unchanged "after its end the table is restored" /tmp/table /tmp/now
status "the program is detached" 0 ip link set dev eth0 xdpdrv off
ethtool -X eth0 default
cost_unload
