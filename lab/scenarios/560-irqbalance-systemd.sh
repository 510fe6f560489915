#!/bin/sh
# irqbalance as a service with an interval of one second: ringwise's bans survive its restart, and are removed by a rollback.
# hosts: remote
# kernels: 6.12
# timeout: 900
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

export RINGWISE_STATE_DIR=/var/lib/rw57
dev=eth2
dropin=/run/systemd/system/irqbalance.service.d/90-ringwise.conf
devices=/run/ringwise/irqbalance-devices
policy=$RINGWISE_STATE_DIR/ringwise-irqbalance-policy

# json PART: of the facts about irqbalance.
json() {
	ringwise status -j 2>/dev/null | tr -d ' \n' | sed -n "s/.*\"irqbalance\":{\"known\":{.*$1.*/\1/p"
}
bans() { json '"banned":{"known":\[\([0-9,]*\)\]}' | tr , ' '; }
answers() { [ -n "$(json '"interval_s":{"known":\([0-9]*\)}')" ]; }
# asked N: the user's own script was called for it since line $from.
asked() { dmesg | sed '1,/lab: begins anew/d' | grep -q "lab: mine asked about $1\$"; }
moved() { affinity $dev | diff "$1" - | grep -c '^[<>+-] *irq'; }
show_err() { sed 's/^/# /' /tmp/err; }

# seconds: since boot
seconds() {
	look _up /proc/uptime
	echo "${_up%%.*}"
}

# elsewhere SECONDS FILE [enough]: the most interrupts that were seen elsewhere in this time, under traffic; with `enough`
# it returns after the first ones. irqbalance reads once a second.
elsewhere() {
	from=$(seconds)
	most=0
	while [ $(($(seconds) - from)) -lt $1 ]; do
		far ping -q -c 5 -w 3 10.2.0.1 >/dev/null 2>&1
		sleep 1
		n=$(moved $2)
		[ $n -gt $most ] && most=$n
		[ $n -gt 0 ] && [ "$3" = enough ] && break
	done
	systemctl -q is-active irqbalance.service || echo "# irqbalance ended by itself"
	echo $most
}

far_up
links $dev
own=$(irq_of rtc0)
[ -n "$own" ] || own=8
irqbalance_start --interval=1 --banirq=$own
check "irqbalance runs and answers" wait_for 60 answers
same "its list before: only somebody's own" "$(bans)" "$own"
systemctl cat irqbalance.service >/tmp/unit.before

status "plan" 0 ringwise plan $dev
says "plan: also after its restart" "also after its restart"
status "apply" 0 ringwise apply --yes $dev
show_err
affinity $dev >/tmp/layout57
check "an addition to the unit" test -s $dropin
check "the script can be run" test -x $policy
same "it lists the device" "$(cat $devices)" "$(basename $(pci_of $dev))"
same "with the ban the layout holds for 30 s" "$(elsewhere 30 /tmp/layout57)" 0
status "status" 0 ringwise status
says "status: banned, restart or not" "of $dev banned"
check "status: it lasts" sh -c '! grep -q "until it restarts" /tmp/out'

# No ban is left but that of the script.
systemctl restart irqbalance.service
check "restarted, it answers" wait_for 60 answers
check "it was started with the script" sh -c "tr '\0' ' ' </proc/$(systemctl show -P MainPID irqbalance)/cmdline | grep -q policyscript=$policy"
same "its list is as its arguments have it" "$(bans)" "$own"
same "after its restart the layout holds for 12 s" "$(elsewhere 12 /tmp/layout57)" 0
status "verify: holds" 0 ringwise verify
show_err

# With fewer channels the interrupts get new numbers, which this irqbalance does not know yet.
status "apply: fewer channels" 0 ringwise apply --yes --take-over $dev --queues 2 --allow-disruption
show_err
links $dev
affinity $dev >/tmp/layout57
same "after renumbering it holds for 12 s" "$(elsewhere 12 /tmp/layout57)" 0
status "verify: still" 0 ringwise verify

status "rollback" 0 ringwise rollback --yes 0
show_err
check "nothing of ours is left" sh -c "! ls $dropin $devices $policy /run/ringwise/irqbalance-bans 2>/dev/null | grep -q ."
systemctl cat irqbalance.service >/tmp/unit.after
same "the unit is as before" "$(diff /tmp/unit.before /tmp/unit.after)" ""
same "its list is as before" "$(bans)" "$own"
affinity $dev >/tmp/layout57
systemctl restart irqbalance.service
check "restarted, it answers again" wait_for 60 answers
from=$(seconds)
n=$(elsewhere 30 /tmp/layout57 enough)
hold=$((3 * ($(seconds) - from)))
[ $hold -gt 12 ] || hold=12
check "without the ban it moves them ($n lines differ)" [ "$n" -gt 0 ]

# The user's own script still decides about other devices.
cat >/var/lib/mine <<'EOF'
#!/bin/sh
# Its unit sees the machine read-only.
echo "lab: mine asked about $2" >/dev/kmsg
[ "$2" = 1 ] && echo ban=true
exit 0
EOF
chmod 755 /var/lib/mine
irqbalance_start --interval=1 --policyscript=/var/lib/mine
check "with a script of somebody's own" wait_for 60 answers
status "apply beside it" 0 ringwise apply --yes $dev
show_err
# Calls by the old irqbalance do not count.
systemctl stop irqbalance.service
echo "lab: begins anew" >/dev/kmsg
systemctl start irqbalance.service
check "it answers with both" wait_for 60 answers
check "theirs is asked about other interrupts" asked 1
ours() { for n in $(dev_irqs $dev); do if asked $n; then echo $n; fi; done; }
same "but not about ours" "$(ours)" ""
affinity $dev >/tmp/layout57
echo "# three times as long as it took without the ban: $hold s"
same "ours hold" "$(elsewhere $hold /tmp/layout57)" 0
status "rollback again" 0 ringwise rollback --yes 0
check "nothing of ours is left again" sh -c "! ls $dropin $devices $policy 2>/dev/null | grep -q ."
irqbalance_stop
