#!/bin/sh
# A configuration over real reboots: applied when interfaces come, skipped after a boot that died, taken away again.
# hosts: remote
# kernels: 6.12
# timeout: 900
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

P=/usr/local/sbin/ringwise
F=/etc/ringwise/ringwise.toml
B=/proc/sys/net/core/netdev_budget

budget() {
	[ "$(cat $B)" = "$1" ]
}

# The image has no udev, and drivers are loaded when the system is up: what the rule would start is started here.
come() {
	wait_link eth2
	systemctl start ringwise@eth2.service
}

case $PHASE in
1)
	cp $(command -v ringwise) $P
	# Emulated, a device may take longer than it would anywhere else.
	mkdir -p /etc/systemd/system.conf.d
	printf '[Manager]\nDefaultEnvironment=RINGWISE_DEVICE_DEADLINE_MS=20000\n' >/etc/systemd/system.conf.d/lab.conf
	mkdir -p /etc/ringwise
	cat $B >/var/lib/lab-budget
	printf 'version = 1\n[host]\nreserve = "0"\n\n[[interface]]\nmatch = { name = "eth2" }\nrigns = { rx = 512 }\nrings = { rx = "big" }\n' >$F
	status "a wrong file" 1 $P config check
	cat /tmp/out /tmp/err 2>/dev/null
	status "is refused by plan before anything is read" 1 $P plan
	status "and by persist" 1 $P persist --yes
	check "nothing was installed" sh -c '! ls /etc/systemd/system/ringwise*'
	printf 'version = 1\n[host]\nreserve = "0"\nsysctl = { "net.core.netdev_budget" = 450 }\n\n[[interface]]\nmatch = { name = "eth2" }\n' >$F
	status "a sound file" 0 $P config check
	echo 'net.core.netdev_budget = 500' >/etc/sysctl.d/90-lab.conf
	status "without a word nothing is written" 6 $P persist
	check "and nothing is there" sh -c '! ls /etc/systemd/system/ringwise*'
	$P persist --yes >/tmp/persist 2>&1
	same "persist" $? 0
	cat /tmp/persist
	check "names what says something else" grep -q '90-lab.conf sets net.core.netdev_budget = 500, not 450' /tmp/persist
	rm /etc/sysctl.d/90-lab.conf
	check "systemd knows it" systemctl is-enabled ringwise.service
	check "the units are sound" systemd-analyze verify --man=no /etc/systemd/system/ringwise.service /etc/systemd/system/ringwise@.service /etc/systemd/system/ringwise-lived.timer
	status "nothing is applied yet" 0 $P
	says "and the next boot is named" "$F is applied (ringwise.service)"
	sync
	next_phase 2
	;;
2)
	check "the network waits for nothing of it" sh -c '! systemctl show -p Before --value ringwise.service ringwise@eth2.service | grep network'
	check "the service did not fail" sh -c '! systemctl -q is-failed ringwise.service'
	check "at boot there was nothing to tune yet" sh -c 'journalctl -b -u ringwise.service | grep -q "no interface to tune is here yet"'
	check "eth2 comes late" come
	check "and it is applied" budget 450
	status "as applied" 0 $P verify
	status "nobody is needed" 0 $P
	cat /tmp/out
	says "it holds over a reboot" "$F is applied (ringwise.service)"
	check "this boot has not outlived it yet" grep -q applying $J/boot.json
	next_phase 3 hard
	;;
3)
	check "skipped" sh -c '! systemctl start ringwise@eth2.service'
	check "and logged" sh -c 'journalctl -b -u "ringwise*" | grep -q "skipped: an earlier boot ended within five minutes"'
	check "nothing was written" budget $(cat /var/lib/lab-budget)
	check "a boot goes on all the same" systemctl -q is-active basic.target
	status "somebody is needed" 3 $P
	cat /tmp/out
	says "and told why" "SKIPPED"
	status "tried again when somebody says so" 0 $P persist --yes
	next_phase 4
	;;
4)
	check "eth2 comes" come
	check "applied again" budget 450
	# An orderly shutdown within the five minutes is no death.
	next_phase 5
	;;
5)
	check "eth2 comes after an orderly reboot" come
	check "applied" budget 450
	status "taken away" 0 $P persist --remove --yes
	check "every file of it" sh -c '! ls /etc/systemd/system/ringwise* /etc/udev/rules.d/81-ringwise.rules /etc/systemd/system/multi-user.target.wants/ringwise.service'
	check "the configuration stays" test -f $F
	next_phase 6
	;;
6)
	far_up
	check "nothing is applied any more" budget $(cat /var/lib/lab-budget)
	status "nobody is needed" 0 $P
	# What comes after in this guest plans without it.
	rm -r /etc/ringwise $P
	;;
esac
