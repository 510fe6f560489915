#!/bin/sh
# The documented measurements of bench against another host, with short trials, typed on a terminal; each leaves the host as found.
# hosts: remote
# kernels: 6.12
# areas: bench documented
# timeout: 2400
. /h/lib.sh
. /h/remote.sh
. /h/state.sh
. /h/terminal.sh

P=/usr/local/bin/ringwise
W=/tmp/documented-bench
DEVS="eth0 eth1 eth2"
cp "$(command -v ringwise)" $P

# The other host is the namespace far: eth1 is on the test network 10.2.0.0/24, and 192.0.2.0/24 is the control network.
ip netns list | grep -q '^far' || ip netns add far
ip -n far link set lo up
for i in 0 1 2; do
	ip link set far$i netns far
	ip -n far link set far$i up
done
ip address flush dev eth2
ip address add 10.2.0.1/24 dev eth1
ip -n far address add 10.2.0.7/24 dev far1
ip link add control type veth peer name control1 netns far
ip address add 192.0.2.2/24 dev control
ip -n far address add 192.0.2.7/24 dev control1
ip link set control up
ip -n far link set control1 up
links $DEVS
modprobe pktgen
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0 \
	net.ipv4.conf.eth1.rp_filter=0 net.ipv4.conf.eth2.rp_filter=0
mkdir -p /run/sshd
far /usr/sbin/sshd -o ListenAddress=192.0.2.7 -o PidFile=/run/far-sshd.pid

rm -rf $W
mkdir $W
cd $W || exit
head -c 24 /dev/urandom | base64 >secret.txt

everything() {
	state $DEVS
}
everything >/tmp/before.all
PEERS=

# serve COMMAND: the other end. It stays until the scenario ends.
serve() {
	case $1 in
	*127.0.0.1*) sh -c "exec $1" >/tmp/serve.out 2>&1 & ;;
	*) ip netns exec far sh -c "exec $1" >/tmp/serve.out 2>&1 & ;;
	esac
	PEERS="$PEERS $!"
	check "$PLACE: $1" wait_for 30 grep -q 'listening on' /tmp/serve.out
}

# route_by DEV FAR: packets to the destinations of `forward` leave by DEV and arrive at FAR.
route_by() {
	ip route replace 198.18.0.0/24 via 203.0.113.2 dev $1 onlink
	ip neighbour replace 203.0.113.2 lladdr "$(far cat /sys/class/net/$2/address)" nud permanent dev $1
}

# run STATUSES COMMAND
run() {
	rm -f rr.html forward.html found.toml
	case $2 in
	*'--out eth0'*) route_by eth0 far0 ;;
	*'--out eth1'*) route_by eth1 far1 ;;
	esac
	typed typed 300 "$2"
	judged typed "$1" "$2"
	[ "$1" != 4 ] || check "$PLACE: and why" grep -q 'does not support rules' /tmp/typed
	if on_trial; then
		not_ok "$PLACE: a trial is left" "$(ls $J/trial-*.json)"
		ringwise rollback --yes 0
	fi
	everything >/tmp/after.all
	unchanged "$PLACE: the host is as found" /tmp/before.all /tmp/after.all
}

PLACE=
block() {
	PLACE=$1
}

. /h/documented-bench.sh

kill $PEERS "$(cat /run/far-sshd.pid)"
ip route del 198.18.0.0/24
ip link del control
ip address flush dev eth1
rm -rf $W $P
