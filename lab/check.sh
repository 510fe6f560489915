# Sourced after lib.sh and state.sh: functions that run `ringwise check` and compare its findings with the expected ones.

# ids [ARGUMENTS]: the rules of errors and warnings, with their consequences, in one line. The text is left in /tmp/check.
ids() {
	ringwise check --fail-on never "$@" 2>/tmp/err >/tmp/check
	awk '/^(ERROR|WARNING|INFO)$/ { on = $1 != "INFO"; next } /^[A-Z]/ || /^$/ { on = 0 }
		on && /^  [A-Z]/ { print $1
			if (match($0, /\(and [^)]*, see -v\)/)) { n = split(substr($0, RSTART + 5, RLENGTH - 14), a, " "); for (i = 1; i <= n; i++) print a[i] } }' \
		/tmp/check | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# foreseen NAME "RULES" [ARGUMENTS]: ok if exactly these rules have findings
foreseen() {
	_name=$1 _want=$2
	shift 2
	_got=$(ids "$@")
	same "$_name: exactly ${_want:-none}" "$_got" "$_want"
	[ "$_got" = "$_want" ] || cat /tmp/check /tmp/err
}

# under CAUSE CONSEQUENCE: the last check lists the consequence under the cause, and not on its own
under() {
	check "$2 stands under $1" sh -c "grep -q '^  $1 .*(and [^)]*$2' /tmp/check && ! grep -q '^  $2 ' /tmp/check"
}

# findings: `SEVERITY RULE DEV` of each finding in a JSON report, consequences included
findings() {
	awk '/^  "/ { on = /^  "findings"/ } !on { next }
		/^ *"rule": / { r = $2 } /^ *"severity": / { s = $2 } /^ *"dev": / { gsub(/[",]/, "", r); gsub(/[",]/, "", s); d = $2
			gsub(/[",]/, "", d); print s, r, d == "null" ? "host" : d }' | sort
}

# irq DEV QUEUE CPU: pins it there, and waits until it has moved (igb raises an interrupt for every queue every two seconds)
irq() {
	_n=$(queue_irq "$1" "TxRx-$2")
	echo "$3" >"/proc/irq/$_n/smp_affinity_list"
	for _i in $(seq 300); do
		[ "$(effective "$_n")" = "$3" ] && return
		sleep 0.2
	done
	echo "$1 queue $2 stays on CPU $(effective "$_n")"
}

# settled DEV...: waits until every interrupt of these igb is on its requested CPU
settled() {
	state settled "$@"
}

# untouched: switches steering in software off, and removes all flow rules
untouched() {
	for _f in /sys/class/net/*/queues/rx-*/rps_cpus /sys/class/net/*/queues/rx-*/rps_flow_cnt /sys/class/net/*/queues/tx-*/xps_cpus; do
		echo 0 >"$_f"
	done 2>/dev/null
	echo 0 >/proc/sys/net/core/rps_sock_flow_entries
	for _d in mq0 mq1; do
		for _f in $(ethtool -n $_d 2>/dev/null | sed -n 's/^Filter: //p'); do
			ethtool -N $_d delete "$_f"
		done
	done
}
