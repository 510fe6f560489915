# Sourced after lib.sh on hosts with systemd: functions for the link partners, a bond with them, and sessions
# of sshd over it. eth0 and eth1 are connected to far0 and far1, eth2 to far2.
S=/run/sessions
mkdir -p $S

# ------------------------------------------------------------------ the wires

# far COMMAND...: runs it in the namespace of the link partners.
far() {
	ip netns exec far "$@"
}

# far_up: creates that namespace and moves the link partners into it; eth2 and far2 get 10.2.0.1 and .2.
far_up() {
	ip netns list | grep -q '^far' && return
	ip netns add far
	ip -n far link set lo up
	for _dev in far0 far1 far2; do
		ip link set $_dev netns far
		ip -n far link set $_dev up
	done
	ip address add 10.2.0.1/24 dev eth2
	ip -n far address add 10.2.0.2/24 dev far2
	wait_link eth2
}

# _bond NETNS-OPTIONS DEV DEV ADDRESS
# shellcheck disable=SC2086 # options, or none
_bond() {
	ip $1 link add bond0 type bond mode 802.3ad lacp_rate fast miimon 100 xmit_hash_policy layer3+4
	for _dev in $2 $3; do
		ip $1 link set "$_dev" down
		ip $1 link set "$_dev" master bond0
		ip $1 link set "$_dev" up
	done
	ip $1 link set bond0 up
	ip $1 link add link bond0 name bond0.100 type vlan id 100
	ip $1 link set bond0.100 up
	ip $1 address add "$4/24" dev bond0.100
}

# bond_up: 802.3ad at both ends, with a VLAN on top: 10.100.0.1 here and 10.100.0.2 in `far`.
bond_up() {
	[ -e /sys/class/net/bond0 ] && return
	far_up
	modprobe bonding max_bonds=0
	modprobe 8021q
	_bond "" eth0 eth1 10.100.0.1
	_bond "-n far" far0 far1 10.100.0.2
	wait_lacp
}

# bond_down: undoes bond_up; far_up stays in effect.
bond_down() {
	ip link del bond0
	ip -n far link del bond0
	for _dev in eth0 eth1; do
		ip link set $_dev up
	done
	for _dev in far0 far1; do
		ip -n far link set $_dev up
	done
}

# lacp: `MEMBER AGGREGATOR CHURN STATE` of each member here, and the aggregate's partner last.
lacp() {
	awk -F': ' '/^Slave Interface/ { m = $2 } /^Aggregator ID/ { a = $2 }
		/^Actor Churn State/ { c = $2 } /Partner Mac Address/ { p = $2 }
		/details partner lacp pdu/ { partner = 1 }
		partner && /port state/ { print m, a, c, $2; partner = 0 }
		END { print "partner", p }' /proc/net/bonding/bond0
}

# lacp_up: succeeds if both members are in one aggregate, collecting and distributing, and have a partner.
lacp_up() {
	lacp | awk '$1 == "partner" { p = $2; next } { n++; a[$2] = 1; if (int($4 / 16) % 4 != 3) bad = 1 }
		END { for (i in a) k++; exit !(n == 2 && k == 1 && !bad && p != "" && p != "00:00:00:00:00:00") }'
}

# wait_lacp: waits up to two minutes for it
wait_lacp() {
	wait_for 120 lacp_up || { lacp && return 1; }
}

# ------------------------------------------------------------------ waiting

