# Sourced after lib.sh, bench.sh, cost-model.sh and irqbalance.sh by the sections with a router, and by the rows of the matrix
# (bench/6*.sh): ringwise against what people use instead. Packets cost time on the CPU that handles them. The cost, the flows and the
# offered rates are here and in the sections; they do not change once a row was measured.

# The router's CPUs are 0 to ROUTER_CPUS - 1; OTHER_CPUS are those of the generator and of the sink. A row on a smaller host sets these
# three after this file.
ROUTER_CPUS=12
OTHER_CPUS=12-15
# shellcheck disable=SC2034 # used by the sections
FORWARD="--in eth0,eth1 --out eth2 --netns far --gen far0,far1 --sink far2 --peer-cpus $GENERATOR_CPU"
# One thread of each of the router's cores.
ROUTER_CORES=0,2,4,6,8,10

# A packet costs 2 ms on a CPU: 500 packets a second. Two threads of a core that are busy at the same time take 1.5 times as long each:
# a core carries 667 a second, all six 4,000. The CPU is halted for this time, so that 12 busy CPUs of the guest need less than one of
# the machine's. With 3 ms, a CPU that serves all queues comes back to the transmit queues so late that the kernel resets the port.
COST_NS=2000000
# More than the router can forward in any layout.
OVERLOAD=5000

# new: the kernel's own layout. Packets cost a thousand times what hardware needs, so completions come late in turn, and the limit of
# queued bytes (BQL), which grows with each completion, would need minutes to grow: it begins where it would end.
new() {
	fresh
	for _file in /sys/class/net/eth[012]/queues/tx-*/byte_queue_limits/limit_min; do
		echo 100000 >"$_file"
	done
}

# against NAME: the host as another program, script or the kernel leaves it
against_kernel() {
	new
}
against_cpu0() {
	new
	all_on 0 eth0 eth1 eth2
}
# The loop of the old articles: interrupt i of an interface on CPU i.
against_loop() {
	new
	for _dev in eth0 eth1 eth2; do
		_cpu=0
		for _n in $(queue_vectors "$_dev"); do
			echo $_cpu >"/proc/irq/$_n/smp_affinity_list"
			_cpu=$(((_cpu + 1) % ROUTER_CPUS))
		done
	done
}
# irqbalance runs for twenty seconds under the load of the row, without the CPUs and the interrupts of generator and sink. Then it is
# stopped, because no layout stays while it runs: its last one is measured.
against_irqbalance() {
	new
	_far=$(for _dev in far0 far1 far2; do irqs $_dev; done | awk '{ print "--banirq=" $1 }')
	export IRQBALANCE_BANNED_CPULIST=$OTHER_CPUS
	# shellcheck disable=SC2086 # one option for each interrupt
	start $_far
	eval "load_once 20s $LOAD"
	stop
}
# tuned's profile network-throughput with throughput-performance, which it includes, as far as a guest has what it sets. It places no
# interrupts: these are as the kernel places them. The last one, because nothing resets these settings.
against_tuned() {
	new
	echo "4096 131072 16777216" >/proc/sys/net/ipv4/tcp_rmem
	echo "4096 16384 16777216" >/proc/sys/net/ipv4/tcp_wmem
	echo 40 >/proc/sys/vm/dirty_ratio
	echo always >/sys/kernel/mm/transparent_hugepage/enabled
}

# sampled_plan: ringwise plans from a sample of the load of the row, taken in the kernel's own layout, which is what an administrator
# of a running router does. It is written to /tmp/sampled.plan, for a state of that name.
sampled_plan() {
	new
	(
		_before=$(cat /sys/class/net/eth0/statistics/rx_packets)
		for _ in $(seq 120); do
			sleep 1
			[ "$(cat /sys/class/net/eth0/statistics/rx_packets)" -lt $((_before + 2000)) ] || break
		done
		ringwise plan eth0 eth1 eth2 --goal forward --exclude-cpus $OTHER_CPUS --sample 15s --out /tmp/sampled.plan >/tmp/sampled 2>&1
	) &
	_sampling=$!
	eval "load_once 40s $LOAD"
	wait $_sampling
	check "a plan by a sample of the load" grep -q '"choice": *"load"' /tmp/sampled.plan
}

