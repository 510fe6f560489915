#!/bin/sh
# Moderation that exists for a device but not for a queue: CQE mode with its limits, and the profiles of adaptive moderation. They
# are read as the driver holds them, written, ignored, rolled back, and refused if the kernel does not support them.
# hosts: router16
# kernels: 6.1 6.12 newest
# timeout: 400
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw63p
param=/sys/module/mqnic/parameters
links mq0

# From the driver itself; the lab's ethtool supports CQE mode, but neither limits nor profiles.
held() { sed -n "s/^mq0 //p" $param/moderation; }
cqe() { held | sed 's/ rx .*//'; }
profile() { held | sed -n "s/.* $1\( [0-9/ ]*\).*/\1/p" | sed 's/^ //; s/ $//'; }
ours() {
	ringwise show mq0 -j 2>/dev/null | tr -d ' \n' | sed 's/.*"coalesce":{"known":{\([^}]*\)}.*/\1/' | tr ',' '\n' |
		sed -n "s/^\"$1\"://p"
}
change() {
	_t=$1 _s=$2
	shift 2
	status "$_t" $_s ringwise apply --yes mq0 --config none "$@"
}
# lacks TITLE KEY=VALUE: the device does not report it on this kernel, so nothing is planned
lacks() {
	status "$1" 0 ringwise plan mq0 --config none --set "mq0.coalesce.$2"
	says "$1: and that is said" "not supported by the driver"
	status "$1: an error with --strict" 1 ringwise plan mq0 --config none --set "mq0.coalesce.$2" --strict
}
held >/tmp/before
ethtool -c mq0 >/tmp/before.c
cat /tmp/before

mode=1 limits=0 steps=0
case $KERNEL in
5.10) mode=0 ;;
6.12) steps=1 ;;
newest) steps=1 limits=1 ;;
esac

# --- CQE mode, since 5.15
if [ $mode = 1 ]; then
	same "CQE mode: as ethtool says it" "$(ethtool -c mq0 | sed -n 's/^CQE mode RX: *\([a-z]*\) *TX: *\([a-z]*\).*/\1 \2/p')" "off off"
	same "CQE mode: read" "$(ours use-cqe-mode-rx) $(ours use-cqe-mode-tx)" "0 0"
	change "CQE mode: written" 0 --set mq0.coalesce.cqe-mode-rx=true --set mq0.coalesce.rx-usecs=20
	same "CQE mode: the driver has it" "$(cqe | cut -d' ' -f1-3)" "cqe 1 0"
	same "CQE mode: read back" "$(ours use-cqe-mode-rx) $(ours use-cqe-mode-tx)" "1 0"
	status "CQE mode: verify" 0 ringwise verify
	status "CQE mode: nothing to do a second time" 0 ringwise plan mq0 --config none --exit-code \
		--set mq0.coalesce.cqe-mode-rx=true --set mq0.coalesce.rx-usecs=20
	ethtool -C mq0 cqe-mode-rx off
	status "CQE mode: somebody's change is seen" 3 ringwise verify
	ethtool -C mq0 cqe-mode-rx on
	status "CQE mode: and its coming back" 0 ringwise verify
	status "CQE mode: rollback" 0 ringwise rollback --yes 0
	held >/tmp/after
	unchanged "CQE mode: as before" /tmp/before /tmp/after
	status "CQE mode: not of a queue" 1 ringwise plan mq0 --config none \
		--set 'mq0.coalesce={ queues = "0-1", cqe-mode-rx = true }'
	says "CQE mode: and that is said" "the kernel sets this only for the whole device, not for single queues"
	export RINGWISE_STATE_DIR=/tmp/rw63p.quirk
	echo 1 >$param/quirk_dev
	echo 1 >$param/quirk
	change "CQE mode: accepted and not done" 4 --set mq0.coalesce.cqe-mode-tx=true
	says "CQE mode: it is found by reading back" "accepted, but reads back as"
	echo 0 >$param/quirk
	echo -1 >$param/quirk_dev
else
	lacks "CQE mode: none before 5.15" cqe-mode-rx=true
fi

# --- its limits, since 7.x
export RINGWISE_STATE_DIR=/tmp/rw63p.limits
if [ $limits = 1 ]; then
	same "CQE limits: read" "$(ours rx-cqe-frames) $(ours rx-cqe-nsecs)" "4 1000"
	change "CQE limits: written" 0 --set mq0.coalesce.rx-cqe-frames=8 --set mq0.coalesce.rx-cqe-nsecs=70000
	same "CQE limits: the driver has them" "$(cqe | cut -d' ' -f4-)" "frames 8 nsecs 70000"
	status "CQE limits: verify" 0 ringwise verify
	status "CQE limits: rollback" 0 ringwise rollback --yes 0
	held >/tmp/after
	unchanged "CQE limits: as before" /tmp/before /tmp/after
else
	lacks "CQE limits: none here" rx-cqe-frames=8
fi

# --- profiles, since 6.11
export RINGWISE_STATE_DIR=/tmp/rw63p.steps
one='mq0.coalesce.rx-profile=[{ usec = 2 }, {}, { usec = 65, pkts = 99 }]'
two='mq0.coalesce.tx-profile=[{}, { pkts = 7 }]'
if [ $steps = 1 ]; then
	rx=$(profile rx) tx=$(profile tx)
	same "profiles: five steps" "$(echo $rx | wc -w)" 5
	same "profiles: read" "$(for i in 0 1 2 3 4; do echo "$(ours rx-profile.$i.usec)/$(ours rx-profile.$i.pkts)"; done | tr '\n' ' ')" "$rx "
	want=$(echo $rx | awk '{ split($1, a, "/"); $1 = "2/" a[2]; $3 = "65/99"; print }')
	want_tx=$(echo $tx | awk '{ split($2, a, "/"); $2 = a[1] "/7"; print }')
	change "profiles: written" 0 --set "$one" --set "$two"
	cat /tmp/err
	same "profiles: these steps and no others" "$(profile rx)" "$want"
	same "profiles: of transmission too" "$(profile tx)" "$want_tx"
	status "profiles: verify" 0 ringwise verify
	status "profiles: nothing to do a second time" 0 ringwise plan mq0 --config none --exit-code --set "$one" --set "$two"
	cat >/tmp/steps.toml <<END
version = 1
[[interface]]
match = { name = "mq0" }
coalesce = { rx-profile = [{ usec = 3 }] }
END
	status "profiles: from a file" 0 ringwise apply --yes mq0 --config /tmp/steps.toml
	same "profiles: only the step of the file" "$(profile rx)" "$(echo $want | sed 's/^2/3/')"
	ringwise config init 2>/dev/null | sed 's/^# *\(coalesce = \)/\1/' >/tmp/init.toml
	check "profiles: config init has them" grep -q 'rx-profile = \[{ usec' /tmp/init.toml
	status "profiles: as config check takes them" 0 ringwise config check /tmp/init.toml
	status "profiles: a field that the driver has not" 0 ringwise plan mq0 --config none \
		--set 'mq0.coalesce.rx-profile=[{ comps = 1 }]'
	says "profiles: it is named" "rx-profile.0.comps"
	status "profiles: rollback" 0 ringwise rollback --yes 0
	held >/tmp/after
	unchanged "profiles: as before" /tmp/before /tmp/after
else
	lacks "profiles: none before 6.11" 'rx-profile=[{ usec = 2 }]'
fi
ethtool -c mq0 >/tmp/after.c
unchanged "moderation as ethtool says it is as before" /tmp/before.c /tmp/after.c
