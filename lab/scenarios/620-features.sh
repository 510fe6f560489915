#!/bin/sh
# Features, pause frames, sysctls, wake-up time of CPUs: read as the kernel's own tools read them, written by a
# transaction, rolled back, and the side effects in the kernel.
# hosts: router16 small2
# kernels: 5.10 6.1 6.12 6.18 newest
# timeout: 900
. /h/lib.sh
. /h/state.sh

core=/proc/sys/net/core
cpu=/sys/devices/system/cpu
export RINGWISE_STATE_DIR=/tmp/rw62
devs=$(awk '{ print $2 }' /h/nics | while read -r d; do [ -e /sys/class/net/$d ] && echo $d; done)
igb=$(awk '$3 == "igb" { print $2; exit }' /h/nics)
links $devs >/dev/null

# theirs DEV: `NAME on` and `NAME off [fixed]` by the kernel's names; some have other names in ethtool.
theirs() {
	ethtool -k $1 2>/dev/null | awk 'BEGIN {
		k["rx-checksumming"] = "rx-checksum"; k["generic-segmentation-offload"] = "tx-generic-segmentation"
		k["generic-receive-offload"] = "rx-gro"; k["large-receive-offload"] = "rx-lro"; k["rx-vlan-offload"] = "rx-vlan-hw-parse"
		k["tx-vlan-offload"] = "tx-vlan-hw-insert"; k["ntuple-filters"] = "rx-ntuple-filter"; k["receive-hashing"] = "rx-hashing" }
		/^Features for/ || /^(tx-checksumming|scatter-gather|tcp-segmentation-offload)/ { next }
		{ sub(/ \[not requested\]/, ""); sub(/ \[requested .*\]/, ""); sub(/:/, ""); if ($1 in k) $1 = k[$1]; else $1 = $1; print }' | sort
}
# ours DEV: the same from ringwise, of all devices at once in /tmp/json
ours() {
	awk -v dev=$1 '/^  "/ { nics = /"nics"/ } !nics { next }
		/^      "/ { features = /"features"/ }
		/^        "name": / { name = $2; gsub(/[",]/, "", name) }
		/^    \{/ { n = 0 }
		/^    \}/ && name == dev { for (i = 0; i < n; i++) print line[i] }
		!features { next }
		/^          "/ { f = $1; gsub(/[":]/, "", f) }
		/"fixed": / { fixed = /true/ ? " [fixed]" : "" }
		/"on": / { line[n++] = f (/true/ ? " on" : " off") fixed }' /tmp/json | sort
}
feature() {
	theirs $1 | awk -v n="$2" '$1 == n { print $2 }'
}
# change TITLE STATUS DEV WORDS...: changes it by a transaction
change() {
	_t=$1 _s=$2 _d=$3
	shift 3
	status "$_t" $_s ringwise apply --yes $_d --config none "$@"
}
flaps() {
	cat /sys/class/net/$1/carrier_changes
}
all() {
	state $devs
	for _x in $devs; do
		theirs $_x | sed "s/^/$_x /"
		ethtool -a $_x 2>/dev/null
	done
	grep . $core/netdev_budget* $core/flow_limit_* $core/rps_default_mask $core/busy_* $cpu/cpu*/power/pm_qos_resume_latency_us
	grep -s . $core/qdisc_max_burst $core/skb_defer_max $core/txq_reselection_ms
}
# A setting that no transaction requests, and that must stay.
ethtool -K mq0 ntuple on >/dev/null 2>&1
all >/tmp/start

# --- read
ringwise show -j $devs >/tmp/json 2>/dev/null
for dev in $devs; do
	case $HOST:$dev in router16:eth1 | *:mq[1-9]) continue ;; esac
	theirs $dev >/tmp/theirs
	ours $dev >/tmp/ours
	unchanged "$dev: features as ethtool -k shows them" /tmp/theirs /tmp/ours
	same "$dev: there are some" "$(awk 'END { print (NR > 40) }' /tmp/ours)" 1
	ringwise show $dev -v >/tmp/show 2>/dev/null
	check "$dev: show has a line of them" grep -q '^features .*gro' /tmp/show
	a=$(ethtool -a $dev 2>/dev/null | awk '$1 == "RX:" || $1 == "TX:" { printf "%s ", $2 }')
	p=$(awk '$1 == "pause" { gsub(",", ""); for (i = 2; i <= NF; i++) if ($i == "rx" || $i == "tx") printf "%s ", $(i + 1) }' /tmp/show)
	same "$dev: pause frames as ethtool -a shows them" "$p" "$a"
