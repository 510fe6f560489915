#!/bin/sh
# The documented commands that change a host or need a live one, typed on a terminal in the order of their page; each block leaves the host as found.
# hosts: remote
# kernels: 6.12
# areas: bench flow watch check export daemon persist documented
# timeout: 2400
. /h/lib.sh
. /h/remote.sh
. /h/state.sh
. /h/terminal.sh

P=/usr/local/sbin/ringwise
U=ringwise-daemon.service
W=/tmp/documented
DEVS="eth0 eth1 eth2"
export PATH=/usr/local/sbin:$PATH

cp "$(command -v ringwise)" $P
far_up
ip -n far address add 192.0.2.1/24 dev far1
ip address add 192.0.2.2/24 dev eth1
links $DEVS
# The service starts with an environment of its own.
mkdir -p /etc/systemd/system.conf.d
printf '[Manager]\nDefaultEnvironment=RINGWISE_DEVICE_DEADLINE_MS=20000\n' >/etc/systemd/system.conf.d/lab.conf
systemctl daemon-reexec

# Programs that the pages name and that this system does not have.
printf '#!/bin/sh\nsleep 1\necho done\n' >/usr/local/bin/CMD
cat >/usr/local/bin/ping <<'END'
#!/bin/bash
echo >"/dev/udp/${!#}/9"
sleep 1
ip neighbour show "${!#}" | grep -E 'REACHABLE|STALE|DELAY'
END
chmod 755 /usr/local/bin/CMD /usr/local/bin/ping

# Files that the pages name, made once.
F=/tmp/files
rm -rf $F
mkdir -p $F/caps $F/fixtures/watch
cd $F || exit
ringwise capture host.tar.gz
cp host.tar.gz caps/edge7.tar.gz
ringwise watch --count 3 --record incident.rec >/dev/null
cp incident.rec fixtures/watch/router16.rec
printf 'version = 1\n\n[[interface]]\nmatch = { name = "eth0" }\ncoalesce = { rx-usecs = 62 }\n' >ringwise.toml
printf '[net]\ntype = net\ndevices = eth0\ncoalesce = rx-usecs 62\n' >tuned.conf

everything() {
	state $DEVS
	cat /proc/sys/net/core/netdev_budget
}
everything >/tmp/before.all

# as_found: ends what the block left, and compares the host.
as_found() {
	on_trial && ringwise confirm
	if [ -e /etc/systemd/system/$U ] || [ -e /etc/systemd/system/ringwise.service ]; then
		systemctl -q is-active $U && systemctl stop $U
		ringwise persist --remove --yes
	fi
	[ -z "$(last_id)" ] || ringwise rollback 0 --yes
	cd /
	rm -rf $W /etc/ringwise /etc/systemd/network/60-ringwise* /var/lib/node_exporter
	everything >/tmp/after.all
	unchanged "$PLACE: the host is as found" /tmp/before.all /tmp/after.all
	rm -rf $J
}

PLACE=
# block PLACE: the block before it has ended, and this one begins in a directory of its own.
block() {
	[ -z "$TRIAL" ] || decided again
	[ -z "$PLACE" ] || as_found >/tmp/as_found 2>&1
	[ -z "$PLACE" ] || grep -E '^(not )?ok ' /tmp/as_found
	PLACE=$1
	[ "$PLACE" = end ] && return
	cp -r $F $W
	cd $W || exit
	mkdir -p /var/lib/node_exporter
}

# before COMMAND: something that the page assumes.
before() {
	sh -c ". /tmp/documented.pre; $1" >/tmp/before.out 2>&1 || {
		cat /tmp/before.out
		not_ok "$PLACE: before it, $1" "$(tail -n 3 /tmp/before.out | tr '\n' ' ')"
	}
}
cat >/tmp/documented.pre <<'END'
service_runs() {
	ringwise apply --yes && ringwise persist --daemon --yes && systemctl start ringwise-daemon && sleep 10
}
three_transactions() {
	for goal in balanced forward latency; do
		ringwise apply --yes --goal $goal || return
	done
}
END

# run STATUSES COMMAND: it ends by itself.
run() {
	[ -z "$TRIAL" ] || [ "$2" = "ringwise confirm" ] || decided again
	typed typed 240 "$2"
	judged typed "$1" "$2"
	case $2 in
	*--textfile*) check "$PLACE: a file of $2" grep -q '^ringwise_' /var/lib/node_exporter/ringwise.prom ;;
	*'--out '*)
		_file=${2##*--out }
		check "$PLACE: a file of $2" test -s "${_file%% *}"
		;;
	esac
	[ -z "$TRIAL" ] || decided
}

# trial COMMAND: its terminal waits until the trial is confirmed there or, by the next command of the page, elsewhere.
TRIAL=
trial() {
	rm -f /tmp/trial.status
	typed trial 240 "$1" &
	TYPED=$!
	TRIAL=$1
	wait_for 120 sh -c '[ -e /tmp/trial.status ] || ls /var/lib/ringwise/trial-*.json'
}

# decided [again]: the end of the trial, after `y` on its own terminal if `again`.
decided() {
	[ -z "$1" ] || touch /tmp/trial.again
	wait $TYPED
	judged trial 0 "$TRIAL"
	# With --yes its terminal does not wait.
	on_trial && ringwise confirm
	check "$PLACE: the trial is confirmed" sh -c "! ls $J/trial-*.json"
	TRIAL=
}

# keep_on COMMAND: it runs until Ctrl-C.
keep_on() {
	typed typed 6 "$1"
	judged typed "0|130" "$1"
}

# serve COMMAND: it answers requests until Ctrl-C.
serve() {
	rm -f /tmp/page
	(
		wait_for 20 bash -c 'exec 3<>/dev/tcp/127.0.0.1/9787' &&
			bash -c 'exec 3<>/dev/tcp/127.0.0.1/9787 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3' >/tmp/page
	) 2>/dev/null &
	_page=$!
	typed typed 12 "$1"
	wait $_page
	judged typed "0|130" "$1"
	check "$PLACE: a page of $1" grep -q '^ringwise_' /tmp/page
}

. /h/documented.sh

ip address del 192.0.2.2/24 dev eth1
ip -n far address del 192.0.2.1/24 dev far1
rm -rf $F $P /usr/local/bin/CMD /usr/local/bin/ping /etc/systemd/system.conf.d
