# Sourced after lib.sh. An independent reader of everything ringwise may touch, in plain shell: used to compare before and after.
# Interrupts are named by their action, because numbers change with the channels.

# dev_irqs DEV: the interrupt numbers of the device, in order.
dev_irqs() {
	_d=/sys/class/net/$1/device
	[ -d "$_d/msi_irqs" ] || _d=$_d/..
	ls "$_d/msi_irqs" 2>/dev/null | sort -n
}

# irq_name N: the action of an interrupt.
irq_name() {
	look _a "/sys/kernel/irq/$1/actions"
	echo "$_a"
}

# queue_irq DEV NAME: the number of the interrupt whose action ends in NAME.
queue_irq() {
	for _n in $(dev_irqs "$1"); do
		look _a "/sys/kernel/irq/$_n/actions"
		case $_a in
		*"$2") echo "$_n" && return ;;
		esac
	done
	return 1
}

# affinity DEV: `name=cpus` for each interrupt of the device that has an action.
affinity() {
	for _n in $(dev_irqs "$1"); do
		look _a "/sys/kernel/irq/$_n/actions"
		[ -n "$_a" ] || continue
		look _l "/proc/irq/$_n/smp_affinity_list"
		echo "irq $_a=$_l"
	done
}

# queues DEV: RPS, RFS and XPS of every queue.
queues() {
	for _f in "/sys/class/net/$1"/queues/*/rps_cpus "/sys/class/net/$1"/queues/*/rps_flow_cnt \
		"/sys/class/net/$1"/queues/*/xps_cpus "/sys/class/net/$1"/queues/*/xps_rxqs; do
		[ -e "$_f" ] || continue
		look _l "$_f"
		echo "${_f#/sys/class/net/}=$_l"
	done
}

# state DEV...: all of it.
state() {
	for _dev in "$@"; do
		for _what in l g c x; do
			echo "ethtool $_what"
			ethtool -$_what "$_dev" 2>/dev/null
		done | awk 'BEGIN { word["l"] = "channels"; word["g"] = "rings"; word["c"] = "moderation"; word["x"] = "table" }
			$1 == "ethtool" { if (NR > 1) print line; what = $2; on = what ~ /[cx]/; line = word[what]; next }
			/Current/ { on = 1 }
			!on { next }
			what == "c" && !/^(Adaptive|rx-usecs|tx-usecs|rx-frames|tx-frames)/ { next }
			what == "x" && !/^ *[0-9]+:/ { next }
			{ $1 = $1; line = line " " $0 }
			END { print line }'
		affinity "$_dev"
		queues "$_dev"
	done
	echo "rfs $(cat /proc/sys/net/core/rps_sock_flow_entries)"
}

# differs NAME FILE_A FILE_B: not ok with the first lines that differ.
unchanged() {
	if cmp -s "$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "$(diff "$2" "$3" | grep '^[<>+-]' | head -6 | tr '\n' ';')"
	fi
}

# links DEV...: waits for each that can have a carrier.
links() {
	for _dev in "$@"; do
		wait_link "$_dev"
	done
}

# status NAME WANTED COMMAND...: runs it, checks its exit status; output stays in /tmp/out and /tmp/err.
status() {
	_name=$1 _want=$2
	shift 2
	for _try in 1 2 3 4 5; do
		"$@" >/tmp/out 2>/tmp/err </dev/null
		_got=$?
		# Emulated on a busy machine, a device may miss its deadline; nothing was touched then.
		if [ $_got != 1 ] || [ "$_want" = 1 ] || ! grep -q 'it cannot be planned now' /tmp/err; then break; fi
	done
	if [ "$_got" = "$_want" ]; then
		ok "$_name"
	else
		not_ok "$_name" "status $_got, wanted $_want; $(tail -n 4 /tmp/err /tmp/out | tr '\n' ' ')"
	fi
}

# says NAME TEXT: the last command wrote it on stdout or stderr.
says() {
	if cat /tmp/out /tmp/err | grep -qF -- "$2"; then
		ok "$1"
	else
		not_ok "$1" "no '$2' in: $(cat /tmp/err /tmp/out | head -12 | tr '\n' ' ')"
	fi
}

# as_nobody COMMAND...: as a user without rights.
as_nobody() {
	[ -e /etc/passwd ] || echo 'nobody:x:65534:65534:nobody:/:/bin/sh' >/etc/passwd
	[ -e /etc/group ] || echo 'nogroup:x:65534:' >/etc/group
	_cmd=$1
	shift
	start-stop-daemon -S -c 65534:65534 -x "/h/$_cmd" -- "$@"
}