done
tr -d '\n' </tmp/json | tr -s ' ' >/tmp/sysctls
for f in busy_poll busy_read dev_weight dev_weight_rx_bias dev_weight_tx_bias flow_limit_cpu_bitmap flow_limit_table_len \
	netdev_budget netdev_budget_usecs netdev_max_backlog; do
	same "sysctls as the files say them: $f" "$(sed "s/.*\"net.core.$f\": { \"known\": \"\([^\"]*\)\".*/\1/" /tmp/sysctls)" "$(cat $core/$f)"
done

# --- features: the kernel's own, and one of the driver
change "gro off" 0 $igb --set $igb.features.gro=false
same "gro is off" "$(feature $igb rx-gro)" off
status "verify" 0 ringwise verify
status "a second plan has no feature" 0 ringwise plan $igb --config none --set $igb.features.gro=false
check "it has none" sh -c "! grep -q rx-gro /tmp/out"
status "a feature that restarts devices is left out" 0 ringwise plan $igb --config none --set $igb.features.tx=false
says "and that is said" "--allow-disruption"
before=$(theirs $igb | grep -c -e 'segmentation on')
change "checksums off" 0 $igb --allow-disruption --set $igb.features.tx-checksum-ip-generic=false
same "tx-checksum-ip-generic off takes segmentation of TCP with it" "$(feature $igb tx-tcp-segmentation)" off
says "and that is reported too" "changing tx-checksum-ip-generic also turned off"
same "but not scatter-gather" "$(feature $igb tx-scatter-gather)" on
status "verify" 0 ringwise verify
status "rollback of it" 0 ringwise rollback --yes 2
same "and brings it back" "$(theirs $igb | grep -c -e 'segmentation on')" "$before"
ethtool -K $igb tx-scatter-gather off >/dev/null 2>&1
same "tx-scatter-gather off takes segmentation by the kernel with it" "$(feature $igb tx-generic-segmentation)" off
ethtool -K $igb tx-scatter-gather on >/dev/null 2>&1
same "and brings that back" "$(theirs $igb | grep -c -e 'segmentation on')" "$before"
fixed=$(theirs $igb | awk '/off \[fixed\]/ { print $1; exit }')
check "a feature that is fixed: the kernel reports no error" sh -c "ethtool -K $igb $fixed on 2>&1 | grep -v -q 'netlink error'"
same "and changes nothing" "$(feature $igb $fixed)" off
status "a fixed one that is configured is reported" 0 ringwise plan $igb --config none --set $igb.features.$fixed=true
says "and why" "fixed"
status "and an error with --strict" 1 ringwise plan $igb --config none --set $igb.features.$fixed=true --strict
says "with the same reason" "fixed"

# --- each driver: a feature of its own, and the side effects of a change
for dev in $devs; do
	case $HOST:$dev in router16:eth1 | *:mq[1-9]) continue ;; esac
	case $(driver_of $dev) in
	igb) f=rx-vlan-hw-parse ;;
	e1000e) f=tx-tcp-segmentation ;;
	vmxnet3) f=rx-lro ;;
	virtio_net) f=rx-gro-hw ;;
	*) f=rx-hashing ;;
	esac
	was=$(theirs $dev | awk -v n=$f '$1 == n { print $2 $3 }')
	case $was in on) to=false now=off ;; off) to=true now=on ;; *) continue ;; esac
	state $dev >/tmp/one
	n=$(flaps $dev)
	ethtool -K $dev $f $now >/dev/null 2>&1
	links $dev >/dev/null
	echo "# $dev: $f $now: the link changed $(($(flaps $dev) - n)) times"
	same "$dev: $f can be changed" "$(feature $dev $f)" $now
	state $dev >/tmp/two
	unchanged "$dev: $f: nothing else is lost" /tmp/one /tmp/two
	ethtool -K $dev $f $was >/dev/null 2>&1
	links $dev >/dev/null
	change "$dev: $f by a transaction" 0 $dev --allow-disruption --set $dev.features.$f=$to
	same "$dev: it is $now" "$(feature $dev $f)" $now
