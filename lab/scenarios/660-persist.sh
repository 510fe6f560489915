#!/bin/sh
# A configuration over real reboots: udev's hook applies it when interfaces appear, a boot after one that died skips it, and it is removed.
# hosts: remote
# kernels: 6.12
# areas: persist
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

usecs() {
	[ "$(ethtool -c $1 | sed -n 's/^rx-usecs:[^0-9]*//p')" = $2 ]
}

# Drivers are loaded when the system is up, and interfaces are renamed after that: each name starts a unit of its own.
hooks_done() {
	! systemctl list-units --plain --no-legend --state=activating 'ringwise@*' | grep -q .
}

case $PHASE in
1)
	cp $(command -v ringwise) $P
	# Under emulation a device may take longer than on real hardware.
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
	printf 'version = 1\n[host]\nreserve = "0"\nsysctl = { "net.core.netdev_budget" = 450 }\n\n' >$F
	printf '[[interface]]\nmatch = { name = "eth2" }\ncoalesce = { rx-usecs = 30 }\n\n' >>$F
	printf '[[interface]]\nmatch = { name = "lan*" }\ncoalesce = { rx-usecs = 40 }\n' >>$F
	status "a sound file" 0 $P config check

	# A configuration that a boot could not apply is refused before anything is written.
	status "a program in memory" 6 ringwise persist --yes
	says "is not there at boot" "of type tmpfs"
	cp $P /tmp/ringwise
	status "a program in /tmp" 6 /tmp/ringwise persist --yes
	says "does not stay" "files in /tmp do not survive a reboot"
	says "and where it should be" "install -m 755 /tmp/ringwise /usr/local/sbin/"
	cp $P /usr/local/sbin/theirs
	chown 1000 /usr/local/sbin/theirs
	status "a program that somebody else can change" 6 /usr/local/sbin/theirs persist --yes
	says "would make them root" "belongs to user 1000"
	rm /usr/local/sbin/theirs /tmp/ringwise
	status "a configuration that does not stay" 6 $P persist --yes --config /run/r.toml
	says "is said" "files in /run do not survive a reboot"
	printf '[Service]\nExecStart=/bin/true\n' >/etc/systemd/system/ringwise@.service
	status "somebody else's unit" 6 $P persist --yes
	says "is not overwritten" "ringwise@.service exists, but was not written by ringwise persist"
	rm /etc/systemd/system/ringwise@.service
	mount --bind /etc /etc
	mount -o remount,bind,ro /etc
	status "a read-only /etc" 1 $P persist --yes
	says "is said" "Read-only file system"
	says "whole" "nothing was changed"
	umount /etc
	check "still nothing was installed" sh -c '! ls /etc/systemd/system/ringwise* /etc/udev/rules.d/*ringwise*'

	echo 'net.core.netdev_budget = 500' >/etc/sysctl.d/90-lab.conf
	status "without a word nothing is written" 6 $P persist
	check "and nothing is there" sh -c '! ls /etc/systemd/system/ringwise*'
	$P persist --yes >/tmp/persist 2>&1
	same "persist" $? 0
	cat /tmp/persist
	check "names what says something else" grep -q '90-lab.conf sets net.core.netdev_budget = 500; ringwise applies its configuration later and sets 450' /tmp/persist
	check "and how to start the unit now" grep -q 'inactive until the next boot.*systemctl start ringwise$' /tmp/persist
	rm /etc/sysctl.d/90-lab.conf
	check "systemd knows it" systemctl is-enabled ringwise.service
	check "the units are sound" systemd-analyze verify --man=no /etc/systemd/system/ringwise.service /etc/systemd/system/ringwise@.service /etc/systemd/system/ringwise-lived.timer
	status "nothing is applied yet" 0 $P
	says "and the next boot is named" "$F is applied (ringwise.service)"
	check "udev runs, at the next boots too" udev_start
	sync
	next_phase 2
	;;
