#!/bin/sh
# Each capability of the service's unit is needed: without it, the kernel refuses what the unit's comments say. CAP_BPF is in 371-daemon-follow.sh, under load.
# hosts: remote
# kernels: 6.12
# areas: daemon persist
# timeout: 600
. /h/lib.sh
. /h/state.sh
. /h/remote.sh
export RINGWISE_STATE_DIR=/tmp/rw668
dev=eth2
ip link set $dev up
wait_link $dev
P=$(command -v ringwise)

ringwise __units /tmp/units668
all=$(sed -n 's/^CapabilityBoundingSet=\(.\)/\1/p' /tmp/units668/usr/lib/systemd/system/ringwise-daemon.service | tr '\n' ' ')
echo "# capabilities of the unit: $all"
same "the unit has seven" "$(echo $all | wc -w)" 7

# with CAPABILITIES COMMAND...: runs it as a service that has these
with() {
	_set=$1
	shift
	systemd-run --quiet --wait --pipe --collect -p "CapabilityBoundingSet=$_set" -E RINGWISE_STATE_DIR=$RINGWISE_STATE_DIR \
		-E RINGWISE_DEVICE_DEADLINE_MS=20000 "$@"
}
# without CAPABILITY: the others
without() {
	echo $all | tr ' ' '\n' | grep -vx "CAP_$1" | tr '\n' ' '
}
# refused NAME CAPABILITY ERRNO COMMAND...: without the capability the command fails with this errno; with all it succeeds
refused() {
	_name=$1 _cap=$2 _errno=$3
	shift 3
	if with "$(without $_cap)" "$@" >/tmp/out 2>/tmp/err; then
		not_ok "$_name: refused without $_cap" "it succeeded: $(head -3 /tmp/out | tr '\n' ' ')"
	elif grep -q "$_errno" /tmp/out /tmp/err; then
		ok "$_name: refused without $_cap ($_errno)"
	else
		not_ok "$_name: refused without $_cap" "no $_errno: $(cat /tmp/out /tmp/err | tail -n 4 | tr '\n' ' ')"
	fi
	status "$_name: works with all" 0 with "$all" "$@"
}

state $dev >/tmp/before
refused "moderation" NET_ADMIN EPERM $P apply --yes --config none --set $dev.coalesce.rx-usecs=40 $dev
# igb reports no interrupt for its NAPI instances here, so ringwise pins none of their threads. The kernel decides in the same way.
status "NAPI threads" 0 ringwise apply --yes --config none --set $dev.napi.threaded=true $dev
thread=$(pgrep "^napi/$dev-" | head -n 1)
refused "CPUs of NAPI threads" SYS_NICE "Operation not permitted" taskset -cp 1 "$thread"
status "back" 0 ringwise rollback --yes 0

# The sockets of a unit whose processes belong to another user.
cat >/tmp/listen668 <<'END'
#!/bin/sh
exec perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 5, LocalPort => 7011) or die $!; sleep 600'
END
chmod 755 /tmp/listen668
systemd-run --quiet --unit=lab-listen --uid=nobody /tmp/listen668
check "a program of another user listens" wait_for 60 sh -c "ss -ltn | grep -q ':7011 '"
cat >/tmp/units668.toml <<END
version = 1
[[interface]]
match = { name = "$dev" }
goal = "mixed"
[[interface.group]]
name = "latency"
policy = "latency"
queues = 1
flows = [{ unit = "lab-listen" }]
END
refused "sockets of another user's processes" SYS_PTRACE EACCES $P plan --config /tmp/units668.toml $dev
refused "their list of files" DAC_READ_SEARCH EACCES $P plan --config /tmp/units668.toml $dev
systemctl stop lab-listen

refused "headers of packets" NET_RAW EPERM $P watch --per-flow --count 1 --interval 1s $dev

# A guard that systemd does not start is not the first process to be killed when memory runs out.
# score CAPABILITIES: the score of the guard of a trial
score() {
	with "$1" -p InaccessiblePaths=/usr/bin/systemd-run sh -c \
		"$P apply --yes --config none --set $dev.coalesce.rx-usecs=40 --confirm 120s $dev
		for g in \$(pgrep '^guard-'); do echo score \$(cat /proc/\$g/oom_score_adj); done
		$P confirm; $P rollback --yes 0" >/tmp/out 2>&1
	sed -n 's/^score //p' /tmp/out
}
same "guard without systemd: spared" "$(score "$all")" -1000
tail -n 8 /tmp/out
same "guard without systemd: not without SYS_RESOURCE" "$(score "$(without SYS_RESOURCE)")" 0
state $dev >/tmp/after
unchanged "as before" /tmp/before /tmp/after
