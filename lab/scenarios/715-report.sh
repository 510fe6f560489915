#!/bin/sh
# apply --measure counts before and after exactly what was sent; if it is stopped, the transaction stays as it is.
# Metrics: exact, without a capability, while a device vanishes, and with the drift that verify finds.
# hosts: small2
# kernels: 6.12
# areas: export check
# timeout: 900
. /h/lib.sh
. /h/state.sh
ip() { /usr/bin/ip "$@"; }
export RINGWISE_DEVICE_DEADLINE_MS=20000
S=/tmp/w72.state
R="ringwise --state-dir $S"

# send SRC COUNT WORD...: sends with pktgen, to the end
send() {
	_src=$1 _n=$2
	shift 2
	_pg_empty
	_pg kpktgend_0 "add_device $_src"
	for _w2 in "count $_n" "clone_skb 0" "pkt_size 60" "delay 0" "udp_src_min 1024" "udp_src_max 1024" \
		"dst 10.1.1.1" "dst_mac 02:00:00:00:00:01" "$@"; do
		_pg $_src "$_w2"
	done
	echo start >/proc/net/pktgen/pgctrl
	_pg_empty
}
# until_ok COMMAND...: waits as long as a slow guest may need
# shellcheck disable=SC2317 # by `check`
until_ok() {
	for _i in $(seq 1200); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	echo "never: $*"
	return 1
}
# windows FILE: transmitted packets of queue 1 of eth0, one line for each window
windows() {
	ringwise watch --replay $1 -j | grep -o '"dir":"tx","queue":1,"packets":[0-9]*' | grep -o '[0-9]*$' | tr '\n' ' '
}

modprobe pktgen
for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do
	echo 1 >$f
done
ip link set eth0 up
ip link set eth1 up
wait_link eth0
wait_link eth1

# --- measured before and after
$R apply eth0 --set 'eth0.rps_cpus="0-1"' --yes --measure 12s >/tmp/w72.out 2>/tmp/w72.err &
p=$!
check "the window before begins" until_ok grep -q 'measuring before' /tmp/w72.err
send eth0 137 "queue_map_min 1" "queue_map_max 1"
check "nothing is applied while it measures" test ! -e $S/tx-0001.jsonl
check "the window after begins" until_ok grep -q 'measuring after' /tmp/w72.err
check "it is applied by then" test -e $S/tx-0001.jsonl
send eth0 41 "queue_map_min 1" "queue_map_max 1"
kill -TERM $p
wait $p
same "interrupted while it measures after: a success" $? 0
cat /tmp/w72.out /tmp/w72.err
check "and it says that it stays" grep -q 'the transaction stays' /tmp/w72.err
check "the report is at the end of apply" grep -q 'observed, not proven' /tmp/w72.out
same "packets before and after, to the packet" "$(windows $S/measure-0001.rec)" "137 41 "
status "it is applied" 0 $R verify
status "report" 0 $R report --since 1
says "it is not proven" "observed, not proven"
says "both windows" "after "
# Output that does not go to a terminal has unbroken sentences.
same "80 columns are enough for the numbers" "$($R report --since 1 | awk 'length($0) > 80 && !/^The traffic was not/')" ""
status "as JSON" 0 $R report --since 1 -j
check "with its schema" grep -q '"schema": "ringwise.report"' /tmp/out
status "as a page" 0 $R report --since 1 --html /tmp/w72.html
check "that is one" grep -q '</html>' /tmp/w72.html
check "and loads nothing" sh -c '! grep -qE "https?:|src=|url\(" /tmp/w72.html'
status "of what was not measured there is none" 1 $R report --since 7

# --- stopped before the transaction: nothing is changed
$R apply eth0 --set 'eth0.rps_cpus="0"' --yes --measure 600s >/tmp/w72.out 2>/tmp/w72.err &
p=$!
check "another window before begins" until_ok grep -q 'measuring before' /tmp/w72.err
kill -TERM $p
wait $p
same "stopped there: refused" $? 6
check "no transaction" test ! -e $S/tx-0002.jsonl
check "no recording" test ! -e $S/measure-0002.rec

