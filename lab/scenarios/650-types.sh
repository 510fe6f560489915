#!/bin/sh
# Rules of every type of ethtool(8): ringwise applies them from a file, and ethtool and ringwise read them back.
# hosts: router16
# kernels: 6.12 newest
# timeout: 300
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw65t
dev=mq1
ip link set $dev up
links $dev
mac=$(cat /sys/class/net/$dev/address)

# One per line: PLACE, the words, a pattern for the lines that ethtool -n has about it (joined).
cat >/tmp/rules <<END
20|udp4 src-ip 10.9.0.1 dst-ip 10.1.1.1 src-port 1024 dst-port 9 tos 8 action 1|UDP over IPv4.*10.9.0.1 .*10.1.1.1 .*TOS: 0x8 .*port: 1024 .*port: 9 .*queue 1
21|udp4 src-ip 10.9.1.0 m 0.0.0.255 action 2|UDP over IPv4.*10.9.1.0 mask: 0.0.0.255.*queue 2
22|ip4 dst-ip 10.1.1.2 l4proto 17 action 4|Raw IPv4.*10.1.1.2.*Protocol: 17 .*queue 4
23|udp6 dst-ip fd00::2 dst-port 9 action 5|UDP over IPv6.*fd00::2.*port: 9 .*queue 5
24|ip6 src-ip fd00::5 action 6|Raw IPv6.*fd00::5.*queue 6
25|udp4 dst-port 77 vlan 100 m 0xf000 action 7|UDP over IPv4.*VLAN: 0x64 mask: 0xf000.*queue 7
26|udp4 src-port 2000 user-def 0xbe9b action 1|UDP over IPv4.*ser-def.*: 0xbe9b .*queue 1
27|ether dst $mac proto 0x86dd action 3|Raw Ethernet.*Ethertype: 0x86DD .*queue 3
28|udp4 dst-port 99 action -1|UDP over IPv4.*port: 99 .*Drop
29|tcp4 dst-port 80 action 1|TCP over IPv4.*port: 80 .*queue 1
30|sctp4 dst-port 80 action 1|SCTP over IPv4.*port: 80 .*queue 1
31|tcp6 dst-port 80 action 1|TCP over IPv6.*port: 80 .*queue 1
32|ah4 spi 7 action 1|IPSEC AH over IPv4.*SPI: 7 .*queue 1
33|esp6 spi 7 action 1|IPSEC ESP over IPv6.*SPI: 7 .*queue 1
34|sctp6 src-port 81 action 2|SCTP over IPv6.*port: 81 .*queue 2
35|esp4 spi 9 action 2|IPSEC ESP over IPv4.*SPI: 9 .*queue 2
36|ah6 spi 9 action 2|IPSEC AH over IPv6.*SPI: 9 .*queue 2
37|udp4 tos 184 dst-mac 02:00:00:00:00:07 action 3|UDP over IPv4.*MAC addr: 02:00:00:00:00:07 .*queue 3
END
{
	echo "version = 1"
	echo "[[interface]]"
	echo "match = { name = \"$dev\" }"
	while IFS='|' read -r place words _; do
		echo "[[interface.rule]]"
		echo "flow = \"$words\""
		echo "location = $place"
	done </tmp/rules
} >/tmp/types.toml
status "all types laid down" 0 ringwise apply --yes $dev --config /tmp/types.toml
cat /tmp/err
same "as many rules as were asked for" "$(ethtool -n $dev | grep -c '^Filter:')" "$(wc -l </tmp/rules)"
while IFS='|' read -r place words pattern; do
	if ethtool -n $dev rule $place 2>&1 | tr '\n\t' '  ' | grep -qiE "$pattern"; then
		ok "ethtool reads: $words"
	else
		not_ok "ethtool reads: $words" "$(ethtool -n $dev rule $place 2>&1 | tr '\n\t' '  ')"
	fi
done </tmp/rules
status "verify" 0 ringwise verify
status "nothing to do a second time" 0 ringwise plan $dev --config /tmp/types.toml --exit-code
# The notation that ringwise shows is accepted by ringwise: written to a file and read in, nothing is left to do.
ringwise config init >/tmp/init.toml 2>/tmp/err
status "a file written from the host is sound" 0 ringwise config check /tmp/init.toml
status "rollback" 0 ringwise rollback --yes 0
same "none is left" "$(ethtool -n $dev 2>/dev/null | grep -c '^Filter:')" 0

# --- contents that a rule must not have
refused() {
	_name=$1 _flow=$2 _words=$3
	printf 'version = 1\n[[interface]]\nmatch = { name = "%s" }\n[[interface.rule]]\nflow = "%s"\n' $dev "$_flow" >/tmp/bad.toml
	ringwise apply --yes $dev --config /tmp/bad.toml >/tmp/out 2>/tmp/err
	same "$_name: refused before anything is written" "$?" 1
	says "$_name: in words" "$_words"
}
refused "a queue beyond the count" "tcp4 dst-port 80 action 8" "8"
refused "a port beyond 65535" "tcp4 dst-port 70000 action 1" "70000"
refused "a field of another type" "tcp4 spi 7 action 1" "spi"
refused "a type that is none" "tcp5 dst-port 7 action 1" "tcp5"
same "nothing was written" "$(ethtool -n $dev 2>/dev/null | grep -c '^Filter:')" 0
# Two groups, one queue.
cat >/tmp/bad.toml <<END
version = 1
[[interface]]
match = { name = "$dev" }
goal = "mixed"
[[interface.group]]
name = "a"
policy = "latency"
queues = "0-1"
[[interface.group]]
name = "b"
policy = "bulk"
queues = "1-2"
END
status "two groups claim one queue: refused" 1 ringwise apply --yes $dev --config /tmp/bad.toml
says "both and the queue are named" "queue 1"
cat /tmp/err
