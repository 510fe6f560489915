# Helper functions for scenarios. The first group prints result lines that xtask counts.
H=/h
. $H/host.env
# Scenarios search the output for whole lines, so ringwise must not fold it.
export PATH="$H:$PATH" COLUMNS=200 RINGWISE_COLUMNS=0

# ok NAME
ok() {
	echo "ok $1"
}

# not_ok NAME DETAIL. With `cargo xtask mutants` the scenario ends at the first one.
not_ok() {
	echo "not ok $1 # $2"
	[ -z "$ONCE" ] || kill -KILL $$
}

# skip NAME REASON: a failure unless the scenario's header has `# may-skip:`.
skip() {
	echo "skip $1 # $2"
}

# check NAME COMMAND...: ok if the command succeeds; otherwise its output is the detail.
check() {
	_name=$1
	shift
	if _out=$("$@" 2>&1); then
		ok "$_name"
	else
		not_ok "$_name" "$* failed: $(echo "$_out" | tr '\n' ' ')"
	fi
}

# same NAME GOT WANTED
same() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "got '$2', wanted '$3'"
	fi
}

# expand LIST: 0-2,5 becomes 0 1 2 5
expand() {
	for _r in $(echo "$1" | tr , ' '); do
		seq "${_r%-*}" "${_r#*-}"
	done | sort -n | tr '\n' ' ' | sed 's/ $//'
}

# expand_online LIST: the same without the CPUs that the host file takes offline
expand_online() {
	for _c in $(expand "$1"); do
		case " $OFFLINE " in
		*" $_c "*) ;;
		*) echo "$_c" ;;
		esac
	done | tr '\n' ' ' | sed 's/ $//'
}

# cpus_in FILE: the number of CPUs of the list in it
cpus_in() {
	expand "$(cat "$1")" | wc -w
}

driver_of() {
	basename "$(readlink -f "$(pci_of "$1")/driver")" | sed 's/^virtio-pci$/virtio_net/'
}

# pci_of DEV: its PCI function; virtio has a device of its own in between
pci_of() {
	_d=$(readlink -f "/sys/class/net/$1/device")
	case $_d in
	*/virtio*) dirname "$_d" ;;
	*) echo "$_d" ;;
	esac
}

# look NAME FILE: sets a variable of that name to the file's first line, or to nothing if it cannot be read.
# It starts no process: under emulation, processes that read files took most of the lab's time.
look() {
	eval "$1="
	{ read -r "$1" <"$2"; } 2>/dev/null
}

# wait_link DEV: waits up to ten seconds for the link
wait_link() {
	state links "$1"
}

# irqs DEV: `NUMBER NAME` of each vector whose name contains that of the device (also eth0-rx-0)
irqs() {
	awk -v d="$1" '{ n = $NF } n == d || index(n, d "-") == 1 { sub(":", "", $1); print $1, n }' /proc/interrupts
}

# irq_of NAME: the number of the vector with exactly that name
irq_of() {
	awk -v n="$1" '$NF == n { sub(":", "", $1); print $1; exit }' /proc/interrupts
}

# irq_counts NUMBER: its counts, one for each online CPU
irq_counts() {
	awk -v n="$1:" '$1 == n { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) printf "%s ", $i; exit }' /proc/interrupts
}

# asked NUMBER, effective NUMBER: the requested and the effective CPU list
asked() {
	cat "/proc/irq/$1/smp_affinity_list"
}
effective() {
	cat "/proc/irq/$1/effective_affinity_list"
}

# errno_of VALUE FILE: writes the value; prints the kernel's message for the refusal, or `ok`
errno_of() {
	if _e=$( (echo "$1" >"$2") 2>&1); then
		echo ok
	else
		echo "$_e" | sed 's/.*: //'
	fi
}

# rx_packets DEV: received packets by queue, if the driver counts them by queue
rx_packets() {
	ethtool -S "$1" | awk '/rx_queue_[0-9]+_packets/ { split($1, a, "_"); q[a[3] + 0] = $2; if (a[3] + 0 > m) m = a[3] + 0 }
		END { for (i = 0; i <= m; i++) printf "%s ", q[i] }'
}

_pg() {
	echo "$2" >"/proc/net/pktgen/$1" || echo "pktgen: $1 refused '$2'" >&2
}

# pktgen's thread removes devices asynchronously: a request that comes too early also removes the next device.
# PG_CPU is the CPU that sends.
_pg_empty() {
	for _i in $(seq 100); do
		[ "$(ls /proc/net/pktgen | grep -vc -e '^kpktgend_' -e '^pgctrl$')" = 0 ] && return
		[ "$_i" = 1 ] && _pg "kpktgend_${PG_CPU:-0}" rem_device_all
		sleep 0.1
	done
	echo "pktgen did not release its device" >&2
}

# _pg_run SECONDS: sends the configured packets, to the end or for at most that time, and removes the device.
_pg_run() {
	(echo start >/proc/net/pktgen/pgctrl) &
	_sends=$!
	(
		sleep "$1"
		echo stop >/proc/net/pktgen/pgctrl
	) >/dev/null 2>&1 &
	_stops=$!
	wait $_sends
	kill $_stops 2>/dev/null
	_pg_empty
}

# traffic SRC DST [FLOWS [PACKETS]]: UDP from SRC to DST, with a source address for each flow.
# The number of packets and the time are limited.
traffic() {
	_src=$1 _flows=${3:-256} _n=${4:-4000}
	modprobe pktgen || return
	_t=kpktgend_${PG_CPU:-0}
	_pg_empty
	_pg "$_t" "add_device $_src"
	for _w in "count $_n" "clone_skb 0" "pkt_size 60" "delay 0" "dst 10.1.1.1" \
		"dst_mac $(cat "/sys/class/net/$2/address")" "src_min 10.9.0.1" \
		"src_max 10.9.$(((_flows - 1) / 250)).$(((_flows - 1) % 250 + 1))" \
		"udp_src_min 1024" "udp_src_max 1024" "udp_dst_min 9" "udp_dst_max 9" "ratep 20000"; do
		_pg "$_src" "$_w"
	done
	[ "$_flows" -gt 1 ] && _pg "$_src" "flag IPSRC_RND"
	_pg_run 15
	# Packets in flight arrive, and moderated interrupts are raised.
	sleep 0.5
}