# wait_for SECONDS COMMAND...: waits until it succeeds
wait_for() {
	_end=$(($(cut -d. -f1 /proc/uptime) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt $_end ] || return 1
		sleep 0.2
	done
}

# ------------------------------------------------------------------ sessions

# session_open NAME [ADDRESS]: root logs in from `far`, on a terminal, and a shell waits for input.
session_open() {
	rm -f "$S/$1".*
	mkfifo "$S/$1.in"
	# Keeps the shell's input open.
	sleep infinity >"$S/$1.in" 2>/dev/null &
	echo $! >"$S/$1.holder"
	ip netns exec far ssh -tt root@"${2:-10.100.0.1}" 'stty -echo -onlcr; echo ready; exec env PS1= ENV= PATH=/h:$PATH RINGWISE_DEVICE_DEADLINE_MS=20000 sh' \
		<"$S/$1.in" >"$S/$1.out" 2>&1 &
	echo $! >"$S/$1.pid"
	# Input before this point would be echoed.
	wait_for 120 grep -q '^ready' "$S/$1.out" || { cat "$S/$1.out" && return 1; }
	session_run "$1" 'cd /; echo $XDG_SESSION_ID' >"$S/$1.id" || { cat "$S/$1.out" && return 1; }
	[ -s "$S/$1.id" ]
}

# session_run NAME COMMAND: its output and its status; 255 if there was no answer in $SESSION_LIMIT seconds
session_run() {
	_n=$(($(cat "$S/$1.n" 2>/dev/null || echo 0) + 1))
	echo $_n >"$S/$1.n"
	_at=$(stat -c %s "$S/$1.out" 2>/dev/null || echo 0)
	echo "$2
echo done:$_n:\$?" >"$S/$1.in"
	wait_for "${SESSION_LIMIT:-120}" _answered "$1" $_n || return 255
	tail -c +$((_at + 1)) "$S/$1.out" | sed "/^done:$_n:/,\$d"
	return "$(sed -n "s/^done:$_n:\([0-9]*\).*/\1/p" "$S/$1.out")"
}
_answered() {
	grep -q "^done:$2:" "$S/$1.out" || { ! kill -0 "$(cat "$S/$1.pid")" && echo "done:$2:254" >>"$S/$1.out"; }
}

# session_send NAME COMMAND: types the command and does not wait
session_send() {
	echo "$2" >"$S/$1.in"
}

# session_alive NAME: succeeds if it still answers
session_alive() {
	kill -0 "$(cat "$S/$1.pid")" 2>/dev/null && (SESSION_LIMIT=30 session_run "$1" true)
}

# session_id NAME, session_scope NAME: its names in logind
session_id() {
	cat "$S/$1.id"
}
session_scope() {
	echo "session-$(session_id "$1").scope"
}

# scope_pids NAME: every process in its scope, with its name
scope_pids() {
	for _p in $(cat "/sys/fs/cgroup/user.slice/user-0.slice/$(session_scope "$1")/cgroup.procs" 2>/dev/null); do
		echo "$_p $(cat "/proc/$_p/comm")"
	done
}

# session_kill NAME: logind ends it with everything in its scope (the image has KillUserProcesses=yes)
session_kill() {
	loginctl terminate-session "$(session_id "$1")"
}

# session_close NAME: the client vanishes without closing the connection
session_close() {
	kill -9 "$(cat "$S/$1.pid")" "$(cat "$S/$1.holder")" 2>/dev/null
	rm -f "$S/$1".*
}

# sshd_stop: ends all sessions and prevents new logins; sshd_start starts sshd again
sshd_stop() {
	systemctl stop ssh.service
	pkill -KILL -x sshd
	wait_for 30 sh -c '! pgrep -x sshd'
}
sshd_start() {
	systemctl reset-failed ssh.service
	systemctl start ssh.service
}

# irqbalance_start [WORDS], irqbalance_stop: the distribution's service, which is off unless a scenario starts it
irqbalance_start() {
	echo "IRQBALANCE_ARGS=\"$*\"" >/etc/default/irqbalance
	systemctl restart irqbalance.service
}
irqbalance_stop() {
	systemctl stop irqbalance.service
}

# udev_start, udev_stop: systemd-udevd, which then also runs at the next boots of this guest. It is masked unless a scenario
# needs it. Existing devices are not processed again; `udevadm trigger` does that for one device.
UDEVD="systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udevd.service"
# shellcheck disable=SC2086 # a list
udev_start() {
	systemctl -q unmask $UDEVD
	systemctl start $UDEVD && udevadm settle --timeout=60
}
# shellcheck disable=SC2086 # a list
udev_stop() {
	udevadm settle --timeout=60
	systemctl stop $UDEVD
	systemctl -q mask $UDEVD
}

# ------------------------------------------------------------------ reboots

# next_phase PHASE [hard]: ends the scenario. The guest reboots, cleanly or (hard) as after a power cut, and the scenario runs
# again with $PHASE. Keep data for the next phase in /h/results or /var.
next_phase() {
	echo "$1 ${2:-clean}" >"$H/results/again"
	[ "$2" = hard ] || sync
	exit 75
}

# ------------------------------------------------------------------ trials

J=/var/lib/ringwise

# last_id: the number of the last transaction
last_id() {
	ls $J/*.jsonl 2>/dev/null | sed -n '$s/.*[^0-9]0*\([0-9][0-9]*\)\.jsonl$/\1/p'
}

# journal ID: the path of its journal
journal() {
	ls $J/*.jsonl | grep "[^0-9]0*$1\.jsonl$"
}

# new_journal ID: waits for a transaction after ID; prints its number
new_journal() {
	[ "$(last_id)" != "$1" ] && last_id
}

# on_trial: succeeds if a trial waits for its confirmation
on_trial() {
	ls $J/trial-*.json >/dev/null 2>&1
}

# guard_gone ID: succeeds if that transaction has no guard any more, and its trial is decided
guard_gone() {
	! systemctl -q is-active "ringwise-trial-$1" && ! on_trial && ! pgrep '^guard-' >/dev/null
}

# fate ID: how the transaction ended, from its journal
fate() {
	tail -n 3 "$(journal "$1")"
}
