#!/bin/sh
# The undo itself fails: what is left is reported, and recover finishes it.
# hosts: remote
# kernels: 6.12
# timeout: 1200
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

far_up
state eth2 >/tmp/before
change="--yes --allow-disruption --queues 2 eth2"
xps=/sys/class/net/eth2/queues/tx-0/xps_cpus
file=$(readlink -f /sys/class/net/eth2)/queues/tx-0/xps_cpus

id=$(($(last_id) + 1))
status "apply on trial" 0 ringwise apply $change --confirm 15s
# One file is not writable any more; the guard shares this mount namespace.
mount --bind $file $file
mount -o remount,bind,ro $file
same "the file is read-only" "$(errno_of 0 $xps)" "Read-only file system"
check "the guard ends by itself" wait_for 180 guard_gone $id
status "a person is needed" 3 ringwise
cat /tmp/out /tmp/err
says "the way on is named" "ringwise recover"
status "the history names what is left" 0 ringwise history $id
says "with the queue" "tx-0 xps_cpus"
says "and the errno" "EROFS"
head -n 20 /tmp/out
status "recover cannot either, yet" 5 ringwise recover --yes
cat /tmp/out /tmp/err
umount $file
status "recover finishes" 0 ringwise recover --yes
cat /tmp/out /tmp/err
state eth2 >/tmp/after
unchanged "as before" /tmp/before /tmp/after
status "nobody is needed any more" 0 ringwise

# The device vanishes during a trial, and comes back.
id=$(($(last_id) + 1))
status "apply on trial" 0 ringwise apply $change --confirm 15s
pci=$(pci_of eth2)
echo 1 >$pci/remove
check "eth2 is gone" sh -c '! test -e /sys/class/net/eth2'
check "the guard ends by itself" wait_for 180 guard_gone $id
status "a person is needed" 3 ringwise
status "the history has it" 0 ringwise history $id
says "with the reason" "the device went away"
head -n 20 /tmp/out
echo 1 >/sys/bus/pci/rescan
check "eth2 is back" wait_for 60 test -e /sys/class/net/eth2
ip link set eth2 up
ip address add 10.2.0.1/24 dev eth2
wait_link eth2
status "recover finds it as before" 0 ringwise recover --yes
state eth2 >/tmp/after
unchanged "untuned, as a new device is" /tmp/before /tmp/after
status "nobody is needed" 0 ringwise
cat /tmp/out
