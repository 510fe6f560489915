# Functions for scenarios with `needs: irqbalance`.

irqbalance="env LD_LIBRARY_PATH=/h/irqbalance/lib /h/irqbalance/irqbalance"

# start OPTION...: starts irqbalance with an interval of one second, and waits until its socket answers
start() {
	mkdir -p /run/irqbalance
	$irqbalance --foreground --interval=1 "$@" >/tmp/irqbalance 2>&1 &
	pid=$!
	for _i in $(seq 100); do
		[ -S /run/irqbalance/irqbalance$pid.sock ] && return
		sleep 0.1
	done
	not_ok "irqbalance runs" "$(tail -n 3 /tmp/irqbalance | tr '\n' ' ')"
}
# running NAME: checks that irqbalance has not ended by itself
running() {
	if kill -0 "$pid" 2>/dev/null; then
		ok "$1"
	else
		wait "$pid"
		not_ok "$1" "it ended with status $?: $(tail -n 3 /tmp/irqbalance | tr '\n' ' ') $(dmesg | grep irqbalance | tail -n 2)"
	fi
}
stop() {
	kill "$pid"
	wait "$pid" 2>/dev/null
}
