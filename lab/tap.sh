#!/bin/sh
# QEMU runs this for each tap, in its own network namespace. What the guest sends to the tap's
# address comes back by the same tap, so that a virtio-net alone on its wire receives what it sends.
tap=$1
ip link set "$tap" address 02:6c:61:62:00:fe arp off
ip link set "$tap" up
ip addr add 10.255.255.1/30 dev "$tap"
ip route add default via 10.255.255.2 dev "$tap"
set_to() { [ -e "/proc/sys/net/$2" ] && echo "$1" >"/proc/sys/net/$2"; }
set_to 0 ipv4/conf/all/rp_filter
set_to 0 "ipv4/conf/$tap/rp_filter"
set_to 0 ipv4/conf/all/send_redirects
set_to 0 "ipv4/conf/$tap/send_redirects"
set_to 1 ipv4/ip_forward
if set_to 1 ipv6/conf/all/forwarding; then
	ip -6 addr add fd6c::1/64 dev "$tap" nodad
	ip -6 route add default via fd6c::2 dev "$tap"
fi
# A tap that sends nothing back is still a tap, so the guest boots anyway.
exit 0
