#!/bin/sh
# A reboot during a trial ends it: the host is not tuned, and the history gives the reason.
# hosts: remote
# kernels: 6.12
# timeout: 500
. /h/lib.sh
. /h/state.sh
. /h/remote.sh

keep=/var/lib/lab-reboot
mkdir -p $keep

tune() {
	far_up
	state eth2 >$keep/before
	id=$(($(last_id) + 1))
	echo $id >$keep/id
	status "apply on trial for ten minutes" 0 ringwise apply --yes --allow-disruption --queues 2 --confirm 10m eth2
	check "on trial" on_trial
	state eth2 >/tmp/half
	check "eth2 is tuned" sh -c "! cmp -s $keep/before /tmp/half"
}

# The boot after it.
closed() {
	id=$(cat $keep/id)
	far_up
	check "$1: nobody watches" sh -c '! pgrep "^guard-"'
	state eth2 >/tmp/after
	unchanged "$1: untuned" $keep/before /tmp/after
	status "$1: nobody is needed" 0 ringwise
	cat /tmp/out
	status "$1: nothing is left to confirm" 6 ringwise confirm
	status "$1: the history has it" 0 ringwise history $id
	says "$1: with the reboot as the reason" "ended by a reboot"
	head -n 12 /tmp/out
	status "$1: the next apply is taken" 0 ringwise apply --yes eth2
	status "$1: and closes it" 0 ringwise rollback 0 --yes
	check "$1: its trial is closed on disk" sh -c "! ls $J/trial-*"
}

case $PHASE in
1)
	tune
	sync
	next_phase 2 hard
	;;
2)
	closed "power cut"
	tune
	next_phase 3
	;;
3) closed "reboot in order" ;;
esac
