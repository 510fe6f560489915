#!/bin/sh
# Reading does not run on isolated CPUs, and --passive does not wait for the holder of the network lock.
# hosts: isolated
# kernels: all
# timeout: 500
. /h/lib.sh
. /h/state.sh
links eth0 eth1

# Children may run where this shell may run: no start of a program takes place on CPU 2 or 3.
taskset -p -c 0-1 $$ >/dev/null
same "the kernel isolates" "$(cat /sys/devices/system/cpu/isolated)" 2-3
# The kernel refuses to move the managed interrupts of mq1, so the status is 3.
status "something is applied" 3 ringwise apply --yes

# --- every thread, while it runs
(exec taskset -c 0-3 ringwise -v verify --for 6s >/tmp/long.out 2>/tmp/long.err) &
pid=$!
for _i in $(seq 200); do
	grep -q '^Cpus_allowed_list:.0-1$' /proc/$pid/status && break
	sleep 0.05
done
same "it leaves the isolated CPUs" "$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/$pid/status)" 0-1
: >/tmp/seen
while [ -e /proc/$pid/task ]; do
	for t in "/proc/$pid"/task/*; do
		# The CPU on which it last ran is the 37th word behind the name.
		a=$(awk '/^Cpus_allowed_list/ { print $2 }' $t/status 2>/dev/null)
		c=$(sed 's/.*) //' $t/stat 2>/dev/null | cut -d' ' -f37)
		[ -n "$a" ] && [ -n "$c" ] && echo "$a $c" >>/tmp/seen
	done
	grep -q '^State:.Z' /proc/$pid/status 2>/dev/null && break
done
wait $pid
check "its threads were seen often enough: $(wc -l </tmp/seen) times" [ $(wc -l </tmp/seen) -ge 20 ]
same "all of them may run on the others only" "$(cut -d' ' -f1 /tmp/seen | sort -u)" 0-1
same "and did" "$(grep -c ' [23]$' /tmp/seen)" 0
check "-v says so" grep -q 'runs on CPUs 0-1, off the isolated CPUs 2-3' /tmp/long.err

# --- the affinity that the caller has set
taskset -c 2,3 ringwise -v show eth0 >/tmp/out 2>/tmp/err
same "started on isolated CPUs only: it runs" $? 0
says "and stays there" "runs on the isolated CPUs 2-3"
ringwise -v show eth0 >/tmp/out 2>/tmp/err
same "where nothing is to be left nothing is said" "$(grep -c 'isolated CPUs' /tmp/err)" 0

# --- a cgroup partition isolates CPUs too
mount | grep -q ' /sys/fs/cgroup type cgroup2' || mount -t cgroup2 none /sys/fs/cgroup
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/part
echo 6 >/sys/fs/cgroup/part/cpuset.cpus
echo isolated >/sys/fs/cgroup/part/cpuset.cpus.partition
if [ -e /sys/fs/cgroup/cpuset.cpus.isolated ]; then
	check "the partition is isolated" grep -q 6 /sys/fs/cgroup/cpuset.cpus.isolated
	# The kernel removes the partition's CPUs from those of other cgroups, so ringwise changes nothing.
	taskset -c 0,6 ringwise -v show eth0 >/tmp/out 2>/tmp/err
	same "a mask with a CPU of a partition: it runs" $? 0
	echo "# $(cat /sys/fs/cgroup/cpuset.cpus.isolated); $(grep isolated /tmp/err)"
fi
rmdir /sys/fs/cgroup/part

# --- disturbance of a program on an isolated CPU
taskset -c 3 sh -c 'while :; do :; done' &
spin=$!
# felt: rescheduling, function call, TLB and work interrupts of CPU 3 so far
felt() {
	awk 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "CPU3") c = i + 1 }
		$1 ~ /^(RES|CAL|TLB|IWI):$/ { n += $c } END { print n }' /proc/interrupts
}
now() { cut -d' ' -f1 /proc/uptime | tr -d .; }
# reading COMMAND...: runs it five times, then waits as long without it. Prints the interrupts of both.
reading() {
	t0=$(now) f0=$(felt)
	for _i in 1 2 3 4 5; do
		"$@" >/dev/null 2>&1
	done
	f1=$(felt) t1=$(now)
	while [ $(($(now) - t1)) -lt $((t1 - t0)) ]; do sleep 0.2; done
	echo $((f1 - f0)) $(($(felt) - f1))
}
sleep 1
for command in "status --passive" "status" "show -j" "plan" "verify" "capture /tmp/x.tar"; do
	rm -f /tmp/x.tar
	set -- $(reading ringwise $command)
	echo "# $command: CPU 3 was interrupted $1 times by other CPUs in 5 runs, $2 times in as long a time without"
	# A run reads hundreds of files: one interrupt per file would be thousands.
	check "$command is not felt there" [ $1 -le $((2 * $2 + 25)) ]
done
kill $spin

# --- --passive makes no request that needs the lock
echo 1 >/sys/module/mqnic/parameters/quirk_dev
echo 300 >/sys/module/mqnic/parameters/hang
echo 128 >/sys/module/mqnic/parameters/quirk
ethtool -l mq0 >/dev/null &
holder=$!
for _i in $(seq 100); do
	[ "$(cat /sys/module/mqnic/parameters/hanging)" = 1 ] && break
	sleep 0.1
done
status "status --passive while the network lock is held" 0 ringwise --passive
same "no device is late" "$(grep -c 'no answer' /tmp/out)" 0
says "what was not read is listed" "not read"
same "the lock is held still" "$(cat /sys/module/mqnic/parameters/hanging)" 1
ringwise show eth0 --passive >/tmp/out 2>/tmp/err
same "show --passive" $? 0
same "no device is late there either" "$(grep -c 'no answer' /tmp/out)" 0
echo 0 >/sys/module/mqnic/parameters/quirk
wait $holder
status "put back" 0 ringwise rollback 0 --yes
