#!/bin/sh
# systemd-udevd reads and applies exported .link files and rules when the NIC appears.
# hosts: remote
# kernels: 6.12
# timeout: 600
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

dev=eth2
F=/run/export.toml
LINK=/etc/systemd/network/60-ringwise-$dev.link
RULES=/etc/udev/rules.d/82-ringwise.rules
Q=/sys/class/net/$dev/queues

# again: the driver releases the device and binds it again, as when it is plugged in.
again() {
	_pci=$(basename $(pci_of $dev))
	echo $_pci >/sys/bus/pci/drivers/igb/unbind
	echo $_pci >/sys/bus/pci/drivers/igb/bind
	wait_for 60 test -e /sys/class/net/$dev
	udevadm settle --timeout=120
}

# now OPTION WORD: the last value of this name in ethtool's output, which is the value in effect.
now() {
	ethtool $1 $dev | awk -F':[ \t]*' -v w="$2" '{ gsub(/^[ \t]+/, "", $1) } $1 == w { v = $2 } END { sub(/[ \t].*/, "", v); print v }'
}

cat >$F <<END
version = 1
[host]
sysctl = { "net.core.netdev_budget" = 450 }

[[interface]]
match = { name = "$dev" }
channels = { combined = 2, rx = 0, tx = 0 }
rings = { rx = 512, tx = 1024 }
pause = { autoneg = false, rx = true, tx = false }
features = { gro = false, tso = false, gso = true, rxvlan = false, tx = true }
coalesce = { rx-usecs = 30 }
xps_cpus = "1"
rps_cpus = { "0" = "2-3" }
rps_flow_cnt = 64
napi = { defer_hard_irqs = 2, gro_flush_timeout_ns = 20000 }
END
status "a sound file" 0 ringwise config check $F
check "systemd-udevd runs" udev_start
udevadm --version

mkdir -p $(dirname $LINK)
ringwise config export $F --as link >$LINK 2>/tmp/left
same "a .link file" $? 0
cat $LINK /tmp/left
check "what it cannot say is said" grep -q "$dev xps_cpus" /tmp/left
check "nothing of it is in force yet" test "$(now -g RX)" != 512
udevadm control --reload
SYSTEMD_LOG_LEVEL=debug udevadm test-builtin net_setup_link /sys/class/net/$dev >/tmp/builtin 2>&1
grep -i ringwise /tmp/builtin
check "systemd-udevd takes it for this device" grep -q "ringwise-$dev.link" /tmp/builtin
check "and knows every line" sh -c "! grep -iE 'ringwise-$dev.link:[0-9]+|unknown key|ignoring' /tmp/builtin"

again
same "applied when it appears: the name stays" "$(cat /sys/class/net/$dev/address)" "$(awk -v d=$dev '$2 == d { print $1 }' /h/nics)"
same "rings" "$(now -g RX) $(now -g TX)" "512 1024"
same "channels" "$(now -l Combined)" 2
same "pause" "$(now -a Autonegotiate) $(now -a RX) $(now -a TX)" "off on off"
same "moderation" "$(now -c rx-usecs)" 30
for pair in generic-receive-offload:off tx-tcp-segmentation:off tx-tcp6-segmentation:off \
	generic-segmentation-offload:on rx-vlan-offload:off tx-checksumming:on; do
	same "feature ${pair%:*}" "$(now -k ${pair%:*})" ${pair#*:}
done
journalctl -b -u systemd-udevd --no-pager | grep -i "$dev\|ringwise" | tail -n 20

# For the queues that exist now.
ringwise config export $F --as udev >$RULES 2>/tmp/left
same "rules" $? 0
cat $RULES
check "what they cannot say is said" grep -q "$dev rings" /tmp/left
udevadm control --reload
again
same "XPS" "$(cat $Q/tx-0/xps_cpus $Q/tx-1/xps_cpus | tr '\n' ' ')" "2 2 "
same "RPS of one queue" "$(cat $Q/rx-0/rps_cpus $Q/rx-1/rps_cpus | tr '\n' ' ')" "c 0 "
same "RFS" "$(cat $Q/rx-0/rps_flow_cnt $Q/rx-1/rps_flow_cnt | tr '\n' ' ')" "64 64 "
same "deferral" "$(cat /sys/class/net/$dev/napi_defer_hard_irqs /sys/class/net/$dev/gro_flush_timeout | tr '\n' ' ')" "2 20000 "
same "other devices are left alone" "$(cat /sys/class/net/eth1/queues/rx-0/rps_flow_cnt)" 0
journalctl -b -u systemd-udevd --no-pager | grep 82-ringwise >/tmp/complaints
same "udev complains of nothing in them" "$(cat /tmp/complaints)" ""
for format in nmstate tuned; do
	status "as $format" 0 ringwise config export $F --as $format
	cat /tmp/out
done

rm $LINK $RULES $F
udevadm control --reload
again
udev_stop
ip link set $dev up
wait_link $dev
same "as it was" "$(now -g RX) $(cat $Q/rx-0/rps_flow_cnt)" "256 0"
check "udev is gone again" sh -c '! systemctl -q is-active systemd-udevd.service'
