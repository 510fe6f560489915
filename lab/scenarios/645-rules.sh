#!/bin/sh
# Flow steering rules: read as ethtool -n reads them, configured in a file, replaced, changed for fewer queues,
# and removed; and the refusals of the kernel and the drivers, as in the simulated host.
# hosts: router16 small2
# kernels: 6.1 6.12 6.18 newest
# timeout: 600
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw65
echo -1 >/sys/module/mqnic/parameters/quirk_dev 2>/dev/null

# theirs DEV: `PLACE: WORDS` from ethtool -n, in ethtool's notation sorted by name, as ringwise writes them.
theirs() {
	ethtool -n $1 2>/dev/null | awk '
	function flush(  i, out) {
		if (at == "") return
		out = at ": " type
		for (i = 1; i <= n; i++) if (order[i] in f) out = out " " order[i] " " f[order[i]]
		print out " " action
		at = ""
		split("", f)
	}
	# Value and mask are the words around "mask:".
	function field(name, none,  v, m, i) {
		for (i = 1; i <= NF; i++) if ($i == "mask:") { v = $(i - 1); m = $(i + 1) }
		if (m == none) return
		f[name] = v
		if (m != "0x0" && m != "0.0.0.0" && m != "::" && m != "00:00:00:00:00:00") f[name] = v " m " m
	}
	BEGIN {
		n = split("dst dst-ip dst-port proto src src-ip src-port tos", order, " ")
		t["TCP over IPv4"] = "tcp4"; t["UDP over IPv4"] = "udp4"; t["TCP over IPv6"] = "tcp6"; t["Raw Ethernet"] = "ether"
		six = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
	}
	/Filter:/ { flush(); at = $2 }
	/Rule Type:/ { sub(/.*: /, ""); type = t[$0] }
	/Src IP addr/ { field("src-ip", type == "tcp6" ? six : "255.255.255.255") }
	/Dest IP addr/ { field("dst-ip", type == "tcp6" ? six : "255.255.255.255") }
	/Src port/ { field("src-port", "0xffff") }
	/Dest port/ { field("dst-port", "0xffff") }
	/Src MAC/ { field("src", "FF:FF:FF:FF:FF:FF") }
	/Action: Direct/ { action = "action " $NF }
	/Action: Drop/ { action = "action -1" }
	END { flush() }' | sort -n
}
ours() {
	ringwise show -v $1 2>/dev/null | awk '/^flow rules   [0-9]+:/ { sub(/^flow rules */, ""); on = 1 }
		on && /^ *[0-9]+: / { sub(/^ */, ""); print; next } { on = 0 }' | sort -n
}
# refused DEV WORDS...: the kernel's message for ethtool -N
refused() {
	_d=$1
	shift
	ethtool -N $_d "$@" 2>&1 | sed -n 's/.*: \([A-Z][a-z ]*\)$/\1/p' | tail -1
}
rule_line() {
	ringwise show $1 2>/dev/null | sed -n 's/^flow rules *//p'
}

if [ $HOST = small2 ]; then
	same "rules: virtio has none" "$(rule_line eth0)" "none: not supported by the driver"
	same "rules: igb of this kind has no places" "$(rule_line eth1 | sed 's/,.*//')" none
	exit 0
fi

same "rules: eth0 counts none" "$(rule_line eth0 | sed 's/,.*//')" none
# 82576, which QEMU has; the driver offers it only for later devices.
same "rules: igb of this kind has no ntuple to switch" "$(ethtool -k eth0 | sed -n 's/^ntuple-filters: //p')" "off [fixed]"
for dev in eth2 eth3; do
	same "rules: $dev has none" "$(rule_line $dev)" "none: not supported by the driver"
done
[ -e /sys/class/net/mq1 ] || exit 0
dev=mq1
ip link set mq0 up
ip link set mq1 up
links mq0 mq1
same "rules: mq1 has 64 places" "$(rule_line mq1)" "none in 64 locations, ntuple off"

# --- refusals
same "rules: with ntuple off" "$(refused mq1 flow-type udp4 dst-port 9 action 5 loc 0)" "Operation not supported"
ethtool -K mq1 ntuple on
same "rules: a queue that does not exist" "$(refused mq1 flow-type udp4 dst-port 9 action 8 loc 0)" "Invalid argument"
same "rules: a context that does not exist" "$(refused mq1 flow-type udp4 dst-port 9 context 9 loc 0)" "Invalid argument"
same "rules: a location beyond the table" "$(refused mq1 flow-type udp4 dst-port 9 action 1 loc 64)" "No space left on device"
same "rules: a field that the driver has not" \
	"$(refused mq1 flow-type udp4 user-def 0x100000000 action 1 loc 0)" "Operation not supported"

# --- read
ethtool -N mq1 flow-type tcp4 src-ip 10.0.0.0 m 0.0.0.255 dst-port 443 action 2 loc 7 >/dev/null
ethtool -N mq1 flow-type udp4 src-ip 192.0.2.1 src-port 5 action 1 loc 3 >/dev/null
ethtool -N mq1 flow-type tcp6 dst-ip 2001:db8::1 dst-port 80 action -1 loc 63 >/dev/null
theirs mq1 >/tmp/theirs
ours mq1 >/tmp/ours
cat /tmp/ours
unchanged "the list as ethtool -n has it" /tmp/theirs /tmp/ours
same "three of them" "$(wc -l </tmp/ours)" 3
same "show counts them" "$(rule_line mq1)" "3 in 64 locations, ntuple on"
ethtool -N mq1 flow-type tcp4 dst-port 80 action 4 loc 3 >/dev/null
same "rules: an occupied location" "$(ours mq1 | sed -n 's/^3: //p')" "tcp4 dst-port 80 action 4"
ethtool -K mq1 ntuple off
same "rules: ntuple off drops them" "$(ours mq1 | wc -l)" 0

