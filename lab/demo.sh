# The demonstration of `make demo`: a 16-CPU, two-node router is read, planned, tuned, verified and rolled back.
# Runs in a router16 guest; nothing outside of it is changed.
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/ringwise

bold=$(printf '\033[1m') plain=$(printf '\033[0m')
[ -n "$NO_COLOR" ] && bold='' plain=''

# step TEXT: prints a heading.
step() {
	printf '\n%s== %s%s\n' "$bold" "$1" "$plain"
}

# now TEXT: prints what happens until the next line.
now() {
	printf '%s ...\n' "$1"
}

# run COMMAND...: prints the command, then runs it, for a minute at most.
failed=0
run() {
	printf '\n%s# %s%s\n' "$bold" "$*" "$plain"
	timeout -s KILL 60 "$@" </dev/null || {
		rc=$?
		[ $rc = 137 ] && echo "no end within a minute: it was killed"
		echo "(status $rc)"
		failed=$((failed + 1))
	}
}

now "The guest is up: waiting for its links"
links eth0 eth1
now "Laying it out badly, and sending 4,000 packets"
# The state of many real routers: an old script has put all queues on CPU 0 and switched RPS on everywhere.
for dev in eth0 eth1; do
	for irq in $(dev_irqs $dev); do
		echo 0 >"/proc/irq/$irq/smp_affinity_list"
	done
	for f in "/sys/class/net/$dev"/queues/rx-*/rps_cpus; do
		echo ffff >"$f"
	done
done
traffic eth0 eth1 256 2000 >/dev/null
traffic eth1 eth0 256 2000 >/dev/null
state eth0 eth1 >/tmp/before

step "1. Read it: where do packets go now?"
run ringwise show eth0

step "2. Plan: what would be better, and why? Nothing is touched."
run ringwise plan eth0 eth1

step "3. Apply: one transaction, journal first, every value read back"
run ringwise apply --yes eth0 eth1

step "4. Traffic: is each queue counted on its CPU, and on no other?"
now "Sending 6,000 packets of 1,024 flows, so that every interrupt arrives on its new CPU"
traffic eth0 eth1 1024 3000 >/dev/null
traffic eth1 eth0 1024 3000 >/dev/null
now "Sending 12,000 more while ringwise counts"
(
	i=0
	while [ $i -lt 3 ]; do
		traffic eth0 eth1 1024 2000
		traffic eth1 eth0 1024 2000
		i=$((i + 1))
	done
) >/dev/null 2>&1 &
run ringwise verify --for 3s
now "The last packets arrive"
wait

step "5. What changed"
run ringwise show eth0
run ringwise history

step "6. Put it all back, as first found"
run ringwise rollback --yes 0
state eth0 eth1 >/tmp/after
if cmp -s /tmp/before /tmp/after; then
	printf '\nAn independent reader (lab/tools/state.c) finds every value as it was before step 3.\n'
else
	printf '\nNOT as before:\n'
	diff /tmp/before /tmp/after
	failed=$((failed + 1))
fi
[ $failed = 0 ] || echo "$failed steps did not end well"
exit $failed
