#!/bin/sh
# Bad input and bad moments: a clear message, the right status, and no partial changes.
# hosts: router16
# kernels: 6.12
# timeout: 400
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw70

links eth0 eth1
state eth0 eth2 eth3 >/tmp/before
status "a CPU beyond the machine" 1 ringwise plan --cpus 0-99
says "it is named" 16-99
status "an empty candidate set" 1 ringwise plan --exclude-cpus 0-15
status "an unknown device" 1 ringwise plan nosuch0
status "more queues than the device has" 1 ringwise plan eth0 --queues 99 --allow-disruption
says "the maximum is named" 8
status "usage" 2 ringwise plan --goal fast
head -c 3000 /dev/urandom >/tmp/junk
status "a capture that is none" 1 ringwise show --from /tmp/junk
says "the file is named" /tmp/junk
ringwise capture /tmp/full.tar.gz 2>/dev/null
head -c 5000 /tmp/full.tar.gz >/tmp/torn.tar.gz
status "a truncated capture" 1 ringwise show --from /tmp/torn.tar.gz
says "the torn file is named" /tmp/torn.tar.gz
status "without root" 1 as_nobody ringwise apply --yes --state-dir /tmp/nobody-state

# A device that vanishes between plan and apply.
ringwise plan eth1 --out /tmp/eth1.plan >/dev/null 2>&1
bdf=$(basename $(readlink /sys/class/net/eth1/device))
echo $bdf >/sys/bus/pci/drivers/igb/unbind
status "a device that vanished since the plan" 6 ringwise apply --yes --plan /tmp/eth1.plan
says "it is named" eth1
echo $bdf >/sys/bus/pci/drivers/igb/bind
sleep 1
new=$(ls /sys/bus/pci/devices/$bdf/net)
[ "$new" = eth1 ] || { ip link set $new down; ip link set $new name eth1; }
ip link set eth1 up
links eth1

# Read-only /proc/sys and /sys, as in a container.
status "read-only /proc and /sys" 6 unshare -m sh -c 'mount -o remount,bind,ro /sys; mount -o bind /proc /proc; mount -o remount,bind,ro /proc; ringwise apply --yes eth0'
says "it says so" read-only

# A setting that changed between plan and apply. With a mask of many CPUs it is part of the plan.
n=$(queue_irq eth0 TxRx-3)
was=$(cat /proc/irq/$n/smp_affinity_list)
echo 0-15 >/proc/irq/$n/smp_affinity_list
ringwise plan eth0 --out /tmp/eth0.plan >/dev/null 2>&1
echo 15 >/proc/irq/$n/smp_affinity_list
status "a setting that moved since the plan" 6 ringwise apply --yes --plan /tmp/eth0.plan
echo "$was" >/proc/irq/$n/smp_affinity_list

state eth0 eth2 eth3 >/tmp/after
unchanged "nothing was left behind" /tmp/before /tmp/after

# A journal of another boot is closed with the reason, and not rolled back.
status "apply for the journal" 0 ringwise apply --yes eth0
status "rollback" 0 ringwise rollback --yes 0
state eth0 eth2 eth3 >/tmp/after
unchanged "as before" /tmp/before /tmp/after
