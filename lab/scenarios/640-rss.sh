#!/bin/sh
# RSS: tables, key, function, transform, hash fields and contexts, compared with ethtool.
# hosts: router16 small2
# kernels: 5.10 6.1 6.12 newest
# quick: small2@6.12
# areas: flow
# timeout: 500
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw64

# Entries of each queue in ethtool's output: `0:96 1:32`
spread() {
	ethtool -x $1 ${2:+context $2} 2>/dev/null | awk '/^ *[0-9]+:/ { for (i = 2; i <= NF; i++) n[$i]++ }
		END { for (q = 0; q < 64; q++) if (q in n) printf "%s%d:%d", s++ ? " " : "", q, n[q] }'
}
hkey() { ethtool -x $1 2>/dev/null | grep -E '^([0-9a-f]{2}:)+[0-9a-f]{2}$' | tr -d :; }
fields() { ethtool -n $1 rx-flow-hash $2 2>&1 | grep -cE 'L4 bytes'; }
all() {
	for _d in "$@"; do
		ethtool -x $_d 2>&1
		for _f in tcp4 udp4 tcp6 udp6; do ethtool -n $_d rx-flow-hash $_f 2>&1; done
	done
}
# set DEV KEY=VALUE...: applies only these settings.
set_on() {
	_dev=$1
	shift
	_args=""
	for _a in "$@"; do _args="$_args --set $_dev.$_a"; done
	eval "ringwise apply --yes $_dev --allow-disruption $_args" >/tmp/out 2>/tmp/err || { cat /tmp/out /tmp/err; return 1; }
}

case $(driver_of eth0) in
virtio_net)
	virtio=eth0
	all $virtio >/tmp/before
	check "virtio: table, key and fields" set_on $virtio "'rss.table=\"weight 3 1\"'" "rss.key=$(hkey $virtio | sed 's/^..../abcd/')" "rss.fields.udp4=sd"
	case $(spread $virtio) in
	"0:96 1:32") ok "virtio: weight 3 1" ;;
	*) not_ok "virtio: weight 3 1" "$(spread $virtio)" ;;
	esac
	same "virtio: key" "$(hkey $virtio | cut -c1-4)" abcd
	same "virtio: udp4 without ports" "$(fields $virtio udp4)" 0
	status "verify" 0 ringwise verify
	status "rollback" 0 ringwise rollback --yes 0
	all $virtio >/tmp/after
	unchanged "virtio: as before" /tmp/before /tmp/after
	# The kernel refuses fewer channels while the table counts as set by a user.
	check "virtio: the table is the kernel's own again" ethtool -L $virtio combined 1
	ethtool -L $virtio combined 2
	exit 0
	;;
esac

dev=mq0
links eth0 $dev
all eth0 eth2 $dev >/tmp/before
# Kernels after 6.12 allow it.
[ $KERNEL = newest ] || same "RSS: igb has no key" "$(hkey eth0)" ""
same "RSS: the test NIC has one of 40 bytes" "$(hkey $dev | wc -c)" 81
same "fields: igb hashes UDP without ports at first" "$(fields eth0 udp4)" 0

key=$(hkey $dev | sed 's/^..../abcd/')
check "igb: table and fields" set_on eth0 "'rss.table=\"weight 3 1\"'" "rss.fields.udp4=sdfn"
same "igb: weight 3 1" "$(spread eth0)" "0:96 1:32"
same "igb: udp4 with ports" "$(fields eth0 udp4)" 2
check "test NIC: table, key and fields" set_on $dev "'rss.table=\"equal 2 start 6\"'" "rss.key=$key" "rss.fields.udp6=sdfn"
same "test NIC: equal 2 start 6" "$(spread $dev)" "6:64 7:64"
same "test NIC: key" "$(hkey $dev)" $key
same "test NIC: udp6 with ports" "$(fields $dev udp6)" 2
status "verify" 0 ringwise verify

