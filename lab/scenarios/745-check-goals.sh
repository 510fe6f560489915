#!/bin/sh
# check after `apply --goal`: the only errors and warnings are those that are true of the emulated hardware, each with its
# reason in expected/check-HOST.txt. A capture gives the same findings as the host, before and after.
# hosts: router16 small2 big64 isolated interleaved router3 remote
# kernels: 6.12
# areas: check
# timeout: 900
. /h/lib.sh
. /h/state.sh
. /h/check.sh

export RINGWISE_STATE_DIR=/tmp/rw74
devs=$(awk '{ print $2 }' /h/nics | while read -r d; do [ -e /sys/class/net/$d ] && echo $d; done)
igb=$(awk '$3 == "igb" { print $2 }' /h/nics)
for d in $devs; do
	ip link set $d up
done
links $devs >/dev/null
t() { cut -d. -f1 /proc/uptime; }

# as_captured NAME: compares the findings of the host with those of a capture made now. Rates are from one second
# each, so it may need several tries.
as_captured() {
	_name=$1
	for _try in 1 2 3 4 5; do
		ringwise check -j --fail-on never >/tmp/live.json 2>/tmp/err
		findings </tmp/live.json >/tmp/live
		rm -f /tmp/rw74.tar
		ringwise capture /tmp/rw74.tar --for 1s >/dev/null
		ringwise check -j --fail-on never --from /tmp/rw74.tar >/tmp/captured.json 2>>/tmp/err
		findings </tmp/captured.json >/tmp/captured
		cmp -s /tmp/live /tmp/captured && break
	done
	unchanged "$_name: a capture finds the same ($(wc -l </tmp/live) findings, try $_try)" /tmp/live /tmp/captured
	cmp -s /tmp/live /tmp/captured || cat /tmp/err
}

t0=$(t)
untouched
as_captured "untuned"
check "untuned: something is found" grep -q '^warning\|^error' /tmp/live
expected=/h/expected/check-$HOST.txt
check "every finding that is expected has its reason" sh -c "[ -e $expected ] && ! grep -v '^#' $expected | grep -v '. # .'"

goals="stream balanced rpc latency mixed forward"
for goal in $goals; do
	t1=$(t)
	[ $goal = forward ] && echo 1 >/proc/sys/net/ipv4/ip_forward
	if [ $goal = ${goals%% *} ]; then
		# Interrupts that are managed by the kernel (mq3 of router16) are known only after the first try: status 3.
		ringwise apply --yes --take-over --goal $goal >/tmp/out 2>/tmp/err
		rc=$?
		check "$goal: apply, the first time (status $rc)" [ $rc = 0 -o $rc = 3 ]
	fi
	status "$goal: apply" 0 ringwise apply --yes --take-over --goal $goal
	links $devs >/dev/null
	settled $igb
	status "$goal: verify" 0 ringwise verify
	status "$goal: nothing is left to do" 0 ringwise plan --exit-code --goal $goal
	as_captured "$goal"
	check "$goal: it is the goal in force, here and in the capture" sh -c "grep -q '\"goal\": \"$goal\"' /tmp/live.json && grep -q '\"goal\": \"$goal\"' /tmp/captured.json"
	grep -v '^info' /tmp/live | cut -d' ' -f2- | sort -u >/tmp/found
	grep -v '^#' $expected 2>/dev/null | awk -v g=$goal '$1 == g || $1 == "*" { print $2, $3 }' | sort -u >/tmp/foreseen
	unchanged "$goal: no error and no warning but what is so here" /tmp/foreseen /tmp/found
	cmp -s /tmp/foreseen /tmp/found || ringwise check -v --fail-on never
	echo "# $goal: $(($(t) - t1)) s"
done
echo 0 >/proc/sys/net/ipv4/ip_forward
status "rollback" 0 ringwise rollback --yes 0
echo "# $(($(t) - t0)) s"
