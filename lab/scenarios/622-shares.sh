#!/bin/sh
# Goal forward with fewer queues than CPUs: the RSS table is weighted by what each CPU carries. A second plan keeps it, check
# accepts it, and it is removed with the goal or the transaction.
# hosts: router16
# kernels: 5.10 6.12 newest
# timeout: 240
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw622

links mq0 mq1
# parts DEV: entries of the table by queue
parts() {
	ethtool -x $1 | awk '/RSS hash key/ { exit } $1 ~ /^[0-9]+:$/ { for (i = 2; i <= NF; i++) n[$i]++ }
		END { for (q = 0; q in n; q++) printf "%s%d", q ? " " : "", n[q] }'
}
# kind DEV: whether the queues differ by more than one entry
kind() {
	parts $1 | awk '{ for (i = 1; i <= NF; i++) { if (!max || $i > max) max = $i; if (!min || $i < min) min = $i } }
		END { print (max > min + 1) ? "uneven" : "even" }'
}
state mq0 >/tmp/before
same "the table is even at first" "$(kind mq0)" even
status "as many queues as CPUs near it: nothing to weigh" 0 ringwise apply --yes --goal forward --allow-disruption mq0
cat /tmp/out
same "eight queues on eight CPUs have an even table" "$(kind mq0)" even
status "six queues on four cores" 0 ringwise apply --yes --goal forward --queues 6 --allow-disruption mq0
cat /tmp/out
echo "entries: $(parts mq0)"
# Queues that share a core, by the effective CPUs.
doubled=$(for q in 0 1 2 3 4 5; do
	cpu=$(cat /proc/irq/$(queue_irq mq0 TxRx-$q)/smp_affinity_list)
	echo "$q $((cpu / 2))"
done | awk '{ core[$1] = $2; n[$2]++ } END { for (q = 0; q < 6; q++) printf "%s%d", q ? " " : "", n[core[q]] }')
echo "queues on the core of each: $doubled"
check "a queue that shares its core has two thirds of what the others have" [ "$(echo "$(parts mq0)
$doubled" | awk 'NR == 1 { for (i = 1; i <= 6; i++) n[i] = $i }
	NR == 2 { for (i = 1; i <= 6; i++) { s[$i] += n[i]; c[$i]++ } }
	END { r = (s[2] / c[2]) / (s[1] / c[1]); print (r > 0.6 && r < 0.73) ? "yes" : "no" }')" = yes ]
status "a second plan has nothing to do" 0 ringwise plan --goal forward --queues 6 --allow-disruption --exit-code mq0
ringwise check --goal forward --queues 6 mq0 >/tmp/check
cat /tmp/check
same "check does not find the table uneven" "$(grep -c Q19 /tmp/check)" 0
status "another goal" 0 ringwise apply --yes --goal balanced mq0
cat /tmp/out
same "the table is even again" "$(kind mq0)" even
status "everything is undone" 0 ringwise rollback --yes 0
state mq0 >/tmp/after
unchanged "all is as before" /tmp/before /tmp/after
