# Sourced after lib.sh: the state of devices as the program `state` reads it, which shares no code with ringwise
# (tools/state.c), and the checks of scenarios that use it.

# dev_irqs DEV: the interrupt numbers of the device, in order.
dev_irqs() {
	state irqs "$1"
}

# irq_name N: the action of an interrupt.
irq_name() {
	look _a "/sys/kernel/irq/$1/actions"
	echo "$_a"
}

# queue_irq DEV NAME: the number of the interrupt whose action ends in NAME.
queue_irq() {
	state queue-irq "$1" "$2"
}

# affinity DEV...: `irq name=cpus` for each interrupt of the devices that has an action.
affinity() {
	state affinity "$@"
}

# unchanged NAME FILE_A FILE_B: ok if equal, otherwise not ok with the first lines that differ.
unchanged() {
	if cmp -s "$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "$(diff "$2" "$3" | grep '^[<>+-]' | head -6 | tr '\n' ';')"
	fi
}

# links DEV...: waits for the link of each device that can have a carrier.
links() {
	state links "$@"
}

# status NAME WANTED COMMAND...: runs it and checks its exit status; its output is left in /tmp/out and /tmp/err.
status() {
	_name=$1 _want=$2
	shift 2
	for _try in 1 2 3 4 5; do
		"$@" >/tmp/out 2>/tmp/err </dev/null
		_got=$?
		# Emulated on a busy machine, a device may miss its deadline; nothing was changed then.
		if [ $_got != 1 ] || [ "$_want" = 1 ] || ! grep -q 'it cannot be planned now' /tmp/err; then break; fi
	done
	if [ "$_got" = "$_want" ]; then
		ok "$_name"
	else
		not_ok "$_name" "status $_got, wanted $_want; $(tail -n 4 /tmp/err /tmp/out | tr '\n' ' ')"
	fi
}

# `says NAME TEXT`: ok if the last command printed the text on stdout or stderr.
says() {
	if grep -qF -- "$2" /tmp/out /tmp/err; then
		ok "$1"
	else
		not_ok "$1" "no '$2' in: $(cat /tmp/err /tmp/out | head -12 | tr '\n' ' ')"
	fi
}

# as_nobody COMMAND...: runs it as a user without privileges.
as_nobody() {
	[ -e /etc/passwd ] || echo 'nobody:x:65534:65534:nobody:/:/bin/sh' >/etc/passwd
	[ -e /etc/group ] || echo 'nogroup:x:65534:' >/etc/group
	_cmd=$1
	shift
	start-stop-daemon -S -c 65534:65534 -x "/h/$_cmd" -- "$@"
}

# theirs DEV: `QUEUE RX TX` in microseconds, from ethtool --per-queue, one queue at a time
theirs() {
	for _q in 0 1 2 3 4 5 6 7; do
		ethtool --per-queue "$1" queue_mask "$(printf 0x%x $((1 << _q)))" --show-coalesce 2>/dev/null |
			awk -v q=$_q '/^rx-usecs:/ { r = $2 } /^tx-usecs:/ { t = $2 } END { if (r != "") print q, r, t }'
	done
}
