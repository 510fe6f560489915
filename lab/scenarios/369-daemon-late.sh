#!/bin/sh
# The service: an interface that appears late gets the layout of the configuration; CPUs that a cpuset or a kubelet takes are left, and used again afterwards.
# hosts: router3
# kernels: 6.12
# areas: daemon
# timeout: 600
. /h/lib.sh
. /h/state.sh
. /h/daemon.sh

devs="eth0 eth1 eth2"
links $devs
cat >/tmp/late.toml <<END
version = 1

[host]
goal = "forward"
interfaces = ["eth*"]

[[interface]]
match = { name = "eth2" }
rps_cpus = "0-1"
END
layout >/tmp/default
status "the layout is applied" 0 ringwise apply --yes --goal forward $devs
layout >/tmp/planned
status "and put back" 0 ringwise rollback --yes 0
check "the layout is not the default" sh -c '! cmp -s /tmp/planned /tmp/default'

# comes DEV: waits until it is there, and sets it up
comes() {
	_n=0
	while [ ! -e "/sys/class/net/$1" ] && [ $_n -lt 100 ]; do
		sleep 0.2
		_n=$((_n + 1))
	done
	ip link set "$1" up
}

# rps DEV MASK: whether every receive queue has this RPS mask, in hex digits.
rps() {
	for _f in /sys/class/net/"$1"/queues/rx-*/rps_cpus; do
		[ -e "$_f" ] || return 1
		[ "$(tr -d , <"$_f" | sed 's/^0*//')" = "$2" ] || return 1
	done
}

# The third interface is not there yet.
pci=/sys/bus/pci/devices/$(basename "$(pci_of eth2)")
echo 1 >$pci/remove
check "it is away" test ! -e /sys/class/net/eth2
rm -rf $RINGWISE_STATE_DIR
devs="eth0 eth1"
# The directory of a kubelet exists before the service starts: changes in it are notified.
mkdir -p /var/lib/kubelet
serve --config /tmp/late.toml
grep -v eth2 /tmp/planned >/tmp/early
back "interfaces that are there get the layout of the configuration" /tmp/early 30
devs="eth0 eth1 eth2"
# Transactions of the service are at least 10 s apart.
sleep 11
echo 1 >/sys/bus/pci/rescan
comes eth2
links eth2
back "an interface that is plugged in late gets it, too" /tmp/planned $notified
soon "and the RPS mask of the file" 5 rps eth2 3
check "the others have none" rps eth1 ""

# The first port by PCI address must not become the pattern for the others either.
pci=/sys/bus/pci/devices/$(basename "$(pci_of eth0)")
echo 1 >$pci/remove
check "the first one is away" test ! -e /sys/class/net/eth0
sleep 11
echo 1 >/sys/bus/pci/rescan
comes eth0
links eth0
back "the first one gets the layout of the others" /tmp/planned $notified
status "and no port has to move" 0 ringwise plan --config /tmp/late.toml --exit-code

# off CPU: no queue's interrupt may be delivered there.
off() {
	for _i in $(awk '/TxRx/ { sub(":", "", $1); print $1 }' /proc/interrupts); do
		case ",$(cat /proc/irq/$_i/smp_affinity_list)," in
		*-* | *,$1,*) return 1 ;;
		esac
	done
}

# A cpuset that isolates a CPU at run time.
mount | grep -q ' /sys/fs/cgroup type cgroup2' || mount -t cgroup2 none /sys/fs/cgroup
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/alone
echo 5 >/sys/fs/cgroup/alone/cpuset.cpus
echo isolated >/sys/fs/cgroup/alone/cpuset.cpus.partition
same "the cpuset isolates CPU 5" "$(cat /sys/fs/cgroup/cpuset.cpus.isolated)" 5
soon "the queues leave the isolated CPU" $compared off 5
rmdir /sys/fs/cgroup/alone
back "and come home when the cpuset is gone" /tmp/planned $compared

# A kubelet that gives CPUs to a container. Only its file is here.
kubelet() {
	echo "$1" >/var/lib/kubelet/new
	mv /var/lib/kubelet/new /var/lib/kubelet/cpu_manager_state
}
kubelet '{"policyName":"static","defaultCpuSet":"0-7","checksum":1}'
sleep 11
quiet 13 "a kubelet without exclusive CPUs changes nothing"
kubelet '{"policyName":"static","defaultCpuSet":"0-5","entries":{"5f0e":{"app":"6-7"}},"checksum":2}'
soon "the queues leave the first CPU of a container" $notified off 6
soon "and the second" 1 off 7
sleep 11
kubelet '{"policyName":"static","defaultCpuSet":"0-7","checksum":1}'
back "and come home when the container has gone" /tmp/planned $notified
sleep 11
# A container runtime keeps interrupts off a CPU (annotation irq-load-balancing.crio.io of CRI-O).
everywhere=$(cat /proc/irq/default_smp_affinity)
echo df >/proc/irq/default_smp_affinity
soon "the queues leave the CPU that the runtime took from the default affinity" $compared off 5
echo $everywhere >/proc/irq/default_smp_affinity
back "and come home when it is there again" /tmp/planned $compared
rm -r /var/lib/kubelet

status "the host is as applied" 0 ringwise verify
cat /tmp/out
grep -v writes $log
status "stop" 0 ringwise daemon stop
status "everything is put back" 0 ringwise rollback --yes 0