# acted_layout: what the service makes of the load of the row. It starts from the layout of goal balanced and acts for two minutes. Then it
# is stopped, because it would follow the load of every state of a session: its RSS tables, and the CPUs of the interrupts, are the
# options of a state, in /tmp/acted.
acted_layout() {
	new
	if ! ringwise apply eth0 eth1 eth2 --goal balanced --exclude-cpus $OTHER_CPUS --yes >/tmp/start 2>&1; then
		not_ok "the layout that the service starts from" "$(tail -n 3 /tmp/start | tr '\n' ' ')"
		exit 1
	fi
	# Interrupts move to their CPUs when they are next raised: with the load of the row at once, some queues would never raise one.
	_rate=$OVERLOAD
	OVERLOAD=300
	eval "load_once 5s $LOAD"
	OVERLOAD=$_rate
	(
		_before=$(cat /sys/class/net/eth0/statistics/rx_packets)
		for _ in $(seq 120); do
			sleep 1
			[ "$(cat /sys/class/net/eth0/statistics/rx_packets)" -lt $((_before + 2000)) ] || break
		done
		cp /h/ringwise /usr/bin/ringwise
		/usr/bin/ringwise -v daemon --config none --act eth0 --act eth1 2>/tmp/acting &
		_service=$!
		sleep 120
		{
			printf -- '--goal balanced --exclude-cpus %s' "$OTHER_CPUS"
			for _dev in eth0 eth1; do
				printf -- ' --set %s.rss.table=[%s]' "$_dev" "$(table_of $_dev)"
				_queue=0
				for _n in $(queue_vectors "$_dev"); do
					printf -- ' --set %s.irq_cpus.%s=%s' "$_dev" $_queue "$(cat "/proc/irq/$_n/smp_affinity_list")"
					_queue=$((_queue + 1))
				done
			done
		} >/tmp/acted
		kill "$_service"
		wait "$_service"
	) &
	_acting=$!
	eval "load_once 150s $LOAD"
	wait $_acting
	grep -e 'eth[01]: ' /tmp/acting
	cat /tmp/acted
	# Without a change, the state would be that of goal balanced.
	if ! grep -q -e 'changed the RSS table' -e ': moved [^:]*queue' /tmp/acting; then
		not_ok "the service changed something" "$(tail -n 3 /tmp/acting | tr '\n' ' ')"
		exit 1
	fi
	# Its guard restores the base within 15 s of its end.
	_n=0
	until ringwise rollback --yes 0 >/tmp/back 2>&1; do
		_n=$((_n + 1))
		if [ $_n = 60 ]; then
			not_ok "the layout is taken back" "$(tail -n 3 /tmp/back | tr '\n' ' ')"
			exit 1
		fi
		sleep 1
	done
}

# table_of DEV: the queue of each entry of its RSS table
table_of() {
	ethtool -x "$1" | awk '/^ *[0-9]+:/ { for (i = 2; i <= NF; i++) printf "%s%s", n++ ? "," : "", $i } /^RSS hash key/ { exit }'
}

# queue_vectors DEV: the interrupts of its queues, without the one for events
queue_vectors() {
	irqs "$1" | awk '/-(TxRx|rx|tx)-/ { print $1 }'
}

# load_once TIME WORDS...: one trial whose result is not kept. ringwise exits with an error, because irqbalance moves interrupts
# during the trial, so the host is not as found.
load_once() {
	_time=$1
	shift
	rm -f /tmp/load.jsonl
	ringwise bench forward "$@" --rate $OVERLOAD --pairs 1 --calibrate 0 --trial "$_time" --yes --capture none --results /tmp/load.jsonl >/tmp/load 2>&1
	check "a load of $_time" grep -q '"kind":"trial"' /tmp/load.jsonl
}

