# Sourced after lib.sh by the sections of `cargo xtask lab bench` (bench/*.sh). The link partners of the NICs are in the network
# namespace `far`.

# The `ip` that is built into the shell does not support namespaces.
ip() { /usr/bin/ip "$@"; }

# The directory of the results. A section that is started again deletes its old results first.
KEEP=$H/results/keep
mkdir -p "$KEEP"
export RINGWISE_STATE_DIR=/tmp/ringwise

# far COMMAND...: runs it in the namespace of the link partners.
far() {
	ip netns exec far "$@"
}

# pick FULL QUICK: prints the value for this run
pick() {
	if [ -n "$QUICK" ]; then echo "$2"; else echo "$1"; fi
}

# dev_vectors DEV: prints the numbers of its interrupts
dev_vectors() {
	ls "/sys/class/net/$1/device/msi_irqs" 2>/dev/null | sort -n
}

# all_on CPU DEV...: moves every interrupt of these devices to that CPU
all_on() {
	_cpu=$1
	shift
	for _dev in "$@"; do
		for _n in $(dev_vectors "$_dev"); do
			echo "$_cpu" >"/proc/irq/$_n/smp_affinity_list"
		done
	done
}

# measured NAME WORKLOAD WORDS...: `ringwise bench WORKLOAD` with its results in NAME.jsonl. Its output is kept beside them.
measured() {
	_name=$1
	shift
	rm -f "$KEEP/$_name.jsonl"
	ringwise bench "$@" --yes --seed 7 --title "$_name" --results "$KEEP/$_name.jsonl" >"$KEEP/$_name.txt" 2>&1
	_rc=$?
	[ $_rc = 0 ] || tail -n 20 "$KEEP/$_name.txt"
	same "$_name: status" $_rc 0
	check "$_name: the host is as found" grep -q '"kind":"end".*"restored":true' "$KEEP/$_name.jsonl"
}

# verdict NAME METRIC WITH: prints the verdict at the first point
verdict() {
	awk -v m="\"metric\":\"$2\"" -v w="\"with\":\"$3\"" '/"kind":"comparison"/ && index($0, m) && index($0, w) {
		if (match($0, /"verdict":"[a-z]*"/)) { print substr($0, RSTART + 11, RLENGTH - 12); exit } }' "$KEEP/$1.jsonl"
}

# ------------------------------------------------------------------ the router

# Queues of each port, and the CPUs of the generator and of the sink.
QUEUES=8
GENERATOR_CPU=12
SINK_CPU=14

# far_up DEV...: moves the devices to the namespace
far_up() {
	[ -e /run/netns/far ] && return
	ip netns add far
	ip -n far link set lo up
	for _dev in "$@"; do
		ip link set "$_dev" netns far
		ip -n far link set "$_dev" up
	done
}

# far_vectors CPU DEV...: the same as all_on, also for devices in the namespace
far_vectors() {
	_cpu=$1
	shift
	for _dev in "$@"; do
		for _n in $(irqs "$_dev" | cut -d' ' -f1); do
			echo "$_cpu" >"/proc/irq/$_n/smp_affinity_list"
		done
	done
}

# fresh: gives the interrupts back to the kernel's own placement. Allowing a vector every CPU is not enough, because it stays on its
# CPU as long as this is allowed. A NIC with one queue has no channels: its interrupts go to the CPUs that the kernel chose at first.
fresh() {
	if [ "$QUEUES" = 1 ]; then
		while read -r _n _cpu; do
			echo "$_cpu" >"/proc/irq/$_n/smp_affinity_list"
		done </tmp/placed
		return
	fi
	for _i in 0 1 2; do
		ethtool -L eth$_i combined $((QUEUES - 1))
		ethtool -L eth$_i combined $QUEUES
	done
	for _i in 0 1 2; do
		wait_link eth$_i
	done
}

# placed: saves where the kernel has placed the interrupts of the router, for NICs with one queue
placed() {
	for _dev in eth0 eth1 eth2; do
		for _n in $(dev_vectors "$_dev"); do
			echo "$_n $(cat "/proc/irq/$_n/effective_affinity_list")"
		done
	done >/tmp/placed
}

# router_up: QUEUES queues per port, one route, and a gateway with a fixed address. A section of the same guest before may have set
# this up; what it set on the host is as at boot again.
router_up() {
	modprobe pktgen
	far_up far0 far1 far2
	# After the devices are up, because a driver may request its vectors again when it comes up.
	far_vectors $GENERATOR_CPU far0 far1
	far_vectors $SINK_CPU far2
	for _i in 0 1 2; do
		[ "$QUEUES" = 1 ] || ethtool -L eth$_i combined $QUEUES
		echo 0 >/proc/sys/net/ipv4/conf/eth$_i/rp_filter
		ip address replace 192.0.$((2 + _i)).1/24 dev eth$_i
		wait_link eth$_i
	done
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	echo 1 >/proc/sys/net/ipv4/ip_forward
	ip neigh replace 192.0.4.2 lladdr "$(far cat /sys/class/net/far2/address)" nud permanent dev eth2
	ip route replace 198.18.0.0/24 via 192.0.4.2
	# The sink counts packets before it discards them.
	ip -n far route replace blackhole default
	[ "$QUEUES" != 1 ] || placed
}
