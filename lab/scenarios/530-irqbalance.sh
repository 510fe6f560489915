#!/bin/sh
# irqbalance, with an interval of one second, moves our layout without the ban, and not with it: also
# with other numbers and after its restart. Bans of other programs stay; at the end irqbalance's list is as it was.
# hosts: router16
# kernels: 6.12
# timeout: 900
# needs: irqbalance
. /h/lib.sh
. /h/state.sh
. /h/irqbalance.sh

export RINGWISE_STATE_DIR=/tmp/rw54
devs="eth0 eth1"
# A ban of the user, of an interrupt that ringwise does not set.
own=$(irq_of rtc0)
[ -n "$own" ] || own=8

for d in /proc/irq/[0-9]*; do
	look m $d/smp_affinity
	echo "$d $m"
done >/tmp/masks54

both_ways() {
	traffic eth0 eth1 1024 $1
	traffic eth1 eth0 1024 $1
}

# bans: irqbalance's answer to `setup`, as numbers.
bans() {
	ringwise status -j 2>/dev/null | tr -d ' \n' |
		sed -n 's/.*"irqbalance":{"known":{[^}]*}\{0,1\}[^]]*"banned":{"known":\[\([0-9,]*\)\]}.*/\1/p' | tr , ' '
}

# numbers: the interrupts of our devices.
numbers() {
	for d in $devs; do dev_irqs $d; done | sort -n
}

# moved FILE: interrupts whose requested CPUs differ from those in the file.
moved() {
	affinity $devs | diff "$1" - | grep -c '^[<>+-]irq\|^[+-]irq'
}

# seconds: since boot
seconds() {
	look _up /proc/uptime
	echo ${_up%%.*}
}

# elsewhere SECONDS FILE: the most interrupts that were seen elsewhere in this time, under traffic.
elsewhere() {
	from=$(seconds)
	most=0
	while [ $(($(seconds) - from)) -lt $1 ]; do
		both_ways 20000
		n=$(moved $2)
		[ $n -gt $most ] && most=$n
	done
	kill -0 $pid 2>/dev/null || echo "# irqbalance ended by itself: $(tail -n 3 /tmp/irqbalance | tr '\n' ' ')"
	echo $most
}

links $devs
start --banirq=$own
$irqbalance --version 2>&1 | head -1 | sed 's/^/# /'
echo "# setup: $(bans)"
same "its list before: only somebody's own" "$(bans)" "$own"
sleep 3

status "plan" 0 ringwise plan $devs
says "plan: irqbalance is named" "irqbalance"
says "plan: what happens next" "banned (until it restarts)"

status "apply" 0 ringwise apply --yes $devs
sed 's/^/# /' /tmp/err
affinity $devs >/tmp/layout54
same "all our interrupts are banned, somebody's own too" "$(bans)" \
	"$({ numbers; echo $own; } | sort -n | tr '\n' ' ' | sed 's/ $//')"
same "with the ban the layout holds for 30 s" "$(elsewhere 30 /tmp/layout54)" 0
status "verify: holds" 0 ringwise verify
status "status" 0 ringwise status
says "status: they are told to be banned" "of eth0 eth1 banned"
says "status: it says that a restart forgets them" "until it restarts"

status "capture" 0 ringwise capture /tmp/cap54.tar.gz --redact
# A slow guest may not read all processes in time; a part of the message behind a semicolon reports that.
ringwise status | grep '^rivals' | sed 's/;.*//' >/tmp/live54
status "status of the capture" 0 ringwise status --from /tmp/cap54.tar.gz
same "the capture tells the same" "$(grep '^rivals' /tmp/out | sed 's/;.*//')" "$(cat /tmp/live54)"
check "it holds no other process" sh -c "! tar xzOf /tmp/cap54.tar.gz manifest.json | grep '/proc/[0-9]*/' | grep -v -e '/proc/1/' -e /proc/$pid/ | grep -q ."
echo "# setup, raw: $(tar xzOf /tmp/cap54.tar.gz kernel.json | tr -d '\n' | sed 's/.*"kind": "irqbalance"[^}]*"reply": \[ *"\([0-9a-f]*\)".*/\1/')"

# A new irqbalance only knows its own arguments. This one may use a single CPU of the second node: with
# several to choose from it may keep the present layout.
stop
export IRQBALANCE_BANNED_CPULIST=0-7,9-15
start --banirq=$own
same "a restarted one has forgotten them" "$(bans)" "$own"
until_moved() {
	for _i in $(seq 100); do
		both_ways 1000
		n=$(moved /tmp/layout54)
		[ $n -gt 0 ] && return
	done
}
from=$(seconds)
until_moved
# It reads once a second. A layout that stays for three times as long as it took to move something, and for twelve intervals, is
# not changed.
hold=$((3 * ($(seconds) - from)))
[ $hold -gt 12 ] || hold=12
check "without the ban the layout does not hold ($n lines differ)" [ "$n" -gt 0 ]
status "verify: drift" 3 ringwise verify
says "verify: irqbalance" irqbalance

status "apply puts it back" 0 ringwise apply --yes --take-over $devs
# Not exactly the same layout: an interrupt that is well placed stays there.
affinity $devs >/tmp/layout54
echo "# holds for $hold s"
same "after its restart it holds again" "$(elsewhere $hold /tmp/layout54)" 0

# Other numbers.
numbers >/tmp/numbers54
status "apply: fewer channels" 0 ringwise apply --yes --take-over $devs --queues 2 --allow-disruption
sed 's/^/# /' /tmp/err
links $devs
affinity $devs >/tmp/layout54
echo "# numbers: $(tr '\n' ' ' </tmp/numbers54), now $(numbers | tr '\n' ' ')"
check "the numbers are others" sh -c "[ '$(tr '\n' ' ' </tmp/numbers54)' != '$(numbers | tr '\n' ' ')' ]"
same "after renumbering those of now are banned, and no others" "$(bans)" \
	"$({ numbers; echo $own; } | sort -n | tr '\n' ' ' | sed 's/ $//')"
same "after renumbering it holds" "$(elsewhere $hold /tmp/layout54)" 0

status "rollback" 0 ringwise rollback --yes 0
sed 's/^/# /' /tmp/err
same "its list is as it was" "$(bans)" "$own"
check "no file of ours is left" [ ! -e /run/ringwise/irqbalance-bans ]
status "verify: nothing is wanted any more" 0 ringwise verify

stop
while read -r d m; do
	look now $d/smp_affinity
	[ "$now" != "" ] && [ "$now" != "$m" ] && echo $m >$d/smp_affinity
done </tmp/masks54
