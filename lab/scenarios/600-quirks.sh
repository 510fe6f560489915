#!/bin/sh
# A device that misbehaves: settings that are refused, ignored or lost are reported, restored and remembered.
# hosts: router16
# kernels: 6.12 newest
# quick: router16@6.12
# timeout: 500
# needs: mqnic
. /h/lib.sh
. /h/state.sh

param=/sys/module/mqnic/parameters
all="eth0 eth1 mq0 mq1 mq2 mq3"

# begin NAME: uses a state directory of its own, and records the state before.
begin() {
	export RINGWISE_STATE_DIR=/tmp/rw60.$1
	links $all >/dev/null
	state $all >/tmp/before
}

# quirk BITS [DEVICES]: by default only the first test NIC misbehaves.
quirk() {
	echo ${2:-1} >$param/quirk_dev
	echo $1 >$param/quirk
}

# as_before NAME: without the quirk, everything is as it was.
as_before() {
	echo 0 >$param/quirk
	links $all >/dev/null
	state $all >/tmp/after
	unchanged "$1" /tmp/before /tmp/after
}

channels() { ethtool -l $1 | awk '/^Combined/ { v = $2 } END { print v }'; }
fewer="ringwise apply --yes mq0 --queues 4 --allow-disruption"
now() { cut -d. -f1 /proc/uptime; }

# A user's values for everything that a channel change may destroy.
for q in 0 1 2 3 4 5 6 7; do
	echo $(((q + 5) % 16)) >/proc/irq/$(irq_of mq0-TxRx-$q)/smp_affinity_list
	printf '%x\n' $((1 << q)) >/sys/class/net/mq0/queues/tx-$q/xps_cpus
	printf '%x\n' $((2 << q)) >/sys/class/net/mq0/queues/rx-$q/rps_cpus
	echo 256 >/sys/class/net/mq0/queues/rx-$q/rps_flow_cnt
done
ethtool -X mq0 weight 5 1 1 1 0 0 0 0
table=$(ethtool -x mq0 | grep '^ *[0-9]*:')
ethtool -C mq0 rx-usecs 33 tx-usecs 17 rx-frames 8
ethtool -G mq0 rx 1024 tx 256

# --- busy: tried again a few times, then rolled back
begin busy
quirk 2
t0=$(now)
status "busy: apply fails and is put back" 4 $fewer
t1=$(now)
says "busy: the errno is named" EBUSY
check "busy: it gave up in time ($((t1 - t0)) s)" [ $((t1 - t0)) -le 30 ]
as_before "busy: as before"
# The tries go on for 0.75 s; the quirk ends when the first one has been seen.
quirk 2
(
	until grep -q 'takes some seconds' /tmp/err 2>/dev/null; do sleep 0.02; done
	sleep 0.1
	echo 0 >$param/quirk
) &
rm -f /tmp/err
status "busy for a moment: a later try succeeds" 0 $fewer
wait
same "busy for a moment: four channels" "$(channels mq0)" 4
status "busy for a moment: rollback" 0 ringwise rollback --yes 0
as_before "busy for a moment: as before"

# --- no vectors
begin vectors
quirk 32
echo 4 >$param/vlimit
status "no vectors: a change to fewer queues" 0 $fewer
state $all >/tmp/fewer
status "no vectors: more fails and is put back" 4 ringwise apply --yes mq0 --queues 6 --allow-disruption
says "no vectors: the errno is named" ENOSPC
state $all >/tmp/after
unchanged "no vectors: nothing was changed" /tmp/fewer /tmp/after
status "no vectors: the rollback fails as well" 4 ringwise rollback --yes 1
says "no vectors: and says why" ENOSPC
state $all >/tmp/after
unchanged "no vectors: nothing was changed by it" /tmp/fewer /tmp/after
echo 0 >$param/quirk
status "no vectors: with vectors, the rollback" 0 ringwise rollback --yes 1
as_before "no vectors: as before"

# --- no vectors during the rollback: the partial result is reported, with the commands to finish it
begin stuck
quirk 32
file=$(readlink -f /sys/class/net/mq0/queues/tx-3/xps_cpus)
status "stuck: fails and cannot be put back" 5 unshare -m sh -c 'mount -o bind $0 $0 && mount -o remount,bind,ro $0 && exec "$@"' \
	$file $fewer
