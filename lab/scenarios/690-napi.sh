#!/bin/sh
# NAPI threads: created for a device and for one instance, on the CPU of their queue's interrupt, and rolled back; and interrupts
# that stay off while a program polls.
# hosts: router16
# kernels: 6.12 newest
# timeout: 400
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw69
links mq0 mq1

# pids: of mq0's threads in the order of its instances, which is that of its queues
pids() {
	grep -H '^napi/mq0-' /proc/[0-9]*/comm 2>/dev/null | sed 's|/proc/\([0-9]*\)/comm:napi/mq0-\([0-9]*\)|\2 \1|' | sort -n |
		cut -d' ' -f2
}
# threads: the CPUs of each
threads() {
	for _p in $(pids); do sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$_p/status; done | tr '\n' ' '
}
interrupts() {
	for _q in 0 1 2 3 4 5 6 7; do asked $(irq_of mq0-TxRx-$_q); done | tr '\n' ' '
}
turns() {
	for _p in $(pids); do sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' /proc/$_p/status; done | awk '{ s += $1 } END { print s }'
}
line() {
	ringwise show $1 2>/dev/null | sed -n "s/^ *$2  *//p" | head -1
}
state mq0 >/tmp/before

# --- of the device
set='mq0.napi.threaded=true'
status "threads: made" 0 ringwise apply --yes mq0 --config none --set "$set"
cat /tmp/err
same "threads: one for each queue" "$(pids | wc -l)" 8
same "threads: where the interrupt of the queue goes" "$(threads)" "$(interrupts)"
check "threads: one CPU each" sh -c "! echo '$(threads)' | grep -q '[-,]'"
was=$(turns)
traffic mq1 mq0 64 1000 >/dev/null 2>&1
check "threads: they poll" [ "$(turns)" -gt "$was" ]
# Their time counts as work of their CPUs.
ringwise watch mq0 -o json --count 1 --interval 2s >/tmp/w.json 2>/tmp/err &
watching=$!
sleep 0.5
traffic mq1 mq0 64 4000 >/dev/null 2>&1
wait $watching
busy_threads=$(grep -o '"napi_threads_percent":[0-9.]*' /tmp/w.json | awk -F: '$2 > 0' | wc -l)
check "threads: their time is that of their CPUs ($busy_threads)" [ "$busy_threads" -gt 1 ]
status "threads: verify" 0 ringwise verify
status "threads: nothing to do a second time" 0 ringwise plan mq0 --config none --set "$set" --exit-code
pid=$(pids | sed -n 3p)
here=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$pid/status)
taskset -p ffff $pid >/dev/null
status "threads: one that somebody moves is seen" 3 ringwise verify
says "threads: by its name" "NAPI thread"
taskset -p $(printf %x $((1 << here))) $pid >/dev/null
status "threads: and its coming back" 0 ringwise verify
# They follow the interrupt of their queue.
status "threads: the queue goes elsewhere" 0 ringwise apply --yes mq0 --config none --set "$set" --set 'mq0.irq_cpus={ "2" = 9 }'
same "threads: its thread too" "$(threads | cut -d' ' -f3)" 9
same "threads: all as the interrupts" "$(threads)" "$(interrupts)"
status "threads: rollback" 0 ringwise rollback --yes 0
case $KERNEL in
newest) same "threads: none is left" "$(pids)" "" ;;
*)
	same "threads: the kernel keeps them" "$(pids | wc -l)" 8
	was=$(turns)
	traffic mq1 mq0 64 1000 >/dev/null 2>&1
	same "threads: and none polls" "$(turns)" "$was"
	check "threads: show has none" sh -c "! ringwise show mq0 2>/dev/null | grep -q threaded"
	;;
esac
state mq0 >/tmp/after
unchanged "threads: the rest as before" /tmp/before /tmp/after

# --- threads that exist already
export RINGWISE_STATE_DIR=/tmp/rw69.there
echo 1 >/sys/class/net/mq0/threaded
for pid in $(pids); do taskset -p ffff $pid >/dev/null; done
same "threads there: anywhere" "$(threads)" "0-15 0-15 0-15 0-15 0-15 0-15 0-15 0-15 "
status "threads there: apply" 0 ringwise apply --yes mq0 --config none
same "threads there: where the interrupt of the queue goes" "$(threads)" "$(interrupts)"
status "threads there: rollback" 0 ringwise rollback --yes 0
same "threads there: anywhere again" "$(threads)" "0-15 0-15 0-15 0-15 0-15 0-15 0-15 0-15 "
echo 0 >/sys/class/net/mq0/threaded
state mq0 >/tmp/after
unchanged "threads there: the rest as before" /tmp/before /tmp/after

# --- of one instance
export RINGWISE_STATE_DIR=/tmp/rw69.one
one='mq0.napi={ queues = [2], threaded = true }'
suspend='mq0.napi={ queues = [1], irq_suspend_timeout_ns = 20000000, defer_hard_irqs = 2, gro_flush_timeout_ns = 50000 }'
case $KERNEL in
newest)
	status "one thread: made" 0 ringwise apply --yes mq0 --config none --set "$one"
	cat /tmp/err
	same "one thread: that one alone, where its interrupt goes" "$(threads)" "$(interrupts | cut -d' ' -f3) "
	same "one thread: the device says nothing of it" "$(cat /sys/class/net/mq0/threaded)" 0
	status "one thread: verify" 0 ringwise verify
	status "one thread: nothing to do a second time" 0 ringwise plan mq0 --config none --set "$one" --exit-code
	status "one thread: rollback" 0 ringwise rollback --yes 0
	same "one thread: none is left" "$(pids)" ""
	export RINGWISE_STATE_DIR=/tmp/rw69.suspend
	status "suspended: written" 0 ringwise apply --yes mq0 --config none --set "$suspend"
	line mq0 NAPI
	same "suspended: that one alone" "$(line mq0 NAPI | sed 's/interrupts deferred.*us, //')" \
		"queues 1 interrupts suspended up to 20000 us while an application polls"
	status "suspended: verify" 0 ringwise verify
	status "suspended: rollback" 0 ringwise rollback --yes 0
	same "suspended: nothing is left of it" "$(line mq0 NAPI)" ""
	export RINGWISE_STATE_DIR=/tmp/rw69.busy
	status "busily: made" 0 ringwise apply --yes mq0 --config none --set 'mq0.napi={ queues = [3], threaded = 2 }'
	cat /tmp/err
	same "busily: where its interrupt goes" "$(threads)" "$(interrupts | cut -d' ' -f4) "
	status "busily: verify" 0 ringwise verify
	status "busily: rollback" 0 ringwise rollback --yes 0
	same "busily: none is left" "$(pids)" ""
	;;
*)
	for w in "$one" "$suspend"; do
		ringwise plan mq0 --config none --set "$w" >/tmp/out 2>/tmp/err
		says "one instance: not before 6.13" "no settings for single NAPI instances"
	done
	;;
esac
status "suspended: not of a device" 0 ringwise plan mq0 --config none --set mq0.napi.irq_suspend_timeout_ns=5
says "suspended: and that is said" "no irq-suspend-timeout for the device"
state mq0 >/tmp/after
unchanged "everything as before" /tmp/before /tmp/after