2)
	check "the network waits for nothing of it" sh -c '! systemctl show -p Before --value ringwise.service ringwise@eth2.service | grep network'
	check "the service did not fail" sh -c '! systemctl -q is-failed ringwise.service'
	check "at boot there was nothing to tune yet" sh -c 'journalctl -b -u ringwise.service | grep -q "no interface to tune exists yet"'
	check "udev runs" systemctl -q is-active systemd-udevd.service
	check "its hook applies what the file says of eth2" wait_for 240 usecs eth2 30
	check "and of the host" wait_for 240 budget 450
	check "each unit comes to its end" wait_for 240 hooks_done
	check "the guard was a service of its own, outside of their sandbox" sh -c 'journalctl -b --no-pager -u "ringwise-trial-*" | grep -q Started'
	check "nothing was refused by the sandbox" sh -c '! journalctl -b --no-pager -u "ringwise*" | grep -E "EPERM|ENOSYS|EACCES|EROFS|EAFNOSUPPORT|without systemd"'
	systemctl list-units --plain --no-legend --all 'ringwise*'
	journalctl -b --no-pager -u 'ringwise*' | tail -n 60
	check "udev wanted it" sh -c 'systemctl show -P WantedBy ringwise@eth2.service | grep -q device'
	failed=$(systemctl --failed --no-legend --plain)
	for unit in $(echo "$failed" | awk '{ print $1 }'); do journalctl -b --no-pager -u "$unit"; done
	same "none failed, those of names that were passed through neither" "$failed" ""
	status "as applied" 0 $P verify
	status "nobody is needed" 0 $P
	cat /tmp/out
	says "it holds over a reboot" "$F is applied (ringwise.service)"
	check "this boot has not outlived it yet" grep -q applying $J/boot.json

	pci=$(basename $(pci_of eth2))
	ip link set eth2 down
	ip link set eth2 name lan7
	ip link set lan7 up
	check "renamed: the hook of the new name applies" wait_for 240 usecs lan7 40
	check "by its unit" wait_for 240 sh -c 'journalctl -b -u ringwise@lan7.service | grep -q Finished'
	check "each ends" wait_for 240 hooks_done

	echo $pci >/sys/bus/pci/drivers/igb/unbind
	check "its driver lets go" wait_for 60 test ! -e /sys/class/net/lan7
	echo $pci >/sys/bus/pci/drivers/igb/bind
	check "and takes it back" wait_for 60 test -e /sys/class/net/eth2
	check "with the driver's values" sh -c "! ethtool -c eth2 | grep -q '^rx-usecs:[^0-9]*30'"
	ip link set eth2 up
	check "late: the hook applies" wait_for 240 usecs eth2 30
	check "and each ends again" wait_for 240 hooks_done
	journalctl -b --no-pager -u 'ringwise@*' | tail -n 40
	same "no unit failed" "$(systemctl --failed --no-legend --plain)" ""
	next_phase 3 hard
	;;
3)
	check "skipped" wait_for 240 systemctl -q is-failed ringwise@eth2.service
	check "each unit ends" wait_for 240 hooks_done
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
	check "applied again" wait_for 240 budget 450
	check "each unit ends" wait_for 240 hooks_done
	# An orderly shutdown within the five minutes does not count as a boot that died.
	next_phase 5
	;;
5)
	check "applied after an orderly reboot" wait_for 240 budget 450
	check "each unit ends" wait_for 240 hooks_done
	status "taken away" 0 $P persist --remove --yes
	check "every file of it" sh -c '! ls /etc/systemd/system/ringwise* /etc/udev/rules.d/81-ringwise.rules /etc/systemd/system/multi-user.target.wants/ringwise.service'
	check "the configuration stays" test -f $F
	udev_stop
	next_phase 6
	;;
6)
	far_up
	check "nothing is applied any more" budget $(cat /var/lib/lab-budget)
	status "nobody is needed" 0 $P
	# The following scenarios in this guest plan without it.
	rm -r /etc/ringwise $P
	;;
esac
