#!/bin/sh
# Interrupt moderation of devices and of single queues, and NAPI: read as ethtool and sysfs show them, written,
# refused, rounded, ignored and rolled back. Also proves the drivers' behaviour in the simulated host.
# hosts: router16 small2
# kernels: 5.10 6.1 6.12 6.18 newest
# quick: small2@6.12 router16@6.12
# timeout: 500
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw63
param=/sys/module/mqnic/parameters
quirk() {
	echo 1 >$param/quirk_dev
	echo $1 >$param/quirk
}
line() {
	ringwise show $1 2>/dev/null | sed -n "s/^ *$2  *//p" | head -1
}
# ours DEV: the same from the line `of queues`; if all queues are alike, this line is missing
ours() {
	line $1 'of queues' | tr ';' '\n' | sed 's/^ *//' | while read -r _list _words; do
		for _q in $(expand $_list); do
			echo "$_q $(echo "$_words" | sed 's/rx \([0-9]*\) us.*tx \([0-9]*\) us.*/\1 \2/')"
		done
	done | sort -n
}
# no DEV WORDS...: the kernel's message when it refuses ethtool --per-queue
no() {
	_d=$1
	shift
	ethtool --per-queue $_d "$@" 2>&1 | sed -n 's/.*: \([A-Z][a-z ]*\)$/\1/p' | head -1
}
usecs() {
	ethtool -c $1 | awk '/^rx-usecs:/ { print $2 }'
}

if [ $HOST = small2 ]; then
	same "virtio: each queue answers" "$(ethtool --per-queue eth0 queue_mask 0x3 --show-coalesce 2>&1 | grep -c '^rx-usecs:')" 2
	same "virtio: a queue takes nothing" "$(no eth0 queue_mask 0x1 --coalesce rx-usecs 5)" "Operation not supported"
	cat >/tmp/one.toml <<END
version = 1
[[interface]]
match = { name = "eth0" }
coalesce = { queues = [0], rx-usecs = 5 }
END
	status "virtio: what a queue refuses is told" 4 ringwise apply --yes eth0 --config /tmp/one.toml
	says "virtio: with the kernel's word" EOPNOTSUPP
	status "virtio: a second plan goes round it" 0 ringwise plan eth0 --config /tmp/one.toml
	says "virtio: and says why" "refused before on this kernel"
	exit 0
fi

for n in 2 4 5 9; do
	ethtool -C eth0 rx-usecs $n >/dev/null 2>&1
	same "igb: $n us are refused" "$(usecs eth0)" 3
done
same "igb: moderates the device only" "$(no eth0 queue_mask 0x1 --show-coalesce)" "Operation not supported"
same "show: igb as ethtool -c" "$(line eth0 moderation | sed 's/ us.*//')" "rx $(usecs eth0)"

# --- NAPI files of a real driver, on every kernel
echo 3 >/sys/class/net/eth0/napi_defer_hard_irqs
echo 40000 >/sys/class/net/eth0/gro_flush_timeout
same "show: NAPI of the device" "$(line eth0 NAPI)" "interrupts deferred for 3 empty polls, polled every 40 us"
cat >/tmp/napi.toml <<END
version = 1
[[interface]]
match = { name = "eth0" }
napi = { defer_hard_irqs = 2, gro_flush_timeout_ns = 50000 }
END
status "NAPI: files of the device written" 0 ringwise apply --yes eth0 --config /tmp/napi.toml
same "NAPI: as asked" "$(cat /sys/class/net/eth0/napi_defer_hard_irqs /sys/class/net/eth0/gro_flush_timeout | tr '\n' ' ')" "2 50000 "
status "NAPI: verify" 0 ringwise verify
status "NAPI: rollback" 0 ringwise rollback --yes 0
same "NAPI: as before" "$(cat /sys/class/net/eth0/napi_defer_hard_irqs /sys/class/net/eth0/gro_flush_timeout | tr '\n' ' ')" "3 40000 "
echo 0 >/sys/class/net/eth0/napi_defer_hard_irqs
echo 0 >/sys/class/net/eth0/gro_flush_timeout

# --- instances, if the kernel sets them one by one and the driver links them to queues
export RINGWISE_STATE_DIR=/tmp/rw63.one
case $KERNEL in
6.18 | newest)
	cat >/tmp/one.toml <<END
