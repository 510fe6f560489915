#!/bin/sh
# On a terminal ringwise asks about manual changes before it asks about the plan.
# hosts: small2
# kernels: 6.12
# timeout: 400
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw58a

links eth0 eth1
xps=/sys/class/net/eth1/queues/tx-1/xps_cpus
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts 2>/dev/null
ip link set lo up
cat >/tmp/ask.sh <<EOF
#!/bin/sh
export PATH=$PATH RINGWISE_STATE_DIR=$RINGWISE_STATE_DIR
sh /tmp/ask.cmd
echo \$? >/tmp/asked.rc
while [ ! -e /tmp/asked.end ]; do sleep 1; done
EOF
chmod +x /tmp/ask.sh
echo ringwise apply --goal forward eth1 >/tmp/ask.cmd

# asked STATUS TEXT: apply on a terminal of its own; TEXT is typed ahead. Its output is in /tmp/out.
asked() {
	rm -f /tmp/asked.rc /tmp/asked.end
	busybox telnetd -F -b 127.0.0.1:2323 -l /tmp/ask.sh &
	_pid=$!
	sleep 1
	(
		printf %b "$2"
		_i=0
		while [ ! -e /tmp/asked.rc ] && [ $_i -lt 90 ]; do
			sleep 1
			_i=$((_i + 1))
		done
		sleep 1
	) | busybox telnet 127.0.0.1 2323 >/tmp/out 2>/dev/null
	touch /tmp/asked.end
	kill $_pid
	wait $_pid 2>/dev/null
	: >/tmp/err
	same "its status" "$(cat /tmp/asked.rc 2>/dev/null)" "$1"
}

status "apply" 0 ringwise apply --yes --goal forward eth1
ours=$(cat $xps)
echo 1 >$xps
theirs=$(cat $xps)
same "somebody has changed it" "$([ "$ours" = "$theirs" ] || echo yes)" yes

asked 6 'x\r'
cat /tmp/out
says "it names what was changed" "eth1 tx-1 xps_cpus  now 0, changed manually"
says "it asks" "[K]eep, [t]ake over"
same "an answer that is none leaves it" "$(cat $xps)" "$theirs"
asked 0 '\r'
says "kept when only return is typed" "Manual changes and adopted settings that are kept"
same "and nothing was written" "$(cat $xps)" "$theirs"
asked 6 't\rn\r'
says "taken over, the plan is asked about" "Apply? [y/N/show]"
says "with what it undoes" "1 of these undoes a manual change"
same "no is no" "$(cat $xps)" "$theirs"
asked 0 't\ry\r'
same "taken over" "$(cat $xps)" "$ours"
status "as applied" 0 ringwise verify
status "rollback 0" 0 ringwise rollback --yes 0

status "a plan to be reviewed" 0 ringwise plan --goal forward eth1 --out /tmp/eth1.plan
echo 1 >$xps
echo ringwise apply /tmp/eth1.plan >/tmp/ask.cmd
asked 6 'y\r'
cat /tmp/out
says "a plan that does not fit any more is refused" "since the plan was made"
same "before anyone is asked" "$(grep -c 'Apply?' /tmp/out)" 0
rm -rf $RINGWISE_STATE_DIR
