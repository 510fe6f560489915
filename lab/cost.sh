# shellcheck disable=SC2086 # $DEVS is a list
# Compares the cost of one sample of ringwise watch with that of programs that show interrupts or queues. 705-watch-cost.sh sources
# it in a guest; `cargo xtask cost` runs it in namespaces of its own. Needs PEERS, the directory in which they run by chroot, and DEVS.
# The cost is user and system time of a program and its children, for N samples less that for one, so that its start does not count.
N=${N:-10}

# cpu_us COMMAND...: runs it to its end; prints microseconds
if [ -n "${CGROUP:-}" ]; then
	# The kernel's own sum, which includes short programs.
	cpu_us() {
		_u=$(awk '$1 == "usage_usec" { print $2 }' "$CGROUP/cpu.stat")
		sh -c 'echo 0 >'"$CGROUP"'/cgroup.procs; exec "$@"' sh "$@" >/dev/null 2>>"$PEERS/tmp/cost.err" </dev/null
		awk -v u="$_u" '$1 == "usage_usec" { print $2 - u }' "$CGROUP/cpu.stat"
	}
else
	# bash reports milliseconds.
	cpu_us() {
		TIMEFORMAT='%3U %3S'
		{ time "$@" >/dev/null 2>>"$PEERS/tmp/cost.err" </dev/null; } 2>&1 | awk '{ printf "%d\n", ($1 + $2) * 1000000 }'
	}
fi

# sample_us COMMAND...: appends the number of samples to the command
sample_us() {
	_one=$(cpu_us "$@" 1)
	_all=$(cpu_us "$@" $((N + 1)))
	echo $(((_all - _one) / N))
}

peers_up() {
	for _d in proc sys dev; do
		mount --rbind /$_d "$PEERS/$_d"
	done
}
peers_down() {
	for _d in proc sys dev; do
		umount -l "$PEERS/$_d"
	done
}

# costs: prints a line for each program: microseconds per sample, and its name
costs() {
	: >"$PEERS/tmp/cost.err"
	echo "$(sample_us ringwise watch $DEVS --plain --interval 1s --count) ringwise watch --plain"
	echo "$(sample_us ringwise watch $DEVS --queues --interval 1s --count) ringwise watch --queues"
	echo "$(sample_us ringwise watch $DEVS -o json --interval 1s --count) ringwise watch -j, byte limits and idle states too"
	export LC_ALL=C
	echo "$(sample_us chroot "$PEERS" irqtop -b -C -e 1) irqtop -e: interrupts by CPU, packets by queue"
	echo "$(sample_us chroot "$PEERS" irqtop -b -C -i 1) irqtop -i: interrupts by CPU"
	echo "$(sample_us chroot "$PEERS" sar -I ALL -n DEV -n SOFT -P ALL 1) sar -I ALL -n DEV -n SOFT: sums of interrupts, interfaces, softnet"
	echo "$(sample_us chroot "$PEERS" mpstat -I ALL -P ALL 1) mpstat -I ALL -P ALL: interrupts and time by CPU"
	echo "$(cpu_us chroot "$PEERS" lsirq -J) lsirq: sums of interrupts, one sample with its start"
}