version = 1
[[interface]]
match = { name = "eth0" }
napi = { queues = [1], defer_hard_irqs = 2, gro_flush_timeout_ns = 62000 }
END
	status "NAPI: one instance of igb" 0 ringwise apply --yes eth0 --config /tmp/one.toml
	cat /tmp/err
	same "NAPI: that one alone" "$(line eth0 NAPI)" "queues 1 interrupts deferred for 2 empty polls, polled every 62 us"
	same "NAPI: not the device" "$(cat /sys/class/net/eth0/napi_defer_hard_irqs)" 0
	echo 4 >/sys/class/net/eth0/napi_defer_hard_irqs
	same "a file of the device sets every instance" "$(line eth0 NAPI | grep -o 'for [0-9]*' | sort -u | tr '\n' ' ')" "for 4 "
	status "NAPI: the change is seen" 3 ringwise verify
	echo 0 >/sys/class/net/eth0/napi_defer_hard_irqs
	status "NAPI: rollback of the instance" 0 ringwise rollback --yes 0
	same "NAPI: nothing is left of it" "$(line eth0 NAPI)" ""
	;;
*)
	ringwise plan eth0 --set 'eth0.napi={queues=[1],defer_hard_irqs=2}' >/tmp/out 2>/tmp/err
	says "NAPI: no instances by themselves before 6.13" "no settings for single NAPI instances"
	;;
esac
echo 1 >/sys/class/net/eth0/threaded 2>/dev/null
if [ "$(cat /sys/class/net/eth0/threaded 2>/dev/null)" = 1 ]; then
	same "show: threaded" "$(line eth0 NAPI | grep -o '^threaded')" threaded
	pid=$(grep -l '^napi/eth0' /proc/[0-9]*/comm | head -1 | cut -d/ -f3)
	same "a new thread may run anywhere" "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$pid/status)" 0-15
	echo 0 >/sys/class/net/eth0/threaded
fi

[ -e /sys/class/net/mq0 ] || exit 0
export RINGWISE_STATE_DIR=/tmp/rw63.queues
# --- the test NIC: queues by themselves
ip link set mq0 up
ip link set mq1 up
links mq0 mq1
same "a queue beyond the count" "$(no mq0 queue_mask 0x100 --show-coalesce)" "Invalid argument"
ethtool --per-queue mq0 queue_mask 0x3 --coalesce rx-usecs 5 tx-usecs 10 >/dev/null
ethtool --per-queue mq0 queue_mask 0xf0 --coalesce rx-usecs 62 tx-usecs 122 >/dev/null
same "the device shows its first queue" "$(usecs mq0)" 5
theirs mq0 >/tmp/theirs
ours mq0 >/tmp/ours
unchanged "every queue as ethtool --per-queue has it" /tmp/theirs /tmp/ours
same "all eight" "$(wc -l </tmp/ours)" 8
status "a capture holds it" 0 ringwise capture /tmp/63.tar.gz
ringwise show mq0 --from /tmp/63.tar.gz 2>/dev/null | sed -n 's/^ *of queues  *//p' >/tmp/from
same "and shows it" "$(cat /tmp/from)" "$(line mq0 'of queues')"

cat >/tmp/queues.toml <<END
version = 1
[[interface]]
match = { name = "mq0" }
coalesce = [{ queues = [0, 2], rx-usecs = 125, tx-usecs = 250 }, { queues = [5], rx-usecs = 9 }]
END
status "queues: written" 0 ringwise apply --yes mq0 --config /tmp/queues.toml
cat /tmp/err
theirs mq0 >/tmp/now
sed 's/^[02] .*//; s/^5 62/5 9/' /tmp/theirs | grep . >/tmp/wanted
printf '0 125 250\n2 125 250\n' >>/tmp/wanted
sort -n /tmp/wanted >/tmp/wanted.s
unchanged "queues: these and no others" /tmp/wanted.s /tmp/now
status "queues: verify" 0 ringwise verify
status "queues: nothing to do a second time" 0 ringwise plan mq0 --config /tmp/queues.toml --exit-code
ethtool -C mq0 rx-usecs 20
same "what is set for the device is set for each queue" "$(theirs mq0 | cut -d' ' -f2 | sort -u | tr '\n' ' ')" "20 "
status "queues: somebody's change of the device is seen" 3 ringwise verify
status "queues: rollback" 0 ringwise rollback --yes 0
theirs mq0 >/tmp/now
same "queues: as first found" "$(grep -e '^[025] ' /tmp/now | tr '\n' ';')" "$(grep -e '^[025] ' /tmp/theirs | tr '\n' ';')"

