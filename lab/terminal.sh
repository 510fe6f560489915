# Sourced after lib.sh on hosts with systemd: commands as a user types them, for scenarios with documented commands.

# Without it the full screen of watch is not used.
export TERM=linux

# typed NAME SECONDS COMMAND: on a terminal, where `y` is typed ahead, again when /tmp/NAME.again appears, and Ctrl-C after
# that time. Its output is in /tmp/NAME, its status in /tmp/NAME.status.
typed() {
	printf '%s\n' "$3" >"/tmp/$1.sh"
	rm -f "/tmp/$1.status" "/tmp/$1.again"
	(
		printf 'y\n'
		_i=0
		while [ ! -e "/tmp/$1.status" ] && [ "$_i" -lt $(($2 * 5)) ]; do
			if [ -e "/tmp/$1.again" ]; then
				rm "/tmp/$1.again"
				printf 'y\n'
			fi
			sleep 0.2
			_i=$((_i + 1))
		done
		[ -e "/tmp/$1.status" ] || printf '\003'
		sleep 1
	) 2>/dev/null | script -q -c "stty rows 50 cols 120; trap : INT; sh /tmp/$1.sh; echo \$? >/tmp/$1.status" "/tmp/$1.log" >/dev/null 2>&1
	sed '/^Script \(started\|done\)/d' "/tmp/$1.log" | tr -d '\r' >"/tmp/$1"
}

# judged NAME STATUSES COMMAND
judged() {
	look _got "/tmp/$1.status"
	case "|$2|" in
	*"|$_got|"*) _fits=yes ;;
	*) _fits= ;;
	esac
	# Status 1 and 4: it is an error by its nature, or the driver refused it.
	_no='^error:\|panicked'
	case $2 in 1 | 4) _no=panicked ;; esac
	if grep -q "$_no" "/tmp/$1"; then _fits=; fi
	# Commands of systemd may print nothing, and some write into a file. The first line is what was typed.
	case $3 in
	systemctl* | *'>'* | *--textfile* | *'--out '*) ;;
	*) [ "$(sed 1d "/tmp/$1" | tr -d ' \n' | wc -c)" -gt 0 ] || _fits= ;;
	esac
	if [ -n "$_fits" ]; then
		ok "$PLACE: $3"
	else
		cat "/tmp/$1"
		not_ok "$PLACE: $3" "status $_got, wanted $2: $(tail -n 6 "/tmp/$1" | tr '\n' ' ')"
	fi
}