# Only the last entry differs: RSS_SET accepts this and does not do it.
t=$(seq 0 126 | awk '{ printf "%d,", $1 % 8 }')0
check "a table that differs in its last entry" set_on $dev "'rss.table=\"default\"'"
same "default is round robin" "$(spread $dev)" "0:16 1:16 2:16 3:16 4:16 5:16 6:16 7:16"
check "is written all the same" set_on $dev "'rss.table=[$t]'"
same "and is there" "$(spread $dev)" "0:17 1:16 2:16 3:16 4:16 5:16 6:16 7:15"

# Refusals show the interface, the errno and its meaning.
ringwise apply --yes eth0 --set eth0.rss.fields.tcp4=s >/tmp/out 2>/tmp/err
same "fields: igb hashes TCP by ports or not at all" "$(fields eth0 tcp4)" 2
says "fields: EINVAL, and by which way" "EINVAL"
ringwise apply --yes eth0 --set eth0.rss.symmetric=symmetric-xor >/tmp/out 2>/tmp/err
case $KERNEL in
5.10 | 6.1) says "RSS: no transform before 6.8" "this kernel has no symmetric transforms (needs Linux 6.8 or later)" ;;
*) says "RSS: a symmetric transform igb has not" EOPNOTSUPP ;;
esac
ringwise plan $dev --set $dev.rss.key=abcd >/tmp/out 2>/tmp/err
says "RSS: a key of the wrong length" "2 bytes"
ringwise plan $dev --set "$dev.rss.table=\"weight 0 0\"" >/tmp/out 2>/tmp/err
says "RSS: weights that sum to zero" "sum to zero"
ringwise plan $dev --set "$dev.rss.table=\"equal 9\"" >/tmp/out 2>/tmp/err
says "RSS: a queue that does not exist" "queue 8"

# --- a transform: both directions of a flow on one queue
# lands SRC SPORT DST DPORT: the queues of mq0 that received these packets
lands() {
	_was=$(rx_packets mq0)
	_pg_empty
	_pg kpktgend_0 "add_device mq1"
	for _w in "count 8" "clone_skb 0" "pkt_size 60" "delay 0" "dst $3" "dst_mac $(cat /sys/class/net/mq0/address)" \
		"src_min $1" "src_max $1" "udp_src_min $2" "udp_src_max $2" "udp_dst_min $4" "udp_dst_max $4"; do
		_pg mq1 "$_w"
	done
	echo start >/proc/net/pktgen/pgctrl
	for _i in $(seq 50); do
		_got=$(echo "$_was;$(rx_packets mq0)" | awk -F';' '{ k = split($1, a, " "); split($2, b, " ")
			for (i = 1; i <= k; i++) if (b[i] - a[i] >= 8) printf "%d", i - 1 }')
		[ -n "$_got" ] && break
		sleep 0.1
	done
	echo $_got
}
# both: for eight flows, how many have the same queue in both directions
both() {
	for _n in 11 22 33 44 55 66 77 88; do
		[ "$(lands 10.9.0.$_n 10$_n 10.1.1.$_n 20$_n)" = "$(lands 10.1.1.$_n 20$_n 10.9.0.$_n 10$_n)" ] && echo $_n
	done | wc -l
}
case $KERNEL in
5.10 | 6.1)
	status "RSS: no transform of the test NIC either" 0 ringwise plan $dev --config none --set $dev.rss.symmetric=symmetric-xor
	says "RSS: and the reason is the kernel's" "this kernel has no symmetric transforms (needs Linux 6.8 or later)"
	status "RSS: to have none is no wish too many" 0 ringwise plan $dev --config none --set $dev.rss.symmetric=none
	check "RSS: nothing is said of it" sh -c "! grep -q 'symmetric transforms' /tmp/out /tmp/err"
	;;
