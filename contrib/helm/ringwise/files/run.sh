#!/bin/sh
# The command of the container "service": copies the program and the configuration to the node, and runs the program in the
# mount namespace of the node's first process. There it sees the files of the node like a service of the node, so the node's
# systemd can start its guards, which outlive this pod.
set -eu
mark="# Written by the Helm chart of ringwise"
rm -f /chart/own/restored /chart/own/pid

# fresh FILE TARGET MODE: replaces the target if its content differs; status 0 if it did.
fresh() {
	cmp -s "$1" "$2" && return 1
	cp "$1" "$2.new"
	chmod "$3" "$2.new"
	mv "$2.new" "$2"
}

fresh /usr/sbin/ringwise /node/program/ringwise 755 || :

file=/node/config/ringwise.toml
if [ -e "$file" ] && ! head -n 1 "$file" | grep -qF "$mark"; then
	echo "error: $CONFIG of this node was not written by the chart: remove it, or select other nodes" >&2
	exit 1
fi

if [ "$MODE" = restore ]; then
	nsenter -t 1 -m -u -i -- "$PROGRAM" rollback 0 --yes
	rm -f "$file"
	: >/chart/own/restored
	# The pod stays, so that the rollout counts it as ready.
	trap 'exit 0' TERM
	while :; do
		sleep 3600 &
		wait $!
	done
fi

{
	echo "$mark: group $GROUP. A change here is lost: change the values of the chart."
	cat /chart/config/ringwise.toml
} >/chart/own/ringwise.toml
# In /run, so that it is gone after a reboot: the first start of a boot applies the configuration anyway.
reload=/node/run/.helm-reload
if fresh /chart/own/ringwise.toml "$file" 644; then
	: >"$reload"
fi

# Linux 5.10 counts the counters of the socket filter as locked memory.
# shellcheck disable=SC3045 # the shell of busybox has it
ulimit -l 65536 2>/dev/null || :
# This shell stays in the container: `kubectl exec` and the probe join the mount namespace of the container's first process.
nsenter -t 1 -m -u -i -- "$PROGRAM" daemon --config "$CONFIG" --follow "$FOLLOW" &
service=$!
trap 'kill -TERM $service 2>/dev/null || :' TERM INT
echo $service >/chart/own/pid

# A configuration that is new on this node is applied even if a person has applied something in this boot: SIGHUP, once the
# service publishes its state.
while [ -e "/proc/$service/exe" ] && ! grep -q "^    \"pid\": $service,\$" /node/run/daemon.json 2>/dev/null; do
	sleep 1
done
if [ -e "$reload" ] && kill -HUP $service 2>/dev/null; then
	rm -f "$reload"
fi
if [ -d /node/features ] && [ -e "/proc/$service/exe" ]; then
	version=$(/usr/sbin/ringwise -V)
	printf '%s\n' ringwise.service=true "ringwise.group=$GROUP" "ringwise.version=${version#ringwise }" \
		>/node/features/.ringwise.new
	mv /node/features/.ringwise.new /node/features/ringwise # hidden files are not read
fi

# A signal interrupts `wait`, and the service then ends by itself.
status=0
wait $service || status=$?
while [ -e "/proc/$service/exe" ]; do
	status=0
	wait $service || status=$?
done
exit $status
