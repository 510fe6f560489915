#!/bin/sh
# The service over reboots: it applies the configuration and keeps it, units of 0.1 do nothing, and neither a restart, an upgrade nor an end writes.
# hosts: remote
# kernels: 6.12
# areas: daemon persist
# timeout: 1200
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

P=/usr/local/sbin/ringwise
F=/etc/ringwise/ringwise.toml
D=/etc/systemd/system
B=/proc/sys/net/core/netdev_budget
U=ringwise-daemon.service

budget() {
	[ "$(cat $B)" = "$1" ]
}
usecs() {
	[ "$(ethtool -c $1 | sed -n 's/^rx-usecs:[^0-9]*//p')" = $2 ]
}
hooks_done() {
	! systemctl list-units --plain --no-legend --state=activating 'ringwise@*' | grep -q .
}
main_pid() {
	systemctl show -P MainPID $U
}
active() {
	systemctl -q is-active $U
}
# config USECS: the configuration, with that moderation of eth2
config() {
	printf 'version = 1\n[host]\nreserve = "0"\nsysctl = { "net.core.netdev_budget" = 450 }\n\n' >$F
	printf '[[interface]]\nmatch = { name = "eth2" }\ncoalesce = { rx-usecs = %s }\n' "$1" >>$F
}
# running_by_metrics: whether the exporter reports that the service runs. This system has neither wget nor curl.
running_by_metrics() {
	bash -c 'exec 3<>/dev/tcp/127.0.0.1/9787 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3' 2>&1 | tr -d '\r' >/tmp/metrics
	grep -qx 'ringwise_service_running 1' /tmp/metrics
}
# settled: no transaction for 15 s, in which the service has compared the host once more
settled() {
	_last=$(last_id)
	sleep 15
	[ "$(last_id)" = "$_last" ]
}
everything() {
	state eth2
	ethtool -c eth2
	cat $B
}
# wrote_nothing NAME: the host is as in /tmp/kept, and there is no transaction after $last
wrote_nothing() {
	sleep 15
	everything >/tmp/now
	unchanged "$1: the settings are the same" /tmp/kept /tmp/now
	same "$1: no transaction" "$(last_id)" "$last"
}
. /h/units-0.1.sh
# package VERSION: a package with the program, its units and the scripts of the real one
package() {
	W=/tmp/package
	rm -rf $W
	mkdir -p $W/usr/sbin $W/DEBIAN
	cp "$(command -v ringwise)" $W/usr/sbin/ringwise
	echo "version $1" >>$W/usr/sbin/ringwise
	ringwise __units $W
	cp /h/packaging/ringwise-exporter.service $W/usr/lib/systemd/system/
	cp /h/packaging/postinst /h/packaging/prerm /h/packaging/postrm $W/DEBIAN/
	chmod 755 $W/DEBIAN/* $W/usr/sbin/ringwise
	printf 'Package: ringwise\nVersion: %s\nArchitecture: amd64\nMaintainer: lab\nDescription: of the lab\n' "$1" >$W/DEBIAN/control
	dpkg-deb --root-owner-group --build $W "/tmp/ringwise-$1.deb" >/dev/null
}

case $PHASE in
1)
	cp $(command -v ringwise) $P
	# Under emulation a device may take longer than on real hardware.
	mkdir -p /etc/systemd/system.conf.d /etc/ringwise
	printf '[Manager]\nDefaultEnvironment=RINGWISE_DEVICE_DEADLINE_MS=20000\n' >/etc/systemd/system.conf.d/lab.conf
	cat $B >/var/lib/lab-budget
	config 30
	status "without --daemon: the units that apply once" 0 $P persist --yes
	status "what --daemon would do" 0 $P persist --daemon -n
	says "it is the service" "by $U"
	says "and the units go" "$D/ringwise@.service"
	check "-n wrote nothing" test ! -e $D/$U
	status "the service" 0 $P persist --daemon --yes
	says "how to start it now" "systemctl start ringwise-daemon"
	check "systemd knows it" systemctl -q is-enabled $U
	check "instead of the units" sh -c "! ls $D/ringwise.service $D/ringwise@.service $D/multi-user.target.wants/ringwise.service /etc/udev/rules.d/81-ringwise.rules"
	check "the unit is sound" systemd-analyze verify --man=no $D/$U
	status "nothing is applied yet" 0 $P
	says "and the next boot is named" "$F is applied, and kept ($U)"
	old_units
	check "udev runs, at the next boots too" udev_start
	sync
	next_phase 2
	;;
2)
	check "the service applies what the file says" wait_for 240 usecs eth2 30
	check "this boot has not outlived it yet" wait_for 60 grep -q applying $J/boot.json
	next_phase 3 hard
	;;
3)
	check "after a boot that died the service runs" wait_for 240 active
	check "and logs that it applies nothing" wait_for 240 sh -c "journalctl -b -u $U | grep -q 'skipped: an earlier boot ended within five minutes'"
	check "each hook ends" wait_for 240 hooks_done
	same "no transaction is of this boot" "$(grep -l "$(cat /proc/sys/kernel/random/boot_id)" $J/*.jsonl)" ""
	check "the budget is that of the kernel" budget $(cat /var/lib/lab-budget)
	check "eth2 has the driver's moderation" sh -c "! ethtool -c eth2 | grep -q '^rx-usecs:[^0-9]*30'"
	status "it needs attention" 3 $P
	says "and why" "SKIPPED"
	status "tried again on request" 0 $P persist --daemon --yes
	says "by the service that runs" "systemctl restart ringwise-daemon"
	check "the units of 0.1 are removed" sh -c "! ls $D/ringwise.service $D/multi-user.target.wants/ringwise.service"
	systemctl restart $U
	check "it applies the file now" wait_for 120 usecs eth2 30
	old_units
	# An orderly shutdown within the five minutes does not count as a boot that died.
	next_phase 4
	;;
4)
	check "the service runs: it has reported that it is ready" wait_for 240 active
	check "it applies what the file says of eth2" wait_for 240 usecs eth2 30
	check "and of the host" wait_for 240 budget 450
	check "it keeps them" wait_for 120 sh -c "systemctl show -P StatusText $U | grep -q ."
	systemctl --no-pager status $U
	check "the unit of 0.1 was started" wait_for 240 systemctl -q is-active ringwise.service
	check "and did nothing" sh -c "journalctl -b -u ringwise.service | grep -q '$U applies the configuration; nothing was done'"
	check "its hook was started for eth2" wait_for 240 sh -c 'journalctl -b -u ringwise@eth2.service | grep -q Finished'
	check "each ends" wait_for 240 hooks_done
	check "and did nothing" sh -c "journalctl -b -u ringwise@eth2.service | grep -q '$U applies the configuration; nothing was done'"
	check "every transaction is of the service" sh -c "! head -qn 1 $J/*.jsonl | grep $(cat /proc/sys/kernel/random/boot_id) | grep -v '\"who\":\"ringwise daemon\"'"
	check "nothing was refused by the sandbox" sh -c '! journalctl -b --no-pager -u "ringwise*" | grep -E "EPERM|ENOSYS|EACCES|EROFS|EAFNOSUPPORT|without systemd"'
	check "the guard was a service of its own" sh -c 'journalctl -b --no-pager -u "ringwise-trial-*" | grep -q Started'
	status "what the service keeps" 0 $P verify
	status "nothing needs attention" 0 $P
	cat /tmp/out
	says "the next boot" "$F is applied, and kept ($U)"
	same "it was started once" "$(systemctl show -P NRestarts $U)" 0
	same "no unit failed" "$(systemctl --failed --no-legend --plain)" ""

	check "it settles" wait_for 120 settled
	last=$(last_id)
	status "apply --boot by hand does nothing" 0 $P apply --config $F --yes --boot
	says "and tells why" "$U applies the configuration; nothing was done"
	status "for a late interface neither" 0 $P apply --config $F --yes --boot --late eth2
	same "no transaction" "$(last_id)" "$last"

	pci=$(basename $(pci_of eth2))
	echo $pci >/sys/bus/pci/drivers/igb/unbind
	check "the driver of eth2 is unbound" wait_for 60 test ! -e /sys/class/net/eth2
	echo $pci >/sys/bus/pci/drivers/igb/bind
	check "and bound again" wait_for 60 test -e /sys/class/net/eth2
	ip link set eth2 up
	check "eth2 has its settings within 40 s" wait_for 40 usecs eth2 30
	check "the hook ends" wait_for 240 hooks_done
	check "the service wrote them" sh -c "grep -q '\"who\":\"ringwise daemon\"' '$(journal "$(last_id)")'"

	# A service that hangs is started again.
	mkdir -p /run/systemd/system/$U.d
	printf '[Service]\nWatchdogSec=20s\n' >/run/systemd/system/$U.d/watchdog.conf
	systemctl daemon-reload
	systemctl restart $U
	check "it settles with a shorter watchdog" wait_for 120 settled
	last=$(last_id)
	pid=$(main_pid)
	kill -STOP $pid
	check "stopped: the watchdog starts it again" wait_for 120 sh -c "p=\$(systemctl show -P MainPID $U); [ \$p != 0 ] && [ \$p != $pid ] && systemctl -q is-active $U"
	same "without a transaction" "$(last_id)" "$last"
	rm -r /run/systemd/system/$U.d
	systemctl daemon-reload
	systemctl restart $U
	systemctl reset-failed $U
	check "it settles" wait_for 120 settled

	config 50
	status "reload" 0 systemctl reload $U
	check "an edited file is applied" wait_for 60 usecs eth2 50
	check "the service runs on" wait_for 60 active
	check "this boot has not outlived it yet" grep -q applying $J/boot.json
	wait_link eth2
	check "it settles again" wait_for 120 settled

	everything >/tmp/kept
	last=$(last_id)
	pid=$(main_pid)
	kill -KILL $pid
	check "killed: systemd starts it again" wait_for 60 sh -c "p=\$(systemctl show -P MainPID $U); [ \$p != 0 ] && [ \$p != $pid ] && systemctl -q is-active $U"
	same "once" "$(systemctl show -P NRestarts $U)" 1
	wrote_nothing "killed"

	pid=$(main_pid)
	status "restart" 0 systemctl restart $U
	check "it is another process" test "$(main_pid)" != "$pid"
	wrote_nothing "restart"
	check "an orderly end within the five minutes: this boot has lived" grep -q lived $J/boot.json

	status "stop" 0 systemctl stop $U
	check "it runs no more" sh -c "! systemctl -q is-active $U"
	check "it is no failure" sh -c "! systemctl -q is-failed $U"
	wrote_nothing "stop"
	status "enabled, so that the unit of 0.1 still does nothing" 0 $P apply --config $F --yes --boot
	says "and tells why" "$U applies the configuration; nothing was done"

	status "removed: the units of 0.1 too" 0 $P persist --remove --yes
	check "every file" sh -c "! ls $D/ringwise* /etc/udev/rules.d/81-ringwise.rules $D/multi-user.target.wants/ringwise*"
	check "the configuration stays" test -f $F

	# The units of a package: enabled instead of written, and the running service is upgraded.
	package 0.2.0
	status "the package" 0 dpkg -i /tmp/ringwise-0.2.0.deb
	check "starts nothing" sh -c "! systemctl -q is-active $U"
	status "enabled" 0 /usr/sbin/ringwise persist --daemon --yes
	says "it is the package's" "The unit of the package is enabled"
	check "no unit is written" test ! -e $D/$U
	check "the package's unit is sound" systemd-analyze verify --man=no /usr/lib/systemd/system/$U
	status "started" 0 systemctl start $U
	check "it settles" wait_for 120 settled
	# The exporter, as an unprivileged user, reads what the service publishes.
	status "the exporter is started" 0 systemctl start ringwise-exporter.service
	check "it says that the service runs" wait_for 60 running_by_metrics
	check "its user is no user of the system" sh -c "u=\$(ps -o user= -p \$(systemctl show -P MainPID ringwise-exporter.service)); [ \"\$u\" != root ] && ! grep -q \"^\$u:\" /etc/passwd"
	status "and is stopped" 0 systemctl stop ringwise-exporter.service
	everything >/tmp/kept
	last=$(last_id)
	pid=$(main_pid)
	package 0.2.1
	status "upgraded" 0 dpkg -i /tmp/ringwise-0.2.1.deb
	check "the service is restarted" sh -c "systemctl -q is-active $U && [ $(main_pid) != $pid ]"
	same "it is the new program" "$(tail -c 14 /proc/$(main_pid)/exe)" "version 0.2.1"
	wrote_nothing "upgrade"
	status "the package is removed" 0 dpkg -r ringwise
	says "what stays" "ringwise rollback 0"
	check "the service is stopped" sh -c "! systemctl -q is-active $U"
	check "and disabled" test ! -e $D/multi-user.target.wants/$U -a ! -L $D/multi-user.target.wants/$U
	wrote_nothing "removal"
	dpkg -P ringwise

	status "everything back" 0 ringwise rollback 0 --yes
	check "as the boot had it" budget $(cat /var/lib/lab-budget)
	journalctl -b --no-pager -u $U | tail -n 80
	udev_stop
	# The following scenarios in this guest plan without it.
	rm -rf /etc/ringwise $P
	;;
esac
