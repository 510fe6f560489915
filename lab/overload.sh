# Functions for 350-softirqs and 352-steal. Sourced after lib.sh and state.sh.

# shellcheck disable=SC2034 # for the scenarios
cpus=$(seq 0 $(($(nproc) - 1)))
centiseconds() { awk '{ printf "%.0f\n", $1 * 100; exit }' /proc/uptime; }
# work: the duration of a fixed piece of work, in hundredths of a second
work() {
	_from=$(centiseconds)
	awk 'BEGIN { for (i = 0; i < 400000; i++) n += i }'
	echo $(($(centiseconds) - _from))
}
# slower QUIET PERCENT: succeeds if the same work takes at least that much longer than QUIET
slower() {
	_busy=$(work)
	echo "the same work took $1 and takes $_busy hundredths of a second"
	check "programs get little time" [ $((_busy * 100)) -ge $(($1 * $2)) ]
}
# there_and_back DEV...: a transaction on trial, its confirmation, and its rollback
there_and_back() {
	state "$@" >/tmp/before
	_from=$(centiseconds)
	status "apply" 0 ringwise apply --yes --confirm 300 --goal forward "$@"
	cat /tmp/err
	status "confirm" 0 ringwise confirm
	status "rollback" 0 ringwise rollback --yes 0
	cat /tmp/err
	state "$@" >/tmp/after
	unchanged "as before" /tmp/before /tmp/after
	echo "all of it took $(($(centiseconds) - _from)) hundredths of a second"
}