done

# --- LRO is switched off when the host forwards
lro=$(awk '$3 == "vmxnet3" { print $2; exit }' /h/nics)
if [ -n "$lro" ] && [ -e /sys/class/net/$lro ]; then
	forward=$(cat /proc/sys/net/ipv4/ip_forward)
	echo 0 >/proc/sys/net/ipv4/ip_forward
	change "LRO on" 0 $lro --allow-disruption --set $lro.features.lro=true
	ip link set $lro up
	echo 1 >/proc/sys/net/ipv4/ip_forward
	same "forwarding switches LRO off" "$(feature $lro rx-lro)" off
	status "verify sees it" 3 ringwise verify
	says "by its name" "rx-lro"
	echo $forward >/proc/sys/net/ipv4/ip_forward
	ethtool -K $lro lro on >/dev/null 2>&1
	status "and its coming back" 0 ringwise verify
fi

# --- pause frames
a=$(ethtool -a $igb | awk '$1 == "Autonegotiate:" { print $2 }')
n=$(flaps $igb)
change "pause: without autonegotiation" 0 $igb --allow-disruption --set "$igb.pause={ autoneg = false, rx = false, tx = false }"
same "it is so" "$(ethtool -a $igb | awk '$1 ~ /:$/ && NF == 2 { printf "%s ", $2 }')" "off off off "
change "pause: with autonegotiation" 0 $igb --allow-disruption --set "$igb.pause={ autoneg = true }"
links $igb >/dev/null
check "igb: pause with autonegotiation restarts the link" [ $(flaps $igb) -gt $n ]
change "pause: against the partner nothing comes of it" 4 $igb --allow-disruption --set "$igb.pause={ autoneg = true, rx = $(
	[ "$(ethtool -a $igb | awk '$1 == "RX:" { print $2 }')" = on ] && echo false || echo true) }"
says "and that is said" "accepted, but reads back as"

# --- the host
change "sysctls and wake-up time" 0 $igb --set 'host.sysctl={ "net.core.netdev_budget" = 600, "net.core.flow_limit_cpu_bitmap" = "3", "net.core.busy_poll" = 50 }' \
	--set 'host.cpu_latency={ "0" = 20, "1" = "n/a" }'
same "netdev_budget" "$(cat $core/netdev_budget)" 600
same "flow_limit_cpu_bitmap" "$(tr -d , <$core/flow_limit_cpu_bitmap | sed 's/^0*//')" 3
same "resume latency: n/a and a number" "$(cat $cpu/cpu0/power/pm_qos_resume_latency_us $cpu/cpu1/power/pm_qos_resume_latency_us | tr '\n' ' ')" "20 n/a "
status "verify" 0 ringwise verify
if [ -e $core/rps_default_mask ]; then
	change "rps_default_mask" 0 $igb --set 'host.sysctl={ "net.core.rps_default_mask" = "3" }'
	same "it is so" "$(tr -d , <$core/rps_default_mask | sed 's/^0*//')" 3
	modprobe veth
	/usr/bin/ip link add late0 type veth peer name late1
	same "an interface that is made afterwards has the mask" "$(tr -d , </sys/class/net/late0/queues/rx-0/rps_cpus | sed 's/^0*//')" 3
	/usr/bin/ip link del late0
fi
# Multiples of 10 ms are whole ticks of every kernel.
for f in qdisc_max_burst txq_reselection_ms skb_defer_max; do
	[ -e $core/$f ] || continue
	was=$(cat $core/$f)
	check "$f: another value than now" test "$was" != 70
	change "$f" 0 $igb --set "host.sysctl={ \"net.core.$f\" = 70 }"
	same "$f: it is so" "$(cat $core/$f)" 70
	status "$f: verify" 0 ringwise verify
	last=$(ls $RINGWISE_STATE_DIR/tx-*.jsonl | sed -n '$s/.*tx-0*\([0-9]*\).*/\1/p')
	status "$f: rollback of it" 0 ringwise rollback --yes "$last"
	same "$f: as before" "$(cat $core/$f)" "$was"
