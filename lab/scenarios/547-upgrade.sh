#!/bin/sh
# The package is upgraded while a trial is pending: the guard stays, and the trial ends as without the upgrade.
# hosts: remote
# kernels: 6.12
# timeout: 600
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

far_up
W=/tmp/package
installed=/usr/sbin/ringwise

# package VERSION: a package with the program and the scripts of the real one. The program of each version is another file.
package() {
	rm -rf $W
	mkdir -p $W/usr/sbin $W/DEBIAN
	cp "$(command -v ringwise)" $W$installed
	echo "version $1" >>$W$installed
	cp /h/packaging/postinst /h/packaging/prerm /h/packaging/postrm $W/DEBIAN/
	chmod 755 $W/DEBIAN/* $W$installed
	printf 'Package: ringwise\nVersion: %s\nArchitecture: amd64\nMaintainer: lab\nDescription: of the lab\n' "$1" >$W/DEBIAN/control
	dpkg-deb --root-owner-group --build $W "/tmp/ringwise-$1.deb" >/dev/null
}
# upgraded VERSION: installs that version over the present one
upgraded() {
	package "$1"
	status "$2: $1 is installed" 0 dpkg -i "/tmp/ringwise-$1.deb"
	same "$2: dpkg has it" "$(dpkg-query -W -f '${Version} ${db:Status-Status}' ringwise)" "$1 installed"
}
guard() {
	systemctl show -p MainPID --value "ringwise-trial-$1"
}

state eth2 >/tmp/before
upgraded 0.2.0 "fresh"
state eth2 >/tmp/after
unchanged "nothing is applied on installation" /tmp/before /tmp/after

id=$(($(last_id) + 1))
status "apply on trial" 0 $installed apply --yes --allow-disruption --queues 2 --confirm 150s eth2
check "on trial" on_trial
pid=$(guard $id)
check "its guard runs" test "$pid" -gt 1
upgraded 0.2.1 "a trial that expires"
same "the same guard runs after the upgrade" "$(guard $id)" "$pid"
check "the trial is still pending" on_trial
check "the guard ends by itself" wait_for 240 guard_gone $id
state eth2 >/tmp/after
unchanged "the trial expired: as before" /tmp/before /tmp/after
check "the timer undid it" grep -q '"trial_over","by":"timer"' "$(journal $id)"

id=$(($(last_id) + 1))
status "apply on trial again" 0 $installed apply --yes --allow-disruption --queues 2 --confirm 5m eth2
state eth2 >/tmp/tuned
upgraded 0.2.2 "a trial that is confirmed"
status "the new version confirms" 0 $installed confirm
check "the guard of the old version ends" wait_for 60 guard_gone $id
status "nothing differs" 0 $installed verify
state eth2 >/tmp/after
unchanged "confirmed: as applied" /tmp/tuned /tmp/after

# Removal keeps the settings and reports it; purge keeps the journals that know how to undo them.
status "removed" 0 dpkg -r ringwise
says "removed: what stays" "ringwise rollback 0"
state eth2 >/tmp/after
unchanged "removed: settings stay" /tmp/tuned /tmp/after
status "purged" 0 dpkg -P ringwise
says "purged: why the journals stay" "/var/lib/ringwise stays"
check "the journals are there" test -e "$(journal $id)"
status "rolled back by another copy of the program" 0 ringwise rollback 0 --yes
state eth2 >/tmp/after
unchanged "as before" /tmp/before /tmp/after
