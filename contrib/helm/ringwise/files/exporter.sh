#!/bin/sh
# The command of the container "exporter".
set -eu
address=${ADDRESS:-$NODE_IP}
case "$address" in
*:*) address="[$address]" ;;
esac
if [ -n "${PROGRAM-}" ]; then
	# The container "service" copies the program to the node.
	while [ ! -x "/proc/1/root$PROGRAM" ]; do sleep 1; done
	exec nsenter -t 1 -m -u -i -- "$PROGRAM" export --listen "$address:$PORT"
fi
exec /usr/sbin/ringwise export --listen "$address:$PORT"