# calibrated: one CPU, and one thread of each core, forward what the cost allows, within 10 %; otherwise nothing is measured. With NICs
# of one queue, only one CPU is calibrated: with RPS, the CPU of the interrupt both polls the NIC and handles packets, and six CPUs
# carry less than six times as much.
calibrated() {
	_cores=$(echo "$ROUTER_CORES" | tr , '\n' | wc -l)
	_spread=
	[ "$QUEUES" = 1 ] || _spread="--queues $_cores --allow-disruption"
	against_cpu0
	eval "rate_once $LOAD"
	within "one CPU" "$(rate_of before)" $((1000000000 / COST_NS))
	[ "$QUEUES" = 1 ] || within "a thread of each core" "$(rate_of cores)" $((_cores * 1000000000 / COST_NS))
}
rate_once() {
	rm -f /tmp/load.jsonl
	ringwise bench forward "$@" --rate $OVERLOAD --pairs 1 --calibrate 0 --trial 4s --warm 1s --yes --capture none --results /tmp/load.jsonl \
		--state "cores=--goal balanced $_spread --cpus $ROUTER_CORES" >/tmp/load 2>&1 ||
		not_ok "the calibration" "$(tail -n 3 /tmp/load)"
}
# rate_of STATE: packets a second of the only trial of that state in the file of the last load
rate_of() {
	awk -v s="\"state\":\"$1\"" '/"kind":"trial"/ && index($0, s) {
		if (match($0, /"done_per_s":[0-9.]*/)) { printf "%.0f\n", substr($0, RSTART + 13, RLENGTH - 13); exit } }' /tmp/load.jsonl
}
# within WHAT GOT WANTED: a check that GOT is within 10 % of WANTED
within() {
	if is_near "${2:-0}" "$3"; then
		ok "$1: $2 packets/s, $3 expected"
	else
		not_ok "$1 within 10 %" "$2 packets/s, $3 expected"
		exit 1
	fi
}

# short_rings: a ring holds packets for as long as their cost takes: 256 of them for half a second, in which an overloaded queue loses
# nothing, and after which it still serves them on its old CPU. The shortest ring of igb holds 0.13 s.
short_rings() {
	for _dev in eth0 eth1 eth2; do
		ethtool -G $_dev rx 64
	done
	for _dev in eth0 eth1 eth2; do
		wait_link $_dev
	done
}

# router_with_cost: the router with short rings under the cost model, calibrated with flows that spread. LOAD has the arguments of that
# workload.
router_with_cost() {
	router_up
	cost_load eth0 eth1
	cost_on $COST_NS 100 150
	LOAD="$FORWARD --size 20"
	short_rings
	calibrated
}

# row NAME: overload, and the highest rate without loss, against each of the others. LOAD has the arguments of the workload, STATE
# another state of ringwise; ONLY and WHAT restrict it to some of the others, and to one of the two.
row() {
	_row=$1
	for _other in ${ONLY:-cpu0 kernel loop irqbalance tuned}; do
		"against_$_other"
		for _what in ${WHAT:-overload lossless}; do
			case $_what in
			overload) _how="--calibrate 2 --rate $OVERLOAD" _trial=3s ;;
			lossless) _how="--calibrate 0 --rate $OVERLOAD --find-rate" _trial=5s ;;
			esac
			eval "measured matrix-$_row-$_other-$_what forward $LOAD $_how --pairs $(pick 10 2) --trial $_trial --warm 1s \
				--state 'balanced=--goal balanced --exclude-cpus $OTHER_CPUS' --state 'forward=--goal forward --exclude-cpus $OTHER_CPUS' $STATE"
		done
	done
}
