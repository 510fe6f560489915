#!/bin/sh
# The host with systemd is as the following scenarios expect it, and ringwise works there as on other hosts.
# hosts: remote
# kernels: 6.12
# timeout: 500
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

if [ "$PHASE" = 2 ]; then
	same "it was rebooted in order" "$(cat /var/lib/phase)" "written before"
	check "sshd answers after it" wait_for 60 systemctl -q is-active ssh.service
	echo 'never on the disk' >/var/lib/phase-2
	next_phase 3 hard
fi
if [ "$PHASE" = 3 ]; then
	same "a hard reboot keeps what was synced" "$(cat /var/lib/phase)" "written before"
	check "and loses what was not" test ! -s /var/lib/phase-2
	exit 0
fi

same "systemd is the first process" "$(cat /proc/1/comm)" systemd
check "it is up" wait_for 60 sh -c 'systemctl is-system-running | grep -qx running'
same "no unit failed" "$(systemctl --failed --no-legend --plain)" ""
check "a cgroup tree of its own" test -e /sys/fs/cgroup/system.slice/lab.service/cgroup.procs
check "sshd runs" systemctl -q is-active ssh.service
check "logind runs" systemctl -q is-active systemd-logind.service
same "irqbalance waits for whoever wants it" "$(systemctl is-active irqbalance.service)" inactive
irqbalance_start
check "as a service" systemctl -q is-active irqbalance.service
irqbalance_stop

check "a bond of two igb and a VLAN on it" bond_up
lacp
same "the members are in one aggregate" "$(lacp | awk '$1 != "partner" { print $2 }' | sort -u | wc -l)" 1
same "its partner is the far end" "$(lacp | awk '$1 == "partner" { print $2 }')" "$(far cat /sys/class/net/bond0/address)"
same "the addresses answer" "$(far ssh root@10.100.0.1 echo here; far ssh root@10.2.0.1 echo there)" "here
there"

check "a session over the bond" session_open one
check "another one beside it" session_open two 10.2.0.1
same "it is a login of root" "$(session_run one 'id -u; tty | cut -c1-9')" "0
/dev/pts/"
check "its peer is the far end" sh -c "echo '$(session_run one 'echo $SSH_CONNECTION')' | grep -q '^10.100.0.2 [0-9]* 10.100.0.1 22'"
check "each has a scope" test "$(session_scope one)" != "$(session_scope two)"
check "its shell is in it" sh -c "echo '$(scope_pids one)' | grep -q ' sh$'"
session_run one 'exit 7'
session_send two 'setsid sleep 1000 & sleep 1000'
check "what it leaves is in it too" wait_for 30 sh -c "[ \$(cat /sys/fs/cgroup/user.slice/user-0.slice/$(session_scope two)/cgroup.procs | xargs -n1 -I{} cat /proc/{}/comm | grep -c sleep) = 2 ]"
session_kill two
check "and ends with it" wait_for 60 sh -c '! pgrep -f "[s]leep 1000"'

for dev in eth0 eth1 eth2; do
	state $dev
done >/tmp/before
status "status" 0 ringwise
status "show" 0 ringwise show
for dev in eth0 eth1 eth2; do
	says "it shows $dev" $dev
done
status "plan" 0 ringwise plan
status "apply" 0 ringwise apply --yes
status "verify" 0 ringwise verify
wait_lacp
check "the session was not lost" session_open three
status "put back" 0 ringwise rollback 0 --yes
for dev in eth0 eth1 eth2; do
	state $dev
done >/tmp/after
unchanged "as before" /tmp/before /tmp/after
session_close three
bond_down

echo 'written before' >/var/lib/phase
next_phase 2
