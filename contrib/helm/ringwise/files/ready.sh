#!/bin/sh
# The readiness probe: the service runs, has no problem, and no interface is paused because a transaction failed. Manual changes
# and pauses by a person do not count, so they delay no rollout. schemas/ringwise.daemon.v1.json describes the file.
set -eu
no() {
	echo "$1" >&2
	exit 1
}

if [ "$MODE" = restore ]; then
	[ -e /chart/own/restored ] || no "the settings are not restored"
	exit 0
fi
state=/node/run/daemon.json
pid=$(cat /chart/own/pid 2>/dev/null) || no "the service has not started"
grep -q "^    \"pid\": $pid,\$" "$state" 2>/dev/null || no "the service has not started"
[ -e "/proc/$pid/exe" ] || no "the service has ended"
[ ! -e /node/run/.helm-reload ] || no "the configuration is not loaded yet"
grep -q '^  "problem": null' "$state" || no "$(grep '^  "problem": ' "$state")"
if grep -q '^ *"failed": {' "$state"; then
	no "a transaction failed: node.sh status"
fi