says "stuck: why it failed" EROFS
says "stuck: why it is not put back" ENOSPC
says "stuck: the command to finish by hand" "ethtool -L mq0 combined 8"
status "stuck: what is left is known later" 3 ringwise
says "stuck: with the next command" "ringwise recover"
echo 0 >$param/quirk
status "stuck: with vectors, recover puts the rest back" 0 ringwise recover --yes
status "stuck: then nobody is needed" 0 ringwise
as_before "stuck: as before"

# --- everything reset by a channel change
begin resets
quirk 4
status "resets: apply" 0 $fewer
same "resets: moderation set by hand is kept" "$(ethtool -c mq0 | awk '/^rx-usecs:/ { print $2 }')" 33
same "resets: rings set by hand are kept" "$(ethtool -g mq0 | awk '/^RX:/ { v = $2 } END { print v }')" 1024
same "resets: the table set by hand is kept" "$(ethtool -x mq0 | grep '^ *[0-9]*:')" "$table"
status "resets: verify" 0 ringwise verify
status "resets: rollback" 0 ringwise rollback --yes 1
as_before "resets: as before"

# --- affinity lost by a channel change
begin loses
quirk 64
status "loses affinity: apply" 0 $fewer
status "loses affinity: verify" 0 ringwise verify
status "loses affinity: rollback" 0 ringwise rollback --yes 1
as_before "loses affinity: as before"

# --- accepted, but not done
begin ignores
quirk 256
status "ignored: apply fails and is put back" 4 $fewer
says "ignored: what was read back" "reads back as combined 8"
status "ignored: nothing is learned from what failed" 0 ringwise learned -j
check "ignored: no entry" sh -c "! grep -q mq0 /tmp/out"
as_before "ignored: as before"

# --- managed vectors
begin managed
status "managed: apply" 3 ringwise apply --yes mq3
says "managed: the first line counts them" "refused by the kernel or the driver: E"
says "managed: the rest was planned again" "planned again without the refused settings"
same "managed: each is refused" "$(grep -c 'refused$' /tmp/err)" $(ls -d /sys/class/net/mq3/queues/rx-* | wc -l)
if grep -q -e EPERM -e EIO /tmp/err; then ok "managed: with its errno"; else not_ok "managed: with its errno" "$(cat /tmp/err)"; fi
status "managed: nothing is left to do" 0 ringwise plan mq3 --exit-code
says "managed: the plan knows why" "refused before on this kernel"
status "managed: verify" 0 ringwise verify
status "managed: rollback" 0 ringwise rollback --yes 0
as_before "managed: as before"

# --- a device that hangs under the network lock: every request waits for the lock, and no timeout ends it
begin hangs
unset RINGWISE_DEVICE_DEADLINE_MS
# It hangs until the scenario stops it. Threads that read a file under the lock spin in the kernel in the meantime, so the guest is slow.
echo 300 >$param/hang
quirk 128 4
: >/tmp/out
ringwise show >/tmp/out 2>/tmp/err &
pid=$!
t0=$(now)
while [ ! -s /tmp/out ] && [ $(($(now) - t0)) -lt 250 ]; do sleep 0.2; done
same "hangs: the device still hangs" $(cat $param/hanging) 1
check "hangs: show has answered meanwhile" [ -s /tmp/out ]
check "hangs: the device is named" grep -q '^mq2 .*no answer within' /tmp/out
for dev in eth0:igb eth1:igb mq0:mqnic mq1:mqnic mq3:mqnic; do
	n=$(ls -d /sys/class/net/${dev%:*}/queues/rx-* | wc -l)
	check "hangs: ${dev%:*} is shown with its driver and queues" grep -q "^${dev%:*}  *${dev#*:} .* $n/[$n?] " /tmp/out
done
echo 0 >$param/quirk
# The process ends when the kernel releases its thread.
wait $pid
same "hangs: show ends well" $? 0
as_before "hangs: as before"
ethtool -X mq0 default
