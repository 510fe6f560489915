#!/bin/sh
# The flows of a systemd unit, found by the sockets of its processes. igb refuses rules here, and everything is rolled back then.
# hosts: remote
# kernels: 6.12
# timeout: 300
. /h/lib.sh
. /h/state.sh
. /h/remote.sh
export RINGWISE_STATE_DIR=/tmp/rw67u
dev=eth2
ip link set $dev up
wait_link $dev

cat >/tmp/units.toml <<END
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
everything() {
	state $dev
	ethtool -x $dev
	ethtool -c $dev
	ethtool -n $dev 2>&1
}
everything >/tmp/before
status "a unit that is not there: refused" 1 ringwise plan $dev --config /tmp/units.toml
says "with its name" 'group latency: unit "lab-listen.service": not running'

# Two processes of one unit, with two ports; a third process of another unit listens too.
cat >/tmp/listen <<'END'
#!/bin/sh
exec perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 5, LocalPort => $ARGV[0]) or die $!; sleep 600' $1
END
chmod 755 /tmp/listen
systemd-run --quiet --unit=lab-listen /bin/sh -c '/tmp/listen 7001 & exec /tmp/listen 7002'
systemd-run --quiet --unit=lab-other /tmp/listen 7003
wait_for 60 sh -c "ss -ltn | grep -q ':7001 ' && ss -ltn | grep -q ':7002 ' && ss -ltn | grep -q ':7003 '"
systemctl --no-pager status lab-listen lab-other
ringwise plan $dev --config /tmp/units.toml -j >/tmp/plan.json 2>/tmp/err
cat /tmp/err
ports() { tr -d ' \n' </tmp/plan.json | grep -o '"dst-port":"[0-9]*"' | tr -dc '0-9\n' | sort -u | tr '\n' ' '; }
same "the ports of both processes, not of the other unit" "$(ports)" "7001 7002 "
status "rules that the device refuses are planned without in the same run" 0 ringwise apply --yes $dev --config /tmp/units.toml
cat /tmp/out /tmp/err
says "it names the rule and the errno" "$dev flow rule 0 EOPNOTSUPP"
same "no rule is there" "$(ethtool -n $dev 2>&1 | grep -c '^Filter:')" 0
same "and no queue is left out of the table" \
	"$(ethtool -x $dev | awk '/^ *[0-9]+:/ { for (i = 2; i <= NF; i++) n[$i]++ } END { for (q = 0; q < 64; q++) if (q in n) printf "%d ", q }')" \
	"$(seq 0 $(($(ls -d /sys/class/net/$dev/queues/rx-* | wc -l) - 1)) | tr '\n' ' ')"
status "nothing to do a second time" 0 ringwise plan $dev --config /tmp/units.toml --exit-code
status "back" 0 ringwise rollback --yes 0
everything >/tmp/after
unchanged "as before" /tmp/before /tmp/after
systemctl stop lab-listen lab-other
