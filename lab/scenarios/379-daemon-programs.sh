#!/bin/sh
# The service: rules for the flows of a program follow it as it starts, listens on another port, and after a reset of the driver.
# hosts: router16
# kernels: 6.12
# areas: daemon
# timeout: 600
# needs: mqnic
. /h/lib.sh
. /h/state.sh
. /h/daemon.sh

ip link set mq0 up
ip link set mq1 up
links mq0 mq1
everything() {
	state mq1
	ethtool -n mq1 2>&1
	ethtool -x mq1
}
everything >/tmp/before
cat >/tmp/378.toml <<END
version = 1
[[interface]]
match = { name = "mq1" }
goal = "mixed"
[[interface.group]]
name = "cache"
policy = "latency"
queues = 2
flows = [{ program = "nc" }]
END
# busybox chooses what it does by the name of its file.
ln -sf "$(readlink -f /bin/busybox)" /tmp/nc
# listen PORT
listen() {
	/tmp/nc -l -p "$1" </dev/null >/dev/null 2>&1 &
	program=$!
}
leave() {
	kill $program
	wait $program 2>/dev/null
}
# ports: the ports that rules steer
ports() { ethtool -n mq1 2>/dev/null | awk '/Dest port:/ { print $3 }' | sort -u | tr '\n' ' '; }
steers() { [ "$(ports)" = "$1" ]; }

serve --config /tmp/378.toml
sleep 5
same "before the program runs no rule is there" "$(ports)" ""
first=$(journals)
listen 7000
soon "when it listens, its port has a rule" $compared steers "7000 "
check "and the log says why" logged "because a program was started, or listens on another port"
quiet 12 "once"

leave
quiet 12 "when it ends, nothing is written"
same "and the rule stays" "$(ports)" "7000 "

listen 7001
soon "on another port: the rule of that port alone" $compared steers "7001 "
same "in one transaction each" "$(($(journals) - first))" 2
status "the host is as applied" 0 ringwise verify

# A driver that is bound again has no rules.
sleep 11
pci=$(basename "$(pci_of mq1)")
driver=$(readlink -f /sys/bus/pci/devices/$pci/driver)
echo $pci >$driver/unbind
echo $pci >$driver/bind
# It comes back under the next free name.
/usr/bin/ip link set "$(ls "/sys/bus/pci/devices/$pci/net")" name mq1
ip link set mq1 up
links mq0 mq1
soon "after the reset the rule is there again" $compared steers "7001 "
cat $log
leave
memory
status "stop, and restore everything" 0 ringwise daemon stop --restore
wait $service
everything >/tmp/after
unchanged "everything is as before" /tmp/before /tmp/after