# --- a value of the device overwrites those of its queues, and they are restored
ethtool --per-queue mq0 queue_mask 0xff --coalesce rx-usecs 50 tx-usecs 50 >/dev/null
ethtool --per-queue mq0 queue_mask 0x6 --coalesce rx-usecs 7 >/dev/null
theirs mq0 >/tmp/theirs
export RINGWISE_STATE_DIR=/tmp/rw63.dev
status "device: written" 0 ringwise apply --yes mq0 --set mq0.coalesce.rx-usecs=33
same "device: every queue" "$(theirs mq0 | cut -d' ' -f2 | sort -u | tr '\n' ' ')" "33 "
status "device: rollback" 0 ringwise rollback --yes 0
theirs mq0 >/tmp/now
unchanged "device: its queues as before" /tmp/theirs /tmp/now
# --- moderation off
export RINGWISE_STATE_DIR=/tmp/rw63.off
status "off: written" 0 ringwise apply --yes mq0 --set mq0.coalesce.rx-usecs=0 --set mq0.coalesce.tx-usecs=0
same "off: every queue" "$(theirs mq0 | cut -d' ' -f2,3 | sort -u)" "0 0"
same "off: shown" "$(line mq0 moderation | sed 's/rx \([0-9]*\) us.*tx \([0-9]*\) us.*/\1 \2/')" "0 0"
status "off: verify" 0 ringwise verify
status "off: rollback" 0 ringwise rollback --yes 0
theirs mq0 >/tmp/now
unchanged "off: its queues as before" /tmp/theirs /tmp/now

# --- rounded, ignored, refused
export RINGWISE_STATE_DIR=/tmp/rw63.quirks
set='mq0.coalesce={queues=[1],rx-usecs=62}'
quirk 8
status "quirk 8: microseconds of a queue are rounded" 0 ringwise apply --yes mq0 --set "$set"
says "quirk 8: and it is told" "adjusted to"
same "quirk 8: to a multiple of 8" "$(theirs mq0 | awk '$1 == 1 { print $2 }')" 56
status "quirk 8: it counts as what was asked" 0 ringwise verify
status "quirk 8: rollback" 0 ringwise rollback --yes 0
quirk 1
status "quirk 1: accepted and not done" 4 ringwise apply --yes mq0 --set "$set"
says "quirk 1: it is found by reading back" "accepted, but reads back as"
quirk 16
same "quirk 16: odd queues refuse" "$(theirs mq0 | cut -d' ' -f1 | tr '\n' ' ')" "0 2 4 6 "
ethtool -C mq0 rx-usecs 44 >/dev/null 2>&1
same "quirk 16: the device is refused too" "$(theirs mq0 | awk '$1 == 2 { print $2 }')" 7
same "quirk 16: after its first queue" "$(theirs mq0 | awk '$1 == 0 { print $2 }')" 44
ethtool --per-queue mq0 queue_mask 0x1 --coalesce rx-usecs 50 >/dev/null
ringwise plan mq0 --set "$set" >/tmp/out 2>/tmp/err
says "quirk 16: an odd queue is told" "does not exist on this host"
quirk 0

# --- a group on queues that ignore moderation: the alternative
if [ $KERNEL = newest ]; then
	export RINGWISE_STATE_DIR=/tmp/rw63.group
	cat >/tmp/group.toml <<END
version = 1
[[interface]]
match = { name = "mq0" }
[[interface.group]]
name = "bulk"
policy = "bulk"
queues = "0-7"
END
	theirs mq0 >/tmp/theirs
	quirk 1
	status "instead: the group is applied" 0 ringwise apply --yes mq0 --config /tmp/group.toml
	cat /tmp/out /tmp/err
	says "instead: it is told" "instead:"
	same "instead: every queue is deferred" "$(line mq0 NAPI | grep -o 'queues 0-7 interrupts deferred for [0-9]* empty polls, polled every [0-9]* us')" \
		"queues 0-7 interrupts deferred for 2 empty polls, polled every 62 us"
	status "instead: verify" 0 ringwise verify
	status "instead: a second plan has nothing to do" 0 ringwise plan mq0 --config /tmp/group.toml --exit-code
	quirk 0
	status "instead: rollback" 0 ringwise rollback --yes 0
	same "instead: nothing is left of it" "$(line mq0 NAPI)" ""
	theirs mq0 >/tmp/now
	unchanged "instead: moderation as before" /tmp/theirs /tmp/now
fi
[ -e $param/quirk_dev ] && echo -1 >$param/quirk_dev
true
