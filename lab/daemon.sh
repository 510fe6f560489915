# Sourced after lib.sh and state.sh: the service in the background, and what its scenarios check. `devs` names the interfaces.
export RINGWISE_STATE_DIR=/tmp/rw-daemon RINGWISE_DEVICE_DEADLINE_MS=20000
log=/tmp/daemon.log

# The service starts its guards from the program where packages install it: on the file system of /usr, so that no transaction copies it.
if [ ! -e /usr/bin/ringwise ]; then
	cp /h/ringwise /usr/bin/ringwise
fi

# Limits in seconds: 3 where the kernel notifies the service and 13 elsewhere, and 6 more for an emulated machine that does other things.
# shellcheck disable=SC2034 # for scenarios
notified=9 compared=19

# serve OPTION...: starts the service and waits for its first look. `as`: the program that starts it, with its options, such as setpriv.
as=
serve() {
	$as /usr/bin/ringwise -v daemon "$@" 2>$log &
	service=$!
	check "the service starts" logged "started"
}

# journals: the number of transactions.
journals() {
	ls $RINGWISE_STATE_DIR/tx-*.jsonl 2>/dev/null | wc -l
}

# layout: the affinities and XPS masks, in the order of names.
layout() {
	{
		# shellcheck disable=SC2086 # a list of names
		affinity $devs
		for _d in $devs; do
			for _f in /sys/class/net/"$_d"/queues/tx-*/xps_cpus; do
				look _v "$_f"
				echo "$_f=$_v"
			done
		done
	} | sort
}

# becomes FILE SECONDS: waits until the layout is that of the file.
becomes() {
	_n=0
	while [ $_n -lt $(($2 * 10)) ]; do
		layout >/tmp/now
		cmp -s "$1" /tmp/now && return 0
		sleep 0.1
		_n=$((_n + 1))
	done
	return 1
}

# hear: notes when the kernel notifies of a link. The carrier of a link is reported up to a second after its file shows it.
hear() {
	/usr/bin/ip monitor link 2>/dev/null | while read -r _; do
		read -r _at _ </proc/uptime
		echo "$_at"
	done >/tmp/heard-links &
}

# back NAME FILE SECONDS
back() {
	read -r _from _ </proc/uptime
	if becomes "$2" "$3"; then
		ok "$1"
		read -r _to _ </proc/uptime
		touch /tmp/heard-links
		# A notification within the last 2 s, the settle time, was a consequence of the write.
		awk -v from="$_from" -v to="$_to" -v name="$1" '
			$1 > from && $1 < to - 2 { heard = $1 }
			END {
				print "# " name ": right again after " to - from " s" (heard ? ", " to - heard " s after the last notification of a link" : "")
			}' /tmp/heard-links
	else
		not_ok "$1" "$(diff "$2" /tmp/now | grep '^[-+<>][^-+]' | head -6 | tr '\n' ';') $(tail -n 3 $log | tr '\n' ' ')"
	fi
}

# soon NAME SECONDS COMMAND...: ok as soon as the command succeeds.
soon() {
	_name=$1 _within=$2
	shift 2
	read -r _from _ </proc/uptime
	_n=0
	until "$@"; do
		if [ $_n -ge $((_within * 10)) ]; then
			not_ok "$_name" "not within $_within s"
			return
		fi
		sleep 0.1
		_n=$((_n + 1))
	done
	ok "$_name"
	read -r _to _ </proc/uptime
	echo "# $_name: after $_from $_to" | awk '{ t = $NF - $(NF - 1); NF -= 2; print $0, t, "s" }'
}

# free: waits until no transaction is running.
free() {
	_n=0
	while [ $_n -lt 100 ]; do
		ringwise verify -j 2>/dev/null | grep -q '"running": {' || return 0
		sleep 0.2
		_n=$((_n + 1))
	done
	return 1
}

# quiet SECONDS NAME: no transaction within this time.
quiet() {
	_before=$(journals)
	sleep "$1"
	same "$2" "$(journals)" "$_before"
}

# logged TEXT [SECONDS]
logged() {
	_n=0
	while [ $_n -lt $((${2:-20} * 5)) ]; do
		grep -qF -- "$1" $log && return 0
		sleep 0.2
		_n=$((_n + 1))
	done
	tail -n 5 $log
	return 1
}

# heard SOURCE: the number of notifications that the service has received from it, as last published.
heard() {
	sed -n "/\"heard\"/,/}/ s/.*\"$1\": \([0-9]*\).*/\1/p" $RINGWISE_STATE_DIR/daemon.json
}

# more SOURCE NUMBER: whether there were more notifications than that.
more() {
	[ "$(heard "$1")" -gt "$2" ]
}

# logged_once TEXT
logged_once() {
	[ "$(grep -cF -- "$1" $log)" = 1 ]
}

# logged_times NUMBER TEXT SECONDS: whether the text is in the log that often within this time.
logged_times() {
	_n=0
	while [ $_n -lt $(($3 * 5)) ]; do
		[ "$(grep -cF -- "$2" $log)" = "$1" ] && return 0
		sleep 0.2
		_n=$((_n + 1))
	done
	return 1
}

# written: bytes that the service has written since its start.
written() {
	awk '/wchar/ { print $2 }' "/proc/$service/io"
}

# ticks PID: its CPU time in ticks of 10 ms.
ticks() {
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

# anon: its own memory, in kB: without the pages of the program's file, which others share.
anon() {
	awk '/RssAnon/ { print $2 }' "/proc/$service/status"
}

# memory: what the service occupies.
memory() {
	check "its own memory is at most 10 MB ($(anon) kB)" test "$(anon)" -le 10240
	echo "# memory: $(grep -e VmRSS -e RssAnon "/proc/$service/status" | tr -s '\t\n' ' ')"
	# By mapping: the heap, each stack, and what else is anonymous.
	awk '/^[0-9a-f]+-/ { name = NF > 5 ? $6 : "-"; size = $1 } /^Anonymous:/ && $2 > 64 { print "# memory: " $2 " kB " size " " name }' \
		"/proc/$service/smaps"
	echo "# memory: threads $(ls "/proc/$service/task" | wc -l)"
}

# pick N: the next number below N, in _p, from a generator that the variable seed decides.
pick() {
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	_p=$((seed / 65536 % $1))
}

# same_memory EVENTS EARLY: compares the memory of a process that has seen so many events with that after ten of them, in kB. Without EARLY
# it has seen fewer.
same_memory() {
	if [ -z "$2" ]; then
		echo "# the last process has seen $1 events, too few to compare its memory"
		return
	fi
	_late=$(anon)
	check "memory has not grown over $1 events of one process ($2 kB, then $_late kB)" test "$_late" -le $(($2 + 1024))
}
