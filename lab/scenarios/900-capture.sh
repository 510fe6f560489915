#!/bin/sh
# A capture shows the same as the live host. It stays in results/keep for fixtures/hosts.
# hosts: all small2-arm64
# kernels: all
# quick: small2@6.12
# timeout: 180
. /h/lib.sh
. /h/state.sh
# A recording does not contain what was done, learned or configured here before.
export RINGWISE_STATE_DIR=/tmp/rw90

# Counters change between two readings.
still() {
	tr -d ' \n' <$1 | sed 's/"count":{"known":[0-9]*}/"count":{}/g
s/"inflight_bytes":[0-9]*/"inflight_bytes":0/g
s/"limit_bytes":[0-9]*/"limit_bytes":0/g' | sed 's/},{/},\n{/g'
}

for dev in $(awk '{ print $2 }' /h/nics); do
	[ -e /sys/class/net/$dev ] && wait_link $dev >/dev/null
done
mkdir -p /h/results/keep
file=/h/results/keep/capture.tar.gz
echo "$HOST-$KERNEL" >/h/results/keep/capture.name

# The live host is read before and after. If the two readings differ (a link that came up in the meantime), or a
# device missed its deadline, which happens under emulation on a busy machine, the comparison is repeated.
: >/tmp/errors
for try in 1 2 3 4 5 6 7 8; do
	rm -f $file
	# shellcheck disable=SC2129 # different files besides
	ringwise show -j >/tmp/before.json 2>>/tmp/errors
	ringwise plan -j --config none >/tmp/plan.json 2>>/tmp/errors
	ringwise capture $file >/tmp/out 2>>/tmp/errors
	captured=$?
	ringwise show -j >/tmp/after.json 2>>/tmp/errors
	ringwise plan -j --config none >/tmp/plan.after.json 2>>/tmp/errors
	still /tmp/before.json >/tmp/before
	still /tmp/after.json >/tmp/after
	ringwise show -j --from $file >/tmp/captured.json 2>>/tmp/errors
	cat /tmp/plan.json /tmp/after.json /tmp/captured.json | grep -q "no answer within" && continue
	cmp -s /tmp/before /tmp/after && cmp -s /tmp/plan.json /tmp/plan.after.json && break
done
same "capture ends well" $captured 0
unchanged "the live host stood still for a moment (try $try)" /tmp/before /tmp/after
still /tmp/captured.json >/tmp/captured
check "show -j of the capture has interfaces" grep -q '"ifindex":[0-9]' /tmp/captured
same "show -j of the capture differs from the live one" "$(diff /tmp/after /tmp/captured | cut -c1-300 | head -5)" ""
ringwise plan -j --config none --from $file >/tmp/captured.json 2>>/tmp/errors
same "plan -j of the capture differs from the live one" "$(diff /tmp/plan.json /tmp/captured.json | cut -c1-300 | head -5)" ""
[ $try = 1 ] && same "nothing on standard error" "$(cat /tmp/errors)" ""
size=$(wc -c <$file)
if [ $size -lt 204800 ]; then ok "the capture has $size bytes"; else not_ok "the capture is small" "$size bytes"; fi
