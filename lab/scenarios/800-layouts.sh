#!/bin/sh
# The CPUs where the queues' interrupts really run: our layouts compared with the kernel's own, a set-affinity loop and irqbalance.
# Only our layouts are judged; the others are only reported.
# hosts: router16
# kernels: 6.12
# timeout: 900
# needs: irqbalance
. /h/lib.sh
. /h/state.sh

devs="eth0 eth1"
all=$(awk '{ print $2 }' /h/nics | while read -r d; do [ -e /sys/class/net/$d ] && echo $d; done)
table=/h/results/layouts.txt
rows=/tmp/rows80
: >$rows

# irqbalance uses its own libraries.
balance="env LD_LIBRARY_PATH=/h/irqbalance/lib /h/irqbalance/irqbalance"

# Every interrupt of the machine, because a competing program also moves those that are not compared here.
save_masks() {
	for d in /proc/irq/[0-9]*; do
		look m $d/smp_affinity
		echo "$d $m"
	done >/tmp/masks80
}
restore_masks() {
	while read -r d m; do
		look now $d/smp_affinity
		[ "$now" != "" ] && [ "$now" != "$m" ] && echo $m >$d/smp_affinity
	done </tmp/masks80
}

# vectors DEV QUEUE: one interrupt, or one for each direction (igb with few queues).
vectors() {
	for _v in TxRx-$2 rx-$2 tx-$2; do
		queue_irq $1 $_v
	done
	[ -e /sys/class/net/$1/queues/rx-$2 ]
}

# fresh N: N queues with new interrupts, on the CPUs that the driver and the kernel choose.
fresh() {
	for dev in $devs; do
		if [ $1 = 8 ]; then other=4; else other=8; fi
		# A user's table would keep its queues.
		ethtool -X $dev default 2>/dev/null
		ethtool -L $dev combined $other 2>/dev/null
		ethtool -L $dev combined $1 2>/dev/null
	done
	links $devs
}

both_ways() {
	traffic eth0 eth1 1024 $1
	traffic eth1 eth0 1024 $1
}

# One line for each vector: device, queue, the CPU that takes it, its node, the NIC's node, its core, and
# whether that CPU is one of those that were requested.
where() {
	for dev in $devs; do
		q=0
		while v=$(vectors $dev $q); do
			for n in $v; do
				cpu=$(effective $n)
				asked=" $(expand $(asked $n)) "
				at=/sys/devices/system/cpu/cpu$cpu
				node=$(ls -d $at/node[0-9]* | sed 's/.*node//')
				case $asked in *" $cpu "*) moved=yes ;; *) moved=no ;; esac
				echo "$dev $q $cpu $node $(cat $(pci_of $dev)/numa_node) $(cat $at/topology/thread_siblings_list) $moved"
			done
			q=$((q + 1))
		done
	done
}

