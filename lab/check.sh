# Sourced after lib.sh and state.sh: what `ringwise check` finds, and whether that is what was foreseen.

# ids [ARGUMENTS]: rules of errors and warnings, with what stands under them, in one line. The text stays in /tmp/check.
ids() {
	ringwise check --fail-on never "$@" 2>/tmp/err >/tmp/check
	awk '/^(ERROR|WARNING|INFO)$/ { on = $1 != "INFO"; next } /^[A-Z]/ || /^$/ { on = 0 }
		on && /^  [A-Z]/ { print $1
			if (match($0, /\(also [^)]*\)/)) { n = split(substr($0, RSTART + 6, RLENGTH - 7), a, " "); for (i = 1; i <= n; i++) print a[i] } }' \
		/tmp/check | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# foreseen NAME "RULES" [ARGUMENTS]: exactly these
foreseen() {
	_name=$1 _want=$2
	shift 2
	_got=$(ids "$@")
	same "$_name: exactly ${_want:-none}" "$_got" "$_want"
	[ "$_got" = "$_want" ] || cat /tmp/check /tmp/err
}

# under CAUSE CONSEQUENCE: the last check has this below that, and not by itself
under() {
	check "$2 stands under $1" sh -c "grep -q '^  $1 .*(also [^)]*$2' /tmp/check && ! grep -q '^  $2 ' /tmp/check"
}

# findings: `SEVERITY RULE DEV` of each in a JSON report, those under others too
findings() {
	awk '/^  "/ { on = /^  "findings"/ } !on { next }
		/^ *"rule": / { r = $2 } /^ *"severity": / { s = $2 } /^ *"dev": / { gsub(/[",]/, "", r); gsub(/[",]/, "", s); d = $2
			gsub(/[",]/, "", d); print s, r, d == "null" ? "host" : d }' | sort
}

# irq DEV QUEUE CPU: laid there, and arrived (igb makes an interrupt for every queue every two seconds)
irq() {
	_n=$(queue_irq "$1" "TxRx-$2")
	echo "$3" >"/proc/irq/$_n/smp_affinity_list"
	for _i in $(seq 300); do
		[ "$(effective "$_n")" = "$3" ] && return
		sleep 0.2
	done
	echo "$1 queue $2 stays on CPU $(effective "$_n")"
}

# settled DEV...: every interrupt of these igb goes where it was asked to
settled() {
	state settled "$@"
}

# untouched: without the steering in software and the flow rules that were laid down here before
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