*)
	modprobe pktgen
	links mq1
	for _d in mq0 mq1; do echo 1 >/proc/sys/net/ipv6/conf/$_d/disable_ipv6; done
	check "a table over all queues" set_on $dev "'rss.table=\"equal 8\"'" "rss.fields.udp4=sdfn"
	without=$(both)
	echo "# $without of 8 flows on one queue in both directions without a transform"
	check "without a transform directions part" [ $without -lt 8 ]
	transforms="symmetric-xor"
	[ $KERNEL = newest ] && transforms="symmetric-xor symmetric-or-xor"
	for x in $transforms; do
		check "$x" set_on $dev rss.symmetric=$x
		same "$x: both directions of every flow on one queue" "$(both)" 8
		same "$x: read back" "$(ringwise show $dev -j 2>/dev/null | tr -d ' \n' | sed 's/.*"symmetric":{"known":"\([a-z-]*\)".*/\1/')" $x
		status "$x: verify" 0 ringwise verify
		same "$x: the table stays" "$(spread $dev)" "0:16 1:16 2:16 3:16 4:16 5:16 6:16 7:16"
		same "$x: the key too" "$(hkey $dev)" $key
	done
	for _d in mq0 mq1; do echo 0 >/proc/sys/net/ipv6/conf/$_d/disable_ipv6; done
	;;
esac

# --- the default table together with a key
other=$(hkey $dev | sed 's/^..../4321/')
colons() { echo $1 | sed 's/../&:/g; s/:$//'; }
ethtool -X $dev default hkey $(colons $other) >/dev/null 2>&1
echo "# ethtool -X default hkey: status $?; wanted $(echo $other | cut -c1-12), there is $(hkey $dev | cut -c1-12); $(spread $dev)"
case $KERNEL in
5.10 | 6.1) check "RSS: a key with the default table is read from behind a whole one" [ "$(hkey $dev)" != $other ] ;;
esac
# Set back with ethtool, because a rollback would keep a manual change.
ethtool -X $dev hkey $(colons $key) >/dev/null 2>&1
same "RSS: a key alone is taken" "$(hkey $dev)" $key
ringwise apply --yes $dev --config none --set "$dev.rss.table=\"weight 3 1\"" >/dev/null 2>&1
# An ethtool without support for transforms has removed one, so the hash counts as a manual change.
status "the default table and a key at once" 0 ringwise apply --yes $dev --config none --take-over \
	--set "$dev.rss.table=default" --set "$dev.rss.key=$other"
same "both are there: the table" "$(spread $dev)" "0:16 1:16 2:16 3:16 4:16 5:16 6:16 7:16"
same "both are there: the key" "$(hkey $dev)" $other

# Contexts are listed from 6.12 on.
case $KERNEL in
5.10 | 6.1)
	ringwise show $dev >/tmp/out 2>/tmp/err
	says "RSS contexts: not known where no kernel lists them" "contexts unknown"
	;;
*)
	check "context 1" set_on $dev "'rss.context.1=\"equal 2 start 4\"'"
	same "context 1: equal 2 start 4" "$(spread $dev 1)" "4:64 5:64"
	check "context 3 without a 2" set_on $dev "'rss.context.3=\"equal 2 start 0\"'"
	same "context 3: with the number that was asked for" "$(spread $dev 3)" "0:64 1:64"
	same "context 2: nothing is left of it" "$(spread $dev 2)" ""
	ethtool -L $dev combined 4 2>/tmp/err >/dev/null && cat /tmp/err
	same "RSS contexts: -L to fewer queues than one uses is refused" "$(ethtool -l $dev | awk '/^Combined/ { n = $2 } END { print n }')" 8
	check "fewer queues" set_on $dev channels.combined=4 "'rss.table=\"weight 1 2\"'"
	same "four" "$(ethtool -l $dev | awk '/^Combined/ { n = $2 } END { print n }')" 4
	same "weight 1 2 on 128" "$(spread $dev)" "0:42 1:86"
	same "context 1 is on those that are left" "$(spread $dev 1)" "0:64 1:64"
	;;
esac

# A channel change on igb loses the table, but not the fields.
check "igb: 4 channels" set_on eth0 channels.combined=4 "'rss.table=\"weight 3 1\"'"
links eth0
same "igb: the table is there" "$(spread eth0)" "0:96 1:32"
same "igb: fields survive -L" "$(fields eth0 udp4)" 2

status "rollback 0" 0 ringwise rollback --yes 0
cat /tmp/err
links eth0 $dev
all eth0 eth2 $dev >/tmp/after
unchanged "everything is as before" /tmp/before /tmp/after
same "no context is left" "$(spread $dev 1)$(spread $dev 3)" ""
