#!/bin/sh
# An interface in another network namespace: its function is listed, and the plan avoids the CPUs of its interrupts. Virtual
# functions are listed with their users.
# hosts: router16
# kernels: 6.12 newest 5.10
# timeout: 240
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw357
# The shell would use its built-in one.
ip() { /usr/bin/ip "$@"; }

links eth1 eth3
pci=$(basename "$(pci_of eth1)")
here=$(basename "$(pci_of eth3)")
status "show, with the interface here" 0 ringwise show
check "no function is listed" sh -c '! grep -q "no interface here" /tmp/out'

mkdir -p /var/run
ip netns add far
ip link set eth1 netns far
check "the interface is away" test ! -e /sys/class/net/eth1
check "its class directory is there" test -d "/sys/bus/pci/devices/$pci/net"
same "and shows no interface" "$(ls "/sys/bus/pci/devices/$pci/net")" ""
status "show, while it is down" 0 ringwise show
check "its function is listed" grep -q "$pci (igb, in another network namespace)" /tmp/out
ip -n far link set eth1 up
for _ in $(seq 100); do
	grep -q "eth1-TxRx-0$" /proc/interrupts && break
	sleep 0.2
done
for q in 0 1 2 3 4 5 6 7; do
	echo $((8 + q % 2)) >"/proc/irq/$(irq_of eth1-TxRx-$q)/smp_affinity_list"
done
status "show, while it is up" 0 ringwise show
cat /tmp/out
check "with the CPUs of its interrupts" sh -c "tr -s ' \n' ' ' </tmp/out | grep -q '8 interrupts (eth1-TxRx-0 and 7 more) on CPUs 8-9'"
check "and how to tune it" grep -q "ip netns exec" /tmp/out

status "the plan lists it as skipped" 0 ringwise plan --config none
check "as one in another namespace" sh -c "tr -s ' \n' ' ' </tmp/out | grep -q '$pci (driver igb, in another network namespace)'"
# CPUs 8-15 are those of its node.
status "the queue of eth3 is planned" 0 ringwise apply --yes --config none eth3
cat /tmp/out
for name in eth3-rx-0 eth3-tx-0; do
	cpu=$(asked "$(irq_of $name)")
	check "$name is on a CPU of its node without interrupts of the namespace ($cpu)" [ "$cpu" -ge 10 ]
done
status "nothing to do a second time" 0 ringwise plan eth3 --config none --exit-code

ip netns exec far ringwise show eth1 >/tmp/out 2>/tmp/err
same "show inside the namespace" "$?" 0
check "has the interface" grep -q "^eth1  igb $pci" /tmp/out
ip netns exec far ringwise show >/tmp/out 2>/tmp/err
check "and lists the functions of this one" grep -q "$here (e1000e, in another network namespace)" /tmp/out

ip -n far link set eth1 netns 1
ip netns del far
links eth1
status "show, with the interface back" 0 ringwise show
check "no function is listed any more" sh -c '! grep -q "no interface here" /tmp/out'

# Virtual functions: the driver leaves the interface two queues (igb_get_max_rss_queues).
total=$(cat "/sys/bus/pci/devices/$pci/sriov_totalvfs" 2>/dev/null)
if [ "${total:-0}" -gt 0 ]; then
	check "virtual functions are created" sh -c "echo 2 >/sys/bus/pci/devices/$pci/sriov_numvfs"
	links eth1
	status "show, with virtual functions" 0 ringwise show eth1
	check "lists them" grep -q "^VFs  *2 virtual functions of at most " /tmp/out
	vf=$(basename "$(readlink -f "/sys/bus/pci/devices/$pci/virtfn0")")
	if [ -e "/sys/bus/pci/devices/$vf/driver" ]; then
		echo "$vf" >"/sys/bus/pci/devices/$vf/driver/unbind"
	fi
	status "show, with one that has no driver" 0 ringwise show eth1
	check "lists it" sh -c "tr -s ' \n' ' ' </tmp/out | grep -q 'no driver (VFs\\{0,1\\} 0'"
	# The driver restarted the device. check judges interfaces with a link only.
	ip link set eth1 down
	ip link set eth1 up
	links eth1
	status "check, with virtual functions" 0 ringwise check eth1 --fail-on never
	says "check reports the few queues" "without a driver), it has at most 2 queues for 16 CPUs"
	echo 0 >"/sys/bus/pci/devices/$pci/sriov_numvfs"
	links eth1
	status "show, without virtual functions" 0 ringwise show eth1
	check "lists none" sh -c '! grep -q "^VFs" /tmp/out'
else
	skip "virtual functions" "$pci has none (sriov_totalvfs: ${total:-does not exist})"
fi
