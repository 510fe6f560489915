#!/bin/sh
# Runs the program on the node: kubectl exec -it POD -c service -- sh /chart/scripts/node.sh status
set -eu
case "${1-}" in
apply | rollback | bench)
	# Only the node's systemd starts a guard that outlives this pod.
	if [ ! -d /proc/1/root/run/systemd/system ]; then
		echo "error: this node does not run systemd, so a guard could end with the pod: run $PROGRAM $1 on the node" >&2
		exit 6
	fi
	;;
esac
exec nsenter -t 1 -m -u -i -- "$PROGRAM" "$@"
