#!/bin/sh
# Which interfaces are planned, which programs use them, and what happens if a device is renamed or removed between plan and
# apply, or during apply.
# hosts: remote
# kernels: 6.12
# timeout: 500
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

export RINGWISE_STATE_DIR=/tmp/rw56
fewer="--queues 2 --allow-disruption"
far_up

# --- by default: a driver, queues of their own and a link
modprobe 8021q
for id in 11 12 13; do
	ip link add link eth2 name eth2.$id type vlan id $id
done
ip link add veth0 type veth peer name veth1
ip link add br9 type bridge
ip link set eth1 down
# Few interfaces on top of others are listed; many are counted.
for id in $(seq 100 140); do
	ip link add link eth2 name v$id type vlan id $id
done
status "the default scope" 0 ringwise plan
says "those with a link" "Considered eth0 eth2."
says "not the one without" "eth1 (link down)"
says "VLANs are counted" "44 VLANs"
says "veth" "2 veth"
says "and a bridge" "1 bridge"
for id in $(seq 100 140); do
	ip link del v$id
done
ip link set eth1 up
wait_link eth1
status "a VLAN stands for the interface below it" 0 ringwise plan eth2.11
says "which is named" "eth2.11 (vlan) has no queues of its own: using eth2 instead"
ip link del eth2.11
ip link del eth2.12
ip link del eth2.13
ip link del veth0
ip link del br9

# --- in use: reported, channels not changed
# An XDP program of two instructions (r0 = XDP_PASS; exit) in the smallest object file for it.
base64 -d <<END | gunzip >/tmp/pass.o
H4sIAAAAAAACA6t39XFjYmRkgAFGhu8MCB4CnEBiO0BJVpBKveKSopLEJCBdmQuiK1IKGHIyk1PzilMZChKLixkIA2YgRAeyQCyEJC4ApbcDMRMQT4Xy3QN8GKgBGMHuwAQOUFoJi3pkwAl1FzrIgNIeSPpA6jigfAkoLQiVY0PTvwHN/zDAgcYXxeGHA1CahYD7AXj3fTwIAgAA
END
check "an XDP program is attached" ip link set dev eth1 xdpgeneric obj /tmp/pass.o sec xdp
status "plan of a device with a program" 0 ringwise plan eth1 $fewer
says "the user is named" "Number of queues not changed: eth1 (in use by XDP program (generic))"
same "the channels are left alone" "$(ringwise plan -j eth1 $fewer | grep -c '"knob": "channels"')" 0
ip link set dev eth1 xdpgeneric off
status "plan without it" 0 ringwise plan -j eth1 $fewer
says "the channels are planned" '"knob": "channels"'

# A function without an interface: a driver for user-space programs holds it.
pci=$(basename $(pci_of eth1))
if modprobe uio_pci_generic; then
	echo $pci >/sys/bus/pci/drivers/igb/unbind
	echo "$(cat /sys/bus/pci/devices/$pci/vendor) $(cat /sys/bus/pci/devices/$pci/device)" | sed 's/0x//g' >/sys/bus/pci/drivers/uio_pci_generic/new_id
	[ -e /sys/bus/pci/drivers/uio_pci_generic/$pci ] || echo $pci >/sys/bus/pci/drivers/uio_pci_generic/bind
	status "plan beside a function in user space" 0 ringwise plan
	says "it is left alone by its address" "$pci (bound to user-space driver uio_pci_generic)"
	# The other two have the same id, and they stay with igb.
	says "the others are planned" "Considered eth0 eth2."
	echo $pci >/sys/bus/pci/drivers/uio_pci_generic/unbind
	echo $pci >/sys/bus/pci/drivers/igb/bind
	wait_for 30 test -e /sys/bus/pci/devices/$pci/net
	new=$(ls /sys/bus/pci/devices/$pci/net)
	[ "$new" = eth1 ] || ip link set $new name eth1
	ip link set eth1 up
	wait_link eth1
else
	not_ok "a driver for user space" "uio_pci_generic is not there"
fi

# --- renamed between plan and apply
state eth1 >/tmp/before
status "a plan" 0 ringwise plan eth1 $fewer --out /tmp/p56
ip link set eth1 down
ip link set eth1 name wan1
ip link set wan1 up
wait_link wan1
status "is applied under the new name" 0 ringwise apply --yes /tmp/p56
says "which is said" "eth1 was renamed to wan1"
same "two queues" "$(ethtool -l wan1 | awk '/^Combined/ { v = $2 } END { print v }')" 2
status "verify" 0 ringwise verify
ip link set wan1 down
ip link set wan1 name eth1
ip link set eth1 up
wait_link eth1
status "and rolled back under the old one" 0 ringwise rollback --yes 0
wait_link eth1
state eth1 >/tmp/after
unchanged "as before" /tmp/before /tmp/after

# --- renamed during apply
# in_the_middle COMMAND...: runs apply in the background, and the command while the channels of the second device are being
# changed and those of the first one are already changed
in_the_middle() {
	rm -f /tmp/err
	ringwise apply --yes eth1 eth2 $fewer >/tmp/out 2>/tmp/err </dev/null &
	_a=$!
	wait_for 120 grep -q "eth2 channels" /tmp/err || not_ok "it came to eth2" "$(tail -n 3 /tmp/err | tr '\n' ' ')"
	"$@"
	wait $_a
	echo $? >/tmp/status
}
rename() {
	ip link set eth1 name wan1 || not_ok "a device that is up is renamed" "ip refuses"
}
# igb names its interrupts when it requests them. After a rename while the device is up they still have the old name, so the
# queues that they serve are unknown. The transaction is completely rolled back, under the new name.
state eth1 eth2 >/tmp/before
in_the_middle rename
same "renamed in the middle: put back" "$(cat /tmp/status)" 4
says "which is said" "eth1 was renamed to wan1"
ip link set wan1 down
ip link set wan1 name eth1
ip link set eth1 up
links eth1 eth2
state eth1 eth2 >/tmp/after
unchanged "as before" /tmp/before /tmp/after

# --- removed between plan and apply, and during apply
status "a plan" 0 ringwise plan eth1 eth2 $fewer --out /tmp/p56b
pull() {
	echo 1 >/sys/bus/pci/devices/$pci/remove
}
plug() {
	echo 1 >/sys/bus/pci/rescan
	wait_for 60 test -e /sys/bus/pci/devices/$pci/net
	_new=$(ls /sys/bus/pci/devices/$pci/net)
	[ "$_new" = eth1 ] || ip link set $_new name eth1
	ip link set eth1 up
	wait_link eth1
}
pull
state eth2 >/tmp/now
status "a pulled device: refused" 6 ringwise apply --yes /tmp/p56b
says "by name" "eth1 does not exist any more"
state eth2 >/tmp/now2
unchanged "the other one was not touched" /tmp/now /tmp/now2
plug
links eth1 eth2

state eth2 >/tmp/now
in_the_middle pull
same "pulled in the middle: not fully put back" "$(cat /tmp/status)" 5
says "why" "the device went away"
says "each setting is named" "eth1 channels"
check "with its value before" sh -c "grep -q 'was combined 4' /tmp/out /tmp/err"
links eth2
state eth2 >/tmp/now2
unchanged "the other one is put back" /tmp/now /tmp/now2
check "status says that a person is needed" sh -c 'ringwise >/tmp/out 2>&1; [ $? = 3 ]'
plug
status "recover, when it is back" 0 ringwise recover --yes
state eth2 >/tmp/now2
unchanged "nothing else has changed" /tmp/now /tmp/now2