# --- written: the feature too, beside an existing rule; packets go where the rule sends them
ethtool -K mq1 ntuple on
ethtool -N mq1 flow-type tcp4 dst-port 22 action 1 loc 0 >/dev/null
theirs mq1 >/tmp/before
cat >/tmp/one.toml <<END
version = 1

[[interface]]
match = { name = "mq1" }

[[interface.rule]]
flow = "udp4 dst-port 9 action 5"

[[interface.rule]]
flow = "tcp4 src-ip 10.0.0.0/8 dst-port 443 action 6"
location = 9
END
status "laid down in a file" 0 ringwise apply --yes mq1 --config /tmp/one.toml
cat /tmp/err
theirs mq1 >/tmp/theirs
cat >/tmp/wanted <<END
0: tcp4 dst-port 22 action 1
1: udp4 dst-port 9 action 5
9: tcp4 dst-port 443 src-ip 10.0.0.0 m 0.255.255.255 action 6
END
unchanged "ethtool finds them, in the next free place and in the named one" /tmp/wanted /tmp/theirs
status "verify" 0 ringwise verify
status "nothing to do a second time" 0 ringwise plan mq1 --config /tmp/one.toml --exit-code
set -- $(rx_packets mq1)
was=${6:-0}
traffic mq0 mq1 64 1000 >/dev/null 2>&1
set -- $(rx_packets mq1)
check "packets of the rule land in its queue" [ $((${6:-0} - was)) -ge 900 ]

# --- fewer queues than a rule needs
if ethtool -L mq1 combined 4 2>/tmp/err; then
	not_ok "rules: fewer queues than a rule needs" "taken"
else
	ok "rules: fewer queues than a rule needs"
fi
cat /tmp/err
case $KERNEL in
5.10 | 6.1) ;; # the driver's refusal, without words
*) check "rules: and the kernel's words" grep -q "too low for existing ntuple filter settings" /tmp/err ;;
esac
ringwise plan mq1 --config none --queues 4 --allow-disruption >/tmp/out 2>/tmp/err
says "a rule that nobody spoke of keeps its queue" "steers to a queue that would not exist with 4 queues"
sed 's/action 5/action 2/; s/action 6/action 3/' /tmp/one.toml >/tmp/two.toml
sed -i 's/^flow = "udp4.*/&\nlocation = 1/' /tmp/two.toml
theirs mq1 >/tmp/between
status "rules that are turned make way" 0 ringwise apply --yes mq1 --config /tmp/two.toml --queues 4 --allow-disruption
cat /tmp/err
links mq1
same "four queues" "$(ethtool -l mq1 | awk '/Combined/ { n = $2 } END { print n }')" 4
same "turned" "$(theirs mq1 | awk '{ printf "%s ", $NF }')" "1 2 3 "
status "put back" 0 ringwise rollback --yes 2
links mq1
theirs mq1 >/tmp/theirs
unchanged "eight queues and the rules of before" /tmp/between /tmp/theirs
status "as first found" 0 ringwise rollback --yes 0
theirs mq1 >/tmp/theirs
unchanged "only the one that was there" /tmp/before /tmp/theirs

# --- a driver that chooses the location
ethtool -N mq1 delete 0
# A new state directory, because the rule that was deleted now was found by the first transaction.
export RINGWISE_STATE_DIR=/tmp/rw65b
echo 524288 >/sys/module/mqnic/parameters/quirk
same "rules: a driver that chooses the location" "$(rule_line mq1)" "none in 64 locations, ntuple on, the driver chooses the location"
sed '/^location/d' /tmp/one.toml >/tmp/three.toml
status "without a place" 0 ringwise apply --yes mq1 --config /tmp/three.toml
cat /tmp/err
same "both are there" "$(theirs mq1 | wc -l)" 2
status "a second time nothing" 0 ringwise plan mq1 --config /tmp/three.toml --exit-code
status "a place is not taken" 1 ringwise plan mq1 --config /tmp/one.toml
says "and that is said" "chooses the locations of rules itself"
status "and gone again" 0 ringwise rollback --yes 0
same "none is left" "$(theirs mq1 | wc -l)" 0
echo 0 >/sys/module/mqnic/parameters/quirk

# --- a full table, and one rule more
echo 8192 >/sys/module/mqnic/parameters/quirk
echo 1 >/sys/module/mqnic/parameters/rlimit
ringwise apply --yes mq1 --config /tmp/one.toml >/tmp/out 2>/tmp/err
same "a table that is full: put back" "$?" 4
says "and why" "the rule table of the device is full"
same "nothing is left of it" "$(theirs mq1 | wc -l)" 0
echo 0 >/sys/module/mqnic/parameters/quirk
ethtool -K mq1 ntuple off