done
for bad in "netdev_budget_usecs below two ticks:netdev_budget_usecs=1" "flow_limit_table_len that is no power of two:flow_limit_table_len=1000"; do
	# Older kernels accept any number of microseconds.
	case $KERNEL:$bad in 5.10:*netdev_budget_usecs*) continue ;; esac
	same "${bad%%:*}: the kernel refuses it" "$(errno_of ${bad##*=} $core/$(echo ${bad#*:} | cut -d= -f1))" "Invalid argument"
	change "${bad%%:*}: refused before anything is done" 2 $igb --set "host.sysctl={ \"net.core.$(echo ${bad#*:} | cut -d= -f1)\" = ${bad##*=}, \"net.core.netdev_max_backlog\" = 4321 }"
	says "with what is expected" "expected "
	check "and nothing was written" [ "$(cat $core/netdev_max_backlog)" != 4321 ]
done
# Only the kernel knows how many CPUs there can be.
long=$(awk 'BEGIN { printf "1"; for (i = 0; i < 256; i++) printf ",00000000" }')
same "CPUs beyond any kernel: the kernel refuses them" "$(errno_of $long $core/flow_limit_cpu_bitmap)" "Value too large for defined data type"
change "CPUs beyond any kernel: put back" 4 $igb --set "host.sysctl={ \"net.core.flow_limit_cpu_bitmap\" = \"$long\", \"net.core.busy_poll\" = 77 }"
says "with the errno" EOVERFLOW
check "and nothing stays behind" [ "$(cat $core/busy_poll)" != 77 ]
same "resume latency: below 0" "$(errno_of -1 $cpu/cpu0/power/pm_qos_resume_latency_us)" "Invalid argument"

# --- hold
now() { # in effect, read by another program
	od -An -t d4 -N4 /dev/cpu_dma_latency | tr -d ' '
}
if [ -e /dev/cpu_dma_latency ]; then
	was=$(now)
	same "hold: in force while it runs" "$(ringwise hold --cpu-latency 7 -- sh -c 'od -An -t d4 -N4 /dev/cpu_dma_latency | tr -d " "')" 7
	same "hold: gone after it" "$(now)" "$was"
	status "hold: the status of the command" 42 ringwise hold --cpu-latency 0 -- sh -c 'exit 42'
	status "hold: a command that is not there" 127 ringwise hold --cpu-latency 0 -- /no/such
	says "hold: it is named" "/no/such"
	status "hold: a command that a signal ended" 143 ringwise hold --cpu-latency 0 -- sh -c 'kill -TERM $$'
	rm -f /tmp/ready
	ringwise hold --cpu-latency 3 -- sh -c 'trap "echo got; exit 9" TERM; echo ready >/tmp/ready; while :; do sleep 0.1; done' >/tmp/held 2>&1 &
	p=$!
	for _ in $(seq 300); do [ -e /tmp/ready ] && break; sleep 0.1; done
	same "hold: several wishes, the shortest is in force" "$(ringwise hold --cpu-latency 9 -- true 2>&1; now)" "ringwise: another program limits the latency to 3 us already
3"
	kill -TERM $p
	wait $p
	same "hold: a signal is passed on, and the status back" "$?:$(cat /tmp/held)" "9:got"
	same "hold: gone after that" "$(now)" "$was"
	mv /dev/cpu_dma_latency /dev/away
	status "hold: no device" 125 ringwise hold --cpu-latency 0 -- true
	says "hold: it is said" "ENOENT"
	mv /dev/away /dev/cpu_dma_latency
else
	not_ok "there is a /dev/cpu_dma_latency" "no"
fi

# --- and all of it rolled back
status "rollback to the beginning" 0 ringwise rollback --yes --take-over 1
ethtool -A $igb autoneg $a >/dev/null 2>&1
links $devs >/dev/null
all >/tmp/end
ethtool -K mq0 ntuple off >/dev/null 2>&1
unchanged "everything as it was" /tmp/start /tmp/end