# --- on trial: the time before the confirmation does not count
status "apply on trial" 0 $R apply eth0 --set 'eth0.rps_cpus="0"' --yes --measure 2s --confirm 600s
says "it tells how to go on" "report --since 2"
send eth0 19 "queue_map_min 1" "queue_map_max 1"
status "a report of a trial" 0 $R report --since 2
says "says that it is one" "on trial"
status "confirm" 0 $R confirm
send eth0 23 "queue_map_min 1" "queue_map_max 1"
status "the report goes until now" 0 $R report --since 2
says "and says so" "until now"
$R report --since 2 -j >/tmp/w72.json
sent=$(awk '/"after": \{/ { a = 1 } a && /"seconds"/ { gsub(/[^0-9.]/, ""); s = $0; a = 0 }
	/"tx_packets_per_second"/ { t = 1 } t && /"after"/ { sub(/.*: /, ""); sub(/,/, ""); print int($0 * s + 0.5); exit }' /tmp/w72.json)
same "only what came after the confirmation is in it" "$sent" 23

# --- metrics
mkdir -p /tmp/w72.prom
chmod 777 /tmp/w72.prom
before=$(cat /sys/class/net/eth0/statistics/tx_packets)
status "a file without capabilities" 0 as_nobody ringwise --state-dir $S export --textfile /tmp/w72.prom
m=/tmp/w72.prom/ringwise.prom
same "packets of the interface" "$(awk -F'} ' '/^ringwise_device_packets_total\{device="eth0",direction="tx"/ { print $2 }' $m)" "$before"
same "nothing is left beside it" "$(ls -A /tmp/w72.prom)" ringwise.prom
check "queues by qstats" grep -q 'ringwise_device_info{device="eth0",driver="virtio_net",.*queue_source="qstats"} 1' $m
check "and by ethtool -S" grep -q 'ringwise_device_info{device="eth1",driver="igb",.*queue_source="ethtool"} 1' $m
check "the transaction" grep -q '^ringwise_last_apply_info{transaction="2",kind="apply",verdict="kept"} 1' $m
check "all holds" grep -q '^ringwise_settings{device="eth0",state="drifted"} 0' $m
check "findings" grep -q '^ringwise_findings{severity="error"} ' $m
check "of a page alone without rates" grep -q '^ringwise_check_rules_skipped [1-9]' $m
$R export --listen 127.0.0.1:9787 --verify-every 1ms 2>/tmp/w72.err &
p=$!
page() {
	wget -q -O /tmp/w72.page http://127.0.0.1:9787/metrics
}
value() {
	grep -v "^#" /tmp/w72.page | grep -F "$1" | awk '{ print $NF }'
}
ip link set lo up
check "it serves" until_ok page
q='ringwise_queue_packets_total{device="eth0",queue="1",direction="tx"}'
was=$(value "$q")
send eth0 57 "queue_map_min 1" "queue_map_max 1"
# A sample may have its highest allowed age, and the guest may be slow.
for _ in $(seq 30); do
	page
	[ "$(($(value "$q") - was))" -ge 57 ] && break
	sleep 1
done
same "57 packets more on the queue" $(($(value "$q") - was)) 57
check "findings from the second page on" grep -q '^ringwise_findings{severity="warning"} ' /tmp/w72.page
# Rules about threads of programs (A05, H14, H21, H27): the exporter does not read threads.
same "with rates" "$(value ringwise_check_rules_skipped)" 4
echo 3 >/sys/class/net/eth0/queues/rx-0/rps_cpus
sleep 1.2
page
same "a setting moved by hand is drift" "$(value 'ringwise_settings{device="eth0",state="drifted"}')" 1
sleep 1.2
d=$(basename $(readlink -f /sys/class/net/eth1/device))
echo $d >/sys/bus/pci/drivers/igb/unbind
page
same "a device that went away is not told" "$(grep -c 'device_packets_total{device="eth1"' /tmp/w72.page)" 0
check "the others are" grep -qF "$q" /tmp/w72.page
echo $d >/sys/bus/pci/drivers/igb/bind
check "until it is back" until_ok sh -c 'sleep 1.1; wget -q -O - http://127.0.0.1:9787/metrics | grep -q "device_packets_total{device=\"eth1\""'
kill $p
wait $p 2>/dev/null
exit 0