# layout NAME: sends traffic until every interrupt is on its requested CPU, then counts queues:
# far: one of its interrupts is on another node than the NIC.
# stacked: on a CPU that an earlier queue of its NIC has already.
# smt-shared: another queue of its NIC is on another CPU of the same core.
layout() {
	for _ in 1 2 3 4; do
		both_ways 4000
		where >/tmp/where80
		grep -q ' no$' /tmp/where80 || break
	done
	for dev in $devs; do
		echo "# $1: $dev" $(awk -v d=$dev '$1 == d { c[$2] = c[$2] "+" $3 }
			END { for (i = 0; i in c; i++) print substr(c[i], 2) }' /tmp/where80)
	done
	grep ' no$' /tmp/where80 | sed 's/^/# no interrupt since the change: /'
	awk -v name="$1" -v OFS='|' '
		{ d[NR] = $1; q[NR] = $2; cpu[NR] = $3; core[NR] = $6
		  id = $1 " " $2
		  if (!(id in ids)) { ids[id]; n++ }
		  if ($4 != $5) far[id]
		  if (!((id, $3) in here)) { here[id, $3]; if (++any[$3] > max) max = any[$3] } }
		END {
			for (i = 1; i <= NR; i++)
				for (j = 1; j <= NR; j++) {
					if (d[i] != d[j] || q[i] == q[j] || core[i] != core[j]) continue
					if (cpu[i] != cpu[j]) shared[d[i] " " q[i]]
					else if (q[i] > q[j]) stacked[d[i] " " q[i]]
				}
			nf = ns = nt = 0
			for (k in far) nf++
			for (k in stacked) nt++
			for (k in shared) ns++
			print name, n + 0, nf, nt, ns, max + 0
		}' /tmp/where80 >/tmp/row80
	cat /tmp/row80 >>$rows
	IFS='|' read -r _ queues far stacked shared max </tmp/row80
}

# ours NAME QUEUES SHARED ARGUMENTS...: applies it, classifies it, judges it, and rolls it back.
ours() {
	name=$1 have=$2 unavoidable=$3
	shift 3
	export RINGWISE_STATE_DIR=/tmp/rw80.$((k = k + 1))
	status "$name: apply" 0 ringwise apply --yes $devs "$@"
	[ $_got = 0 ] || cat /tmp/out /tmp/err
	links $devs
	layout "$name"
	same "$name: queues of both NICs" "$queues" "$have"
	same "$name: far queues" "$far" 0
	same "$name: stacked queues" "$stacked" 0
	same "$name: queues that share a core, no more than must" "$shared" "$unavoidable"
	status "$name: rollback" 0 ringwise rollback --yes 0
	links $devs
}

# others N: every other layout, with N queues on each NIC, each from a fresh start.
others() {
	fresh $1
	layout "kernel default"

	for dev in $devs; do
		q=0
		while v=$(vectors $dev $q); do
			for n in $v; do
				echo $q >/proc/irq/$n/smp_affinity_list
			done
			q=$((q + 1))
		done
	done
	layout "set-affinity loop"

	fresh $1
	save_masks
	both_ways 4000
	$balance --oneshot --foreground --interval=2 >/tmp/oneshot80 2>&1
	echo "# irqbalance --oneshot ended with $?: $(grep -vc '^$' /tmp/oneshot80) lines"
	layout "irqbalance --oneshot"
	restore_masks

	fresh $1
	save_masks
	$balance --foreground --interval=1 >/tmp/daemon80 2>&1 &
	pid=$!
	from=$(cut -d. -f1 /proc/uptime)
	while [ $(($(cut -d. -f1 /proc/uptime) - from)) -lt 30 ]; do
		both_ways 20000
	done
	if kill -0 $pid 2>/dev/null; then echo "# irqbalance ran under traffic for 30 s"; else
		echo "# irqbalance ended by itself: $(tail -n 3 /tmp/daemon80 | tr '\n' ' ')"
	fi
	layout "irqbalance daemon"
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	restore_masks
}

links $devs
# Earlier scenarios may have left their layout.
fresh 8
state $all >/tmp/before
$balance --version 2>&1 | head -1 | sed 's/^/# /'
k=0

others 8
fresh 8
# Eight queues on four local cores: each core has to carry two of them.
ours "ringwise balanced" 16 16 --goal balanced
ours "ringwise forward" 16 16 --goal forward

others 4
fresh 8
ours "ringwise forward, 4 queues" 8 0 --goal forward --queues 4 --allow-disruption

fresh 8
state $all >/tmp/after
unchanged "every device is as before" /tmp/before /tmp/after
same "irqbalance is gone" "$(pidof irqbalance)" ""

{
	printf '%-26s %6s %4s %8s %11s %12s\n' layout queues far stacked smt-shared max-per-cpu
	for n in 16 8; do
		awk -F'|' -v n=$n '$2 == n' $rows
	done | while IFS='|' read -r name queues far stacked shared max; do
		printf '%-26s %6s %4s %8s %11s %12s\n' "$name" $queues $far $stacked $shared $max
	done
} >$table
cat $table
