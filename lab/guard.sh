# Sourced after state.sh by scenarios of the guard without systemd. $S is the state directory, $devs the devices to compare.

# wait_until SECONDS COMMAND...: waits until the command succeeds
wait_until() {
	look _now /proc/uptime
	_end=$((${_now%%.*} + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		look _now /proc/uptime
		[ "${_now%%.*}" -lt $_end ] || return 1
		sleep 0.1
	done
}

# let_go: succeeds if no process holds the lock
let_go() {
	! grep -q " FLOCK .*:$(stat -c %i "$S/lock") " /proc/locks
}

# guard_pid: the process from the second line of the lock file
guard_pid() {
	sed -n '2s/.*"pid":\([0-9]*\).*/\1/p' "$S/lock"
}

# is_guard: succeeds if the process in the lock file is a guard
is_guard() {
	_g=$(guard_pid)
	[ -n "$_g" ] && tr '\0' ' ' <"/proc/$_g/cmdline" | grep -q __guard
}

# ending: the state column of the last transaction
ending() {
	ringwise history | sed -n 2p
}

as_before() {
	check "$1: the guard lets go" wait_until 120 let_go
	# shellcheck disable=SC2086 # a list
	state $devs >/tmp/after
	unchanged "$1: the host is as before" /tmp/before /tmp/after
}

# clean_up: removes the state for the next case
clean_up() {
	wait_until 120 let_go
	ringwise recover --yes >/dev/null 2>&1
	ringwise rollback --yes 0 >/dev/null 2>&1
	# shellcheck disable=SC2086 # a list
	links $devs >/dev/null
}
